"""Mirrors' processes on this host."""
