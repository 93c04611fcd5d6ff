"""Selects and persons: what is read of each person, and `per person`, which makes a table with one row of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.diagnostics import Refusal, refuse
from jostle.language.aggregates import AGGREGATES
from jostle.language.forms import PERSON, aggregates
from jostle.plan.keys import MOST_KEYS, key_of
from jostle.plan.kinds import as_number
from jostle.plan.persons import person_columns
from jostle.plan.plan import Column, GroupTerm, Key, RowExpr
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.query import GroupKey
from jostle.privacy.transformations import persons, transform
from jostle.privacy.transformations.summaries import summary
from jostle.records import replace
from jostle.run.clauses import whole
from jostle.run.evaluator import Evaluator
from jostle.run.ofmoments import counted
from jostle.run.rows import RowCompiler
from jostle.run.scope import Scope
from jostle.syntax import nodes as n
from jostle.syntax.walk import own_name


def is_person(node: n.Expr, table: Table) -> bool:
    """Whether an expression stands for whose a row is: `person`, or the protected column."""
    if not isinstance(node, n.Name):
        return False
    return (node.id == PERSON and PERSON not in table.domains) or node.id in person_columns(table.plan)


def protected(table: Any) -> list[str]:
    """The columns, described or not, by which the declarations of a table tell its persons apart."""
    return [e.unit.columns[0] for e in table.exposures if len(e.unit.columns) == 1]


def limited(interp: Evaluator, table: Table, keys: Sequence[GroupKey], limit: n.Limit | None, scope: Scope) -> Table:
    """The rows of a table within a select's `up to 5 groups, 2 rows each`."""
    if limit is None:
        return table
    groups, rows = (None if value is None else whole(interp, value, scope) for value in (limit.groups, limit.rows))
    if groups is not None and not keys:
        raise refuse(
            "TypeError", "this select has no groups", limit.span, help="write `up to 5 rows`, or add `groupby …`"
        )
    order = None
    if limit.order is not None:
        order = RowCompiler(table.domains, interp, scope).column_position(limit.order)[0]
    listed = [key for _, key in _listed(keys, table)]
    try:
        return persons.truncate(table, listed, groups, rows, order, limit.descending, in_all=not limit.each)
    except Refusal as refusal:
        raise refusal.at(limit.span) from None


def stage(
    interp: Evaluator, node: n.Select, table: Table, person: bool, keys: Sequence[GroupKey], scope: Scope
) -> Table:
    """`select sum(amount) as total from orders per person groupby month`: a table with a row for each, as private."""
    compiler = RowCompiler(table.domains, interp, scope)
    terms: list[tuple[str, GroupTerm]] = []
    given: dict[int, RowExpr] = {}
    calculated = [*(column.value for column in node.columns), *([] if node.having is None else [node.having])]
    for call in (call for expr in calculated for call in aggregates(expr)):
        expr, distinct = _argument(call, compiler)
        name = call.function.id  # type: ignore[union-attr]
        try:
            moment = counted(AGGREGATES[name], expr, table.domains) if expr is not None else None
            wanted = summary(name, moment.expr if moment is not None else expr, distinct, table)
        except Refusal as refusal:
            raise refusal.at(call.span) from None
        names = [f"\u00b7{len(terms) + i}" for i in range(len(wanted.terms))]
        terms += zip(names, wanted.terms, strict=True)
        value = wanted.value(tuple(Column(name) for name in names))
        given[id(call)] = value if moment is None else moment.shifted(value)
    try:
        grouped = persons.group_rows(table, person, _listed(keys, table), terms)
    except Refusal as refusal:
        raise refusal.at(node.span) from None
    columns = _results(node, keys, RowCompiler(grouped.domains, interp, scope, given=given))
    try:
        rows = transform.derive(grouped, tuple(columns.items()))
        if node.having is None:
            return transform.pick(rows, tuple(columns))
        shown = RowCompiler(rows.domains, interp, scope, given=given)
        chosen = transform.where(rows, shown.condition(node.having))
        return transform.pick(chosen, tuple(columns))  # type: ignore[arg-type]
    except Refusal as refusal:
        raise refusal.at(node.span) from None


def _results(node: n.Select, keys: Sequence[GroupKey], compiler: RowCompiler) -> dict[str, RowExpr]:
    """The columns of the new table: its keys and what is calculated of each person or group."""
    columns: dict[str, RowExpr] = {key.name: Column(key.name) for key in keys}
    for i, column in enumerate(node.columns):
        name = column.name or own_name(column.value) or f"value{i + 1}"
        if name in columns and not isinstance(column.value, n.Name):
            message = f"two columns of this select are named `{name}`"
            raise refuse("NameError", message, column.span, help="name one: `… as n`")
        columns[name] = compiler.expression(column.value)
    return columns


def _argument(call: n.Call, compiler: RowCompiler) -> tuple[RowExpr | None, bool]:
    """The expression that is summed up, and whether different values of it are."""
    name = call.function.id  # type: ignore[union-attr]
    row = AGGREGATES[name]
    if name == "count" and len(call.args) == 1 and isinstance(call.args[0], n.Star):
        return None, False
    if len(call.args) != 1 or call.keywords or row.numbers or row.expressions != 1:
        raise refuse(
            "TypeError", f"`{name}` is not taken of each person or group", call.span,
            help="there are `count(*)`, `count(E)`, `count(distinct E)`, `sum`, `avg`, `min` and `max`",
        )  # fmt: skip
    (arg,) = call.args
    if isinstance(arg, n.Distinct):
        if name != "count":
            raise refuse("TypeError", "`distinct` stands only in `count`", call.span)
        return compiler.counted_position(arg.value), True
    if isinstance(arg, n.Star):
        raise refuse("TypeError", "`*` stands only in `count`", call.span)
    expr = compiler.column_position(arg, constant=isinstance(arg, n.Number))[0]
    return as_number(expr, compiler.schema) if row.bounded else expr, False


def persons_in_groups(table: Table, keys: Sequence[GroupKey]) -> tuple[Table, list[GroupKey]]:
    """A table whose rows are the persons of each group, once each, and the keys of its groups."""
    grouped = persons.persons_of_groups(table, _listed(keys, table))
    return grouped, [replace(key, expr=Column(key.name)) for key in keys]


def _listed(keys: Sequence[GroupKey], table: Table) -> list[tuple[str, Key | RowExpr]]:
    """The names of keys, and their public values where they have some."""
    return [(key.name, key_of(key.expr, key.over, table.domains, MOST_KEYS) or key.expr) for key in keys]
