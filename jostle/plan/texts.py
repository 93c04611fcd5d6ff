"""Row expressions in words, as a program may write them."""

from __future__ import annotations

from datetime import date, datetime
from typing import assert_never

from jostle.plan.plan import Apply, Column, Constant, RowExpr

_BETWEEN = frozenset({"+", "-", "*", "/", "%", "^", "==", "!=", "<", "<=", ">", ">=", "and", "or"})


def expression(expr: RowExpr, inside: bool = False) -> str:
    """A row expression as a program may write it; with `inside` in parentheses where it needs some."""
    match expr:
        case Column():
            return expr.name
        case Constant():
            return constant(expr.value)
        case Apply(op=op, args=(left, right)) if op in _BETWEEN:
            text = f"{expression(left, True)} {op} {expression(right, True)}"
        case Apply(op="in", args=(value, *others)):
            text = f"{expression(value, True)} in [{', '.join(map(expression, others))}]"
        case Apply(op="if", args=(test, then, other)):
            text = f"{expression(then, True)} if {expression(test, True)} else {expression(other, True)}"
        case Apply(op="not", args=(value,)):
            text = f"not {expression(value, True)}"
        case Apply(op="neg", args=(value,)):
            return f"-{expression(value, True)}"
        case Apply():
            return f"{expr.op}({', '.join(map(expression, expr.args))})"
        case _:
            assert_never(expr)
    return f"({text})" if inside else text


def constant(value: float | str | bool | date | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    return '"' + value.replace('"', '\\"') + '"' if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    """A number in full, without a point where it is whole."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
