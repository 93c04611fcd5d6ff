"""Interval arithmetic in doubles: what an operation can give where its operands lie between bounds.

The basic operations round monotonically, so the operation applied to the ends of its operands bounds it without
widening; `log`, `exp` and `^` come from a mathematics library that promises no such thing and are widened. A rule
gives None where there is no bound, and may give an infinite one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Interval = tuple[float, float]
EXACT = 2.0**53


def add(x: Interval, y: Interval) -> Interval:
    return x[0] + y[0], x[1] + y[1]


def subtract(x: Interval, y: Interval) -> Interval:
    return x[0] - y[1], x[1] - y[0]


def multiply(x: Interval, y: Interval) -> Interval:
    return _corners(lambda a, b: a * b, x, y)


def divide(x: Interval, y: Interval) -> Interval | None:
    return None if y[0] <= 0 <= y[1] else _corners(lambda a, b: a / b, x, y)


def remainder(x: Interval, y: Interval, whole: bool = False) -> Interval | None:
    """The remainder has the divisor's sign and stays below it, but for rounding up to it from a tiny negative."""
    if y[0] <= 0 <= y[1]:
        return None
    if y[1] < 0:
        mirrored = remainder(negative(x), negative(y), whole)
        return None if mirrored is None else negative(mirrored)
    if x[0] >= 0 and x[1] < y[0]:
        return x
    if whole and y[1] < EXACT and max(-x[0], x[1]) < EXACT:
        return 0.0, y[1] - 1
    return (0.0, min(x[1], math.nextafter(y[1], 0.0))) if x[0] >= 0 else (0.0, y[1])


def power(x: Interval, y: Interval) -> Interval | None:
    if y[0] == y[1] and y[0].is_integer() and y[0] >= 0:
        ends = [_pow(end, y[0]) for end in x] + ([0.0] if x[0] <= 0 <= x[1] and y[0] > 0 else [])
    elif x[0] > 0 or (x[0] == 0 and y[0] >= 0):
        ends = [_pow(a, b) for a in x for b in y] + ([0.0, 1.0] if x[0] == 0 else [])
    else:
        return None
    return _widened(min(ends), max(ends))


def negative(x: Interval) -> Interval:
    return -x[1], -x[0]


def absolute(x: Interval) -> Interval:
    low = 0.0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1]))
    return low, max(abs(x[0]), abs(x[1]))


def rounded(rounding: Callable[[float], int]) -> Callable[[Interval], Interval]:
    return lambda x: (float(rounding(x[0])), float(rounding(x[1])))


def root(x: Interval) -> Interval | None:
    return None if x[1] < 0 else (math.sqrt(max(x[0], 0.0)), math.sqrt(x[1]))


def logarithm(x: Interval) -> Interval | None:
    """Only positive values have one; a lower end at or below zero gives that of the smallest double."""
    return None if x[1] <= 0 else _widened(math.log(max(x[0], 5e-324)), math.log(x[1]))


def exponential(x: Interval) -> Interval | None:
    return None if x[1] > 709 else _widened(math.exp(x[0]), math.exp(x[1]))


def clamped(x: Interval, low: Interval, high: Interval) -> Interval:
    """max(low, min(high, x)): never above max of the two upper ends, whatever x is."""
    return max(low[0], min(high[0], x[0])), max(low[1], min(high[1], x[1]))


def smaller(x: Interval, y: Interval) -> Interval:
    return min(x[0], y[0]), min(x[1], y[1])


def larger(x: Interval, y: Interval) -> Interval:
    return max(x[0], y[0]), max(x[1], y[1])


def _corners(operation: Callable[[float, float], float], x: Interval, y: Interval) -> Interval:
    ends = [operation(a, b) for a in x for b in y]
    return min(ends), max(ends)


def _pow(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        return math.inf


def _widened(low: float, high: float) -> Interval:
    def out(value: float, towards: float) -> float:
        if not math.isfinite(value) or (value.is_integer() and abs(value) < EXACT):
            return value  # exact in every library we know, and a wider key would be an idle one
        for _ in range(4):
            value = math.nextafter(value, towards)
        return value

    return out(low, -math.inf), out(high, math.inf)
