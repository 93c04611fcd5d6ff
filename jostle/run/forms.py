"""Functions whose later arguments are expressions on rows: they are compiled, not evaluated.

`histogram(people, x = age / 10)`, `partition(people, sex)`, `where(people, age > 40)`, `derive(people, decade = age /
10)`, `pick(people, age, sex)`; the sources `table(…)`, `counts(…)`; `people[C, ]`; and numbers in bins, whose edges
stand in the program, so that they are public.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.language.builtins import SOURCES
from jostle.language.forms import DIMENSIONS, is_condition
from jostle.plan.facts import bounds_of, key_values, need_starts
from jostle.plan.plan import Apply, Column, Constant, Derive, Filter, Open, RowExpr, listed
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.handles import ColumnHandle, Cube, Table
from jostle.privacy.transformations import records, transform
from jostle.privacy.transformations.records import WeightedRecords
from jostle.run import declare, positions
from jostle.run.evaluator import Evaluator, PlacedAt, builtin, implement
from jostle.run.faults import private_value
from jostle.run.groups import by_value, own_keys, public_keys
from jostle.run.rows import RowCompiler
from jostle.run.scope import Qualifiers, Scope
from jostle.run.values import handles_in, is_number, kind_name
from jostle.syntax import nodes as n


def _first(interp: Evaluator, node: n.Call, scope: Scope, kinds: tuple[type, ...] = (Table, Cube)) -> Any:
    name = node.function.id if isinstance(node.function, n.Name) else "this"
    if not node.args:
        raise refuse("TypeError", f"`{name}` takes a table first", node.span)
    value = interp.eval(node.args[0], scope)
    if not isinstance(value, kinds):
        expected = "a table or a cube" if Cube in kinds else "a table"
        raise refuse("TypeError", f"`{name}` takes {expected}, not {kind_name(value)}", node.args[0].span)
    return value


OF_TABLES = (Table, WeightedRecords)


def _compiler(interp: Evaluator, handle: Any, node: n.Call, scope: Scope) -> RowCompiler:
    schema = handle.domains if isinstance(handle, Table) else dict(handle.schema)
    interp.reads_rows(handle, node, scope)
    return RowCompiler(schema, interp, scope, Qualifiers(node.args[0], schema))


@builtin
def _histogram(interp: Evaluator, node: n.Call, scope: Scope) -> Cube:
    table = _first(interp, node, scope, OF_TABLES)
    compiler = _compiler(interp, table, node, scope)
    dims: list[tuple[str, Any, Any]] = []
    for arg in node.args[1:]:
        for expr, column in compiler.columns_at(arg):
            _need_listed(table, expr, arg)
            dims.append((column or DIMENSIONS[min(len(dims), 2)], expr, own_keys(table, expr)))
    for keyword in node.keywords:
        if isinstance(keyword.value, n.Number) and dims:
            message = f"this reads no column of the table: `{keyword.name}` is a dimension of its own"
            raise refuse("TypeError", message, keyword.value.span, help=_in_bins(dims[-1], keyword.value.value, table))
        expr = compiler.column_position(keyword.value)[0]
        _need_listed(table, expr, keyword.value)
        dims.append((keyword.name, expr, own_keys(table, expr)))
    if not dims:
        raise refuse("TypeError", "a histogram needs a dimension", node.span, help="`histogram(people, x = age)`")
    if len({d[0] for d in dims}) < len(dims):
        raise refuse("NameError", "two dimensions have one name", node.span, help="name them: `x = age, y = sex`")
    if isinstance(table, WeightedRecords):
        return records.weight_histogram(table, dims)
    return transform.histogram(table, dims)


def _in_bins(dim: tuple[str, RowExpr, object], many: float, table: Table) -> str:
    """How an axis is cut into so many bins."""
    low, high = bounds_of(dim[1], dict(table.schema)) or (0, 0)
    column, width = dim[1].name if isinstance(dim[1], Column) else "age", (high - low) / max(many, 1)
    width = math.ceil(width) if 1 <= width < math.inf else width or 10
    return f"a range is cut by a division: write `{'x' if dim[0] == column else dim[0]} = {column} / {width:g}`"


def _need_listed(table: Any, expr: RowExpr, node: n.Expr) -> None:
    """A dimension is no column of a private table whose values are left open."""
    name = expr.name if isinstance(expr, Column) else ""
    domain = next((kind for column, kind in table.schema if column == name), None) if table.private else None
    if isinstance(domain, Open) and listed(domain) is None:
        message = f"the values of `{name}` are not public, so it is no dimension of a cube"
        help = f'describe them: `{name}: {{"a", "b"}}`, or `{name}: 0..99`'
        raise refuse("OpenKeys", message, node.span, label="an open domain", help=help)


MOST_PARTS = 100_000


@builtin
def _partition(interp: Evaluator, node: n.Call, scope: Scope) -> list[list[Any]]:
    handle = _first(interp, node, scope)
    if len(node.args) != 2 or any(k.name != "over" for k in node.keywords):
        raise refuse("TypeError", "`partition` takes a table and a key", node.span, help="`partition(people, sex)`")
    expr, column = _compiler(interp, handle, node, scope).column_position(node.args[1])
    over = None
    for keyword in node.keywords:
        over = public_keys(interp.eval(keyword.value, scope), keyword.span)
        expr = by_value(expr, over, handle)
    over = own_keys(handle, expr) if over is None else over
    keys = over if over is not None else key_values(expr, dict(handle.schema), MOST_PARTS)
    if keys is not None and len(keys) > MOST_PARTS:
        raise refuse(
            "ValueError", f"a partition into {len(keys):,} parts is too large to hold", node.span,
            help=f"at most {MOST_PARTS:,}: group the values, as `partition(people, age / 10)` does",
        )  # fmt: skip
    parts = positions.partition(interp, handle, expr, column or "this key", over)
    return [[key, part] for key, part in parts]


@builtin
def _where(interp: Evaluator, node: n.Call, scope: Scope) -> Handle:
    handle = _first(interp, node, scope, (*OF_TABLES, Cube))
    if len(node.args) != 2 or node.keywords:
        raise refuse("TypeError", "`where` takes a table and a condition", node.span, help="`where(people, age > 40)`")
    condition = _compiler(interp, handle, node, scope).condition(node.args[1])
    if isinstance(handle, WeightedRecords):
        return records.where(handle, condition)
    return positions.where(interp, handle, condition)


@builtin
def _derive(interp: Evaluator, node: n.Call, scope: Scope) -> Handle:
    table = _first(interp, node, scope, OF_TABLES)
    if len(node.args) != 1 or not node.keywords:
        raise refuse(
            "TypeError", "`derive` takes a table and named columns", node.span, help="`derive(t, decade = age / 10)`"
        )
    compiler = _compiler(interp, table, node, scope)
    added = [(k.name, compiler.column_position(k.value, constant=True)[0]) for k in node.keywords]
    return records.derived(table, added) if isinstance(table, WeightedRecords) else transform.derive(table, added)


@builtin
def _pick(interp: Evaluator, node: n.Call, scope: Scope) -> Handle:
    table = _first(interp, node, scope, OF_TABLES)
    compiler = _compiler(interp, table, node, scope)
    names = [name for arg in node.args[1:] for _, name in compiler.columns_at(arg)]
    if not names or None in names or node.keywords:
        raise refuse("TypeError", "`pick` takes a table and columns of it", node.span, help="`pick(people, age, sex)`")
    picked = [name for name in names if name is not None]
    return records.picked(table, picked) if isinstance(table, WeightedRecords) else transform.pick(table, picked)


@builtin
def _columns(interp: Evaluator, node: n.Call, scope: Scope) -> list[object]:
    return list(transform.columns(_first(interp, node, scope, (Table,))))


def _source(interp: Evaluator, node: n.Call, scope: Scope) -> Handle:
    return declare.public(interp, node, None, scope)


for _opener in SOURCES:
    implement(_opener, _source)


_ONE, _NONE_YET = Constant(1.0), Constant(0.0)


def bin_number(name: str, edges: Sequence[float]) -> RowExpr:
    """How many of the rising `edges` a column's number reaches; none where it is missing."""
    total: RowExpr = Apply("if", (Apply("missing", (Column(name),)), Constant(None), _NONE_YET))
    for edge in edges:
        reached = Apply("if", (Apply(">=", (Column(name), Constant(edge))), _ONE, _NONE_YET))
        total = Apply("+", (total, reached))
    return total


