"""The choice of a strategy for a joint workload: what is measured, and which part of the amount each of it has.

Queries and what is measured belong to a *family*: counts of rows are one, and the sums of each expression. With
Gaussian noise every residual is measured by itself, and the least total error has a closed form (Xiao et al. 2023): the
share of a residual is proportional to √(v·c), v what its noise adds to the error and c its cost. With Laplace noise a
residual costs more than the groups that it is of (in ℓ₁ twice as much an axis). So groups are measured, and each
residual is the mean of what they say about it, weighted by precision. Their shares are a local optimum of the total
error, as in OPT_M of McKenna, Miklau, Hay and Machanavajjhala (VLDB 2018).

The total counts each query in units of the variance that it has *alone*, with its part of the amount. A query that
is worse off together than alone weighs more until it is not, unless the total is all that counts. Where errors are
wanted, there is no total: the largest variance in units of what is wanted is made least (`worst`).

Shares of an amount by which the worst answer is as good as can be: for a wanted error of every answer.

An answer's variance is a sum over residuals, its row of `rows`, in units of what is wanted; the largest of them is made
least. With Gaussian noise that is convex. Weights λ ≥ 0 of the answers, Σλ = 1, give shares in closed form, those of
the least weighted sum, and with them a bound: no shares have a worst answer below (Σ √(v·c))², v what the weighted
answers take of each residual and c its cost. The weights are multiplied by how bad their answers are until both meet
(the multiplicative algorithm for optimal designs: Silvey, Titterington and Torsney 1978). With Laplace noise the
largest is replaced by norms of higher and higher powers, and a local optimum is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats
from jostle.kernels.workloads.joint_axes import Axis, Factor

SHARE_ROUNDS, CLOSE = 3000, 1.002
POWERS, SHARE_STEPS = (4, 16, 64, 256), 150


def even_residuals(rows: Any, costs: Floats) -> tuple[Floats, float]:
    """Shares for Gaussian noise, and the bound on the worst answer; `rows` is sparse, of shape (answers, residuals)."""
    weights = np.full(rows.shape[0], 1 / rows.shape[0])
    best, least, bound = np.full(len(costs), 1 / len(costs)), np.inf, 0.0
    for _ in range(SHARE_ROUNDS):
        roots = np.sqrt((rows.T @ weights) * costs)
        shares = roots / roots.sum()
        answers = rows @ (costs / shares)
        worst, bound = float(answers.max()), max(bound, float(roots.sum()) ** 2)
        if worst < least:
            best, least = shares, worst
        if least <= CLOSE * bound:
            break
        weights = np.maximum(weights * answers, 1e-12 * float(answers @ weights))
        weights /= weights.sum()
    return best, bound


def even_groups(rows: Any, tells: Floats, starts: list[Floats]) -> Floats:
    """Shares for Laplace noise: `tells` is what a block, with share 1, tells of each residual, as a precision."""
    from scipy.optimize import minimize

    def objective(logs: Floats, power: float) -> tuple[float, Floats]:
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        precisions = np.maximum(shares**2 @ tells, 1e-300)
        answers = np.log(rows @ (1 / precisions))
        top = answers.max()
        parts = np.exp(power * (answers - top))
        slopes = -(rows.T @ (parts / parts.sum() / np.exp(answers))) / precisions**2
        own = 2 * shares * (tells @ slopes)
        return float(top + np.log(parts.sum()) / power), shares * (own - shares @ own)

    candidates = []
    for start in starts:
        logs = np.log(start)
        for power in POWERS:
            logs = minimize(
                objective, logs, args=(power,), jac=True, method="L-BFGS-B", options={"maxiter": SHARE_STEPS}
            ).x
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        sparse = np.where(shares > 1e-4, shares, 0.0)
        candidates += [shares, sparse / sparse.sum()]
    return min(candidates, key=lambda one: float((rows @ (1 / np.maximum(one**2 @ tells, 1e-300))).max()))


Levels = tuple[tuple[int, int], ...]
"""Axes and their levels, the axes in order; an axis that is not named is at level 0."""

MOST_RESIDUALS = 20_000
MOST_BLOCKS = 400  # among which shares are sought for Laplace noise
ROUNDS, STEPS, ENOUGH = 20, 100, 1 - 1e-3


@dataclass(frozen=True, eq=False)
class Query:
    """Sums of one family: an answer for each combination of the answers of its factors, by axis.

    `alone` is the variance that each has without the others, or the wanted one. `known` are residuals that are public.
    """

    family: int
    factors: Mapping[int, Factor]
    alone: float
    known: frozenset[Levels] = frozenset()

    @property
    def every(self) -> list[Levels]:
        """The residuals that it is the sum of."""
        axes = sorted(self.factors)
        ways = product(*(self.factors[axis].levels for axis in axes))
        return [tuple((axis, level) for axis, level in zip(axes, way, strict=True) if level) for way in ways]

    @property
    def residuals(self) -> list[Levels]:
        """Those of them that are measured."""
        return [one for one in self.every if one not in self.known]

    @property
    def top(self) -> Levels:
        """The coarsest groups that tell all that it asks."""
        tops = [(axis, max(factor.levels)) for axis, factor in sorted(self.factors.items())]
        return tuple((axis, level) for axis, level in tops if level)


@dataclass(frozen=True, slots=True)
class Block:
    """What is measured: groups at these levels, or their residuals; `share` of the amount is spent on it.

    `variance` is that of its noise where the whole amount has a variance of 1, for a row that counts 1.
    """

    family: int
    levels: Levels
    residual: bool
    share: float
    variance: float


@dataclass(frozen=True, eq=False)
class Strategy:
    """What is measured, and for each residual which blocks tell it, with what weights (they add up to 1)."""

    axes: Sequence[Axis]
    blocks: list[Block]
    sources: dict[tuple[int, Levels], list[tuple[int, float]]]

    def variances(self, query: Query) -> Floats:
        """Of every answer of a query, in the shape of its factors, where the whole amount has a variance of 1."""
        axes = sorted(query.factors)
        total = np.zeros([query.factors[axis].size for axis in axes])
        parts: dict[int, list[tuple[Levels, float]]] = {}
        for residual in query.residuals:
            for at, weight in self.sources[query.family, residual]:
                parts.setdefault(at, []).append((residual, weight))
        for at, weights in parts.items():
            block = self.blocks[at]
            for i, (one, weight) in enumerate(weights):
                total += block.variance * weight**2 * self._products(query, block, one, one)
                for other, second in weights[i + 1 :]:
                    total += 2 * block.variance * weight * second * self._products(query, block, one, other)
        return total

    def coefficients(self, query: Query, place: int) -> list[tuple[int, Floats]]:
        """The weights of the answer at a place, flat, of the numbers of each block: pairs of a block and an array."""
        axes = sorted(query.factors)
        where = np.unravel_index(place, [query.factors[axis].size for axis in axes])
        result: dict[int, Floats] = {}
        for residual in query.residuals:
            levels = dict(residual)
            for at, weight in self.sources[query.family, residual]:
                own = np.full(1, weight)
                for axis in axes:
                    if axis not in dict(self.blocks[at].levels):
                        own = own * query.factors[axis].weights[0][[where[axes.index(axis)]], :].sum()
                for axis, level in self.blocks[at].levels:
                    part = np.ones(self.axes[axis].sizes[level])
                    if axis in query.factors:
                        to = levels.get(axis, 0)
                        row = query.factors[axis].row(to, int(where[axes.index(axis)]))
                        part = row[self.axes[axis].ancestors(level, to)]
                    own = np.multiply.outer(own, part).ravel()
                result[at] = result[at] + own if at in result else own
        return list(result.items())

    def _products(self, query: Query, block: Block, one: Levels, other: Levels) -> Floats:
        """For every answer the scalar product of its coefficients on two residuals, over the numbers of a block."""
        first, second, levels = dict(one), dict(other), dict(block.levels)
        result = np.ones(())
        for axis, factor in sorted(query.factors.items()):
            a, b, level = first.get(axis, 0), second.get(axis, 0), levels.get(axis, 0)
            part = factor.squares[a] if block.residual else factor.products(level, a, b)
            if not part.any():
                return np.zeros(())
            result = np.multiply.outer(result, part)
        return result * _groups(self.axes, tuple(one for one in block.levels if one[0] not in query.factors))


def strategy_for(
    axes: Sequence[Axis], queries: Sequence[Query], gaussian: bool, most: Sequence[float] | None = None,
    minimax: bool = False, fair: bool = True,
) -> Strategy:  # fmt: skip
    """The strategy for these queries under the noise at hand: of the least total error, or with `minimax`
    of the least worst one. Raises `KernelError` where they are too many. `fair`: no query is worse off than alone.

    `most` is for each family how large the product of 2b over the axes of residuals may be, b the siblings of a group:
    where it is more, the groups are measured in place of their residuals.
    """
    places: dict[tuple[int, Levels], int] = {}
    for query in queries:
        if prod(len(factor.levels) for factor in query.factors.values()) > MOST_RESIDUALS:
            raise KernelError("these groups have too many keys to be answered together")
        for residual in query.residuals:
            places.setdefault((query.family, residual), len(places))
    if len(places) > MOST_RESIDUALS:
        raise KernelError("these groups are too many to be answered together")
    workload = _Workload(queries, places, fair)
    return _of_residuals(axes, workload, most, minimax) if gaussian else _of_groups(axes, workload, minimax)


class _Workload:
    """What every residual's noise adds to the error of every query."""

    def __init__(
        self, queries: Sequence[Query], places: Mapping[tuple[int, Levels], int], fair: bool = True
    ) -> None:  # fmt: skip
        self.fair = fair
        self.residuals = list(places)
        self.tops = [(query.family, query.top) for query in queries]
        self.alone = np.array([query.alone for query in queries])
        self.weights = 1 / self.alone
        self.places, self._sums, self._cells = [], [], []
        for query in queries:
            factors = [query.factors[axis] for axis in sorted(query.factors)]
            kinds = [np.unique(factor.squares[factor.levels].round(12), axis=1) for factor in factors]
            self.places.append(np.array([places[query.family, residual] for residual in query.residuals]))
            sums, cells = np.ones(1), np.ones((1, 1))
            for factor, kind in zip(factors, kinds, strict=True):
                sums = np.multiply.outer(sums, factor.squares[factor.levels].sum(axis=1)).ravel()
                kind = kind if cells.shape[1] * kind.shape[1] <= 4096 else kind.max(axis=1, keepdims=True)
                cells = np.einsum("ac,bd->abcd", cells, kind).reshape(len(sums), -1)
            measured = [at for at, one in enumerate(query.every) if one not in query.known]
            self._sums.append(sums[measured])
            self._cells.append(cells[measured])

    def errors(self, weights: Floats) -> Floats:
        """How much a unit of variance of each residual adds to the total."""
        total = np.zeros(len(self.residuals))
        for at, sums, weight in zip(self.places, self._sums, weights, strict=True):
            np.add.at(total, at, weight * sums)
        return total

    @property
    def rows(self) -> Any:
        """What each residual's noise adds to each answer, over what it has alone: sparse, (answers, residuals).

        Answers of one query that are alike stand once.
        """
        from scipy.sparse import coo_matrix

        parts, above = [], 0
        for at, cells, alone in zip(self.places, self._cells, self.alone, strict=True):
            cells = cells[:, cells.any(axis=0)]  # groups that no cell is in are known
            i, j = np.nonzero(cells.T)
            parts.append((cells.T[i, j] / alone, above + i, at[j]))
            above += cells.shape[1]
        values, i, j = (np.concatenate(column) for column in zip(*parts, strict=True))
        return coo_matrix((values, (i, j)), shape=(above, len(self.residuals))).tocsr()

    def worst(self, variances: Floats) -> Floats:
        """Of each query the largest variance of an answer over what it has alone."""
        pairs = zip(self.places, self._cells, strict=True)
        return np.asarray(np.array([float((variances[at] @ cells).max()) for at, cells in pairs]) / self.alone)

    def balanced(
        self, solve: Callable[[Floats], Floats], variances: Callable[[Floats], Floats], apart: Floats
    ) -> Floats:
        """The shares that `solve` gives for weights at which no query is worse off than alone, if it is to be `fair`.

        Where it comes to none, they are mixed with those that measure each query `apart`, which are such.
        """
        weights = self.weights
        if not self.fair:
            return solve(self.errors(weights))
        for _ in range(ROUNDS):
            shares = solve(self.errors(weights))
            worst = self.worst(variances(shares))
            if worst.max() <= 1:
                return shares
            weights = weights * np.where(worst > ENOUGH, worst / ENOUGH, 1.0) ** 1.5
        for mix in np.linspace(0.02, 0.98, 49):
            mixed: Floats = (1 - mix) * shares + mix * apart
            if self.worst(variances(mixed)).max() <= 1:
                return mixed
        return apart


