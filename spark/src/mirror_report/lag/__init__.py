"""How far flows are behind."""
