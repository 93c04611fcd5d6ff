"""Ising and pairwise fields from released moments."""
