"""Which reader a file has, several files as one table, and Parquet.

A format is known by how a file begins, and by how its name ends where the beginning would be a row. What a program says
of the reading (`Reading`) must fit the format: a separator is of CSV, a part of a database, a sheet of a workbook. That
is refused here, from public facts.

Several files have the same columns, in any order: their headers and types say so, which are public. Where a column is
of one kind in one file and of another in the next, it becomes what holds both: an integer, a double or a text, cell by
cell, without a failure and without two values becoming one.

Parquet: numbers, texts and dates are read by DuckDB from the open file, all else by Arrow. DuckDB refuses a whole file
for one time that does not fit, or breaks on it. The types of the columns that are needed decide which of the two
reads, and nothing that stands in a row. A byte that is no UTF-8 becomes `?` in either. Decimals of any length are none:
Arrow fails on a long one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from jostle.diagnostics import need_package, refuse
from jostle.engine.duckdb.engine import DUCKDB, DuckDb, Folder
from jostle.engine.files import OpenFile, stem
from jostle.engine.sql.cells import NATIVE, NONE, WHOLE, number, text
from jostle.lazy import Array, np, pa
from jostle.readers.filesets import Reading, reader_of, twice
from jostle.readers.textfile import FAULTS, Irregular, ReadRaw, TextFile, content, damaged, is_compressed

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from duckdb import DuckDBPyConnection

T = TypeVar("T")


_BY_ENDING = {".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel",
               ".xlsm": "excel"}  # fmt: skip
_BY_BEGINNING = {b"PAR1": "parquet", b"ARROW1": "arrow", b"SQLite format 3\0": "sqlite", b"FEA1": "feather 1",
                 b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "excel 97"}  # fmt: skip
_OF_PARTS = ("sqlite", "duckdb")
_DUCKDB, _DUCKDB_AT = b"DUCK", 8


def format_of(file: OpenFile) -> str:
    """`csv`, `json`, `parquet`, `arrow`, `sqlite`, `duckdb` or `excel`, of what stands in the file."""
    if (ending := _by_ending(file)) == "json":
        return ending
    try:
        with content(file, 16) as source:
            first = source.read(16)
    except FAULTS:
        raise damaged(f"`{file.path}`") from None
    if first[_DUCKDB_AT:].startswith(_DUCKDB):
        return "duckdb"
    return next((kind for magic, kind in _BY_BEGINNING.items() if first.startswith(magic)), ending or "csv")


def _by_ending(file: OpenFile) -> str:
    name = stem(file.path.lower())
    return next((kind for ending, kind in _BY_ENDING.items() if name.endswith(ending)), "")


def has_names(file: OpenFile) -> bool:
    """Whether the file itself says what its columns are called, outside of its rows."""
    return _by_ending(file) != "json"


class FileDuckDb(DuckDb):
    """A database that reads files again and again: what was read of one that somebody wrote to meanwhile is refused."""

    def __init__(self, memory: str, folder: Folder) -> None:
        super().__init__(memory, folder)
        self._views: dict[str, OpenFile] = {}  # by the views that read them

    def watch(self, name: str, file: OpenFile) -> None:
        """A file that is read whenever a query names the view `name`: what somebody wrote to meanwhile is refused."""
        self._views[name] = file

    def _run(self, query: str, label: str, read: Callable[[DuckDBPyConnection], T]) -> T:
        try:
            return super()._run(query, label, read)
        finally:
            self._check_files(query)

    def batches(self, query: str, size: int) -> Iterator[list[Array]]:
        try:
            yield from super().batches(query, size)
        finally:
            self._check_files(query)

    def record_batches(self, query: str, size: int, label: str = "the data") -> Iterator[Any]:
        try:
            yield from super().record_batches(query, size, label)
        finally:
            self._check_files(query)

    def _check_files(self, query: str) -> bool:
        """Refuses what was read of a file that somebody wrote to meanwhile; whether a query reads files."""
        files = [file for name, file in self._views.items() if name in query]
        for file in files:
            file.check()
        return bool(files)


def opened_file(
    engine: FileDuckDb, file: OpenFile, name: str, reading: Reading, names: tuple[str, ...], *, public: bool
) -> ReadRaw:
    """The raw cells of one file, under the table name `name`."""
    kind, label = format_of(file), f"`{file.path}`"
    check_reading(kind, label, reading)
    if kind not in ("csv", "json") and is_compressed(file):
        message = f"{label} is compressed, and what stands in it is no text"
        raise refuse("DataError", message, help="give it as it is: Parquet and Arrow compress by themselves")
    try:
        return _read(engine, kind, file, name, label, reading, names, public)
    except OSError as error:
        raise refuse("DataError", f"{label} cannot be read: {error.strerror or ''}") from None


def check_reading(kind: str, label: str, reading: Reading) -> None:
    """The part is a part of what a file is known by: so it is said of every file that has parts, and of no other."""
    if kind in ("parquet", "arrow", "duckdb"):
        need_package("pyarrow", "arrow", f"{label} is read by")
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


def _read(
    engine: FileDuckDb, kind: str, file: OpenFile, name: str, label: str, reading: Reading, names: tuple[str, ...],
    public: bool,
) -> ReadRaw:  # fmt: skip
    match kind:
        case "csv":
            from jostle.readers.csvfile import CsvFile

            text: TextFile = CsvFile(file, name, label, engine.connection, reading)
        case "json":
            from jostle.readers.databases import JsonFile, names_of

            names = names or (names_of(file, label) if public else ())
            text = JsonFile(file, names, name, label, engine.connection)
        case "parquet":
            parquet = ParquetFile(file, name, label, engine.fetch, engine.connection.register)
            file.check()
            engine.watch(name, file)
            return parquet
        case "feather 1":
            raise refuse("DataError", f"{label} is a Feather file of the first version", help="save it as version 2")
        case "excel 97":
            message = f"{label} is a workbook of before 2007, or has a password"
            raise refuse("DataError", message, help="save it as an Excel workbook (.xlsx) without one")
        case _:
            return _in_memory(engine, kind, file, name, label, reading)
    if public:
        text.check()
    return text


def _in_memory(engine: FileDuckDb, kind: str, file: OpenFile, name: str, label: str, reading: Reading) -> ReadRaw:
    """A file that is read whole, as a table and the names and types of the columns that are none in it."""
    from jostle.readers.databases import duckdb_table, sqlite_table
    from jostle.readers.frames import Frame
    from jostle.readers.workbook import sheet_table

    read = {"arrow": _arrow_table, "excel": sheet_table, "sqlite": sqlite_table, "duckdb": duckdb_table}[kind]
    table, unread = read(file, label, reading)
    frame = Frame(table, name, label).named_by(engine.name_rows)
    frame.unread, frame.typed = unread or frame.unread, kind != "excel"
    return frame


def _arrow_table(file: OpenFile, label: str, _: Reading) -> tuple[pa.Table, tuple[tuple[str, str], ...]]:
    try:
        with reader_of(file) as source:
            table = pa.ipc.open_file(pa.PythonFile(source, mode="r")).read_all()
    except (pa.ArrowException, OSError):
        message = f"{label} is no Arrow file that can be read"
        raise refuse("DataError", message, help="write it again, as an Arrow file or as Parquet") from None
    file.check()
    return table, ()


class Union(ReadRaw):
    """The rows of several data sets. A `DataError` where their columns differ."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[ReadRaw], label: str) -> None:
        first = parts[0]
        for part in parts[1:]:
            if set(part.columns) != set(first.columns):
                names = ", ".join(f"`{name}`" for name in sorted({*part.columns} ^ {*first.columns})[:5])
                message = f"{part.label} does not have the columns of {first.label}: one of them has {names}"
                help = "files of one table have the same header; of two tables write `union(pick(t, a), pick(u, a))`"
                raise refuse("DataError", message, help=help)
        kinds = tuple(_common({part.cell(name)[1] for part in parts}) for name in first.columns)
        super().__init__(first.columns, kinds, label)
        self.unread = tuple({name: one for part in parts for name, one in part.unread}.items())
        self.typed, self._parts = all(part.typed for part in parts), tuple(parts)

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


