"""Grids and hierarchies: which rectangles of a cube to measure, and least squares that makes noisy levels consistent.

The quadtree with a geometric budget is Cormode, Procopiuc, Srivastava, Shen and Yu, *Differentially private spatial
decompositions*, ICDE 2012; the uniform and the adaptive grid are Qardaji, Yang and Li, *Differentially private grids
for geospatial data*, ICDE 2013. The papers say how many cells a grid of two dimensions should have in all; here the
number is shared among any axes by their lengths. Totals and counts are released numbers.

A hierarchy is a strategy of `groups` blocks, coarse to fine, each level's groups a union of the next level's; its last
level is the cells. `hb_strategy` is Qardaji, Yang and Li, *Understanding hierarchical methods for differentially
private histograms*, VLDB 2013; `tree_least_squares` is the two-pass consistency of Hay, Rastogi, Miklau and Suciu,
*Boosting the accuracy of differentially private histograms through consistency*, VLDB 2010, for any branching, with
levels of any variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, along, axes_of, groups, labels_of


def best_branching(n: int) -> int:
    """The b ≥ 2 that minimises (b − 1)h³ − 2(b + 1)h²/3 with h = ⌈log_b n⌉.

    Up to a constant, that is the mean variance of a range over n cells (the cited paper, section 4).
    """
    return min(_candidates(n), key=lambda b: _grid_cost((n,), b))


def height(n: int, b: int) -> int:
    """⌈log_b n⌉, at least 1, in exact integers."""
    h, reach = 1, b
    while reach < n:
        h, reach = h + 1, reach * b
    return h


def hb_strategy(shape: int | tuple[int, ...]) -> Strategy:
    """HB's levels: each column's L1 norm is 1, so every level is measured with an equal share of ε.

    In one dimension the root is measured too (h + 1 levels); in more, blocks are split b ways along every axis,
    with b² (b³, …) near the best branching for the number of cells, and the root is not.
    """
    axes = axes_of(shape)
    n = int(np.prod(axes))
    if len(axes) == 1:
        b = best_branching(n)
        return tree_strategy(axes, b, root=True)
    sides = range(2, max(2, *axes) + 1)
    b = min(sides, key=lambda side: _grid_cost(axes, side))
    return tree_strategy(axes, b, root=False)


def tree_strategy(shape: tuple[int, ...], b: int, root: bool) -> Strategy:
    """All levels of the tree that splits every axis b ways, equally weighted, coarse to fine."""
    h = max(height(cells, b) for cells in shape)
    levels = [_level(shape, b, h, level) for level in range(0 if root else 1, h + 1)]
    return [groups(labels, 1 / len(levels)) for labels in levels]


def bucket_tree(labels: Ints) -> Strategy:
    """`hb_strategy` over the buckets of `labels`, (n,), in their order: each bucket is a leaf."""
    b = int(labels.max()) + 1
    return [groups(block["labels"][labels], float(block["weight"])) for block in hb_strategy(b)]


def identity_strategy(shape: int | tuple[int, ...]) -> Strategy:
    """Each cell once."""
    return group_strategy(np.arange(int(np.prod(shape)), dtype=np.int64))


def group_strategy(labels: Ints) -> Strategy:
    """Each group of `labels`, 0 … c − 1, once."""
    return [groups(labels, 1.0)]


def tree_least_squares(blocks: Strategy, answers: list[Floats]) -> Floats:
    """The least-squares counts of the finest level's groups, shape (m,), from noisy answers to a hierarchy.

    `answers[i]` holds the noisy answers to `blocks[i]`, all under noise of one scale. Exact least squares in one
    pass up and one down, O(cells · levels).
    """
    measured = [np.asarray(a) / block["weight"] for block, a in zip(blocks, answers, strict=True)]
    weight = [np.broadcast_to(np.asarray(block["weight"], dtype=np.float64), (block["size"],)) for block in blocks]
    estimate, variance = [measured[-1]], [1 / weight[-1] ** 2]
    parents: list[Ints] = []
    for level in range(len(blocks) - 2, -1, -1):
        size = blocks[level]["size"]
        parent = parents_of(blocks[level], blocks[level + 1])
        below = np.bincount(parent, weights=estimate[0], minlength=size)
        below_variance = np.bincount(parent, weights=variance[0], minlength=size)
        own = weight[level] ** 2
        precision = own + 1 / below_variance
        estimate.insert(0, (own * measured[level] + below / below_variance) / precision)
        variance.insert(0, 1 / precision)
        parents.insert(0, parent)
    consistent = estimate[0]
    for level, parent in enumerate(parents):
        size = blocks[level]["size"]
        gap = consistent - np.bincount(parent, weights=estimate[level + 1], minlength=size)
        share = variance[level + 1] / np.bincount(parent, weights=variance[level + 1], minlength=size)[parent]
        consistent = estimate[level + 1] + share * gap[parent]
    return np.asarray(consistent)


def parents_of(upper: dict[str, Any], lower: dict[str, Any]) -> Ints:
    """For each group of a level, its group one level up."""
    parents = np.empty(lower["size"], dtype=np.int64)
    parents[np.asarray(lower["labels"])] = upper["labels"]
    return parents


def _level(shape: tuple[int, ...], b: int, h: int, level: int) -> Ints:
    """The groups of one level as labels 0 … m − 1 over flat cells; cell i of n stands at leaf ⌊i·b^h/n⌋ of its axis."""
    places = []
    for cells in shape:
        own = height(cells, b) if cells > 1 else 0
        depth = max(0, min(own, level - (h - own)))
        place = np.arange(cells, dtype=np.int64) * b**own // cells // b ** (own - depth)
        places.append(np.unique(place, return_inverse=True)[1].astype(np.int64))
    return labels_of(places)


def _candidates(n: int) -> list[int]:
    """For every height the smallest branching that reaches n: between two of them the cost only rises with b."""
    branchings = {2}
    for h in range(1, n.bit_length() + 1):
        b = max(2, round(n ** (1 / h)) - 1)
        while b**h < n:
            b += 1
        branchings.add(b)
    return sorted(branchings)


def _grid_cost(shape: tuple[int, ...], side: int) -> float:
    h = max(height(cells, side) for cells in shape)
    b = float(side ** len(shape))
    return (b - 1) * h**3 - 2 * (b + 1) * h**2 / 3


def halving_order(shape: tuple[int, ...], turn: int = 0) -> tuple[Ints, Ints]:
    """The flat cells of a cube in the order of a tree that halves the longest axis first, and their paths in it, a bit
    a halving; with a `turn` of 1 the tree begins a third of each axis later, and of equal axes the last comes first."""
    sides = [cells + turn * (cells // 3) for cells in shape]
    left = [(side - 1).bit_length() for side in sides]
    places = [
        np.arange(cells) + side - cells if turn else np.arange(cells) * (1 << k) // cells
        for cells, side, k in zip(shape, sides, left, strict=True)
    ]
    path = np.zeros(shape, dtype=np.int64)
    for _ in range(sum(left)):
        axis = max(range(len(shape)), key=lambda a: (left[a], a if turn else -a))
        left[axis] -= 1
        path = 2 * path + along(places[axis] >> left[axis] & 1, axis, len(shape))
    order = np.argsort(path.ravel(), kind="stable")
    return order, path.ravel()[order]


Box = tuple[slice, ...]
Cut = Callable[[Box], tuple[int, int]]
"""Maps a box to the axis of its cut and the number of places before it; 0 places: no cut."""


def leaves(shape: tuple[int, ...], cut: Cut) -> Ints:
    """A box, 0 … b − 1, for every cell (flat)."""
    labels = np.zeros(shape, dtype=np.int64)
    waiting, boxes = [tuple(slice(0, side) for side in shape)], 0
    while waiting:
        box = waiting.pop()
        axis, before = cut(box)
        if before == 0:
            labels[box] = boxes
            boxes += 1
            continue
        middle = box[axis].start + before
        for half in (slice(middle, box[axis].stop), slice(box[axis].start, middle)):
            waiting.append((*box[:axis], half, *box[axis + 1 :]))
    return labels.ravel()


def best_cut(
    sums: Sequence[Floats], noise: Callable[[int, Floats], Floats | float] = lambda axis, share: 0.0
) -> tuple[float, int, int]:
    """The cut that saves most of the squares about the mean of a box: what it saves, its axis, the places before it.

    `sums` are those of the box along each axis. A cut may have `noise`, of its axis and the share of cells before it:
    the squared gap must be more.
    """
    best, cells = (0.0, 0, 0), float(np.prod([len(line) for line in sums]))
    for axis, line in enumerate(sums):
        if len(line) < 2:
            continue
        before: Floats = np.asarray(np.arange(1, len(line)) * (cells / len(line)), dtype=np.float64)
        squares = np.square(np.cumsum(line)[:-1] - float(line.sum()) * before / cells)
        least = noise(axis, np.asarray(before / cells))
        gains = np.where(squares > least, squares * cells / (before * (cells - before)), 0.0)
        at = int(np.argmax(gains))
        best = max(best, (float(gains[at]), axis, at + 1))
    return best


def sums_along(cube: Floats) -> list[Floats]:
    """The sums of a cube along each axis."""
    return [cube.sum(axis=tuple(a for a in range(cube.ndim) if a != axis)) for axis in range(cube.ndim)]


FIRST = 0.5
"""The adaptive grid's share of ε for its first level (the paper's α)."""


ROWS = 2
"""ε₂ times the rows that a cell of the adaptive grid's second level should have. The paper has 5, for points in the
plane; counted sets are less even, and the projection takes away noise that a finer grid would suffer from."""


def quadtree_strategy(shape: int | tuple[int, ...]) -> Strategy:
    """All levels of the tree that halves every axis; each level gets 2^⅓ times as much of ε as the one above."""
    axes = axes_of(shape)
    blocks = tree_strategy(axes, 2, root=True)
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
    """The first and the last cell, (m, d) each, of every group 0 … m − 1 of `labels`, (n,): of boxes, their corners."""
    n = len(labels)
    first, last = np.full((2, int(labels.max()) + 1), -1, dtype=np.int64)
    last[labels] = np.arange(n)
    first[labels[::-1]] = np.arange(n)[::-1]
    lows, highs = (np.stack(np.unravel_index(at, shape), axis=1).astype(np.int64) for at in (first, last))
    return lows, highs


def _finite(value: float) -> float:
    """`value`, at most 10¹² and at least 0; on public data amounts are infinite."""
    return 1e12 if math.isinf(value) and value > 0 else min(max(0.0, float(value)), 1e12)
