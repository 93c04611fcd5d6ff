"""Which reader a file has: by how it begins, and by how its name ends where the beginning would be a row.

What a program says of the reading (`Reading`) must fit the format: a separator is of CSV, a part of a database, a
sheet of a workbook. That is refused here, from public facts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.engine.duckdb.raw import Raw
from jostle.engine.files import OpenFile
from jostle.engine.filesets import ENDINGS, Reading
from jostle.readers.compression import FAULTS, content, damaged, is_compressed

if TYPE_CHECKING:
    from jostle.engine.duckdb.engine import DuckDb

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
    for what, value, values in (
        ("separator", reading.separator, (*SEPARATORS, *OTHER_SEPARATORS)), ("encoding", reading.encoding, ENCODINGS),
        ("decimal", reading.decimal, (".", ",")),
    ):  # fmt: skip
        if value is None:
            continue
        if kind != "csv":
            raise refuse("DataError", f"{label} is no CSV file and has no {what}", help=f"leave `{what}` out")
        if value not in values:
            listed = ", ".join(f'"{one}"'.replace("\t", "\\t") for one in values)
            raise refuse("DataError", f"`{value}` is no {what} of a CSV file", help=f"one of {listed}")
    if reading.decimal is not None and reading.decimal == reading.separator:
        raise refuse("DataError", "one sign cannot separate cells and stand in their numbers",
                     help='something like `separator = ";", decimal = ","`')  # fmt: skip


def _csv(engine: DuckDb, file: OpenFile, name: str, label: str, reading: Reading, _: Any, public: bool) -> Raw:
    from jostle.readers.csvfile import CsvFile

    opened = CsvFile(file, name, label, engine.connection, reading)
    if public:
        opened.check()
    return opened


def _json(engine: DuckDb, file: OpenFile, name: str, label: str, _: Any, names: tuple[str, ...], public: bool) -> Raw:
    from jostle.readers.jsonfile import JsonFile, names_of

    opened = JsonFile(file, names or (names_of(file, label) if public else ()), name, label, engine.connection)
    if public:
        opened.check()
    return opened


def _parquet(engine: DuckDb, file: OpenFile, name: str, label: str, *_: Any) -> Raw:
    from jostle.readers.parquetfile import ParquetFile

    opened = ParquetFile(file, name, label, engine.fetch, engine.connection.register)
    file.check()
    engine.watch(name, file)
    return opened


def _arrow(engine: DuckDb, file: OpenFile, name: str, label: str, *_: Any) -> Raw:
    import pyarrow as pa

    from jostle.readers.frames import Frame

    try:
        with file.reader() as source:
            table = pa.ipc.open_file(pa.PythonFile(source, mode="r")).read_all()
    except (pa.ArrowException, OSError):
        message = f"{label} is no Arrow file that can be read"
        raise refuse("DataError", message, help="write it again, as an Arrow file or as Parquet") from None
    file.check()
    return Frame(table, name, label).named_by(engine.name_rows)


def _feather_1(engine: DuckDb, file: OpenFile, name: str, label: str, *_: Any) -> Raw:
    raise refuse("DataError", f"{label} is a Feather file of the first version", help="save it as version 2")


def _excel(engine: DuckDb, file: OpenFile, name: str, label: str, reading: Reading, *_: Any) -> Raw:
    from jostle.readers.frames import Frame
    from jostle.readers.workbook import sheet_table

    table = sheet_table(file, label, reading.sheet)
    return Frame(table, name, label).named_by(engine.name_rows)


def _excel_97(engine: DuckDb, file: OpenFile, name: str, label: str, *_: Any) -> Raw:
    message = f"{label} is a workbook of before 2007, or has a password"
    raise refuse("DataError", message, help="save it as an Excel workbook (.xlsx) without one")


def _sqlite(engine: DuckDb, file: OpenFile, name: str, label: str, reading: Reading, *_: Any) -> Raw:
    from jostle.readers.databases import sqlite_table
    from jostle.readers.frames import Frame

    table = sqlite_table(file, label, reading.part or "")
    return Frame(table, name, label).named_by(engine.name_rows)


def _duckdb(engine: DuckDb, file: OpenFile, name: str, label: str, reading: Reading, *_: Any) -> Raw:
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
