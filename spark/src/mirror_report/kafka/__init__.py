"""Asking clusters for positions, offsets, topics and records; all use of kafka-python."""
