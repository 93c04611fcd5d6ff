"""Row programs: functions of one private row, represented as data.

An expression is an integer, or an array of integers, computed from one row: columns of the row, a constant, or one of a
closed list of operations (`OPERATIONS`) on other expressions. Constructing one runs an interval analysis: shapes must
match, indices must be within tables, divisors must be positive, and no number or partial sum may reach 2^53; otherwise
a `RowProgramError` is raised. So every expression is total, a function of the row alone, and exact in any order of
additions. Code that builds them (`jostle.kernels.rowprograms`) need not be trusted (docs/privacy/row_programs.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jostle.integers import narrowed
from jostle.lazy import Floats, np

Shape = tuple[int, ...]

EXACT = 2**53
"""Integers below it, and sums of them below it, are exact in doubles."""

LARGEST_SHAPE = 2**22
"""The largest number of values of one expression for a row."""


class RowProgramError(ValueError):
    """An invalid expression: shapes, intervals or tables do not match. Raised before any row is read."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """An integer of each row, or an array of `shape` of integers, each within [`low`, `high`].

    `array` is the public table, matrix or constant of an operation, `numbers` its public axis or indices.
    """

    operation: str
    shape: Shape
    low: int
    high: int
    operands: tuple[Expression, ...] = ()
    array: Floats | None = None
    numbers: tuple[int, ...] = ()

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        """The value for a batch of n rows, of shape (*shape, n), from those of the operands. `out` may be written."""
        return OPERATIONS[self.operation](self, out, *operands)

    def __add__(self, other: Expression | int) -> Expression:
        right = as_expression(other)
        return _operation("+", broadcast(self, right), self.low + right.low, self.high + right.high, self, right)

    def __sub__(self, other: Expression | int) -> Expression:
        right = as_expression(other)
        return _operation("-", broadcast(self, right), self.low - right.high, self.high - right.low, self, right)

    def __mul__(self, other: Expression | int) -> Expression:
        right = as_expression(other)
        corners = [a * b for a in (self.low, self.high) for b in (right.low, right.high)]
        low = min(corners)
        if self is right:
            low = 0 if self.low <= 0 <= self.high else min(self.low**2, self.high**2)
        return _operation("*", broadcast(self, right), low, max(corners), self, right)

    def __floordiv__(self, other: Expression | int) -> Expression:
        """The quotient by a positive divisor, rounded down.

        It is exact although doubles round left / right: for |left| ≤ 2^52 the rounding error is at most 1/(2·right),
        and a quotient that is not an integer is at least 1/right away from the next integer.
        """
        right = as_expression(other)
        if right.low < 1:
            raise RowProgramError("a divisor may be zero or negative")
        if max(abs(self.low), abs(self.high)) > EXACT // 2:
            raise RowProgramError("a dividend may leave what is exact")
        low = self.low // (right.low if self.low < 0 else right.high)
        high = self.high // (right.high if self.high < 0 else right.low)
        return _operation("//", broadcast(self, right), low, high, self, right)

    def __neg__(self) -> Expression:
        return constant(0) - self


def _operation(
    operation: str, shape: Shape, low: int, high: int, *operands: Expression, array: Floats | None = None,
    numbers: tuple[int, ...] = (),
) -> Expression:  # fmt: skip
    """An expression whose numbers are exact in doubles."""
    if math.prod(shape) > LARGEST_SHAPE or any(size < 1 for size in shape):
        raise RowProgramError(f"an array of {' × '.join(map(str, shape))} numbers a row")
    if low > high:
        raise RowProgramError("an empty interval")
    if max(abs(low), abs(high)) >= EXACT:
        raise RowProgramError("a number may leave what is exact")
    return Expression(operation, shape, low, high, operands, array, numbers)


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
    """A public array of integers, read-only."""
    array = np.array(values, dtype=np.float64)
    if not np.abs(array).max(initial=0.0) < EXACT or (array != np.trunc(array)).any():  # also refuses NaN
        raise RowProgramError(f"{what} is made of whole numbers below 2^53")
    array.setflags(write=False)
    return array


def interval_of(array: Floats) -> tuple[int, int]:
    if not array.size:
        raise RowProgramError("an empty array")
    return int(array.min()), int(array.max())


def as_expression(value: Expression | int) -> Expression:
    return value if isinstance(value, Expression) else constant(value)


# What is calculated --------------------------------------------------------------------------------


def columns(shape: Shape, low: int, high: int) -> Expression:
    """An input: columns of the row, integers within the interval, which the reader of rows guarantees."""
    return _operation("columns", shape, low, high)


def constant(values: object) -> Expression:
    """Public integers, the same in every row."""
    if type(values) is int and abs(values) < EXACT:
        array = np.array(values, dtype=np.float64)
        array.setflags(write=False)
        return Expression("constant", (), values, values, (), array)
    array = whole_array(values)
    return _operation("constant", array.shape, *interval_of(array), array=array)


def comparison(left: Expression | int, relation: str, right: Expression | int) -> Expression:
    """1 if left `relation` right, else 0. The relation is "==", "<" or "<="."""
    if relation not in ("==", "<", "<="):
        raise RowProgramError(f"no relation {relation}")
    one, other = as_expression(left), as_expression(right)
    return _operation(relation, broadcast(one, other), 0, 1, one, other)


def shift(argument: Expression, places: int) -> Expression:
    """The argument divided by 2^places, rounded down; multiplied if `places` is negative."""
    if abs(places) > 1000:
        raise RowProgramError("a shift by more than 1000 places")
    low, high = (end >> places if places >= 0 else end << -places for end in (argument.low, argument.high))
    return _operation("shift", argument.shape, low, high, argument, numbers=(places,))


def clamp(argument: Expression, low: int, high: int) -> Expression:
    """The argument clamped to an interval."""
    if low <= argument.low and argument.high <= high:
        return argument
    return _operation("clamp", argument.shape, low, high, argument)


def lookup(table: object, index: Expression) -> Expression:
    """`table[..., index]`, where the interval of the index must be within the table's last axis."""
    values = whole_array(table, "a table")
    if not values.ndim or not 0 <= index.low <= index.high < values.shape[-1]:
        raise RowProgramError("an index may leave its table")
    return _operation("look-up", (*values.shape[:-1], *index.shape), *interval_of(values), index, array=values)


