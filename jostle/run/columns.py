"""The columns of a grouped result that hold numbers, with which a program calculates element by element.

A column is a list: it is walked through, indexed, compared and printed as one. Only its arithmetic is that of vectors.
`none` stands where a group has no number, and gives `none`, as does a division by zero: as in rows, of which a grouped
result has one for each group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from jostle.lazy import Floats, np

MOST_AT_ONCE = 2**12
"""The values of a column that are calculated whether anybody asks for them or not."""


class NumberColumn(list[Any]):
    """Numbers, and `none` where there is none."""


class LongColumn(Sequence[Any]):
    """The values of very many groups, each calculated when it is first asked for; `numbers` are the same as an array,
    where one is known."""

    def __init__(self, size: int, value: Callable[[int], Any], numbers: Floats | None = None) -> None:
        self.numbers, self._value, self._cells = numbers, value, [None] * size

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        cell = self._cells[at]
        if cell is None:
            cell = self._cells[at] = self._value(at % len(self))
        return cell

    def __iter__(self) -> Iterator[object]:
        return map(self.__getitem__, range(len(self)))


def of_places(size: int, value: Callable[[int], Any], numbers: Floats | None = None) -> list[Any] | LongColumn:
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


def element_by_element(function: Callable[..., Any], *values: object) -> NumberColumn:
    """`function` of the elements at each place; a value that is no list stands at every place.

    `ValueError` where lists differ in length.
    """
    length = len(next(value for value in values if isinstance(value, NumberColumn)))
    sides: list[Iterable[object]] = [value if isinstance(value, list) else [value] * length for value in values]
    return NumberColumn(
        None if any(item is None for item in items) else function(*items) for items in zip(*sides, strict=True)
    )
