"""What is reported of each topic. Pure: no Spark, no I/O."""
