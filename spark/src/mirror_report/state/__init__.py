"""What the report remembers between runs."""
