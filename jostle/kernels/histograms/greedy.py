"""GreedyH: a binary hierarchy whose nodes are weighted for the workload, greedily from the leaves up.

Li, Hay, Miklau and Wang, *A data- and workload-aware algorithm for range queries under differential privacy*,
VLDB 2014, section 4. A node is measured with a share λ of what its part of the tree has, its halves with the rest, so
that every column's L1 norm is exactly 1. With Y the normal matrix of a node's halves, t = tr(GY⁻¹) their error,
h = 1ᵀY⁻¹1 and g = 1ᵀY⁻¹GY⁻¹1, measuring the sum gives (t − rg/(1 + rh))/(1 − λ)², r = (λ/(1 − λ))², by Sherman and
Morrison; λ is its minimum. G counts the queries that do not hold the node's parent as a whole, since those that do are
for its ancestors to answer: counting them all starves the leaves. Y⁻¹1 is taken as even over the node's cells, which
makes g a product of overlaps along the axes; the weights are public, and a rough g costs a little accuracy only.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy
from jostle.kernels.histograms import grids
from jostle.kernels.histograms.grams import on_buckets
from jostle.kernels.histograms.grids import extents
from jostle.kernels.workloads.boxes import Workload

SHARES = np.concatenate([[0.001], np.linspace(0.01, 0.9, 90)])
"""The λ that are tried: never 0, so that every answer can be divided by its weight."""

FEW = 8
"""With fewer queries than a part in so many of the cells, most nodes are asked for by none: taking parts as even is far
off then, and the weights are averaged with equal ones (twice the error of these at most)."""

OVERLAPS = 2**22
"""Overlaps of queries with a level's intervals are made in pieces of this size."""


def greedy_h_strategy(queries: Workload) -> Strategy:
    """All levels of the binary tree over the workload's cells (split along every axis), each node with its weight."""
    if queries.kind not in ("identity", "prefixes"):
        queries = Workload("boxes", queries.shape, *queries.bounds())
    blocks = grids.tree_strategy(queries.shape, 2, root=True)
    parents = [grids.parents_of(upper, lower) for upper, lower in pairwise(blocks)]
    cells: Floats = np.bincount(blocks[-1]["labels"]).astype(np.float64)
    inverse: Floats = np.ones(len(cells))
    shares: list[Floats] = []
    overlaps = [_query_overlaps(queries, block) for block in blocks]
    # How many queries hold a node's parent as a whole: those are for its ancestors to answer.
    above = [np.zeros(1), *(covered[parent] for (_, covered), parent in zip(overlaps, parents, strict=False))]
    error: Floats = overlaps[-1][0] - above[-1]
    for level in range(len(blocks) - 2, -1, -1):
        parent, size = parents[level], int(blocks[level]["size"])
        error, inverse, cells = (_sum_children(parent, values, size) for values in (error, inverse, cells))
        squares, covered = overlaps[level]
        error = error + (covered - above[level]) * inverse
        g = inverse**2 * (squares / cells**2 - above[level])
        # No g exceeds th, by Cauchy and Schwarz; this g, which takes uneven parts as even, may.
        g = np.clip(g, 0, error * inverse)
        error, inverse, share = _best(error, inverse, g, np.bincount(parent, minlength=size) > 1)
        shares.insert(0, share)
    left = np.ones(1)
    for block, share, parent in zip(blocks, shares, parents, strict=False):
        block["weight"] = left * share
        left = (left * (1 - share))[parent]
    blocks[-1]["weight"] = left
    if queries.size * FEW < queries.cells:
        for block in blocks:
            block["weight"] = (block["weight"] + 1 / len(blocks)) / 2
    return blocks


def _best(error: Floats, inverse: Floats, g: Floats, splits: Any) -> tuple[Floats, Floats, Floats]:
    """For each node the error and 1ᵀY⁻¹1 with the best share for its sum, and that share."""
    shares = SHARES[:, None]
    r = (shares / (1 - shares)) ** 2
    errors = (error - r * g / (1 + r * inverse)) / (1 - shares) ** 2
    # A node with one child would measure the same sum twice.
    best = np.where(splits, np.argmin(errors, axis=0), 0)
    share = SHARES[best]
    remaining = inverse / ((1 - share) ** 2 + share**2 * inverse)
    return np.take_along_axis(errors, best[None], axis=0)[0], remaining, share


def _sum_children(parent: Ints, values: Floats, size: int) -> Floats:
    return np.bincount(parent, weights=values, minlength=size).astype(np.float64)


def _query_overlaps(queries: Workload, block: dict[str, Any]) -> tuple[Floats, Floats]:
    """For each node, a product of intervals: Σ over queries of its cells in the query squared, and how many hold it."""
    labels, shape = np.asarray(block["labels"]), queries.shape
    if block["size"] == len(labels):
        return (queries.gram_diagonal().ravel(),) * 2
    if len(shape) == 1:
        return _interval_overlaps(queries, labels)
    lows, highs = extents(shape, labels)
    intervals = [(np.unique(lows[:, axis]), np.unique(highs[:, axis])) for axis in range(len(shape))]
    if queries.lows is None or queries.highs is None:
        alone = [replace(queries, shape=(cells,)).bounds() for cells in shape]
        parts = [_overlaps(*bounds, at) for bounds, at in zip(alone, intervals, strict=True)]
        squares, covers = ([axis[i].sum(axis=0)[None] for axis in parts] for i in (0, 1))
        return _products(squares), _products(covers)
    squared, whole = np.zeros(len(lows)), np.zeros(len(lows))
    size = max(1, OVERLAPS // max(len(at[0]) for at in intervals))
    for start in range(0, queries.size, size):
        some = slice(start, start + size)
        query_bounds = [(queries.lows[some, axis, None], queries.highs[some, axis, None]) for axis in range(len(shape))]
        parts = [_overlaps(*bounds, at) for bounds, at in zip(query_bounds, intervals, strict=True)]
        squared += _products([squares for squares, _ in parts])
        whole += _products([covers for _, covers in parts])
    return squared, whole


def _interval_overlaps(queries: Workload, labels: Ints) -> tuple[Floats, Floats]:
    """`_query_overlaps` in one dimension, without a product of queries and nodes."""
    gram = on_buckets(queries, labels)
    lows, highs = (bound[:, 0] for bound in queries.bounds())
    ends = np.cumsum(gram.sizes)
    first, after = np.searchsorted(ends - gram.sizes, lows), np.searchsorted(ends, highs + 1, side="right")
    some = first < after
    steps = np.bincount(first[some], minlength=gram.buckets + 1) - np.bincount(after[some], minlength=gram.buckets + 1)
    return np.asarray(gram.diagonal() * gram.sizes**2), np.cumsum(steps)[:-1].astype(np.float64)


def _overlaps(lows: Ints, highs: Ints, intervals: tuple[Ints, Ints]) -> tuple[Floats, Floats]:
    """For ranges `lows` to `highs`, (m, 1), and k intervals: cells shared, squared, and whether they hold it."""
    starts, ends = intervals
    shared = np.maximum(np.minimum(highs, ends) - np.maximum(lows, starts) + 1.0, 0.0)
    return shared**2, (shared == ends - starts + 1).astype(np.float64)


def _products(parts: list[Floats]) -> Floats:
    """Σ over m of the outer product of the axes' (m, k), flat."""
    letters = ascii_lowercase[: len(parts)]
    formula = ",".join(f"z{letter}" for letter in letters) + "->" + letters
    return np.asarray(np.einsum(formula, *parts, optimize=True)).ravel()
