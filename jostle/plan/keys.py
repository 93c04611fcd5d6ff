"""The public values of group keys: functions of an expression and of the schema, and of no row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.language.moments import DAY, DAYS, SPANS, moment_of, starts
from jostle.plan.bounds import as_double, bounds_of
from jostle.plan.domains import Categories, Domain, Integer
from jostle.plan.kinds import Schema, kind_of, mixed, value_kind
from jostle.plan.plan import Apply, Column, Constant, Key, RowExpr
from jostle.plan.schemas import text_values, unit_of

KeyValue = str | float | bool | date

MOST_KEYS = 2**20
"""Values that the group keys of a select, or the parts of a table, have at most."""


def key_values(expr: RowExpr, schema: Schema, limit: int) -> range | tuple[KeyValue, ...] | None:
    """The public values of a group key, in order; None for an open one.

    Numbers: every integer between the floors of the bounds. Booleans: false, true. A bare column of categories: its
    values as listed. Text: the categories and constants it can be. More than `limit` values are a `DataError`.
    """
    kind = kind_of(expr, schema)
    if kind == "boolean":
        return (False, True)
    listed: tuple[KeyValue, ...] | None = None
    if kind == "text":
        listed = text_values(expr, schema)
    elif isinstance(expr, Column) and isinstance(domain := schema[expr.name], Categories):
        listed = tuple(dict.fromkeys(float(value) for value in domain.values))
    if kind == "text" or listed is not None:
        _check_count(0 if listed is None else len(listed), limit)
        return listed
    if kind in ("date", "time"):
        return _moments(expr, kind, schema, limit)
    if isinstance(expr, Column) and isinstance(domain := schema[expr.name], Integer):
        low, high = domain.low, domain.high
    else:
        bounds = bounds_of(expr, schema)
        if bounds is None:
            return None
        low, high = math.floor(bounds[0]), math.floor(bounds[1])
    _check_count(high - low + 1, limit)
    return range(low, high + 1)


def _moments(expr: RowExpr, kind: str, schema: Schema, limit: int) -> tuple[date, ...] | None:
    """The first days or moments of the units between the bounds; a time that can be any has no list."""
    bounds = bounds_of(expr, schema)
    unit = unit_of(expr, schema) or ("day" if kind == "date" else "")
    if bounds is None or not unit:
        return None
    low, high = int(bounds[0]), int(bounds[1])
    step = (1 if kind == "date" else DAY) if unit in DAYS else SPANS[unit]
    shortest = {"year": 365, "quarter": 90, "month": 28, "week": 7}.get(unit, 1)
    _check_count((high - low) // (step * shortest), limit)
    return tuple(moment_of(kind, number) for number in starts(kind, low, high, unit))


def key_of(expr: RowExpr, over: range | tuple[KeyValue, ...] | None, schema: Schema, limit: int) -> Key | None:
    """A group key over the values that a program lists, or else over its own (`key_values`); None for an open one.

    Listed values of another kind than the expression are a `TypeError`, whatever the rows hold.
    """
    if over is None and isinstance(expr, Column) and expr.name in schema:
        return column_key(expr, schema[expr.name], limit)
    if over is None:
        values = key_values(expr, schema, limit)
        return None if values is None else Key(expr, values)
    kind = kind_of(expr, schema)
    for value in () if isinstance(over, range) else over[:1]:  # they are all of one kind
        if value_kind(value) != kind:
            raise mixed("`over`", kind, value_kind(value))
    return Key(expr, over)


def dimensions(
    named: Sequence[tuple[str, RowExpr, range | tuple[KeyValue, ...] | None]], schema: Schema, limit: int
) -> tuple[tuple[Key, ...], tuple[str, ...], tuple[int, ...]]:
    """The keys of a histogram's dimensions, their names, and how many values each has; refuses an open one."""
    keys = []
    for name, expr, over in named:
        key = key_of(expr, over, schema, limit)
        if key is None:
            raise open_keys(name)
        keys.append(key)
    return tuple(keys), tuple(name for name, _, _ in named), tuple(len(key.values) for key in keys)


@lru_cache(maxsize=2**12)
def column_key(column: Column, domain: Domain, limit: int) -> Key | None:
    """The key of a bare column over its own values; None for an open one."""
    values = key_values(column, {column.name: domain}, limit)
    return None if values is None else Key(column, values)


def need_unicode(value: Any) -> None:
    """Refuses a text key that the engine could not tell from another: half a surrogate pair has no encoding, and
    stands in SQL for the same replacement character as every other half, so that parts by them would not be disjoint.
    """
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise refuse("ValueError", "a key has a character that no text can have") from None


def holds(key: Key, value: Any) -> RowExpr:
    """The condition of one group: numeric keys are taken down to integers first."""
    need_unicode(value)
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    whole = (
        isinstance(key.values, range) or all(float(v).is_integer() for v in key.values if not isinstance(v, date))
        if numeric
        else False
    )
    left = Apply("floor", (key.expr,)) if whole else key.expr
    return Apply("==", (left, Constant(float(value) if numeric else value)))


def open_keys(name: str) -> Refusal:
    return refuse(
        "OpenKeys", f"the values that the key `{name}` can have are not public",
        help="describe its column with a range or categories; a select may also list them, `groupby E over {…}`, "
        "or be given a delta",
    )  # fmt: skip


def _check_count(count: int, limit: int) -> None:
    if count > limit:
        many = f"{count:,}" if count < 10**15 else f"about {as_double(count):.0e}"
        raise refuse(
            "DataError",
            f"the key has {many} possible values, more than the {limit:,} that can be held",
            help="take something coarser, such as `x / 1000`, or list the keys of a select with `over {…}`",
        )
