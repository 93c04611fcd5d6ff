"""Several files as one table: the rows of each, one file after another.

The files have the same columns, in any order: that is asked of their headers and types, which are public. Where a
column is of one kind in one file and of another in the next, it becomes what holds both, a whole number, a double or a
text, cell by cell, without a failure and without two values becoming one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jostle.diagnostics import refuse
from jostle.engine.duckdb.dialect import DUCKDB
from jostle.engine.duckdb.raw import Irregular, Raw
from jostle.engine.sql.cells import WHOLE, number, text


class Union(Raw):
    """The rows of several data sets. A `DataError` where their columns differ."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Raw], label: str) -> None:
        first = parts[0]
        for part in parts[1:]:
            if set(part.columns) != set(first.columns):
                message = f"{part.label} does not have the columns of {first.label}"
                raise refuse("DataError", message, help="the files of one table have the same header")
        kinds = tuple(_common({part.cell(name)[1] for part in parts}) for name in first.columns)
        super().__init__(first.columns, kinds, label)
        self.unread = tuple({name: one for part in parts for name, one in part.unread}.items())
        self._parts = tuple(parts)

    @property
    def numbered(self) -> bool:
        return all(part.numbered for part in self._parts)

    def table(self, needed: Collection[int]) -> str:
        many = len(self._parts)
        selects = []
        for at, part in enumerate(self._parts):
            cells = [(i, part.cell(self.columns[i])) for i in sorted(needed)]
            items = [f"{_as(*cell, self.kinds[i])} AS c{i}" for i, cell in cells]
            items += [f"n * {many} + {at} AS n"] if self.numbered else []
            source = part.table([part.columns.index(self.columns[i]) for i in sorted(needed)])
            selects.append(f"SELECT {', '.join(items) or '1 AS unused'} FROM {source}")
        return f"({' UNION ALL '.join(selects)})"

    def stale(self) -> bool:
        return any(part.stale() for part in self._parts)

    def look(self) -> None:
        for part in self._parts:
            part.look()
        seen = [part.irregular for part in self._parts]
        self.irregular = Irregular(sum(i.ragged for i in seen), 0, sum(i.undecodable for i in seen), 0)


def _common(kinds: set[str]) -> str:
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= WHOLE:
        return "BIGINT"
    return "DOUBLE" if kinds <= (WHOLE - {"BIGINT"}) | {"DOUBLE"} else "VARCHAR"  # a FLOAT's text is not its double's


def _as(cell: str, kind: str, wanted: str) -> str:
    if kind == wanted:
        return cell
    if wanted == "BIGINT":
        return f"CAST({cell} AS BIGINT)"
    return number(DUCKDB, cell, kind) if wanted == "DOUBLE" else text(DUCKDB, cell, kind)
