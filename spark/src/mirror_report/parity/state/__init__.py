"""What parity keeps between runs, and what it hands from one host to another. No Spark."""
