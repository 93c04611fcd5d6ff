"""Which reader a file has: by how it begins, and by how its name ends where the beginning would be a row.

What a program says of the reading (`Reading`) must fit the format: a separator is of CSV, a part of a database, a
sheet of a workbook. That is refused here, from public facts.

Several files as one table: the rows of each, one file after another.

The files have the same columns, in any order: that is asked of their headers and types, which are public. Where a
column is of one kind in one file and of another in the next, it becomes what holds both, a whole number, a double or a
text, cell by cell, without a failure and without two values becoming one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from jostle.diagnostics import refuse
from jostle.engine.duckdb.engine import DuckDb
from jostle.engine.duckdb.raw import DUCKDB, Irregular, Raw
from jostle.engine.files import ENDINGS, OpenFile, Reading
from jostle.engine.sql.cells import WHOLE, number, text
from jostle.lazy import pa
from jostle.readers.textfile import FAULTS, content, damaged, is_compressed

_BY_ENDING = {".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel",
               ".xlsm": "excel"}  # fmt: skip
_BY_BEGINNING = {b"PAR1": "parquet", b"ARROW1": "arrow", b"SQLite format 3\0": "sqlite", b"FEA1": "feather 1",
                 b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "excel 97"}  # fmt: skip
_OF_PARTS = ("sqlite", "duckdb")
_DUCKDB, _DUCKDB_AT = b"DUCK", 8


def format_of(file: OpenFile) -> str:
    """`csv`, `json`, `parquet`, `arrow`, `sqlite`, `duckdb` or `excel`, of what stands in the file."""
    name = file.path.lower()
    name = next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)
    ending = next((kind for ending, kind in _BY_ENDING.items() if name.endswith(ending)), "")
    if ending == "json":
        return ending
    try:
        with content(file, 16) as source:
            first = source.read(16)
    except FAULTS:
        raise damaged(f"`{file.path}`") from None
    if first[_DUCKDB_AT:].startswith(_DUCKDB):
        return "duckdb"
    return next((kind for magic, kind in _BY_BEGINNING.items() if first.startswith(magic)), ending or "csv")


def has_names(file: OpenFile) -> bool:
    """Whether the file itself says what its columns are called, outside of its rows."""
    return format_of(file) != "json"


def opened_file(
    engine: DuckDb, file: OpenFile, name: str, reading: Reading, names: tuple[str, ...], *, public: bool
) -> Raw:
    """The raw cells of one file, under the table name `name`."""
    kind, label = format_of(file), f"`{file.path}`"
    _check_reading(kind, label, reading)
    if kind not in ("csv", "json") and is_compressed(file):
        message = f"{label} is compressed, and what stands in it is no text"
        raise refuse("DataError", message, help="give it as it is: Parquet and Arrow compress by themselves")
    try:
        return _READERS[kind](engine, file, name, label, reading, names, public)
    except OSError as error:
        raise refuse("DataError", f"{label} cannot be read: {error.strerror or ''}") from None


def _check_reading(kind: str, label: str, reading: Reading) -> None:
    """The part is a part of what a file is known by: so it is said of every file that has parts, and of no other."""
    from jostle.readers.csvfile import ENCODINGS, OTHER_SEPARATORS, SEPARATORS

    if kind in _OF_PARTS and reading.part is None:
        raise refuse(
            "DataError", f"{label} has several tables", help=f'say which one: `table("{label[1:-1]}", "NAME")`'
        )
    if kind not in _OF_PARTS and reading.part is not None:
        help = f'say `sheet = "{reading.part}"`' if kind == "excel" else "leave the part out"
        raise refuse("DataError", f"{label} has no part `{reading.part}`: it is no database", help=help)
    if kind != "excel" and reading.sheet is not None:
        raise refuse("DataError", f"{label} is no workbook, and has no sheets", help="leave `sheet` out")
    if kind not in ("csv", "excel") and reading.header is not None:
        message = f"{label} has no line of names: it says itself what its columns are called"
        raise refuse("DataError", message, help="leave `header` out")
    for what, value, values in (
        ("separator", reading.separator, (*SEPARATORS, *OTHER_SEPARATORS)), ("encoding", reading.encoding, ENCODINGS),
        ("decimal", reading.decimal, (".", ",")),
    ):  # fmt: skip
        if value is None:
            continue
        if kind != "csv":
            raise refuse("DataError", f"{label} is no CSV file and has no {what}", help=f"leave `{what}` out")
        if value not in values:
            allowed = ", ".join(f'"{one}"'.replace("\t", "\\t") for one in values)
            raise refuse("DataError", f"`{value}` is no {what} of a CSV file", help=f"one of {allowed}")
    if reading.decimal is not None and reading.decimal == reading.separator:
        raise refuse("DataError", "one sign cannot separate cells and stand in their numbers",
                     help='something like `separator = ";", decimal = ","`')  # fmt: skip


def _csv(engine: DuckDb, file: OpenFile, name: str, label: str, reading: Reading, _: object, public: bool) -> Raw:
    from jostle.readers.csvfile import CsvFile

    opened = CsvFile(file, name, label, engine.connection, reading)
    if public:
        opened.check()
    return opened


def _json(
    engine: DuckDb, file: OpenFile, name: str, label: str, _: object, names: tuple[str, ...], public: bool
) -> Raw:
    from jostle.readers.databases import JsonFile, names_of

    opened = JsonFile(file, names or (names_of(file, label) if public else ()), name, label, engine.connection)
    if public:
        opened.check()
    return opened


def _parquet(engine: DuckDb, file: OpenFile, name: str, label: str, *_: object) -> Raw:
    from jostle.readers.parquetfile import ParquetFile

    opened = ParquetFile(file, name, label, engine.fetch, engine.connection.register)
    file.check()
    engine.watch(name, file)
    return opened


def _arrow(engine: DuckDb, file: OpenFile, name: str, label: str, *_: object) -> Raw:
    from jostle.readers.frames import Frame

    try:
        with file.reader() as source:
            table = pa.ipc.open_file(pa.PythonFile(source, mode="r")).read_all()
    except (pa.ArrowException, OSError):
        message = f"{label} is no Arrow file that can be read"
        raise refuse("DataError", message, help="write it again, as an Arrow file or as Parquet") from None
    file.check()
    return Frame(table, name, label).named_by(engine.name_rows)


def _feather_1(engine: DuckDb, file: OpenFile, name: str, label: str, *_: object) -> Raw:
    raise refuse("DataError", f"{label} is a Feather file of the first version", help="save it as version 2")


def _excel(engine: DuckDb, file: OpenFile, name: str, label: str, reading: Reading, *_: object) -> Raw:
    from jostle.readers.frames import Frame
    from jostle.readers.workbook import sheet_table

    table, unread = sheet_table(file, label, reading)
    frame = Frame(table, name, label).named_by(engine.name_rows)
    frame.unread = unread
    return frame


def _excel_97(engine: DuckDb, file: OpenFile, name: str, label: str, *_: object) -> Raw:
    message = f"{label} is a workbook of before 2007, or has a password"
    raise refuse("DataError", message, help="save it as an Excel workbook (.xlsx) without one")


def _sqlite(engine: DuckDb, file: OpenFile, name: str, label: str, reading: Reading, *_: object) -> Raw:
    from jostle.readers.databases import sqlite_table
    from jostle.readers.frames import Frame

    table = sqlite_table(file, label, reading.part or "")
    return Frame(table, name, label).named_by(engine.name_rows)


def _duckdb(engine: DuckDb, file: OpenFile, name: str, label: str, reading: Reading, *_: object) -> Raw:
    from jostle.readers.databases import duckdb_table
    from jostle.readers.frames import Frame

    table, unread = duckdb_table(file, label, reading.part or "")
    frame = Frame(table, name, label).named_by(engine.name_rows)
    frame.unread = unread
    return frame


_READERS: dict[str, Callable[..., Raw]] = {
    "csv": _csv, "json": _json, "parquet": _parquet, "arrow": _arrow, "feather 1": _feather_1,
    "excel": _excel, "excel 97": _excel_97, "sqlite": _sqlite, "duckdb": _duckdb,
}  # fmt: skip


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
        counts = [part.irregular for part in self._parts]
        self.irregular = Irregular(sum(i.ragged for i in counts), 0, sum(i.undecodable for i in counts), 0)


def _common(kinds: set[str]) -> str:
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= WHOLE:
        return "BIGINT"
    return "DOUBLE" if kinds <= (WHOLE - {"BIGINT"}) | {"DOUBLE"} else "VARCHAR"  # a FLOAT's text is not its double's


def _as(cell: str, kind: str, target: str) -> str:
    if kind == target:
        return cell
    if target == "BIGINT":
        return f"CAST({cell} AS BIGINT)"
    return number(DUCKDB, cell, kind) if target == "DOUBLE" else text(DUCKDB, cell, kind)
