"""A tree whose leaves are drawn towards the nodes above them, as far as noise explains what sets them apart.

Leaves have noisy counts of the classes, and there is a measurement of all rows' classes beside them. From the root
down, the table class by child of a node is drawn towards what the node's own shares of the classes would give, by
empirical Bayes as in `shrink`: how strongly a split speaks is found from all splits of its level together. A child
that shows no more than noise has the shares of its node; where nothing is louder, the most frequent class answers.

All of it is post-processing of released counts. Shapes: C classes, V children of a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from jostle.kernels.arrays import Ints
from jostle.kernels.classifiers.codes import Value
from jostle.kernels.classifiers.growing import GrowingTree, tree_counted
from jostle.kernels.classifiers.shrink import NONE, differences, has_order, value_shares
from jostle.kernels.classifiers.treemodel import Trees, tree_model
from jostle.kernels.noisy_array import law_of

ABOVE = 8.0
"""Rows with the shares of the node above that each node is given, since few rows err without noise too."""


def shrunk_tree_model(
    classes: Sequence[Value], tree: GrowingTree, counts: Sequence[float], class_counts: Sequence[float]
) -> Trees:
    """The model from `counts` of the leaves, of each its classes one after the other, and `class_counts` (C,).

    Both carry the law of their noise (none: exact).
    """
    noise, apart = law_of(counts), law_of(class_counts)
    public, leaves = tree.tree, tree.tree.leaves
    found = np.zeros((len(public.asks), len(classes)))
    found[leaves] = np.asarray(counts, dtype=float).reshape(len(leaves), -1)
    below = np.zeros(len(public.asks))
    below[leaves] = 1
    levels = list(_levels(tree))
    for node, children in (pair for level in levels[::-1] for pair in level):
        found[node], below[node] = found[children].sum(axis=0), below[children].sum()
    shares = np.zeros_like(found)
    variances = max(noise.deviation, NONE) ** 2 * below[0], max(apart.deviation, NONE) ** 2
    both = found[0] / variances[0] + np.asarray(class_counts, dtype=float) / variances[1]
    shares[0] = np.maximum(both / (1 / variances[0] + 1 / variances[1]), 1.0)
    for level in levels:
        tables = [found[children].T for _, children in level]
        many = float(np.mean(np.concatenate([below[children] for _, children in level])))
        law = replace(noise, scale=noise.scale * np.sqrt(many))
        expected = [
            shares[node][:, None] * value_shares(table, float(shares[node].sum()), law.deviation)
            for (node, _), table in zip(level, tables, strict=True)
        ]
        ordered = [has_order(tree.values[public.asks[node]]) for node, _ in level]
        gaps = differences([t - e for t, e in zip(tables, expected, strict=True)], expected, law, ordered)
        for (node, children), e, gap in zip(level, expected, gaps, strict=True):
            shares[children] = np.maximum(e + gap, 0).T + ABOVE * shares[node] / shares[node].sum()
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
