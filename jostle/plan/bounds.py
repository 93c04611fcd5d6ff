"""Interval arithmetic over row expressions: the public bounds that keys and sums are made of.

A bound is about the values that are not none, computed in doubles by the rules of `language.intervals`. Nothing
private rests on a bound alone: rows whose key falls outside are in no group, and a sum clamps before it adds.

Every value that an expression can have, where the schema lists those of its columns.

What an operation gives for listed operands is worked out by its plain meaning, never on rows.
"""

from __future__ import annotations

import itertools
import math
from datetime import date

from jostle.language.intervals import Interval, remainder
from jostle.language.moments import FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME, number_of
from jostle.language.operations import OPERATIONS, PARTS, Whole
from jostle.plan.kinds import Schema, check_depth, domain_of
from jostle.plan.plan import Apply, Categories, Column, Constant, Integer, Moments, Open, Real, RowExpr

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


_CALENDAR = {"date": (FIRST_DAY, LAST_DAY), "time": (FIRST_TIME, LAST_TIME)}


def bounds_of(expr: RowExpr, schema: Schema) -> Interval | None:
    """The smallest and the largest finite value that a number expression can have; None where there is no bound."""
    check_depth(expr)
    return _bounds(expr, schema)


def as_double(value: float) -> float:
    """The nearest finite double."""
    most = 1.7976931348623157e308
    return float(max(-most, min(most, value))) if abs(value) > 2**1000 else float(value)


FINEST = 850
"""Bits of the finest grid: an engine's doubles hold its steps, and those of products with weights."""


def grid_bits(most: float, digits: int) -> int:
    """The bits of a grid on which numbers up to `most` have about 2^digits steps; on the finest one they have fewer."""
    return min(FINEST, digits - math.frexp(most)[1]) if most > 0 else 0


def _bounds(expr: RowExpr, schema: Schema) -> Interval | None:
    if isinstance(expr, Constant):
        value = expr.value
        if isinstance(value, date):
            return float(number_of(value)), float(number_of(value))
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
        branches = [_bounds(value, schema) for value in values if not _is_none(value)]
        bounds = [one for one in branches if one is not None]
        return (min(bounds)[0], max(b for _, b in bounds)) if 0 < len(bounds) == len(branches) else None
    if op == "bucket":
        parts = _bounds(expr.args[0], schema)
        return None if parts is None else (0.0, parts[1] - 1)
    if op not in OPERATIONS:
        return None
    many = len(expr.args) - OPERATIONS[op].constants
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
        return remainder(operands[0], operands[1], all(_integral(arg, schema) for arg in expr.args))
    constants = (arg.value for arg in expr.args[many:] if isinstance(arg, Constant))
    return OPERATIONS[op].bounds(*operands, *constants)


def _case_bounds(expr: Apply, schema: Schema) -> Interval | None:
    """The bounds of an operation on texts, where what they can be is listed."""
    values = listed_values(expr, schema)
    numbers = [value for value in values or () if isinstance(value, float)]
    return (min(numbers), max(numbers)) if numbers else None


def _finite(bounds: Interval | None) -> Interval | None:
    if bounds is None or not (math.isfinite(bounds[0]) and math.isfinite(bounds[1])):
        return None
    return bounds[0] + 0.0, bounds[1] + 0.0  # no negative zeros


def _is_none(expr: RowExpr) -> bool:
    return isinstance(expr, Constant) and expr.value is None


def is_integral(expr: RowExpr, schema: Schema) -> bool:
    """Whether every value of a number expression is known to be a whole number."""
    check_depth(expr)
    return _integral(expr, schema)


def _integral(expr: RowExpr, schema: Schema) -> bool:
    if isinstance(expr, Constant):
        value = expr.value
        return (
            value is None
            or isinstance(value, date)
            or (not isinstance(value, bool | str) and float(value).is_integer())
        )
    if isinstance(expr, Column):
        domain = domain_of(expr.name, schema)
        if isinstance(domain, Categories):
            return all(not isinstance(value, str) and float(value).is_integer() for value in domain.values)
        open_whole = isinstance(domain, Open) and domain.kind in ("integer", "date", "time")
        return open_whole or isinstance(domain, Integer | Moments)
    if expr.op in ("if", "coalesce"):
        return all(_integral(arg, schema) for arg in expr.args[expr.op == "if" :])
    whole = OPERATIONS[expr.op].whole if expr.op in OPERATIONS else Whole.NEVER
    if whole is Whole.ALWAYS or expr.op == "bucket":
        return True
    return whole is Whole.FROM_WHOLE and all(_integral(arg, schema) for arg in expr.args)
