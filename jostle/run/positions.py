"""The cells of a cube by their positions: which hold a condition, and which group each is in; all of it public.

`evaluate` is the row language over NumPy columns of public values: positions in a cube, values that a description
lists. It agrees with what `sql.rows` emits on every row (a shared suite runs both), up to the last bits of `log`, `exp`
and `^`, which come from different libraries. Missing is NaN in a column of floats and None in one of objects.
Operations on texts and dates run as plain Python here. No exact cell comes here: `privacy` is given masks of cells,
codes of groups, and the numbers that counts are compared with, all of them public arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

from jostle.diagnostics import did_you_mean, refuse
from jostle.integers import fixed_width
from jostle.language.facts import FLIPPED
from jostle.language.moments import moment_of, number_of
from jostle.language.row_functions import OPERATIONS, Function
from jostle.lazy import Array, Bools, Floats, Ints, np
from jostle.plan.facts import FACTS
from jostle.plan.kinds import kind_of
from jostle.plan.plan import Apply, Column, Constant, Key, RowExpr, names_in
from jostle.plan.schemas import floors
from jostle.privacy.kernel.handles import VALUES, Cube, Table
from jostle.privacy.measurements import cubes
from jostle.privacy.measurements.aggregates.aggregate import Aggregate
from jostle.privacy.measurements.selects import GroupKey
from jostle.privacy.transformations import transform
from jostle.run.evaluator import Evaluator

Values = tuple[Any, Any]  # what each row has, and whether it has it (where not, the value means nothing)


def evaluate(expr: RowExpr, columns: Mapping[str, Array]) -> tuple[Array, Array]:
    """The values of an expression (float64, bool or object of str) and their validity (bool), both of shape (rows,).

    The kinds must have been checked (`types.kind_of`). Whatever is not finite is not valid. Dates and times are the
    numbers that stand for them.
    """
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
        left, right = _of_one_kind(args[0][0], args[1][0])
        return getattr(np, _COMPARE[expr.op])(left, right).astype(bool), valid_args
    operation = OPERATIONS[expr.op]
    if operation.columns is None:
        return _row_by_row(operation, args)
    values = operation.columns(np, *(value for value, _ in args))
    return values, valid_args & np.isfinite(values)


def _row_by_row(operation: Function, args: list[Values]) -> Values:
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


def _meant(operation: Function, row: tuple[Any, ...]) -> Any:
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


def _of_one_kind(left: Any, right: Any) -> tuple[Any, Any]:
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
    then, other = _of_one_kind(then, other)
    return np.where(_truth(test), then, other)


def _among(args: list[Values], constants: tuple[RowExpr, ...]) -> Values:
    (value, value_valid), *others = args
    with_none = any(arg == Constant(None) for arg in constants)
    among = np.zeros(np.shape(value), dtype=bool)
    for other, other_valid in others:
        left, right = _of_one_kind(value, other)
        among = among | ((left == right).astype(bool) & other_valid)
    if with_none:
        return (among & value_valid) | ~np.asarray(value_valid), np.True_
    return among, np.broadcast_to(value_valid, np.shape(among))


_COMPARE = {"==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


# Cubes -----------------------------------------------------------------------------------------------


def where(interp: Evaluator, handle: Table | Cube, condition: RowExpr) -> Table | Cube:
    """The rows of a table, or the cells of a cube by their dimensions, for which a condition is true."""
    if isinstance(handle, Table):
        return transform.where(handle, condition)
    if VALUES in names_in([condition]):
        raise refuse("TypeError", "a condition on `values` is only for `count(values)`, within a query")
    if kind_of(condition, dict(handle.schema)) != "boolean":
        raise refuse("TypeError", "a condition must be true or false", help="compare: `where x > 3`")
    mask = _nowhere() if _unread(interp, handle) else _holding(handle, condition)
    return transform.cells_where(handle, condition, mask)


def partition(
    interp: Evaluator, handle: Table | Cube, expr: RowExpr, name: str, over: transform.Over
) -> Sequence[tuple[object, Table | Cube]]:  # fmt: skip
    """(key, part) for every public key, in order."""
    if isinstance(handle, Table):
        return transform.partition(interp.data, handle, expr, name, over)
    codes = _unread_codes if _unread(interp, handle) else partial(_codes, handle)
    return transform.cube_parts(handle, expr, name, over, codes, FACTS)


def ask(
    interp: Evaluator, cells: Cube, condition: RowExpr | None, keys: Sequence[GroupKey], of: Sequence[Aggregate]
) -> cubes.CubeRequest:
    """A select on a cube. `values` may be compared with constants, and stand nowhere else."""
    for key in keys:
        if VALUES in names_in([key.expr]):
            raise refuse("TypeError", "`values` cannot be grouped by", help="group by a dimension")
    if condition is not None:
        _only_compared(Apply("not", (condition,)))  # nor is `values` alone a test
    unread = _unread(interp, cells)
    test = None if condition is None else _unread_test(cells, condition) if unread else cell_test(cells, condition)
    codes = _unread_codes if unread else partial(_codes, cells)
    return cubes.prepare_cube(cells, condition, test, keys, of, codes, FACTS)


def _unread(interp: Evaluator, cube: Cube) -> bool:
    """Whether the cells are not read, as the walk before a run reads none that are private."""
    return cube.private and interp.walks


def _unread_test(cube: Cube, condition: RowExpr) -> cubes.CellTest:
    """A test of cells that are not read: whether it is one of their counts."""
    return (
        cubes.Compared("==", np.zeros(1)) if VALUES in names_in([condition]) else cubes.Stated(_nowhere(), _nowhere())
    )


def _nowhere() -> Bools:
    return np.zeros(1, dtype=bool)


def _unread_codes(key: Key) -> Ints:
    return np.full(1, -1)


def _on_cells(cube: Cube, expr: RowExpr) -> tuple[Array, Bools]:
    """What an expression of the positions is for every cell, and whether it is not none.

    Both broadcast to the cube's shape: an expression of one dimension is worked out along that one only.
    """
    names = names_in([expr])
    used = [i for i, name in enumerate(cube.names) if name in names]
    shape = [side if len(used) > 1 or i in used else 1 for i, side in enumerate(cube.shape)]
    columns: dict[str, Array] = {}
    for i in used:
        positions = np.arange(cube.shape[i], dtype=float).reshape([-1 if j == i else 1 for j in range(len(shape))])
        columns[cube.names[i]] = np.broadcast_to(positions, shape).ravel()
    values, valid = evaluate(expr, columns)
    return values.reshape(shape), valid.reshape(shape)


def _holding(cube: Cube, condition: RowExpr) -> Bools:
    holds, valid = _on_cells(cube, condition)
    return holds.astype(bool) & valid


def cell_test(cube: Cube, condition: RowExpr) -> cubes.CellTest:
    """A condition on positions and counts (`values`) as data: what is of positions alone is calculated here."""
    if VALUES not in names_in([condition]):
        holds, valid = _on_cells(cube, condition)
        return cubes.Stated(holds.astype(bool) & valid, ~holds.astype(bool) & valid)
    if not isinstance(condition, Apply) or condition.op in ("and", "or", "not"):
        return cubes.Together(condition.op, tuple(cell_test(cube, arg) for arg in condition.args))  # type: ignore[union-attr]
    left, *others = condition.args
    if condition.op == "in" and left == Column(VALUES):  # what is listed and none is no count
        equal = [
            cell_test(cube, Apply("==", (left, left)))
            if other == left
            else cubes.Compared("==", _numbers(cube, other, math.inf))
            for other in others
        ]
        return cubes.Together("or", tuple(equal))
    if condition.op == "in":
        listed = tuple(other for other in others if other != Column(VALUES))
        public = (cell_test(cube, Apply("in", (left, *listed))),) if listed else ()
        return cubes.Together("or", (*public, cubes.Compared("==", _numbers(cube, left, math.nan))))
    if left == others[0]:
        same = np.full(1, condition.op in ("==", "<=", ">="))
        return cubes.Stated(same, ~same)
    op, other = (condition.op, others[0]) if left == Column(VALUES) else (FLIPPED.get(condition.op, condition.op), left)
    return cubes.Compared(op, _numbers(cube, other, math.nan))


def _numbers(cube: Cube, expr: RowExpr, none: float) -> Floats:
    values, valid = _on_cells(cube, expr)
    return np.where(valid, values.astype(float), none)


def _codes(cube: Cube, key: Key) -> Ints:
    """Where each cell stands among a key's values, −1 for none."""
    values, valid = _on_cells(cube, key.expr)
    if isinstance(key.values, range):
        place = np.floor(np.nan_to_num(values.astype(float), nan=-1e18)) - key.values.start
        return fixed_width(np.where(valid & (place >= 0) & (place < len(key.values)), place, -1))
    place = np.full(values.shape, -1, dtype=np.int64)
    floored = np.floor(values) if values.dtype.kind == "f" and floors(key) else values
    for i, value in enumerate(key.values):
        place[floored == (number_of(value) if isinstance(value, date) else value)] = i
    return np.where(valid, place, -1)


def _only_compared(expr: RowExpr) -> None:
    """`values` may be compared with a constant, not calculated with."""
    if not isinstance(expr, Apply):
        return
    logic = expr.op in ("and", "or", "not")
    compared = expr.op in ("==", "!=", "<", "<=", ">", ">=", "in")
    for arg in expr.args:
        if arg == Column(VALUES) and not compared:
            raise refuse("TypeError", "`values` cannot be calculated with", help="compare it: `where values > 0`")
        if logic or compared:
            _only_compared(arg)
        elif VALUES in names_in([arg]):
            raise refuse("TypeError", "`values` cannot be calculated with", help="compare it: `where values > 0`")
