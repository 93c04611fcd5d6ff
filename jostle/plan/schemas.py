"""What is publicly known of the columns of a plan, and the public values of group keys.

All are functions of expressions and schemas alone, so answers and refusals may be shown. Facts are worked out anew for
every plan: a column that is redefined has the facts of its new definition and no others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.language.moments import DAY, PERIOD, SPANS, days_in, kind_of_moment, moment_of, number_of, starts, truncated
from jostle.plan.kinds import (
    DEPTH,
    Schema,
    as_double,
    bounds_of,
    domain_kind,
    domain_of,
    is_integral,
    kind_of,
    listed_values,
    mixed,
    value_kind,
)
from jostle.plan.plan import (
    Apply,
    Bound,
    Categories,
    Column,
    Constant,
    Count,
    Derive,
    Domain,
    Extreme,
    Filter,
    GroupRows,
    GroupTerm,
    Integer,
    Join,
    Key,
    Known,
    Listed,
    Moments,
    Open,
    Plan,
    Real,
    RowExpr,
    Scan,
    Truncate,
    Union,
    has_persons,
    inputs,
)


def text_values(expr: RowExpr, schema: Schema) -> tuple[str, ...] | None:
    """Every text an expression can be, in order of appearance; None where a column of it is open."""
    values = listed_values(expr, schema)
    return None if values is None else tuple(value for value in values if isinstance(value, str))


def unit_of(expr: RowExpr, schema: Schema) -> str:
    """The unit whose first days or moments alone a date or time can be; empty where it can be any."""
    match expr:
        case Column(name=name):
            domain = domain_of(name, schema)
            return domain.unit if isinstance(domain, Moments | Open) else ""
        case Apply("trunc" | "trunc time", (value, Constant(value=str() as unit))):
            own = unit_of(value, schema)
            return own if divides(own, unit) else unit
        case Apply("time", (value,)):
            return unit_of(value, schema) or "day"
        case Apply("coalesce", (value, Constant(value=date() as other))):
            kind, number, unit = kind_of_moment(other), number_of(other), unit_of(value, schema)
            return unit if unit and truncated(kind, number, unit) == number else ""
    return ""


_MONTHS = ("year", "quarter", "month")


def divides(unit: str, finer: str) -> bool:
    """Whether the first moments of a unit are first ones of a `finer` one as well."""
    if finer in SPANS or finer == "day":
        return SPANS.get(unit, DAY) >= SPANS.get(finer, DAY) if unit else False
    return unit in _MONTHS and finer in _MONTHS[_MONTHS.index(unit) :]


def need_starts(expr: RowExpr, values: Iterable[object], schema: Schema) -> None:
    """Refuses dates and times among the values of a key that no row has, since they begin no unit of it."""
    unit, name = unit_of(expr, schema), expr.name if isinstance(expr, Column) else "key"
    for value in values if unit else ():
        if isinstance(value, date):
            start = moment_of(kind_of_moment(value), truncated(kind_of_moment(value), number_of(value), unit))
            if start != value:
                message = f"no row has `{name}` {value.isoformat()}: that is in {start.isoformat()}"
                help = f'`trunc({value.isoformat()}, "{unit}")` is the first one'
                raise refuse("ValueError", message, help=help)


Columns = tuple[tuple[str, Domain], ...]


def with_period(plan: Plan, schema: Columns, column: str, unit: str) -> tuple[Plan, Columns]:
    """Rows with a further column, the first day of the unit in which a date or time lies."""
    day = Column(column)
    start = Apply("trunc", (day if kind_of(day, dict(schema)) == "date" else Apply("date", (day,)), Constant(unit)))
    own: tuple[tuple[str, RowExpr], ...] = tuple([(name, Column(name)) for name, _ in schema])
    return Derive(plan, (*own, (PERIOD, start))), (*schema, (PERIOD, derived_domain(start, dict(schema))))


def schema_of(plan: Plan) -> dict[str, Domain]:
    """The columns of a plan with what is publicly known of each, recomputed from its definition."""
    return _schema(plan, 0)


def _schema(plan: Plan, depth: int) -> dict[str, Domain]:
    check_plan_depth(depth)
    while isinstance(plan, Filter | Truncate):
        plan = plan.source
    if isinstance(plan, GroupRows):
        return group_rows_schema(plan, _schema(plan.source, depth + 1))
    if isinstance(plan, Bound):
        plan = plan.scan
    if isinstance(plan, Scan):
        return dict(plan.columns)
    if isinstance(plan, Derive):
        inner = _schema(plan.source, depth + 1)
        return {name: derived_domain(expr, inner) for name, expr in plan.columns}
    if isinstance(plan, Union):
        return united_schema([_schema(source, depth + 1) for source in plan.sources])
    if isinstance(plan, Known | Listed):
        return dict(plan.columns)
    return join_schema(plan, _schema(plan.left, depth + 1), _schema(plan.right, depth + 1))


def check_plan_depth(depth: int, most: int = DEPTH) -> None:
    if depth > most:
        raise refuse("RecursionLimit", f"a table made in more than {most} steps", help="make it in fewer steps")


MOST_STEPS, MOST_PARTS = DEPTH - 20, 2**15
"""Of a table that a program makes: an engine reads `DEPTH`, and what is asked of it adds some."""


def check_steps(plan: Plan, most: int = MOST_STEPS) -> None:
    """Refuses a table of too many steps, before anything is asked of it."""
    steps, parts = plan_size(plan)
    check_plan_depth(steps, most)
    check_plan_depth(parts, MOST_PARTS)


@lru_cache(maxsize=2**12)
def plan_size(plan: Plan) -> tuple[int, int]:
    """How many steps, one after the other, lead from data to the rows of a plan, and how many it has in all; conditions
    that follow each other are one, as an engine reads them."""
    if isinstance(plan, Filter) and isinstance(plan.source, Filter):
        return plan_size(plan.source)
    below = [*map(plan_size, inputs(plan)), (0, 0)]
    return 1 + max(steps for steps, _ in below), 1 + sum(parts for _, parts in below)


def join_schema(plan: Join, left: Schema, right: Schema) -> dict[str, Domain]:
    """The columns of a join; both sides have the key columns, of one kind."""
    columns = dict(left) | {name: domain for name, domain in right.items() if name not in left}
    for name, theirs in plan.keys:
        mine, other = domain_of(name, left), domain_of(theirs, right)
        if domain_kind(mine) != domain_kind(other):
            raise mixed(f"the join on `{name}`", domain_kind(mine), domain_kind(other))
        if name == theirs and plan.kind in ("right", "full"):
            columns[name] = other if plan.kind == "right" else united_domain(name, [mine, other])
    if plan.person and not (has_persons(plan.left) and has_persons(plan.right)):
        raise refuse("TypeError", "whose the rows of a side are is not known")
    if not plan.on and not plan.person:
        raise refuse("TypeError", "a join needs a column to join on", help="join U on key")
    return columns


def united_schema(schemas: Sequence[Schema]) -> dict[str, Domain]:
    """The columns of a union: those of the first schema, each with all the values that it has in any of them."""
    if not schemas:
        raise refuse("TypeError", "a union needs a table")
    first = schemas[0]
    for other in schemas[1:]:
        for name in (*first, *other):
            if name not in first or name not in other:
                raise refuse(
                    "NameError", f"only one of the tables of this union has a column `{name}`",
                    help="give all tables the same columns: `pick(t, a, b)` leaves others out, "
                    "`derive(t, a = 0)` adds one",
                )  # fmt: skip
    return {name: united_domain(name, [schema[name] for schema in schemas]) for name in first}


def united_domain(name: str, domains: Sequence[Domain]) -> Domain:
    """The smallest domain that holds the values of several, which are of one kind; a `TypeError` where they are not.

    Categories are listed together, in order of appearance, and ranges span from the least to the largest end.
    """
    kinds = [domain_kind(domain) for domain in domains]
    for kind in kinds[1:]:
        if kind != kinds[0]:
            raise mixed(f"the column `{name}` of this union", kinds[0], kind)
    lists: list[Sequence[Any]] = [domain.values for domain in domains if isinstance(domain, Categories)]
    if len(lists) == len(domains):
        return Categories(tuple(dict.fromkeys(itertools.chain(*lists))))
    schemas = [{name: domain} for domain in domains]
    bounds = [bounds_of(Column(name), schema) for schema in schemas]
    whole = all(is_integral(Column(name), schema) for schema in schemas)
    ends = [pair for pair in bounds if pair is not None]
    units = {unit_of(Column(name), schema) for schema in schemas}
    unit = units.pop() if len(units) == 1 else ""
    if kinds[0] not in ("number", "date", "time") or len(ends) < len(bounds):
        return Open(kinds[0] if kinds[0] != "number" else "integer" if whole else "real", unit)
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    if kinds[0] != "number":
        return Moments(kinds[0], int(low), int(high), unit)
    return Integer(int(low), int(high)) if whole else Real(low, high)


def derived_domain(expr: RowExpr, schema: Schema) -> Domain:
    """The domain of a derived column: a bare column keeps its own; numbers have interval bounds where there are any."""
    kind = kind_of(expr, schema)
    if isinstance(expr, Column):
        return schema[expr.name]
    if kind == "text":
        values = text_values(expr, schema)
        return Categories(values) if values else Open("text")  # an empty list would tell no kind
    if kind == "boolean":
        return Open("boolean")
    bounds = bounds_of(expr, schema)
    if kind in ("date", "time"):
        unit = unit_of(expr, schema)
        return Moments(kind, int(bounds[0]), int(bounds[1]), unit) if bounds else Open(kind, unit)
    if isinstance(expr, Apply) and expr.op == "coalesce" and isinstance(expr.args[0], Column):
        listed = listed_values(expr, schema) if isinstance(schema[expr.args[0].name], Categories) else None
        if listed is not None:
            return Categories(tuple(value for value in listed if isinstance(value, float)))
    if bounds is None:
        return Open("integer" if is_integral(expr, schema) else "real")
    if is_integral(expr, schema):
        return Integer(int(bounds[0]), int(bounds[1]))
    return Real(*bounds)


def floors(key: Key) -> bool:
    """Whether a numeric key is taken down to its integer part: unless its listed values are not whole themselves."""
    return isinstance(key.values, range) or all(
        isinstance(value, float | int) and float(value).is_integer() for value in key.values
    )


def whole_key(expr: RowExpr, schema: Schema) -> RowExpr:
    """A number taken down to an integer."""
    whole = kind_of(expr, schema) != "number" or is_integral(expr, schema)
    return expr if whole else Apply("floor", (expr,))


def group_rows_schema(plan: GroupRows, inner: Schema) -> dict[str, Domain]:
    """The columns of groups of rows over a source with the schema `inner`."""
    keys = {name: derived_domain(expr, inner) for name, expr in plan.keys}
    return keys | {name: _term_domain(term, plan.most, inner) for name, term in plan.terms}


def _term_domain(term: GroupTerm, most: int | None, schema: Schema) -> Domain:
    """What a group of at most `most` rows can have."""
    if isinstance(term, Extreme):
        return derived_domain(term.expr, schema)
    if isinstance(term, Count):
        return Open("integer") if most is None else Integer(int(term.expr is None), most)
    if most is None:
        return Open("real" if term.bits else "integer")
    low, high = min(0.0, term.low * most), max(0.0, term.high * most)
    return Integer(math.floor(low), math.ceil(high)) if not term.bits else Real(low, high)


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
    values: tuple[KeyValue, ...] | None = None
    if kind == "text":
        values = text_values(expr, schema)
    elif isinstance(expr, Column) and isinstance(domain := schema[expr.name], Categories):
        values = tuple(dict.fromkeys(float(value) + 0.0 for value in domain.values))
    if kind == "text" or values is not None:
        _check_count(0 if values is None else len(values), limit)
        return values
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
    step = SPANS.get(unit, 1 if kind == "date" else DAY)
    shortest = {"year": 365, "quarter": 90, "month": 28}.get(unit) or days_in(unit) or 1
    _check_count((high - low) // (step * shortest), limit)
    return tuple(moment_of(kind, number) for number in starts(kind, low, high, unit))


def key_of(expr: RowExpr, over: range | tuple[KeyValue, ...] | None, schema: Schema, limit: int) -> Key | None:
    """A group key over the values that a program lists, or else over its own (`key_values`); None for an open one.

    Listed values of another kind than the expression are a `TypeError`, and those that no row can have a `ValueError`.
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
    need_starts(expr, over, schema)
    return Key(expr, over)


