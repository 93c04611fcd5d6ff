"""The kinds of row expressions (number, text, boolean, date, time), and whether they are integers.

All are functions of the expression and of the public schema alone, so refusals are public. This module does not know
SQL. `none` (a null constant) has no kind and is compatible with any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from itertools import repeat

from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.language.moments import kind_of_moment
from jostle.language.operations import COMPARISONS, LOGIC, OPERATIONS, Operation, Whole
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

    Raises `TypeError` for mixed kinds, `NameError` for a missing column, and `RecursionLimit` for nesting deeper than
    `DEPTH`.
    """
    if isinstance(expr, Apply):
        check_depth(expr)
    return _kind(expr, schema) or "number"


def check_depth(expr: RowExpr, room: int = 0) -> None:
    """Refuses an expression of more than `DEPTH` nested operations, with `room` for those around it. Not recursive."""
    level, depth = [expr], room
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
    """A boolean as 1, 0 or none; other expressions unchanged."""
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
    constants = args[len(args) - len(operation.constants) :]
    values = [arg.value for arg in constants if isinstance(arg, Constant) and arg.value is not None]
    if len(values) < len(constants):
        names = " and ".join(f"`{name}`" for name in operation.constants)
        raise refuse(
            "TypeError", f"`{operation.name}` takes constants for {names}", help="they are the same for all rows"
        )
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
    if isinstance(value, date):
        return kind_of_moment(value)
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def domain_kind(domain: Domain) -> str:
    if isinstance(domain, Categories):
        return value_kind(domain.values[0]) if domain.values else "number"
    if isinstance(domain, Moments):
        return domain.kind
    if isinstance(domain, Open):
        return "number" if domain.kind in ("integer", "real") else domain.kind
    return "number"


def as_double(value: float) -> float:
    """The nearest finite double."""
    most = 1.7976931348623157e308
    return float(max(-most, min(most, value))) if abs(value) > 2**1000 else float(value)


FINEST = 850  # bits of the finest grid: its steps, also in products with weights, are doubles


def grid_bits(most: float, digits: int) -> int:
    """The bits of a grid on which numbers up to `most` have about 2^digits steps, at most `FINEST`."""
    return min(FINEST, digits - math.frexp(most)[1]) if most > 0 else 0


def is_integral(expr: RowExpr, schema: Schema) -> bool:
    """Whether every value of a number expression is known to be an integer."""
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
