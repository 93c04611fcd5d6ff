"""The partition walk of `least_cost` along one axis of a cube, and down any tree that is already public.

A tree of squares cuts a line along an axis into many pieces. So the walk can be taken on the sums over all other axes,
and what it finds there, being public by then, may make the tree for a walk over the cells.

A tree is given as an order of the cells and a level for every place between two of them: a block of depth d is a run of
cells with no level below d inside. Whatever numbers these are, that is a tree, and each part lies in its whole, which
is all that the proof in `docs/privacy/least_cost_partition.md` asks of it. Levels below 0 are split without looking. A
block without a place of its level stays as it is when it is split.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.privacy.mechanisms.least_cost import Draw, Ints, constants

MOST_LEVELS = 64


def along(counts: Ints, axis: int) -> Ints:
    """The sums of `counts` over all axes but one: one row moves one of them, by 1."""
    others = tuple(a for a in range(counts.ndim) if a != axis)
    return np.asarray(np.clip(counts, 0, 2**40).sum(axis=others, dtype=np.int64))


def public_tree(order: Any, levels: Any, cells: int) -> tuple[Ints, Ints]:
    """A tree over `cells` cells, its levels renumbered 0, 1, 2, … (−1 for all below 0); refused where it is none."""
    for numbers in (order, levels):
        if not (isinstance(numbers, np.ndarray) or all(isinstance(number, (int, float)) for number in numbers)):
            raise refuse("TypeError", "a tree is two lists of numbers")
    places, heights = np.asarray(order), np.asarray(levels)
    for numbers in (places, heights):
        if numbers.shape != (cells,) or numbers.dtype.kind not in "iuf" or (numbers != np.rint(numbers)).any():
            raise refuse("ValueError", f"a tree is an order of the {cells} cells and as many levels, in whole numbers")
    if not np.array_equal(np.sort(places), np.arange(cells)):
        raise refuse("ValueError", f"the order of a tree names every cell from 0 to {cells - 1} once")
    used, rank = np.unique(np.maximum(heights, -1), return_inverse=True)
    if len(used) > MOST_LEVELS:
        raise refuse("ValueError", f"a tree has at most {MOST_LEVELS} levels")
    return fixed_width(places), fixed_width(rank - int(used[0] < 0))


def walk_tree(counts: Ints, epsilon: float, draw: Draw, order: Ints, levels: Ints) -> Ints:
    """A partition of the cells into blocks of a `public_tree`: labels from 0, flat.

    As `least_cost.walk`, by the deviation from the median. `draw` is called at most once a level.

    Privacy: `epsilon`-differentially private for one row more or less; the tree must be public.
    """
    tuned = constants(epsilon)
    values = np.clip(fixed_width(counts).ravel(), 0, 2**40)[order]
    starts = levels < 0
    starts[0] = True
    live = np.ones(len(values), dtype=bool)
    for depth in range(int(levels.max()) + 1):
        blocks = np.cumsum(starts) - 1
        firsts = np.flatnonzero(starts)
        sizes = np.diff(np.append(firsts, len(values)))
        candidates = np.flatnonzero(live[firsts] & (sizes > 1))
        if not len(candidates):
            break
        scores = np.minimum(_deviations(values, blocks, firsts, sizes)[candidates], 2**42) << 20
        scores = np.maximum(-tuned.decay, scores - depth * tuned.decay)
        split = np.zeros(len(firsts), dtype=bool)
        split[candidates] = scores + draw(tuned.scale, len(candidates)) > 0
        live &= split[blocks]
        starts |= live & (levels == depth)
    labels = np.empty(len(values), dtype=np.int64)
    labels[order] = np.cumsum(starts) - 1
    return labels


def _deviations(values: Ints, blocks: Ints, firsts: Ints, sizes: Ints) -> Ints:
    """min_c Σ|x − c| over each block."""
    ordered = values[np.lexsort((values, blocks))]
    sums = np.concatenate([[0], np.cumsum(ordered)])
    above = sums[firsts + sizes] - sums[firsts + (sizes + 1) // 2]
    return np.asarray(above - sums[firsts + sizes // 2] + sums[firsts])
