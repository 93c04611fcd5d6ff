"""Grids: which rectangles of a cube to measure, from the number of rows and from noisy counts of larger ones.

The quadtree with a geometric budget is Cormode, Procopiuc, Srivastava, Shen and Yu, *Differentially private spatial
decompositions*, ICDE 2012; the uniform and the adaptive grid are Qardaji, Yang and Li, *Differentially private grids
for geospatial data*, ICDE 2013. The papers say how many cells a grid of two dimensions should have in all; here the
number is shared among any axes by their lengths. Totals and counts are released numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jostle.kernels.histograms import hierarchy
from jostle.kernels.workloads.boxes import Floats, Ints

Strategy = list[dict[str, Any]]

FIRST = 0.5
"""The adaptive grid's share of ε for its first level (the paper's α)."""


ROWS = 2
"""ε₂ times the rows that a cell of the adaptive grid's second level should have. The paper has 5, for points in the
plane; counted sets are less even, and the projection takes away noise that a finer grid would suffer from."""


def quadtree_strategy(shape: int | tuple[int, ...]) -> Strategy:
    """All levels of the tree that halves every axis; each level gets 2^⅓ times as much of ε as the one above."""
    axes = (shape,) if isinstance(shape, int) else tuple(shape)
    blocks = hierarchy.tree_strategy(axes, 2, root=True)
    shares = 2.0 ** (np.arange(len(blocks)) / 3)
    for block, share in zip(blocks, shares / shares.sum(), strict=True):
        block["weight"] = float(share)
    return blocks


def grid_strategy(shape: int | tuple[int, ...], wanted: float) -> Strategy:
    """One grid of about `wanted` cells, each of equal share of the axes; every cell measured once."""
    return [_block(uniform_grid(shape, wanted), 1.0)]


def agrid_first(shape: int | tuple[int, ...], strength: float) -> Strategy:
    """The adaptive grid's first level, from `strength`, ε times the number of rows; measured by half of ε.

    m₁ = max(10, ¼√(strength/10)) a side in two dimensions. The weight is its share of ε.
    """
    wanted = max(100.0, _finite(strength) / 160)
    return [_block(uniform_grid(shape, wanted), FIRST)]


def agrid_second(shape: int | tuple[int, ...], first: Strategy, answers: list[Floats], epsilon: float) -> Strategy:
    """The second level: in each cell of the first a grid of count·ε₂/ROWS cells; `epsilon` is ε₂, what is left for it.

    `answers` are those to `first`, weighted as they were measured. To be measured by half of ε too, after which
    `estimate` takes both levels as one strategy.
    """
    axes = (shape,) if isinstance(shape, int) else tuple(shape)
    labels = np.asarray(first[0]["labels"])
    lows, highs = extents(axes, labels)
    found = np.zeros(axes, dtype=np.int64)
    used = 0
    for low, high, answer in zip(lows, highs, answers[0], strict=True):
        part = tuple(int(side) for side in high - low + 1)
        wanted = max(0.0, float(answer) / FIRST) * epsilon / ROWS
        inner = uniform_grid(part, wanted).reshape(part)
        found[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] = used + inner
        used += int(inner[(-1,) * len(part)]) + 1
    return [_block(found.ravel(), 1 - FIRST)]


def uniform_grid(shape: int | tuple[int, ...], wanted: float) -> Ints:
    """Labels, flat, of a grid of about `wanted` cells: axes are cut in proportion to their lengths, at most to cells.

    What an axis that is shorter than its part of the cuts cannot take goes to the others.
    """
    axes = (shape,) if isinstance(shape, int) else tuple(shape)
    pieces = [1] * len(axes)
    left, remaining = max(1.0, _finite(wanted)), list(np.argsort(axes))
    while remaining:
        axis = int(remaining.pop(0))  # the shortest first
        others = float(np.prod([axes[i] / axes[axis] for i in remaining]))
        fair = (left / others) ** (1 / (len(remaining) + 1))
        pieces[axis] = int(np.clip(round(fair), 1, axes[axis]))
        left = max(1.0, left / pieces[axis])
    found: Any = np.zeros((1,) * len(axes), dtype=np.int64)
    for axis, (cells, cuts) in enumerate(zip(axes, pieces, strict=True)):
        place = np.arange(cells, dtype=np.int64) * cuts // cells
        found = found * cuts + place.reshape([-1 if a == axis else 1 for a in range(len(axes))])
    return np.ascontiguousarray(np.broadcast_to(found, axes)).ravel()


def extents(shape: tuple[int, ...], labels: Ints) -> tuple[Ints, Ints]:
    """The lowest and the highest cell, (m, d) each, of every group of `labels`, (n,); groups are boxes."""
    size = len(labels)
    _, first = np.unique(labels, return_index=True)
    _, last = np.unique(labels[::-1], return_index=True)
    lows, highs = (np.stack(np.unravel_index(at, shape), axis=1) for at in (first, size - 1 - last))
    return lows.astype(np.int64), highs.astype(np.int64)


def _block(labels: Ints, weight: float) -> dict[str, Any]:
    return {"kind": "groups", "labels": labels, "size": int(labels.max()) + 1, "weight": weight}


def _finite(value: float) -> float:
    """`value`, at most 10¹² and at least 0; on public data amounts are infinite."""
    return 1e12 if math.isinf(value) and value > 0 else min(max(0.0, float(value)), 1e12)
