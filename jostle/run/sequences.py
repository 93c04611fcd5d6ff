"""The columns of a grouped result, and ranges of dates and times: values that a program walks through.

A column of numbers is a list: it is indexed, compared and printed as one. Only its arithmetic is that of vectors.
`none` stands where a group has no number, and gives `none`, as does a division by zero: as in rows, of which a grouped
result has one for each group. A range of dates is written `2024-03-01..2024-03-31`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from typing import Any

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.language.moments import DAY, DAYS, SPANS, kind_of_moment, moment_of, number_of
from jostle.language.patterns import starts, truncated
from jostle.lazy import Floats, np
from jostle.plan.plan import Moments

MOST_AT_ONCE = 2**12
"""The values of a column that are calculated whether anybody asks for them or not."""
MOST_WITH_ERRORS = 2**20
"""The values of a column that as a whole still has their errors: an object for each takes memory."""


class NumberColumn(list[Any]):
    """Numbers, and `none` where there is none."""


class LongColumn(Sequence[Any]):
    """The values of very many groups, each calculated when it is first asked for; `numbers` are the same as an array,
    where one is known."""

    def __init__(self, size: int, value: Callable[[int], Any], numbers: Floats | None = None) -> None:
        self.numbers, self._value, self._size, self._cells = numbers, value, size, dict[int, object]()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        if not -self._size <= at < self._size:
            raise IndexError(at)
        at %= self._size
        if at not in self._cells:
            self._cells[at] = self._value(at)
        return self._cells[at]

    def __iter__(self) -> Iterator[object]:
        return map(self.__getitem__, range(len(self)))


def of_places(size: int, value: Callable[[int], object], numbers: Floats | None = None) -> list[Any] | LongColumn:
    """The values at so many places, calculated at once where they are few."""
    return LongColumn(size, value, numbers) if size > MOST_AT_ONCE else list(map(value, range(size)))


def as_array(column: Sequence[float]) -> Floats:
    """The numbers of a column, shape (len(column),)."""
    numbers = column.numbers if isinstance(column, LongColumn) else None
    return np.array(column, dtype=float) if numbers is None else numbers


def column_of(values: Sequence[object], *, of_numbers: bool = False) -> list[object]:
    """A column of a grouped result; where it is empty, `of_numbers` says whether it would have held numbers."""
    if not values:
        return NumberColumn() if of_numbers else []
    kinds = set(map(type, values)) - {type(None)}
    numeric = all(issubclass(kind, (int, float)) and kind is not bool for kind in kinds)
    return NumberColumn(values) if numeric else list(values)


def element_by_element(function: Callable[..., object], *values: object) -> NumberColumn:
    """`function` of the elements at each place; a value that is no list stands at every place.

    `ValueError` where lists differ in length.
    """
    length = len(next(value for value in values if isinstance(value, NumberColumn)))
    sides: list[Iterable[object]] = [value if isinstance(value, list) else [value] * length for value in values]
    return NumberColumn(
        None if any(item is None for item in items) else function(*items) for items in zip(*sides, strict=True)
    )


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
        size = SPANS.get(self.step, 1 if self.kind == "date" else DAY)
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
