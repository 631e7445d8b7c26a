"""Where verification starts."""
