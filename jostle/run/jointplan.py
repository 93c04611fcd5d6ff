"""What a `jointly` block measures: the strategy for all of its selects, its price, and the answers made of it.

Where the block has an amount, the strategy is that of the least total error. Where errors are wanted, it is that of the
least worst one, and the amount is the least with which every answer is as close as wanted. All of it follows from
public facts, before anything is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import QUANTA, Amount, as_float
from jostle.diagnostics import Refusal, refuse
from jostle.error_laws import LaplaceSum, sum_quantile
from jostle.formulas import Joint, Noised, Projected, Vector
from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats
from jostle.kernels.workloads.joint_answers import Estimates, Nonnegative, NonnegativeCells, Wish, allowed_noise
from jostle.kernels.workloads.joint_strategy import Levels, Query, Strategy, below, strategy_for
from jostle.kernels.workloads.public_answers import MOST_CELLS, KnownGroups, common, known_residuals, nested, path
from jostle.lazy import np
from jostle.noise_laws import Gaussian, Laplace
from jostle.plan.cuts import expression
from jostle.plan.plan import Count, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import stability_of
from jostle.privacy.measurements.aggregates import aggregate as agg
from jostle.privacy.measurements.joint import MOST_SPREAD, Block, JointBlocks
from jostle.privacy.measurements.selects import Answer, Request, key_columns
from jostle.privacy.mechanisms.additive import Additive, share
from jostle.records import replace
from jostle.run.answers import of_terms
from jostle.run.jointworkload import JointWorkload, Sums, coarser
from jostle.run.sequences import of_places
from jostle.source import Span

MOST_AMOUNT = 10**6 * QUANTA
SAFE = 1 - 1e-9  # of the noise that is allowed, for what its scale is rounded up by


class JointQuery(Struct, frozen=True):
    """A select of a block: how many parts of the amount it counts for, or the half-width that its answers may have.

    `given` are its answers where they are public, a number for each group.
    """

    request: Request
    weight: float = 1.0
    target: float | None = None
    span: Span | None = None
    given: tuple[float, ...] | None = None


class Shape(Struct, frozen=True):
    """What the answers of a block are besides near to what was measured: from 0 on, integers."""

    nonnegative: bool = False
    whole: bool = False


PLAIN = Shape()


class JointPlan(Struct, frozen=True, eq=False):
    """The strategy of a block, what of it is measured, and every select's queries with the standard errors.

    `alone` is the standard error that each has with its part of the amount for itself. `cones` are those of families of
    which no answer may be negative.
    """

    selects: tuple[JointQuery, ...]
    strategy: Strategy
    measurement: JointBlocks
    queries: tuple[tuple[Query, ...], ...]
    deviations: tuple[tuple[Any, ...], ...]
    alone: tuple[tuple[float, ...], ...]
    known: tuple[KnownGroups, ...] = ()
    cones: tuple[Nonnegative | NonnegativeCells, ...] = ()
    whole: tuple[tuple[int, list[Levels]], ...] = ()

    @classmethod
    def of(
        cls, workload: JointWorkload, block: Sequence[JointQuery], amount: Amount, via: str | None, total: bool = False,
        shape: Shape = PLAIN,
    ) -> JointPlan:  # fmt: skip
        """What an amount buys; with `total` the least total squared error, whatever single answers have alone.

        `nonnegative`: no count is below 0, nor a sum of what is not; `whole`: counts are integers. Refuses what is too
        large; from public facts alone, as `within`.
        """
        how = Additive.of(amount, via, workload.table.measures)
        units = _Units.of(workload, how, block)
        plan = cls._build(units, workload, block, via, total=total)
        cones = units.cones(plan) if shape.nonnegative else ()
        return replace(plan, cones=cones, whole=units.whole(plan, workload) if shape.whole else ())

    @classmethod
    def within(cls, workload: JointWorkload, block: Sequence[JointQuery], amount: Amount, via: str | None) -> JointPlan:
        """What buys the wanted errors: of all amounts of the unit, and the delta, of `amount` the least."""
        units = _Units.of(workload, Additive.of(amount, via, workload.table.measures), block)
        kind = units.how.kind
        wishes = []
        for one, sums_of in zip(block, workload.selects, strict=True):
            for sums in sums_of:
                unit, step = units.deviations[sums.term], units.step(sums.term)
                if unit:
                    wide = (one.target or math.inf) / unit
                    query = units.query(sums, (wide / sum_quantile(kind)) ** 2)
                    wishes += [Wish(query, wide, step / unit)] if query.residuals else []
        strategy = units.strategy(workload, [wish.query for wish in wishes], True)
        allowed = allowed_noise(strategy, wishes, kind)
        least = _least_amount(units.how, via, workload.table, allowed * SAFE)
        units = _Units.of(workload, Additive.of(least, via, workload.table.measures), block)
        return cls._build(units, workload, block, via, strategy)

    @classmethod
    def _build(
        cls, units: _Units, workload: JointWorkload, block: Sequence[JointQuery], via: str | None,
        strategy: Strategy | None = None, total: bool = False,
    ) -> JointPlan:  # fmt: skip
        table, amount, terms = workload.table, units.how.amount, units.terms
        parts = _parts(block)
        alone = tuple(
            _alone(one.request, [sums.term for sums in sums_of], _part(amount, one.weight / parts), via, table)
            for one, sums_of in zip(block, workload.selects, strict=True)
        )
        queries = tuple(
            tuple(
                units.query(sums, (other / (units.deviations[sums.term] or other or 1.0)) ** 2 or 1.0)
                for sums, other in zip(sums_of, others, strict=True)
            )
            for sums_of, others in zip(workload.selects, alone, strict=True)
        )  # fmt: skip
        if strategy is None:
            pairs = ((one, query) for one, some in zip(block, queries, strict=True) for query in some)
            counted = [replace(query, alone=1 / one.weight) if total else query for one, query in pairs]
            strategy = units.strategy(workload, counted, False, not total)
        blocks = [Block(units.grids[terms[one.family]], one.levels, one.residual, one.share) for one in strategy.blocks]
        deviations = tuple(
            tuple(
                sums.in_order(np.sqrt(strategy.variances(query)) * units.deviations[sums.term])
                for query, sums in zip(some, sums_of, strict=True)
            )
            for some, sums_of in zip(queries, workload.selects, strict=True)
        )
        measurement = JointBlocks.of(table, workload.axes, blocks, amount, via)
        return cls(tuple(block), strategy, measurement, queries, deviations, alone, units.known)

    def trace_fields(self, workload: JointWorkload) -> dict[str, object]:
        """What a trace shows: what is measured, and the largest error of each select over what it has alone."""
        blocks = sorted(self.measurement.blocks, key=lambda block: -block.share)[:20]
        ratios = [
            float(deviation.max() / alone)
            for some, others in zip(self.deviations, self.alone, strict=True)
            for deviation, alone in zip(some, others, strict=True)
            if alone and deviation.size
        ]
        shares = [
            {
                "of": _term_name(block.term),
                "by": [workload.names[axis][level - 1] for axis, level in block.levels],
                "share": block.share,
            }
            for block in blocks
        ]
        gain = {"largest": max(ratios), "mean": math.fsum(ratios) / len(ratios)} if ratios else {}
        wishes = sorted({one.target for one in self.selects if one.target is not None})
        return {"selects": len(self.queries), "blocks": len(self.strategy.blocks), "strategy": shares, "of_alone": gain,
                "apart": self._apart(), "wanted": wishes} | self._told_of_shape()  # fmt: skip

    def _told_of_shape(self) -> dict[str, object]:
        public = sum(one.given is not None for one in self.selects)
        fields = {"nonnegative": bool(self.cones), "whole": bool(self.whole), "given": public}
        return {name: value for name, value in fields.items() if value}

    def _apart(self) -> float:
        """About how much all selects would take with amounts of their own, for the largest errors that they have."""
        amount = self.measurement.how.amount
        power = 2 if amount.unit == "rho" else 1
        parts, total = _parts(self.selects), 0.0
        for one, some, others in zip(self.selects, self.deviations, self.alone, strict=True):
            pairs = zip(some, others, strict=True)
            more = [other / float(error.max()) for error, other in pairs if error.size and error.max() > 0]
            total += one.weight / parts * max(more, default=0.0) ** power
        return total * as_float(amount.value)

    def answers(self, workload: JointWorkload, measured: list[Floats]) -> list[Answer]:
        """The answers of all selects, numbers that know their noise."""
        residuals = known_residuals(self.strategy.axes, self.known)
        estimates, kind = Estimates(self.strategy, measured, residuals), self.measurement.how.kind
        projected = estimates.projected(self.cones)
        for family, steps in self.whole:
            projected = projected.rounded(family, steps, self.known)
        scales = [linear.law.scale for linear in self.measurement.linear]
        vectors = [Vector(values.ravel(), kind(scale)) for values, scale in zip(measured, scales, strict=True)]
        result = []
        for one, queries, sums_of, deviations in zip(
            self.selects, self.queries, workload.selects, self.deviations, strict=True
        ):
            request = one.request
            columns = [
                self._noised(vectors, query, sums, estimates, errors, one.target) if one.given is None else one.given
                for query, sums, errors in zip(queries, sums_of, deviations, strict=True)
            ]
            for at, (query, sums) in enumerate(zip(queries, sums_of, strict=True) if one.given is None else ()):
                if query.family in projected.cones | projected.whole:
                    low = 0.0 if query.family in projected.cones else -math.inf
                    values, is_whole = sums.in_order(projected.answers(query)), query.family in projected.whole
                    columns[at] = _nearby(columns[at], values, low, is_whole) if query.residuals else values.tolist()
            keys = request.key_columns(key_columns([list(key.values) for key in request.keys]))
            result.append(Answer(keys, _aggregated(request, columns)))
        return result

    def _noised(
        self, vectors: Sequence[Vector], query: Query, sums: Sums, estimates: Estimates, errors: Floats,
        target: float | None,
    ) -> Sequence[float]:  # fmt: skip
        """The answers of a query, each with the law of its own noise and the noises that it is made of, if any."""
        values = sums.in_order(estimates.answers(query))
        if not query.residuals:
            return [round(value, 9) for value in values.tolist()]
        kind, places = self.measurement.how.kind, sums.in_order(np.arange(values.size))
        public = sums.in_order(estimates.public(query))

        def noises(place: int) -> list[tuple[Vector, object]]:
            return [(vectors[at], weights) for at, weights in self.strategy.coefficients(query, place)]

        def law(error: float) -> Laplace | Gaussian:
            wide = min(sum_quantile(kind) * error, target or math.inf)
            return LaplaceSum(error / math.sqrt(2), wide=wide) if kind is Laplace else kind(wide / sum_quantile(kind))

        def noised(at: int) -> Noised:
            joint = Joint(law(float(errors[at])), int(places[at]), noises, float(public[at]))
            return Noised.of(float(values[at]), joint)

        return of_places(values.size, noised, values)


def _nearby(column: Sequence[Any], values: Floats, low: float, whole: bool) -> Sequence[float]:
    """The values in place of those of a column, with the laws of its noise and none below `low`."""
    return of_places(len(column), lambda at: Noised.of(float(values[at]), Projected(column[at], low, whole)), values)


def is_from_zero(term: Term) -> bool:
    """Whether no row takes anything from what a term adds up."""
    return isinstance(term, Count) or bool(getattr(term, "square", False)) or term.low >= 0


class _Units(Struct, frozen=True, eq=False):
    """The terms of a workload, their grids, and the standard deviation of each if it has the whole amount; what of
    them is `known`."""

    how: Additive
    terms: list[Term]
    grids: dict[Term, Term]
    deviations: dict[Term, float]
    most: list[float]
    known: tuple[KnownGroups, ...]
    residuals: dict[int, frozenset[Levels]]

    @classmethod
    def of(cls, workload: JointWorkload, how: Additive, block: Sequence[JointQuery]) -> _Units:
        terms = list(dict.fromkeys(sums.term for sums_of in workload.selects for sums in sums_of))
        grids = {term: coarser(term) if how.kind is Gaussian else term for term in terms}
        deviations = {term: _deviation(how, grids[term], workload.table) for term in terms}
        most = [MOST_SPREAD / max(1, agg.sensitivity_of(grids[term], workload.table)) for term in terms]
        groups = _groups(workload, block, terms)
        of = {family: frozenset(level for one in groups if one.family == family for level in below(one.top))
              for family in range(len(terms))}  # fmt: skip
        return cls(how, terms, grids, deviations, most, groups, of)

    def query(self, sums: Sums, alone: float) -> Query:
        """What the sums of a select ask."""
        family = self.terms.index(sums.term)
        return Query(family, sums.factors, alone, self.residuals[family])

    def step(self, term: Term) -> float:
        """Of the grid of a term, in the units of what is asked."""
        return 2.0 ** -agg.grid_of(self.grids[term])

    def cones(self, plan: JointPlan) -> tuple[Nonnegative | NonnegativeCells, ...]:
        """Those of counts, and of sums of what is not negative."""
        queries = [query for some in plan.queries for query in some]
        families = (at for at, term in enumerate(self.terms) if is_from_zero(term))
        try:
            facts = [(plan.strategy, queries, family, plan.known) for family in families]
            return tuple([NonnegativeCells.of(*one) or Nonnegative(*one) for one in facts])
        except KernelError as fault:
            help = "group more coarsely, divide the block in two, or leave `nonnegative` out"
            raise refuse("ValueError", str(fault), help=help) from None

    def whole(self, plan: JointPlan, workload: JointWorkload) -> tuple[tuple[int, list[Levels]], ...]:
        """The families of counts, and the levels through which their groups become integers, up to those that all their
        answers are sums of; refused where there are none."""
        result: list[tuple[int, list[Levels]]] = []
        for family in (at for at, term in enumerate(self.terms) if isinstance(term, Count)):
            queries = [query for some in plan.queries for query in some if query.family == family]
            top = common([query.top for query in queries])
            if not {*below(top)} <= {levels for query in queries for levels in query.every}:
                names = " and ".join([f"`{workload.names[axis][level - 1]}`" for axis, level in top])
                raise refuse("TypeError", "no select of this block has the groups that all its counts are sums of",
                             help=f"add one that groups by {names}, or leave `whole` out")  # fmt: skip
            if math.prod(plan.strategy.axes[axis].sizes[level] for axis, level in top) > MOST_CELLS:
                raise refuse("ValueError", "these groups are too many to be integers that add up",
                             help="group more coarsely, or leave `whole` out")  # fmt: skip
            through = [one.top for one in plan.known if one.family == family]
            try:
                steps = path(top, through)
            except KernelError as fault:
                raise refuse("TypeError", str(fault), help="give nested totals, or leave `whole` out") from None
            with suppress(KernelError):  # what is given may divide the levels of the selects crosswise
                steps = path(top, [*through, *nested(plan.strategy.axes, [query.top for query in queries])])
            result.append((family, steps))
        return tuple(result)

    def strategy(self, workload: JointWorkload, queries: Sequence[Query], minimax: bool, fair: bool = True) -> Strategy:
        queries = [query for query in queries if query.residuals]
        if not queries:
            raise refuse("TypeError", "every answer of this block follows from what is given",
                         help="add a select that is to be measured, or leave the block out")  # fmt: skip
        try:
            return strategy_for(workload.trees, queries, self.how.kind is Gaussian, self.most, minimax, fair)
        except KernelError as fault:
            raise refuse("ValueError", str(fault), help="group more coarsely, or divide the block in two") from None


def _groups(workload: JointWorkload, block: Sequence[JointQuery], terms: Sequence[Term]) -> tuple[KnownGroups, ...]:
    """The groups whose answers are given; refused where they are not of all rows, or disagree."""
    result: list[KnownGroups] = []
    for one, sums_of in zip(block, workload.selects, strict=True):
        if one.given is None:
            continue
        (sums,) = sums_of
        values = np.zeros(len(one.given))
        values[sums.in_order(np.arange(len(values)))] = one.given
        query = Query(terms.index(sums.term), sums.factors, 1.0)
        try:
            values = values.reshape([sums.factors[axis].size for axis in sorted(sums.factors)])
            result.append(KnownGroups(workload.trees, query, values))
        except KernelError as fault:
            help = "every row is in one of the groups where their columns are described as `never missing`"
            raise refuse("DataError", f"what is given cannot be used: {fault}", one.span, help=help) from None
        try:
            known_residuals(workload.trees, result)
        except KernelError as fault:
            help = "give totals that add up to each other"
            raise refuse("DataError", str(fault), one.span, help=help) from None
    return tuple(result)


def _parts(block: Sequence[JointQuery]) -> float:
    """How many parts the amount has: those of what is measured."""
    return math.fsum(one.weight for one in block if one.given is None) or 1.0


def _least_amount(how: Additive, via: str | None, table: Table, allowed: float) -> Amount:
    """The least amount of four figures whose noise is `allowed` times that of `how`, at most.

    What costs much is to find the noise of an amount, so the search starts near by, and looks at amounts of four
    figures alone: 1, 2, …, 9999, 10000, 10010, ….
    """
    wide = how.law(1.0, 1.0).scale * allowed

    def amount(number: int) -> int:
        above, digits = divmod(max(0, number - 1000), 9000)
        return number if number < 1000 else (1000 + digits) * 10**above

    def fits(number: int) -> bool:
        value = amount(number)
        try:
            return (
                value >= MOST_AMOUNT
                or Additive.of(replace(how.amount, value=value), via, table.measures).law(1.0, 1.0).scale <= wide
            )
        except Refusal:  # too little for this noise
            return False

    near = min(max(1.0, how.amount.value / allowed), float(MOST_AMOUNT))
    figures = max(0, int(math.log10(near)) - 3)
    high = int(near / 10**figures) + 9000 * figures
    low, step = 0, 16
    if fits(high):
        while high > 1 and fits(max(1, high - step)):
            high, step = max(1, high - step), 4 * step
        low = max(0, high - step)
    else:
        while not fits(high):
            low, high, step = high, high + step, 4 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return replace(how.amount, value=amount(high))


def _part(amount: Amount, share: float) -> Amount:
    return Amount(amount.unit, int(amount.value * share), int(amount.delta * share))


def _deviation(how: Additive, term: Term, table: Table) -> float:
    """The standard deviation of a term that has the whole amount, in the units of what is asked."""
    reach = agg.sensitivity_of(term, table) * stability_of(table)
    return how.law(reach, reach).smooth.deviation * 2.0 ** -agg.grid_of(term)


def _alone(request: Request, terms: Sequence[Term], part: Amount, via: str | None, table: Table) -> tuple[float, ...]:
    """The same of each term of a select that has a part of the amount for itself."""
    bought = (term for aggregate in request.aggregates for term in aggregate.terms(request.table))
    amounts = _term_amounts(request.aggregates, request.table, part)
    pairs = [(term, amounts[own]) for term, own in zip(terms, bought, strict=True)]
    return tuple(_deviation(Additive.fitted(one, via, table.measures), term, table) for term, one in pairs)


def _term_amounts(aggregates: Sequence[agg.Aggregate], table: Table, amount: Amount) -> dict[Term, Amount]:
    """The amount that each term would have by itself with the noise that it has, where aggregates share one equally."""
    part = share(amount, max(1, len(aggregates)))
    amounts: dict[Term, Amount] = {}
    for aggregate in aggregates:
        for one, own in aggregate.shares(part, table) if isinstance(aggregate, agg.AdditiveAggregate) else ():
            value = own.value
            if isinstance(one, agg.Pair):
                value = value // 2 if own.unit == "rho" else math.isqrt(value * value // 2)
            for term in agg.terms_of(one):
                old = amounts.get(term, Amount(own.unit, 0, 0))
                amounts[term] = Amount(own.unit, old.value + value, old.delta + own.delta)
    return amounts


def _aggregated(request: Request, columns: list[Sequence[float]]) -> list[Sequence[object]]:
    """The aggregates of a select from the sums that each is made of."""
    terms = iter(columns)
    values: list[Sequence[object]] = []
    for aggregate in request.aggregates:
        own = [next(terms) for _ in aggregate.terms(request.table)]
        values.append(of_terms(aggregate, request.table, own))
    return values


def _term_name(term: Term) -> str:
    if term.expr is None:
        return "rows"
    of = expression(term.expr)
    return (
        of if isinstance(term, Count) else f"sum of {of}" if not getattr(term, "square", False) else f"squares of {of}"
    )