def _of_residuals(axes: Sequence[Axis], workload: _Workload, most: Sequence[float] | None, minimax: bool) -> Strategy:
    """Gaussian noise: every residual by itself, in closed form."""
    apart = [
        most is None or prod(2 * axes[axis].siblings[level].max() for axis, level in levels) <= most[family]
        for family, levels in workload.residuals
    ]
    costs = np.array(
        [
            prod(axes[axis].costs[level] for axis, level in levels) if one else 1.0
            for (_, levels), one in zip(workload.residuals, apart, strict=True)
        ]
    )

    def solve(errors: Floats) -> Floats:
        shares = np.sqrt(errors * costs)
        return np.asarray(shares / shares.sum())

    parts = np.zeros(len(costs))  # groups with a share of their own are residuals with these, which add up to it
    for (_, top), alone, at in zip(workload.tops, workload.alone, workload.places, strict=True):
        many = np.array([_groups(axes, workload.residuals[place][1]) for place in at]) / _groups(axes, top)
        parts[at] += costs[at] * many / alone
    if minimax:
        shares, _ = even_residuals(workload.rows, costs)
    else:
        shares = workload.balanced(solve, lambda shares: costs / shares, parts / parts.sum())
    shares = _in_figures(shares)
    blocks = [
        Block(family, levels, one, float(share), float(cost / share))
        for (family, levels), one, share, cost in zip(workload.residuals, apart, shares, costs, strict=True)
    ]
    return Strategy(axes, blocks, {key: [(at, 1.0)] for at, key in enumerate(workload.residuals)})