_EMPTY = '"NULL"'  # the type of columns without values
_OF_DUCKDB = re.compile("_[0-9]+$")  # the end of a name of DuckDB's own, of columns whose names differ in case at most
NUMBER = "file_row_number"  # what DuckDB calls it
MOST_BOUND = 30  # columns that nobody asks for, from which on a query names those that it needs
Fetch = Callable[[str, str], list[tuple[object, ...]]]


class ParquetFile(ReadRaw):
    """A Parquet file; `name` becomes a view. `fetch` runs a query, `register` gives an Arrow table a name."""

    __slots__ = ("_columns", "_file", "_name", "_native", "_numbered", "_register", "_rows", "_scanned", "_tables")

    def __init__(
        self, file: OpenFile, name: str, label: str, fetch: Fetch, register: Callable[[str, object], object]
    ) -> None:
        options = "hive_partitioning = false, filename = false, utf8_validation = 'replace'"
        reader = f"read_parquet({DUCKDB.literal(file.name)}, {options})"
        described = fetch(f"DESCRIBE SELECT * FROM {reader}", label)
        inner, types = tuple(str(row[0]) for row in described), [str(row[1]) for row in described]
        self._numbered = all(name.lower() != NUMBER for name in inner)  # else DuckDB's own number is hidden
        native, names, kinds = [kind in NATIVE and self._numbered for kind in types], inner, types
        if not all(native) or any(map(_OF_DUCKDB.search, inner)):
            names, arrow = _columns(file, inner)
            native = [n and other in (kind, NONE) for n, kind, other in zip(native, types, arrow, strict=True)]
            kinds = [kind if n else other for n, kind, other in zip(native, types, arrow, strict=True)]
        super().__init__(names, tuple(kinds), label)
        self.typed = True
        self._native = [n and '"' + name.replace('"', '""') + '"' for n, name in zip(native, inner, strict=True)]
        none = [kind == NONE and type_ != _EMPTY for kind, type_ in zip(kinds, types, strict=True)]
        unread = (one for one, unread in zip(zip(names, types, strict=True), none, strict=True) if unread)
        self.unread = (*twice(names), *unread)
        self._file, self._name, self._register = file, name, register
        self._columns: dict[int, pa.ChunkedArray] = {}
        self._tables: dict[frozenset[int], str] = {}
        self._scanned = reader
        fetch(f"CREATE VIEW {name} AS {self._select(range(len(kinds)))}", label)

    def _select(self, needed: Collection[int]) -> str:
        items = [f"{self._native[i] or 'NULL'} AS c{i}" for i in needed]
        return f"SELECT {', '.join([*items, *[f'{NUMBER} AS n'] * self._numbered])} FROM {self._scanned}"

    def table(self, needed: Collection[int]) -> str:
        if all(self._native[i] or self.kinds[i] == NONE for i in needed) and self._numbered:
            wide = len(self.columns) > MOST_BOUND + len(needed)  # the database binds all columns of a view
            return f"({self._select(needed)}) AS {self._name}" if wide else self._name
        place = frozenset(needed)
        if place not in self._tables:
            self._read(place)
            columns = {f"c{i}": self._columns[i] for i in sorted(place)}
            read = pa.table(columns | {"n": np.arange(self._rows)})
            self._register(f"{self._name}_{len(self._tables)}", read)
            self._tables[place] = f"{self._name}_{len(self._tables)}"
        return self._tables[place]

    def stale(self) -> bool:
        return self._file.changed()

    def _read(self, needed: Collection[int]) -> None:
        """Columns that were not read yet, into memory."""
        import pyarrow.parquet as pq

        from jostle.readers.arrays import cells

        try:
            with _by_parquet_types(self._file) as source:
                opened = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
                self._rows = opened.metadata.num_rows
                for i in needed:
                    if i not in self._columns and self.kinds[i] == NONE:
                        self._columns[i] = pa.chunked_array([pa.nulls(opened.metadata.num_rows)])
                    elif i not in self._columns:
                        self._columns[i] = cells(opened.reader.read_column(i))
        except (pa.ArrowException, OSError):
            raise refuse("DataError", f"{self.label} cannot be read") from None
        self._file.check()


