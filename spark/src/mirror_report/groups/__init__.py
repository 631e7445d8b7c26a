"""What moving consumer groups to the target would lose or repeat."""
