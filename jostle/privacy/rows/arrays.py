"""Operations of row programs on arrays of a row's numbers: tables, matrices, sums, the largest, and new shapes.

See `expressions` for what is asked of every operation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.integers import narrowed
from jostle.lazy import Floats, np
from jostle.privacy.rows.expressions import (
    EXACT,
    Binary,
    Expression,
    RowProgramError,
    Shape,
    Unary,
    as_expression,
    broadcast,
    checked,
    comparison,
    constant,
    interval_of,
    whole_array,
)


@dataclass(frozen=True, slots=True, eq=False)
class LookUp(Unary):
    """`table[..., argument]`: the table's last axis is indexed by a number that is known to lie within it."""

    table: Floats

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        return np.take(self.table, narrowed(operands[0], np.intp), axis=-1, mode="clip")


def lookup(table: object, index: Expression) -> LookUp:
    values = whole_array(table, "a table")
    if not values.ndim or not 0 <= index.low <= index.high < values.shape[-1]:
        raise RowProgramError("an index may leave its table")
    return LookUp(*checked((*values.shape[:-1], *index.shape), *interval_of(values)), index, values)


@dataclass(frozen=True, slots=True, eq=False)
class MatrixProduct(Unary):
    """A public matrix (m, d) times an argument of shape (d,). Every partial sum, in any order, is below 2^53."""

    matrix: Floats

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        return np.asarray(self.matrix @ operands[0])


def matrix_product(matrix: object, argument: Expression) -> MatrixProduct:
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
    return MatrixProduct(*checked((values.shape[0],), low, high), argument, values)


@dataclass(frozen=True, slots=True, eq=False)
class _Folded(Unary):
    """An operation over one axis of the argument."""

    axis: int


def _axis(argument: Expression, axis: int) -> tuple[Shape, int]:
    if not 0 <= axis < len(argument.shape):
        raise RowProgramError(f"no axis {axis} of {argument.shape}")
    return (*argument.shape[:axis], *argument.shape[axis + 1 :]), argument.shape[axis]


class Total(_Folded):
    """The sum over an axis."""

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        return np.asarray(operands[0].sum(axis=self.axis))


def total(argument: Expression, axis: int = 0) -> Expression:
    shape, size = _axis(argument, axis)
    if size * max(abs(argument.low), abs(argument.high)) >= EXACT:
        raise RowProgramError("a sum may leave what is exact")
    return Total(*checked(shape, size * argument.low, size * argument.high), argument, axis)


class Largest(_Folded):
    """The largest number of an axis."""

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        return np.asarray(operands[0].max(axis=self.axis))


def largest(argument: Expression, axis: int = 0) -> Expression:
    return Largest(*checked(_axis(argument, axis)[0], argument.low, argument.high), argument, axis)


class FirstLargest(_Folded):
    """The place of the largest number of an axis, the first of equals."""

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        return np.asarray(np.argmax(operands[0], axis=self.axis), dtype=np.float64)


def first_largest(argument: Expression, axis: int = 0) -> Expression:
    shape, size = _axis(argument, axis)
    return FirstLargest(*checked(shape, 0, size - 1), argument, axis)


def one_hot(index: Expression, size: int) -> Expression:
    """1 at place `index` of a new first axis of `size`, else 0; nowhere 1 where the index lies outside."""
    places = np.arange(size, dtype=np.float64).reshape(size, *(1 for _ in index.shape))
    return comparison(constant(places), "==", index)


@dataclass(frozen=True, slots=True, eq=False)
class Reshape(Unary):
    """The same numbers in another shape."""

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        return operands[0].reshape(*self.shape, -1) if operands[0].size else np.zeros((*self.shape, 0))


def reshape(argument: Expression, shape: Shape) -> Expression:
    if math.prod(shape) != math.prod(argument.shape):
        raise RowProgramError(f"{argument.shape} has no shape {shape}")
    return Reshape(*checked(shape, argument.low, argument.high), argument)


@dataclass(frozen=True, slots=True, eq=False)
class Part(Unary):
    """Public places of the first axis, in their order."""

    places: tuple[int, ...]

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        return operands[0][list(self.places)]


def part(argument: Expression, places: Sequence[int]) -> Expression:
    if not argument.shape or not all(0 <= place < argument.shape[0] for place in places):
        raise RowProgramError("a place outside an array")
    shape = (len(places), *argument.shape[1:])
    return Part(*checked(shape, argument.low, argument.high), argument, tuple(places))


@dataclass(frozen=True, slots=True, eq=False)
class Gather(Binary):
    """`left[right]`: the row's own number `right` is a place of the first axis of `left`, known to lie within it."""

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        values, index = operands
        (rows,) = np.broadcast_shapes(values.shape[-1:], index.shape)
        places = np.broadcast_to(narrowed(index, np.intp), (rows,)).reshape((1,) * (values.ndim - 1) + (rows,))
        result: Floats = np.take_along_axis(np.broadcast_to(values, (*values.shape[:-1], rows)), places, axis=0)[0]
        return result


def gather(values: Expression, index: Expression) -> Expression:
    if not values.shape or index.shape or not 0 <= index.low <= index.high < values.shape[0]:
        raise RowProgramError("a place may lie outside an array")
    return Gather(*checked(values.shape[1:], values.low, values.high), values, index)


@dataclass(frozen=True, slots=True, eq=False)
class Concatenation(Expression):
    """Arrays one after the other along the first axis."""

    parts: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.parts

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        rows = max(array.shape[-1] for array in operands) if all(array.shape[-1] for array in operands) else 0
        return np.concatenate([np.broadcast_to(array, (*array.shape[:-1], rows)) for array in operands])


def concatenate(parts: Sequence[Expression]) -> Expression:
    if not parts or any(not p.shape or p.shape[1:] != parts[0].shape[1:] for p in parts):
        raise RowProgramError("arrays of one kind are needed")
    shape = (sum(p.shape[0] for p in parts), *parts[0].shape[1:])
    return Concatenation(*checked(shape, min(p.low for p in parts), max(p.high for p in parts)), tuple(parts))


@dataclass(frozen=True, slots=True, eq=False)
class Selection(Expression):
    """`one` where the condition is not 0, else `other`."""

    condition: Expression
    one: Expression
    other: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.condition, self.one, self.other)

    def apply(self, operands: Sequence[Floats], out: Floats | None) -> Floats:
        return np.where(operands[0] != 0, operands[1], operands[2])


def select(condition: Expression, one: Expression | int, other: Expression | int) -> Expression:
    yes, no = as_expression(one), as_expression(other)
    shape = broadcast(condition, constant(np.zeros(broadcast(yes, no))))
    return Selection(*checked(shape, min(yes.low, no.low), max(yes.high, no.high)), condition, yes, no)
