"""Pure judgements: snapshots in, findings out; no I/O, no Spark."""
