"""Tables of SQLite and DuckDB files, as Arrow tables.

Only tables that the file stores are read, no views, and no columns that are calculated: what runs in them may fail on
a row. What SQLite keeps of other tables is not read either: their statistics, and the words of a text index. A name is
compared as the database does it, and is never part of a query's text but in quotes. What a cell holds fails nothing:
SQLite's become texts one by one, of DuckDB's columns those are read that have cells of their own. A database whose last
changes stand in a file beside it is refused, since they would be missing.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.engine.files import OpenFile
from jostle.engine.sql.cells import NATIVE
from jostle.readers.stopping import beside

if TYPE_CHECKING:
    import pyarrow as pa

_MOMENTS = frozenset({"TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"})
_STORED = """SELECT name FROM sqlite_schema t WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
AND substr(name, 1, 7) <> 'sqlite_' AND NOT EXISTS (SELECT 1 FROM sqlite_schema v WHERE v.sql LIKE 'CREATE VIRTUAL%'
AND substr(t.name, 1, length(v.name) + 1) = v.name || '_')"""
_AS_TEXT = re.compile(r"UUID|U?HUGEINT|ENUM\(.*\)", re.DOTALL)
_DECIMAL = re.compile(r"DECIMAL\([0-9]+,[0-9]+\)")


def sqlite_table(file: OpenFile, label: str, part: str) -> pa.Table:
    """A table of a SQLite file, each cell a text."""
    import sqlite3

    import pyarrow as pa

    from jostle.readers.frames import text_of

    _check_beside(file, label, "-wal")
    try:
        connection = sqlite3.connect(f"file:{file.name}?immutable=1", uri=True)
        try:
            connection.text_factory = bytes
            tables = connection.execute(_STORED)
            name = _chosen(label, part, [table.decode("utf-8", "replace") for (table,) in tables])
            described = connection.execute(f"PRAGMA table_xinfo({_quoted(name)})").fetchall()
            columns = [row[1].decode("utf-8", "replace") for row in described if row[6] == 0]
            cursor = connection.execute(f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(name)}")
            cells: list[list[str | None]] = [[] for _ in columns]
            while rows := cursor.fetchmany(1 << 14):
                for place, column in enumerate(cells):
                    column += [text_of(row[place]) for row in rows]
        finally:
            connection.close()
    except (sqlite3.Error, OSError):
        raise _unreadable(label) from None
    file.check()
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip(columns, cells, strict=True)})


def duckdb_table(file: OpenFile, label: str, part: str) -> tuple[pa.Table, tuple[tuple[str, str], ...]]:
    """A table of a DuckDB file; and the columns of types that are not read (lists, structs, blobs), with these."""
    import duckdb

    _check_beside(file, label, ".wal")
    try:
        connection = duckdb.connect(":memory:", config={"autoload_known_extensions": "false"})
        try:
            connection.execute(f"ATTACH '{file.name}' AS source (READ_ONLY)")
            tables = connection.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' "
                "AND sql NOT ILIKE '%GENERATED ALWAYS AS%'"
            ).fetchall()
            name = _chosen(label, part, [_full(*table) for table in tables])
            schema, table = next(table for table in tables if _full(*table) == name)
            place = f"source.{_quoted(schema)}.{_quoted(table)}"
            described = connection.execute(f"DESCRIBE {place}").fetchall()
            types = [(str(column), str(kind)) for column, kind, *_ in described]
            items = [_item(*column) for column in types]
            rows = f"SELECT {', '.join(items)} FROM {place}"
            result = beside(lambda: connection.sql(rows).to_arrow_table(), connection.interrupt)
        finally:
            connection.close()
    except (duckdb.Error, OSError):
        raise _unreadable(label) from None
    file.check()
    return result, tuple((column, kind) for column, kind in types if not _is_read(kind))


def _is_read(kind: str) -> bool:
    return kind in NATIVE | _MOMENTS or bool(_DECIMAL.fullmatch(kind) or _AS_TEXT.fullmatch(kind))


def _full(schema: str, table: str) -> str:
    return table if schema == "main" else f"{schema}.{table}"


def _item(column: str, kind: str) -> str:
    name = _quoted(column)
    if not _is_read(kind):
        return f"CAST(NULL AS VARCHAR) AS {name}"
    return f"CAST({name} AS VARCHAR) AS {name}" if _AS_TEXT.fullmatch(kind) else name


def _chosen(label: str, part: str, tables: list[str]) -> str:
    """The table that is meant, in any case, as databases have it."""
    named = next((table for table in tables if table.casefold() == part.casefold()), None)
    if named is None:
        listed = f"it has {', '.join(sorted(tables)[:12])}" if tables else "it has none"
        raise refuse("DataError", f"{label} has no table `{part}`", help=did_you_mean(part, tables) or listed)
    return named


def _check_beside(file: OpenFile, label: str, ending: str) -> None:
    try:
        size = os.stat(file.real + ending).st_size
    except OSError:
        return
    if size:
        help = "close it where it is open, or have it write its log (`CHECKPOINT`)"
        raise refuse("DataError", f"{label} has changes that are not written to it yet", help=help)


def _unreadable(label: str) -> Refusal:
    return refuse("DataError", f"{label} cannot be read as a database", help="close it where it is open for writing")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
