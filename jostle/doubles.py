"""Arithmetic of the language: doubles that overflow to infinity. One meaning, for runs and for what is said before."""

from __future__ import annotations

import math

from jostle.diagnostics import refuse


def arithmetic(op: str, a: float, b: float) -> float:
    """`a op b` for `+ - * / % ^`; `ValueError` where it has no value. `%` has the sign of the divisor."""
    if op in ("/", "%") and b == 0:
        raise refuse("ValueError", "division by zero", help="test the divisor first: `a / b if b != 0 else 0`")
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
        raise refuse("ValueError", "zero has no negative power") from None
    if isinstance(power, complex):
        raise refuse("ValueError", "a negative number has no fractional power")
    return float(power)
