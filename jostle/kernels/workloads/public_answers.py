"""Answers that are public, which a joint block does not measure, and answers that are integers.

Groups at some levels whose answers are *known* say all residuals from these levels up (`axes`). Residuals are
orthogonal, and their noises uncorrelated where all groups have as many children. So the best linear estimate given
the known ones leaves every other residual as it was measured: a known residual is the public number, has no noise, and
costs nothing. This is post-processing of what was measured, by public numbers; whether they are true decides how good
the answers are, and nothing about privacy.

*Integers* are made from coarse to fine along a *path* of levels: the cells of a group add up to its integer. Each is
one of the two integers next to its share, and those with the largest fractions are rounded up (Hamilton's method). So
an answer of groups on the path is less than one from its share of the integer above; all others are sums of cells.

*Cells from 0 on* that all answers are sums of (`from_zero`), from coarse to fine as well: the groups of each level are
those nearest to what was measured that add up to the groups above (`nearest_from_zero`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.workloads.joint_axes import Axis
from jostle.kernels.workloads.joint_strategy import Levels, Query, below

MOST_CELLS, ROUNDS, CLOSE = 2**25, 1000, 1e-9
SWEEPS, STEPS, NEAR = (30, 12), 50, 1e-5  # SWEEPS of few cells and of more than 2^20; NEAR is of the mean cell


def residual_of(axes: Sequence[Axis], groups: Levels, values: Floats, levels: Levels, *, sums: bool = False) -> Floats:
    """What numbers of groups say about the residual at coarser levels, in the shape of its own groups; or their sums
    there."""
    to, dimension = dict(levels), 0
    for axis, level in groups:
        tree, target = axes[axis], to.get(axis, 0)
        if target < level:
            values = _summed(values, tree.ancestors(level, target), tree.sizes[target], dimension)
        if target:
            values = values if sums else tree.residual(values, target, dimension)
            dimension += 1
        else:
            values = values.reshape(values.shape[:dimension] + values.shape[dimension + 1 :])
    return values


def _summed(values: Floats, labels: Ints, size: int, dimension: int) -> Floats:
    lines = np.moveaxis(values, dimension, 0)
    sums = np.zeros((size, *lines.shape[1:]), dtype=values.dtype)
    np.add.at(sums, labels, lines)
    return np.moveaxis(sums, 0, dimension)


class KnownGroups:
    """The answers of one query that are public: of all groups at the levels `top` of its family.

    `answers` has the shape of the query's factors. Raises `KernelError` where the query's groups do not hold all rows,
    or are not those of levels.
    """

    def __init__(self, axes: Sequence[Axis], query: Query, answers: Floats) -> None:
        self.family, self.top, values = query.family, query.top, answers
        for dimension, axis in enumerate(sorted(query.factors)):
            factor, level = query.factors[axis], max(query.factors[axis].levels, default=0)
            groups, labels = factor.groups, axes[axis].labels[level]
            place = np.full(axes[axis].sizes[level], -1)
            place[labels] = groups
            if (groups < 0).any():
                raise KernelError("some rows are in none of its groups")
            if (place[labels] != groups).any() or len(np.unique(groups)) != len(place):
                raise KernelError("its groups divide those of another select")
            lines = np.moveaxis(values, dimension, 0)
            if len(groups_without := np.setdiff1d(np.arange(factor.size), groups)) and lines[groups_without].any():
                raise KernelError("it says that there are rows where there can be none")
            values = np.moveaxis(lines[place], 0, dimension)
        self.values = values.reshape([axes[axis].sizes[level] for axis, level in self.top])

    def residuals(self, axes: Sequence[Axis]) -> Mapping[Levels, Floats]:
        """All that it says."""
        return {one: residual_of(axes, self.top, self.values, one) for one in below(self.top)}


def known_residuals(axes: Sequence[Axis], groups: Sequence[KnownGroups]) -> dict[tuple[int, Levels], Floats]:
    """The residuals that known answers say, by family and levels.

    Raises `KernelError` where two of them disagree by more than a billionth.
    """
    result: dict[tuple[int, Levels], Floats] = {}
    for one in groups:
        for levels, values in one.residuals(axes).items():
            other = result.setdefault((one.family, levels), values)
            if not np.allclose(other, values, rtol=CLOSE, atol=CLOSE * max(1.0, float(np.abs(one.values).sum()))):
                raise KernelError("public answers of this block disagree")
    return result


def even_table(axes: Sequence[Axis], groups: Sequence[KnownGroups]) -> tuple[Levels, Floats]:
    """Cells from 0 on of which the known groups of one family are sums, as even as can be; and their levels.

    Of nested groups they are the finest ones; of others iterative proportional fitting.
    """
    depth: dict[int, int] = {}
    for one in groups:
        for axis, level in one.top:
            depth[axis] = max(level, depth.get(axis, 0))
    levels = tuple(sorted(depth.items()))
    shape = [axes[axis].sizes[level] for axis, level in levels]
    if prod(shape) > MOST_CELLS:
        raise KernelError("the groups that are given together are too many for none of them to be negative")
    cells = np.ones(shape)
    for _ in range(ROUNDS):
        before = cells
        for one in groups:
            to = dict(one.top)
            sums, spread = cells, []
            for dimension, (axis, level) in enumerate(levels):
                ancestors = axes[axis].ancestors(level, to.get(axis, 0))
                sums = _summed(sums, ancestors, axes[axis].sizes[to.get(axis, 0)], dimension)
                spread.append(ancestors)
            target = one.values.reshape(sums.shape)
            ratio = np.divide(target, sums, out=np.zeros(sums.shape), where=sums > 0)
            cells = cells * ratio[np.ix_(*spread)] if levels else cells * ratio
        if np.abs(cells - before).max() <= 1e-13 * max(1.0, float(cells.max())):
            break
    return levels, cells


def path(top: Levels, between: Sequence[Levels]) -> list[Levels]:
    """Levels from all rows to `top`, each one step finer than the one before, through all that is known.

    Raises `KernelError` where no path leads through all of them.
    """
    at: dict[int, int] = {}
    steps: list[Levels] = [()]
    for end in (*sorted(between, key=lambda one: sum(level for _, level in one)), top):
        levels = dict(end)
        if any(levels.get(axis, 0) < level for axis, level in at.items()):
            raise KernelError("groups that are given divide one another crosswise")
        for axis, level in end:
            for step in range(at.get(axis, 0) + 1, level + 1):
                at[axis] = step
                steps.append(tuple(sorted(at.items())))
    return steps


class _Margin:
    """Sums of cells at `top` in the groups at coarser levels, which have a length of 1 along the axes without one."""

    def __init__(self, axes: Sequence[Axis], top: Levels, levels: Levels) -> None:
        to = dict(levels)
        self.summed = tuple(dimension for dimension, (axis, _) in enumerate(top) if not to.get(axis, 0))
        self.joined = {
            dimension: axes[axis].ancestors(level, to[axis])
            for dimension, (axis, level) in enumerate(top) if 0 < to.get(axis, 0) < level
        }  # fmt: skip

    def sums(self, cells: Any) -> Floats:
        result: Floats = cells.sum(axis=self.summed, keepdims=True, dtype=float)
        for dimension, labels in self.joined.items():
            result = _summed(result, labels, int(labels.max()) + 1, dimension)
        return result

    def spread(self, sums: Floats) -> Floats:
        """What every cell has of numbers of the groups, to broadcast."""
        for dimension, labels in self.joined.items():
            sums = sums.take(labels, axis=dimension)
        return sums


def nearest_from_zero(
    axes: Sequence[Axis], top: Levels, cells: Floats, margins: Sequence[tuple[Levels, float, Floats | None]]
) -> Floats:  # fmt: skip
    """Cells from 0 on of which the squared distances to `cells`, and of their sums to those of `cells`, are least.

    Each margin is its levels, the variance of its sums over that of a cell, and what they are where that is known. A
    cell is max(0, x − Σμ) with a price μ for each group that holds it. The prices of one margin after the other are
    found by Newton's method from below, where what its groups lack is convex and falls.
    """
    sides = [(_Margin(axes, top, levels), ratio, exact) for levels, ratio, exact in margins]
    sizes = [side.sums(np.ones(cells.shape, dtype=bool)) for side, _, _ in sides]
    targets = [side.sums(cells) if exact is None else exact.reshape(many.shape)
               for (side, _, exact), many in zip(sides, sizes, strict=True)]  # fmt: skip
    prices = [np.zeros(target.shape) for target in targets]
    others, above, near = np.empty_like(cells), np.empty_like(cells), NEAR * float(np.abs(cells).mean())
    for _ in range(SWEEPS[cells.size > 2**20]):
        moved = 0.0
        for at, (side, ratio, exact) in enumerate(sides):
            np.copyto(others, cells)
            for other, price in enumerate(prices):
                if other != at:
                    others -= sides[other][0].spread(price)
            weight = 0.0 if exact is not None else ratio
            price = (side.sums(others) - targets[at]) / (sizes[at] + weight)
            for _ in range(STEPS):
                np.maximum(np.subtract(others, side.spread(price), out=above), 0.0, out=above)
                slopes = side.sums(above > 0) + weight
                lacks = side.sums(above) - weight * price - targets[at]
                step = np.divide(lacks, slopes, out=np.zeros(lacks.shape), where=slopes > 0)
                price = price + step
                if np.abs(step).max() <= near:
                    break
            moved, prices[at] = max(moved, float(np.abs(price - prices[at]).max())), price
        if moved <= 10 * near or len(sides) < 2:
            break
    np.copyto(above, cells)
    for (side, _, _), price in zip(sides, prices, strict=True):
        above -= side.spread(price)
    np.maximum(above, 0.0, out=above)
    for (side, _, exact), target in zip(sides, targets, strict=True):
        if exact is not None:  # but for the last step
            sums = side.sums(above)
            above *= side.spread(np.divide(target, sums, out=np.zeros(sums.shape), where=sums > 0))
    return above


def from_zero(
    axes: Sequence[Axis], top: Levels, cells: Floats, margins: Sequence[tuple[Levels, float, Floats | None]]
) -> Floats:  # fmt: skip
    """Cells from 0 on near to `cells`, the groups of each level as near as can be to theirs, given those above them.

    The levels are those of margins that divide one another, from all rows on; of margins across them the distance
    counts at the first level that divides them. Margins are as in `nearest_from_zero`, which finds all cells at once
    where groups across the levels are known.

    All at once has the least distance of all answers together. It moves groups of many cells the most, which then keep
    what their cells have too much: of ten states with 20,000 cells each they are twice as far off.
    """
    steps = nested(axes, [top, *(levels for levels, _, _ in margins)])
    ratios = {top: 1.0} | {levels: ratio for levels, ratio, _ in margins}
    across = [one for one in margins if one[0] not in steps]
    if any(exact is not None for _, _, exact in across):
        return nearest_from_zero(axes, top, cells, margins)
    above: Levels = ()
    result = np.maximum(residual_of(axes, top, cells, above, sums=True), 0.0)
    for level in reversed(steps):
        here = [(one, other / ratios[level], None) for one, other, _ in across if is_coarser(one, level)]
        across = [one for one in across if not is_coarser(one[0], level)]
        groups = residual_of(axes, top, cells, level, sums=True)
        result, above = nearest_from_zero(axes, level, groups, [(above, 0.0, result), *here]), level
    return result


def nested(axes: Sequence[Axis], levels: Iterable[Levels]) -> list[Levels]:
    """Of levels, from those with the most groups on, all that are coarser than the ones before."""
    result: list[Levels] = []
    for one in sorted({*levels}, key=lambda one: -prod(axes[axis].sizes[level] for axis, level in one)):
        if not result or is_coarser(one, result[-1]):
            result.append(one)
    return result


def is_coarser(one: Levels, other: Levels) -> bool:
    """Whether groups at the levels `one` are sums of those at `other`, and not the same."""
    levels = dict(other)
    return one != other and all(levels.get(axis, 0) >= level for axis, level in one)


def integers(
    axes: Sequence[Axis], cells: Floats, top: Levels, steps: Sequence[Levels], public: Mapping[Levels, Floats],
    nonnegative: bool,
) -> Floats:  # fmt: skip
    """Integer cells near to `cells`, of shape (groups at `top`), that add up along a path to what is `public`."""
    above = np.rint(residual_of(axes, top, cells, (), sums=True)) if () not in public else public[()]
    if nonnegative:
        above = np.maximum(above, 0.0)
    for before, levels in pairwise(steps):
        shares = residual_of(axes, top, cells, levels, sums=True)
        old, new = dict(before), dict(levels)
        (axis,) = (axis for axis in new if old.get(axis, 0) != new[axis])
        dimension = sorted(new).index(axis)
        totals = above if axis in old else np.expand_dims(above, dimension)
        if levels in public:
            above = public[levels]
        else:
            lines = np.moveaxis(shares, dimension, 0)
            parents = axes[axis].parents[new[axis]]
            above = np.moveaxis(_divided(lines, np.moveaxis(totals, dimension, 0), parents, nonnegative), 0, dimension)
    return above


def _divided(lines: Floats, totals: Floats, parents: Ints, nonnegative: bool) -> Floats:
    """Integers near to `lines`, (groups, others), that add up to integer `totals`, of shape (parents, others)."""
    shape, lines = lines.shape, lines.reshape(len(parents), -1)
    totals = totals.reshape(len(totals), -1)
    many = np.bincount(parents, minlength=len(totals))[:, None]
    lines = np.maximum(lines, 0.0) if nonnegative else lines
    sums = _summed(lines, parents, len(totals), 0)
    if nonnegative:
        ratio = np.divide(totals, sums, out=np.zeros(sums.shape), where=sums > 0)
        lines = np.where(sums[parents] > 0, lines * ratio[parents], (totals / many)[parents])
    else:
        lines = lines + ((totals - sums) / many)[parents]
    low = np.floor(lines + 1e-9)
    lacking = totals - _summed(low, parents, len(totals), 0)
    order = np.lexsort((low - lines, np.broadcast_to(parents[:, None], lines.shape)), axis=0)
    starts = np.concatenate([[0], np.cumsum(many[:-1, 0])]).astype(int)
    rank = np.empty(lines.shape, dtype=np.int64)
    sorted_parents = np.sort(parents, kind="stable")
    np.put_along_axis(rank, order, np.arange(len(parents))[:, None] - starts[sorted_parents][:, None], axis=0)
    result: Floats = low + (rank < lacking[parents])
    return result.reshape(shape)


def common(tops: Sequence[Levels]) -> Levels:
    """The coarsest levels that all of these are coarser than."""
    depth: dict[int, int] = {}
    for axis, level in (pair for top in tops for pair in top):
        depth[axis] = max(level, depth.get(axis, 0))
    return tuple(sorted(depth.items()))
