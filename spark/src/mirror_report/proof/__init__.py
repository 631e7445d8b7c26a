"""Proofs of topics at rest."""
