"""The union of tables: all rows of each, equal ones too.

*Argument.* A protected unit that changes at most kᵢ rows of table i changes the union by just these rows, since a row
of a table is one row of the union whatever else is in it: by Σ kᵢ rows, over the tables that read its source. Where
rows have weights, they keep them, and the weights that change add up in the same way; a row of a table without weights
weighs 1 in a union with one that has them, so that kᵢ rows of it weigh kᵢ. The union is charged at the common prefix
of the paths (`join_exposures`), and to every source.

No row comes or goes for the sake of another one's, so that scores that grow with every row still do.
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.diagnostics import refuse
from jostle.plan.plan import Union
from jostle.plan.schemas import united_schema
from jostle.privacy.kernel.exposures import Exposures, join_exposures
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
