"""The engine of a session on PostgreSQL: plans run on the server, and whole numbers come back.

Nothing is written there, not even a temporary table, so that a user who may only read can use it. Whatever a plan asks
is one statement, in one state of the tables (`connection`): rows of persons are bounded in the statement that asks for
them, and a public table of this process stands in it as constants.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from jostle.backends.postgres.connection import Connection
from jostle.backends.postgres.dialect import POSTGRES, bare
from jostle.backends.postgres.tables import MOST_ROWS, stored_table
from jostle.backends.remote import RemoteData
from jostle.backends.server import ServerEngine
from jostle.backends.stored import Stored
from jostle.diagnostics import refuse
from jostle.engine.base import Capabilities
from jostle.engine.sql.dialect import subquery

_LARGEST = 2**20  # bytes of a public table that stands in a statement
_TYPES = {"int64": "BIGINT", "double": "FLOAT8", "bool": "BOOLEAN", "date32[day]": "DATE"}
_WHOLE_TYPES = frozenset({20, 21, 23})  # the numbers of types: BIGINT, SMALLINT, INTEGER
_DOUBLE_TYPES = frozenset({700, 701})


class Postgres(ServerEngine):
    """A database of a server, of version 15 or later, by its URL."""

    capabilities = Capabilities()
    dialect = POSTGRES
    remote = "postgres"

    def __init__(self, url: str) -> None:
        super().__init__()
        self.connection = Connection(url)

    def close(self) -> None:
        """Ends the connection."""
        self.connection.close()
        super().close()

    def located(self, data: RemoteData) -> tuple[Stored, Hashable]:
        if len(data.names) != 1:
            raise refuse("DataError", "one table has one name", help='`postgres("schema.table")`')
        return stored_table(self.connection, data.names[0])

    def send(self, table: Any) -> str:
        """The rows of an Arrow table as a table of constants."""
        if table.nbytes > _LARGEST:
            message = f"a public table of more than {_LARGEST >> 20} MB is not sent to a database"
            raise refuse("DataError", message, help='load it into the database, and name it `postgres("…")`')
        arrays = []
        for field, column in zip(table.schema, table.columns, strict=True):
            listed = ",".join(map(_element, column.to_pylist()))
            arrays.append(f"{bare('{' + listed + '}')}::{_TYPES.get(str(field.type), 'TEXT')}[]")
        return f"unnest({', '.join(arrays)}) AS s({', '.join(table.column_names)})"

    def keep(self, query: str) -> str:
        return subquery(query)

    def count(self, table: str) -> int:
        return MOST_ROWS

    # Queries -----------------------------------------------------------------------------------------

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.read(query, "the data", lambda cursor: list(cursor.fetchall()))

    def columns(self, query: str) -> list[Any]:
        def take(cursor: Any) -> list[Any]:
            return [_array(column, values) for column, values in _by_column(cursor.description, cursor.fetchall())]

        return self.connection.read(query, "the data", take)

    def batches(self, query: str, size: int) -> Iterator[Any]:
        import pyarrow as pa

        for described, rows in self.connection.blocks(query, "the data", size):
            arrays = {column.name: pa.array(values) for column, values in _by_column(described, rows)}
            yield pa.RecordBatch.from_pydict(arrays)


def _element(value: Any) -> str:
    """A cell in the text of an array."""
    if value is None:
        return "NULL"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


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
