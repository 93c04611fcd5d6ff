"""Axes of a joint workload: the cells of one key or several nested ones, and how counts of them come apart.

An axis has *levels*. Level 0 is one group, all rows; each further level divides the groups of the one before, and the
last has a group for every cell. What a group counts is an equal part of what its parent counts, and a *residual*: how
far it lies from its parent's mean over its children. The residuals of all levels, and the total, say everything about
the cells. Of several axes the residuals are products, one level an axis: the decomposition of ResidualPlanner (Xiao,
He, Zhang and Kifer, *An optimal and scalable matrix mechanism for noisy marginals*, NeurIPS 2023). That has two levels
an axis, with trees in place of flat lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints

LAST_BITS = 1e-10  # of a sum of squares over at most 2^26 groups


class Axis:
    """`levels` are the groups of every cell at each level, from coarse to fine: integer arrays of shape (cells,).

    Level 0 is added. Groups are numbered from 0 without a gap, each level divides the one before, and in the last every
    cell has a group of its own.
    """

    def __init__(self, levels: Sequence[Ints]) -> None:
        self.labels = [np.zeros(len(levels[-1]), dtype=np.int64), *(np.asarray(labels) for labels in levels)]
        self.sizes = [int(labels.max()) + 1 for labels in self.labels]
        self.parents, self.siblings = [np.zeros(1, dtype=np.int64)], [np.ones(1)]
        for above, labels, size in zip(self.labels, self.labels[1:], self.sizes[1:], strict=False):
            parent = np.zeros(size, dtype=np.int64)
            parent[labels] = above
            self.parents.append(parent)
            self.siblings.append(np.bincount(parent)[parent].astype(float))

    @property
    def depth(self) -> int:
        """The last level."""
        return len(self.labels) - 1

    @cached_property
    def costs(self) -> list[float]:
        """The squared ℓ₂ norm of a row's residual at each level, at most: (b − 1)/b for a group of b siblings."""
        return [1.0, *(float((1 - 1 / b).max()) for b in self.siblings[1:])]

    @cached_property
    def even(self) -> bool:
        """Whether all groups of a level have as many children."""
        return all(len(np.unique(b)) == 1 for b in self.siblings)

    def shares(self, level: int) -> Floats:
        """Which part of its group at this level each cell is taken to count, shape (cells,)."""
        share = np.ones(len(self.labels[0]))
        for finer in range(level + 1, self.depth + 1):
            share /= self.siblings[finer][self.labels[finer]]
        return share

    def ancestors(self, level: int, above: int) -> Ints:
        """The group at level `above` of every group at `level`, shape (groups at `level`,)."""
        at = np.arange(self.sizes[level])
        for step in range(level, above, -1):
            at = self.parents[step][at]
        return at

    def residual(self, values: Floats, level: int, dimension: int) -> Floats:
        """`values` less the mean of their siblings, along a dimension that has the groups of this level."""
        if level == 0:
            return values
        lines = np.moveaxis(values, dimension, 0)
        sums = np.zeros((self.sizes[level - 1], *lines.shape[1:]))
        np.add.at(sums, self.parents[level], lines)
        means = sums[self.parents[level]] / self.siblings[level].reshape(-1, *[1] * (lines.ndim - 1))
        return np.moveaxis(lines - means, 0, dimension)


class Factor:
    """What a query asks of one axis: sums of cells, `groups` of shape (cells,) with −1 for a cell in none."""

    def __init__(self, axis: Axis, groups: Ints, size: int) -> None:
        self.axis, self.groups, self.size = axis, groups, size
        self.weights = [self._weights(level) for level in range(axis.depth + 1)]
        """At each level how much of its groups every answer takes: sparse, of shape (answers, groups)."""
        self.squares = np.array([self._squares(level) for level in range(axis.depth + 1)])
        """By level and answer, the squared norm of the answer's coefficients on residuals: (levels, answers)."""
        self._products: dict[tuple[int, int, int], Floats] = {}
        self.levels = [level for level, row in enumerate(self.squares) if row.sum() > 1e-12]

    def _weights(self, level: int) -> Any:
        from scipy.sparse import csr_matrix

        inside = self.groups >= 0
        entries = (self.axis.shares(level)[inside], (self.groups[inside], self.axis.labels[level][inside]))
        return csr_matrix(entries, shape=(self.size, self.axis.sizes[level]))

    def _squares(self, level: int) -> Floats:
        weights = self.weights[level]
        squares: Floats = np.asarray(weights.multiply(weights).sum(axis=1), dtype=float).ravel()
        if level == 0:
            return squares
        from scipy.sparse import csr_matrix

        size = self.axis.sizes[level]
        entries = (np.ones(size), (np.arange(size), self.axis.parents[level]))
        families = weights @ csr_matrix(entries, shape=(size, self.axis.sizes[level - 1]))
        many = np.zeros(self.axis.sizes[level - 1])
        many[self.axis.parents[level]] = self.axis.siblings[level]
        means: Floats = np.asarray(families.multiply(families) @ (1 / many), dtype=float).ravel()
        return np.where(squares - means > LAST_BITS * squares, squares - means, 0.0)

    @cached_property
    def alike(self) -> tuple[Ints, Ints]:
        """Answers that stand for all: their places, and for every answer which of them has noise of the same law.

        Those are alike whose coefficients have the same second and fourth moments at every level.
        """
        fourth = [np.asarray(one.power(4).sum(axis=1), dtype=float).ravel() for one in self.weights]
        facts = np.concatenate([self.squares, np.array(fourth)]).round(12)
        _, first, like = np.unique(facts, axis=1, return_index=True, return_inverse=True)
        return first, like.ravel()

    def row(self, level: int, place: int) -> Floats:
        """The coefficients of one answer: (groups,)."""
        weights = np.asarray(self.weights[level][[place], :].todense(), dtype=float)
        return self.axis.residual(weights.ravel(), level, 0)

    def products(self, level: int, one: int, other: int) -> Floats:
        """Of every answer the product of its coefficients on the residuals of two levels, over the groups at `level`.

        Residuals of one level tell nothing of another where all groups have as many children.
        """
        at = (level, min(one, other), max(one, other))
        if at not in self._products:
            axis = self.axis
            if axis.even or level in (one, other):
                same = self.squares[one] * (axis.sizes[level] / axis.sizes[one])
                self._products[at] = same if one == other else np.zeros(self.size)
            else:
                first, second = (self._dense(to)[:, axis.ancestors(level, to)] for to in (one, other))
                self._products[at] = (first * second).sum(axis=1)
        return self._products[at]

    def _dense(self, level: int) -> Floats:
        """The answers' coefficients on the residuals of a level: (answers, groups)."""
        return self.axis.residual(np.asarray(self.weights[level].todense(), dtype=float), level, 1)
