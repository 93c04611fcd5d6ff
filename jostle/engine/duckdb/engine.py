"""Plans on one in-memory DuckDB, over data sets whose raw cells it has as tables.

It answers with exact integers and public structure, and decides nothing about privacy: whoever calls it has been
charged, or holds public data. How a data set is opened is the business of whoever adds it (`readers.duckdb`): here its
raw cells are a table. A scan that has to be parsed and a bounded one are stored as tables. No cell makes a query fail
(`cells`, `sql.rows`); what goes wrong inside DuckDB all the same, for want of memory or in a damaged file, is a
`DataError` with a fixed text, since DuckDB's own messages may quote cells.

DuckDB's dialect: its arithmetic raises nothing on doubles, and TRY_CAST nothing on texts.
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
KEYS = itertools.count()  # of data sets in this process: a handle of one engine is of nothing in another
# A file's statistics pass over NaN, and whoever wrote them may err: no row, and no test of one, may be left out because
# of them. A filter that is moved to where a file is read leaves out rows so. It also writes out what it tests, which
# had no end where a column is made of others many times over.
_UNUSED = "statistics_propagation,filter_pushdown,join_filter_pushdown"
_VECTOR = 2**11  # rows that DuckDB hands over at a time
LONG = 2**16  # characters of a statement; equal parts of a longer one, of hundreds of columns, took minutes to look for
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "preserve_insertion_order": "true",
    "disabled_optimizers": _UNUSED,
    "pandas_analyze_sample": 0,  # a column of Python's texts is one of texts, whatever stands in it
    "max_expression_depth": 4000,  # of `plan.kinds.DEPTH` operations, which are several levels each
}  # fmt: skip


def undescribed(plan: Bound) -> Bound:
    """Rows of persons as texts; but for a day whose period tells persons apart, which is read as it is described."""
    days = [one[0] for one in plan.by if not isinstance(one, str)]
    columns = sorted(dict(plan.scan.columns).items())
    texts = tuple((name, domain if name in days else Open("text")) for name, domain in columns)
    return replace(plan, scan=Scan(plan.scan.data, texts))


@dataclass(slots=True)
class Raw(ABC):
    """Columns by their names, each of a kind that `clean` reads; `label` is what messages call the data set."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    label: str
    size: int | None = field(default=None, init=False)  # rows, when they were counted
    unread: tuple[tuple[str, str], ...] = field(default=(), init=False)  # columns of no kind, with their types

    def cell(self, name: str) -> tuple[str, str]:
        """The column `cN` that a name stands for, and its kind."""
        at = self.columns.index(name)
        return f"c{at}", self.kinds[at]

    @abstractmethod
    def table(self, needed: Collection[int]) -> str:
        """A table or view that has the columns `cN` of these numbers, and `n`, which numbers its rows in every query
        alike, where they are `numbered`. What others it has is none of anybody's."""

    @property
    def numbered(self) -> bool:
        """Whether `table` has `n`; else its rows are copied, and numbered so."""
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
    """Where a database may spill (`readers.limits`)."""

    path: str

    def close(self) -> None: ...


