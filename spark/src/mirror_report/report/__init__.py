"""The whole report."""
