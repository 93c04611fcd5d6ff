"""The engine: plans run on one in-memory DuckDB.

It answers with exact integers and public structure, and decides nothing about privacy: whoever calls it has been
charged, or holds public data. Files are open from the moment they are named, and read when they are first asked about;
a scan that has to be parsed and a bounded one are kept as tables. No cell makes a query fail (`raw`, `clean`,
`rowsql`); what goes wrong inside DuckDB all the same, for want of memory or in a damaged file, is a `DataError` with a
fixed text, since DuckDB's own messages may quote cells.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.engine import groups, sql
from jostle.engine.clean import NATIVE, clean, number, text
from jostle.engine.csvfile import CsvFile
from jostle.engine.files import OpenFile, open_file
from jostle.engine.parquetfile import ParquetFile
from jostle.engine.raw import Raw
from jostle.engine.rowsql import Physical
from jostle.engine.spill import SpillFolder
from jostle.plan.domains import Domain, Open
from jostle.plan.kinds import domain_kind, kind_of
from jostle.plan.plan import Bound, Count, Exact, Key, Plan, RowExpr, Scan, Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "preserve_insertion_order": "true",
}  # fmt: skip
_MEMORY = "50%"  # of the machine's (or the container's); what does not fit is spilled


@dataclass(frozen=True, slots=True)
class Opened:
    """A data set that the engine knows. `identity` is equal for two names of one file or object."""

    key: str
    columns: tuple[str, ...]
    identity: object


class Engine:
    """One in-memory database. Not for several threads at once."""

    def __init__(self) -> None:
        import duckdb

        folder = SpillFolder()
        self._spill = folder.path
        settings = _SETTINGS | {"temp_directory": self._spill, "memory_limit": _MEMORY}
        self._connection = duckdb.connect(":memory:", config=settings)
        self._error = duckdb.Error
        self._raw: dict[str, Raw] = {}
        self._opened: dict[object, tuple[Opened, Any]] = {}  # by identity, with the file or object itself
        self._private: dict[str, OpenFile] = {}  # by where they were
        self._views: dict[str, OpenFile] = {}  # Parquet files, which queries read again
        self._kept: dict[Scan | Bound, sql.Relation] = {}
        self._numbers = itertools.count()
        with contextlib.suppress(duckdb.Error):  # a notebook without widgets cannot show one, and refuses to say no
            self._connection.execute("SET enable_progress_bar = false")
        with contextlib.suppress(duckdb.Error):  # a build without time zones prints UTC anyway
            self._connection.execute("SET TimeZone = 'UTC'")
        self._close = weakref.finalize(self, _close, self._connection, folder, os.getpid())

    def close(self) -> None:
        """Frees the database; nothing can be asked of the engine afterwards."""
        self._close()

    # Opening -----------------------------------------------------------------------------------------

    def file(self, path: str | os.PathLike[str]) -> OpenFile:
        """The file at a path, opened to be asked about; where a private one was opened before, that one."""
        file = open_file(path)
        return self._private.get(file.real, file)

    def open(self, origin: Any, *, public: bool) -> Opened:
        """Makes a data set known: a CSV or Parquet file, open or by its path, or a table in memory.

        A public CSV file is read and checked at once; a private one is read when something is first asked of it, and
        no row of it is ever an error. Refuses with `DataError`, without a place. A private file that was written to
        before it was read is refused too: its budget is that of what it held.
        """
        from jostle.engine.frames import Frame, is_frame

        if isinstance(origin, str | os.PathLike):
            origin = self.file(origin)
        identity: object = origin.identity if isinstance(origin, OpenFile) else ("memory", id(origin))
        opened, before = self._opened.get(identity, (None, origin))
        if opened is not None:
            if not self._raw[opened.key].stale():
                return opened
            if not public:
                before.check()
        if isinstance(origin, OpenFile):
            raw = self._open_file(origin, public)
        elif is_frame(origin):
            raw = Frame(origin, self._next(), self._connection.register)
        else:
            message = f"a {type(origin).__name__} is no table"
            raise refuse("DataError", message, help="give a path, a data frame or arrays")
        opened = Opened(f"d{len(self._raw)}", raw.columns, identity)
        self._raw[opened.key], self._opened[identity] = raw, (opened, origin)
        if isinstance(origin, OpenFile) and not public:
            self._private[origin.real] = origin
        return opened

    def _open_file(self, file: OpenFile, public: bool) -> Raw:
        shown, name = f"`{file.path}`", self._next()
        try:
            if _is_parquet(file):
                self._views[name] = file
                return ParquetFile(file, name, shown, self.fetch, self._connection.register)
            opened = CsvFile(file, name, shown, self._connection)
        except OSError as error:
            raise refuse("DataError", f"{shown} cannot be read: {error.strerror or ''}") from None
        if public:
            opened.check_regular()
        return opened

    def _next(self) -> str:
        return f"raw{next(self._numbers)}_"

    def raw(self, key: str, *, look: bool = False) -> tuple[Raw, str]:
        """The raw cells and the table that they are in; with `look`, what is irregular in a CSV file is counted."""
        raw = self._raw[key]
        if look and isinstance(raw, CsvFile):
            raw.load(look=True)
        return raw, raw.table(range(len(raw.columns)))

    def guess(self, key: str) -> tuple[tuple[str, Domain], ...]:
        """Domains for a public source without a description: `real` where every cell that is not empty is a finite
        number, `text` elsewhere. Reads the data."""
        raw, table = self.raw(key)
        cells = map(raw.cell, raw.columns)
        tests = [f"count({text(c, kind)}) = count({number(c, kind)})" for c, kind in cells]
        (row,) = self.fetch(f"SELECT {', '.join(tests)} FROM {table}", raw.shown)
        return tuple((name, Open("real" if real else "text")) for name, real in zip(raw.columns, row, strict=True))

    def stamp(self, key: str) -> str:
        """A text that changes when the cells of a public data set do, whatever the order of rows."""
        raw, table = self.raw(key)
        cells = ", ".join(f"c{i}" for i in range(len(raw.columns)))
        (row,) = self.fetch(f"SELECT count(*), sum(hash({cells})::HUGEINT) FROM {table}", raw.shown)
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
        """For each key an array over the rows of a relation: where the row stands among the key's values, as `group`
        reads them, and −1 where it is none or not listed. int8, int16 or int32.

        Without joins rows have numbers, and stand in the order of these in every call, however DuckDB returns them.
        """
        import numpy as np

        if not keys:
            return []
        source = sql.relation(plan, self._base)
        columns = [np.asarray(column) for column in self._columns(sql.codes(source, keys))]
        if not source.numbered:
            return columns
        numbers, *codes = columns
        if np.all(numbers[1:] > numbers[:-1]):
            return codes
        order = np.argsort(numbers)
        return [column[order] for column in codes]

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
        cells = [raw.cell(name) for name, _ in scan.columns]
        by = plan.by if isinstance(plan, Bound) else ()
        for name in by:
            if name not in raw.columns:
                raise refuse("DataError", f"{raw.shown} has no column `{name}` to protect")
        table = raw.table([raw.columns.index(name) for name in (*(name for name, _ in scan.columns), *by)])
        if raw.size is None:
            raw.size = int(self.fetch(f"SELECT count(*) FROM {table}", raw.shown)[0][0])
        source = f"SELECT * FROM {table}"
        if isinstance(plan, Bound):
            source = _bounded(plan, raw, table, cells)
        cleaned = [clean(*cell, domain) for cell, (_, domain) in zip(cells, scan.columns, strict=True)]
        weighted = isinstance(plan, Bound) and plan.weighted
        named = [f"{item} AS c{i}" for i, (item, _) in enumerate(cleaned)] + (["w"] if weighted else [])
        parsed = isinstance(raw, CsvFile) or any(map(_parsed, cells, (domain for _, domain in scan.columns)))
        if isinstance(plan, Bound) or parsed:
            table = f"kept{next(self._numbers)}"
            self.fetch(f"CREATE TABLE {table} AS SELECT {', '.join(named) or '1 AS unused'} FROM ({source})", raw.shown)
            query = f"SELECT *, rowid AS n FROM {table}"
        else:
            query = f"SELECT {', '.join([*named, 'n'])} FROM {table}"
        columns = {name: Physical(f"c{i}", cleaned[i][1]) for i, (name, _) in enumerate(scan.columns)}
        self._kept[plan] = sql.Relation(query, columns, dict(scan.columns), raw.size, weighted, True)
        return self._kept[plan]

    def fetch(self, query: str, shown: str = "the data") -> list[tuple[Any, ...]]:
        """The rows of a query of our own making."""
        return self._run(query, shown, lambda result: result.fetchall())

    def _columns(self, query: str) -> list[Any]:
        return self._run(query, "the data", lambda result: list(result.fetchnumpy().values()))

    def _streamed(self, query: str, size: int) -> Iterator[Any]:
        """The record batches of a query of our own making."""
        try:
            relation = self._connection.sql(query)
            # the name that DuckDB 1 has for it
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            yield from read(size)
        except self._error:
            raise refuse("DataError", "the data cannot be read, or there is not enough memory") from None
        finally:
            self._check_files(query)

    def _run(self, query: str, shown: str, read: Callable[[Any], list[Any]]) -> list[Any]:
        try:
            return read(self._connection.execute(query))
        except self._error:
            message = f"{shown} cannot be read, or there is not enough memory for it"
            raise refuse("DataError", message) from None
        finally:
            self._check_files(query)

    def _check_files(self, query: str) -> None:
        """Refuses what was read of a file that somebody wrote to meanwhile."""
        for name, file in self._views.items():
            if name in query:
                file.check()


def _close(connection: Any, folder: SpillFolder, owner: int) -> None:
    if os.getpid() != owner:  # a forked child: the database and its folder are the parent's
        return
    connection.close()
    folder.close()


def _is_parquet(file: OpenFile) -> bool:
    if file.path.lower().endswith((".parquet", ".pq")):
        return True
    with file.reader() as source:
        return source.read(4) == b"PAR1"


def _parsed(cell: tuple[str, str], domain: Domain) -> bool:
    """Whether cleaning reads numbers from text, or makes texts of times, which is worth doing once."""
    return (cell[1] == "VARCHAR" and domain_kind(domain) == "number") or cell[1] not in NATIVE


def _bounded(plan: Bound, raw: Raw, table: str, cells: list[tuple[str, str]]) -> str:
    """Raw rows, at most `most` for each raw value of `by`; columns in the hash by the order of their names."""
    place = {name: i for i, (name, _) in enumerate(plan.scan.columns)}
    by = [text(*raw.cell(name)) for name in plan.by]
    texts = [text(*cells[place[name]]) for name in sorted(place)]
    return sql.few_rows("*", f"SELECT * FROM {table}", by, texts, plan.most, weighted=plan.weighted)
