"""A decision tree that is not grown yet: what a program splits a level at a time, by noisy scores and sizes.

Its tests are public. The rows of its leaves are counted in `privacy`, all in one measurement; here leaves are split,
ended, and given their noisy counts, which makes the tree that predicts (`treemodel`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.kernels import KernelError, Model, members
from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.classifiers.codes import Value, value_tuple
from jostle.kernels.classifiers.treemodel import TreeNode, Trees, tree_leaf, tree_model, tree_node
from jostle.kernels.noisy_array import law_of
from jostle.privacy.rows.folds import PublicTree, one_leaf

MOST_NODES = 2**20
EXACT = 0.01
"""Noise below this deviation counts as none."""


@dataclass(frozen=True, eq=False, slots=True)
class GrowingTree(Model):
    """`tree` with the values of its columns, the `edges` of those that number bins (none: empty), and the noisy size of
    each node, NaN where none was measured.

    Its `level` tells a program of each leaf that may be split: the names of the `attributes` that no node on the way
    there asks, the number of their values, `branches`, and how many `cells` its own tests divide all rows into.
    """

    tree: PublicTree
    values: tuple[tuple[Value, ...], ...]
    edges: tuple[tuple[float, ...], ...]
    sizes: Floats
    cells: Floats

    jostle_kind = "a tree that grows"

    jostle_members = members("level leaves nodes")

    @property
    def level(self) -> list[dict[str, object]]:
        tree = self.tree
        names, branches = np.array([*tree.names, ""], dtype=object)[:-1], np.array(tree.branches, dtype=float)
        left, cells = tree.unasked, self.cells[tree.level].tolist()
        return [
            {"attributes": names[some].tolist(), "branches": branches[some].tolist(), "cells": n}
            for some, n in zip(left, cells, strict=True)
        ]

    @property
    def leaves(self) -> int:
        return len(self.tree.leaves)

    @property
    def nodes(self) -> int:
        return len(self.tree.asks)

    def as_json(self) -> dict[str, object]:
        return {"nodes": self.nodes, "leaves": self.leaves}

    def __str__(self) -> str:
        return f"a tree of {self.nodes} nodes, {self.leaves} of them leaves, that grows"


def tree_start(attributes: Any) -> GrowingTree:
    """One leaf, which may be split by any of the attributes, records {name, values, edges}."""
    pairs = [(str(a["name"]), value_tuple(a["values"])) for a in attributes]
    if len({name for name, _ in pairs}) != len(pairs):
        raise KernelError("attributes have names of their own")
    names, values = tuple(name for name, _ in pairs), tuple(some for _, some in pairs)
    edges = tuple(tuple(map(float, a.get("edges", ()))) for a in attributes)
    tree = replace(one_leaf(tuple(map(len, values))), names=names)
    return GrowingTree(tree, values, edges, np.full(1, np.nan), np.ones(1))


def tree_end(tree: GrowingTree, goes_on: object, sizes: object = None) -> GrowingTree:
    """Ends the leaves of the level that do not go on, a truth each; notes the noisy sizes of all of them."""
    flags = np.asarray(goes_on, dtype=bool).reshape(-1)
    if len(flags) != len(tree.tree.level):
        raise KernelError("a truth for each leaf of the level")
    noted = tree.sizes.copy()
    if sizes is not None:
        noted[tree.tree.level] = np.asarray(sizes, dtype=float)
    return replace(tree, tree=replace(tree.tree, level=tree.tree.level[flags]), sizes=noted)


def tree_split(tree: GrowingTree, chosen: object) -> GrowingTree:
    """Splits each leaf of the level by one of its `attributes`, told by its place; the children are the next level.

    The place after the last is of no split: that leaf ends.
    """
    places = np.asarray(chosen, dtype=float).reshape(-1)
    many = tree.tree.unasked.sum(axis=1)
    if len(places) != len(many) or np.any((places != places // 1) | (places < 0) | (places > many)):
        raise KernelError("a place among its attributes for each leaf of the level")
    tree, places = tree_end(tree, places < many), places[places < many]
    old, left = tree.tree, tree.tree.unasked
    attributes = np.argmax(np.cumsum(left, axis=1) > places[:, None], axis=1)
    wide = np.array([*old.branches, 0], dtype=np.int64)[attributes]
    ends = len(old.asks) + np.cumsum(wide)
    many = int(wide.sum())
    if len(old.asks) + many > MOST_NODES:
        raise KernelError(f"a tree has at most {MOST_NODES:,} nodes")
    none = np.full(many, -1, dtype=np.int64)
    asks, first = np.concatenate([old.asks, none]), np.concatenate([old.first, none])
    asks[old.level], first[old.level] = attributes, ends - wide
    cells = np.concatenate([tree.cells, np.repeat(tree.cells[old.level] * wide, wide)])
    level = np.arange(len(old.asks), len(old.asks) + many)
    grown = PublicTree(old.names, old.branches, asks, first, level)
    return replace(tree, tree=grown, sizes=np.concatenate([tree.sizes, np.full(many, np.nan)]), cells=cells)


def tree_split_by(tree: GrowingTree, name: str) -> GrowingTree:
    """Splits each leaf of the level on whose way this attribute is not asked by it."""
    column, left = tree.tree.names.index(name), tree.tree.unasked
    return tree_split(tree, np.where(left[:, column], left[:, :column].sum(axis=1), left.sum(axis=1)))


def tree_counted(tree: GrowingTree, counts: object) -> TreeNode:
    """The tree whose leaves have these noisy counts: of each leaf the classes, one after the other."""
    return _weighed(tree, counts, 1)


def _weighed(tree: GrowingTree, counts: object, measured: int) -> TreeNode:
    """The same, where each leaf has so many `measured` counts; with 0 its counts are weights, and no rows."""
    old, leaves = tree.tree, tree.tree.leaves
    table = np.asarray(counts, dtype=float).reshape(-1)
    if not len(table) or len(table) % len(leaves):
        raise KernelError("as many counts for each leaf as there are classes")
    of_leaf = iter(table.reshape(len(leaves), -1)[::-1])
    nodes: dict[int, TreeNode] = {}
    for i in reversed(range(len(old.asks))):  # children stand after their parents
        size = None if np.isnan(tree.sizes[i]) else float(tree.sizes[i])
        asks = int(old.asks[i])
        if asks < 0:
            nodes[i] = replace(tree_leaf(next(of_leaf), size), leaves=measured)
        else:
            below = [nodes.pop(child) for child in range(old.first[i], old.first[i] + old.branches[asks])]
            nodes[i] = tree_node(old.names[asks], tree.values[asks], below, size, tree.edges[asks])
    return nodes[0]


def tree_drawn(tree: GrowingTree, classes: Sequence[Value], drawn: Sequence[float], weight: float = 1) -> TreeNode:
    """The tree that `noisy_max` drew of `subtrees`; its leaves have a row of each class, and `weight` more of one."""
    many, values = len(value_tuple(classes)), [int(i) for i in drawn]
    root = values[0] if values else -1
    wide = tree.tree.branches[root] if 0 <= root < len(tree.tree.branches) else 0
    tree = tree_split(tree, values[:1])
    tree = tree_split(tree, values[1 : 1 + wide]) if wide else tree
    of_leaves = values[1 + wide :]
    if len(of_leaves) != len(tree.tree.leaves) or not all(0 <= c < many for c in of_leaves):
        raise KernelError("a tree as `noisy_max` drew it")
    return _weighed(tree, 1 + weight * np.eye(many)[of_leaves], 0)


PARENT_ROWS = 8.0
"""Rows with the shares of the node above that each node is given, since few rows err without noise too."""


def shrunk_tree_model(
    classes: Sequence[Value], tree: GrowingTree, counts: Sequence[float], class_counts: Sequence[float]
) -> Trees:
    """The model from `counts` of the leaves, of each its classes one after the other, and `class_counts` (C,).

    Both carry the law of their noise (none: exact), by which the counts of all rows are weighed. From the root down
    each node has some rows of the one above it. Drawing a split's table towards what its node's own shares would give
    lost a point and a half more: a split is there because it speaks (docs/experiments/classifiers.md).
    """
    noise, apart = law_of(counts), law_of(class_counts)
    public, leaves = tree.tree, tree.tree.leaves
    sums = np.zeros((len(public.asks), len(classes)))
    sums[leaves] = np.asarray(counts, dtype=float).reshape(len(leaves), -1)
    levels = list(_levels(tree))
    for node, children in (pair for level in levels[::-1] for pair in level):
        sums[node] = sums[children].sum(axis=0)
    shares = np.zeros_like(sums)
    variances = max(noise.deviation, EXACT) ** 2 * len(leaves), max(apart.deviation, EXACT) ** 2
    both = sums[0] / variances[0] + np.asarray(class_counts, dtype=float) / variances[1]
    shares[0] = np.maximum(both / (1 / variances[0] + 1 / variances[1]), 1.0)
    for node, children in (pair for level in levels for pair in level):
        shares[children] = np.maximum(sums[children], 0) + PARENT_ROWS * shares[node] / shares[node].sum()
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
