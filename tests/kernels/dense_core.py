"""What the trusted core does with a strategy, in a few dense lines, for tests and experiments on public data."""

from __future__ import annotations

import numpy as np


def matrix_of(blocks, cells):
    """The strategy as one dense matrix, rows in the order of the blocks."""
    found = []
    for block in blocks:
        buckets = block["size"] if block["kind"] == "groups" else block["matrix"].shape[1]
        held = np.zeros((buckets, cells))
        held[block["labels"], np.arange(cells)] = 1
        if block["kind"] == "groups":
            found.append(held * np.broadcast_to(block["weight"], (buckets,))[:, None])
        else:
            found.append(block["matrix"] @ held)
    return np.concatenate(found)


def sensitivity(blocks, cells):
    """The largest L1 norm of a column."""
    norms = np.zeros(cells)
    for block in blocks:
        if block["kind"] == "groups":
            norms += np.broadcast_to(np.abs(block["weight"]), (block["size"],))[block["labels"]]
        else:
            norms += np.abs(block["matrix"]).sum(axis=0)[block["labels"]]
    return float(norms.max())


def measure(blocks, x, epsilon, rng):
    """Noisy answers to each block, under Laplace noise of scale sensitivity/ε."""
    x = np.asarray(x, dtype=np.float64).ravel()
    scale = sensitivity(blocks, len(x)) / epsilon
    answers = []
    for block in blocks:
        held = np.bincount(block["labels"], weights=x)
        exact = block["weight"] * held if block["kind"] == "groups" else block["matrix"] @ held
        answers.append(exact + rng.laplace(0, scale, len(exact)))
    return answers


def discrete_laplace(rng):
    """The `draw` of the partition walk, from a seeded generator."""

    def draw(scale, size):
        p = -np.expm1(-1 / scale)
        return rng.geometric(p, size) - rng.geometric(p, size)

    return draw
