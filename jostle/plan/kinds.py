"""What is publicly known of row expressions: their kinds (number, text, boolean, date, time), bounds and listed values.

All are functions of the expression and of the public schema alone, so refusals may be shown. This module knows nothing
of SQL. `none` (a null constant) has no kind of its own and goes with any.

Bounds are by interval arithmetic, computed in doubles by the rules of `language.intervals`, about the values that are
not none. Nothing private rests on a bound alone: rows whose key falls outside are in no group, and a sum clamps before
it adds. What an operation gives for listed operands is worked out by its plain meaning, never on rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from datetime import date
from itertools import repeat

from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.language.intervals import Interval, remainder
from jostle.language.moments import DAY, FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME, kind_of_moment, number_of, parse
from jostle.language.operations import COMPARISONS, LOGIC, OPERATIONS, PARTS, Operation, Whole
from jostle.plan.plan import Apply, Categories, Column, Constant, Domain, Integer, Moments, Open, Real, RowExpr

Schema = Mapping[str, Domain]

DEPTH = 200  # nested operations, in an expression or a plan

ARITY = {
    **{name: operation.arity for name, operation in OPERATIONS.items()},
    **dict.fromkeys(COMPARISONS, 2), "not": 1, "if": 3,
}  # fmt: skip
WORDS = {"number": "a number", "text": "text", "boolean": "true or false", "date": "a date", "time": "a time"}
_DATES = "a date is written without quotes, `2024-03-01`, and read from a text by `date(x)`"


def kind_of(expr: RowExpr, schema: Schema) -> str:
    """`number`, `text`, `boolean`, `date` or `time`; `none` alone counts as a number.

    Refuses with `TypeError` what mixes kinds, with `NameError` a column that is not there, and with
    `RecursionLimit` what is nested deeper than `DEPTH`.
    """
    if isinstance(expr, Apply):
        check_depth(expr)
    return _kind(expr, schema) or "number"


def check_depth(expr: RowExpr) -> None:
    """Refuses an expression of more than `DEPTH` nested operations, without recursion of its own."""
    level, depth = [expr], 0
    while level and depth <= DEPTH:
        outer, level, depth = level, [], depth + 1
        for one in outer:
            if isinstance(one, Apply):
                level += one.args
    if not level:
        return
    raise refuse("RecursionLimit", f"more than {DEPTH} nested operations on a row", help="compute it in several steps")


def domain_of(name: str, schema: Schema) -> Domain:
    """The domain of a column, or a `NameError`."""
    if name not in schema:
        hint = did_you_mean(name, schema)
        raise refuse("NameError", f"there is no column `{name}` here", help=hint or "columns: " + ", ".join(schema))
    return schema[name]


def as_number(expr: RowExpr, schema: Schema) -> RowExpr:
    """True as 1 and false as 0, and none where either is missing; an expression of another kind as it is."""
    if kind_of(expr, schema) != "boolean":
        return expr
    false = Apply("if", (Apply("not", (expr,)), Constant(0.0), Constant(None)))
    return Apply("if", (expr, Constant(1.0), false))


def _kind(expr: RowExpr, schema: Schema) -> str | None:
    if isinstance(expr, Column):
        domain = schema[expr.name] if expr.name in schema else domain_of(expr.name, schema)
        return "number" if isinstance(domain, Integer | Real) else domain_kind(domain)
    if isinstance(expr, Constant):
        return "number" if type(expr.value) is float else None if expr.value is None else value_kind(expr.value)
    op, kinds = expr.op, list(map(_kind, expr.args, repeat(schema)))
    if op == "bucket":
        return "number"
    if ARITY.get(op) != len(kinds):
        _check_arity(op, len(kinds))
    if op in LOGIC:
        return _all(op, kinds, "boolean")
    if op in COMPARISONS or op == "in":
        return "boolean" if kinds == ["number", "number"] else _comparison(op, kinds)
    if op == "if":
        _all("if", kinds[:1], "boolean")
        return _alike("the two values of `if`", kinds[1:])
    if op == "coalesce":
        return _alike("`coalesce`", kinds)
    return _operation(OPERATIONS[op], expr.args, kinds)


def _operation(operation: Operation, args: tuple[RowExpr, ...], kinds: list[str | None]) -> str:
    for kind, expected in zip(kinds, operation.kinds, strict=True):
        if expected != "any":
            _all(operation.name, [kind], expected)
    constants = args[len(args) - operation.constants :]
    values = [arg.value for arg in constants if isinstance(arg, Constant) and arg.value is not None]
    if len(values) < len(constants):
        names = operation.signature.split(", ")[len(args) - operation.constants : len(args)]
        raise refuse(
            "TypeError", f"`{operation.name}` takes constants for {' and '.join(f'`{name}`' for name in names)}",
            help="they are the same for all rows",
        )  # fmt: skip
    if operation.check is not None:
        try:
            operation.check(*values)
        except ValueError as error:
            raise refuse("ValueError", str(error)) from None
    return operation.gives


def _alike(what: str, kinds: list[str | None]) -> str | None:
    certain = None
    for kind in kinds:
        if certain is not None and kind not in (None, certain):
            raise mixed(what, certain, kind)
        certain = certain or kind
    return certain


def _check_arity(op: str, count: int) -> None:
    arity = ARITY.get(op)
    if op in ("and", "or", "in", "coalesce"):
        if count < 1:
            raise refuse("TypeError", f"`{op}` needs at least one value")
    elif arity is None:
        raise refuse("TypeError", f"`{op}` cannot be used on the rows of a table")
    elif arity != count:
        raise refuse("TypeError", f"`{op}` takes {arity} value{'s' if arity > 1 else ''}, not {count}")


def _all(op: str, kinds: list[str | None], expected: str) -> str:
    for kind in kinds:
        if kind not in (None, expected):
            help = 'compare each side: `x == "a" or x == "b"`, or `x in ["a", "b"]`' if op in ("and", "or") else ""
            if (kind, expected) == ("boolean", "number"):
                help = "`1 if c else 0` is the number of a condition"
            if kind == "text" and expected != "boolean":
                help = f"`{expected}(x)` reads a text as {WORDS[expected]}"
            message = f"`{op}` needs {WORDS[expected]}, and this is {WORDS[kind or expected]}"
            raise refuse("TypeError", message, help=help)
    return expected


def _comparison(op: str, kinds: list[str | None]) -> str:
    kind = _alike(f"`{op}`", kinds)
    if op in ("<", "<=", ">", ">=") and kind == "boolean":
        raise refuse("TypeError", f"`{op}` does not order true and false", help="compare them with `==`")
    return "boolean"


def mixed(what: str, left: str | None, right: str | None) -> Refusal:
    return refuse(
        "TypeError",
        f"{what} mixes {WORDS[left or 'number']} with {WORDS[right or 'number']}",
        help=_DATES
        if {"date", "time"} & {left, right}
        else "`c` alone is true or false, `not c` its opposite, and `1 if c else 0` a number"
        if "boolean" in (left, right)
        else "the description of the source says which columns are text: `{…}` and `text` are, `a..b` is a number",
    )


def value_kind(value: float | str | bool | date) -> str:
    """The kind of a constant."""
    if isinstance(value, date):
        return kind_of_moment(value)
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def domain_kind(domain: Domain) -> str:
    """The kind of a column's values."""
    if isinstance(domain, Categories):
        return value_kind(domain.values[0]) if domain.values else "number"
    if isinstance(domain, Moments):
        return domain.kind
    if isinstance(domain, Open):
        return "number" if domain.kind in ("integer", "real") else domain.kind
    return "number"


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


FINEST = 850  # bits of the finest grid: an engine's doubles hold its steps, and those of products with weights


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
        branches = [_bounds(value, schema) for value in values if value != Constant(None)]
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
    """The bounds of an operation on texts, where what they can be is listed, or a clock shows."""
    values = listed_values(expr, schema)
    numbers = [value for value in values or () if isinstance(value, float)]
    match expr.args[0]:
        case Apply("time by format", (_, Constant(str(form)))) if not {*parse(form, "time").fields} & {*"Yy"}:
            return 0.0, float(DAY)
    return (min(numbers), max(numbers)) if numbers else None


def _finite(bounds: Interval | None) -> Interval | None:
    if bounds is None or not (math.isfinite(bounds[0]) and math.isfinite(bounds[1])):
        return None
    return bounds[0] + 0.0, bounds[1] + 0.0  # no negative zeros


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
