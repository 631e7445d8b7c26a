"""The steps of a run: each takes its context and state, and returns what it found."""
