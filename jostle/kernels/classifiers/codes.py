"""Encodes columns as positions in a public list of values, by which classifiers count and look up.

A number stands for itself whatever its type (1, 1.0 and NumPy's 1 are one value), everything else for its text; what
is not in the list (a missing cell, a value nobody described) has position −1.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Value = str | float | bool
Positions = NDArray[np.int64]


class Coded(NamedTuple):
    """A column as its different values, and for each row the position of its own among them."""

    values: tuple[Value | None, ...]
    codes: Positions


class Cuts(NamedTuple):
    """Bins of a number: a value is in the bin numbered by how many of the rising `edges` it reaches."""

    edges: tuple[float, ...]

    def place(self, value: Value | None) -> Value | None:
        """The bin of a value, 0 to the number of edges; none for what is no number."""
        return None if value is None or isinstance(value, str) else float(bisect_right(self.edges, value))

    def called(self, place: Value) -> str:
        """The numbers of a bin in words: `below 30`, `30 up to 45`, `45 or more`."""
        at = int(place)
        if not self.edges or not 0 <= at <= len(self.edges):
            return f"{at}"
        if at == 0:
            return f"below {self.edges[0]:g}"
        first = f"{self.edges[at - 1]:g}"
        return f"{first} or more" if at == len(self.edges) else f"{first} up to {self.edges[at]:g}"


def plain(value: object) -> Value | None:
    """A cell as a number, a text or None."""
    if type(value) is float:  # nearly always
        return value if value == value else None
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, float, np.integer, np.floating)):
        return None if math.isnan(value) else float(value)
    return str(value)


def plain_values(values: Sequence[Any]) -> tuple[Value | None, ...]:
    """`plain` of every value."""
    kinds = set(map(type, values))
    if kinds == {str} or (kinds == {float} and not any(map(math.isnan, values))):  # nearly always
        return tuple(values)
    return tuple(map(float, values)) if kinds == {int} else tuple(map(plain, values))


def value_tuple(values: Sequence[object] | NDArray[Any]) -> tuple[Value, ...]:
    """Public values as a model has them: texts, truths, and numbers as doubles; without what is missing."""
    cells = values.tolist() if isinstance(values, np.ndarray) else values
    kinds = set(map(type, cells))
    if kinds == {str} or (kinds == {float} and not any(map(math.isnan, cells))):  # nearly always
        return tuple(cells)
    return tuple(v if isinstance(v, bool) else p for v in cells if (p := plain(v)) is not None)


def coded(column: Coded | Sequence[Any] | NDArray[Any]) -> Coded:
    if isinstance(column, Coded):
        return column
    array = np.asarray(column)
    if array.dtype.kind in "iufUb":
        values, codes = np.unique(array, return_inverse=True)
        return Coded(tuple(plain(v) for v in values.tolist()), codes.astype(np.int64).reshape(-1))
    places: dict[Value | None, int] = {}
    codes_of_rows = np.array([places.setdefault(plain(v), len(places)) for v in array.ravel().tolist()], dtype=np.int64)
    return Coded(tuple(places), codes_of_rows)


def positions(column: Coded | Sequence[object] | NDArray[Any], values: Sequence[Value]) -> Positions:
    """For each row the position of its cell in `values`, −1 where it is not there."""
    column_codes = coded(column)
    entries = plain_values(values)
    where: Mapping[object, int] = dict(zip(entries, range(len(entries)), strict=True))
    if entries == column_codes.values and len(where) == len(entries):
        return column_codes.codes
    table = np.array([where.get(v, -1) for v in column_codes.values] or [-1], dtype=np.int64)
    return table[column_codes.codes]


def cut(column: Coded | Sequence[Any] | NDArray[Any], cuts: Cuts) -> Coded:
    """The bins of a column of raw numbers."""
    column_codes = coded(column)
    binned = [cuts.place(v) for v in column_codes.values]
    values = tuple(dict.fromkeys(binned))
    table = np.array([values.index(b) for b in binned] or [0], dtype=np.int64)
    return Coded(values, table[column_codes.codes])
