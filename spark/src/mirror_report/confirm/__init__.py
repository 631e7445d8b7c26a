"""Whether processes took up their work."""
