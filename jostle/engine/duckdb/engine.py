"""Plans on one in-memory DuckDB, over data sets whose raw cells are tables.

It returns exact integers and public structure, and decides nothing about privacy: its callers have been charged, or
hold public data. Data sets are opened elsewhere (`readers.duckdb`); here their raw cells are a table. Scans that must
be parsed, and bounded ones, are stored as tables. No cell makes a query fail (`cells`, `sql.rows`). Failures inside
DuckDB, such as lack of memory or a damaged file, are a `DataError` with a fixed text, since DuckDB's own messages may
quote cells.

In DuckDB's dialect arithmetic on doubles raises no errors, and neither does TRY_CAST of texts.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jostle.diagnostics import refuse
from jostle.engine.base import Capabilities, Opened
from jostle.engine.sql import persons, relations
from jostle.engine.sql.cells import NATIVE, clean, read, text, whole_or_text
from jostle.engine.sql.dialect import Dialect
from jostle.engine.sql.engine import SqlEngine
from jostle.engine.sql.rows import Raw as RawCell
from jostle.language.operations import LONGEST
from jostle.lazy import Array, has_arrow, np, pa
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Bound, Domain, Open, Owners, Scan
from jostle.records import replace

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pandas import DataFrame

T = TypeVar("T")
KEYS = itertools.count()  # keys of data sets are unique in a process, so handles of one engine are invalid in another
# A file's statistics ignore NaN and may be wrong, so no row, and no test of a row, may be skipped because of them. A
# filter that is pushed down to the file's reader would skip rows. It also expands the tested expressions, without limit
# for a column that is computed from others many times over.
_UNUSED = "statistics_propagation,filter_pushdown,join_filter_pushdown"
_VECTOR = 2**11  # rows of DuckDB's batches
LONG = 2**16  # characters; common subexpressions of longer statements took minutes to search
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "preserve_insertion_order": "true",
    "disabled_optimizers": _UNUSED,
    "pandas_analyze_sample": 0,  # a column of Python texts has type text, whatever its content
    "max_expression_depth": 4000,  # for `plan.kinds.DEPTH` operations of several levels each
}  # fmt: skip


def undescribed(plan: Bound) -> Bound:
    """Rows of persons with all columns as texts, except a day whose period distinguishes persons."""
    days = [one[0] for one in plan.by if not isinstance(one, str)]
    columns = sorted(dict(plan.scan.columns).items())
    texts = tuple((name, domain if name in days else Open("text")) for name, domain in columns)
    return replace(plan, scan=Scan(plan.scan.data, texts))


@dataclass(slots=True)
class Raw(ABC):
    """Columns by their names, each of a kind that `clean` reads. `label` names the data set in messages."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    label: str
    size: int | None = field(default=None, init=False)  # the number of rows, once counted
    unread: tuple[tuple[str, str], ...] = field(default=(), init=False)  # columns of unsupported types

    def cell(self, name: str) -> tuple[str, str]:
        """The column `cN` of a name, and its kind."""
        at = self.columns.index(name)
        return f"c{at}", self.kinds[at]

    @abstractmethod
    def table(self, needed: Collection[int]) -> str:
        """A table or view with the columns `cN` of these numbers and, if `numbered`, `n`, the same number of each row
        in every query. It may have other columns, which are not used."""

    @property
    def numbered(self) -> bool:
        """Whether `table` has `n`; otherwise rows are copied and numbered."""
        return True


_BLANKS = " AND ".join(f"NOT contains({{0}}, chr({blank}))" for blank in (10, 11, 12, 13))
_DECIMAL = f"({{0}} >= '-' AND {{0}} < ':' AND NOT contains({{0}}, '_') AND {_BLANKS})"