class DuckDb(SqlEngine):
    """One in-memory database, which spills what is beyond `memory`, a size, into `folder`. Not for several threads at
    once.

    It begins when something is first asked of it. A forked child has a database of its own, which opens again what is
    asked about there.
    """

    capabilities = Capabilities(numbered_rows=True, forks=True)
    dialect = DUCKDB

    def __init__(self, memory: str, folder: Folder) -> None:
        import duckdb

        self._limit, self._spill = memory, folder.path
        self._error = duckdb.Error
        self._connections: list[DuckDBPyConnection] = []  # the last is of `_process`; its parents' stay as they are
        self._process: int | None = None
        self._owner = os.getpid()
        self._batches: Any = None  # of batches that somebody may not have read to their end
        self._sources: dict[str, Callable[[], Raw]] = {}  # how what is known by a key is opened
        self._numbers = itertools.count()
        self._raw: dict[str, Raw] = {}
        self._kept: dict[Scan | Bound, relations.Relation] = {}
        self._tables: dict[Bound, tuple[str, int]] = {}  # the rows of persons that stay
        self._close = weakref.finalize(self, _close, self._connections, folder, self._owner)

    def _begin(self, **settings: int) -> None:
        """Begins an empty database of this process."""
        import duckdb

        spill = os.path.join(self._spill, f"{os.getpid()}.{next(self._numbers)}")
        config = _SETTINGS | {"temp_directory": spill, "memory_limit": self._limit} | settings
        connection = duckdb.connect(":memory:", config=config)
        with contextlib.suppress(duckdb.Error):  # a notebook without widgets cannot show one, and refuses to say no
            connection.execute("SET enable_progress_bar = false")
        with contextlib.suppress(duckdb.Error):  # a build without time zones prints UTC anyway
            connection.execute("SET TimeZone = 'UTC'")
        self._connections.append(connection)
        self._process, self._batches, self._unused = os.getpid(), None, _UNUSED

    def _own(self) -> None:
        """Makes sure that the database is this process's: in a fork, what another process had opened would hang."""
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
        """Nothing is stored in a database of this process."""
        self._raw, self._kept, self._tables = {}, {}, {}

    @property
    def here(self) -> DuckDb:
        """The engine of this process, which is asked about what is held in it."""
        return self

    def close(self) -> None:
        """Frees the database; nothing can be asked of the engine afterwards."""
        self._close()

    def _add(self, source: Callable[[], Raw], identity: Hashable) -> Opened:
        raw, key = source(), f"d{next(KEYS)}"
        self._sources[key], self._raw[key] = source, raw
        return Opened(key, raw.columns, identity, raw.unread)

    def _raw_of(self, key: str) -> Raw:
        """The data set of a key, opened again in a process that has not asked about it yet."""
        self._own()
        if key not in self._sources:
            raise refuse("DataError", "these data are of another session", help="open them here")
        if key not in self._raw:
            self._raw[key] = self._sources[key]()
        return self._raw[key]

    def _raw_with(self, scan: Scan) -> Raw:
        """The data set of a scan, which has its columns."""
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
            again = None if stored else RawCell(f"raw{i}", kind, domain)  # each query cleans the cells that are there
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
        """Whether cleaning reads numbers from text, or makes texts of times, which is worth doing once."""
        kinds = ((raw.cell(name)[1], domain) for name, domain in scan.columns)
        return any(kind not in NATIVE or (kind == "VARCHAR" and domain_kind(of) != "text") for kind, of in kinds)

    def _staying(self, plan: Bound, raw: Raw) -> tuple[str, int]:
        """The name of a table with the rows of persons that stay, and how many rows the source has: raw cells, `q`, and
        weights `w` where rows have some. What the columns are described by does not decide which rows stay, so they are
        chosen once, also for looks at how the cells fit."""
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
        """The name of a table with cleaned cells, of texts each read once, and `more` columns as they are."""
        items, rows = list(more), list(more)
        for i, (cell, kind, domain) in enumerate(cells):
            cell, kind = read(self.dialect, cell, kind, domain)
            rows.append(f"{cell} AS r{i}")
            items.append(f"{clean(self.dialect, f'r{i}', kind, domain).alias} AS c{i}")
        source = f"SELECT {', '.join(rows) or '1 AS r'} FROM {table}"
        return self.keep(f"SELECT {', '.join(items) or '1 AS unused'} FROM ({source})", raw)

    def _size(self, raw: Raw, table: str) -> int:
        """How many rows a data set has, of which `table` has columns."""
        if raw.size is None:
            raw.size = int(self.fetch(f"SELECT count(*) FROM {table}", raw.label)[0][0])
        return raw.size

    def _rows_of_persons(self, plan: Bound, *more: str) -> tuple[str, int]:
        """The raw cells of the columns of a plan, and of `more`, with `q`, whose a row is; and how many rows there are.

        `q` is a whole number or a text, none where a row is nobody's. Where owners are looked up, a row is there once
        of each; a row of an owner that is named twice is there once.
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
        """The name of a table with the rows of persons that stay, at most `most` of each, of a source of `size` rows:
        the raw cells `items`, and weights `w` where rows have some."""
        cells = [whole_or_text(self.dialect, *raw.cell(name)) for name in sorted(dict(plan.scan.columns))]
        limited = persons.rows_per_key("*", source, ["q"], cells, most, weighted=plan.weighted, dialect=self.dialect)
        return self.keep(f"SELECT {', '.join([*items, *['w'] * plan.weighted])} FROM ({limited})", raw)

    def _claims(self, owners: Owners) -> str:
        """Every person `q` with every value `k` that a row of theirs has, once."""
        rows, _ = self._rows_of_persons(owners.table, owners.key)
        key = text(self.dialect, *self._raw_of(owners.table.scan.data).cell(owners.key))
        return f"SELECT DISTINCT q, {key} AS k FROM ({rows})"

    def keep(self, query: str, raw: Raw, table: str | None = None) -> str:
        """The name of a table with the rows of a query, a new one where none is given."""
        into = table or f"kept{next(self._numbers)}"
        self.fetch(f"{'INSERT INTO' if table else 'CREATE TABLE'} {into} {'' if table else 'AS '}{query}", raw.label)
        return into

    def name_rows(self, name: str, rows: object) -> None:
        """Gives a table of Arrow, or one by `table_of`, a name in the database."""
        self.connection.register(name, rows)

    @contextlib.contextmanager
    def registered(self, rows: object, name: str = "") -> Iterator[str]:
        """The name that such a table has meanwhile, a new one where none is given."""
        name, connection = name or self._next(), self.connection
        connection.register(name, rows)
        try:
            yield name
        finally:
            with contextlib.suppress(self._error):  # of a database that was given up
                connection.unregister(name)

    def fetch(self, query: str, label: str = "the data") -> list[tuple[Any, ...]]:
        """The rows of a query of our own making."""
        return self._run(query, label, lambda connection: connection.execute(query).fetchall())

    def columns(self, query: str) -> list[Any]:
        return self._run(query, "the data", lambda connection: list(connection.execute(query).fetchnumpy().values()))

    def batches(self, query: str, size: int) -> Iterator[list[Array]]:
        if has_arrow():
            yield from ([*map(np.asarray, batch.columns)] for batch in self.record_batches(query, size))
            return
        result = self._run(query, "the data", lambda connection: connection.execute(query))
        mine = self._batches = contextlib.ExitStack()  # until something else is asked

        def rows() -> DataFrame:
            if self._batches is not mine:
                raise ValueError
            return result.fetch_df_chunk(-(-size // _VECTOR))

        while len(some := self._call(rows, "the data", self.connection)):
            yield [some.iloc[:, place].to_numpy() for place in range(some.shape[1])]

    def record_batches(self, query: str, size: int, label: str = "the data") -> Iterator[Any]:
        """The Arrow record batches of a query of our own making, until something else is asked."""
        reader = self._run(query, label, lambda connection: connection.sql(query).to_arrow_reader(size))
        self._batches = reader
        with contextlib.closing(reader):
            while (batch := self._call(lambda: next(reader, None), label, self.connection)) is not None:
                yield batch

    def _next(self) -> str:
        return f"raw{next(self._numbers)}_"

    def _run(self, query: str, label: str, read: Callable[[DuckDBPyConnection], T]) -> T:
        """What is read of a query, while no other is."""
        connection = self.connection
        if self._batches is not None:
            self._batches.close()
            self._batches = None
        if (unused := _UNUSED + ",common_subexpressions" * (len(query) > LONG)) != self._unused:
            connection.execute(f"SET disabled_optimizers = '{unused}'")
            self._unused = unused
        return self._call(lambda: read(connection), label, connection)

    def _call(self, work: Callable[[], T], label: str, connection: DuckDBPyConnection) -> T:
        """What `work` asks the database. What DuckDB says may quote cells, also where it hands over batches (`OSError`;
        `ValueError` of a reader that was closed)."""
        try:
            return work()
        except (self._error, OSError, ValueError):
            raise refuse("DataError", f"{label} cannot be read, or there is not enough memory for it") from None


def table_of(columns: Mapping[str, pa.Array]) -> object:
    """Columns of equal length by their names, as DuckDB scans them: in a table of Arrow, or as arrays of NumPy where
    PyArrow is not installed. Each is of Arrow, or an array of numbers or truths, which may be masked, or of texts and
    None."""
    if has_arrow():
        return pa.table({name: _in_arrow(column) for name, column in columns.items()})
    return {name: in_unicode(column) if column.dtype.kind == "U" else column for name, column in columns.items()}


def in_unicode(column: Array) -> Array:
    """Texts of NumPy or of Python as Python's, of which each character can be written."""
    texts = [text.encode("utf-8", "replace").decode() for text in column.tolist()]
    return np.fromiter(texts, dtype=object, count=len(texts))


def _in_arrow(column: pa.Array) -> pa.Array:
    """A column of Arrow, of buffers: where values are handed over, Arrow loads pandas to look at them."""
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
    if os.getpid() != owner:  # a forked child: the database and its folder are the parent's
        return
    for connection in connections:
        connection.close()
    folder.close()
