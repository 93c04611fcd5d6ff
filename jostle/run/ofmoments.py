"""Aggregates of dates and times: of days and seconds since 1 January 1970, and what they give as dates and times again.

The noise is that of numbers: a day or a second is a unit like any other. Where a column has a unit (`by month`), the
first day or moment of one is given, as the column has no others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from msgspec import Struct

from jostle.language.aggregates import AggregateRow
from jostle.language.moments import (
    DAY,
    FIRST_DAY,
    FIRST_TIME,
    LAST_DAY,
    LAST_TIME,
    SPANS,
    moment_of,
    number_of,
    truncated,
)  # fmt: skip
from jostle.plan.domains import Domain
from jostle.plan.kinds import applied, kind_of
from jostle.plan.plan import Apply, Constant, RowExpr
from jostle.plan.schemas import unit_of
from jostle.run.periods import Period

_SECOND = SPANS["second"]


class Counted(Struct, frozen=True):
    """The number that stands for a date or time in an aggregate: `expr`, in steps of `step` days or microseconds."""

    kind: str
    expr: RowExpr
    step: int
    unit: str

    def moment(self, value: Any) -> date | None:
        """The date or time that an answer stands for: the day or moment in which it lies."""
        if value is None:
            return None
        first, last = (FIRST_DAY, LAST_DAY) if self.kind == "date" else (FIRST_TIME, LAST_TIME)
        number = min(max(math.floor(float(value) * self.step), first), last)
        return moment_of(self.kind, truncated(self.kind, number, self.unit) if self.unit else number)

    def shifted(self, number: RowExpr) -> RowExpr:
        """The same of a number in a row."""
        if self.kind == "date":
            return Apply("shift", (_beginning("date"), number))
        days = Apply("/", (number, Constant(86_400e6 / self.step)))
        return Apply("shift time", (_beginning("time"), days))


def counted(row: AggregateRow, expr: RowExpr, schema: Mapping[str, Domain]) -> Counted | None:
    """What an aggregate is taken of for a date or a time; None for other kinds, and where it takes no such thing."""
    kind = kind_of(expr, schema) if row.gives_moments else ""
    if kind not in ("date", "time"):
        return None
    unit = "" if row.name == "avg" else unit_of(expr, schema)
    if kind == "date":
        return Counted(kind, Apply("days_between", (_beginning(kind), expr)), 1, unit)
    seconds = Apply("seconds_between", (_beginning(kind), expr))
    if unit not in SPANS:
        return Counted(kind, seconds, _SECOND, unit)
    whole = Apply("floor", (Apply("/", (seconds, Constant(SPANS[unit] / _SECOND))),))
    return Counted(kind, whole, SPANS[unit], unit)


def periods_of(keys: Period, expr: RowExpr, schema: Mapping[str, Domain]) -> tuple[Period, RowExpr]:
    """The keys `from … to … by month`, and what of a row is compared with them: the first day of its month.

    Keys of an expression that is by month already, `trunc(day, "month")`, are by month.
    """
    kind = kind_of(expr, schema)
    if not keys.unit and kind in ("date", "time"):
        keys = Period(keys.low, keys.high, unit_of(expr, schema) or "")
    if kind == "time" and keys.kind == "date":
        last = number_of(keys.high) * DAY + (DAY - _SECOND if keys.unit in SPANS else 0)
        keys = Period(moment_of(kind, number_of(keys.low) * DAY), moment_of(kind, last), keys.step)
    by_unit = keys.unit and kind in ("date", "time")
    return keys, applied("trunc", (expr, Constant(keys.unit)), schema) if by_unit else expr


def _beginning(kind: str) -> Constant:
    return Constant(date(1970, 1, 1) if kind == "date" else datetime(1970, 1, 1))