DUCKDB = Dialect(
    name="DuckDB",
    double="DOUBLE", text="VARCHAR", wide="HUGEINT", tiny="TINYINT",
    digits="({0})",
    finite="isfinite({0})", known_finite="isfinite({0})",
    between="({0} + 0e0 >= {1}) = ({0} + 0e0 <= {2})",  # of copies, by truths: quicker than where cells are, by choice
    whole="TRY_CAST({0} AS BIGINT)", whole_wide="TRY_CAST({0} AS HUGEINT)",
    floor="floor({0})", even="round_even({0}, 0)", nearest="CAST({0} AS BIGINT)",
    grid="(({0} + {1}) - {1})",
    remainder="({0} % {1})",
    bits="CAST(CAST({0} + 0e0 AS BIT) AS BIGINT)", spelled="CAST({0} AS VARCHAR)",
    quotient="(({0}) // {1})", xor="xor({0}, {1})", right="({0} >> {1})",
    total="CAST(coalesce(sum({0}), 0) AS VARCHAR)",
    # which reads what is written otherwise where that has `_`, `+-` or other blanks in it, and nothing else
    double_of="TRY_CAST({0} AS DOUBLE)", decimal=_DECIMAL, whole_of="TRY_CAST({0} AS BIGINT)",
    digest="CAST('0x' || left(sha256({0}), 12) AS BIGINT)", size="strlen({0})",
    short=f"(strlen({{0}}) <= {LONGEST} OR length({{0}}) <= {LONGEST})",
    place="list_position([{1}], {0})", among_texts="list_contains([{1}], {0})",
    split={"number": "unnest(CAST(string_split({0}, {1}) AS DOUBLE[]))", "text": "unnest(string_split({0}, {1}))"},
    matches="regexp_matches({0}, {1})", part="regexp_extract({0}, {1}, {2})",
    day="(DATE '1970-01-01' + TRY_CAST({0} AS INTEGER))", days="({0} - DATE '1970-01-01')",
    first_day="CAST(date_trunc('{1}', {0}) AS DATE)",
    stamp="make_timestamp({0})", nanoseconds="make_timestamp_ns({0})",
    micros="epoch_us(TRY_CAST({0} AS TIMESTAMP))",
    quantile="quantile_cont({0}, {1})",
    operations={
        "-": "({0} - {1})", "ceil": "ceil({0})",
        "contains": "contains({0}, {1})", "starts_with": "starts_with({0}, {1})", "ends_with": "suffix({0}, {1})",
    },
)  # fmt: skip


class Folder(Protocol):
    """The folder in which a database may spill (`readers.limits`)."""

    path: str

    def close(self) -> None: ...


