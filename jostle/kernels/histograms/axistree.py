"""A tree over the cells of a cube that halves the buckets along its axes before it halves cells.

Where rows lie on a line along an axis, a bucket of that axis holds the line, and some halvings of the list of buckets
single it out whole, while halvings of the axis' length would cut it across as often.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.kernels.arrays import Ints, along

Halving = tuple[int, Ints, int]
"""A halving of an axis: the axis, for each of its places 0 or 1 (the half), and the level."""


def axis_tree(labels: Sequence[Ints], public_splits: int = 2) -> tuple[Ints, Ints]:
    """A tree from the buckets along every axis: the cells in order, and the level of the place before each.

    `labels` has, for every axis, a bucket 0 … b − 1 for each place, which rise along it. A level takes as many halvings
    as there are axes, in turn: first of buckets, until they are single, then of the places within. Levels below 0, of
    which there are `public_splits`, are to be split whatever the data are.
    """
    axes = [np.asarray(one, dtype=np.int64) for one in labels]
    upper = [_halvings(one, int(one.max()) + 1) for one in axes]
    lower = [_halvings(*_within(one)) for one in axes]
    halvings: list[Halving] = []
    for half in (upper, lower):
        base = halvings[-1][2] + 1 if halvings else 0
        for turn, (axis, place) in enumerate(_in_turn([bits for bits, _ in half])):
            halvings.append((axis, half[axis][1] >> place & 1, base + turn // len(axes)))
    order, levels = halving_order(tuple(len(one) for one in axes), halvings)
    levels[1:] -= public_splits
    return order, levels


def halving_order(shape: tuple[int, ...], halvings: Sequence[Halving]) -> tuple[Ints, Ints]:
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


def _within(labels: Ints) -> tuple[Ints, Ints]:
    """The place of each within its bucket, and the bucket's length."""
    sizes = np.bincount(labels)
    firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.arange(len(labels)) - firsts[labels], sizes[labels]


def _halvings(places: Ints, many: int | Ints) -> tuple[int, Ints]:
    """The number of halvings that single out one of `many`, and the path to each place, a bit a halving."""
    bits = int(np.max(many) - 1).bit_length()
    return bits, np.asarray(places * (1 << bits) // many, dtype=np.int64)


def _in_turn(bits: list[int]) -> list[tuple[int, int]]:
    """Axes and bits in the order of halving: each axis in turn while it has bits, from the one with the most."""
    left, halvings = list(bits), []
    axis = left.index(max(left))
    while any(left):
        if left[axis]:
            left[axis] -= 1
            halvings.append((axis, left[axis]))
        axis = (axis + 1) % len(left)
    return halvings
