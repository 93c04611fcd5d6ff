"""Answers that agree with each other, from what a strategy measured."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.joint.nonnegative import Nonnegative
from jostle.kernels.joint.strategy import Block, Levels, Query, Strategy

LAST_BITS = 1e-12


class Estimates:
    """Estimates of all residuals: every answer is made of these same numbers.

    `measured` has an array for each block of the strategy, in the shape of its groups, in the units of what is asked.
    """

    def __init__(self, strategy: Strategy, measured: Sequence[Floats]) -> None:
        self.strategy = strategy
        self.cones: set[int] = set()  # families of which no group is negative, but for the last bits of a sum
        self._of = {
            (family, levels): np.sum(
                [weight * self._seen(strategy.blocks[at], measured[at], levels) for at, weight in sources], axis=0
            )
            for (family, levels), sources in strategy.sources.items()
        }

    def projected(self, cones: Sequence[Nonnegative]) -> Estimates:
        """The nearest ones of which no group of these families is negative."""
        result = copy(self)
        result._of, result.cones = dict(self._of), {cone.family for cone in cones}
        for cone in cones:
            parts = cone.nearest(np.concatenate([self._of[cone.family, levels].ravel() for levels in cone.residuals]))
            for levels, shape, start, end in zip(cone.residuals, cone.shapes, cone.ends, cone.ends[1:], strict=False):
                result._of[cone.family, levels] = parts[start:end].reshape(shape)
        return result

    def _seen(self, block: Block, values: Floats, residual: Levels) -> Floats:
        """What a block says about a residual, in the shape of the residual's own groups."""
        to, dimension = dict(residual), 0
        for axis, level in block.levels:
            tree, target = self.strategy.axes[axis], to.get(axis, 0)
            if target < level:
                lines = np.moveaxis(values, dimension, 0)
                sums = np.zeros((tree.sizes[target], *lines.shape[1:]))
                np.add.at(sums, tree.ancestors(level, target), lines)
                values = np.moveaxis(sums, 0, dimension)
            if target:
                values = tree.residual(values, target, dimension)
                dimension += 1
            else:
                values = values.reshape(values.shape[:dimension] + values.shape[dimension + 1 :])
        return values

    def answers(self, query: Query) -> Floats:
        """Of a query, in the shape of its factors, the axes in order."""
        axes = sorted(query.factors)
        total = np.zeros([query.factors[axis].size for axis in axes])
        for residual in query.residuals:
            levels = dict(residual)
            values = self._of[query.family, residual]
            values = values.reshape(
                [self.strategy.axes[axis].sizes[levels.get(axis, 0)] if axis in levels else 1 for axis in axes]
            )
            for dimension, axis in enumerate(axes):
                weights = query.factors[axis].weights[levels.get(axis, 0)]
                lines = np.moveaxis(values, dimension, 0)
                answered = weights @ lines.reshape(len(lines), -1)
                values = np.moveaxis(answered.reshape(-1, *lines.shape[1:]), 0, dimension)
            total += values
        return total if query.family not in self.cones else np.where(total > LAST_BITS * total.max(), total, 0.0)
