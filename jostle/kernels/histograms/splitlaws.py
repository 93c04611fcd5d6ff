"""What is known of how the rows of a block part between its two halves: the prior of `blocktree`.

A share of one half follows a mixture of Beta(a, a) laws, from all on one side to nearly even; or the whole block is
even from here on; or all of it lies in one cell. The weights were learned by expectation and maximisation from public
histograms and stand here as numbers (`docs/experiments/best_histogram.md`). Coarse halves are rougher than fine ones.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from jostle.kernels.arrays import Floats

SHAPES = np.array([0.06, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 8192.0])
"""a of each Beta(a, a) law."""

_COARSE = np.array([
    [0.33, 0.38, 0.19, 0.05, 0.01, 0.01, 0.01, 0.01, 0.01],
    [0.11, 0.53, 0.32, 0.02, 0.01, 0.004, 0.002, 0.002, 0.002],
    [0.16, 0.31, 0.29, 0.06, 0.09, 0.06, 0.02, 0.006, 0.004],
    [0.13, 0.13, 0.29, 0.25, 0.09, 0.06, 0.03, 0.012, 0.008],
])  # fmt: skip
_FINE = np.array([0.03, 0.07, 0.24, 0.30, 0.20, 0.09, 0.04, 0.02, 0.01])
_EVEN = np.array([0.07, 0.03, 0.015])
"""The chance that a block is even from here on, of blocks of 2, of 3 or 4 and of 5 to 8 cells; else 0.01."""

POINT = 0.03
"""The chance that all of a block lies in one of its cells."""


def laws(depths: Floats) -> Floats:
    """The weights of `SHAPES`, (k, 9), for blocks at so many halvings from the whole, (k,)."""
    table = np.concatenate([_COARSE, _FINE[None]])
    table = table / table.sum(axis=1, keepdims=True)
    return np.asarray(table[np.minimum(np.rint(depths).astype(np.int64), len(_COARSE))])


def even(cells: Floats) -> Floats:
    """The chance, (k,), that a block of so many cells, (k,), at least 2, is even."""
    height = np.ceil(np.log2(np.maximum(cells, 2))).astype(np.int64) - 1
    return np.where(height < len(_EVEN), _EVEN[np.minimum(height, len(_EVEN) - 1)], 0.01)


def unevenness(depths: Floats, cells: Floats) -> Floats:
    """The expected square of half the difference of the halves, (k,), as a share of the square of the count."""
    beta = laws(depths) @ (1 / (4 * (2 * SHAPES + 1)))
    return np.asarray((1 - even(cells) - POINT) * beta + POINT / 4)


REACH, FINENESS = 25.0, 60
"""The table of distribution functions: from −25 to 25 on the logistic scale, in steps of 1/60."""


def masses(edges: Floats, tilt: Floats) -> Floats:
    """What each law of `SHAPES` has between neighbouring `edges`, (k, e) from 0 to 1; (k, e − 1, 9).

    `tilt`, (k,): the logit of the share of an even block, to which laws are moved.
    """
    table = _table()
    inside = np.clip(edges, 1e-14, 1 - 1e-14)
    place = (np.log(inside) - np.log1p(-inside) - tilt[:, None] + REACH) * FINENESS
    place = np.where(edges <= 0, 0.0, np.where(edges >= 1, len(table) - 1.0, np.clip(place, 0, len(table) - 1.0)))
    low = np.minimum(place.astype(np.int64), len(table) - 2)
    part = (place - low)[..., None]
    return np.asarray(np.diff(table[low] * (1 - part) + table[low + 1] * part, axis=1))


@cache
def _table() -> Floats:
    """The distribution functions at the places of the table, (t, 9)."""
    from scipy.special import betainc

    at = 1 / (1 + np.exp(-np.arange(-REACH * FINENESS, REACH * FINENESS + 1) / FINENESS))
    table = np.stack([betainc(a, a, at) for a in SHAPES], axis=1)
    table[0], table[-1] = 0.0, 1.0
    return np.asarray(table)
