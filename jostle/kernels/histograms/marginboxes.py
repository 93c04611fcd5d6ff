"""Boxes from the noisy sums along the axes of a cube, and a tree over its cells that begins with them.

The noisy sums along each axis are made piecewise even, and their product is what the cube would be if its axes were
independent. A kd-tree over that product, which is never made, gives few boxes where rows lie on lines or in one place,
and one box where the sums show nothing. Within each box the tree goes on by halves. Everything here sees released
numbers only.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, along, axes_of, groups
from jostle.kernels.histograms.clusters import kd_labels

Box = tuple[tuple[int, int], ...]
"""The first place along every axis, and the one after the last."""

Halving = tuple[int, Ints, int]
"""A halving of an axis: the axis, for each of its places 0 or 1 (the half), and the level."""

BOLD = 0.3
"""A cut of an axis must save this share of the squares that chance alone could save; a wrong cut costs little."""

WORTH = 5.0
"""The squares that a cut of the product saves, in units of 1/ε², must be more than a count costs to measure."""

MOST_BOXES = 128

FULL = 20.0
"""Boxes of more than this many rows, times ε, are always halved once."""


def axis_sums(shape: int | tuple[int, ...]) -> Strategy:
    """The sums along every axis, each with an equal share: every column has L1 norm 1."""
    axes = axes_of(shape)
    return [groups(place, 1 / len(axes)) for place in np.indices(axes)]


def box_tree(
    shape: int | tuple[int, ...], answers: Sequence[Floats], scale: float, epsilon: float
) -> tuple[Ints, Ints]:
    """A tree for `least_cost_partition` from the answers to `axis_sums`, whose noise has `scale`.

    The cells in order, and the level of the place before each: −1 between boxes, and within a box the halvings of its
    longest axes from 0 (from −1 where the sums say that it holds many rows). `epsilon`: of the whole answer.
    """
    axes = axes_of(shape)
    many = len(axes)
    even = [_evened(np.asarray(a, dtype=np.float64) * many, scale * many) for a in answers]
    total = max(1.0, float(np.mean([line.sum() for line in even])))
    boxes = _boxes([line / max(float(line.sum()), 1e-9) for line in even], total, WORTH / epsilon**2)
    orders, levels = zip(*(_halved(axes, box, rows * epsilon > FULL) for box, rows in boxes), strict=True)
    return np.concatenate(orders), np.concatenate(levels)


def _halving_order(shape: tuple[int, ...], halvings: Sequence[Halving]) -> tuple[Ints, Ints]:
    """The flat cells of a cube in the order of its halvings, and the level of the place before each, −1 for the first.

    The level before a cell is that of the first halving that separates it from the cell before it.
    """
    key = np.zeros(shape, dtype=np.int64)
    for axis, bit, _ in halvings:
        key = 2 * key + along(bit, axis, len(shape))
    order = np.argsort(key.ravel(), kind="stable")
    path = key.ravel()[order]
    differing = path[1:] ^ path[:-1]
    high = differing >> 31
    highest = np.where(high > 0, np.frexp(high)[1] + 31, np.frexp(differing & (2**31 - 1))[1]) - 1
    depths = np.array([depth for _, _, depth in halvings], dtype=np.int64)
    levels = np.full(key.size, -1, dtype=np.int64)
    levels[1:] = depths[len(depths) - 1 - highest]
    return order, levels


def _evened(sums: Floats, scale: float) -> Floats:
    """The sums with the mean of its segment, at least 0, in place of each."""
    labels = kd_labels(len(sums), sums, scale * BOLD**0.5)
    means = np.bincount(labels, weights=sums) / np.bincount(labels)
    return np.asarray(np.maximum(means, 0.0)[labels])


def _boxes(shares: list[Floats], total: float, worth: float) -> list[tuple[Box, float]]:
    """The leaves of a kd-tree over the product of `shares` times `total`, and the rows in each; the best cuts first."""
    whole: Box = tuple((0, len(share)) for share in shares)
    waiting = [(*_cut(shares, whole), 0, whole)]
    done: list[Box] = []
    while waiting:
        gain, axis, at, number, box = heapq.heappop(waiting)
        if -gain * total**2 <= worth or len(waiting) + len(done) + 1 >= MOST_BOXES:
            done.append(box)
            continue
        for turn, half in enumerate(((box[axis][0], at), (at, box[axis][1])), start=1):
            part = (*box[:axis], half, *box[axis + 1 :])
            heapq.heappush(waiting, (*_cut(shares, part), 2 * number + turn, part))
    masses = [float(np.prod([share[low:high].sum() for share, (low, high) in zip(shares, box, strict=True)]))
            for box in done]  # fmt: skip
    return [(box, total * rows) for box, rows in zip(done, masses, strict=True)]


def _cut(shares: list[Floats], box: Box) -> tuple[float, int, int]:
    """Minus what the best cut of a box saves of the squares about the mean, its axis, and the place after it."""
    best = (0.0, 0, 0)
    inside = [share[low:high] for share, (low, high) in zip(shares, box, strict=True)]
    masses = [float(part.sum()) for part in inside]
    cells = float(np.prod([len(part) for part in inside]))
    for axis, part in enumerate(inside):
        if len(part) < 2:
            continue
        others = float(np.prod([mass for a, mass in enumerate(masses) if a != axis]))
        first = np.cumsum(part)[:-1] * others
        before = np.arange(1, len(part)) * (cells / len(part))
        gap = first - masses[axis] * others * before / cells
        gains = gap**2 * cells / (before * (cells - before))
        at = int(np.argmax(gains))
        best = min(best, (-float(gains[at]), axis, box[axis][0] + at + 1))
    return best


def _halved(shape: tuple[int, ...], box: Box, at_once: bool) -> tuple[Ints, Ints]:
    """The cells of a box in the order of its halvings, and the level of the place before each."""
    sides = [high - low for low, high in box]
    bits = [(side - 1).bit_length() for side in sides]
    order, levels = _halving_order(tuple(sides), [
        (axis, np.arange(sides[axis]) * (1 << bits[axis]) // sides[axis] >> (left - 1) & 1, depth)
        for depth, left in enumerate(range(max(bits), 0, -1))
        for axis in (a for a, most in enumerate(bits) if most >= left)
    ])  # fmt: skip
    levels[1:] -= at_once
    places = np.ix_(*(np.arange(low, high) for low, high in box))
    cells = np.broadcast_arrays(*places) if len(places) > 1 else places
    return np.ravel_multi_index(tuple(c.ravel()[order] for c in cells), shape).astype(np.int64), levels
