"""Interval arithmetic over row expressions: the public bounds that keys and sums are made of.

A bound is about the values that are not none, computed in doubles. The basic operations round monotonically, so the
operation applied to the ends of its operands bounds it without widening; `log`, `exp` and `^` come from a
mathematics library that promises no such thing and are widened. Nothing private rests on a bound alone: rows whose
key falls outside are in no group, and a sum clamps before it adds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from jostle.engine.kinds import Schema, check_depth, domain_of
from jostle.engine.plan import Apply, Categories, Column, Constant, Integer, Open, Real, RowExpr

Interval = tuple[float, float]
_EXACT = 2.0**53
_INTEGRAL_ALWAYS = frozenset({"floor", "ceil", "round", "bucket"})
_INTEGRAL_IF_ARGS = frozenset({"+", "-", "*", "%", "neg", "abs", "min", "max", "clamp"})


def bounds_of(expr: RowExpr, schema: Schema) -> Interval | None:
    """The smallest and the largest finite value that a number expression can have; None where there is no bound."""
    check_depth(expr)
    return _bounds(expr, schema)


def as_double(value: float) -> float:
    """The nearest finite double."""
    most = 1.7976931348623157e308
    return float(max(-most, min(most, value))) if abs(value) > 2**1000 else float(value)


def _bounds(expr: RowExpr, schema: Schema) -> Interval | None:
    if isinstance(expr, Constant):
        value = expr.value
        if isinstance(value, bool | str) or value is None or not math.isfinite(value):
            return None
        return float(value), float(value)
    if isinstance(expr, Column):
        domain = domain_of(expr.name, schema)
        if isinstance(domain, Integer | Real):
            return as_double(domain.low), as_double(domain.high)
        if isinstance(domain, Categories) and domain.values and not isinstance(domain.values[0], str):
            numbers = [float(value) for value in domain.values]
            return min(numbers), max(numbers)
        return None
    return _finite(_applied(expr, schema))


def _applied(expr: Apply, schema: Schema) -> Interval | None:
    op = expr.op
    if op == "if":
        found = [_bounds(arg, schema) for arg in expr.args[1:] if not _is_none(arg)]
        known = [one for one in found if one is not None]
        return None if not known or len(known) < len(found) else (min(a for a, _ in known), max(b for _, b in known))
    if op == "bucket":
        parts = _bounds(expr.args[0], schema)
        return None if parts is None else (0.0, parts[1] - 1)
    args = [_bounds(arg, schema) for arg in expr.args]
    if op == "clamp":
        return _clamp(args)
    known = [arg for arg in args if arg is not None]
    if len(known) < len(args):
        return None
    if op == "%":
        return _remainder(known[0], known[1], all(_integral(arg, schema) for arg in expr.args))
    rule = _RULES.get(op)
    return None if rule is None else rule(*known)


def _finite(bounds: Interval | None) -> Interval | None:
    if bounds is None or not (math.isfinite(bounds[0]) and math.isfinite(bounds[1])):
        return None
    return bounds[0] + 0.0, bounds[1] + 0.0  # no negative zeros


def _is_none(expr: RowExpr) -> bool:
    return isinstance(expr, Constant) and expr.value is None


def _clamp(args: list[Interval | None]) -> Interval | None:
    """max(low, min(high, x)): never above max of the two upper ends, whatever x is."""
    x, low, high = args
    if low is None or high is None:
        return None
    if x is None:
        return low[0], max(low[1], high[1])
    return max(low[0], min(high[0], x[0])), max(low[1], min(high[1], x[1]))


def _corners(op: Callable[[float, float], float]) -> Callable[[Interval, Interval], Interval]:
    def rule(x: Interval, y: Interval) -> Interval:
        ends = [op(a, b) for a in x for b in y]
        return min(ends), max(ends)

    return rule


def _divide(x: Interval, y: Interval) -> Interval | None:
    if y[0] <= 0 <= y[1]:
        return None
    return _corners(lambda a, b: a / b)(x, y)


def _remainder(x: Interval, y: Interval, integral: bool) -> Interval | None:
    """The remainder has the divisor's sign and stays below it, but for rounding up to it from a tiny negative."""
    if y[0] <= 0 <= y[1]:
        return None
    if y[1] < 0:
        return _mirror(_remainder((-x[1], -x[0]), (-y[1], -y[0]), integral))
    if x[0] >= 0 and x[1] < y[0]:
        return x
    if integral and y[1] < _EXACT and max(-x[0], x[1]) < _EXACT:
        return 0.0, y[1] - 1
    return (0.0, min(x[1], math.nextafter(y[1], 0.0))) if x[0] >= 0 else (0.0, y[1])


