"""Arithmetic of the language: doubles that overflow to infinity. One meaning, for runs and for what is said before."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from jostle.diagnostics import Diagnostic, Refusal


class NoValue(Refusal):
    """An operation has no value for these numbers, as a division has none by 0; among many it is `none` there."""


def no_value(message: str, help: str = "") -> NoValue:
    return NoValue(Diagnostic("ValueError", message, help=help))


def arithmetic(op: str, a: float, b: float) -> float:
    """`a op b` for `+ - * / % ^`; `ValueError` where it has no value. `%` has the sign of the divisor."""
    if op in ("/", "%") and b == 0:
        raise no_value("division by zero", "test the divisor first: `a / b if b != 0 else 0`")
    try:
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return a / b
            case "%":
                return math.fmod(a, b) + (b if math.fmod(a, b) * b < 0 else 0.0) if math.isfinite(a) else math.nan
            case _:
                power = a**b
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ZeroDivisionError:
        raise no_value("zero has no negative power") from None
    if isinstance(power, complex):
        raise no_value("a negative number has no fractional power")
    return float(power)


_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def ordered(op: str, a: object, b: object) -> bool:
    """`a op b` for `< <= > >=`, of two numbers or two texts."""
    return bool(_ORDERS[op](a, b))


def total(values: Sequence[float]) -> float:
    """The sum, exactly rounded; infinite on overflow, undefined where infinities of both signs meet."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return float(sum(values))


def folded(name: str, items: Sequence[Any], values: Sequence[float]) -> Any:
    """`max over`, `min over`, `sum over`, `argmax over`, `argmin over`; the first of equals wins. Some values."""
    if name == "sum":
        return total(values)
    best = (max if name.endswith("max") else min)(range(len(values)), key=lambda at: float(values[at]))
    return items[best] if name.startswith("arg") else values[best]


def place(at: object, length: int) -> int | None:
    """Where `xs[at]` lies among so many items, from the end where it is negative; None where there is nothing."""
    return int(at) if isinstance(at, (int, float)) and float(at).is_integer() and -length <= at < length else None
