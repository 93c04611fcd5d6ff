"""The base classes of aggregates. The docstring of each aggregate is its argument.

An aggregate is computed from noisy sums (`AdditiveAggregate`, or `Estimate` for several), or from counts of the rows of
each group at public places (`GroupAggregate`), for instance by a selection among these (`SelectionAggregate`). An
additive aggregate only names its terms; what it computes from noisy numbers is post-processing. For a public table it
is exact, computed from statistics that every engine provides.

A *term* is an integer in units of 2^-`grid_of`. Adding or removing one row changes it by at most `sensitivity_of`, and
a protected unit has at most `stability_of_term` rows of it, or that weight. Both follow from the term alone: rows with
a missing value are skipped. A summand is clamped to its bounds before it is rounded and added, so privacy does not
depend on correct bounds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Price
from jostle.diagnostics import refuse
from jostle.integers import LIMIT, fixed_width
from jostle.lazy import Floats, Ints
from jostle.noise_laws import Selected
from jostle.plan import plan as p
from jostle.plan.kinds import check_depth, grid_bits, kind_of
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured, stability_of, weighted_stability_of
from jostle.privacy.mechanisms.additive import Additive, share
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection
from jostle.records import replace

Mechanism = Additive | Selection
Chosen = tuple[Any, Any]
"""An answer and the law of its noise."""


@dataclass(frozen=True)
class Aggregate(ABC):
    """An aggregate with its row expressions and public parameters."""

    expressions: tuple[p.RowExpr, ...] = ()
    numbers: tuple[float, ...] = ()

    name: ClassVar[str]
    any_kind: ClassVar[bool] = False
    """Whether its expressions may be of any kind; otherwise they are numbers in private tables."""

    @property
    def expr(self) -> p.RowExpr:
        """The first of its expressions."""
        return self.expressions[0]

    def of_cells(self, cells: Ints, group: Ints, groups: int) -> Ints | None:
        """The answers on a cube, one per group, from cells and the group of each; None if it is not defined for cubes.

        If cells change by k in ℓ₁, the answers change by at most k.
        """
        return None

    # Public tables -----------------------------------------------------------------------------------

    def statistics(self) -> tuple[p.Exact, ...]:
        """The statistics of a public table that an engine computes, by default the one of the same name."""
        return (p.Exact(self.name, next(iter(self.expressions), None), next(iter(self.numbers), None)),)

    def of_statistics(self, values: Sequence[Any]) -> Any:
        """The exact answer of one group from its statistics, which may be None."""
        return values[0]

    # Private tables ----------------------------------------------------------------------------------

    def check(self, table: Table) -> None:
        """Refuses expressions of unsupported kinds, and parameters out of range."""
        for expr in self.expressions:
            kind = kind_of(expr, table.domains)
            if kind != "number" and table.private and not self.any_kind:
                raise refuse("TypeError", f"`{self.name}` takes a number, and this is a {kind}")

    @abstractmethod
    def check_private(self, table: Table) -> None:
        """Refuses expressions that cannot be measured: without public bounds, or without candidates."""

    def terms(self, table: Table) -> tuple[p.Term, ...]:
        """The terms that an engine adds up in every group, in one pass for all aggregates of a select."""
        return ()


class AdditiveAggregate(Aggregate):
    """A sum or count with noise in every group. k changed rows may each be in another group."""

    direct: ClassVar[bool] = True

    @abstractmethod
    def measured(self, table: Table) -> tuple[p.Term | Pair, ...]:
        """The measured terms in their order: single terms, and two of them as a pair."""

    def terms(self, table: Table) -> tuple[p.Term, ...]:
        return tuple([term for one in self.measured(table) for term in terms_of(one)])

    def check_private(self, table: Table) -> None:
        for term in self.terms(table) if self.expressions else ():
            if term.expr is not None:
                kind_of(term.expr, table.domains)

    def shares(self, amount: Amount, table: Table) -> list[tuple[p.Term | Pair, Amount]]:
        """The measured terms with their equal parts of an amount."""
        measured = self.measured(table)
        sizes = list(map(len, map(terms_of, measured)))
        one = share(amount, sum(sizes))
        parts = [Amount(one.unit, one.value * size, one.delta * size) for size in sizes]
        return list(zip(measured, parts, strict=True))

    def mechanisms(self, amount: Amount, via: str | None, table: Table) -> list[tuple[p.Term | Pair, Additive]]:
        """The measured terms with the laws of their noise, within an amount."""
        shares, (l1, l2) = self.shares(amount, table), (1, 1.0)
        if via is None and (amount.unit == "rho" or amount.delta):  # only the ratio matters, the same in all groups
            l1, l2 = max([reach_of(term, table, undivided=False) for term, _ in shares], default=(1, 1))
        measures = table.measures
        return [(term, Additive.fitted(part, via, measures, l1, l2)) for term, part in shares]


class Estimator(Struct, frozen=True, eq=False):
    """The function from noisy terms to an estimate, on arrays over groups or over draws of noise.

    The caller clamps the result of `answers` to `low` … `high`, which follow from the bounds of a column. It is defined
    for at least `least` rows; `count` is the index of their number among the terms.
    """

    answers: Callable[..., Floats]
    count: int
    least: float
    low: float
    high: float


class Estimate(AdditiveAggregate):
    """An estimate from several noisy sums, each with an equal part of the amount."""

    direct = False

    @abstractmethod
    def estimator(self, table: Table) -> Estimator:
        """The estimator on the noisy terms."""


class GroupAggregate(Aggregate):
    """An aggregate of each group alone, computed from the number of its rows at each of several public places.

    A row is in one group, and at one place there. The losses of k rows in several groups add up to at most the loss of
    k rows in one.
    """

    @abstractmethod
    def candidates(self, table: Table) -> object:
        """The public candidates, or their bounds. Refused if there are none."""

    @abstractmethod
    def places(self, table: Table) -> p.Key:
        """The group key of a row's place, so that an engine counts all groups at all places in one pass."""

    @abstractmethod
    def mechanism(self, amount: Amount, via: str | None, table: Table) -> Mechanism:
        """The law of its noise, within an amount."""

    @abstractmethod
    def price(self, mechanism: Any, table: Table) -> Price:
        """The price of all draws by this law."""

    @abstractmethod
    def release(
        self, mechanism: Any, exact: Sequence[Any], noise: Noise, table: Table, undivided: bool
    ) -> tuple[list[Chosen], list[Measured]]:
        """Each group's answer with the law of its noise, if any, from the `exact` counts at its places."""

    def check_private(self, table: Table) -> None:
        check_depth(self.places(table).expr)


