"""Choosing an algorithm: features, training, models, policies, their store and their evaluation.

Training runs Options on public data with simulated noise; the interpreter stands behind `bench.Bench`. Nothing here
opens a private source or draws the noise of a release. Modules are imported where they are first used.
"""
