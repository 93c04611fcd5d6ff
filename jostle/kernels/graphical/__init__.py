"""Undirected graphical models: exact inference, learning from noisy tables, synthetic rows; Ising and pairwise fields.

Everything here sees public values and released numbers only.
"""
