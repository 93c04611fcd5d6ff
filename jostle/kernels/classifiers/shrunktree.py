"""A tree whose leaves have some rows of the nodes above them, since few rows err.

Leaves have noisy counts of the classes, and there is a measurement of all rows' classes beside them. From the root
down each node is given `ABOVE` rows with the shares of the node above it. Drawing a split's table towards what its
node's own shares would give, as far as noise explains the rest, lost a point and a half more: a split is there because
it speaks (docs/experiments/classifiers.md).

All of it is post-processing of released counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jostle.kernels.arrays import Ints
from jostle.kernels.classifiers.codes import Value
from jostle.kernels.classifiers.growing import GrowingTree, tree_counted
from jostle.kernels.classifiers.shrink import NONE
from jostle.kernels.classifiers.treemodel import Trees, tree_model
from jostle.kernels.noisy_array import law_of

ABOVE = 8.0
"""Rows with the shares of the node above that each node is given, since few rows err without noise too."""


def shrunk_tree_model(
    classes: Sequence[Value], tree: GrowingTree, counts: Sequence[float], class_counts: Sequence[float]
) -> Trees:
    """The model from `counts` of the leaves, of each its classes one after the other, and `class_counts` (C,).

    Both carry the law of their noise (none: exact), by which the counts of all rows are weighed.
    """
    noise, apart = law_of(counts), law_of(class_counts)
    public, leaves = tree.tree, tree.tree.leaves
    found = np.zeros((len(public.asks), len(classes)))
    found[leaves] = np.asarray(counts, dtype=float).reshape(len(leaves), -1)
    levels = list(_levels(tree))
    for node, children in (pair for level in levels[::-1] for pair in level):
        found[node] = found[children].sum(axis=0)
    shares = np.zeros_like(found)
    variances = max(noise.deviation, NONE) ** 2 * len(leaves), max(apart.deviation, NONE) ** 2
    both = found[0] / variances[0] + np.asarray(class_counts, dtype=float) / variances[1]
    shares[0] = np.maximum(both / (1 / variances[0] + 1 / variances[1]), 1.0)
    for node, children in (pair for level in levels for pair in level):
        shares[children] = np.maximum(found[children], 0) + ABOVE * shares[node] / shares[node].sum()
    return tree_model(classes, tree_counted(tree, shares[leaves]))


def _levels(tree: GrowingTree) -> Iterator[list[tuple[int, Ints]]]:
    """The inner nodes of each level from the root down, with the places of their children."""
    public, nodes = tree.tree, [0]
    while inner := [i for i in nodes if public.asks[i] >= 0]:
        level = [
            (i, np.arange(public.first[i], public.first[i] + public.branches[public.asks[i]], dtype=np.int64))
            for i in inner
        ]
        yield level
        nodes = [int(child) for _, children in level for child in children]
