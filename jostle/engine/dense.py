"""The row language over NumPy columns of public values: positions in a cube, values that a description lists.

`evaluate` agrees with what `sql.rows` emits on every row (a shared suite runs both), up to the last bits of `log`,
`exp` and `^`, which come from different libraries. Missing is NaN in a column of floats and None in one of objects.
Operations on texts and dates run as plain Python here, which no private value meets: those of rows are calculated by an
engine, and the exact cells of a cube may stand in comparisons alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.engine.sql.persons import names_in
from jostle.language.moments import moment_of, number_of
from jostle.language.operations import OPERATIONS, Operation
from jostle.lazy import Array, np
from jostle.plan.plan import Apply, Column, Constant, RowExpr

Values = tuple[Any, Any]  # what each row has, and whether it has it (where not, the value means nothing)


def evaluate(expr: RowExpr, columns: Mapping[str, Array], private: Collection[str] = ()) -> tuple[Array, Array]:
    """The values of an expression (float64, bool or object of str) and their validity (bool), both of shape (rows,).

    The kinds must have been checked (`types.kind_of`). Whatever is not finite is not valid. Dates and times are the
    numbers that stand for them. Of columns that are `private`, exact numbers, only what NumPy does is done: the rest is
    a `TypeError`, whatever they hold.
    """
    if private:
        _need_arithmetic(expr, private)
    size = len(next(iter(columns.values()))) if columns else 1
    with np.errstate(all="ignore"):
        values, valid = _evaluate(expr, columns)
    return np.broadcast_to(values, (size,)), np.broadcast_to(valid, (size,))


def _evaluate(expr: RowExpr, columns: Mapping[str, Array]) -> Values:
    if isinstance(expr, Column):
        return _column(expr.name, columns)
    if isinstance(expr, Constant):
        return _constant(expr.value)
    args = [_evaluate(arg, columns) for arg in expr.args]
    valid_args = np.logical_and.reduce(np.broadcast_arrays(*(valid for _, valid in args)))
    if expr.op in ("and", "or"):
        return _logic(expr.op, args)
    if expr.op == "if":
        (test, test_known), (then, then_known), (other, other_known) = args
        holds = _truth(test) & test_known
        return _choose(holds, then, other), np.where(holds, then_known, other_known)
    if expr.op == "missing":
        return ~np.asarray(args[0][1]), np.True_
    if expr.op == "coalesce":
        values, valid = args[-1]
        for value, mask in reversed(args[:-1]):
            values, valid = _choose(mask, value, values), mask | valid
        return values, valid
    if expr.op == "in":
        return _among(args, expr.args[1:])
    if expr.op == "not":
        return ~args[0][0], valid_args
    if expr.op in _COMPARE:
        left, right = _alike(args[0][0], args[1][0])
        return getattr(np, _COMPARE[expr.op])(left, right).astype(bool), valid_args
    operation = OPERATIONS[expr.op]
    if operation.columns is None:
        return _each(operation, args)
    values = operation.columns(np, *(value for value, _ in args))
    return values, valid_args & np.isfinite(values)


def _need_arithmetic(expr: RowExpr, private: Collection[str]) -> None:
    """Refuses what would run as Python on a private number."""
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Apply):
            continue
        plain = part.op in OPERATIONS and OPERATIONS[part.op].columns is None and part.op not in ("missing", "coalesce")
        if plain and not names_in([part]).isdisjoint(private):
            raise refuse("TypeError", f"`{part.op}` is not calculated of exact cells")
        waiting += part.args


def _each(operation: Operation, args: list[Values]) -> Values:
    """An operation on public values by its plain meaning, row by row."""
    columns = np.broadcast_arrays(*(value for value, _ in args), *(valid for _, valid in args))
    values, valid = columns[: len(args)], np.logical_and.reduce(columns[len(args) :])
    rows = zip(*(column.ravel().tolist() for column in values), strict=True)
    results = [
        _meant(operation, row) if is_valid else None for is_valid, row in zip(valid.ravel().tolist(), rows, strict=True)
    ]
    kind = {"text": object, "boolean": bool}.get(operation.gives, float)
    filler = kind() if kind is not object else ""
    array = np.array([filler if value is None else value for value in results], dtype=kind).reshape(valid.shape)
    return array, np.array([value is not None for value in results], dtype=bool).reshape(valid.shape)


def _meant(operation: Operation, row: tuple[Any, ...]) -> Any:
    """What an operation gives for a row of values, or None; dates and times as the numbers that stand for them."""
    if operation.value is None:
        return None
    kinds = zip(operation.kinds, row, strict=True)
    value = operation.value(*(moment_of(kind, int(v)) if kind in ("date", "time") else v for kind, v in kinds))
    return float(number_of(value)) if isinstance(value, date) else value


def _column(name: str, columns: Mapping[str, Array]) -> Values:
    if name not in columns:
        raise refuse("NameError", f"there is no column `{name}` here", help=did_you_mean(name, columns))
    column = columns[name]
    if column.dtype.kind == "O":
        valid = np.array([value is not None for value in column], dtype=bool)
        return np.where(valid, column, ""), valid
    if column.dtype.kind == "U":
        return column.astype(object), np.ones(len(column), dtype=bool)
    if column.dtype.kind == "b":
        return column, np.ones(len(column), dtype=bool)
    values = column.astype(np.float64)
    return values, np.isfinite(values)


def _constant(value: float | str | bool | date | None) -> Values:
    value = float(number_of(value)) if isinstance(value, date) else value
    if value is None:
        return np.float64(0.0), np.bool_(False)
    if isinstance(value, bool):
        return np.bool_(value), np.bool_(True)
    if isinstance(value, str):
        return np.array(value, dtype=object), np.bool_(True)
    return np.float64(value), np.bool_(math.isfinite(value))


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Operands of one kind; where a `none` met another kind, its filler is turned into one of that kind."""
    kinds = [np.asarray(side).dtype.kind for side in (left, right)]
    if "O" in kinds and kinds[0] != kinds[1]:
        return (left if kinds[0] == "O" else np.array("", object)), (right if kinds[1] == "O" else np.array("", object))
    return left, right


def _logic(op: str, args: list[Values]) -> Values:
    """Three-valued: a known `false` decides an `and`, a known `true` an `or`."""
    decisive = op == "or"
    settled = np.logical_or.reduce(np.broadcast_arrays(*(valid & (_truth(v) == decisive) for v, valid in args)))
    every_valid = np.logical_and.reduce(np.broadcast_arrays(*(valid for _, valid in args)))
    return np.where(settled, decisive, not decisive), settled | every_valid


def _truth(values: Any) -> Any:
    return np.asarray(values).astype(bool)


def _choose(test: Any, then: Any, other: Any) -> Any:
    then, other = _alike(then, other)
    return np.where(_truth(test), then, other)


def _among(args: list[Values], constants: tuple[RowExpr, ...]) -> Values:
    (value, value_valid), *others = args
    with_none = any(arg == Constant(None) for arg in constants)
    among = np.zeros(np.shape(value), dtype=bool)
    for other, other_valid in others:
        left, right = _alike(value, other)
        among = among | ((left == right).astype(bool) & other_valid)
    if with_none:
        return (among & value_valid) | ~np.asarray(value_valid), np.True_
    return among, np.broadcast_to(value_valid, np.shape(among))


_COMPARE = {"==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
