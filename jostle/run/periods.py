"""Ranges of dates and times as values of a program: `2024-03-01..2024-03-31`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.language.moments import DAY, DAYS, SPANS, kind_of_moment, moment_of, number_of, starts, truncated
from jostle.plan.plan import Moments

MOST = 2**20


class Period(Struct, frozen=True):
    """From `low` to `high`, both included; walked through by `unit`, which is a day where nothing is said."""

    low: date
    high: date
    unit: str = ""

    @property
    def kind(self) -> str:
        return kind_of_moment(self.low)

    @property
    def step(self) -> str:
        return self.unit or ("day" if self.kind == "date" else "")

    @property
    def count(self) -> float:
        """How many first days or moments of the unit there are at most."""
        if not self.step:
            raise refuse("TypeError", "a range of times cannot be walked through", help="from … to … by hour")
        size = (1 if self.kind == "date" else DAY) if self.step in DAYS else SPANS[self.step]
        return float(max(0, (number_of(self.high) - number_of(self.low)) // size + 1))

    def __iter__(self) -> Iterator[date]:
        if self.count > MOST * 400:
            raise refuse("ValueError", "this range of times has too many steps to be walked through")
        numbers = starts(self.kind, number_of(self.low), number_of(self.high), self.step)
        return (moment_of(self.kind, number) for number in numbers)

    def covers(self, value: object) -> bool:
        """Whether a date or time lies in it; a date is its beginning."""
        if not isinstance(value, date):
            return False
        return self._start(self.low) <= self._start(value) <= self._start(self.high)

    def _start(self, value: date) -> int:
        return number_of(value) * (DAY if kind_of_moment(value) == "date" else 1)

    def domain(self) -> Moments:
        """The domain that it describes; by hours and less it is one of times, whose last day is whole."""
        low, high, kind = number_of(self.low), number_of(self.high), self.kind
        if kind == "date" and self.unit in SPANS:
            kind, low, high = "time", low * DAY, high * DAY + DAY - 1
        if self.unit:
            low, high = truncated(kind, low, self.unit), truncated(kind, high, self.unit)
        return Moments(kind, low, high, self.unit)


def period(low: object, high: object, unit: str = "") -> Period:
    """The range between two dates, or two times; of one of each the date is its beginning."""
    if not (isinstance(low, date) and isinstance(high, date)):
        raise refuse("TypeError", "a range goes from a date to a date, or from a number to a number")
    if kind_of_moment(low) != kind_of_moment(high):
        low, high = (moment if kind_of_moment(moment) == "time" else moment_of("time", number_of(moment) * DAY)
                     for moment in (low, high))  # fmt: skip
    if unit and unit not in (*DAYS, *SPANS):
        raise refuse("ValueError", f"there is no unit `{unit}`", help=", ".join((*DAYS, *SPANS)))
    return Period(low, high, unit)
