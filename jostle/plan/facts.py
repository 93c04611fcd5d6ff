"""What is publicly known of row expressions beside their kinds: bounds, listed values, units of dates, keys of groups.

All are functions of the expression and of the public schema alone, so answers and refusals may be shown. `FACTS` says
them to what builds plans of private tables (`schemas.Facts` says what for); nothing private rests on them being right.

Bounds are by interval arithmetic, computed in doubles by the rules of `language.row_functions`, about the values that
are not none. What an operation gives for listed operands is worked out by its plain meaning, never on rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache, partial
from typing import Any

from jostle.diagnostics import refuse
from jostle.language import moments
from jostle.language.facts import FLIPPED
from jostle.language.operations import COMPARISONS
from jostle.language.patterns import parse_format, starts, truncated
from jostle.language.row_functions import OPERATIONS, PARTS, Interval, remainder
from jostle.plan import schemas
from jostle.plan.kinds import Schema, as_double, check_depth, domain_of, is_integral, kind_of, value_kind
from jostle.plan.plan import Apply, Categories, Column, Constant, Domain, Integer, Key, Moments, Open, Real, RowExpr
from jostle.plan.schemas import KeyValue
from jostle.records import replace

MOST_COMBINATIONS = 2**17
"""Combinations of operands that are worked out, and whole numbers of a range that are listed, at most."""

Value = float | str | bool | date


def listed_values(expr: RowExpr, schema: Schema) -> tuple[Value, ...] | None:
    """The values that are not missing, each once, in the order in which they are listed; None where they are open."""
    if isinstance(expr, Constant):
        value = expr.value
        if value is None or (isinstance(value, float | int) and not math.isfinite(value)):
            return ()
        return (value,)
    if isinstance(expr, Column):
        domain = domain_of(expr.name, schema)
        if isinstance(domain, Categories):
            return tuple(dict.fromkeys(domain.values))
        if isinstance(domain, Integer) and domain.high - domain.low < MOST_COMBINATIONS:
            return tuple(float(value) for value in range(domain.low, domain.high + 1))
        return None
    operands = expr.args[1:] if expr.op == "if" else expr.args
    parts = [part for operand in operands if (part := listed_values(operand, schema)) is not None]
    if len(parts) < len(operands):
        return None
    if expr.op in ("if", "coalesce"):
        return tuple(dict.fromkeys(itertools.chain(*parts)))
    operation = OPERATIONS.get(expr.op)
    if operation is None or operation.value is None or expr.op == "missing":
        return None
    if math.prod(map(len, parts)) > MOST_COMBINATIONS:
        return None
    values = [operation.value(*operands) for operands in itertools.product(*parts)]
    return tuple(dict.fromkeys(value for value in values if value is not None))


_CALENDAR = {"date": (moments.FIRST_DAY, moments.LAST_DAY), "time": (moments.FIRST_TIME, moments.LAST_TIME)}


def bounds_of(expr: RowExpr, schema: Schema) -> Interval | None:
    """The smallest and the largest finite value that a number expression can have; None where there is no bound."""
    check_depth(expr)
    return _bounds(expr, schema)


def _bounds(expr: RowExpr, schema: Schema) -> Interval | None:
    if isinstance(expr, Constant):
        value = expr.value
        if isinstance(value, date):
            return float(moments.number_of(value)), float(moments.number_of(value))
        if isinstance(value, bool | str) or value is None or not math.isfinite(value):
            return None
        return float(value), float(value)
    if isinstance(expr, Column):
        domain = domain_of(expr.name, schema)
        if isinstance(domain, Integer | Real | Moments):
            return as_double(domain.low), as_double(domain.high)
        if isinstance(domain, Categories) and domain.values and not isinstance(domain.values[0], str):
            numbers = [float(value) for value in domain.values]
            return min(numbers), max(numbers)
        return None
    return _finite(_applied(expr, schema))


def _applied(expr: Apply, schema: Schema) -> Interval | None:
    op = expr.op
    if op in ("if", "coalesce"):
        values = expr.args[int(op == "if") :]  # an `if` has its condition before them
        branches = [_bounds(value, schema) for value in values if value != Constant(None)]
        bounds = [one for one in branches if one is not None]
        return (min(bounds)[0], max(b for _, b in bounds)) if 0 < len(bounds) == len(branches) else None
    if op == "bucket":
        parts = _bounds(expr.args[0], schema)
        return None if parts is None else (0.0, parts[1] - 1)
    if op not in OPERATIONS:
        return None
    many = len(expr.args) - len(OPERATIONS[op].constants)
    if {"text", "any"} & {*OPERATIONS[op].kinds[:many]}:
        return _case_bounds(expr, schema)
    args = [_bounds(arg, schema) for arg in expr.args[:many]]
    if op in PARTS and args[0] is None:
        args[0] = _CALENDAR[OPERATIONS[op].kinds[0]]
    if op in ("clamp", "clamp date", "clamp time") and args[0] is None:
        args[0] = (-math.inf, math.inf)
    operands = [arg for arg in args if arg is not None]
    if len(operands) < len(args):
        return None
    if op == "%":
        return remainder(operands[0], operands[1], all(is_integral(arg, schema) for arg in expr.args))
    constants = (arg.value for arg in expr.args[many:] if isinstance(arg, Constant))
    return OPERATIONS[op].bounds(*operands, *constants)


def _case_bounds(expr: Apply, schema: Schema) -> Interval | None:
    """The bounds of an operation on texts, where what they can be is listed, or a clock shows."""
    values = listed_values(expr, schema)
    numbers = [value for value in values or () if isinstance(value, float)]
    match expr.args[0]:
        case Apply("time by format", (_, Constant(str(form)))) if not {*parse_format(form, "time").fields} & {*"Yy"}:
            return 0.0, float(moments.DAY)
    return (min(numbers), max(numbers)) if numbers else None


def _finite(bounds: Interval | None) -> Interval | None:
    if bounds is None or not (math.isfinite(bounds[0]) and math.isfinite(bounds[1])):
        return None
    return bounds[0] + 0.0, bounds[1] + 0.0  # no negative zeros


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
            kind, number, unit = moments.kind_of_moment(other), moments.number_of(other), unit_of(value, schema)
            return unit if unit and truncated(kind, number, unit) == number else ""
    return ""


def conjuncts(condition: RowExpr) -> list[RowExpr]:
    """The conditions that all hold where this one does."""
    if isinstance(condition, Apply) and condition.op == "and":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


def narrowed_by(tests: Sequence[RowExpr], name: str, domain: Domain) -> Domain:
    """What conditions leave of a column's domain; all of it where that is nothing."""
    narrow = domain
    for test in tests:
        left = _narrowed(narrow, Column(name), test)
        if left is None:
            return domain
        narrow = left
    return narrow


