"""Grids: which rectangles of a cube to measure, from the number of rows and from noisy counts of larger ones.

The quadtree with a geometric budget is Cormode, Procopiuc, Srivastava, Shen and Yu, *Differentially private spatial
decompositions*, ICDE 2012; the uniform and the adaptive grid are Qardaji, Yang and Li, *Differentially private grids
for geospatial data*, ICDE 2013. The papers say how many cells a grid of two dimensions should have in all; here the
number is shared among any axes by their lengths. Totals and counts are released numbers.
"""

from __future__ import annotations

import math

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, axes_of, groups, labels_of
from jostle.kernels.histograms import hierarchy

FIRST = 0.5
"""The adaptive grid's share of ε for its first level (the paper's α)."""


ROWS = 2
"""ε₂ times the rows that a cell of the adaptive grid's second level should have. The paper has 5, for points in the
plane; counted sets are less even, and the projection takes away noise that a finer grid would suffer from."""


def quadtree_strategy(shape: int | tuple[int, ...]) -> Strategy:
    """All levels of the tree that halves every axis; each level gets 2^⅓ times as much of ε as the one above."""
    axes = axes_of(shape)
    blocks = hierarchy.tree_strategy(axes, 2, root=True)
    shares = 2.0 ** (np.arange(len(blocks)) / 3)
    for block, share in zip(blocks, shares / shares.sum(), strict=True):
        block["weight"] = float(share)
    return blocks


def grid_strategy(shape: int | tuple[int, ...], cells: float) -> Strategy:
    """One grid of about `wanted` cells, each of equal share of the axes; every cell measured once."""
    return [groups(uniform_grid(shape, cells), 1.0)]


def agrid_first(shape: int | tuple[int, ...], strength: float) -> Strategy:
    """The adaptive grid's first level, from `strength`, ε times the number of rows; measured by half of ε.

    m₁ = max(10, ¼√(strength/10)) a side in two dimensions. The weight is its share of ε.
    """
    cells = max(100.0, _finite(strength) / 160)
    return [groups(uniform_grid(shape, cells), FIRST)]


def agrid_second(shape: int | tuple[int, ...], first: Strategy, answers: list[Floats], epsilon: float) -> Strategy:
    """The second level: in each cell of the first a grid of count·ε₂/ROWS cells; `epsilon` is ε₂, what is left for it.

    `answers` are those to `first`, weighted as they were measured. To be measured by half of ε too, after which
    `estimate` takes both levels as one strategy.
    """
    axes = axes_of(shape)
    labels = np.asarray(first[0]["labels"])
    lows, highs = extents(axes, labels)
    labels_within = np.zeros(axes, dtype=np.int64)
    used = 0
    for low, high, answer in zip(lows, highs, answers[0], strict=True):
        part = tuple(int(side) for side in high - low + 1)
        cells = max(0.0, float(answer) / FIRST) * epsilon / ROWS
        inner = uniform_grid(part, cells).reshape(part)
        labels_within[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] = used + inner
        used += int(inner[(-1,) * len(part)]) + 1
    return [groups(labels_within.ravel(), 1 - FIRST)]


def uniform_grid(shape: int | tuple[int, ...], target: float) -> Ints:
    """Labels, flat, of a grid of about `wanted` cells: axes are cut in proportion to their lengths, at most to cells.

    What an axis that is shorter than its part of the cuts cannot take goes to the others.
    """
    axes = axes_of(shape)
    pieces = [1] * len(axes)
    left, remaining = max(1.0, _finite(target)), list(np.argsort(axes))
    while remaining:
        axis = int(remaining.pop(0))  # the shortest first
        others = float(np.prod([axes[i] / axes[axis] for i in remaining]))
        fair = (left / others) ** (1 / (len(remaining) + 1))
        pieces[axis] = int(np.clip(round(fair), 1, axes[axis]))
        left = max(1.0, left / pieces[axis])
    places = [np.arange(cells, dtype=np.int64) * cuts // cells for cells, cuts in zip(axes, pieces, strict=True)]
    return labels_of(places)


def extents(shape: tuple[int, ...], labels: Ints) -> tuple[Ints, Ints]:
    """The lowest and the highest cell, (m, d) each, of every group of `labels`, (n,); groups are boxes."""
    size = len(labels)
    _, first = np.unique(labels, return_index=True)
    _, last = np.unique(labels[::-1], return_index=True)
    lows, highs = (np.stack(np.unravel_index(at, shape), axis=1) for at in (first, size - 1 - last))
    return lows.astype(np.int64), highs.astype(np.int64)


def _finite(value: float) -> float:
    """`value`, at most 10¹² and at least 0; on public data amounts are infinite."""
    return 1e12 if math.isinf(value) and value > 0 else min(max(0.0, float(value)), 1e12)
