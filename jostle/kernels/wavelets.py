"""Haar wavelets of a cube: what Privelet measures, and the cells that its noisy coefficients give.

Xiao, Wang and Gehrke, *Differential privacy via wavelet transforms*, ICDE 2010. In sums rather than averages, each
node of a binary tree over an axis contributes the difference of its two halves, and the root its sum as well: as
many coefficients as cells, of which a row touches one a level. With the paper's weights every coefficient has noise
of one scale in these units. More axes take all products of their transforms. Halves differ by at most one cell, so
no axis needs padding. A ± within one answer needs `matrix` blocks, which are dense: they are cut into pieces whose
cost stays small, and beyond `MOST_CELLS` a binary hierarchy, twice the variance of the same differences, stands in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.kernels import hierarchy
from jostle.kernels.workloads import Floats, Ints

Strategy = list[dict[str, Any]]

PIECE = 64
"""Coefficients in one block; a block's matrix is (PIECE, 2·PIECE)."""

MOST_CELLS = 16384


def privelet_strategy(shape: int | tuple[int, ...]) -> Strategy:
    """The Haar coefficients of a cube, equally weighted so that the largest column has L1 norm 1."""
    axes = (shape,) if isinstance(shape, int) else tuple(shape)
    if int(np.prod(axes)) > MOST_CELLS:
        return hierarchy.tree_strategy(axes, 2, root=True)
    levels = [_levels(cells) for cells in axes]
    weight = 1 / float(np.prod([len(along) for along in levels]))
    found = []
    for choice in np.ndindex(*(len(along) for along in levels)):
        label, sign, count = _product(axes, [along[i] for along, i in zip(levels, choice, strict=True)])
        for start in range(0, count, PIECE):
            size = min(PIECE, count - start)
            inside = (label >= start) & (label < start + size)
            places = np.where(inside, 2 * (label - start) + (sign < 0), -1)
            matrix = np.kron(np.eye(size), [[1.0, -1.0]]) * weight
            found.append({"kind": "matrix", "labels": places, "matrix": matrix})
    return found


def wavelet_cells(shape: int | tuple[int, ...], answers: list[Floats]) -> Floats:
    """The cells, flat, that have the coefficients `answers`, measured by `privelet_strategy`; unbiased.

    As many coefficients as cells, so there is nothing to fit: the transform is undone along one axis after another.
    """
    axes = (shape,) if isinstance(shape, int) else tuple(shape)
    if int(np.prod(axes)) > MOST_CELLS:
        return hierarchy.tree_least_squares(hierarchy.tree_strategy(axes, 2, root=True), answers)
    counts = [[count for _, _, count in _levels(cells)] for cells in axes]
    cube = np.empty(axes)
    flat = np.concatenate(answers)
    taken = 0
    for choice in np.ndindex(*(len(along) for along in counts)):
        sides = [along[i] for along, i in zip(counts, choice, strict=True)]
        starts = [sum(along[:i]) for along, i in zip(counts, choice, strict=True)]
        size = int(np.prod(sides))
        at = tuple(slice(start, start + side) for start, side in zip(starts, sides, strict=True))
        cube[at] = flat[taken : taken + size].reshape(sides)
        taken += size
    cube *= float(np.prod([len(along) for along in counts]))
    for axis in range(len(axes)):
        cube = np.moveaxis(_undone(np.moveaxis(cube, axis, 0)), 0, axis)
    return np.ascontiguousarray(cube).ravel()


def _levels(cells: int) -> list[tuple[Ints, Ints, int]]:
    """For each level of an axis: a coefficient's number for every cell (−1 for none), its sign, and how many.

    The first is the axis' sum. A node of k cells has ⌈k/2⌉ of them in its first half.
    """
    place = np.arange(cells)
    found = [(np.zeros(cells, dtype=np.int64), np.ones(cells, dtype=np.int64), 1)]
    for edges in _edges(cells)[:-1]:
        sizes = np.diff(edges)
        node = np.searchsorted(edges, place, side="right") - 1
        number = np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1)
        first = place < (edges[:-1] + (sizes + 1) // 2)[node]
        found.append((number[node], np.where(first, 1, -1), int((sizes > 1).sum())))
    return found


def _edges(cells: int) -> list[Ints]:
    """The boundaries of the tree's nodes, level by level, until every node is a cell."""
    found = [np.array([0, cells], dtype=np.int64)]
    while (np.diff(found[-1]) > 1).any():
        edges = found[-1]
        sizes = np.diff(edges)
        middles = (edges[:-1] + (sizes + 1) // 2)[sizes > 1]
        found.append(np.sort(np.concatenate([edges, middles])))
    return found


def _product(shape: tuple[int, ...], along: list[tuple[Ints, Ints, int]]) -> tuple[Ints, Ints, int]:
    """The product of one level of every axis: numbers and signs of coefficients for flat cells, and how many."""
    label: Any = np.zeros((1,) * len(shape), dtype=np.int64)
    sign: Any = np.ones((1,) * len(shape), dtype=np.int64)
    missing: Any = np.zeros((1,) * len(shape), dtype=bool)
    total = 1
    for axis, (number, signs, count) in enumerate(along):
        side = [-1 if a == axis else 1 for a in range(len(shape))]
        label = label * count + number.reshape(side)
        sign = sign * signs.reshape(side)
        missing = missing | (number < 0).reshape(side)
        total *= count
    label = np.where(missing, -1, label)
    return np.broadcast_to(label, shape).ravel(), np.broadcast_to(sign, shape).ravel(), total


def _undone(coefficients: Floats) -> Floats:
    """The cells along the first axis, from its coefficients: each sum and difference gives two halves."""
    sums, taken = coefficients[:1], 1
    tail = [1] * (coefficients.ndim - 1)
    for edges in _edges(len(coefficients))[:-1]:
        split = np.diff(edges) > 1
        gaps = np.zeros_like(sums)
        gaps[split] = coefficients[taken : taken + int(split.sum())]
        taken += int(split.sum())
        halves = np.where(split, 2, 1)
        starts = np.cumsum(halves) - halves
        signs = np.ones(int(halves.sum()))
        signs[starts[split] + 1] = -1
        share = np.repeat(1 / halves, halves).reshape(-1, *tail)
        sums = (np.repeat(sums, halves, axis=0) + signs.reshape(-1, *tail) * np.repeat(gaps, halves, axis=0)) * share
    return np.asarray(sums)
