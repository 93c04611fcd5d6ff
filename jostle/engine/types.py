"""What is publicly known of rows: kinds, bounds, the values of a group key, and the columns of a plan.

Everything here is a function of schemas alone, so its answers and its refusals may be shown. Facts are worked out
anew for every plan: a column that is redefined has the facts of its new definition and no others.
"""

from __future__ import annotations

import itertools
import math

from jostle.diagnostics import refuse
from jostle.engine.bounds import as_double, bounds_of, is_integral
from jostle.engine.kinds import DEPTH, Schema, domain_kind, domain_of, kind_of, mixed
from jostle.engine.plan import (
    Bound,
    Categories,
    Column,
    Constant,
    Derive,
    Domain,
    Filter,
    Integer,
    Join,
    Key,
    Open,
    Plan,
    Real,
    RowExpr,
    Scan,
)  # fmt: skip

__all__ = [
    "Schema", "bounds_of", "check_join", "check_plan_depth", "derived_domain", "domain_kind", "is_integral",
    "key_of", "key_values", "kind_of", "schema_of", "text_values",
]  # fmt: skip


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


def text_values(expr: RowExpr, schema: Schema) -> tuple[str, ...] | None:
    """Every text an expression can be, in order of appearance; None where a column of it is open."""
    if isinstance(expr, Constant):
        return (expr.value,) if isinstance(expr.value, str) else ()
    if isinstance(expr, Column):
        domain = domain_of(expr.name, schema)
        if not isinstance(domain, Categories):
            return None
        return tuple(dict.fromkeys(value for value in domain.values if isinstance(value, str)))
    parts = [text_values(arg, schema) for arg in expr.args[1:]]
    known = [part for part in parts if part is not None]
    return None if len(known) < len(parts) else tuple(dict.fromkeys(itertools.chain(*known)))


# The columns of a plan -----------------------------------------------------------------------------


def schema_of(plan: Plan) -> dict[str, Domain]:
    """The columns of a plan with what is publicly known of each, recomputed from its definition."""
    return _schema(plan, 0)


def _schema(plan: Plan, depth: int) -> dict[str, Domain]:
    check_plan_depth(depth)
    while isinstance(plan, Filter):
        plan = plan.source
    if isinstance(plan, Bound):
        plan = plan.scan
    if isinstance(plan, Scan):
        return dict(plan.columns)
    if isinstance(plan, Derive):
        inner = _schema(plan.source, depth + 1)
        return {name: derived_domain(expr, inner) for name, expr in plan.columns}
    left, right = _schema(plan.left, depth + 1), _schema(plan.right, depth + 1)
    check_join(plan, left, right)
    return {**left, **{name: domain for name, domain in right.items() if name not in left}}


def check_plan_depth(depth: int) -> None:
    if depth > DEPTH:
        raise refuse("RecursionLimit", f"a table made in more than {DEPTH} steps", help="make it in fewer steps")


def check_join(plan: Join, left: Schema, right: Schema) -> None:
    """Both sides have the key columns, of one kind."""
    for name in plan.on:
        kinds = domain_kind(domain_of(name, left)), domain_kind(domain_of(name, right))
        if kinds[0] != kinds[1]:
            raise mixed(f"the join on `{name}`", *kinds)
    if not plan.on:
        raise refuse("TypeError", "a join needs a column to join on", help="join U on key")


def derived_domain(expr: RowExpr, schema: Schema) -> Domain:
    """The domain of a derived column: a bare column keeps its own; numbers have interval bounds where there are any."""
    kind = kind_of(expr, schema)
    if isinstance(expr, Column):
        return schema[expr.name]
    if kind == "text":
        values = text_values(expr, schema)
        return Open("text") if values is None else Categories(values)
    if kind == "boolean":
        return Open("boolean")
    bounds = bounds_of(expr, schema)
    if bounds is None:
        return Open("integer" if is_integral(expr, schema) else "real")
    if is_integral(expr, schema):
        return Integer(int(bounds[0]), int(bounds[1]))
    return Real(*bounds)
