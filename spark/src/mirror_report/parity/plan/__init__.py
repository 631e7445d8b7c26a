"""What a run has to read and by which strategy. Pure: no Spark, no I/O."""
