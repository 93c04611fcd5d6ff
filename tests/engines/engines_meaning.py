"""What plans and questions mean, in plain Python, row by row: the reference that owes nothing to SQL.

`UNKNOWN` is what this file has no meaning for (which rows of a person stay): there engines are compared with DuckDB.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from jostle.language.patterns import matches
from jostle.language.row_functions import OPERATIONS
from jostle.plan.facts import schema_of
from jostle.plan.plan import (
    WEIGHT_BITS,
    Beside,
    Bound,
    Column,
    Constant,
    Count,
    Derive,
    Extreme,
    Filter,
    FixedSum,
    GroupRows,
    GroupTerm,
    Join,
    Key,
    Known,
    Listed,
    Plan,
    RowExpr,
    Scan,
    Term,
    Union,
    has_persons,
)  # fmt: skip

Row = dict[str, Any]
Scans = Callable[[Scan | Bound], list[Row]]
WEIGHT, PERSON = "\0w", "\0p"  # where a row of a person has its weight, and whose it is


class Unknown(Exception):
    """There is no plain meaning here."""


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
}  # fmt: skip


def value(expr: RowExpr, row: Row) -> Any:
    """A finite float, a text, a truth, a date, a time or None."""
    if isinstance(expr, Column):
        return row[expr.name]
    if isinstance(expr, Constant):
        return _plain(expr.value)
    args = [value(arg, row) for arg in expr.args]
    match expr.op:
        case "and":
            return False if False in args else None if None in args else True
        case "or":
            return True if True in args else None if None in args else False
        case "not":
            return None if args[0] is None else not args[0]
        case "if":
            return args[1] if args[0] else args[2]
        case "missing":
            return args[0] is None
        case "coalesce":
            return next((arg for arg in args if arg is not None), None)
        case "in":
            if Constant(None) in expr.args[1:] and args[0] is None:
                return True
            return None if args[0] is None else args[0] in [arg for arg in args[1:] if arg is not None]
        case "bucket" | "pair":
            raise Unknown
    if None in args:
        return None
    if expr.op in _COMPARED:
        return _COMPARED[expr.op](*args)
    operation = OPERATIONS[expr.op]
    if expr.op == "matches":
        return _matches(*args)
    if operation.value is not None:
        return _plain(operation.value(*args))
    if operation.columns is None:
        raise Unknown
    with np.errstate(all="ignore"):
        return _plain(float(operation.columns(np, *map(np.float64, args))))


_matches = lru_cache(2_000)(matches)  # a step a character of a long text, once


def _plain(value: Any) -> Any:
    if isinstance(value, bool | str | date | None):
        return value
    return float(value) + 0.0 if math.isfinite(value) else None


def rows(plan: Plan, scans: Scans) -> list[Row]:
    """The rows of a plan, in any order."""
    if isinstance(plan, Scan | Bound):
        return scans(plan)
    return made_of(plan, lambda source: rows(source, scans))


def made_of(plan: Plan, rows_of: Callable[[Plan], list[Row]]) -> list[Row]:
    """The rows of a plan, made of those of the plans in it."""
    match plan:
        case Filter(source=source, condition=condition):
            return [row for row in rows_of(source) if value(condition, row)]
        case Derive(source=source, columns=columns):
            hidden = (WEIGHT, PERSON)
            return [
                {n: value(expr, row) for n, expr in columns} | {n: row[n] for n in hidden if n in row}
                for row in rows_of(source)
            ]
        case Known(source=source):
            return rows_of(source)
        case Listed(columns=columns):
            return [{n: _plain(cell) for (n, _), cell in zip(columns, row, strict=True)} for row in plan.rows]
        case Union(sources=sources):
            return [row for source in sources for row in rows_of(source)]
        case Join(most=None):
            return _joined(plan, rows_of(plan.left), rows_of(plan.right))
        case GroupRows(person=True):
            return _grouped(plan, rows_of(plan.source))
    raise Unknown


def _grouped(plan: GroupRows, made: list[Row]) -> list[Row]:
    """A row for each person, and for each of the keys that one has."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in made:
        group = (row[PERSON], *(value(expr, row) for _, expr in plan.keys))
        if None not in group:
            groups.setdefault(group, []).append(row)
    names = (PERSON, *(name for name, _ in plan.keys))
    return [
        dict(zip(names, group, strict=True)) | {
            name: _beside(term, group, groups) if isinstance(term, Beside) else _summary(term, some)
            for name, term in plan.terms
        }
        for group, some in groups.items()
    ]  # fmt: skip


