"""Hierarchies of counts: strategies to measure, and least squares that makes noisy levels consistent.

A hierarchy is a strategy of `groups` blocks, coarse to fine, each level's groups a union of the next level's; its
last level is the cells. `hb_strategy` is Qardaji, Yang and Li, *Understanding hierarchical methods for
differentially private histograms*, VLDB 2013; `tree_least_squares` is the two-pass consistency of Hay, Rastogi,
Miklau and Suciu, *Boosting the accuracy of differentially private histograms through consistency*, VLDB 2010, for
any branching, with levels of any variance. Everything is by level over arrays, so that a million cells are no burden.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, axes_of, groups, labels_of


def best_branching(n: int) -> int:
    """The b ≥ 2 that minimises (b − 1)h³ − 2(b + 1)h²/3 with h = ⌈log_b n⌉.

    Up to a constant, that is the mean variance of a range over n cells (the cited paper, section 4).
    """

    def cost(b: int) -> float:
        h = height(n, b)
        return (b - 1) * h**3 - 2 * (b + 1) * h**2 / 3

    return min(_candidates(n), key=cost)


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
    return identity_buckets(np.arange(int(np.prod(shape)), dtype=np.int64))


def identity_buckets(labels: Ints) -> Strategy:
    """Each bucket of `labels` once."""
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
