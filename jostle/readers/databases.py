"""Tables of SQLite and DuckDB files.

Only tables that the file stores are read, no views, and no columns that are calculated: what runs in them may fail on
a row. What SQLite keeps of other tables is not read either: their statistics, and the words of a text index. A name is
compared as the database does it, and is never part of a query's text but in quotes. What a cell holds fails nothing:
SQLite's become texts one by one, of DuckDB's columns those are read that have cells of their own. A database whose last
changes stand in a file beside it is refused, since they would be missing.

Files of counts: cubes that somebody has already counted.

JSON lines: an object a line, whose columns are those that a description names.

There is no header, and a first record is a row like the others; so of a private file nothing is known but what is
described, and a name that no record has is none throughout. A line that is no object is a row of none. Texts, numbers
and truths are cells, as they are written; objects and lists are none, as is a number's name (`NaN`). Where an object
has a name twice, the last one counts.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.engine.files import OpenFile, open_file
from jostle.engine.sql.cells import NATIVE
from jostle.integers import fixed_width, truncated
from jostle.lazy import Array, np, pa
from jostle.readers.filesets import Reading, reader_of
from jostle.readers.limits import beside
from jostle.readers.textfile import BOM, FAULTS, TextFile, blocks, content, damaged, decoded, quoted

_MOMENTS = frozenset({"TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"})
_STORED = """SELECT name FROM sqlite_schema t WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
AND substr(name, 1, 7) <> 'sqlite_' AND NOT EXISTS (SELECT 1 FROM sqlite_schema v WHERE v.sql LIKE 'CREATE VIRTUAL%'
AND substr(t.name, 1, length(v.name) + 1) = v.name || '_')"""
_AS_TEXT = re.compile(r"UUID|U?HUGEINT|ENUM\(.*\)", re.DOTALL)
_DECIMAL = re.compile(r"DECIMAL\([0-9]+,[0-9]+\)")


def sqlite_table(file: OpenFile, label: str, reading: Reading) -> tuple[dict[str, list[object]], tuple[()]]:
    """A table of a SQLite file, whose cells are of any type; all columns are read, as texts."""
    import sqlite3

    _check_beside(file, label, "-wal")
    _check_beside(file, label, "-journal")
    try:
        connection = sqlite3.connect(f"file:{file.name}?immutable=1", uri=True)
        try:
            connection.text_factory = bytes
            tables = connection.execute(_STORED)
            name = _choice(label, reading.part or "", [table.decode("utf-8", "replace") for (table,) in tables])
            described = connection.execute(f"PRAGMA table_xinfo({_quoted(name)})").fetchall()
            columns = [row[1].decode("utf-8", "replace") for row in described if row[6] == 0]
            cursor = connection.execute(f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(name)}")
            cells: list[list[object]] = [[] for _ in columns]
            while rows := cursor.fetchmany(1 << 14):
                for place, column in enumerate(cells):
                    column += [row[place] for row in rows]
        finally:
            connection.close()
    except (sqlite3.Error, OSError):
        raise _unreadable(label) from None
    file.check()
    return dict(zip(columns, cells, strict=True)), ()


def duckdb_table(file: OpenFile, label: str, reading: Reading) -> tuple[pa.Table, tuple[tuple[str, str], ...]]:
    """A table of a DuckDB file; and the columns of types that are not read (lists, structs, blobs), with these."""
    import duckdb

    _check_beside(file, label, ".wal")
    try:
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoload_known_extensions": "false",
            "arrow_large_buffer_size": "true",
        }
        connection = duckdb.connect(":memory:", config=config)
        try:
            connection.execute(f"ATTACH '{file.name}' AS source (READ_ONLY)")
            tables = connection.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'source' "
                "AND sql NOT ILIKE '%GENERATED ALWAYS AS%'"
            ).fetchall()
            name = _choice(label, reading.part or "", [_full(*table) for table in tables])
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


def _choice(label: str, part: str, tables: list[str]) -> str:
    """The table that is meant, in any case, as databases have it."""
    named = next((table for table in tables if table.casefold() == part.casefold()), None)
    if named is None:
        available = f"it has {', '.join(sorted(tables)[:12])}" if tables else "it has none"
        raise refuse("DataError", f"{label} has no table `{part}`", help=did_you_mean(part, tables) or available)
    return named


def _check_beside(file: OpenFile, label: str, ending: str) -> None:
    try:
        with open(file.real + ending, "rb") as source:
            begin = source.read(8).strip(b"\0")  # of one that is kept when it is done with, zeros
    except OSError:
        return
    if begin:
        help = "close it where it is open, or have it write its log (`CHECKPOINT`)"
        raise refuse("DataError", f"{label} has changes that are not written to it yet", help=help)


def _unreadable(label: str) -> Refusal:
    return refuse("DataError", f"{label} cannot be read as a database", help="close it where it is open for writing")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_CELLS = 2**26
_LARGEST = 2**53


def load_counts(file: OpenFile | str | Path, *, private: bool = False) -> Array:
    """The cube in a `.npy` file: int64, of one to three dimensions, every count whole and not negative.

    Anything else is a `DataError` that says what the file is, and no more of what it holds.
    """
    if not isinstance(file, OpenFile):
        file = open_file(file)
    label = f"`{file.path}`"
    try:
        with reader_of(file) as source:
            header = np.lib.format.read_array_header_2_0
            if np.lib.format.read_magic(source) == (1, 0):
                header = np.lib.format.read_array_header_1_0
            size = math.prod(header(source)[0])
            if size <= _CELLS:
                source.seek(0)
                array = np.lib.format.read_array(source, allow_pickle=False)
    except OSError as error:
        raise refuse("DataError", f"{label} cannot be read: {error.strerror}") from None
    except (ValueError, EOFError, MemoryError, SyntaxError, TypeError, OverflowError):
        help = "rows are counted by `histogram(table(…), x = age)`"
        raise refuse("DataError", f"{label} is not a NumPy array file (`.npy`) that can be read", help=help) from None
    if size > _CELLS:
        raise _wrong_size(label, size)
    file.check()
    return as_counts(array, label, private=private)


def as_counts(values: object, label: str, *, private: bool = False) -> Array:
    """The same for an array in memory. Of a private one only shape and kind may be refused: its cells are mended."""
    array = np.asarray(values)
    if not 1 <= array.ndim <= 3:
        raise refuse("DataError", f"{label} has {array.ndim} dimensions; counts have one, two or three")
    if array.size == 0 or array.size > _CELLS:
        raise _wrong_size(label, array.size)
    if array.dtype.kind not in "uif":
        raise _not_counts(label)
    if private:
        with np.errstate(all="ignore"):
            cells = np.nan_to_num(array.astype(float), nan=0.0, posinf=2.0**31, neginf=0.0)
        return truncated(np.clip(cells, 0, 2.0**31))
    if not np.all((array >= 0) & (array < _LARGEST)) or (
        array.dtype.kind == "f" and not np.all(array == np.floor(array))
    ):
        raise _not_counts(label)
    return fixed_width(array)


def _wrong_size(label: str, size: int) -> Refusal:
    return refuse("DataError", f"{label} has {size:,} cells; counts have between 1 and {_CELLS:,}")


def _not_counts(label: str) -> Refusal:
    return refuse(
        "DataError", f"{label} holds something else than whole numbers from 0 up", help="counts are 0, 1, 2, …"
    )


_MOST_VALUES = 2**22  # of a line, about: what has more is no record, as Python would need more than a gigabyte for it
_DEEPEST = 100  # brackets within brackets in a line; what is deeper is no record, whatever stack this runs on
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?$)')  # or to the end, so that no line is gone through again and again
_BRACKETS = re.compile(r"[\[\]{}]")


class JsonFile(TextFile):
    """A file of JSON lines under the table name `name`, with the columns `names`."""

    __slots__ = ()
    written_anew = True

    def fits(self, line: str) -> bool:
        return record(line) is not None

    def check(self) -> None:
        """Reads a public file, whose lines are objects in UTF-8, or is refused."""
        self.check_regular("is no JSON object", "a record is one line: {…}")

    def plain(self, block: bytes, *, exact: bool) -> tuple[bytes, bool]:
        records = [record(line) for line in decoded(block, "utf-8").split("\n") if line.rstrip("\r")]
        cells = [[cell((one or {}).get(name)) or "" for name in self.columns] or [""] for one in records]
        return quoted(cells), None not in records


def names_of(file: OpenFile, label: str) -> tuple[str, ...]:
    """The names that the records of a **public** file have, in the order in which they first stand there."""
    names: dict[str, None] = {}
    try:
        with content(file) as source:
            for block in blocks(source):
                for line in decoded(block, "utf-8").split("\n"):
                    names.update(dict.fromkeys(record(line) or {}))
    except FAULTS:
        raise damaged(label) from None
    if not names:
        raise refuse("DataError", f"{label} has no JSON objects, one a line", help="a record is one line: {…}")
    return tuple(names)


def record(line: str) -> dict[str, object] | None:
    """The object that a line spells, numbers as texts; None where it spells none."""
    text = line.removeprefix(BOM.decode()).strip()
    if not text.startswith("{") or sum(map(text.count, ",[{")) > _MOST_VALUES or _depth(text) > _DEEPEST:
        return None
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=lambda name: None)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def cell(value: object) -> str | None:
    """A cell as a text of the database."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str) or not value:
        return None
    return value.encode("utf-8", "replace").decode("utf-8")


def _depth(text: str) -> int:
    """How deep a reader of the text may come: the brackets outside of quotes."""
    if text.count("{") + text.count("[") <= _DEEPEST:
        return 0
    depth = deepest = 0
    for sign in _BRACKETS.findall(_QUOTED.sub("", text)):
        depth += 1 if sign in "{[" else -1
        deepest = max(deepest, depth)
    return deepest