def dimensions(
    axes: Sequence[tuple[str, RowExpr, range | tuple[KeyValue, ...] | None]], schema: Schema, limit: int
) -> tuple[tuple[Key, ...], tuple[str, ...], tuple[int, ...]]:
    """The keys of a histogram's dimensions, their names, and how many values each has; refuses an open one."""
    keys = []
    for name, expr, over in axes:
        key = key_of(expr, over, schema, limit)
        if key is None:
            raise open_keys(name)
        keys.append(key)
    return tuple(keys), tuple(name for name, _, _ in axes), tuple(len(key.values) for key in keys)


@lru_cache(maxsize=2**12)
def column_key(column: Column, domain: Domain, limit: int) -> Key | None:
    """The key of a bare column over its own values; None for an open one."""
    values = key_values(column, {column.name: domain}, limit)
    return None if values is None else Key(column, values)


def need_unicode(value: object) -> None:
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
    left = Apply("floor", (key.expr,)) if numeric and floors(key) else key.expr
    return Apply("==", (left, Constant(float(value) if numeric else value)))


def open_keys(name: str) -> Refusal:
    return refuse(
        "OpenKeys", f"the values that the key `{name}` can have are not public",
        help="describe its column with a range or categories; a select may also list them, `groupby E over {…}`, "
        "or be given a delta, `with epsilon 1 delta 1e-9`",
    )  # fmt: skip


def _check_count(count: int, limit: int) -> None:
    if count > limit:
        many = f"{count:,}" if count < 10**15 else f"about {as_double(count):.0e}"
        raise refuse(
            "DataError",
            f"the key has {many} possible values, more than the {limit:,} that can be held",
            help="take something coarser, such as `x / 1000`, or list the keys of a select with `over {…}`",
        )
