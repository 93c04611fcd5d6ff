"""The engine: plans run on one in-memory DuckDB.

It answers with exact integers and public structure, and decides nothing about privacy: whoever calls it has been
charged, or holds public data. Files are read when they are first asked about, once; a scan that has to be parsed and
a bounded one are kept as tables. What goes wrong inside DuckDB is a `DataError` with a fixed text, since DuckDB's own
messages may quote cells.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.engine import csvfile, groups, parquetfile, sql
from jostle.engine.clean import clean, number, text
from jostle.engine.kinds import domain_kind, kind_of
from jostle.engine.plan import Bound, Count, Domain, Exact, Key, Open, Plan, RowExpr, Scan, Term
from jostle.engine.rowsql import Physical

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "preserve_insertion_order": "true",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Opened:
    """A data set that the engine knows. `identity` is equal for two names of one file or object."""

    key: str
    columns: tuple[str, ...]
    identity: object


@dataclass(slots=True)
class Raw:
    """A table or view of raw cells: `types` are DuckDB's types of `c0`, `c1`, …; `path`, a CSV file not yet read."""

    table: str
    columns: tuple[str, ...]
    types: list[str]
    shown: str
    path: Path | None = None
    parsed: bool = False  # whether all cells are text by origin
    parquet: str | None = None  # a file whose texts may yet turn out to be no UTF-8
    size: int | None = None
    irregular: csvfile.Irregular = field(default_factory=csvfile.Irregular)

    def cell(self, name: str) -> tuple[str, str]:
        """The column `cN` that a name stands for, and its type."""
        at = self.columns.index(name)
        return f"c{at}", self.types[at]


