"""Exact sums and counts of rows, and how far rows move them.

A term is a whole number in units of 2^-`grid_of`. One row more or less moves it by at most `sensitivity_of`, and a
protected unit has at most `stability_of_term` rows of it, or as much weight. Both follow from the term alone: rows
where its expression is none are skipped, and a summand is clamped to its bounds before it is rounded and added, so that
nothing rests on the bounds being right.
"""

from __future__ import annotations

import math
from operator import attrgetter

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.integers import LIMIT, fixed_width
from jostle.lazy import Ints
from jostle.plan.kinds import bounds_of, grid_bits
from jostle.plan.plan import WEIGHT_BITS, Apply, Bound, Column, Constant, Count, Filter, FixedSum, RowExpr, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import stability_of, weighted_stability_of
from jostle.records import replace

MOST_BOUND = 2.0**60  # of a summand: its square is still added exactly


class Pair(Struct, frozen=True):
    """A sum S between ±h a row and the count N of its rows, measured together as A = H·N + S and B = H·N − S.

    H is a whole number of at least what a row adds to S over what it adds to N. A row that moves S by s and N by n
    moves A and B by |Hn + s| + |Hn − s| = 2·max(H|n|, |s|) in all, in ℓ₁ and in ℓ₂ at most. S = (A − B)/2 and
    N = (A + B)/2H (docs/privacy/aggregates.md). The numbers are brought within half of the limit first.
    """

    total: FixedSum
    count: Count

    @classmethod
    def of(cls, total: FixedSum, count: Count) -> Pair:
        """The pair on a grid that has room for four times as many rows as that of the sum alone, 2^33 and more."""
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


def terms_of(term: Term | Pair) -> tuple[Term, ...]:
    """What an engine adds up for it."""
    return (term.total, term.count) if isinstance(term, Pair) else (term,)


def grid_of(term: Term | Pair) -> int:
    """A term is an integer in units of 2^-this."""
    if isinstance(term, Pair):
        return term.total.bits
    if isinstance(term, FixedSum):
        return term.bits
    return WEIGHT_BITS if term.weighted else 0


def sensitivity_of(term: Term | Pair, table: Table) -> int:
    """For one row more or less, or for rows whose weights are 1 in all; in units of the term's grid."""
    if isinstance(term, Pair):
        rows = term.step(table) * sensitivity_of(term.count, table)
        return 2 * max(sensitivity_of(term.total, table), rows)
    if isinstance(term, Count):
        return 1 << WEIGHT_BITS if term.weighted else 1
    most = max(abs(term.low), abs(term.high))
    whole = math.ceil(math.ldexp(most * most if term.square else most, term.bits))
    if not (term.weighted and whole):
        return whole
    # each of a person's rows is rounded by itself, and the product with its weight has rounded before
    rows = max(-(-e.stability // e.weighted_stability) for e in table.exposures)
    return whole + 1 + -(-rows // 2)


def stability_of_term(term: Term | Pair, table: Table, undivided: bool) -> int:
    """How many rows of a protected unit, or how much weight, a term can be moved by."""
    if term.weighted:
        return weighted_stability_of(table)
    if isinstance(term, Count) and term.distinct and undivided and _counts_persons(term.expr, table):
        return 1
    return stability_of(table)


def reach_of(term: Term | Pair, table: Table, undivided: bool) -> tuple[int, float]:
    """How far a protected unit moves a term over all groups, in ℓ₁ and (rounded up) in ℓ₂, in units of its grid.

    Of k rows that a person has, at most r in each group, the groups change by at most r each and by k in all. The sum
    of their squares is largest where ⌊k/r⌋ of them change by r and one by what is left.
    """
    one, stability = sensitivity_of(term, table), stability_of_term(term, table, undivided)
    each = _each(table, stability)
    if term.weighted or each == stability:
        return one * stability, one * stability
    full, rest = divmod(stability, each)
    square = full * each * each + rest * rest
    return one * stability, one * math.sqrt(square) * (1 + 2.0**-30)


def rows_by_key(table: Table) -> tuple[int, int]:
    """How many rows a protected unit has, and how many of them in one group of the select."""
    stability = stability_of(table)
    return stability, _each(table, stability)


def _each(table: Table, stability: int) -> int:
    limits = list(map(attrgetter("each"), table.exposures))
    return stability if None in limits or not limits else max(1, min(stability, max(limits)))


def _counts_persons(expr: RowExpr | None, table: Table) -> bool:
    """Whether the values of `expr` are those of the one protected column, undivided.

    All rows of a person have the same value, so that the person is one value more or less. In groups or parts
    their rows might be in each, and the losses would add up to more than the largest.
    """
    plan = table.plan
    while isinstance(plan, Filter):
        plan = plan.source
    whole = all(not e.path for e in table.exposures)
    return whole and isinstance(plan, Bound) and isinstance(expr, Column) and plan.by == (expr.name,)


def public_bounds(expr: RowExpr, table: Table, name: str) -> tuple[float, float]:
    """The bounds of what is added; refused where there are none that can be added exactly."""
    bounds = bounds_of(expr, table.domains)
    if bounds is None or not all(math.isfinite(b) for b in bounds):
        raise refuse(
            "UnboundedSum", f"the terms of this {name} have no known bound",
            help="describe the column with a range, or bound them: `clamp(E, low, high)`; `bounds(E)` buys them",
        )  # fmt: skip
    if max(abs(b) for b in bounds) >= MOST_BOUND:
        raise refuse("ValueError", "the bounds of this sum are too wide to add exactly", help="clamp(x, low, high)")
    return bounds


def fixed_sum(expr: RowExpr, most: float, table: Table) -> FixedSum:
    """The sum of an expression between ±`most`."""
    return FixedSum(expr, -most, most, grid_for(most), weighted=table.weighted)


def sum_and_count(expr: RowExpr, table: Table, name: str) -> Pair:
    """The sum of an expression less the middle of its bounds, and how many rows it is of."""
    x = Centred.of(expr, table, name)
    return Pair.of(fixed_sum(x.expr, x.half, table), Count(expr, weighted=table.weighted))


def grid_for(most: float) -> int:
    """The grid for values up to `most`: about 2^30 steps, so that a sum over 2^32 rows fits in 2^62."""
    return grid_bits(most, 30)


class Centred(Struct, frozen=True):
    """A bounded expression less the middle of its bounds, which halves what a row can add: between ±`half`."""

    expr: RowExpr
    middle: float
    half: float
    width: float

    @classmethod
    def of(cls, expr: RowExpr, table: Table, name: str) -> Centred:
        low, high = public_bounds(expr, table, name)
        middle = low + (high - low) / 2
        return cls(Apply("-", (expr, Constant(middle))), middle, max(high - middle, middle - low), high - low)