def edges_of(column: ColumnHandle) -> list[float]:
    """The edges of a column that is a `bin_number`, rising; empty for any other column."""
    name, plan = column.name, column.table.plan
    while isinstance(plan, Derive | Filter):
        expr = dict(plan.columns).get(name) if isinstance(plan, Derive) else None
        if expr is not None and not isinstance(expr, Column):
            return _edges(expr)
        name, plan = expr.name if isinstance(expr, Column) else name, plan.source
    return []


def _edges(expr: RowExpr) -> list[float]:
    """The edges of which `expr` is the `bin_number` of some column; empty where it is none."""
    edges: list[float] = []
    rest = expr
    while True:
        match rest:
            case Apply(op="+", args=(rest, Apply(args=(Apply(args=(Column(), Constant(value=float() as edge))), *_)))):
                edges.insert(0, edge)
            case Apply(op="if", args=(Apply(args=(Column(name=name),)), *_)):
                return edges if expr == bin_number(name, edges) else []
            case _:
                return []


# D[...] ------------------------------------------------------------------------------------------


def rows_of(interp: Evaluator, handle: Handle, node: n.Index, scope: Scope) -> Handle:
    """`D[a = v, b = w]`."""
    if not isinstance(handle, (Table, Cube)):
        raise refuse("TypeError", f"{kind_name(handle)} has no rows to select", node.span)
    rows: Any = handle
    if node.args:
        raise _by_value(handle, node)
    for keyword in node.keywords:
        name = _column_named(rows, keyword, scope)
        value = interp.eval(keyword.value, scope)
        if handles_in(value):
            message = "rows are selected by a public value, and this is private"
            raise refuse("PrivateValue", message, keyword.value.span, help="compare with a number or a text")
        if not (is_number(value) or isinstance(value, (str, bool, date))):
            raise refuse(
                "TypeError", f"a column is compared with a number or text, not {kind_name(value)}", keyword.span
            )
        schema = dict(rows.schema)
        RowCompiler(schema, interp, scope, Qualifiers(node.value, schema)).need_described(name, keyword.value)
        with PlacedAt(keyword.value.span):
            need_starts(Column(name), [value], schema)
        with PlacedAt(keyword.span):
            rows = transform.rows_where(rows, name, value)
    return rows  # type: ignore[no-any-return]


