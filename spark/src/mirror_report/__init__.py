"""Lag and parity of Kafka mirrors."""

__version__ = "0.2.0"
