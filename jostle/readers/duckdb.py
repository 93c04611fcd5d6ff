"""The engine of this process: data sets are opened, and some questions are answered faster than by SQL.

Files are open from the moment they are named, and read when they are first asked about. What is answered here rather
than by `DuckDb` are the same integers: counts of tables in memory from their arrays (`arrays`), of a whole file from
its size, of many groups from the rows' places; and which rows of a person stay (`speed.bounding`).

Which tables and files a relation of DuckDB reads, by its query and by the names in its catalog.

No row is looked at. Tables of one name in databases in memory are taken for one, and so is a table that got another
name, by the number that its database gave it. What a query reads is not known where it calls functions that may read
anything, where it names data of Python, and where it seems to read nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jostle.diagnostics import Refusal
from jostle.engine import base
from jostle.engine.base import Opened
from jostle.engine.duckdb.engine import Raw, undescribed
from jostle.engine.files import OpenFile, identities, open_file
from jostle.engine.sql import relations
from jostle.engine.sql.cells import FLOATS, number, text
from jostle.engine.sql.persons import narrowed
from jostle.engine.sql.rows import key_value
from jostle.lazy import Array, has_arrow, np, pa
from jostle.plan import plan as p
from jostle.plan.facts import schema_of
from jostle.readers.arrays import Arrays
from jostle.readers.filesets import FileSet, Objects, paths
from jostle.readers.formats import FileDuckDb, Union, has_names, opened_file
from jostle.readers.limits import Endless, SpillFolder, beside, memory_limit
from jostle.readers.public_sql import PublicSql
from jostle.readers.textfile import MOST_PARTS, ReadRaw
from jostle.records import replace
from jostle.resources import Json
from jostle.speed.bounding import Bounding
from jostle.speed.fast import FEW, GROUPED, ROWS, groups_of, uncommon
from jostle.speed.quicksql import QUICK_DUCKDB, over

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")
_NOTHING = frozenset({"range", "generate_series", "unnest"})
_FILES = frozenset({"read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto"})
_TABLES = """SELECT table_name, schema_name, d.path, table_oid, NULL FROM duckdb_tables() JOIN duckdb_databases() d
USING (database_oid) UNION ALL SELECT view_name, NULL, NULL, NULL, sql FROM duckdb_views() WHERE NOT internal"""
_FUNCTIONS = "SELECT function_name FROM duckdb_functions() WHERE NOT internal"
Node = dict[str, Json]


class _UnknownError(Exception):
    """What a query reads is not known."""


def reads_of(origin: Any, connection: object) -> frozenset[Hashable] | None:
    """What a relation reads: nothing where `origin` is none, and None where that is not known.

    `connection`, our own, takes its query apart.
    """
    if not hasattr(origin, "sql_query"):
        return frozenset()
    import duckdb

    try:
        tables = origin.query("tables", _TABLES).fetchall()
        functions = frozenset(name for (name,) in origin.query("functions", _FUNCTIONS).fetchall())
        tree = _tree(origin.sql_query(), connection)
        return frozenset(_marks(tree, tables, functions, connection)) or None
    except (duckdb.Error, Refusal, OSError, KeyError, TypeError, AttributeError, _UnknownError):
        return None


def _marks(tree: Node, tables: list[Any], functions: frozenset[str], connection: object) -> Iterator[Hashable]:
    parts = list(_parts(tree))
    ctes = {entry["key"].casefold() for part in parts if "cte_map" in part for entry in part["cte_map"]["map"]}
    for part in parts:
        kind, function = part.get("type"), part.get("function_name")
        if kind == "BASE_TABLE":
            name = part["table_name"].casefold()
            meant = [row for row in tables if row[0].casefold() == name]
            for _, schema, path, number, view in meant:
                if view is None:
                    yield from (_mark(name, schema, path), ("number", number))
                else:
                    yield from _marks(_body(view, connection), tables, functions, connection)
            if not meant and name not in ctes:
                yield from _of_files([part["table_name"]])
        elif kind == "TABLE_FUNCTION":
            if part["function"]["function_name"] in _FILES:
                first = part["function"]["arguments"][0]
                yield from _of_files([p["literal"]["text"] for p in _parts(first) if "literal" in p])
            elif part["function"]["function_name"] not in _NOTHING:
                raise _UnknownError
        elif function in functions:
            raise _UnknownError


def _mark(name: str, schema: str, path: str | None) -> Hashable:
    """What a table is known by; of a file that is a database, what `table("x.duckdb", table = "t")` is known by."""
    if path is None:
        return "table", name
    status = os.stat(path)
    return "file", status.st_dev, status.st_ino, name if schema == "main" else f"{schema}.{name}".casefold()


def _of_files(names: list[str]) -> Iterator[Hashable]:
    for name in names:
        marks = [mark for path in paths(name, [Path()]) for mark in identities(path)]
        if not marks:
            raise _UnknownError
        yield from marks


def _body(view: str, connection: object) -> Node:
    """The query of a view, which stands after the first `AS` that a query follows."""
    for word in re.finditer(r"\bAS\b", view, re.IGNORECASE):
        try:
            return _tree(view[word.end() :], connection)
        except _UnknownError:
            continue
    raise _UnknownError


def _tree(query: str, connection: Any) -> Node:
    ((text,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    tree: Node = json.loads(text)
    if tree["error"]:
        raise _UnknownError
    return tree


def _parts(tree: object) -> Iterator[Node]:
    """Every object in a tree."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


