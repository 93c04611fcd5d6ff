"""Synthesis of `predict`: short formulas of the features that say how good an Option will be, learned from runs."""
