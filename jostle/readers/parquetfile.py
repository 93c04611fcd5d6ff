"""Parquet files: numbers, texts and dates are read by DuckDB from the open file, all else by Arrow.

DuckDB refuses a whole file for one time that does not fit, or breaks on it. Which of the two reads a table is decided
by the types of the columns that are needed, and by nothing that stands in a row; columns that are not needed are not
read. A byte that is no UTF-8 becomes `?` in either. Decimals of any length are none: Arrow fails on a long one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, BinaryIO

from jostle.diagnostics import refuse
from jostle.engine.duckdb.raw import DUCKDB, Raw
from jostle.engine.files import OpenFile
from jostle.engine.sql.cells import NATIVE, NONE
from jostle.lazy import np, pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_EMPTY = '"NULL"'  # the type of columns without values
NUMBER = "file_row_number"  # what DuckDB calls it
Fetch = Callable[[str, str], list[tuple[object, ...]]]


class ParquetFile(Raw):
    """A Parquet file; `name` becomes a view. `fetch` runs a query, `register` gives an Arrow table a name."""

    __slots__ = ("_columns", "_file", "_name", "_native", "_numbered", "_register", "_rows", "_tables")

    def __init__(
        self, file: OpenFile, name: str, label: str, fetch: Fetch, register: Callable[[str, object], object]
    ) -> None:
        options = "hive_partitioning = false, filename = false, utf8_validation = 'replace'"
        reader = f"read_parquet({DUCKDB.literal(file.name)}, {options})"
        described = fetch(f"DESCRIBE SELECT * FROM {reader}", label)
        kinds = [str(row[1]) for row in described]
        self._numbered = all(str(row[0]).lower() != NUMBER for row in described)  # else DuckDB's own number is hidden
        self._native = [kind in NATIVE and self._numbered for kind in kinds]
        if not all(self._native):
            arrow = _kinds(file, len(kinds))
            self._native = [native and (kind == other or other == NONE) for native, kind, other in
                            zip(self._native, kinds, arrow, strict=True)]  # fmt: skip
            kinds = [kind if native else other for native, kind, other in zip(self._native, kinds, arrow, strict=True)]
        super().__init__(tuple(str(row[0]) for row in described), tuple(kinds), label)
        types = [str(row[1]) for row in described]
        none = [kind == NONE and type_ != _EMPTY for kind, type_ in zip(kinds, types, strict=True)]
        self.unread = tuple(
            one for one, unread in zip(zip(self.columns, types, strict=True), none, strict=True) if unread
        )
        self._file, self._name, self._register = file, name, register
        self._columns: dict[int, pa.ChunkedArray] = {}
        self._tables: dict[frozenset[int], str] = {}
        items = ", ".join(f"c{i}" if native else f"NULL AS c{i}" for i, native in enumerate(self._native))
        aliases = ", ".join(f"c{i}" for i in range(len(kinds)))
        items += f", {NUMBER} AS n" if self._numbered else ""
        fetch(f"CREATE VIEW {name} AS SELECT {items} FROM {reader} AS t({aliases})", label)

    def table(self, needed: Collection[int]) -> str:
        if all(self._native[i] or self.kinds[i] == NONE for i in needed) and self._numbered:
            return self._name
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

        from jostle.readers.arrowcells import cells

        try:
            with _by_parquet_types(self._file) as source:
                opened = pq.ParquetFile(source)
                self._rows = opened.metadata.num_rows
                for i in needed:
                    if i not in self._columns and self.kinds[i] == NONE:
                        self._columns[i] = pa.chunked_array([pa.nulls(opened.metadata.num_rows)])
                    elif i not in self._columns:
                        self._columns[i] = cells(opened.reader.read_column(i))
        except (pa.ArrowException, OSError):
            raise refuse("DataError", f"{self.label} cannot be read") from None
        self._file.check()


def _kinds(file: OpenFile, width: int) -> list[str]:
    """The kinds that Arrow gives the columns; `NONE` for all where it cannot read such a file."""
    import pyarrow.parquet as pq

    from jostle.readers.arrowcells import kind_of

    try:
        with _by_parquet_types(file) as source:
            opened = pq.ParquetFile(source)
            kinds, leaves = [kind_of(field.type) for field in opened.schema_arrow], _leaves(opened)
    except (pa.ArrowException, OSError):
        return [NONE] * width
    if len(kinds) != width or leaves[-1] != len(opened.schema):
        return [NONE] * width
    firsts = [opened.schema.column(at) for at in leaves[:-1]]
    return [
        NONE if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type == "DECIMAL" else kind
        for kind, leaf in zip(kinds, firsts, strict=True)
    ]


def _by_parquet_types(file: OpenFile) -> BinaryIO:
    """The file without Arrow's own schema, under which Arrow checks the texts of a dictionary and fails on one."""
    with file.reader() as source:
        source.seek(max(0, file.status.st_size - 8))
        length = int.from_bytes(source.read(4), "little") + 8
        source.seek(max(0, file.status.st_size - length))
        return file.reader(source.read().replace(b"ARROW:schema", b"arrow:schema"))


def _leaves(opened: pq.ParquetFile) -> list[int]:
    """The number of each column's first leaf, since a column with parts of its own has several; then of all leaves."""
    return list(itertools.accumulate((_width(field.type) for field in opened.schema_arrow), initial=0))


def _width(type_: pa.DataType) -> int:
    if isinstance(type_, pa.BaseExtensionType):
        return _width(type_.storage_type)
    if pa.types.is_map(type_):
        return _width(type_.key_type) + _width(type_.item_type)
    return sum(_width(type_.field(i).type) for i in range(type_.num_fields)) or 1