def _columns(file: OpenFile, names: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """The names that the file gives its columns, for those of DuckDB, which never differ in case alone, and the kinds
    that Arrow gives them; `NONE` for all, and the same names, where it cannot read such a file."""
    import pyarrow.parquet as pq

    from jostle.readers.arrays import kind_of

    unknown = names, [NONE] * len(names)
    try:
        with _by_parquet_types(file) as source:
            opened = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
            kinds, leaves = [kind_of(field.type) for field in opened.schema_arrow], _leaves(opened)
    except (pa.ArrowException, OSError):
        return unknown
    if len(kinds) != len(names) or leaves[-1] != len(opened.schema):
        return unknown
    firsts = [opened.schema.column(at) for at in leaves[:-1]]
    return tuple(opened.schema_arrow.names), [
        NONE if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type == "DECIMAL" else kind
        for kind, leaf in zip(kinds, firsts, strict=True)
    ]


def _by_parquet_types(file: OpenFile) -> BinaryIO:
    """The file without Arrow's own schema, under which Arrow checks the texts of a dictionary and fails on one."""
    with reader_of(file) as source:
        source.seek(max(0, file.status.st_size - 8))
        length = int.from_bytes(source.read(4), "little") + 8
        source.seek(max(0, file.status.st_size - length))
        return reader_of(file, source.read().replace(b"ARROW:schema", b"arrow:schema"))


def _leaves(opened: pq.ParquetFile) -> list[int]:
    """The number of each column's first leaf, since a column with parts of its own has several; then of all leaves."""
    return list(itertools.accumulate((_width(field.type) for field in opened.schema_arrow), initial=0))


def _width(type_: pa.DataType) -> int:
    if isinstance(type_, pa.BaseExtensionType):
        return _width(type_.storage_type)
    if pa.types.is_map(type_):
        return _width(type_.key_type) + _width(type_.item_type)
    return sum(_width(type_.field(i).type) for i in range(type_.num_fields)) or 1
