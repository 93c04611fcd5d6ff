"""Regressions: what is fitted to released sums to predict a number, and synthetic tables to train choices among
them."""
