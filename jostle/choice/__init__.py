"""Choosing an algorithm: features, training, models, policies, their store and their evaluation.

Training runs Options on public data with simulated noise; the interpreter stands behind `bench.Bench`. Nothing here
opens a private source or draws the noise of a release. Modules are imported where they are first used.
"""

USUAL = 11
"""The largest complexity of a formula that predicts how good an Option is, where none is named."""

LARGEST = 30
"""The largest that may be named: three terms of five, with their numbers, come to no more."""
