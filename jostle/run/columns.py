"""The columns of a grouped result that hold numbers, with which a program calculates element by element.

A column is a list: it is walked through, indexed, compared and printed as one. Only its arithmetic is that of vectors.
`none` stands where a group has no number, and gives `none`, as does a division by zero: as in rows, of which a grouped
result has one for each group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any


class NumberColumn(list[Any]):
    """Numbers, and `none` where there is none."""


def column_of(values: Sequence[Any], *, of_numbers: bool = False) -> list[object]:
    """A column of a grouped result; where it is empty, `of_numbers` says whether it would have held numbers."""
    if not values:
        return NumberColumn() if of_numbers else []
    kinds = set(map(type, values)) - {type(None)}
    numeric = all(issubclass(kind, (int, float)) and kind is not bool for kind in kinds)
    return NumberColumn(values) if numeric else list(values)


def element_by_element(function: Callable[..., Any], *values: Any) -> NumberColumn:
    """`function` of the elements at each place; a value that is no list stands at every place.

    `ValueError` where lists differ in length.
    """
    length = len(next(value for value in values if isinstance(value, NumberColumn)))
    sides: list[Iterable[Any]] = [value if isinstance(value, list) else [value] * length for value in values]
    return NumberColumn(
        None if any(item is None for item in items) else function(*items) for items in zip(*sides, strict=True)
    )