_MANY, _MOST_ROWS = "\0many", 2**40


@dataclass(slots=True)
class _Tally(ReadRaw):
    """The different cells of a column, and how many rows have each: those of the table `name`."""

    name: str

    def table(self, needed: Collection[int]) -> str:
        return f"(SELECT *, rowid AS n FROM {self.name}) AS t"

    def stale(self) -> bool:
        return False


OFTEN, ROOM = 3, 3 * 2**27  # columns with reals of a file are stored when they are asked about so often, in ROOM bytes
_MANY_GROUPS, _BATCH = range(2**14, 2**22), 2**20  # of counts that are made here, of so many rows at a time


class LocalDuckDb(PublicSql, FileDuckDb):
    """The plans of `DuckDb` over files, tables in memory and lists of both."""

    dialect = QUICK_DUCKDB

    def __init__(self, memory: str | None = None) -> None:
        super().__init__(memory_limit(memory), SpillFolder())
        self._beside = beside
        self._opened: dict[object, tuple[Opened, Any]] = {}  # by what gives the same rows, with the origin itself
        self._tallies: dict[tuple[p.Scan | p.Bound, str], str] = {}
        self.objects = Objects()
        self._private: dict[str, OpenFile] = {}  # by where they were
        self._parts: dict[p.Scan, list[p.Scan]] = {}  # of a scan that is stored those that have some of its columns
        self._asked: dict[p.Scan, int] = {}  # of scans with reals of a file: how often
        self._stored: dict[p.Scan, int] = {}  # of those that are stored, the last one asked about last: how many bytes
        self._room, self._wanted = ROOM, 0  # bytes for them, and those that there was no room for

    def _call(self, work: Callable[[], T], label: str, connection: DuckDBPyConnection) -> T:
        """Ctrl-C ends a query, and the engine goes on; one that does not end is left to its database, in whose place
        another one opens again what is asked about."""
        try:
            return super()._call(lambda: self._beside(work, connection.interrupt), label, connection)
        except Endless:
            self._connections.pop()
            self._process = None
            self._forget()
            raise

    def _forget(self) -> None:
        super()._forget()
        self._parts, self._asked, self._stored, self._wanted, self._room = {}, {}, {}, 0, ROOM

    def file(self, path: str | os.PathLike[str]) -> OpenFile:
        """The file at a path, opened to be asked about; where a private one was opened before, that one."""
        file = open_file(path)
        return self._private.get(file.real, file)

    def open(self, origin: object, *, public: bool, names: tuple[str, ...] = ()) -> Opened:
        """Makes a data set known: files, open or by their path, or a table in memory.

        `names` are the columns that are described, which files without a header are asked for. A public text file is
        read and checked at once; a private one is read when something is first asked of it, and no row of it is ever
        an error. Refuses with `DataError`, without a place. A private file that was written to before it was read is
        refused too: its budget is that of what it held.
        """
        if isinstance(origin, str | os.PathLike):
            origin = self.file(origin)
        if isinstance(origin, OpenFile):
            origin = FileSet.of([origin])
        if not isinstance(origin, FileSet):
            return self._open_object(origin)
        place = origin.place, None if all(map(has_names, origin.parts)) else names
        opened, before = self._opened.get(place, (None, origin))
        if opened is not None:
            if not self._raw_of(opened.key).stale():
                return opened
            if not public:
                before.check()
        opened = self._add(lambda: self._open_files(origin, public, names), origin.identity)
        opened = replace(opened, header=0 if self._raw_of(opened.key).typed else origin.reading.header)
        self._opened[place] = opened, origin
        if not public:
            self._private.update((file.real, file) for file in origin.parts)
        return opened

    def _open_object(self, origin: object) -> Opened:
        """A table in memory; asked again since it may have got another name."""
        from jostle.readers.frames import Frame

        opened, _ = self._opened.get(id(origin), (None, origin))
        if opened is None:
            self.objects.reads(origin, lambda one: reads_of(one, self.connection))
            frame = Frame(origin, self._next())
            self.objects.lies_in(origin, frame.lies_in)
            opened = self._add(lambda: frame.named_by(self.name_rows), None)
            self._opened[id(origin)] = opened, origin
        return replace(opened, identity=self.objects.identity(origin), header=0)

    def _open_files(self, files: FileSet, public: bool, names: tuple[str, ...]) -> ReadRaw:
        parts = [opened_file(self, f, self._next(), files.reading, names, public=public) for f in files.parts]
        return parts[0] if len(parts) == 1 else Union(parts, files.label)

    def base(self, plan: p.Scan | p.Bound) -> relations.Relation:
        if isinstance(plan, p.Scan) and plan in self._asked and plan in self._kept:
            self._asked[plan] += 1
            if plan in self._stored:
                self._stored[plan] = self._stored.pop(plan)
            elif self._asked[plan] >= OFTEN - 1:
                del self._kept[plan]
        return super().base(plan)

    def rest(self) -> None:
        """Frees what was not asked about for longest, where others had no room. Questions in between would miss it."""
        self._own()
        while self._stored and self._wanted and sum(self._stored.values()) + self._wanted > self._room:
            oldest = next(iter(self._stored))
            del self._stored[oldest], self._asked[oldest]
            self.fetch(f"DROP TABLE {self._kept.pop(oldest).sql.rpartition(' ')[2]}")
        self._wanted = 0

    def stores(self, plan: p.Scan | p.Bound, scan: p.Scan, raw: Raw) -> bool:
        """Also those with reals of a file, when they are asked about for the third time and there is room."""
        if super().stores(plan, scan, raw):
            return True
        names = [name for name, _ in scan.columns]
        if isinstance(plan, p.Scan) and raw.numbered and any(raw.cell(name)[1] in FLOATS for name in names):
            size = 8 * self._size(raw, raw.table(list(map(raw.columns.index, names)))) * (len(names) + 1)
            times = self._asked.setdefault(plan, 1)
            if sum(self._stored.values()) + size <= self._room:
                if times >= OFTEN:
                    self._stored[plan] = size
                return times >= OFTEN
            if times >= OFTEN - 1 and size <= self._room:
                self._wanted = max(self._wanted, size)
        return False

    def _raw_of(self, key: str) -> ReadRaw:
        return cast(ReadRaw, super()._raw_of(key))  # files and tables are opened here

    def raw(self, key: str, *, look: bool = False) -> tuple[ReadRaw, str]:
        """The raw cells and the table that they are in; with `look`, what is irregular in a text file is counted."""
        raw = self._raw_of(key)
        if look:
            raw.look()
        return raw, raw.table(range(len(raw.columns)))

    def arrow(self, query: str, label: str = "the data") -> Any:
        """The rows of a query of our own making as an Arrow table."""
        return self._run(query, label, lambda connection: connection.sql(query).to_arrow_table())

    def relation(self, plan: p.Plan, asked: Iterable[p.RowExpr] | None = None) -> relations.Relation:
        """A plan as a SELECT, where a column that nothing asked is made of is neither cleaned nor read."""
        scan = plan
        while isinstance(scan, p.Filter | p.Derive | p.Join):
            scan = scan.left if isinstance(scan, p.Join) else scan.source
        if asked is None or not isinstance(scan, p.Scan):
            return super().relation(plan)
        narrow = narrowed(plan, asked)
        return relations.relation(narrow, lambda few: self.base(self._part(few, scan)), self.dialect)

    def _part(self, few: p.Scan | p.Bound, whole: p.Scan) -> p.Scan | p.Bound:
        """What has the few columns that are asked of a scan: where cells are stored, these alone the first times, then
        all. Tables of some of its columns have the rows in one order, so that their numbers are the same."""
        raw = self._raw_with(whole)
        if isinstance(few, p.Bound) or few.data != whole.data or (raw.numbered and not super().stores(few, few, raw)):
            return few
        parts = self._parts.setdefault(whole, [])
        for part in (*parts, whole) if whole in self._kept else parts:
            if set(few.columns) <= set(part.columns):
                return part
        parts.append(few if len(parts) < MOST_PARTS else whole)
        return parts[-1]

    def guess(self, key: str) -> tuple[tuple[str, p.Domain], ...]:
        """Domains for a public source without a description: `real` where every cell that is not empty is a finite
        number, `boolean` where it is stored so, `text` elsewhere. Reads the data."""
        raw, table = self.raw(key)
        names = [name for name in raw.columns if name not in dict(raw.unread)]
        cells = list(map(raw.cell, names))
        tests = [f"count({text(self.dialect, c, kind)}) = count({number(self.dialect, c, kind)})" for c, kind in cells]
        (row,) = self.fetch(f"SELECT {', '.join(tests) or 'count(*)'} FROM {table}", raw.label)
        columns = zip(names, cells, row, strict=False)
        kinds = {n: "boolean" if cell[1] == "BOOLEAN" else "real" if real else "text" for n, cell, real in columns}
        return tuple((name, p.Open(kind)) for name, kind in kinds.items())

    def stamp(self, key: str) -> str:
        """A text that changes when the cells of a public data set do, whatever the order of rows."""
        arrays = self._raw_of(key).arrays if key in self._raw else None
        mixed = arrays.stamp() if arrays is not None else None
        if mixed is not None:
            return f"{self._raw[key].columns}:{mixed}"
        raw, table = self.raw(key)
        cells = ", ".join(f"c{i}" for i in range(len(raw.columns)))
        (row,) = self.fetch(f"SELECT count(*), sum(hash({cells})::HUGEINT) FROM {table}", raw.label)
        return f"{raw.columns}:{row[0]}:{row[1]}"

    def group(self, plan: p.Plan, keys: tuple[p.Key, ...], terms: tuple[p.Term, ...]) -> list[Array]:
        """As in `SqlEngine`. Distinct integers of a bounded range are marked in an array of booleans, which is faster
        than a hash table."""
        shape, keys = base.shape(keys), tuple(map(base.consecutive, keys))
        if set(terms) == ROWS and (cells := self._counts(plan, keys, shape)) is not None:
            return [cells.copy() for _ in terms]
        match keys, terms:
            case (), (p.Count(p.Column(name) as column, True, False),):
                domain = schema_of(plan)[name]
                if isinstance(domain, p.Integer) and domain.high - domain.low in _MANY_GROUPS:
                    each = p.Key(column, range(domain.low, domain.high + 1))
                    there = np.zeros(len(each.values) + 1, dtype=bool)
                    for (places,) in self.batches(_places(self.relation(plan, (column,)), (each,)), _BATCH):
                        there[places] = True
                    return [np.array(np.count_nonzero(there[:-1]))]
        return super().group(plan, keys, terms)

    def _counts(self, plan: p.Plan, keys: tuple[p.Key, ...], shape: tuple[int, ...]) -> Array | None:
        """The counts of rows by the fastest way that fits: arrays in memory, the number of rows of a file, the tally
        of a column with few values, the uncommon values alone, or for many groups sums over the rows' positions. None
        leaves them to the database."""
        arrays = self._arrays(plan)
        if arrays is not None and (cells := arrays.counts(plan, keys, shape)) is not None:
            return cells
        if isinstance(plan, p.Scan) and not keys:
            source = self.relation(plan, ())
            if self._check_files(source.sql):  # which have as many rows as before
                return np.array(source.most_rows)
        if (tally := self._tallied(plan, keys)) is not None:
            return super().group(tally, keys, (p.FixedSum(p.Column(_MANY), 0.0, float(_MOST_ROWS), 0),))[0]
        cells = uncommon(self.group, plan, keys)
        ranges = keys and all(isinstance(key.values, range) for key in keys)
        if cells is not None or not ranges or math.prod(shape) not in _MANY_GROUPS:
            return cells
        cells = np.zeros(math.prod(shape) + 1, dtype=np.int64)
        for (places,) in self.batches(_places(self.relation(plan, (key.expr for key in keys)), keys), _BATCH):
            cells += np.bincount(places, minlength=len(cells))
        return cells[:-1].reshape(shape)

    def _tallied(self, plan: p.Plan, keys: tuple[p.Key, ...]) -> p.Plan | None:
        """In place of a plan of which one column is asked, the same of the few different cells of that column with the
        number of rows of each. They are counted once, when a question that describes the column so first asks."""
        of = p.rows_below(plan)
        whole = over(plan, of, of.scan) if isinstance(of, p.Bound) and not of.weighted else plan
        steps = [narrowed(whole, [key.expr for key in keys])]
        while isinstance(steps[-1], p.Filter | p.Derive):
            steps.append(steps[-1].source)
        few = steps.pop()
        if not isinstance(few, p.Scan) or len(few.columns) != 1 or self._raw_of(few.data).stale():
            return None
        ((name, domain),) = few.columns
        of = undescribed(of) if isinstance(of, p.Bound) else p.Scan(few.data, ())  # columns may be described otherwise
        key = self._tallies.get((of, name))
        if key is None and groups_of(domain) <= FEW:
            key = self._tallies[of, name] = self._tally(of, few.data, name)
        if not key:
            return None
        at: p.Plan = p.Scan(key, ((name, domain), (_MANY, p.Integer(0, _MOST_ROWS))))
        for step in reversed(steps):
            more = {"columns": (*step.columns, (_MANY, p.Column(_MANY)))} if isinstance(step, p.Derive) else {}
            at = replace(step, source=at, **more)
        return at

    def _tally(self, of: p.Scan | p.Bound, data: str, name: str) -> str:
        """The key of a data set of the different cells of a column; empty where these are not asked about."""
        raw = self._raw_of(data)
        if name not in raw.columns or not raw.numbered or raw.arrays or raw.cell(name)[1] not in GROUPED:
            return ""

        def source() -> _Tally:
            raw = self._raw_of(data)
            cell, kind = raw.cell(name)
            at = self._staying(of, raw)[0] if isinstance(of, p.Bound) else raw.table([raw.columns.index(name)])
            tally = _Tally((name, _MANY), (kind, "BIGINT"), raw.label, f"kept{next(self._numbers)}")
            counted = f"SELECT {cell} AS c0, count(*) AS c1 FROM {at} GROUP BY {cell}"
            ((tally.size,),) = self.fetch(f"CREATE TABLE {tally.name} AS {counted}", raw.label)
            return tally

        key = self._add(source, None).key
        tally = self._raw[key]
        if self._size(tally, tally.table(())) <= FEW or not isinstance(tally, _Tally):
            return key
        self.fetch(f"DROP TABLE {tally.name}")
        return ""

    def at_most(self, plan: p.Bound, most: int, raw: Raw, items: list[str], source: str, size: int) -> str:
        """Chosen in arrays of PyArrow, part by part, where these can decide."""
        if not has_arrow():
            return super().at_most(plan, most, raw, items, source, size)
        return Bounding(self, plan, most, raw, items).table(source, size)

    def hold(self, rows: pa.Table) -> str | None:
        """The name of an Arrow table that is asked as it is and numbered, since a copy costs as much as choosing its
        rows does; none where there is no room for it."""
        if rows.nbytes > self._room:
            return None
        self._room -= rows.nbytes
        self.name_rows(name := self._next(), rows)
        self.fetch(f"CREATE VIEW {name}n AS SELECT *, row_number() OVER () - 1 AS rowid FROM {name}")
        return f"{name}n"

    def codes(self, plan: p.Plan, keys: tuple[p.Key, ...]) -> list[Array]:
        arrays = self._arrays(plan)
        codes = arrays.codes(plan, keys) if arrays is not None else None
        return super().codes(plan, keys) if codes is None else codes

    def different(self, plan: p.Plan, names: Sequence[str]) -> tuple[list[list[object]], list[float]]:
        arrays = self._arrays(plan)
        rows = arrays.different(plan, names) if arrays is not None else None
        return super().different(plan, names) if rows is None else rows

    def _arrays(self, plan: p.Plan) -> Arrays | None:
        """The arrays of a table in memory, which a fork has too."""
        raw = self._raw.get(plan.data) if isinstance(plan, p.Scan) else None
        return raw.arrays if isinstance(raw, ReadRaw) else None


def _places(source: relations.Relation, keys: tuple[p.Key, ...]) -> str:
    """A column `place`: where each row's group stands among those of all keys, which are ranges, the last of them
    moving fastest; how many there are of a row that is in none. There are fewer than 2^31 groups."""
    rows = source.rows()
    inner = [f"{key_value(rows, key, source.schema)} AS k{i}" for i, key in enumerate(keys)]
    tests, place = [], "0"
    for i, key in enumerate(keys):
        first, last = (key.values[0], key.values[-1]) if key.values else (0, -1)
        tests.append(f"k{i} BETWEEN {first} AND {last}")
        place = f"({place}) * {len(key.values)} + (k{i} - ({first}))"
    outside = math.prod(len(key.values) for key in keys)
    inside = f"CASE WHEN {' AND '.join(tests)} THEN {place} ELSE {outside} END"
    return f"SELECT CAST({inside} AS INTEGER) AS place FROM (SELECT {', '.join(inner)} FROM ({rows.over(source.sql)}))"
