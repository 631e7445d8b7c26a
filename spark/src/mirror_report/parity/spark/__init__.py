"""Spark and what it reads and writes: session, clusters, rows on disk, class archive."""