def _of_groups(axes: Sequence[Axis], workload: _Workload, minimax: bool) -> Strategy:
    """Laplace noise: groups at some levels, of which residuals are weighted means."""
    candidates = workload.residuals
    if len(candidates) > MOST_BLOCKS:
        candidates = [one for one in candidates if not any(_finer(other, one) for other in candidates)]
    # of a block with variance 1/s² on every group, what it says of a residual has a variance of so many of them
    tells = np.zeros((len(candidates), len(workload.residuals)))
    for i, block in enumerate(candidates):
        for j, residual in enumerate(workload.residuals):
            if block == residual or _finer(block, residual):
                many = _groups(axes, block[1]) / _groups(axes, residual[1])
                tells[i, j] = 1 / many
    parts, least = np.zeros(len(candidates)), 1e-3 / len(candidates)
    for top, alone in zip(workload.tops, workload.alone, strict=True):
        finer = (i for i, block in enumerate(candidates) if _finer(block, top))
        parts[candidates.index(top) if top in candidates else next(finer)] += alone**-0.5
    apart = parts / parts.sum()
    starts = [apart, np.full(len(candidates), 1 / len(candidates))]

    def solve(errors: Floats) -> Floats:
        shares = min((_shares(tells, errors, one + least) for one in starts), key=lambda s: _total(tells, errors, s))
        starts[:] = [shares]
        return shares

    if minimax:
        shares = even_groups(workload.rows, tells, [one + least for one in starts])
    else:
        shares = workload.balanced(solve, lambda shares: 1 / np.maximum(shares**2 @ tells, 1e-300), apart)
    shares = _in_figures(shares)
    used = np.flatnonzero(shares > 0)
    blocks = [Block(*candidates[i], False, float(shares[i]), float(1 / shares[i] ** 2)) for i in used]
    precision = (shares[:, None] ** 2 * tells)[used]
    precision /= precision.sum(axis=0)
    sources = {
        key: [(int(i), float(precision[i, j])) for i in np.flatnonzero(precision[:, j])]
        for j, key in enumerate(workload.residuals)
    }
    return Strategy(axes, blocks, sources)


