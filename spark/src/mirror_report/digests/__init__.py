"""Digests of one side, and two of them compared."""
