"""The report as a person or a machine reads it."""