def _narrowed(domain: Domain, column: Column, test: RowExpr) -> Domain | None:
    """What is left of a domain by a comparison of its column with constants; None where nothing is."""
    no = isinstance(test, Apply) and test.op == "not"
    test = test.args[0] if no and isinstance(test, Apply) else test
    if not isinstance(test, Apply) or test.op not in (*COMPARISONS, "in"):
        return domain
    first, *rest = test.args if test.args[0] == column else reversed(test.args)
    op = test.op if test.args[0] == column else FLIPPED.get(test.op, test.op)
    constants = [one.value for one in rest if isinstance(one, Constant)]
    if first != column or not rest or len(constants) < len(rest):
        return domain
    if isinstance(domain, Categories) and op in ("in", "==", "!="):
        values = [value for value in domain.values if (value in constants) != (no != (op == "!="))]
        return replace(domain, values=tuple(values)) if values else None
    return domain if no or op == "!=" else _between(domain, op, constants)


def _between(domain: Domain, op: str, constants: Sequence[float | str | bool | date | None]) -> Domain | None:
    """What is left of a range by a comparison with constants of its kind; all of other domains."""
    kind = domain.kind if isinstance(domain, Moments) else "number"
    fit = all(value is not None and value_kind(value) == kind for value in constants)
    if not isinstance(domain, Integer | Real | Moments) or not fit:
        return domain
    ends = [moments.number_of(value) if isinstance(value, date) else float(value or 0) for value in constants]
    (least, most), low, high = (min(ends), max(ends)), domain.low, domain.high
    if not math.isfinite(sum(ends)):
        return domain
    if not isinstance(domain, Real):
        inside = (math.ceil(least), math.floor(most))  # the first and the last whole number that hold
        least, most = (math.floor(least) + 1, math.ceil(most) - 1) if op in ("<", ">") else inside
    low = low if op in ("<", "<=") else max(low, least)
    high = high if op in (">", ">=") else min(high, most)
    if isinstance(domain, Moments) and domain.unit:
        units = [one for one in starts(domain.kind, domain.low, domain.high, domain.unit) if low <= one <= high]
        low, high = (units[0], units[-1]) if units else (1, 0)
    return replace(domain, low=low, high=high) if low <= high else None


_MONTHS = ("year", "quarter", "month")


