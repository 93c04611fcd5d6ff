"""Discrete undirected graphical models: exact inference, learning from noisy tables, synthetic rows.

Everything here sees public values and released numbers only.
"""
