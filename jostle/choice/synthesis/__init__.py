"""Synthesis of `predict`: short formulas of the features that say how good an Option will be, learned from runs."""

USUAL = 11
"""The largest complexity of a formula, where none is named."""

LARGEST = 30
"""The largest that may be named: three terms of five, with their numbers, come to no more."""
