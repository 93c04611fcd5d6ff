"""What the rows of one person, or of one group, are summed up in: exact, and a function of these rows in any order.

Sums are of whole numbers on a public grid, each summand clamped to its bounds; doubles would differ with the order.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.language.aggregates import of_no_numbers
from jostle.plan.bounds import bounds_of, grid_bits, is_integral
from jostle.plan.kinds import kind_of
from jostle.plan.plan import Apply, Constant, Count, Extreme, FixedSum, GroupTerm, RowExpr
from jostle.privacy.kernel.handles import Table

GRID = 40  # steps of a sum are 2^-40 of its largest summand, or finer


class Summary(Struct, frozen=True):
    """The terms of an aggregate over a group of rows, and its value from theirs."""

    terms: tuple[GroupTerm, ...]
    value: Callable[[tuple[RowExpr, ...]], RowExpr]


def summary(name: str, expr: RowExpr | None, distinct: bool, table: Table) -> Summary:
    """An aggregate of the language over the rows of a group: `count sum avg min max`."""
    if name == "count":
        return Summary((Count(expr, distinct),), lambda terms: terms[0])
    if expr is None or name not in ("sum", "avg", "min", "max"):
        raise refuse(
            "TypeError", f"`{name}` is not taken of each person or group",
            help="there are `count(*)`, `count(E)`, `count(distinct E)`, `sum`, `avg`, `min` and `max`",
        )  # fmt: skip
    if kind_of(expr, table.domains) != "number":
        raise of_no_numbers(name, kind_of(expr, table.domains))
    if name in ("min", "max"):
        return Summary((Extreme(expr, name == "max"),), lambda terms: terms[0])
    total = _sum(name, expr, table)
    if name == "sum":
        return Summary((total,), lambda terms: terms[0])
    ends = Constant(total.low), Constant(total.high)  # which a mean keeps but for its rounding
    return Summary((total, Count(expr)), lambda terms: Apply("clamp", (Apply("/", terms), *ends)))


def _sum(name: str, expr: RowExpr, table: Table) -> FixedSum:
    bounds = bounds_of(expr, table.domains)
    if bounds is None or max(map(abs, bounds)) >= 2.0**60:
        raise refuse(
            "UnboundedSum", f"the terms of this {name} have no known bound",
            help="describe the column with a range, or bound them: `clamp(E, low, high)`",
        )  # fmt: skip
    low, high = bounds
    most = max(abs(low), abs(high))
    bits = 0 if is_integral(expr, table.domains) else grid_bits(most, GRID)
    return FixedSum(expr, low, high, bits)
