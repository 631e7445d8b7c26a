"""The steps of a run: from a context and an input to an outcome. None knows another."""