def _in_figures(shares: Floats) -> Floats:
    """Shares of six figures: the same whatever the last bits of a calculation are, so that a request is known again."""
    rounded = np.array([float(f"{share:.6g}") for share in shares])
    return np.asarray(rounded / rounded.sum())


def _total(tells: Floats, errors: Floats, shares: Floats) -> float:
    return float((errors / np.maximum(shares**2 @ tells, 1e-300)).sum())


def _shares(tells: Floats, errors: Floats, start: Floats) -> Floats:
    """Shares of a locally least total; those that hardly matter are left out."""
    from scipy.optimize import minimize

    scale = _total(tells, errors, start / start.sum())

    def objective(logs: Floats) -> tuple[float, Floats]:
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        precisions = np.maximum(shares**2 @ tells, 1e-300)
        slopes = -2 * shares * (tells @ (errors / precisions**2))
        return float((errors / precisions).sum()) / scale, shares * (slopes - shares @ slopes) / scale

    logs = minimize(objective, np.log(start / start.sum()), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    sparse = np.where(shares > 1e-4, shares, 0.0)
    sparse /= sparse.sum()
    return sparse if _total(tells, errors, sparse) <= _total(tells, errors, shares) * (1 + 1e-6) else shares


def _finer(block: tuple[int, Levels], residual: tuple[int, Levels]) -> bool:
    """Whether groups at the levels of a block tell a residual, and are not its own."""
    levels = dict(block[1])
    return block != residual and block[0] == residual[0] and all(levels.get(a, 0) >= at for a, at in residual[1])


def below(top: Levels) -> Iterator[Levels]:
    """The residuals that groups at these levels are sums of."""
    for way in product(*(range(level + 1) for _, level in top)):
        yield tuple(sorted({(axis, at) for (axis, _), at in zip(top, way, strict=True) if at}))


def _groups(axes: Sequence[Axis], levels: Levels) -> int:
    return prod(axes[axis].sizes[level] for axis, level in levels)
