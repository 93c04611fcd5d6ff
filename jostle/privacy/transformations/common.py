"""The table that several tables are made of by filters and derived columns alone.

*Argument.* Filters and derived columns take a row to one row at most. So what is measured of rows of the table below is
what it would be of the tables made of it, if conditions and columns are put into what is measured; and the table below
is exposed where all of them are: its rows that can change are those that can change in each, and it is charged at the
common part of their paths, within every agent of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jostle.diagnostics import refuse
from jostle.plan.kinds import check_depth
from jostle.plan.plan import Apply, Column, Constant, Derive, Filter, Join, Known, Listed, Plan, RowExpr
from jostle.plan.schemas import schema_of
from jostle.privacy.kernel.exposures import common_prefix
from jostle.privacy.kernel.handles import Table
from jostle.records import replace


def common_table(tables: Sequence[Table]) -> Table:
    """The table below all of these. Refuses those that are not made of one in this way, and rows that have weights."""
    first = tables[0]
    base, exposures = seen_through(first.plan)[0], first.exposures
    for table in tables:
        if table.weighted:
            raise refuse(
                "TypeError", "rows that have weights are not answered together",
                help="give each of these selects an amount of its own, without `jointly`",
            )  # fmt: skip
        same = [(e.source, e.rows, e.declared) for e in table.exposures] == [
            (e.source, e.rows, e.declared) for e in exposures
        ]
        if seen_through(table.plan)[0] != base or not same:
            raise refuse(
                "TypeError", "a `jointly` block answers selects of one table, and these read different ones",
                help="give each table a block of its own",
            )  # fmt: skip
        exposures = tuple(
            replace(mine, path=common_prefix(mine.path, e.path), agents=tuple(dict.fromkeys((*mine.agents, *e.agents))))
            for mine, e in zip(exposures, table.exposures, strict=True)
        )
    return Table(exposures, base, tuple(schema_of(base).items()))


def seen_through(plan: Plan) -> tuple[Plan, dict[str, RowExpr], list[RowExpr]]:
    """The plan below filters and derived columns, these columns by name, and the conditions, as expressions of it."""
    steps: list[Filter | Derive] = []
    while isinstance(plan, Filter | Derive):
        steps.append(plan)
        plan = plan.source
    columns: dict[str, RowExpr] = {name: Column(name) for name in schema_of(plan)}
    conditions: list[RowExpr] = []
    for step in reversed(steps):
        if isinstance(step, Filter):
            conditions.append(replaced(step.condition, columns))
        else:
            columns = {name: replaced(expr, columns) for name, expr in step.columns}
    return plan, columns, conditions


MOST_VALUES = 100  # of a column of public rows, for it to be written as an expression


def joined_columns(plan: Plan) -> dict[str, RowExpr]:
    """Of a join with public rows that stand in the plan: their columns, as functions of the key that is joined on.

    Where no two of these rows have one key, a row's partner follows from its key, and so does what it has there.
    """
    if not isinstance(plan, Join) or plan.kind not in ("inner", "left") or plan.person or plan.most is not None:
        return {}
    listed = plan.right.source if isinstance(plan.right, Known) else plan.right
    if not isinstance(listed, Listed) or len(plan.on) != 1:
        return {}
    ((mine, theirs),) = plan.keys
    names = [name for name, _ in listed.columns]
    keys = [row[names.index(theirs)] for row in listed.rows]
    if len(set(keys)) < len(keys) or None in keys:
        return {}
    result: dict[str, RowExpr] = {}
    for at, name in enumerate(names):
        values = list(dict.fromkeys(row[at] for row in listed.rows if row[at] is not None))
        if name in schema_of(plan.left) or len(values) > MOST_VALUES:
            continue
        expr: RowExpr = Constant(None)
        for value in values:
            those = tuple(Constant(key) for key, row in zip(keys, listed.rows, strict=True) if row[at] == value)
            expr = Apply("if", (Apply("in", (Column(mine), *those)), Constant(value), expr))
        result[name] = expr
    return result


def replaced(expr: RowExpr, columns: Mapping[str, RowExpr]) -> RowExpr:
    """An expression with each column replaced by what it is computed from."""
    if isinstance(expr, Column):
        return columns[expr.name]
    if isinstance(expr, Constant):
        return expr
    result = Apply(expr.op, tuple(replaced(arg, columns) for arg in expr.args))
    check_depth(result)
    return result