def _beside(term: Beside, group: tuple[Any, ...], groups: dict[tuple[Any, ...], list[Row]]) -> float | None:
    """What stands beside a group: each other one with the same keys before the last is looked at."""
    here = [other for other in groups if other[:-1] == group[:-1]]
    before = [other for other in here if other[-1] < group[-1]]
    if term.expr is None:
        return float(len(before) + 1)
    if term.where in ("previous", "next"):
        after = sorted(other for other in here if other[-1] > group[-1])
        before = sorted(before)[-1:] if term.where == "previous" else after[:1]
    return _summary(Extreme(term.expr, term.where == "largest"), [row for other in before for row in groups[other]])


def _summary(term: GroupTerm, within: list[Row]) -> float | None:
    if not isinstance(term, Extreme):
        return float(_term(term, within)) * 2.0 ** -(term.bits if isinstance(term, FixedSum) else 0)
    cells = [cell for row in within if (cell := value(term.expr, row)) is not None]
    return _plain(max(cells) if term.largest else min(cells)) if cells else None


def _joined(plan: Join, left: list[Row], right: list[Row]) -> list[Row]:
    def fits(one: Row, other: Row) -> bool:
        alike = not plan.person or one[PERSON] == other[PERSON]
        return alike and all(one[mine] is not None and one[mine] == other[theirs] for mine, theirs in plan.keys)

    names = {*schema_of(plan), PERSON, WEIGHT}
    nothing_left, nothing_right = dict.fromkeys(schema_of(plan.left)), dict.fromkeys(schema_of(plan.right))
    pairs = [(one, other) for one in left for other in right if fits(one, other)]
    if plan.kind in ("left", "full"):
        pairs += [(one, nothing_right) for one in left if not any(fits(one, other) for other in right)]
    if plan.kind in ("right", "full"):
        pairs += [(nothing_left, other) for other in right if not any(fits(one, other) for one in left)]
    shared = {mine for mine, theirs in plan.keys if mine == theirs}
    made = []
    for one, other in pairs:
        row = {name: cell for name, cell in (other | one).items() if name in names}
        row.update({name: other[name] for name in shared if one[name] is None})
        if not plan.person and has_persons(plan.left) and has_persons(plan.right):
            row.pop(PERSON, None)
        made.append(row)
    return made


def group(made: list[Row], keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[list[int]]:
    """What the engine's `group` answers, each term's cells in order."""
    sizes, places = [len(key.values) for key in keys], [placed(key) for key in keys]
    within: dict[int, list[Row]] = {}
    for row in made:
        at = 0
        for key, size, place in zip(keys, sizes, places, strict=True):
            here = place(value(key.expr, row))
            if here < 0:
                break
            at = at * size + here
        else:
            within.setdefault(at, []).append(row)
    cells = [dict.fromkeys(range(math.prod(sizes)), 0) for _ in terms]
    for at, some in within.items():
        for each, term in zip(cells, terms, strict=True):
            each[at] = _term(term, some)
    return [list(each.values()) for each in cells]


def placed(key: Key) -> Callable[[Any], int]:
    """Where a cell stands among the values of a key; −1 where it does not."""
    values = key.values
    if isinstance(values, range):
        return lambda cell: values.index(math.floor(cell)) if cell is not None and math.floor(cell) in values else -1
    floored = all(isinstance(v, int | float) and not isinstance(v, bool) and float(v).is_integer() for v in values)
    order = {_plain(v): i for i, v in reversed(list(enumerate(values)))}

    def place(cell: Any) -> int:
        whole = floored and isinstance(cell, float)
        return order.get(math.floor(cell) if whole else cell, -1) if cell is not None else -1

    return place


def code(key: Key, row: Row) -> int:
    """Where a row stands among the values of a key; −1 where it does not."""
    return placed(key)(value(key.expr, row))


def _term(term: Term, within: list[Row]) -> int:
    if isinstance(term, FixedSum):
        return sum(_fixed(term, cell, row) for row in within if (cell := value(term.expr, row)) is not None)
    some = within if term.expr is None else [row for row in within if value(term.expr, row) is not None]
    if term.weighted:
        return sum(_weight(row) for row in some)
    distinct = isinstance(term, Count) and term.distinct and term.expr is not None
    return len({value(term.expr, row) for row in some}) if distinct and term.expr is not None else len(some)


def _weight(row: Row) -> int:
    """In units of 2^-WEIGHT_BITS; rows of a table that has none beside one that has weigh 1."""
    return int(row.get(WEIGHT, 2**WEIGHT_BITS))


def _fixed(term: FixedSum, cell: float, row: Row) -> int:
    clamped = max(term.low, min(term.high, cell))
    number = clamped * clamped if term.square else clamped
    bits = term.bits
    if term.weighted:
        number, bits = number * _weight(row), bits - WEIGHT_BITS
    return round(Fraction(number) * Fraction(2) ** bits)  # halves to the even one


def tally(made: list[Row], expr: RowExpr) -> Counter[Any]:
    """How many rows have each value."""
    return Counter(cell for row in made if (cell := value(expr, row)) is not None)
