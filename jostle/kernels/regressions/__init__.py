"""Regressions: what is fitted to released sums to predict a number, and made-up tables to train choices among them."""