def divides(unit: str, finer: str) -> bool:
    """Whether the first moments of a unit are first ones of a `finer` one as well."""
    if finer in moments.SPANS or finer == "day":
        return moments.SPANS.get(unit, moments.DAY) >= moments.SPANS.get(finer, moments.DAY) if unit else False
    return unit == finer or (unit in _MONTHS and finer in _MONTHS[_MONTHS.index(unit) :])


def need_starts(expr: RowExpr, values: Iterable[object], schema: Schema) -> None:
    """Refuses dates and times among the values of a key that no row has, since they begin no unit of it."""
    unit, name = unit_of(expr, schema), expr.name if isinstance(expr, Column) else "key"
    for value in values if unit else ():
        if isinstance(value, date):
            start = moments.moment_of(
                moments.kind_of_moment(value), truncated(moments.kind_of_moment(value), moments.number_of(value), unit)
            )
            if start != value:
                message = f"no row has `{name}` {value.isoformat()}: that is in {start.isoformat()}"
                help = f'`trunc({value.isoformat()}, "{unit}")` is the first one'
                raise refuse("ValueError", message, help=help)


def _union(kind: str, domains: Sequence[Domain]) -> Domain:
    """The smallest domain that holds the values of several, which are of one kind.

    Categories are listed together, in order of appearance, and ranges span from the least to the largest end.
    """
    lists: list[Sequence[Any]] = [domain.values for domain in domains if isinstance(domain, Categories)]
    if len(lists) == len(domains):
        return Categories(tuple(dict.fromkeys(itertools.chain(*lists))))
    column, schemas = Column(""), [{"": domain} for domain in domains]
    bounds = [bounds_of(column, schema) for schema in schemas]
    whole = all(is_integral(column, schema) for schema in schemas)
    ends = [pair for pair in bounds if pair is not None]
    units = {unit_of(column, schema) for schema in schemas}
    unit = units.pop() if len(units) == 1 else ""
    if kind not in ("number", "date", "time") or len(ends) < len(bounds):
        return Open(kind if kind != "number" else "integer" if whole else "real", unit)
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    if kind != "number":
        return Moments(kind, int(low), int(high), unit)
    return Integer(int(low), int(high)) if whole else Real(low, high)


def _domain(expr: RowExpr, kind: str, schema: Schema) -> Domain | None:
    """The domain of a derived column: numbers have interval bounds where there are any."""
    if kind == "text":
        values = text_values(expr, schema)
        return Categories(values) if values else None  # an empty list would tell no kind
    if kind == "boolean":
        return None
    bounds = bounds_of(expr, schema)
    if kind in ("date", "time"):
        unit = unit_of(expr, schema)
        return Moments(kind, int(bounds[0]), int(bounds[1]), unit) if bounds else Open(kind, unit)
    if isinstance(expr, Apply) and expr.op == "coalesce" and isinstance(expr.args[0], Column):
        listed = listed_values(expr, schema) if isinstance(schema[expr.args[0].name], Categories) else None
        if listed is not None:
            return Categories(tuple(value for value in listed if isinstance(value, float)))
    if bounds is None:
        return None
    return Integer(int(bounds[0]), int(bounds[1])) if is_integral(expr, schema) else Real(*bounds)


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
    step = moments.SPANS.get(unit, 1 if kind == "date" else moments.DAY)
    shortest = {"year": 365, "quarter": 90, "month": 28}.get(unit) or moments.days_in(unit) or 1
    _check_count((high - low) // (step * shortest), limit)
    return tuple(moments.moment_of(kind, number) for number in starts(kind, low, high, unit))


@lru_cache(maxsize=2**12)
def column_key(column: Column, domain: Domain, limit: int) -> Key | None:
    """The key of a bare column over its own values; None for an open one."""
    values = key_values(column, {column.name: domain}, limit)
    return None if values is None else Key(column, values)


def _check_count(count: int, limit: int) -> None:
    if count > limit:
        many = f"{count:,}" if count < 10**15 else f"about {as_double(count):.0e}"
        raise refuse(
            "ValueError",
            f"the key has {many} possible values, more than the {limit:,} that can be held",
            help="take something coarser, such as `x / 1000`, or list the keys of a select with `over {…}`",
        )


def _key(expr: RowExpr, schema: Schema, limit: int) -> Key | None:
    if isinstance(expr, Column) and expr.name in schema:
        return column_key(expr, schema[expr.name], limit)
    values = key_values(expr, schema, limit)
    return None if values is None else Key(expr, values)


FACTS = schemas.Facts(bounds_of, _domain, _union, _key, need_starts)
derived_domain, key_of = partial(schemas.derived_domain, facts=FACTS), partial(schemas.key_of, facts=FACTS)
schema_of, united_domain = partial(schemas.schema_of, facts=FACTS), partial(schemas.united_domain, facts=FACTS)
