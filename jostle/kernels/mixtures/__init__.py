"""Mixtures, clusters and factors from released sums."""
