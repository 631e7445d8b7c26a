"""Lag and parity of Kafka mirrors."""

__version__ = "0.1.0"