class SelectionAggregate(GroupAggregate):
    """A public candidate with a nearly best score, selected in every group separately (`mechanisms.selection`)."""

    @abstractmethod
    def choose(self, mechanism: Selection, exact: Ints, noise: Noise, table: Table) -> tuple[Any, Selected]:
        """The selected candidate, and the law of the selection, in rows."""

    def mechanism(self, amount: Amount, via: str | None, table: Table) -> Selection:
        if via is not None:
            raise refuse("TypeError", f"`{self.name}` is a selection, and takes no `via {via}`")
        return Selection.of(amount, table.measures)

    def price(self, mechanism: Selection, table: Table) -> Price:
        return mechanism.price

    def release(
        self, mechanism: Selection, exact: Sequence[Ints], noise: Noise, table: Table, undivided: bool
    ) -> tuple[list[Chosen], list[Measured]]:
        answers: list[Chosen] = [self.choose(mechanism, numbers, noise, table) for numbers in exact]
        law = answers[-1][1] if answers else Selected(0.0)
        return answers, [Measured(self.name, law, mechanism, 1, weighted_stability_of(table))]


MOST_BOUND = 2.0**60  # the largest summand; its square can still be added exactly


class Pair(Struct, frozen=True):
    """A sum S with terms between ±h and the count N of its rows, measured together as A = H·N + S and B = H·N − S.

    H is an integer, at least the ratio of a row's part in S to its part in N. A row that changes S by s and N by n
    changes A and B by |Hn + s| + |Hn − s| = 2·max(H|n|, |s|), at most, in ℓ₁ and ℓ₂. S = (A − B)/2 and N = (A + B)/2H
    (docs/privacy/aggregates.md). H·n is an integer, so that rounding s, also of a row with a weight, does not exceed
    it. The numbers are clamped to half of the limit first.
    """

    total: p.FixedSum
    count: p.Count

    @classmethod
    def of(cls, total: p.FixedSum, count: p.Count) -> Pair:
        """The pair on a grid with room for four times as many rows as that of the sum alone, at least 2^33."""
        return cls(replace(total, bits=total.bits - 2), count)

    @property
    def weighted(self) -> bool:
        return self.count.weighted

    def step(self, table: Table) -> int:
        """H, in units of the sum's grid for a unit of the count's."""
        return max(1, -(-sensitivity_of(self.total, table) // sensitivity_of(self.count, table)))

    def mixed(self, total: Ints, count: Ints, table: Table) -> tuple[Ints, Ints]:
        """A and B of exact sums and counts, in units of the sum's grid."""
        step = self.step(table)
        total, rows = fixed_width(total, LIMIT // 2), step * fixed_width(count, LIMIT // 2 // step)
        return rows + total, rows - total


def terms_of(term: p.Term | Pair) -> tuple[p.Term, ...]:
    """The terms that an engine adds up for a measured term or pair."""
    return (term.total, term.count) if isinstance(term, Pair) else (term,)


def grid_of(term: p.Term | Pair) -> int:
    """The bits of a term's grid: it is an integer in units of 2^-bits."""
    if isinstance(term, Pair):
        return term.total.bits
    if isinstance(term, p.FixedSum):
        return term.bits
    return p.WEIGHT_BITS if term.weighted else 0


def sensitivity_of(term: p.Term | Pair, table: Table) -> int:
    """The sensitivity to adding or removing one row, or rows of total weight 1, in units of the term's grid."""
    if isinstance(term, Pair):
        rows = term.step(table) * sensitivity_of(term.count, table)
        return 2 * max(sensitivity_of(term.total, table), rows)
    if isinstance(term, p.Count):
        return 1 << p.WEIGHT_BITS if term.weighted else 1
    most = max(abs(term.low), abs(term.high))
    whole = math.ceil(math.ldexp(most * most if term.square else most, term.bits))
    if not (term.weighted and whole):
        return whole
    # each of a person's rows is rounded separately, and the product with its weight was rounded before
    rows = max(-(-e.stability // e.weighted_stability) for e in table.exposures)
    return whole + 1 + -(-rows // 2)


def stability_of_term(term: p.Term | Pair, table: Table, undivided: bool) -> int:
    """The number of rows, or the weight, of a protected unit that can change a term."""
    if term.weighted:
        return weighted_stability_of(table)
    if isinstance(term, p.Count) and term.distinct and undivided and _counts_persons(term.expr, table):
        return 1
    return stability_of(table)


def reach_of(term: p.Term | Pair, table: Table, undivided: bool) -> tuple[int, float]:
    """The change of a term over all groups by a protected unit, in ℓ₁ and (rounded up) in ℓ₂, in units of its grid.

    A person with k rows, at most r in each group, changes groups by at most r each and by k in all. The sum of the
    squares is largest if ⌊k/r⌋ groups change by r and one by the rest.
    """
    one, stability = sensitivity_of(term, table), stability_of_term(term, table, undivided)
    each = rows_in_one(table, stability)
    if term.weighted or each == stability:
        return one * stability, one * stability
    full, rest = divmod(stability, each)
    square = full * each * each + rest * rest
    return one * stability, one * math.sqrt(square) * (1 + 2.0**-30)


def rows_in_one(table: Table, stability: int) -> int:
    limits = list(map(attrgetter("each"), table.exposures))
    return stability if None in limits or not limits else max(1, min(stability, max(limits)))


def _counts_persons(expr: p.RowExpr | None, table: Table) -> bool:
    """Whether `expr` has the values of the only protected column, without groups or parts.

    All rows of a person have the same value, so a person is one value more or less. With groups or parts a person's
    rows could be in several, and the losses would add up.
    """
    plan = p.rows_below(table.plan, (p.Filter,))
    whole = all(not e.path for e in table.exposures)
    return whole and isinstance(plan, p.Bound) and isinstance(expr, p.Column) and plan.by == (expr.name,)


def public_bounds(expr: p.RowExpr, table: Table, name: str) -> tuple[float, float]:
    """The bounds of a summand. Refused without bounds, or if they are too large to be added exactly."""
    bounds = table.bounds_of(expr)
    if bounds is None:
        raise refuse(
            "UnboundedSum", f"the terms of this {name} have no known bound",
            help="describe the column with a range, or bound them: `clamp(E, low, high)`; `bounds(E)` buys them",
        )  # fmt: skip
    if max(abs(b) for b in bounds) >= MOST_BOUND:
        raise refuse("ValueError", "the bounds of this sum are too wide to add exactly", help="clamp(x, low, high)")
    return bounds


def fixed_sum(expr: p.RowExpr, most: float, table: Table) -> p.FixedSum:
    """The sum of an expression between ±`most`."""
    return p.FixedSum(expr, -most, most, grid_for(most), weighted=table.weighted)


def sum_and_count(expr: p.RowExpr, table: Table, name: str) -> Pair:
    """The sum of an expression less the middle of its bounds, paired with the number of its rows."""
    x = Centred.of(expr, table, name)
    return Pair.of(fixed_sum(x.expr, x.half, table), p.Count(expr, weighted=table.weighted))


def grid_for(most: float) -> int:
    """The bits of the grid for values up to `most`: about 2^30 steps, so that a sum over 2^32 rows is below 2^62."""
    return grid_bits(most, 30)


class Centred(Struct, frozen=True):
    """A bounded expression less the middle of its bounds, between ±`half`, which halves its sensitivity."""

    expr: p.RowExpr
    middle: float
    half: float
    width: float

    @classmethod
    def of(cls, expr: p.RowExpr, table: Table, name: str) -> Centred:
        low, high = public_bounds(expr, table, name)
        middle = low + (high - low) / 2
        return cls(p.Apply("-", (expr, p.Constant(middle))), middle, max(high - middle, middle - low), high - low)