def _mirror(bounds: Interval | None) -> Interval | None:
    return None if bounds is None else (-bounds[1], -bounds[0])


def _power(x: Interval, y: Interval) -> Interval | None:
    if y[0] == y[1] and y[0].is_integer() and y[0] >= 0:
        ends = [_pow(end, y[0]) for end in x] + ([0.0] if x[0] <= 0 <= x[1] and y[0] > 0 else [])
    elif x[0] > 0 or (x[0] == 0 and y[0] >= 0):
        ends = [_pow(a, b) for a in x for b in y] + ([0.0, 1.0] if x[0] == 0 else [])
    else:
        return None
    return _widened(min(ends), max(ends))


def _pow(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        return math.inf


def _exp(x: Interval) -> Interval | None:
    return None if x[1] > 709 else _widened(math.exp(x[0]), math.exp(x[1]))


def _log(x: Interval) -> Interval | None:
    """Only positive values have one; a lower end at or below zero gives that of the smallest double."""
    return None if x[1] <= 0 else _widened(math.log(max(x[0], 5e-324)), math.log(x[1]))


def _sqrt(x: Interval) -> Interval | None:
    return None if x[1] < 0 else (math.sqrt(max(x[0], 0.0)), math.sqrt(x[1]))


def _widened(low: float, high: float) -> Interval:
    def out(value: float, towards: float) -> float:
        if not math.isfinite(value) or (value.is_integer() and abs(value) < _EXACT):
            return value  # exact in every library we know, and a wider key would be an idle one
        for _ in range(4):
            value = math.nextafter(value, towards)
        return value

    return out(low, -math.inf), out(high, math.inf)


def _abs(x: Interval) -> Interval:
    low = 0.0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1]))
    return low, max(abs(x[0]), abs(x[1]))


def _whole(rounding: Callable[[float], int]) -> Callable[[Interval], Interval]:
    return lambda x: (float(rounding(x[0])), float(rounding(x[1])))


_RULES: dict[str, Callable[..., Interval | None]] = {
    "+": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "-": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "*": _corners(lambda a, b: a * b),
    "/": _divide,
    "^": _power,
    "neg": lambda x: (-x[1], -x[0]),
    "abs": _abs,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _whole(round),
    "sqrt": _sqrt,
    "log": _log,
    "exp": _exp,
    "min": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "max": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
}


def is_integral(expr: RowExpr, schema: Schema) -> bool:
    """Whether every value of a number expression is known to be a whole number."""
    check_depth(expr)
    return _integral(expr, schema)


def _integral(expr: RowExpr, schema: Schema) -> bool:
    if isinstance(expr, Constant):
        value = expr.value
        return value is None or (not isinstance(value, bool | str) and float(value).is_integer())
    if isinstance(expr, Column):
        domain = domain_of(expr.name, schema)
        if isinstance(domain, Categories):
            return all(not isinstance(value, str) and float(value).is_integer() for value in domain.values)
        return isinstance(domain, Integer) or (isinstance(domain, Open) and domain.kind == "integer")
    if expr.op in _INTEGRAL_ALWAYS:
        return True
    return (expr.op in _INTEGRAL_IF_ARGS and all(_integral(arg, schema) for arg in expr.args)) or (
        expr.op == "if" and all(_integral(arg, schema) for arg in expr.args[1:])
    )
