"""Where rows end in a public tree, and how many of each class end at each of its leaves: all leaves in one pass.

A tree is public, and where a row ends is a function of that row alone, so that a row is at one leaf or at none. A fold
counts rows of codes (`engine.base.Work`): what it gives of rows in two parts adds up to what it gives of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jostle.integers import fixed_width
from jostle.lazy import Array, Bools, Ints, np

LEAF_BLOCK = 2**16
"""Rows that are counted at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class PublicTree:
    """Tests of columns. Node i asks column `asks[i]`, −1 where it is a leaf, and has a child for each of the column's
    `branches`, the nodes from `first[i]` on; nodes stand after the one they are below. `level` are the leaves, rising,
    that may be split next. Raises `ValueError` where these are no such tree.
    """

    names: tuple[str, ...]
    branches: tuple[int, ...]
    asks: Ints
    first: Ints
    level: Ints

    def __post_init__(self) -> None:
        inner, nodes = np.flatnonzero(self.asks >= 0), np.arange(len(self.asks))
        wide = np.array([*self.branches, 0])[self.asks]
        begin, end = self.first[inner], (self.first + wide)[inner]
        right = len(self.names) == len(self.branches) and self.asks.shape == self.first.shape == (len(nodes),)
        right = right and bool(np.all(self.asks < len(self.names)) and np.all(wide[inner] > 0))
        right = right and bool(np.all(begin > inner) and np.all(begin[1:] >= end[:-1]) and np.all(end <= len(nodes)))
        if not right or not np.isin(self.level, self.leaves).all() or np.any(self.level[1:] <= self.level[:-1]):
            raise ValueError("this is no tree of tests")

    @property
    def leaves(self) -> Ints:
        """The numbers of all leaves, rising."""
        return np.flatnonzero(self.asks < 0)

    @property
    def unasked(self) -> Bools:
        """For each leaf of the level and each column whether no node on the way there asks it."""
        left = np.ones((len(self.asks), len(self.names)), dtype=bool)
        for node in np.flatnonzero(self.asks >= 0):
            asks, below = self.asks[node], self.first[node]
            left[below : below + self.branches[asks]] = left[node]
            left[below : below + self.branches[asks], asks] = False
        return left[self.level]


def walked(asks: Ints, first: Ints, at: Array) -> Ints:
    """The node of a tree where each row ends; `at` (columns, rows) are codes of its values, −1 for none, of which a row
    stays at the node that asks for it."""
    many, codes = at.shape[1], at.reshape(-1)
    here = np.zeros(many, dtype=np.int64)
    rows = np.arange(many if asks[0] >= 0 else 0)
    node = here[rows]
    while len(rows):
        value = codes.take(asks.take(node) * many + rows)
        if value.min() < 0:
            rows, node, value = (array[value >= 0] for array in (rows, node, value))
        node = first.take(node) + value
        here[rows] = node
        going = asks.take(node) >= 0
        rows, node = (rows, node) if going.all() else (rows[going], node[going])
    return here


@lru_cache(maxsize=2**8)
def one_leaf(branches: tuple[int, ...]) -> PublicTree:
    """A tree of columns with so many values that asks none of them."""
    none, root = np.full(1, -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return PublicTree(tuple(map(str, range(len(branches)))), branches, none, none, root)


@dataclass(frozen=True, slots=True, eq=False)
class LeafFold:
    """Counts of rows (n, columns of the tree and one of classes) of codes: (nodes counted, classes), or, where columns
    are to be `crossed`, for each (nodes counted, its branches, classes); if `whole`, the former after these.

    `nodes` are leaves. Without `classes` there is no column of them, and all rows are of one. A row without a class, or
    without a value of a column that it is asked, is in no count; one without a value of a crossed column is in none of
    that column's.
    """

    tree: PublicTree
    nodes: Ints
    classes: int
    crossed: tuple[int, ...] = ()
    whole: bool = False

    def __call__(self, read: Iterable[Array]) -> list[Any]:
        place = np.full(len(self.tree.asks), -1, dtype=np.int64)
        place[self.nodes] = np.arange(len(self.nodes))
        classes, wide = max(1, self.classes), [self.tree.branches[column] for column in self.crossed] or [0]
        totals = [np.zeros(len(self.nodes) * (w + 1) * classes, dtype=np.int64) for w in wide]
        for rows in read:
            for start in range(0, len(rows), LEAF_BLOCK):
                block = rows[start : start + LEAF_BLOCK].T
                codes = np.ascontiguousarray(block, dtype=np.int32 if block.dtype.kind == "f" else None)
                at = place.take(walked(self.tree.asks, self.tree.first, codes))
                inside = np.flatnonzero((at >= 0) & (codes[-1] >= 0) if self.classes else at >= 0)
                at, label = at[inside], fixed_width(codes[-1][inside]) if self.classes else 0
                label += classes if self.crossed else 0  # what has no value stands before the values
                for w, total, column in zip(wide, totals, self.crossed or (-1,), strict=True):
                    cell = at * ((w + 1) * classes) + label
                    if self.crossed:
                        cell += np.multiply(codes[column][inside], classes, dtype=np.int64)
                    total += np.bincount(cell, minlength=len(total))
        shaped = [t.reshape(len(self.nodes), w + 1, classes) for t, w in zip(totals, wide, strict=True)]
        if not self.crossed:
            return [shaped[0][:, 0]]
        return [t[:, 1:] for t in shaped] + ([shaped[0].sum(axis=1)] if self.whole else [])


@dataclass(frozen=True, slots=True, eq=False)
class Folds:
    """What several folds give of the same rows, one after the other."""

    parts: tuple[LeafFold, ...]

    def __call__(self, read: Iterable[Array]) -> list[Any]:
        totals = [count for part in self.parts for count in part(())]
        for rows in read:
            for total, count in zip(totals, (n for part in self.parts for n in part([rows])), strict=True):
                total += count
        return totals
