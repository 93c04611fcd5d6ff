"""The small language of formulas: features, numbers, + − × ÷, log, sqrt, min, max, and thresholds, `1 if f > c else 0`.

An expression can be evaluated on columns of features, bounded over their ranges, and written as text of the language.
It has a value wherever its bounds are known: what could take the logarithm of 0, or divide by it, has no bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from jostle.choice.models import Array
from jostle.language.row_functions import OPERATIONS
from jostle.lazy import np
from jostle.records import replace

FEATURE, NUMBER, ABOVE = "feature", "number", "above"
UNARY = ("log", "sqrt")
BINARY = ("+", "-", "*", "/", "min", "max")

LARGE = 1e100
"""Bounds beyond this are no bounds: a product of two such numbers would overflow."""

Bounds = tuple[float, float]

_COST = {FEATURE: 1, NUMBER: 1, ABOVE: 2}
_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2}


class Expression(Struct, frozen=True):
    """`op` is one of `UNARY` and `BINARY`, or `FEATURE` (`name`), `NUMBER` (`number`), `ABOVE` (its argument is above
    `number`)."""

    op: str
    args: tuple[Expression, ...] = ()
    number: float = 0.0
    name: str = ""

    @property
    def complexity(self) -> int:
        """The number of features, numbers and operators; a threshold counts for two."""
        return _COST.get(self.op, 1) + sum(arg.complexity for arg in self.args)

    @property
    def features(self) -> set[str]:
        return {self.name} if self.op == FEATURE else {name for arg in self.args for name in arg.features}

    def values(self, columns: Mapping[str, Array]) -> Array:
        """Its value for each row of the columns: shape (n,), or a number where it reads no feature."""
        if self.op == FEATURE:
            return columns[self.name]
        if self.op == NUMBER:
            return np.float64(self.number)  # type: ignore[return-value]
        if self.op == ABOVE:
            return (self.args[0].values(columns) > self.number).astype(np.float64)
        return applied(self.op, *(arg.values(columns) for arg in self.args))

    def bounds(self, ranges: Mapping[str, Bounds]) -> Bounds | None:
        """The least and the largest value while each feature stays in its range; None where it may have none."""
        if self.op == FEATURE:
            return ranges[self.name]
        if self.op == NUMBER:
            return self.number, self.number
        inside = [arg.bounds(ranges) for arg in self.args]
        parts = [bounds for bounds in inside if bounds is not None]
        if len(parts) < len(inside):
            return None
        return (0.0, 1.0) if self.op == ABOVE else bounded(self.op, *parts)

    def numbers(self) -> Iterator[float]:
        """The numbers in it, from left to right, thresholds left out."""
        if self.op == NUMBER:
            yield self.number
        for arg in self.args:
            yield from arg.numbers()

    def with_numbers(self, numbers: Iterator[float]) -> Expression:
        """The same with other numbers, in the order of `numbers()`."""
        if self.op == NUMBER:
            return replace(self, number=next(numbers))
        return replace(self, args=tuple(arg.with_numbers(numbers) for arg in self.args))

    def text(self, level: int = 0) -> str:
        """Its text in the language, in parentheses where what stands around it binds as tightly as `level`."""
        if self.op == FEATURE:
            return self.name
        if self.op == NUMBER:
            return f"({self.number:.6g})" if self.number < 0 and level else f"{self.number:.6g}"
        if self.op == ABOVE:
            text = f"1 if {self.args[0].text()} > {self.number:.6g} else 0"
            return f"({text})" if level else text
        if self.op not in _LEVEL:
            return f"{self.op}({', '.join(arg.text() for arg in self.args)})"
        own = _LEVEL[self.op]
        left, right = self.args
        text = f"{left.text(own)} {self.op} {right.text(own + (self.op in '-/'))}"
        return f"({text})" if own < level else text


def applied(op: str, *args: Array) -> Array:
    """The value of an operator, element by element."""
    columns = OPERATIONS[op].columns
    if columns is None:
        raise TypeError(f"`{op}` is no operator on numbers")
    with np.errstate(all="ignore"):
        value: Array = columns(np, *args)
    return value


def bounded(op: str, *parts: Bounds) -> Bounds | None:
    """Bounds of an operator's value from those of its arguments; None where it may have no value, or one too large.
    Denominators and arguments of logarithms stay away from 0 by a billionth of their largest size."""
    low, high = parts[-1]
    away = 1e-9 * max(abs(low), abs(high))
    if (op == "/" and low <= away and high >= -away) or (op == "log" and low <= away) or (op == "sqrt" and low < 0):
        return None
    result = OPERATIONS[op].bounds(*parts)
    return result if result is not None and max(map(abs, result)) < LARGE else None
