"""Answers that agree with each other, from what a strategy measured, and how wide their noise is.

*From 0 on.* Of all residuals of which no group is negative those are taken that lie nearest to what was measured, each
in units of its noise: the projection onto a convex cone that the exact ones are in. The groups are those at the finest
levels that a query needs, with the cells of rows that no value fits; every answer is a sum of them. The projection is
found by its dual, which has a price λ ≥ 0 for every group (L-BFGS-B); groups are scaled to noise of 1, and those with a
price are set to 0 by conjugate gradients. What is below 0 after that is taken away by a mixture with the even table of
the same total: the result is in the cone however far the steps came.

*Half-widths* hold 95 % of a weighted sum of noises. Of Gaussian noises the sum is Gaussian. Of Laplace noises its
distribution follows from its characteristic function Π 1/(1 + bᵢ²t²), whose Fourier series on a period of 24 deviations
gives P(|sum| ≤ h) to 1e-6: what wraps around has a probability below e⁻¹⁶, and the first 400 terms are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from jostle.error_laws import sum_quantile, widest
from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats
from jostle.kernels.workloads import public_answers as pub
from jostle.kernels.workloads.joint_axes import Factor
from jostle.kernels.workloads.joint_strategy import Levels, Query, Strategy, below
from jostle.noise_laws import LEVEL, Gaussian, Laplace

MOST_GROUPS, MOST_ENTRIES = 2**19, 2**23
STEPS, ROUNDS = 500, 100
CLOSE = 1e-7  # of the noise of a group, how far the last steps may move it


@dataclass(frozen=True, slots=True)
class NonnegativeCells:
    """Cells from 0 on that all answers of one family are sums of, since one select has groups that all others join.

    `top` are these groups; `margins` are those of the other selects (`from_zero`).
    """

    family: int
    top: Levels
    margins: list[tuple[Levels, float, Floats | None]]

    @classmethod
    def of(
        cls, strategy: Strategy, queries: Sequence[Query], family: int, public: Sequence[pub.KnownGroups] = ()
    ) -> NonnegativeCells | None:
        """None where no select has all groups, or they are too many."""
        own = [query for query in queries if query.family == family]
        top = pub.common([query.top for query in own])
        exact = {one.top: one.values for one in public if one.family == family}
        variances = {q.top: float(strategy.variances(q).mean()) for q in own if q.residuals and q.top not in exact}
        whole = variances.pop(top, 0.0)
        if not whole or prod(strategy.axes[axis].sizes[level] for axis, level in top) > pub.MOST_CELLS:
            return None
        margins: list[tuple[Levels, float, Floats | None]] = [(at, v / whole, None) for at, v in variances.items()]
        margins += [(levels, 0.0, values) for levels, values in exact.items()]
        return cls(family, top, sorted(margins, key=lambda one: sum(level for _, level in one[0])))


class Nonnegative:
    """The cone of one family of a strategy, of which no select has all groups; `public` are groups of which the answers
    are known, from 0 on.

    Raises `KernelError` where its groups are too many.
    """

    def __init__(
        self, strategy: Strategy, queries: Sequence[Query], family: int, public: Sequence[pub.KnownGroups] = ()
    ) -> None:  # fmt: skip
        self.axes = strategy.axes
        self.residuals: list[Levels] = list(
            dict.fromkeys(levels for query in queries if query.family == family for levels in query.every)
        )
        self.family = family
        public = [one for one in public if one.family == family]
        self.even = pub.even_table(strategy.axes, public) if public else None
        shapes = [tuple(self.axes[axis].sizes[level] for axis, level in levels) for levels in self.residuals]
        self.shapes = shapes
        self.ends = np.cumsum([0, *(prod(shape) for shape in shapes)])
        self.variances = np.array([_variance(strategy, family, levels) for levels in self.residuals])
        self.groups = self._groups([query for query in queries if query.family == family])

    def _groups(self, queries: Sequence[Query]) -> Any:
        """What the groups that must not be negative are of the residuals: sparse, of shape (groups, residuals)."""
        from scipy.sparse import vstack

        there = set(self.residuals)
        whole = [query.top for query in queries if all(one in there for one in below(query.top))]
        tops = [top for top in dict.fromkeys(whole) if not any(pub.is_coarser(top, other) for other in whole)]
        margins: list[Mapping[int, Factor]] = [
            {axis: Factor(self.axes[axis], self.axes[axis].labels[level], self.axes[axis].sizes[level])
             for axis, level in top} for top in tops
        ]  # fmt: skip
        margins += [
            query.factors
            for query in queries
            if not any(query.top == top or pub.is_coarser(query.top, top) for top in tops)
        ]
        sizes = [prod(factor.size for factor in factors.values()) for factors in margins]
        entries = sum(
            size * prod(len(factor.weights) for factor in factors.values())
            for size, factors in zip(sizes, margins, strict=True)
        )
        if sum(sizes) > MOST_GROUPS or entries > MOST_ENTRIES:
            raise KernelError("these groups are too many for none of them to be negative")
        rows = vstack([self._rows(factors) for factors in margins]).tocsr()
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
        variances = groups.multiply(groups) @ scales
        groups = groups[variances > 0]  # the others are known
        deviations = np.sqrt(variances[variances > 0])
        measured = (groups @ estimates) / deviations
        if measured.min(initial=0.0) >= 0:
            return estimates
        transposed = groups.T.tocsr()

        def step(prices: Floats) -> Floats:
            return scales * self.centred(transposed @ (prices / deviations))

        def objective(prices: Floats) -> tuple[float, Floats]:
            at = (groups @ step(prices)) / deviations
            return float(prices @ (at / 2 + measured)), at + measured

        none = np.zeros(groups.shape[0])
        optimum = minimize(
            objective, none, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(none),
            options={"maxiter": STEPS, "maxfun": 2 * STEPS, "maxcor": 30, "ftol": 0.0, "gtol": CLOSE},
        )  # fmt: skip
        prices = self._at_zero(optimum.x, lambda x: (groups @ step(x)) / deviations, measured)
        return self._inside(estimates + step(prices))

    def _at_zero(self, prices: Floats, move: Callable[[Floats], Floats], measured: Floats) -> Floats:
        """The prices at which the groups that have one are 0, if these leave the others from 0 on as well."""
        from scipy.sparse.linalg import LinearOperator, cg

        priced = np.flatnonzero(prices > 0)

        def on_priced(values: Floats) -> Floats:
            whole = np.zeros(len(prices))
            whole[priced] = values
            return move(whole)[priced]

        system = LinearOperator((len(priced), len(priced)), matvec=on_priced, dtype=float)
        solved, _ = cg(system, -measured[priced], x0=prices[priced], rtol=1e-15, maxiter=ROUNDS)
        exact = np.zeros(len(prices))
        exact[priced] = np.maximum(0.0, solved)
        low, before = ((move(x) + measured).min() for x in (exact, prices))
        return exact if low >= before else prices

    def _inside(self, residuals: Floats) -> Floats:
        """These residuals mixed with as little of the even table as leaves no group negative.

        A group that is 0 in the even table, since one that it is part of is known to be, is 0 anyway (`Estimates`).
        """
        even = self.centre(residuals)
        values, room = self.groups @ residuals, self.groups @ even
        lacking = np.where(room > 0, np.maximum(0.0, -values), 0.0)
        if not lacking.any():
            return residuals
        part = float((lacking / (lacking + np.where(room > 0, room, 1.0))).max())
        return (1 - part) * residuals + part * even

    def centre(self, residuals: Floats) -> Floats:
        """The residuals of the most even table that has what is known, or else the total."""
        even, total = np.zeros(len(residuals)), self.ends[self.residuals.index(())]
        if self.even is None:
            even[total] = max(residuals[total], float(np.sqrt(self.variances[self.residuals.index(())])))
            return even
        levels, cells = self.even
        there = set(below(levels))
        for one, start, end in zip(self.residuals, self.ends, self.ends[1:], strict=False):
            if one in there:
                even[start:end] = pub.residual_of(self.axes, levels, cells, one).ravel()
        return even


def _variance(strategy: Strategy, family: int, levels: Levels) -> float:
    """Of the noise of the estimate of a residual, in the units of the strategy: before it is centred."""
    own = prod(strategy.axes[axis].sizes[level] for axis, level in levels)
    variance = 0.0
    for at, weight in strategy.sources.get((family, levels), ()):  # none, if it is known
        block = strategy.blocks[at]
        many = prod(strategy.axes[axis].sizes[level] for axis, level in block.levels) / own
        variance += weight**2 * block.variance * many
    return variance


LAST_BITS = 1e-12


class Estimates:
    """Estimates of all residuals: every answer is made of these same numbers.

    `measured` has an array for each block of the strategy, in the shape of its groups, in the units of what is asked;
    `public` are residuals that are known.
    """

    def __init__(
        self, strategy: Strategy, measured: Sequence[Floats], public: Mapping[tuple[int, Levels], Floats] | None = None
    ) -> None:  # fmt: skip
        self.strategy = strategy
        self.cones: set[int] = set()  # families of which no group is negative, but for the last bits of a sum
        self.whole: set[int] = set()  # families of integers
        self._centres: dict[tuple[int, Levels], Floats] = {}
        self._of = dict(public or {}) | {
            (family, levels): np.sum(
                [
                    weight * pub.residual_of(strategy.axes, strategy.blocks[at].levels, measured[at], levels)
                    for at, weight in sources
                ],
                axis=0,
            )
            for (family, levels), sources in strategy.sources.items()
        }

    def projected(self, cones: Sequence[Nonnegative | NonnegativeCells]) -> Estimates:
        """The nearest ones of which no group of these families is negative."""
        result = copy(self)
        result._of, result.cones = dict(self._of), {cone.family for cone in cones}
        for cone in cones:
            if isinstance(cone, NonnegativeCells):
                cells = self._cells(cone.family, cone.top)
                cells = pub.from_zero(self.strategy.axes, cone.top, cells, cone.margins)
                result._set_cells(cone.family, cone.top, cells)
                continue
            parts = cone.nearest(np.concatenate([self._of[cone.family, levels].ravel() for levels in cone.residuals]))
            even = cone.centre(parts) if cone.even is not None else None
            for levels, shape, start, end in zip(cone.residuals, cone.shapes, cone.ends, cone.ends[1:], strict=False):
                result._of[cone.family, levels] = parts[start:end].reshape(shape)
                if even is not None:
                    result._centres[cone.family, levels] = even[start:end].reshape(shape)
        return result

    def rounded(self, family: int, steps: Sequence[Levels], public: Sequence[pub.KnownGroups]) -> Estimates:
        """Those nearby of which all groups at the last levels of a path, that all answers of a family are sums of, are
        integers; groups on the path are each less than one from their share of the integer above."""
        values = {one.top: one.values for one in public if one.family == family}
        top = steps[-1]
        cells = self._cells(family, top)
        result = copy(self)
        result.whole, result._of = {*self.whole, family}, dict(self._of)
        cells = pub.integers(self.strategy.axes, cells, top, steps, values, family in self.cones)
        result._set_cells(family, top, cells)
        return result

    def _cells(self, family: int, top: Levels) -> Floats:
        """The answers of all groups at these levels."""
        axes = self.strategy.axes
        whole = {axis: Factor(axes[axis], axes[axis].labels[level], axes[axis].sizes[level]) for axis, level in top}
        return self.answers(Query(family, whole, 1.0))

    def _set_cells(self, family: int, top: Levels, cells: Floats) -> None:
        """Takes the residuals of a family from all groups at these levels."""
        for of, levels in self._of:
            if of == family:
                self._of[of, levels] = pub.residual_of(self.strategy.axes, top, cells, levels)

    def answers(self, query: Query) -> Floats:
        """Of a query, in the shape of its factors, the axes in order."""
        total = self._sums(query, self._of)
        if query.family in self.whole:
            return np.rint(total) + 0.0
        if query.family not in self.cones:
            return total
        nearby = LAST_BITS * total.max()
        if (query.family, ()) in self._centres:  # what a group that is known to be 0 has in it
            even = self._sums(query, self._centres)
            total = np.where(even > LAST_BITS * even.max(), total, 0.0)
        return np.where(total > nearby, total, 0.0)

    def public(self, query: Query) -> Floats:
        """What is known of the answers of a query, the rest being 0."""
        return self._sums(query, {one: values for one, values in self._of.items() if one not in self.strategy.sources})

    def _sums(self, query: Query, of: Mapping[tuple[int, Levels], Floats]) -> Floats:
        axes = sorted(query.factors)
        total = np.zeros([query.factors[axis].size for axis in axes])
        for residual in query.every:
            if (query.family, residual) not in of:
                continue
            levels = dict(residual)
            values = of[query.family, residual]
            values = values.reshape(
                [self.strategy.axes[axis].sizes[levels.get(axis, 0)] if axis in levels else 1 for axis in axes]
            )
            for dimension, axis in enumerate(axes):
                weights = query.factors[axis].weights[levels.get(axis, 0)]
                lines = np.moveaxis(values, dimension, 0)
                answered = weights @ lines.reshape(len(lines), -1)
                values = np.moveaxis(answered.reshape(-1, *lines.shape[1:]), 0, dimension)
            total += values
        return total


PERIOD, TERMS = 24.0, 400
SAFE = 1 + 1e-5
"""What half-widths are calculated to."""


def laplace_half_width(deviations: Floats) -> float:
    """h with P(|Σ noise| ≤ h) = 95 %, of independent Laplace noises with these deviations, of shape (noises,)."""
    whole = math.sqrt(float(deviations @ deviations))
    if not whole:
        return 0.0
    parts, many = np.unique((deviations / whole).round(9), return_counts=True)
    frequencies, sums, places = _series()
    logs = np.log1p(np.multiply.outer(frequencies**2, parts**2 / 2)) @ many
    inside = 2 * places / PERIOD + sums @ np.exp(-logs)
    return whole * float(np.interp(LEVEL, inside, places))


@lru_cache(maxsize=1)
def _series() -> tuple[Floats, Floats, Floats]:
    """The frequencies, what each adds to P(|sum| ≤ h) at some places h, and these places, all in deviations."""
    k = np.arange(1, TERMS + 1)
    frequencies = 2 * np.pi * k / PERIOD
    places = np.linspace(sum_quantile(Gaussian) - 0.01, sum_quantile(Laplace) + 0.01, 60)
    sums: Floats = np.asarray(2 / (np.pi * k) * np.sin(np.multiply.outer(places, frequencies)), dtype=float)
    return np.asarray(frequencies, dtype=float), sums, places


def grid_step(weights: Floats) -> float:
    """The largest number of which all weights are whole multiples, 0 where it is below a thousandth of the largest."""
    values = np.unique(np.abs(weights[weights != 0]).round(12))
    if not values.size or len(values) > 100:
        return 0.0
    least, step = float(values[-1]) / 1000, float(values[0])
    for value in values[1:].tolist():
        while value > least * 1e-3:
            step, value = value, step % value
            if value > step * (1 - 1e-6):
                value = 0.0
        if step < least:
            return 0.0
    return step


def whole_width(half_width: float, step: float) -> float:
    """A half-width of continuous noise that suffices for `half_width` of noise on a grid.

    With h the last place of the grid up to `half_width`, discrete noise is in −h … h with a probability no smaller than
    that with which its continuous sister lies within h and half a step.
    """
    return (math.floor(half_width / step * (1 + 1e-12)) + 0.5) * step if step else half_width


MOST = 200  # answers whose law is calculated; of others its half-width from above


@dataclass(frozen=True, slots=True)
class Wish:
    """The half-width that is wanted of every answer of a query, and the grid of what is measured.

    Both are in deviations of the noise of a count that has the whole amount.
    """

    query: Query
    half_width: float
    step: float


def allowed_noise(strategy: Strategy, wishes: Sequence[Wish], kind: type[Laplace | Gaussian]) -> float:
    """By what all noise may be multiplied, at most, so that every answer is within its wish with 95 %.

    Answers are looked at from the worst on, one for all that are alike; those that are far from the worst are as far
    from it under any law.
    """
    waiting: list[tuple[float, int, int]] = []
    for at, wish in enumerate(wishes):
        axes = sorted(wish.query.factors)
        shape = [wish.query.factors[axis].size for axis in axes]
        deviations = np.sqrt(strategy.variances(wish.query))
        least = max(wish.half_width - wish.step / 2, wish.step / 2) / sum_quantile(kind)
        for where in product(*(wish.query.factors[axis].alike[0].tolist() for axis in axes)):
            if deviations[where]:
                waiting.append((least / float(deviations[where]), at, int(np.ravel_multi_index(where, shape))))
    waiting.sort()
    most = np.inf
    for n, (bound, at, place) in enumerate(waiting):
        if bound >= most:
            break
        most = min(most, _allowed(strategy, wishes[at], place, kind) if n < MOST else bound)
    return float(most)


def _allowed(strategy: Strategy, wish: Wish, place: int, kind: type[Laplace | Gaussian]) -> float:
    """The same for one answer."""
    deviations, grid = [], []
    for at, weights in strategy.coefficients(wish.query, place):
        block = strategy.blocks[at]
        deviations.append(np.abs(weights[weights != 0]) * block.variance**0.5)
        whole = not (block.residual and block.levels)
        grid.append(np.abs(weights[weights != 0]) * (wish.step if whole else 0.0))
    each: Floats = np.concatenate(deviations)
    steps: Floats = np.concatenate(grid)
    if len(each) == 1 and steps[0]:
        law = kind(float(each[0]) / kind(1.0).deviation, float(steps[0]))
        return widest(law, wish.half_width).scale / law.scale
    width = laplace_half_width(each) if kind is Laplace else kind(float(np.sqrt(each @ each))).half_width()
    return whole_width(wish.half_width, grid_step(steps) if steps.all() else 0.0) / (width * SAFE)
