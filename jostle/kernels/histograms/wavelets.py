"""Haar wavelets of a cube: what Privelet measures, and the cells that its noisy coefficients give.

Xiao, Wang and Gehrke, *Differential privacy via wavelet transforms*, ICDE 2010. In sums rather than averages, each
node of a binary tree over an axis contributes the difference of its two halves, and the root its sum as well: as
many coefficients as cells, of which a row touches one a level. With the paper's weights every coefficient has noise
of one scale in these units. More axes take all products of their transforms. Halves differ by at most one cell, so
no axis needs padding. A block of the strategy is one level of every axis, kept as labels and signs along the axes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, axes_of
from jostle.kernels.noisy_array import common_noise, with_noise


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
    levels = [_wavelet_level(np.zeros(cells, dtype=np.int64), np.ones(cells, dtype=np.int8), 1)]
    for edges in _edges(cells)[:-1]:
        sizes = np.diff(edges)
        node = np.searchsorted(edges, place, side="right") - 1
        number = np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1)
        first = place < (edges[:-1] + (sizes + 1) // 2)[node]
        levels.append(_wavelet_level(number[node], np.where(first, 1, -1).astype(np.int8), int((sizes > 1).sum())))
    return levels


def _wavelet_level(labels: Ints, signs: object, size: int) -> dict[str, object]:
    return {"labels": labels, "signs": signs, "size": size}


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