class DuckDb(SqlEngine):
    """One in-memory database, which spills into `folder` beyond `memory`, a size. Not thread-safe.

    It starts with the first question. A forked child has its own database, which opens data sets again when they are
    used there.
    """

    capabilities = Capabilities(numbered_rows=True, forks=True)
    dialect = DUCKDB

    def __init__(self, memory: str, folder: Folder) -> None:
        import duckdb

        self._limit, self._spill = memory, folder.path
        self._error = duckdb.Error
        self._connections: list[DuckDBPyConnection] = []  # the last is of `_process`; those of parents are kept open
        self._process: int | None = None
        self._owner = os.getpid()
        self._batches: Any = None  # the open result of batches that may not have been read to the end
        self._sources: dict[str, Callable[[], Raw]] = {}  # functions that open data sets, by key
        self._numbers = itertools.count()
        self._raw: dict[str, Raw] = {}
        self._kept: dict[Scan | Bound, relations.Relation] = {}
        self._tables: dict[Bound, tuple[str, int]] = {}  # stored rows of persons
        self._close = weakref.finalize(self, _close, self._connections, folder, self._owner)

    def _begin(self, **settings: int) -> None:
        """Starts an empty database in this process."""
        import duckdb

        spill = os.path.join(self._spill, f"{os.getpid()}.{next(self._numbers)}")
        config = _SETTINGS | {"temp_directory": spill, "memory_limit": self._limit} | settings
        connection = duckdb.connect(":memory:", config=config)
        with contextlib.suppress(duckdb.Error):  # in a notebook without widgets even disabling the bar fails
            connection.execute("SET enable_progress_bar = false")
        with contextlib.suppress(duckdb.Error):  # a build without time zones uses UTC anyway
            connection.execute("SET TimeZone = 'UTC'")
        self._connections.append(connection)
        self._process, self._batches, self._unused = os.getpid(), None, _UNUSED

    def _own(self) -> None:
        """Ensures that the database belongs to this process: in a fork, that of the parent would hang."""
        if self._process == os.getpid():
            return
        if self._owner == os.getpid():
            self._begin()
        else:
            self._forget()
            self._begin(threads=1)

    @property
    def connection(self) -> DuckDBPyConnection:
        self._own()
        return self._connections[-1]

    def _forget(self) -> None:
        """Clears what was stored in another database."""
        self._raw, self._kept, self._tables = {}, {}, {}

    @property
    def here(self) -> DuckDb:
        """The engine for data in this process."""
        return self

    def close(self) -> None:
        """Frees the database. The engine cannot be used afterwards."""
        self._close()

    def _add(self, source: Callable[[], Raw], identity: Hashable) -> Opened:
        raw, key = source(), f"d{next(KEYS)}"
        self._sources[key], self._raw[key] = source, raw
        return Opened(key, raw.columns, identity, raw.unread)

    def _raw_of(self, key: str) -> Raw:
        """The data set of a key, opened again in a process that has not used it yet."""
        self._own()
        if key not in self._sources:
            raise refuse("DataError", "these data are of another session", help="open them here")
        if key not in self._raw:
            self._raw[key] = self._sources[key]()
        return self._raw[key]

    def _raw_with(self, scan: Scan) -> Raw:
        """The data set of a scan. Refused if it lacks one of the scan's columns."""
        raw = self._raw_of(scan.data)
        there = set(raw.columns)
        for name in [name for name, _ in scan.columns if name not in there]:
            raise refuse("DataError", f"{raw.label} has no column `{name}`", help="it is named as in the header")
        return raw

    def base(self, plan: Scan | Bound) -> relations.Relation:
        self._own()
        if plan in self._kept:
            return self._kept[plan]
        bound, scan = (plan, plan.scan) if isinstance(plan, Bound) else (None, plan)
        raw = self._raw_with(scan)
        cells = [(*raw.cell(name), domain) for name, domain in scan.columns]
        if bound is not None:
            table, size = self._staying(bound, raw)
        else:
            table = raw.table([raw.columns.index(name) for name, _ in scan.columns])
            size = self._size(raw, table)
        weights, numbered = ["w"] * (bound is not None and bound.weighted), bound is None and raw.numbered
        stored = self.stores(plan, scan, raw) or (bound is None and not numbered)
        if stored:
            more = [*weights, *(["q"] if bound is not None else ["n"] * numbered)]
            table = self._cleaned(raw, table, cells, more)
        cleaned = [clean(self.dialect, *cell) for cell in cells]
        items, columns = [], {}
        for i, ((name, domain), (cell, kind, _)) in enumerate(zip(scan.columns, cells, strict=True)):
            again = None if stored else RawCell(f"raw{i}", kind, domain)  # cells are cleaned by each query
            columns[name] = replace(cleaned[i], alias=f"c{i}", raw=again)
            items.append(f"c{i}" if stored else f"{cleaned[i].alias} AS c{i}, {cell} AS raw{i}")
        items += [*weights, *(["CAST(q AS VARCHAR) AS p"] if bound is not None else []), "n"]
        table = table if numbered else f"(SELECT *, rowid AS n FROM {table}) AS t"
        self._kept[plan] = relations.Relation(
            f"SELECT {', '.join(items)} FROM {table}", columns, dict(scan.columns), size, self.dialect, bool(weights),
            numbered=True, personal=bound is not None,
        )  # fmt: skip
        return self._kept[plan]

    def stores(self, plan: Scan | Bound, scan: Scan, raw: Raw) -> bool:
        """Whether to store cleaned cells, since cleaning parses texts or formats times."""
        kinds = ((raw.cell(name)[1], domain) for name, domain in scan.columns)
        return any(kind not in NATIVE or (kind == "VARCHAR" and domain_kind(of) != "text") for kind, of in kinds)

    def _staying(self, plan: Bound, raw: Raw) -> tuple[str, int]:
        """The name of a table with the kept rows of persons, and the number of rows of the source. The table has raw
        cells, `q`, and weights `w` if rows have them. The selection does not depend on the description of columns, so
        it is done once, also for looks at how cells fit."""
        key = undescribed(plan)
        if key not in self._tables:
            source, size = self._rows_of_persons(plan)
            items = [*(raw.cell(name)[0] for name, _ in key.scan.columns), "q"]
            if plan.most is None:
                table = self.keep(f"SELECT {', '.join(items)} FROM ({source}){persons.not_null(['q'])}", raw)
            else:
                table = self.at_most(plan, plan.most, raw, items, source, size)
            self._tables[key] = table, size
        return self._tables[key]

    def _cleaned(self, raw: Raw, table: str, cells: Iterable[tuple[str, str, Domain]], more: list[str]) -> str:
        """The name of a table with cleaned cells (each distinct text is parsed once) and `more` unchanged columns."""
        items, rows = list(more), list(more)
        for i, (cell, kind, domain) in enumerate(cells):
            cell, kind = read(self.dialect, cell, kind, domain)
            rows.append(f"{cell} AS r{i}")
            items.append(f"{clean(self.dialect, f'r{i}', kind, domain).alias} AS c{i}")
        source = f"SELECT {', '.join(rows) or '1 AS r'} FROM {table}"
        return self.keep(f"SELECT {', '.join(items) or '1 AS unused'} FROM ({source})", raw)

    def _size(self, raw: Raw, table: str) -> int:
        """The number of rows of a data set. `table` has some of its columns."""
        if raw.size is None:
            raw.size = int(self.fetch(f"SELECT count(*) FROM {table}", raw.label)[0][0])
        return raw.size

    def _rows_of_persons(self, plan: Bound, *more: str) -> tuple[str, int]:
        """A table of the raw cells of a plan's columns, of `more`, and `q`, the person of a row; and the number of
        rows.

        `q` is an integer or a text, null if a row belongs to nobody. If owners are looked up, a row appears once for
        each of its distinct owners.
        """
        raw, owners = self._raw_of(plan.scan.data), plan.owners
        needed = [name for name, _ in plan.scan.columns]
        needed += [*(one for one in plan.by if isinstance(one, str)), *more, *([owners.on] if owners else [])]
        for name in needed:
            if name not in raw.columns:
                raise refuse("DataError", f"{raw.label} has no column `{name}` to protect")
        table = raw.table([raw.columns.index(name) for name in needed])
        if owners is None:
            person = persons.owner(plan, raw.cell, self.dialect)
            return f"SELECT *, {person} AS q FROM {table}", self._size(raw, table)
        rows = f"SELECT *, {text(self.dialect, *raw.cell(owners.on))} AS k FROM {table}"
        view = self.keep(f"SELECT t.*, o.q FROM ({rows}) t JOIN ({self._claims(owners)}) o ON t.k = o.k", raw)
        return f"SELECT * FROM {view}", int(self.fetch(f"SELECT count(*) FROM {view}", raw.label)[0][0])

    def at_most(self, plan: Bound, most: int, raw: Raw, items: list[str], source: str, size: int) -> str:
        """The name of a table with at most `most` rows of each person of a source of `size` rows: the raw cells
        `items`, and weights `w` if rows have them."""
        cells = [whole_or_text(self.dialect, *raw.cell(name)) for name in sorted(dict(plan.scan.columns))]
        limited = persons.rows_per_key("*", source, ["q"], cells, most, weighted=plan.weighted, dialect=self.dialect)
        return self.keep(f"SELECT {', '.join([*items, *['w'] * plan.weighted])} FROM ({limited})", raw)

    def _claims(self, owners: Owners) -> str:
        """Distinct pairs of a person `q` and a value `k` of their rows."""
        rows, _ = self._rows_of_persons(owners.table, owners.key)
        key = text(self.dialect, *self._raw_of(owners.table.scan.data).cell(owners.key))
        return f"SELECT DISTINCT q, {key} AS k FROM ({rows})"

    def keep(self, query: str, raw: Raw, table: str | None = None) -> str:
        """The name of a table with the rows of a query, by default a new one."""
        into = table or f"kept{next(self._numbers)}"
        self.fetch(f"{'INSERT INTO' if table else 'CREATE TABLE'} {into} {'' if table else 'AS '}{query}", raw.label)
        return into

    def name_rows(self, name: str, rows: object) -> None:
        """Registers a table of Arrow, or of `table_of`, under a name in the database."""
        self.connection.register(name, rows)

    @contextlib.contextmanager
    def registered(self, rows: object, name: str = "") -> Iterator[str]:
        """The context in which such a table is registered under a name, by default a new one."""
        name, connection = name or self._next(), self.connection
        connection.register(name, rows)
        try:
            yield name
        finally:
            with contextlib.suppress(self._error):  # if the database was closed
                connection.unregister(name)

    def fetch(self, query: str, label: str = "the data") -> list[tuple[Any, ...]]:
        """The rows of a generated query."""
        return self._run(query, label, lambda connection: connection.execute(query).fetchall())

    def columns(self, query: str) -> list[Any]:
        return self._run(query, "the data", lambda connection: list(connection.execute(query).fetchnumpy().values()))

    def batches(self, query: str, size: int) -> Iterator[list[Array]]:
        if has_arrow():
            yield from ([*map(np.asarray, batch.columns)] for batch in self.record_batches(query, size))
            return
        result = self._run(query, "the data", lambda connection: connection.execute(query))
        mine = self._batches = contextlib.ExitStack()  # open until the next question

        def rows() -> DataFrame:
            if self._batches is not mine:
                raise ValueError
            return result.fetch_df_chunk(-(-size // _VECTOR))

        while len(some := self._call(rows, "the data", self.connection)):
            yield [some.iloc[:, place].to_numpy() for place in range(some.shape[1])]

    def record_batches(self, query: str, size: int, label: str = "the data") -> Iterator[Any]:
        """The Arrow record batches of a generated query, valid until the next question."""
        reader = self._run(query, label, lambda connection: connection.sql(query).to_arrow_reader(size))
        self._batches = reader
        with contextlib.closing(reader):
            while (batch := self._call(lambda: next(reader, None), label, self.connection)) is not None:
                yield batch

    def _next(self) -> str:
        return f"raw{next(self._numbers)}_"

    def _run(self, query: str, label: str, read: Callable[[DuckDBPyConnection], T]) -> T:
        """Reads a query, after ending an open one."""
        connection = self.connection
        if self._batches is not None:
            self._batches.close()
            self._batches = None
        if (unused := _UNUSED + ",common_subexpressions" * (len(query) > LONG)) != self._unused:
            connection.execute(f"SET disabled_optimizers = '{unused}'")
            self._unused = unused
        return self._call(lambda: read(connection), label, connection)

    def _call(self, work: Callable[[], T], label: str, connection: DuckDBPyConnection) -> T:
        """The result of `work`. Errors of DuckDB, which may quote cells, are replaced; while batches are read they are
        `OSError`, or `ValueError` for a closed reader."""
        try:
            return work()
        except (self._error, OSError, ValueError):
            raise refuse("DataError", f"{label} cannot be read, or there is not enough memory for it") from None


def table_of(columns: Mapping[str, pa.Array]) -> object:
    """Columns of equal length in a form that DuckDB scans: a table of Arrow, or arrays of NumPy without PyArrow. A
    column is of Arrow, or an array of numbers or booleans, which may be masked, or of texts and None."""
    if has_arrow():
        return pa.table({name: _in_arrow(column) for name, column in columns.items()})
    return {name: in_unicode(column) if column.dtype.kind == "U" else column for name, column in columns.items()}


def in_unicode(column: Array) -> Array:
    """Texts of NumPy or Python as Python texts, with characters that have no encoding replaced."""
    texts = [text.encode("utf-8", "replace").decode() for text in column.tolist()]
    return np.fromiter(texts, dtype=object, count=len(texts))


def _in_arrow(column: pa.Array) -> pa.Array:
    """A column as an Arrow array, from buffers, since Arrow would import pandas to inspect values."""
    if not isinstance(column, np.ndarray):
        return column
    if column.dtype.kind in "OU":
        return pa.array((in_unicode(column) if column.dtype.kind == "U" else column).tolist(), pa.string())
    values, there = np.ma.getdata(column), None
    if isinstance(column, np.ma.MaskedArray):
        there = pa.py_buffer(np.packbits(~np.ma.getmaskarray(column), bitorder="little"))
    bits = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [there, pa.py_buffer(bits)])


def _close(connections: list[DuckDBPyConnection], folder: Folder, owner: int) -> None:
    if os.getpid() != owner:  # in a forked child the database and its folder belong to the parent
        return
    for connection in connections:
        connection.close()
    folder.close()
