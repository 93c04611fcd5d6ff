"""The union of tables: all rows of each, equal ones too.

*Argument.* A protected unit that changes at most kᵢ rows of table i changes the union by just these rows, since a row
of a table is one row of the union whatever else is in it: by Σ kᵢ rows, over the tables that read its source. Where
rows have weights, they keep them, and the weights that change add up in the same way; a row of a table without weights
weighs 1 in a union with one that has them, so that kᵢ rows of it weigh kᵢ. The union is charged at the common prefix
of the paths (`join_exposures`), and to every source.

No row comes or goes for the sake of another one's, so that scores that grow with every row still do.

The table that several tables are made of by filters and derived columns alone.

*Argument.* Filters and derived columns take a row to one row at most. So what is measured of rows of the table below is
what it would be of the tables made of it, if conditions and columns are put into what is measured; and the table below
is exposed where all of them are: its rows that can change are those that can change in each, and it is charged at the
common part of their paths, within every agent of theirs.

Public tables of rows that a program states: no source is read.

Disjoint parts of a table by a hash: what each tree of a forest may have for its own.

Which part a row goes to is decided by the row alone, by its protected unit: the values of the protected columns,
or under `protecting rows` all the values it has. So the parts are disjoint under public keys, other rows never
decide where one goes, and what is spent on the parts counts as their maximum (docs/privacy/transformations.md). All
rows of a person go to one part. Rows that are equal in all values go together too, which costs nothing but evenness;
parts by position, or of equal size, would not do: there one row more moves others.

The hash is SHA-256, so that parts are as even as the values are many, and the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.diagnostics import refuse
from jostle.language.moments import number_of
from jostle.plan.kinds import check_depth, value_kind
from jostle.plan.plan import (
    Apply,
    Categories,
    Column,
    Constant,
    Derive,
    Domain,
    Filter,
    Integer,
    Join,
    Known,
    Listed,
    Moments,
    Open,
    Plan,
    Real,
    RowExpr,
    Union,
)
from jostle.plan.schemas import schema_of, united_schema
from jostle.privacy.kernel.exposures import Exposures, Handle, common_prefix, join_exposures
from jostle.privacy.kernel.handles import Table
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.transformations.transform import partition
from jostle.records import replace

MOST_TABLES = 1000


def union(tables: Sequence[Table]) -> Table:
    """All rows of the tables, whose columns have the same names and kinds; stabilities add up, by source."""
    if not 1 <= len(tables) <= MOST_TABLES:
        raise refuse("ValueError", f"a union is of 1 to {MOST_TABLES:,} tables")
    schema = united_schema([table.domains for table in tables])
    weighted = any(table.weighted for table in tables)
    exposures = join_exposures([_weighted(t) if weighted else t.exposures for t in tables], [1] * len(tables))
    return Table(exposures, Union(tuple(table.plan for table in tables)), tuple(schema.items()))


def _weighted(table: Table) -> Exposures:
    """The exposures of a table in a union that has weights: a row without one weighs 1."""
    return tuple(e if e.weight is not None else replace(e, weight=e.rows) for e in table.exposures)


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
    table = plan.right.source if isinstance(plan.right, Known) else plan.right
    if not isinstance(table, Listed) or len(plan.on) != 1:
        return {}
    ((mine, theirs),) = plan.keys
    names = [name for name, _ in table.columns]
    keys = [row[names.index(theirs)] for row in table.rows]
    if len(set(keys)) < len(keys) or None in keys:
        return {}
    result: dict[str, RowExpr] = {}
    for at, name in enumerate(names):
        values = list(dict.fromkeys(row[at] for row in table.rows if row[at] is not None))
        if name in schema_of(plan.left) or len(values) > MOST_VALUES:
            continue
        expr: RowExpr = Constant(None)
        for value in values:
            those = tuple(Constant(key) for key, row in zip(keys, table.rows, strict=True) if row[at] == value)
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


MOST_ROWS = 2**16
"""Rows that a program gives; more are a file, or what Python binds."""
MOST_LISTED = 4096
_PLURAL = {"number": "numbers", "text": "texts", "boolean": "truths", "date": "dates", "time": "times"}


def literal_table(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> Table:
    """A public table of columns of one kind each, some cells missing; what is known of them are their values."""
    if columns and len(columns[0]) > MOST_ROWS:
        raise refuse(
            "DataError", f"a table of {len(columns[0]):,} rows is too long to be written out",
            help=f"at most {MOST_ROWS:,}: put them into a file, or bind a frame from Python",
        )  # fmt: skip
    schema = tuple((name, _domain(name, column)) for name, column in zip(names, columns, strict=True))
    return Table((), Listed(schema, tuple(zip(*columns, strict=True))), schema)


def _domain(name: str, column: Sequence[Any]) -> Domain:
    cells = [cell for cell in column if cell is not None]
    kinds = list(dict.fromkeys(map(value_kind, cells)))
    if len(kinds) > 1:
        raise refuse(
            "TypeError", f"the column `{name}` has {_PLURAL[kinds[0]]} and {_PLURAL[kinds[1]]}",
            help="`str(x)` makes a text of a number",
        )  # fmt: skip
    if kinds == ["text"]:
        different = tuple(dict.fromkeys(cells))
        return Categories(different) if len(different) <= MOST_LISTED else Open("text")
    if kinds in (["date"], ["time"]):
        numbers = list(map(number_of, cells))
        return Moments(kinds[0], min(numbers), max(numbers))
    if kinds != ["number"]:
        return Open("boolean" if kinds else "real")
    whole = all(float(cell).is_integer() for cell in cells)
    return Integer(int(min(cells)), int(max(cells))) if whole else Real(float(min(cells)), float(max(cells)))


MOST_PARTS = 1000


def split_rows(data: PublicData, table: Table, parts: int, salt: int = 0) -> list[Handle]:
    """`parts` disjoint parts of a table, by a hash of the protected unit and of the salt. Stability is the table's."""
    if not 1 <= parts <= MOST_PARTS:
        raise refuse("ValueError", f"rows are split into 1 to {MOST_PARTS:,} parts")
    domains = table.domains
    columns = list(dict.fromkeys(c for e in table.exposures for c in e.unit.columns))
    for name in columns:
        if name not in domains:
            raise refuse(
                "NameError", f"rows are split by what is protected, and `{name}` is no column of this table",
                help=f"describe it: `described by {{{name}: text, …}}`",
            )  # fmt: skip
    numbers: tuple[RowExpr, ...] = (Constant(float(parts)), Constant(float(salt)))
    hashed = (*numbers, *(Column(name) for name in columns or domains))
    return [part for _, part in partition(data, table, Apply("bucket", hashed), "the hash", range(parts))]
