"""Weighted records: `weighted(t)` and what makes other records of them, each as stable as it was."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from jostle.diagnostics import refuse
from jostle.privacy.kernel.handles import ColumnHandle, Cube, Table
from jostle.privacy.transformations import records as of_records
from jostle.privacy.transformations.records import WeightedRecords
from jostle.run.operators import need_number
from jostle.run.registry import builtin
from jostle.run.values import is_sequence, kind_name


@builtin
def _weighted(table: object) -> WeightedRecords:
    if not isinstance(table, Table):
        raise refuse("TypeError", f"`weighted` takes a table, not {kind_name(table)}")
    return of_records.weighted(table)


@builtin
def _shave(records: object, step: object, most: object = 100.0, *, name: object = "place") -> WeightedRecords:
    of = _need(records, "shave")
    return of_records.shaved(of, need_number(step, "`shave`"), _whole(most, "shave"), _text(name, "shave"))


@builtin
def _grouped(
    records: object,
    by: object,
    name: object = "size",
    most: object = 1000.0,
    *,
    reducer: object = "count",
    of: object = None,
) -> WeightedRecords:
    source, keys, new = _need(records, "grouped"), _names(by, "grouped"), _text(name, "grouped")
    if not isinstance(reducer, str):
        raise refuse("TypeError", f"the reducer of `grouped` is a text, not {kind_name(reducer)}", help='`"max"`')
    column = None if of is None else _names(of, "grouped")
    if column is not None and len(column) != 1:
        raise refuse("TypeError", "`grouped` reduces one column", help='`of = "hours"`')
    return of_records.grouped(source, keys, new, _whole(most, "grouped"), reducer, column[0] if column else None)


@builtin
def _joined(left: object, right: object, on: object, most: object = 1048576.0) -> WeightedRecords:
    sides = _need(left, "joined"), _need(right, "joined")
    return of_records.joined(*sides, _names(on, "joined"), need_number(most, "`joined`"))


@builtin
def _intersect(left: object, right: object) -> WeightedRecords:
    return of_records.combined("intersect", _need(left, "intersect"), _need(right, "intersect"))


@builtin
def _concat(left: object, right: object) -> WeightedRecords:
    return of_records.combined("concat", _need(left, "concat"), _need(right, "concat"))


@builtin
def _without(left: object, right: object) -> WeightedRecords:
    return of_records.combined("without", _need(left, "without"), _need(right, "without"))


def larger_weights(parts: Sequence[Any], weights: object) -> WeightedRecords:
    """`union` of weighted records."""
    if weights is not None:
        raise refuse("TypeError", "a union of records takes the larger weight of each", help="`union(a, b)`")
    return reduce(lambda a, b: of_records.combined("union", a, b), [_need(part, "union") for part in parts])


def _need(value: object, what: str) -> WeightedRecords:
    if isinstance(value, WeightedRecords):
        return value
    help = "make them of a table: `weighted(t)`" if isinstance(value, Table) else ""
    if isinstance(value, Cube):
        help = "take its sums last: `histogram(records, x = a)`"
    raise refuse("TypeError", f"`{what}` takes weighted records, not {kind_name(value)}", help=help)


def _names(value: Any, what: str) -> list[str]:
    """The names of columns: one, or a list of them; columns stand for their names."""
    listed = list(value) if is_sequence(value) else [value]
    names = [item.name if isinstance(item, ColumnHandle) else item for item in listed]
    if not names or not all(isinstance(name, str) for name in names):
        raise refuse(
            "TypeError", f"`{what}` takes the names of columns, not {kind_name(value)}", help=f'`{what}(…, "a")`'
        )
    return names


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.isidentifier():
        raise refuse("TypeError", f"`{what}` names a new column by a text", help='`"degree"`')
    return value


def _whole(value: object, what: str) -> int:
    number = need_number(value, f"`{what}`")
    if not number.is_integer():
        raise refuse("ValueError", f"the `most` of `{what}` is a whole number")
    return int(number)
