"""GreedyH: a binary hierarchy whose nodes are weighted for the workload, greedily from the leaves up.

Li, Hay, Miklau and Wang, *A data- and workload-aware algorithm for range queries under differential privacy*,
VLDB 2014, section 4. A node is measured with a share λ of what its part of the tree has, its halves with the rest, so
that every column's L1 norm is exactly 1. With Y the normal matrix of a node's halves, t = tr(GY⁻¹) their error,
h = 1ᵀY⁻¹1 and g = 1ᵀY⁻¹GY⁻¹1. Measuring the sum gives (t − rg/(1 + rh))/(1 − λ)², r = (λ/(1 − λ))², by Sherman and
Morrison; λ is its minimum. G counts the queries that do not hold the node's parent as a whole, since those that do are
for its ancestors to answer: counting them all starves the leaves. Y⁻¹1 is taken as even over the node's cells, which
makes g a product of overlaps along the axes; the weights are public, and a rough g costs a little accuracy only.

Haar wavelets of a cube: what Privelet measures, and the cells that its noisy coefficients give.

Xiao, Wang and Gehrke, *Differential privacy via wavelet transforms*, ICDE 2010. In sums rather than averages, each
node of a binary tree over an axis contributes the difference of its two halves, and the root its sum as well: as
many coefficients as cells, of which a row touches one a level. With the paper's weights every coefficient has noise
of one scale in these units. More axes take all products of their transforms. Halves differ by at most one cell, so
no axis needs padding. A block of the strategy is one level of every axis, kept as labels and signs along the axes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, axes_of
from jostle.kernels.histograms import grids
from jostle.kernels.histograms.grams import on_buckets
from jostle.kernels.histograms.grids import extents
from jostle.kernels.noisy_array import common_noise, with_noise
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


def _query_overlaps(queries: Workload, block: dict[str, object]) -> tuple[Floats, Floats]:
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


def privelet_strategy(shape: int | tuple[int, ...]) -> Strategy:
    """The Haar coefficients of a cube, equally weighted so that the largest column has L1 norm 1."""
    levels = [_levels(cells) for cells in axes_of(shape)]
    weight = 1 / float(np.prod([len(along) for along in levels]))
    choices = np.ndindex(*(len(along) for along in levels))
    return [
        {"kind": "signed", "axes": [along[i] for along, i in zip(levels, choice, strict=True)], "weight": weight}
        for choice in choices
    ]


def wavelet_cells(shape: int | tuple[int, ...], answers: list[Floats]) -> Floats:
    """The cells, flat, that have the coefficients `answers`, measured by `privelet_strategy`; unbiased.

    As many coefficients as cells, so there is nothing to fit: the transform is undone along one axis after another.
    The cells remember what noise they have.
    """
    axes = axes_of(shape)
    counts = [[level["size"] for level in _levels(cells)] for cells in axes]
    cube = np.empty(axes)
    flat = np.concatenate(answers)
    offset = 0
    for choice in np.ndindex(*(len(along) for along in counts)):
        sides = [along[i] for along, i in zip(counts, choice, strict=True)]
        starts = [sum(along[:i]) for along, i in zip(counts, choice, strict=True)]
        size = int(np.prod(sides))
        at = tuple(slice(start, start + side) for start, side in zip(starts, sides, strict=True))
        cube[at] = flat[offset : offset + size].reshape(sides)
        offset += size
    cube *= float(np.prod([len(along) for along in counts]))
    for axis in range(len(axes)):
        cube = np.moveaxis(_undone(np.moveaxis(cube, axis, 0)), 0, axis)
    cells, noise = np.ascontiguousarray(cube).ravel(), common_noise(answers)
    if noise is None:
        return cells
    return with_noise(cells, replace(noise, strategy=privelet_strategy(shape), shape=axes))


def box_variances(shape: tuple[int, ...], lows: Ints, highs: Ints) -> Floats:
    """The variance of each box from `lows` to `highs`, (m, d), where coefficients are measured with deviation 1.

    A box is a product of intervals and so are the coefficients, hence the variance. O(levels · (cells + m)) an axis.
    """
    variance = np.ones(len(lows))
    for axis, cells in enumerate(shape):
        variance *= _interval_variances(cells, lows[:, axis], highs[:, axis] + 1) * len(_levels(cells)) ** 2
    return variance


def _interval_variances(cells: int, starts: Ints, ends: Ints) -> Floats:
    """Σ over coefficients of the squared weight that each has in the sum from `starts` to before `ends`.

    The sum before a place p takes a share a of the node that p lies in: 0 of a cell, and of a node whose halves are
    taken with a and b, (a + b)/2 of its sum and (a − b)/2 of its difference. A sum is what two such differ by.
    """
    place = np.arange(cells + 1)
    share = np.where(place == cells, 1.0, 0.0)
    variance = np.zeros(len(starts))
    for edges in _edges(cells)[-2::-1]:
        sizes = np.diff(edges)
        node = np.minimum(np.searchsorted(edges, place, side="right") - 1, len(sizes) - 1)
        beyond = place >= (edges[:-1] + (sizes + 1) // 2)[node]
        split = sizes[node] > 1
        gap = np.where(split, np.where(beyond, 1 - share, share) / 2, 0.0)
        share = np.where(split, (beyond + share) / 2, share)
        one = node[starts] == node[ends]
        variance += np.where(one, (gap[ends] - gap[starts]) ** 2, gap[ends] ** 2 + gap[starts] ** 2)
    return np.asarray(variance + (share[ends] - share[starts]) ** 2)


def _levels(cells: int) -> list[dict[str, Any]]:
    """For each level of an axis: every cell's coefficient (`labels`, −1 for none), its sign, and how many there are.

    The first is the axis' sum. A node of k cells has ⌈k/2⌉ of them in its first half.
    """
    place = np.arange(cells)
    levels: list[dict[str, Any]] = [{"labels": np.zeros_like(place), "signs": np.ones(cells, dtype=np.int8), "size": 1}]
    for edges in _edges(cells)[:-1]:
        sizes = np.diff(edges)
        node = np.searchsorted(edges, place, side="right") - 1
        number = np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1)
        first = place < (edges[:-1] + (sizes + 1) // 2)[node]
        signs = np.where(first, 1, -1).astype(np.int8)
        levels.append({"labels": number[node], "signs": signs, "size": int((sizes > 1).sum())})
    return levels


def _edges(cells: int) -> list[Ints]:
    """The boundaries of the tree's nodes, level by level, until every node is a cell."""
    boundaries = [np.array([0, cells], dtype=np.int64)]
    while (np.diff(boundaries[-1]) > 1).any():
        edges = boundaries[-1]
        sizes = np.diff(edges)
        middles = (edges[:-1] + (sizes + 1) // 2)[sizes > 1]
        boundaries.append(np.sort(np.concatenate([edges, middles])))
    return boundaries


def _undone(coefficients: Floats) -> Floats:
    """The cells along the first axis, from its coefficients: each sum and difference gives two halves."""
    sums, used = coefficients[:1], 1
    tail = [1] * (coefficients.ndim - 1)
    for edges in _edges(len(coefficients))[:-1]:
        split = np.diff(edges) > 1
        gaps = np.zeros_like(sums)
        gaps[split] = coefficients[used : used + int(split.sum())]
        used += int(split.sum())
        halves = np.where(split, 2, 1)
        starts = np.cumsum(halves) - halves
        signs = np.ones(int(halves.sum()))
        signs[starts[split] + 1] = -1
        share = np.repeat(1 / halves, halves).reshape(-1, *tail)
        sums = (np.repeat(sums, halves, axis=0) + signs.reshape(-1, *tail) * np.repeat(gaps, halves, axis=0)) * share
    return np.asarray(sums)
