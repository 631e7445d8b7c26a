"""The reported numbers, status and findings of each topic. Pure: no Spark, no I/O."""
