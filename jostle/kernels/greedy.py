"""GreedyH: a binary hierarchy whose nodes are weighted for the workload, greedily from the leaves up.

Li, Hay, Miklau and Wang, *A data- and workload-aware algorithm for range queries under differential privacy*,
VLDB 2014, section 4. A node is measured with a share λ of what its part of the tree has, its halves with the rest, so that
every column's L1 norm is exactly 1. With Y the normal matrix of a node's halves, t = tr(GY⁻¹) their error,
h = 1ᵀY⁻¹1 and g = 1ᵀY⁻¹GY⁻¹1, measuring the sum gives (t − rg/(1 + rh))/(1 − λ)², r = (λ/(1 − λ))², by Sherman and
Morrison; λ is its minimum. Y⁻¹1 is taken as even over the node's cells, which makes g a product of
overlaps along the axes; the weights are public and a rough g costs a little accuracy, nothing else.
"""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

import numpy as np

from jostle.kernels import hierarchy
from jostle.kernels.workloads import Floats, Ints, Workload

Strategy = list[dict[str, Any]]

SHARES = np.concatenate([[0.001], np.linspace(0.01, 0.9, 90)])
"""The λ that are tried: never 0, so that every answer can be divided by its weight."""

MOST_OVERLAPS = 2**23
"""Above this many overlaps of queries with a level's intervals, evenly spaced queries stand for all."""


def greedy_h_strategy(queries: Workload) -> Strategy:
    """All levels of the binary tree over the workload's cells (split along every axis), each node with its weight."""
    blocks = hierarchy.tree_strategy(queries.shape, 2, root=True)
    parents = [_parent(upper, lower) for upper, lower in zip(blocks, blocks[1:], strict=False)]
    cells = np.bincount(blocks[-1]["labels"]).astype(np.float64)
    error, inverse = _held(queries, blocks[-1]), np.ones(len(cells))
    shares: list[Floats] = []
    for block, parent in zip(reversed(blocks[:-1]), reversed(parents), strict=True):
        error, inverse, cells = (np.bincount(parent, weights=v, minlength=block["size"]) for v in (error, inverse, cells))
        held = _held(queries, block) * (inverse / cells) ** 2
        error, inverse, share = _best(error, inverse, held, np.bincount(parent, minlength=block["size"]) > 1)
        shares.insert(0, share)
    left = np.ones(1)
    for block, share, parent in zip(blocks, shares, parents, strict=False):
        block["weight"] = left * share
        left = (left * (1 - share))[parent]
    blocks[-1]["weight"] = left
    return blocks


def _best(error: Floats, inverse: Floats, held: Floats, splits: Any) -> tuple[Floats, Floats, Floats]:
    """For each node the error and 1ᵀY⁻¹1 with the best share for its sum, and that share."""
    tried = SHARES[:, None]
    r = (tried / (1 - tried)) ** 2
    errors = (error - r * held / (1 + r * inverse)) / (1 - tried) ** 2
    # A node with one child would measure the same sum twice.
    best = np.where(splits, np.argmin(errors, axis=0), 0)
    share = SHARES[best]
    remaining = inverse / ((1 - share) ** 2 + share**2 * inverse)
    return np.take_along_axis(errors, best[None], axis=0)[0], remaining, share


def _parent(upper: dict[str, Any], lower: dict[str, Any]) -> Ints:
    found = np.empty(lower["size"], dtype=np.int64)
    found[lower["labels"]] = upper["labels"]
    return found


def _held(queries: Workload, block: dict[str, Any]) -> Floats:
    """For each node Σ over queries of the square of how many of its cells they hold; nodes are products of intervals."""
    labels, shape = np.asarray(block["labels"]), queries.shape
    _, first = np.unique(labels, return_index=True)
    _, last = np.unique(labels[::-1], return_index=True)
    lows = np.stack(np.unravel_index(first, shape), axis=1)
    highs = np.stack(np.unravel_index(len(labels) - 1 - last, shape), axis=1)
    if len(first) == len(labels):
        return queries.gram_diagonal().ravel()
    asked_lows, asked_highs = queries.bounds()
    widest = max(len(np.unique(lows[:, axis])) for axis in range(len(shape)))
    step = -(-len(asked_lows) * widest // MOST_OVERLAPS)
    asked_lows, asked_highs = asked_lows[::step], asked_highs[::step]
    squares = []
    for axis in range(len(shape)):
        starts, ends = np.unique(lows[:, axis]), np.unique(highs[:, axis])
        below = np.minimum(asked_highs[:, axis, None], ends)
        squares.append(np.maximum(below - np.maximum(asked_lows[:, axis, None], starts) + 1.0, 0.0) ** 2)
    letters = ascii_lowercase[: len(shape)]
    formula = ",".join(f"z{letter}" for letter in letters) + "->" + letters
    return step * np.asarray(np.einsum(formula, *squares, optimize=True)).ravel()
