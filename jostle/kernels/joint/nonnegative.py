"""The nearest answers of which none is negative, and which agree with each other as before.

What was measured says of every residual its estimate and how much noise that has. Of all residuals of which no group is
negative those are taken that lie nearest, each in units of its noise: the projection onto a convex cone that the exact
ones are in. The groups are those at the finest levels that a query needs, with the cells of rows that no value fits;
all that is coarser, and every answer, is a sum of them.

The projection is found by its dual, which has a price λ ≥ 0 for every group (L-BFGS-B); groups are scaled to noise of
1, and those with a price are set to 0 by conjugate gradients. What is below 0 after that is taken away by a mixture
with the even table of the same total, which has no group at 0: the result is in the cone however far the steps came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.joint.axes import Factor
from jostle.kernels.joint.strategy import Levels, Query, Strategy

MOST_GROUPS, MOST_ENTRIES = 2**19, 2**23
STEPS, ROUNDS = 500, 100
CLOSE = 1e-7  # of the noise of a group, how far the last steps may move it


class Nonnegative:
    """The cone of one family of a strategy. Raises `KernelError` where its groups are too many."""

    def __init__(self, strategy: Strategy, queries: Sequence[Query], family: int) -> None:
        self.axes = strategy.axes
        self.residuals: list[Levels] = [levels for of, levels in strategy.sources if of == family]
        self.family = family
        shapes = [tuple(self.axes[axis].sizes[level] for axis, level in levels) for levels in self.residuals]
        self.shapes = shapes
        self.ends = np.cumsum([0, *(prod(shape) for shape in shapes)])
        self.variances = np.array([_variance(strategy, family, levels) for levels in self.residuals])
        self.groups = self._groups([query for query in queries if query.family == family])

    def _groups(self, queries: Sequence[Query]) -> Any:
        """What the groups that must not be negative are of the residuals: sparse, of shape (groups, residuals)."""
        from scipy.sparse import vstack

        known = set(self.residuals)
        whole = [query.top for query in queries if all(one in known for one in _below(query.top))]
        tops = [top for top in dict.fromkeys(whole) if not any(_coarser(top, other) for other in whole)]
        asked: list[Mapping[int, Factor]] = [
            {axis: Factor(self.axes[axis], self.axes[axis].labels[level], self.axes[axis].sizes[level])
             for axis, level in top} for top in tops
        ]  # fmt: skip
        asked += [
            query.factors for query in queries if not any(query.top == top or _coarser(query.top, top) for top in tops)
        ]
        sizes = [prod(factor.size for factor in factors.values()) for factors in asked]
        entries = sum(
            size * prod(len(factor.weights) for factor in factors.values())
            for size, factors in zip(sizes, asked, strict=True)
        )
        if sum(sizes) > MOST_GROUPS or entries > MOST_ENTRIES:
            raise KernelError("these groups are too many for none of them to be negative")
        rows = vstack([self._rows(factors) for factors in asked]).tocsr()
        return rows[rows.getnnz(axis=1) > 0]  # groups that no cell is in are 0

    def _rows(self, factors: Mapping[int, Factor]) -> Any:
        from scipy.sparse import csr_matrix, hstack, kron

        size, blocks = prod(factor.size for factor in factors.values()), []
        for levels, shape in zip(self.residuals, self.shapes, strict=True):
            at = dict(levels)
            if set(at) <= set(factors):
                parts = [factors[axis].weights[at.get(axis, 0)] for axis in sorted(factors)]
                blocks.append(reduce(lambda a, b: kron(a, b, "csr"), parts, csr_matrix(np.ones((1, 1)))))
            else:
                blocks.append(csr_matrix((size, prod(shape))))
        return hstack(blocks, "csr")

    def centred(self, values: Floats) -> Floats:
        """The nearest residuals to these numbers."""
        parts = []
        for levels, shape, start, end in zip(self.residuals, self.shapes, self.ends, self.ends[1:], strict=False):
            part = values[start:end].reshape(shape)
            for dimension, (axis, level) in enumerate(levels):
                part = self.axes[axis].residual(part, level, dimension)
            parts.append(part.ravel())
        return np.concatenate(parts)

    def nearest(self, estimates: Floats) -> Floats:
        """The projection of these residuals, all of them one after the other."""
        from scipy.optimize import minimize

        scales = np.repeat(self.variances, np.diff(self.ends))
        groups = self.groups
        deviations = np.sqrt(np.maximum(groups.multiply(groups) @ scales, 1e-300))
        measured = (groups @ estimates) / deviations
        if measured.min() >= 0:
            return estimates
        moved = groups.T.tocsr()

        def step(prices: Floats) -> Floats:
            return scales * self.centred(moved @ (prices / deviations))

        def objective(prices: Floats) -> tuple[float, Floats]:
            at = (groups @ step(prices)) / deviations
            return float(prices @ (at / 2 + measured)), at + measured

        none = np.zeros(groups.shape[0])
        found = minimize(
            objective, none, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(none),
            options={"maxiter": STEPS, "maxfun": 2 * STEPS, "maxcor": 30, "ftol": 0.0, "gtol": CLOSE},
        )  # fmt: skip
        prices = self._at_zero(found.x, lambda x: (groups @ step(x)) / deviations, measured)
        return self._inside(estimates + step(prices))

    def _at_zero(self, prices: Floats, moved: Callable[[Floats], Floats], measured: Floats) -> Floats:
        """The prices at which the groups that have one are 0, if these leave the others from 0 on as well."""
        from scipy.sparse.linalg import LinearOperator, cg

        priced = np.flatnonzero(prices > 0)

        def on_priced(values: Floats) -> Floats:
            whole = np.zeros(len(prices))
            whole[priced] = values
            return moved(whole)[priced]

        system = LinearOperator((len(priced), len(priced)), matvec=on_priced, dtype=float)
        solved, _ = cg(system, -measured[priced], x0=prices[priced], rtol=1e-15, maxiter=ROUNDS)
        exact = np.zeros(len(prices))
        exact[priced] = np.maximum(0.0, solved)
        low, before = ((moved(x) + measured).min() for x in (exact, prices))
        return exact if low >= before else prices

    def _inside(self, residuals: Floats) -> Floats:
        """These residuals mixed with as little of the even table as leaves no group negative."""
        values = self.groups @ residuals
        if values.min() >= 0:
            return residuals
        even, total = np.zeros(len(residuals)), self.ends[self.residuals.index(())]
        even[total] = max(residuals[total], float(np.sqrt(self.variances[self.residuals.index(())])))
        room, lacking = self.groups @ even, np.maximum(0.0, -values)
        part = float((lacking / (lacking + room)).max())
        return (1 - part) * residuals + part * even


def _below(top: Levels) -> Iterator[Levels]:
    """The residuals that a query at these levels is a sum of."""
    for way in product(*(range(level + 1) for _, level in top)):
        yield tuple(sorted({(axis, at) for (axis, _), at in zip(top, way, strict=True) if at}))


def _coarser(one: Levels, other: Levels) -> bool:
    levels = dict(other)
    return one != other and all(levels.get(axis, 0) >= level for axis, level in one)


def _variance(strategy: Strategy, family: int, levels: Levels) -> float:
    """Of the noise of the estimate of a residual, in the units of the strategy: before it is centred."""
    own = prod(strategy.axes[axis].sizes[level] for axis, level in levels)
    told = 0.0
    for at, weight in strategy.sources[family, levels]:
        block = strategy.blocks[at]
        many = prod(strategy.axes[axis].sizes[level] for axis, level in block.levels) / own
        told += weight**2 * block.variance * many
    return told