def _by_value(handle: Handle, node: n.Index) -> Refusal:
    if is_condition(node.args[0]):
        table, test = node.value.span.text, node.args[0].span.text
        test = re.sub(rf"\b{re.escape(table)}(?:\.|\[[\"'](?=\w+[\"']\]))(\w+)(?:[\"']\])?", r"\1", test)
        help = f"write `where({table}, {test})`"
        if handle.private:
            help += f"; their count is `{{{{ select count(*) from {table} where {test} with epsilon 0.1 }}}}`"
        return refuse("TypeError", "rows are selected by `where`", node.span, help=help)
    if handle.private:
        return private_value(handle, "cannot be indexed by value").at(node.span)
    return refuse("TypeError", "a table is not indexed by a value", node.span, help="select rows: `D[a = v]`")


def _ways(name: str, names: list[str]) -> str:
    return did_you_mean(name, names) or f"the columns are {', '.join(names)}"


def _column_named(handle: Any, keyword: n.Keyword, scope: Scope) -> str:
    names = [name for name, _ in handle.schema]
    if keyword.name in names:
        return keyword.name
    column = scope.find(keyword.name)
    if isinstance(column, ColumnHandle):
        column = column.name
    if isinstance(column, str) and column in names:
        return column
    raise refuse("NameError", f"no column `{keyword.name}`", keyword.span, help=_ways(keyword.name, names))
