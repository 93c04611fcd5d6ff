"""Row programs: what may be calculated of one private row, as data.

An expression is a whole number, or an array of whole numbers, of one row, made of the row's columns by a closed list of
operations, each a class. Making one runs interval analysis: shapes fit, indices stay within their tables, divisors are
positive and no number or partial sum reaches 2^53, or it is refused with a `RowProgramError`. So what is made is total,
a function of the row alone, and exact in any order of additions, whoever wrote it: builders
(`jostle.kernels.rowprograms`) need no trust (docs/privacy/row_programs.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.lazy import Floats, np

Shape = tuple[int, ...]

EXACT = 2**53
"""Whole numbers below it, and sums of them that stay below it, are exact in doubles."""

LARGEST_SHAPE = 2**22
"""Numbers that one expression may hold for a row."""


class RowProgramError(ValueError):
    """An expression that cannot be made: its shapes, intervals or tables do not fit. Public: no row was read."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A whole number of each row, or an array of `shape` of them, each within [`low`, `high`]."""

    shape: Shape
    low: int
    high: int

    @property
    def operands(self) -> tuple[Expression, ...]:
        return ()

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        """Its value for a batch of n rows, of shape (*shape, n), from those of its operands; `out` may be written."""
        raise TypeError("an input has no operation")

    def __add__(self, other: Expression | int) -> Expression:
        return Sum.of(self, as_expression(other))

    def __sub__(self, other: Expression | int) -> Expression:
        return Difference.of(self, as_expression(other))

    def __mul__(self, other: Expression | int) -> Expression:
        return Product.of(self, as_expression(other))

    def __floordiv__(self, other: Expression | int) -> Expression:
        return Quotient.of(self, as_expression(other))

    def __neg__(self) -> Expression:
        return Difference.of(constant(0), self)


def checked(shape: Shape, low: int, high: int) -> tuple[Shape, int, int]:
    """The facts of an expression, where doubles hold its numbers exactly."""
    if math.prod(shape) > LARGEST_SHAPE or any(size < 1 for size in shape):
        raise RowProgramError(f"an array of {' × '.join(map(str, shape))} numbers a row")
    if low > high:
        raise RowProgramError("an empty interval")
    if max(abs(low), abs(high)) >= EXACT:
        raise RowProgramError("a number may leave what is exact")
    return shape, low, high


def broadcast(one: Expression, other: Expression) -> Shape:
    if not one.shape or one.shape == other.shape:
        return other.shape
    if not other.shape:
        return one.shape
    try:
        return np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        raise RowProgramError(f"shapes {one.shape} and {other.shape} do not fit") from None


def whole_array(values: object, what: str = "a constant") -> Floats:
    """A public array of whole numbers, read only."""
    array = np.array(values, dtype=np.float64)
    if not np.abs(array).max(initial=0.0) < EXACT or (array != np.trunc(array)).any():  # no NaN is below it
        raise RowProgramError(f"{what} is made of whole numbers below 2^53")
    array.setflags(write=False)
    return array


def interval_of(array: Floats) -> tuple[int, int]:
    if not array.size:
        raise RowProgramError("an empty array")
    return int(array.min()), int(array.max())


@dataclass(frozen=True, slots=True, eq=False)
class Columns(Expression):
    """An input: columns of the row, whole numbers within the interval, which the reader of rows guarantees."""


def columns(shape: Shape, low: int, high: int) -> Columns:
    return Columns(*checked(shape, low, high))


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Expression):
    """Public whole numbers, the same in every row."""

    values: Floats

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        return self.values[..., None]


def constant(values: object) -> Constant:
    if type(values) is int and abs(values) < EXACT:
        array = np.array(values, dtype=np.float64)
        array.setflags(write=False)
        return Constant((), values, values, array)
    array = whole_array(values)
    return Constant(*checked(array.shape, *interval_of(array)), array)


def as_expression(value: Expression | int) -> Expression:
    return value if isinstance(value, Expression) else constant(value)


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expression):
    left: Expression
    right: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.left, self.right)


class Sum(Binary):
    @classmethod
    def of(cls, left: Expression, right: Expression) -> Sum:
        return cls(*checked(broadcast(left, right), left.low + right.low, left.high + right.high), left, right)

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        left, right = operands
        return np.add(left, right, out=out)


class Difference(Binary):
    @classmethod
    def of(cls, left: Expression, right: Expression) -> Difference:
        return cls(*checked(broadcast(left, right), left.low - right.high, left.high - right.low), left, right)

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        left, right = operands
        return np.subtract(left, right, out=out)


class Product(Binary):
    @classmethod
    def of(cls, left: Expression, right: Expression) -> Product:
        corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        low, high = min(corners), max(corners)
        if left is right:
            low = 0 if left.low <= 0 <= left.high else min(left.low**2, left.high**2)
        return cls(*checked(broadcast(left, right), low, high), left, right)

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        left, right = operands
        return np.multiply(left, right, out=out)


class Quotient(Binary):
    """left // right, rounded down, of a positive right.

    Exact though a double rounds left / right: |left| ≤ 2^52 makes the rounding error at most 1/(2·right), and a
    quotient that is not whole is at least 1/right away from the next whole number.
    """

    @classmethod
    def of(cls, left: Expression, right: Expression) -> Quotient:
        if right.low < 1:
            raise RowProgramError("a divisor may be zero or negative")
        if max(abs(left.low), abs(left.high)) > EXACT // 2:
            raise RowProgramError("a dividend may leave what is exact")
        low = left.low // (right.low if left.low < 0 else right.high)
        high = left.high // (right.high if left.high < 0 else right.low)
        return cls(*checked(broadcast(left, right), low, high), left, right)

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        left, right = operands
        ratio = np.asarray(np.divide(left, right, out=out))
        np.floor(ratio, out=ratio)
        return ratio


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Binary):
    """1 where left `relation` right, else 0; the relation is "==", "<" or "<="."""

    relation: str

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        left, right = operands
        holds = left == right if self.relation == "==" else left < right if self.relation == "<" else left <= right
        return np.asarray(holds, dtype=np.float64)


def comparison(left: Expression | int, relation: str, right: Expression | int) -> Comparison:
    if relation not in ("==", "<", "<="):
        raise RowProgramError(f"no relation {relation}")
    one, other = as_expression(left), as_expression(right)
    return Comparison(*checked(broadcast(one, other), 0, 1), one, other, relation)


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expression):
    argument: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.argument,)


@dataclass(frozen=True, slots=True, eq=False)
class Shift(Unary):
    """The argument divided by 2^places and rounded down; with negative places multiplied."""

    places: int

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        scaled = np.multiply(operands[0], 2.0**-self.places, out=out)
        return np.floor(scaled, out=scaled) if self.places > 0 else scaled


def shift(argument: Expression, places: int) -> Expression:
    if abs(places) > 1000:
        raise RowProgramError("a shift by more than 1000 places")
    if places >= 0:
        low, high = argument.low >> places, argument.high >> places
    else:
        low, high = argument.low << -places, argument.high << -places
    return Shift(*checked(argument.shape, low, high), argument, places)


@dataclass(frozen=True, slots=True, eq=False)
class Clamp(Unary):
    """The argument within the interval of this expression."""

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        clamped = np.maximum(operands[0], float(self.low), out=out)
        return np.minimum(clamped, float(self.high), out=clamped)


def clamp(argument: Expression, low: int, high: int) -> Expression:
    if low <= argument.low and argument.high <= high:
        return argument
    return Clamp(*checked(argument.shape, low, high), argument)
