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

from jostle.language.operations import OPERATIONS
from jostle.language.patterns import matches
from jostle.plan.plan import (
    Column,
    Constant,
    Count,
    Derive,
    Filter,
    FixedSum,
    Join,
    Key,
    Plan,
    RowExpr,
    Scan,
    Term,
    Union,
)  # fmt: skip

Row = dict[str, Any]
Scans = Callable[[Scan], list[Row]]


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
    match plan:
        case Scan():
            return scans(plan)
        case Filter(source=source, condition=condition):
            return [row for row in rows(source, scans) if value(condition, row)]
        case Derive(source=source, columns=columns):
            return [{name: value(expr, row) for name, expr in columns} for row in rows(source, scans)]
        case Union(sources=sources):
            return [row for source in sources for row in rows(source, scans)]
        case Join(most=None, person=False):
            return _joined(plan, rows(plan.left, scans), rows(plan.right, scans))
    raise Unknown


def _joined(plan: Join, left: list[Row], right: list[Row]) -> list[Row]:
    def fits(one: Row, other: Row) -> bool:
        return all(one[mine] is not None and one[mine] == other[theirs] for mine, theirs in plan.keys)

    dropped = {theirs for _, theirs in plan.keys} - {mine for mine, _ in plan.keys}
    nothing_left, nothing_right = dict.fromkeys(left[0]), dict.fromkeys(right[0])
    pairs = [(one, other) for one in left for other in right if fits(one, other)]
    if plan.kind in ("left", "full"):
        pairs += [(one, nothing_right) for one in left if not any(fits(one, other) for other in right)]
    if plan.kind in ("right", "full"):
        pairs += [(nothing_left, other) for other in right if not any(fits(one, other) for one in left)]
        dropped = set()
    shared = {mine for mine, theirs in plan.keys if mine == theirs}
    made = []
    for one, other in pairs:
        row = {**{name: cell for name, cell in other.items() if name not in dropped}, **one}
        row.update({name: other[name] for name in shared if one[name] is None})
        made.append(row)
    return made


def group(made: list[Row], keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[list[int]]:
    """What the engine's `group` answers, each term's cells in order."""
    places: list[tuple[Any, ...]] = [()]
    for key in keys:
        places = [(*place, at) for place in places for at in range(len(key.values))]
    within: dict[tuple[Any, ...], list[Row]] = {place: [] for place in places}
    for row in made:
        place = tuple(code(key, row) for key in keys)
        if place in within:
            within[place].append(row)
    return [[_term(term, within[place]) for place in places] for term in terms]


def code(key: Key, row: Row) -> int:
    """Where a row stands among the values of a key; −1 where it does not."""
    cell = value(key.expr, row)
    values = list(key.values)
    if isinstance(cell, float) and not isinstance(cell, bool) and all(float(v).is_integer() for v in values):
        cell = math.floor(cell)
    return values.index(cell) if cell is not None and cell in values else -1


def _term(term: Term, within: list[Row]) -> int:
    if isinstance(term, FixedSum):
        return sum(_fixed(term, cell) for row in within if (cell := value(term.expr, row)) is not None)
    if term.expr is None:
        return len(within)
    cells = [cell for row in within if (cell := value(term.expr, row)) is not None]
    return len(set(cells)) if isinstance(term, Count) and term.distinct else len(cells)


def _fixed(term: FixedSum, cell: float) -> int:
    clamped = max(term.low, min(term.high, cell))
    scaled = Fraction((clamped * clamped if term.square else clamped) * math.ldexp(1.0, term.bits))
    return round(scaled)  # halves to the even one


def tally(made: list[Row], expr: RowExpr) -> Counter[Any]:
    """How many rows have each value."""
    return Counter(cell for row in made if (cell := value(expr, row)) is not None)
