"""What stands against flows."""
