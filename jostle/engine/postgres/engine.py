"""The engine of a session on PostgreSQL: plans run on the server, and whole numbers come back.

Nothing is written there, not even a temporary table, so that a user who may only read can use it. Whatever a plan asks
is one statement, in one state of the tables (`connection`). Rows of persons are bounded in the statement that asks for
them. Files and tables in memory are not on the server: they are refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from jostle.diagnostics import refuse
from jostle.engine.base import Capabilities, Opened
from jostle.engine.files import OpenFile, open_file
from jostle.engine.objects import Objects
from jostle.engine.postgres.connection import Connection
from jostle.engine.postgres.dialect import POSTGRES
from jostle.engine.postgres.tables import Stored, StoredTable, stored_table
from jostle.engine.remote import RemoteData
from jostle.engine.sql import persons, relations
from jostle.engine.sql.cells import clean, identity, number, text, whole_or_text
from jostle.engine.sql.dialect import subquery
from jostle.engine.sql.engine import SqlEngine
from jostle.plan.domains import Domain, Open
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Bound, Owners, Scan

MOST_ROWS = 2**47  # of a table: a server's tables are smaller
_WHOLE_TYPES = frozenset({20, 21, 23})  # the numbers of types: BIGINT, SMALLINT, INTEGER
_DOUBLE_TYPES = frozenset({700, 701})


class Postgres(SqlEngine):
    """A database of a server, of version 15 or later, by its URL."""

    capabilities = Capabilities()
    dialect = POSTGRES
    remote: ClassVar[str] = "postgres"

    def __init__(self, url: str) -> None:
        self._connection = Connection(url)
        self._tables: dict[str, StoredTable] = {}
        self.objects = Objects()

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    # Opening -----------------------------------------------------------------------------------------

    def file(self, path: str | os.PathLike[str]) -> OpenFile:
        """The file at a path, of counts alone: tables are on the server."""
        return open_file(path)

    def open(self, origin: Any, *, public: bool, names: tuple[str, ...] = ()) -> Opened:
        """Makes a table of the database known. Refuses with `DataError`, without a place."""
        if not isinstance(origin, RemoteData):
            raise refuse(
                "DataError", "in a session on PostgreSQL, tables are those of the database",
                help='load it into the database, and name it: `postgres("schema.table")`',
            )  # fmt: skip
        if len(origin.names) != 1:
            raise refuse("DataError", "one table has one name", help='`postgres("schema.table")`')
        table = stored_table(self._connection, origin.names[0], names)
        key = f"t{table.number}"
        self._tables[key] = table
        return Opened(key, tuple(table.columns), table.identity)

    def guess(self, key: str) -> tuple[tuple[str, Domain], ...]:
        """Domains for a public table without a description: `real` where every cell that is not empty is a finite
        number, `text` elsewhere. Reads the data."""
        table = self._tables[key]
        tests = [
            f"count({text(POSTGRES, column.value, column.kind)}) = count({number(POSTGRES, column.value, column.kind)})"
            for column in table.columns.values()
        ]
        (row,) = self.fetch(f"SELECT {', '.join(tests)} FROM {table.place}")
        return tuple((name, Open("real" if real else "text")) for name, real in zip(table.columns, row, strict=True))

    def stamp(self, key: str) -> str:
        """A text that changes when the cells of a public table do, whatever the order of rows."""
        table = self._tables[key]
        cells = [text(POSTGRES, column.value, column.kind) for column in table.columns.values()]
        hashed = f"hashtextextended({POSTGRES.canonical(cells)}, 0)"
        (row,) = self.fetch(f"SELECT count(*), sum({hashed})::text FROM {table.place}")
        return f"{tuple(table.columns)}:{row[0]}:{row[1]}"

    # Relations ---------------------------------------------------------------------------------------

    def base(self, plan: Scan | Bound) -> relations.Relation:
        scan, bound = (plan.scan, plan) if isinstance(plan, Bound) else (plan, None)
        table, raw, cells, columns = self._tables[scan.data], [], [], {}
        for i, (name, domain) in enumerate(scan.columns):
            column = _column(table, name)
            numeric = bool(column.number) and domain_kind(domain) == "number"
            kind, value = ("DOUBLE", column.number) if numeric else (column.kind, column.value)
            cell = clean(POSTGRES, f"r{i}", kind, domain)
            raw.append(f"{value} AS r{i}")
            cells.append(f"{cell.alias} AS c{i}")
            columns[name] = replace(cell, alias=f"c{i}")
        if bound is None:
            rows = f"SELECT {', '.join(raw) or '1 AS unused'} FROM {table.place}"
        else:
            rows = self._bounded(bound, raw)
            cells += [*["w"] * bound.weighted, "CAST(q AS TEXT) AS p"]
        query = f"SELECT {', '.join(cells) or '1 AS unused'} FROM {subquery(rows)}"
        weighted = bound is not None and bound.weighted
        return relations.Relation(
            query, columns, dict(scan.columns), MOST_ROWS, POSTGRES, weighted, personal=bound is not None
        )

    def _bounded(self, plan: Bound, raw: list[str]) -> str:
        """The `raw` cells of the rows of each person that stay, with `q`, and weights. In the hash columns are by the
        order of names."""
        rows = self._rows_of_persons(plan, raw)
        if plan.most is None:
            return f"SELECT * FROM {subquery(rows)}{persons.known(['q'])}"
        table = self._tables[plan.scan.data]
        kinds = [_column(table, name).kind for name in sorted(dict(plan.scan.columns))]
        hashed = [whole_or_text(POSTGRES, f"h{i}", kind) for i, kind in enumerate(kinds)]
        items = ", ".join([*(f"r{i}" for i in range(len(raw))), "q"])
        return persons.rows_per_key(
            items, rows, ["q"], hashed, plan.most, weighted=plan.weighted, dialect=POSTGRES
        )  # fmt: skip

    def _rows_of_persons(self, plan: Bound, raw: list[str]) -> str:
        """Rows with the `raw` cells of a plan, those that they are hashed by (`h0`, … by the order of names), and `q`,
        whose a row is: a whole number or a text, NULL where it is nobody's.

        Where owners are looked up, a row is there once of each; a row of an owner that is named twice is there once.
        """
        table, owners = self._tables[plan.scan.data], plan.owners
        names = sorted(dict(plan.scan.columns))
        items = [*raw, *(f"{_column(table, name).value} AS h{i}" for i, name in enumerate(names))]
        if owners is None:
            return f"SELECT {', '.join([*items, f'{self._owner(table, plan.by)} AS q'])} FROM {table.place}"
        key = _identity(_column(table, owners.on))
        rows = f"SELECT {', '.join([*items, f'{key} AS k'])} FROM {table.place}"
        return f"SELECT t.*, o.q FROM ({rows}) AS t JOIN ({self._claims(owners)}) AS o ON t.k = o.k"

    def _owner(self, table: StoredTable, by: tuple[str, ...]) -> str:
        columns = [_column(table, name) for name in by]
        return persons.owner([(column.value, column.kind) for column in columns], POSTGRES)

    def _claims(self, owners: Owners) -> str:
        """Every person `q` with every value `k` that a row of theirs has, once."""
        key = _identity(_column(self._tables[owners.table.scan.data], owners.key))
        rows = self._rows_of_persons(owners.table, [f"{key} AS claimed"])
        return f"SELECT DISTINCT q, claimed AS k FROM {subquery(rows)}"

    # Queries -----------------------------------------------------------------------------------------

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.read(query, "the data", lambda cursor: list(cursor.fetchall()))

    def columns(self, query: str) -> list[Any]:
        def take(cursor: Any) -> list[Any]:
            return [_array(column, values) for column, values in _by_column(cursor.description, cursor.fetchall())]

        return self._connection.read(query, "the data", take)

    def batches(self, query: str, size: int) -> Iterator[Any]:
        import pyarrow as pa

        for described, rows in self._connection.blocks(query, "the data", size):
            arrays = {column.name: pa.array(values) for column, values in _by_column(described, rows)}
            yield pa.RecordBatch.from_pydict(arrays)


def _by_column(described: list[Any], rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    yield from zip(described, zip(*rows, strict=True) if rows else ((),) * len(described), strict=True)


def _array(column: Any, values: tuple[Any, ...]) -> Any:
    """The cells of a column, masked where they are NULL."""
    import numpy as np

    kind = np.int64 if column.type_code in _WHOLE_TYPES else np.float64 if column.type_code in _DOUBLE_TYPES else object
    missing = [value is None for value in values]
    if not any(missing):
        return np.ma.MaskedArray(np.array(values, dtype=kind), mask=False)
    plain = values if kind is object else [0 if value is None else value for value in values]
    return np.ma.MaskedArray(np.array(plain, dtype=kind), mask=missing)


def _column(table: StoredTable, name: str) -> Stored:
    if name not in table.columns:
        help = "names are as in the database, in their case"
        raise refuse("DataError", f"{table.label} has no column `{name}`", help=help)
    return table.columns[name]


def _identity(column: Stored) -> str:
    return identity(POSTGRES, column.value, column.kind)
