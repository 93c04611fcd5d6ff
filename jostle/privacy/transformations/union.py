"""The union of tables, and the one table that several are made of.

*Union.* A protected unit that changes at most kᵢ rows of table i changes the union by just these rows, since a row
of a table is one row of the union whatever else is in it: by Σ kᵢ rows, over the tables that read its source. Where
rows have weights, they keep them, and the weights that change add up in the same way; a row of a table without weights
weighs 1 in a union with one that has them. The union is charged at the common prefix of the paths, to every source. No
row comes or goes for the sake of another one's, so that scores that grow with every row still do.

*Common table.* Filters and derived columns take a row to one row at most. So what is measured of rows of the table
below is what it would be of the tables made of it, if conditions and columns are put into what is measured. The table
below is exposed where all of them are: its rows that can change are those that can in each, and it is charged at the
common part of their paths, within every agent of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.diagnostics import refuse
from jostle.plan.plan import Union, rows_below
from jostle.plan.schemas import schema_of, united_schema
from jostle.privacy.kernel.exposures import Exposures, common_prefix, join_exposures
from jostle.privacy.kernel.handles import Table
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
    base, exposures = rows_below(first.plan), first.exposures
    for table in tables:
        if table.weighted:
            raise refuse(
                "TypeError", "rows that have weights are not answered together",
                help="give each of these selects an amount of its own, without `jointly`",
            )  # fmt: skip
        same = [(e.source, e.rows, e.declared) for e in table.exposures] == [
            (e.source, e.rows, e.declared) for e in exposures
        ]
        if rows_below(table.plan) != base or not same:
            raise refuse(
                "TypeError", "a `jointly` block answers selects of one table, and these read different ones",
                help="give each table a block of its own",
            )  # fmt: skip
        exposures = tuple(
            replace(mine, path=common_prefix(mine.path, e.path), agents=tuple(dict.fromkeys((*mine.agents, *e.agents))))
            for mine, e in zip(exposures, table.exposures, strict=True)
        )
    return Table(exposures, base, tuple(schema_of(base).items()))