def matrix_product(matrix: object, argument: Expression) -> Expression:
    """A public matrix (m, d) times an argument of shape (d,). Every partial sum, in any order, is below 2^53."""
    values = whole_array(matrix, "a matrix")
    if values.ndim != 2 or argument.shape != (values.shape[1],):
        raise RowProgramError(f"a matrix of {values.shape} times {argument.shape}")
    reach = max(abs(argument.low), abs(argument.high))
    if float(np.abs(values).sum(axis=1).max()) * reach >= EXACT:
        raise RowProgramError("a sum may leave what is exact")
    plus = [int(v) for v in np.maximum(values, 0).sum(axis=1)]
    minus = [int(v) for v in np.maximum(-values, 0).sum(axis=1)]
    low = min(p * argument.low - m * argument.high for p, m in zip(plus, minus, strict=True))
    high = max(p * argument.high - m * argument.low for p, m in zip(plus, minus, strict=True))
    return _operation("matrix", (values.shape[0],), low, high, argument, array=values)


def _axis(argument: Expression, axis: int) -> tuple[Shape, int]:
    if not 0 <= axis < len(argument.shape):
        raise RowProgramError(f"no axis {axis} of {argument.shape}")
    return (*argument.shape[:axis], *argument.shape[axis + 1 :]), argument.shape[axis]


def total(argument: Expression, axis: int = 0) -> Expression:
    """The sum over an axis."""
    shape, size = _axis(argument, axis)
    if size * max(abs(argument.low), abs(argument.high)) >= EXACT:
        raise RowProgramError("a sum may leave what is exact")
    return _operation("total", shape, size * argument.low, size * argument.high, argument, numbers=(axis,))


def largest(argument: Expression, axis: int = 0) -> Expression:
    """The largest number of an axis."""
    return _operation("largest", _axis(argument, axis)[0], argument.low, argument.high, argument, numbers=(axis,))


def first_largest(argument: Expression, axis: int = 0) -> Expression:
    """The index of the largest number of an axis, the first one for ties."""
    shape, size = _axis(argument, axis)
    return _operation("first largest", shape, 0, size - 1, argument, numbers=(axis,))


def one_hot(index: Expression, size: int) -> Expression:
    """1 at `index` of a new first axis of `size`, else 0; all 0 if the index is outside."""
    places = np.arange(size, dtype=np.float64).reshape(size, *(1 for _ in index.shape))
    return comparison(constant(places), "==", index)


def reshape(argument: Expression, shape: Shape) -> Expression:
    """The same numbers in another shape."""
    if math.prod(shape) != math.prod(argument.shape):
        raise RowProgramError(f"{argument.shape} has no shape {shape}")
    return _operation("reshape", shape, argument.low, argument.high, argument)


