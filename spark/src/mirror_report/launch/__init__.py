"""How other programs start the report."""
