"""The public values of group keys: functions of an expression and of the schema, and of no row."""

from __future__ import annotations

import math

from jostle.diagnostics import refuse
from jostle.plan.bounds import as_double, bounds_of
from jostle.plan.domains import Categories, Integer
from jostle.plan.kinds import Schema, kind_of, mixed
from jostle.plan.plan import Column, Key, RowExpr
from jostle.plan.schemas import text_values


def key_values(expr: RowExpr, schema: Schema, limit: int) -> range | tuple[str | float | bool, ...] | None:
    """The public values of a group key, in order; None for an open one.

    Numbers: every integer between the floors of the bounds. Booleans: false, true. A bare column of categories: its
    values as listed. Text: the categories and constants it can be. More than `limit` values are a `DataError`.
    """
    kind = kind_of(expr, schema)
    if kind == "boolean":
        return (False, True)
    listed: tuple[str | float | bool, ...] | None = None
    if kind == "text":
        listed = text_values(expr, schema)
    elif isinstance(expr, Column) and isinstance(domain := schema[expr.name], Categories):
        listed = tuple(dict.fromkeys(float(value) for value in domain.values))
    if kind == "text" or listed is not None:
        _check_count(0 if listed is None else len(listed), limit)
        return listed
    if isinstance(expr, Column) and isinstance(domain := schema[expr.name], Integer):
        low, high = domain.low, domain.high
    else:
        bounds = bounds_of(expr, schema)
        if bounds is None:
            return None
        low, high = math.floor(bounds[0]), math.floor(bounds[1])
    _check_count(high - low + 1, limit)
    return range(low, high + 1)


def key_of(
    expr: RowExpr, over: range | tuple[str | float | bool, ...] | None, schema: Schema, limit: int
) -> Key | None:
    """A group key over the values that a program lists, or else over its own (`key_values`); None for an open one.

    Listed values of another kind than the expression are a `TypeError`, whatever the rows hold.
    """
    if over is None:
        values = key_values(expr, schema, limit)
        return None if values is None else Key(expr, values)
    kind = kind_of(expr, schema)
    for value in () if isinstance(over, range) else over[:1]:  # they are all of one kind
        given = "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
        if given != kind:
            raise mixed("`over`", kind, given)
    return Key(expr, over)


def _check_count(count: int, limit: int) -> None:
    if count > limit:
        shown = f"{count:,}" if count < 10**15 else f"about {as_double(count):.0e}"
        raise refuse(
            "DataError",
            f"the key has {shown} possible values, more than the {limit:,} that can be held",
            help="take something coarser, such as `x / 1000`, or list the keys of a select with `over {…}`",
        )