class Engine:
    """One in-memory database. Not for several threads at once."""

    def __init__(self) -> None:
        import duckdb

        self._spill = tempfile.mkdtemp(prefix="jostle-")
        settings = _SETTINGS | {"temp_directory": self._spill}
        self._connection = duckdb.connect(":memory:", config=settings)
        self._error = duckdb.Error
        self._raw: dict[str, Raw] = {}
        self._opened: dict[object, Opened] = {}
        self._alive: list[object] = []
        self._kept: dict[Scan | Bound, sql.Relation] = {}
        self._numbers = itertools.count()
        with contextlib.suppress(duckdb.Error):  # a notebook without widgets cannot show one, and refuses to say no
            self._connection.execute("SET enable_progress_bar = false")
        with contextlib.suppress(duckdb.Error):  # a build without time zones prints UTC anyway
            self._connection.execute("SET TimeZone = 'UTC'")
        self._close = weakref.finalize(self, _close, self._connection, self._spill, os.getpid())

    def close(self) -> None:
        """Frees the database; nothing can be asked of the engine afterwards."""
        self._close()

    # Opening -----------------------------------------------------------------------------------------

    def open(self, origin: Any, *, public: bool) -> Opened:
        """Makes a data set known: the path of a CSV or Parquet file, or a table in memory.

        A public CSV file is read and checked at once; a private one is read when something is first asked of it, and
        no row of it is ever an error. Refuses with `DataError`, without a place.
        """
        from jostle.engine.frames import is_frame

        if isinstance(origin, str | os.PathLike):
            return self._open_file(Path(origin), str(origin), public)
        if is_frame(origin):
            return self._open_frame(origin)
        raise refuse("DataError", f"a {type(origin).__name__} is no table", help="give a path, a data frame or arrays")

    def _open_file(self, path: Path, shown: str, public: bool) -> Opened:
        try:
            status = path.stat()
            real = os.path.realpath(path)
        except (FileNotFoundError, NotADirectoryError):
            help = "paths in a program start at its folder"
            raise refuse("DataError", f"there is no file `{shown}`", help=help) from None
        except (OSError, ValueError) as error:
            raise refuse("DataError", f"`{shown}` cannot be read: {_reason(error)}") from None
        if path.is_dir():
            raise refuse("DataError", f"`{shown}` is a folder, not a file")
        if not path.is_file():
            raise refuse("DataError", f"`{shown}` is a device or a pipe, not a file")
        quoted = f"`{shown}`"
        names: list[object] = [("path", real), ("inode", status.st_dev, status.st_ino)]
        for name in names:
            if name in self._opened:
                return self._opened[name]
        try:
            raw = self._open_parquet(real, quoted) if _is_parquet(path) else self._open_csv(path, quoted, public)
        except OSError as error:
            raise refuse("DataError", f"`{shown}` cannot be read: {_reason(error)}") from None
        opened = self._add(raw, ("file", status.st_dev, status.st_ino))  # as of a file of counts
        self._opened.update(dict.fromkeys(names, opened))
        return opened

    def _open_csv(self, path: Path, shown: str, public: bool) -> Raw:
        names = csvfile.header(path, shown)
        raw = Raw(self._next(), names, ["VARCHAR"] * len(names), shown, Path(os.path.realpath(path)), True)
        if public:
            self._load(raw, look=True)
            if raw.irregular.ragged or raw.irregular.undecodable:
                self._connection.execute(f"DROP TABLE {raw.table}")
            _check_regular(raw.irregular, shown, len(names))
        return raw

    def _open_parquet(self, real: str, shown: str) -> Raw:
        reader = parquetfile.reader(real)
        described = self.fetch(f"DESCRIBE SELECT * FROM {reader}", shown)
        names, types = tuple(str(row[0]) for row in described), [str(row[1]) for row in described]
        table = self._next()
        aliases = ", ".join(f"c{i}" for i in range(len(names)))
        self.fetch(f"CREATE VIEW {table} AS SELECT * FROM {reader} AS t({aliases})", shown)
        return Raw(table, names, types, shown, parquet=real if "VARCHAR" in types else None)

    def _open_frame(self, origin: Any) -> Opened:
        from jostle.engine.frames import as_arrow

        name = ("memory", id(origin))
        if name not in self._opened:
            names, arrow = as_arrow(origin)
            table = self._next()
            self._connection.register(table, arrow)
            types = [str(row[1]) for row in self.fetch(f"DESCRIBE {table}", "the table")]
            self._alive.append(origin)
            self._opened[name] = self._add(Raw(table, names, types, "the table"), name)
        return self._opened[name]

    def _next(self) -> str:
        return f"raw{next(self._numbers)}"

    def _add(self, raw: Raw, identity: object) -> Opened:
        key = f"d{len(self._raw)}"
        self._raw[key] = raw
        return Opened(key, raw.columns, identity)

    def raw(self, key: str, *, look: bool = False) -> Raw:
        """The raw cells, read if they were not yet; with `look`, what is irregular in a CSV file is counted."""
        self._load(self._raw[key], look=look)
        return self._raw[key]

    def _load(self, raw: Raw, *, look: bool) -> None:
        if raw.path is None:
            return
        try:
            self._connection.execute(f"DROP TABLE IF EXISTS {raw.table}")
            raw.irregular = csvfile.load(self._connection, raw.path, raw.table, len(raw.columns), look=look)
        except (OSError, self._error):
            raise refuse("DataError", f"{raw.shown} cannot be read") from None
        raw.path = None

    def guess(self, key: str) -> tuple[tuple[str, Domain], ...]:
        """Domains for a public source without a description: `real` where every cell that is not empty is a finite
        number, `text` elsewhere. Reads the data."""
        raw = self.raw(key)
        cells = [(f"c{i}", kind) for i, kind in enumerate(raw.types)]
        tests = [f"count({text(c, kind)}) = count({number(c, kind)})" for c, kind in cells]
        (row,) = self.fetch(f"SELECT {', '.join(tests)} FROM {raw.table}", raw.shown)
        return tuple((name, Open("real" if real else "text")) for name, real in zip(raw.columns, row, strict=True))

    def stamp(self, key: str) -> str:
        """A text that changes when the cells of a public data set do, whatever the order of rows."""
        raw = self.raw(key)
        cells = ", ".join(f"c{i}" for i in range(len(raw.types)))
        (row,) = self.fetch(f"SELECT count(*), sum(hash({cells})::HUGEINT) FROM {raw.table}", raw.shown)
        return f"{raw.columns}:{row[0]}:{row[1]}"

    # Asking ------------------------------------------------------------------------------------------

    def group(self, plan: Plan, keys: tuple[Key, ...], terms: tuple[Term, ...]) -> list[NDArray[Any]]:
        """Exact integers: for each term an array over the keys' values, shape (len(key.values), …), () without keys.

        int64 where every result provably fits, else object (Python integers). Rows whose key is none or not listed
        are in no group. More than 2^26 groups are a `DataError`, before anything is read or allocated.
        """
        import numpy as np

        shape = groups.shape(keys)
        if not terms:
            return []
        query = sql.group(sql.relation(plan, self._base), keys, terms)
        found = self._columns(query.sql)
        at, inside = groups.positions(keys, found[: len(keys)], shape)
        results = []
        for column, wide in zip(found[len(keys) :], query.as_text, strict=True):
            cells = np.zeros(shape, dtype=object if wide else np.int64)
            values = np.asarray(column)[inside] if keys else np.asarray(column)
            cells.reshape(-1)[at] = [int(value) for value in values] if wide else values
            results.append(cells)
        return results

    def codes(self, plan: Plan, keys: tuple[Key, ...]) -> list[NDArray[Any]]:
        """For each key an array over the rows of a relation without joins: where the row stands among the key's
        values, as `group` reads them, and −1 where it is none or not listed. int8, int16 or int32.

        Rows come in the same order in every call: that of the file, which DuckDB keeps (`preserve_insertion_order`).
        """
        import numpy as np

        source = sql.relation(plan, self._base)
        return [np.asarray(column) for column in self._columns(sql.codes(source, keys))] if keys else []

    def rows(self, plan: Plan) -> int:
        """The exact number of rows."""
        return int(self.group(plan, (), (Count(),))[0])

    def vectors(self, plan: Plan, exprs: tuple[RowExpr, ...], size: int) -> Iterator[NDArray[Any]]:
        """Rows of a relation as doubles, shape (at most `size`, len(exprs)), in batches as they come.

        Rows where an expression is none are left out. Nothing else may be asked of the engine in between.
        """
        import numpy as np

        query = sql.vectors(sql.relation(plan, self._base), exprs)

        def batches() -> Iterator[NDArray[Any]]:
            for batch in self._streamed(query, size):
                yield np.stack([np.asarray(column, dtype=np.float64) for column in batch.columns], axis=1)

        return batches()

    def tally(self, plan: Plan, expr: RowExpr, *, weighted: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
        """The distinct values of an expression that are not none, in order, and how many rows have each (int64).

        With `weighted` the rows' weights instead of their number, in units of 2^-WEIGHT_BITS.
        """
        import numpy as np

        relation = sql.relation(plan, self._base)
        values, counts = self._columns(sql.tally(relation, expr, weighted=weighted))
        kind = kind_of(expr, relation.schema)
        if kind == "number":
            return np.asarray(values, dtype=np.float64) + 0.0, np.asarray(counts, dtype=np.int64)
        return np.asarray(values, dtype=bool if kind == "boolean" else object), np.asarray(counts, dtype=np.int64)

    def exact(
        self, plan: Plan, keys: tuple[Key | RowExpr, ...], terms: tuple[Exact, ...]
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Exact aggregates of a **public** relation, in doubles: the columns of the keys and of the terms.

        A `Key` gives all its values in order, also those without rows; a bare expression gives the values that
        occur, sorted, numbers taken down to integers. Without keys there is one row. Empty groups count and sum to 0
        and are None otherwise; `var` and `stddev` are the sample's; of several modes the smallest.
        """
        groups.shape(tuple(key for key in keys if isinstance(key, Key)))
        relation = sql.relation(plan, self._base)
        found: dict[tuple[Any, ...], list[Any]] = {}
        for row in self.fetch(sql.exact(relation, keys, terms)):
            found[tuple(map(groups.plain, row[: len(keys)]))] = [groups.plain(value) for value in row[len(keys) :]]
        for i, term in enumerate(terms):
            if term.function == "mode" and term.expr is not None:
                for row in self.fetch(sql.mode(relation, keys, term.expr)):
                    found[tuple(map(groups.plain, row[:-1]))][i] = groups.plain(row[-1])
        empty = [0.0 if term.function in ("count", "count_distinct", "sum") else None for term in terms]
        order = groups.order(keys, found)
        rows = [found.get(place, empty) for place in order]
        return [[p[i] for p in order] for i in range(len(keys))], [[r[i] for r in rows] for i in range(len(terms))]

    # Relations ---------------------------------------------------------------------------------------

    def _base(self, plan: Scan | Bound) -> sql.Relation:
        if plan in self._kept:
            return self._kept[plan]
        scan = plan.scan if isinstance(plan, Bound) else plan
        raw = self._raw[scan.data]
        missing = [name for name, _ in scan.columns if name not in raw.columns]
        if missing:
            message = f"{raw.shown} has no column `{missing[0]}`"
            raise refuse("DataError", message, help="the description names columns as the header does")
        self._load(raw, look=False)
        if raw.size is None:
            raw.size = int(self.fetch(f"SELECT count(*) FROM {raw.table}", raw.shown)[0][0])
        cells = [raw.cell(name) for name, _ in scan.columns]
        source = f"SELECT * FROM {raw.table}"
        if isinstance(plan, Bound):
            source = _bounded(plan, raw, cells)
        cleaned = [clean(*cell, domain) for cell, (_, domain) in zip(cells, scan.columns, strict=True)]
        weighted = isinstance(plan, Bound) and plan.weighted
        named = [f"{item} AS c{i}" for i, (item, _) in enumerate(cleaned)] + (["w"] if weighted else [])
        items = ", ".join(named) or "1 AS unused"
        query = f"SELECT {items} FROM ({source})"
        if isinstance(plan, Bound) or raw.parsed or any(map(_parsed, cells, (domain for _, domain in scan.columns))):
            table = f"kept{next(self._numbers)}"
            self.fetch(f"CREATE TABLE {table} AS {query}", raw.shown)
            query = f"SELECT * FROM {table}"
        columns = {name: Physical(f"c{i}", cleaned[i][1]) for i, (name, _) in enumerate(scan.columns)}
        self._kept[plan] = sql.Relation(query, columns, dict(scan.columns), raw.size, weighted)
        return self._kept[plan]

    def fetch(self, query: str, shown: str = "the data") -> list[tuple[Any, ...]]:
        """The rows of a query of our own making."""
        return self._run(query, shown, lambda result: result.fetchall())

    def _columns(self, query: str) -> list[Any]:
        return self._run(query, "the data", lambda result: list(result.fetchnumpy().values()))

    def _streamed(self, query: str, size: int) -> Iterator[Any]:
        """The record batches of a query of our own making; a Parquet file that needs a repair gets it first."""
        while True:
            try:
                relation = self._connection.sql(query)
                # the name that DuckDB 1 has for it
                read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
                reader = read(size)
                first = next(reader, None)
                break
            except self._error:
                if not self._repair():
                    raise refuse("DataError", "the data cannot be read, or there is not enough memory") from None
        try:
            while first is not None:
                yield first
                first = next(reader, None)
        except self._error:
            raise refuse("DataError", "the data cannot be read, or there is not enough memory") from None

    def _run(self, query: str, shown: str, read: Callable[[Any], list[Any]]) -> list[Any]:
        while True:
            try:
                return read(self._connection.execute(query))
            except self._error:
                if not self._repair():
                    message = f"{shown} cannot be read, or there is not enough memory for it"
                    raise refuse("DataError", message) from None

    def _repair(self) -> bool:
        """Whether a Parquet file had text that is no UTF-8, and now has none; each file is looked at once."""
        for raw in self._raw.values():
            path, raw.parquet = raw.parquet, None
            found = None if path is None else parquetfile.repaired(path)
            if found is not None:
                name = self._next()
                self._connection.register(name, found)
                cells = ", ".join(f"TRY_CAST(c{i} AS {kind}) AS c{i}" for i, kind in enumerate(raw.types))
                self._connection.execute(f"CREATE OR REPLACE VIEW {raw.table} AS SELECT {cells} FROM {name}")
                return True
        return False


def _close(connection: Any, spill: str, owner: int) -> None:
    if os.getpid() != owner:  # a forked child: the database and its folder are the parent's
        return
    connection.close()
    shutil.rmtree(spill, ignore_errors=True)


def _reason(error: Exception) -> str:
    return (error.strerror or "") if isinstance(error, OSError) else "its name is not a path"


def _others(lines: int) -> str:
    return "does one other" if lines == 1 else f"do {lines:,} others"


def _check_regular(found: csvfile.Irregular, shown: str, width: int) -> None:
    if found.ragged:
        message = f"line {found.first_ragged} of {shown} does not have the {width} cells of the header"
        more = f", nor {_others(found.ragged - 1)}" if found.ragged > 1 else ""
        raise refuse("DataError", message + more, help="a record is one line; quote cells that hold a comma")
    if found.undecodable:
        raise refuse("DataError", f"line {found.first_undecodable} of {shown} is not UTF-8", help="save it as UTF-8")


def _is_parquet(path: Path) -> bool:
    if path.suffix.lower() in (".parquet", ".pq"):
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _parsed(cell: tuple[str, str], domain: Domain) -> bool:
    """Whether cleaning reads numbers from text, which is worth doing once."""
    return cell[1] == "VARCHAR" and domain_kind(domain) == "number"


def _bounded(plan: Bound, raw: Raw, cells: list[tuple[str, str]]) -> str:
    """Raw rows, at most `most` for each raw value of `by`; columns in the hash by the order of their names."""
    place = {name: i for i, (name, _) in enumerate(plan.scan.columns)}
    for name in plan.by:
        if name not in raw.columns:
            raise refuse("DataError", f"{raw.shown} has no column `{name}` to protect")
    by = [text(*raw.cell(name)) for name in plan.by]
    texts = [text(*cells[place[name]]) for name in sorted(place)]
    return sql.few_rows("*", f"SELECT * FROM {raw.table}", by, texts, plan.most, weighted=plan.weighted)