def part(argument: Expression, places: Sequence[int]) -> Expression:
    """The entries at public indices of the first axis, in their order."""
    if not argument.shape or not all(0 <= place < argument.shape[0] for place in places):
        raise RowProgramError("a place outside an array")
    shape = (len(places), *argument.shape[1:])
    return _operation("part", shape, argument.low, argument.high, argument, numbers=tuple(places))


def gather(values: Expression, index: Expression) -> Expression:
    """`values[index]`, where the interval of the index must be within the first axis."""
    if not values.shape or index.shape or not 0 <= index.low <= index.high < values.shape[0]:
        raise RowProgramError("a place may lie outside an array")
    return _operation("gather", values.shape[1:], values.low, values.high, values, index)


def concatenate(parts: Sequence[Expression]) -> Expression:
    """Arrays concatenated along the first axis."""
    if not parts or any(not p.shape or p.shape[1:] != parts[0].shape[1:] for p in parts):
        raise RowProgramError("arrays of one kind are needed")
    shape = (sum(p.shape[0] for p in parts), *parts[0].shape[1:])
    return _operation("concatenate", shape, min(p.low for p in parts), max(p.high for p in parts), *parts)


def select(condition: Expression, one: Expression | int, other: Expression | int) -> Expression:
    """`one` if the condition is not 0, else `other`."""
    yes, no = as_expression(one), as_expression(other)
    shape = broadcast(condition, constant(np.zeros(broadcast(yes, no))))
    return _operation("select", shape, min(yes.low, no.low), max(yes.high, no.high), condition, yes, no)


# How it is calculated ------------------------------------------------------------------------------


def _quotient(e: Expression, out: Floats | None, left: Floats, right: Floats) -> Floats:
    ratio = np.asarray(np.divide(left, right, out=out))
    return np.asarray(np.floor(ratio, out=ratio))


def _shifted(e: Expression, out: Floats | None, argument: Floats) -> Floats:
    scaled = np.multiply(argument, 2.0 ** -e.numbers[0], out=out)
    return np.asarray(np.floor(scaled, out=scaled) if e.numbers[0] > 0 else scaled)


def _clamped(e: Expression, out: Floats | None, argument: Floats) -> Floats:
    clamped = np.maximum(argument, float(e.low), out=out)
    return np.minimum(clamped, float(e.high), out=clamped)


def _gathered(e: Expression, out: Floats | None, values: Floats, index: Floats) -> Floats:
    (rows,) = np.broadcast_shapes(values.shape[-1:], index.shape)
    places = np.broadcast_to(narrowed(index, np.intp), (rows,)).reshape((1,) * (values.ndim - 1) + (rows,))
    result: Floats = np.take_along_axis(np.broadcast_to(values, (*values.shape[:-1], rows)), places, axis=0)[0]
    return result


def _concatenated(e: Expression, out: Floats | None, *arrays: Floats) -> Floats:
    rows = max(array.shape[-1] for array in arrays) if all(array.shape[-1] for array in arrays) else 0
    return np.concatenate([np.broadcast_to(array, (*array.shape[:-1], rows)) for array in arrays])


OPERATIONS: Mapping[str, Callable[..., Floats]] = {
    "constant": lambda e, out: e.array[..., None],
    "+": lambda e, out, left, right: np.add(left, right, out=out),
    "-": lambda e, out, left, right: np.subtract(left, right, out=out),
    "*": lambda e, out, left, right: np.multiply(left, right, out=out),
    "//": _quotient,
    "==": lambda e, out, left, right: np.asarray(left == right, dtype=np.float64),
    "<": lambda e, out, left, right: np.asarray(left < right, dtype=np.float64),
    "<=": lambda e, out, left, right: np.asarray(left <= right, dtype=np.float64),
    "shift": _shifted,
    "clamp": _clamped,
    "look-up": lambda e, out, index: np.take(e.array, narrowed(index, np.intp), axis=-1, mode="clip"),
    "matrix": lambda e, out, argument: np.asarray(e.array @ argument),
    "total": lambda e, out, argument: np.asarray(argument.sum(axis=e.numbers[0])),
    "largest": lambda e, out, argument: np.asarray(argument.max(axis=e.numbers[0])),
    "first largest": lambda e, out, argument: np.asarray(np.argmax(argument, axis=e.numbers[0]), dtype=np.float64),
    "reshape": lambda e, out, a: a.reshape(*e.shape, -1) if a.size else np.zeros((*e.shape, 0)),
    "part": lambda e, out, argument: argument[list(e.numbers)],
    "gather": _gathered,
    "concatenate": _concatenated,
    "select": lambda e, out, condition, one, other: np.asarray(np.where(condition != 0, one, other)),
}
"""The operations, functions of an expression, an array that may be written, and the values of its operands."""
