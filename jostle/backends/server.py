"""What engines in front of a server have in common: its tables are read as they lie there, other data are sent to it.

A table of the server is a list of expressions, one a column, with their kinds (`sql.cells`); rows of persons are chosen
by the server too, and kept there for the session. Public files and tables in memory are read by the engine of this
process and sent; a private file is not, since a program that names one means it to stay where it is.

The *form* of a statement is the SQL that a dialect emits for a question, from public facts alone. What an engine sends
is narrower, since it knows how many rows there are, of which types cells are, and what it counted before. In a form
columns are of the types of their descriptions and rows as many as there can be, so that equal questions have equal
forms, whatever the rows.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from jostle.backends.remote import RemoteData, check
from jostle.diagnostics import did_you_mean, refuse
from jostle.engine.base import Capabilities, Opened
from jostle.engine.duckdb.engine import DUCKDB, KEYS
from jostle.engine.files import OpenFile
from jostle.engine.sql import cells as sql_cells
from jostle.engine.sql import persons, relations
from jostle.engine.sql.dialect import Dialect, subquery
from jostle.engine.sql.persons import hashed, narrowed
from jostle.engine.sql.relations import Relation
from jostle.engine.sql.rows import Physical, Raw
from jostle.lazy import Array
from jostle.plan import plan as p
from jostle.plan.kinds import domain_kind
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.filesets import FileSet, Objects, check_read
from jostle.readers.public_sql import PublicSql
from jostle.readers.survey import NO_FORMS, Forms, Survey, most_alike, surveyed
from jostle.records import replace
from jostle.speed.fast import grouped, uncommon

Cell = tuple[str, str]
"""An expression of a raw cell, and its kind."""


class Stored(Struct):
    """A data set on the server. `table` names it there, `label` is what messages call it.

    `numbers` are the cells of columns that are read in another way where they are described as numbers: decimals, which
    are texts elsewhere. `calculated` names columns that are not stored; `unread` has the types of those that no query
    reads. `own` are the marks of these data alone, of those that the server knows them by.
    """

    table: str
    label: str
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]
    size: int | None = None
    numbers: dict[str, Cell] = field(default_factory=dict)
    calculated: frozenset[str] = frozenset()
    unread: tuple[tuple[str, str], ...] = ()
    own: frozenset[Hashable] = frozenset()

    def cell(self, name: str, domain: p.Domain | None = None) -> Cell:
        """The cell of a column, as it is read where a domain describes it."""
        if name in self.calculated:
            raise refuse("DataError", f"the column `{name}` of {self.label} is calculated when it is read")
        check_read(name, self.unread)
        if name in self.numbers and domain is not None and domain_kind(domain) == "number":
            return self.numbers[name]
        if name not in self.columns:
            help = did_you_mean(name, self.columns) or "the description names columns as the table does"
            raise refuse("DataError", f"{self.label} has no column `{name}`", help=help)
        return self.cells[self.columns.index(name)]


class StoredRelations(ABC):
    """What stands for the scans of a plan over tables that are stored. Each is worked out once."""

    dialect: Dialect

    def __init__(self) -> None:
        self._relations: dict[p.Scan | p.Bound, relations.Relation] = {}

    @abstractmethod
    def stored(self, key: str) -> Stored:
        """The table that a plan knows by a key."""

    @abstractmethod
    def keep(self, query: str) -> str:
        """What names a table with the rows of a query, for as long as the session lasts."""

    @abstractmethod
    def count(self, table: str) -> int:
        """How many rows a table has, or at most has."""

    def base(self, plan: p.Scan | p.Bound) -> relations.Relation:
        if plan in self._relations:
            return self._relations[plan]
        scan = plan.scan if isinstance(plan, p.Bound) else plan
        stored, d = self.stored(scan.data), self.dialect
        cells = [stored.cell(*column) for column in scan.columns]
        rows = subquery(self._rows_of_persons(plan)) if isinstance(plan, p.Bound) else stored.table
        read, rows = self._read_once(rows, cells, [domain for _, domain in scan.columns])
        cleaned = [sql_cells.clean(d, *cell, domain) for cell, (_, domain) in zip(read, scan.columns, strict=True)]
        items = [f"{cell.alias} AS c{i}" for i, cell in enumerate(cleaned)]
        columns = {name: replace(cleaned[i], alias=f"c{i}") for i, (name, _) in enumerate(scan.columns)}
        if isinstance(plan, p.Bound):
            query, size = self._bounded(plan, stored, items, rows)
        else:
            items += [f"{cell} AS raw{i}" for i, (cell, _) in enumerate(cells)]
            for i, (name, domain) in enumerate(scan.columns):
                columns[name] = replace(columns[name], raw=Raw(f"raw{i}", cells[i][1], domain))
            query, size = f"SELECT {', '.join(items) or '1 AS unused'} FROM {rows}", self._size(stored)
        weighted = isinstance(plan, p.Bound) and plan.weighted
        self._relations[plan] = relations.Relation(
            query, columns, dict(scan.columns), size, d, weighted, personal=isinstance(plan, p.Bound)
        )
        return self._relations[plan]

    def _read_once(self, rows: str, cells: list[Cell], domains: list[p.Domain]) -> tuple[list[Cell], str]:
        """What is cleaned, and rows with it. What a text spells, a number, a date or a time, stands beside the cells as
        `s0` …: it is read once, however often cleaning and questions mention it."""
        read = [sql_cells.read(self.dialect, *cell, domain) for cell, domain in zip(cells, domains, strict=True)]
        spelled = {i: text for i, (text, _) in enumerate(read) if text != cells[i][0]}
        if not spelled:
            return cells, rows
        added = ", ".join(self.dialect.named(text, f"s{i}") for i, text in spelled.items())
        named = [(f"s{i}" if i in spelled else text, kind) for i, (text, kind) in enumerate(read)]
        return named, subquery(f"SELECT *, {added} FROM {rows}{self.dialect.fence}")

    def check_source(self, plan: p.Scan | p.Bound) -> None:
        """Refuses a description, or what says whose a row is, for which the server has no text of a number."""
        scan = plan.scan if isinstance(plan, p.Bound) else plan
        stored = self.stored(scan.data)
        for name, domain in scan.columns:
            sql_cells.clean(self.dialect, *stored.cell(name, domain), domain)
        if isinstance(plan, p.Bound):
            persons.owner(plan, stored.cell, self.dialect)
        if isinstance(plan, p.Bound) and plan.owners is not None:
            sql_cells.text(self.dialect, *stored.cell(plan.owners.on))
            self._claims(plan.owners)

    def _size(self, stored: Stored) -> int:
        if stored.size is None:
            stored.size = self.count(stored.table)
        return stored.size

    def _bounded(self, plan: p.Bound, stored: Stored, items: list[str], source: str) -> tuple[str, int]:
        """The rows of each person that stay, with `p`, whose they are, and weights; and at most how many there are.

        In the hash columns are by the order of names.
        """
        names = [f"c{i}" for i in range(len(items))]
        if plan.most is None:
            rows = f"SELECT {', '.join([*items, 'q'])} FROM {source}{persons.not_null(['q'])}"
        else:
            hashing = self._hashed_cells(stored, sorted(dict(plan.scan.columns)))
            added = [f"{cell.alias} AS y{i}" for i, cell in enumerate(hashing)]
            whole = [Physical(f"y{i}", cell.whole) for i, cell in enumerate(hashing)]
            rows = f"SELECT {', '.join([*items, *added, 'q'])} FROM {source}"
            rows = persons.rows_per_key(
                ", ".join([*names, "q"]), rows, ["q"], whole, plan.most, weighted=plan.weighted, dialect=self.dialect
            )
        view = self.keep(rows)
        columns = ", ".join([*names, *["w"] * plan.weighted, f"{self.dialect.as_text('q')} AS p"])
        size = self._size(stored) if plan.owners is None else self.count(view)
        return f"SELECT {columns} FROM {view}", size

    def _hashed_cells(self, stored: Stored, names: Any) -> list[Physical]:
        return [sql_cells.whole_or_text(self.dialect, *stored.cell(name)) for name in names]

    def _rows_of_persons(self, plan: p.Bound) -> str:
        """The raw rows of a plan with `q`, whose a row is: a whole number or a text, none where it is nobody's.

        Where owners are looked up, a row is there once of each; a row of an owner that is named twice is there once.
        """
        stored, owners = self.stored(plan.scan.data), plan.owners
        if owners is None:
            person = persons.owner(plan, stored.cell, self.dialect)
            return f"SELECT *, {person} AS q FROM {stored.table}"
        on = sql_cells.text(self.dialect, *stored.cell(owners.on))
        rows = subquery(f"SELECT *, {on} AS k FROM {stored.table}").removesuffix("s")
        claims = subquery(self._claims(owners)).removesuffix("s")
        return f"SELECT t.*, o.q FROM {rows}t JOIN {claims}o ON t.k = o.k"

    def _claims(self, owners: p.Owners) -> str:
        """Every person `q` with every value `k` that a row of theirs has, once."""
        key = sql_cells.text(self.dialect, *self.stored(owners.table.scan.data).cell(owners.key))
        return f"SELECT DISTINCT q, {key} AS k FROM {subquery(self._rows_of_persons(owners.table))}"


class Question(Struct, frozen=True):
    """What was asked of the rows of a plan: groups by `keys` with `terms`, or where neither is there the values of
    `exprs`: row by row, or with `tallied` the different ones and how many rows have each."""

    plan: p.Plan
    keys: tuple[p.Key, ...] = ()
    terms: tuple[p.Term, ...] = ()
    exprs: tuple[p.RowExpr, ...] = ()
    tallied: bool = False


class QuestionLog(LocalDuckDb):
    """Rows have no numbers, so that nothing is counted from columns that are kept: each count is a question here."""

    capabilities = Capabilities()

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[Question] = []

    def group(self, plan: p.Plan, keys: tuple[p.Key, ...], terms: tuple[p.Term, ...]) -> list[Array]:
        self.questions.append(Question(plan, keys, terms))
        return super().group(plan, keys, terms)

    def vectors(self, plan: p.Plan, exprs: tuple[p.RowExpr, ...], size: int) -> Iterator[Array]:
        self.questions.append(Question(plan, exprs=exprs))
        return super().vectors(plan, exprs, size)

    def tally(self, plan: p.Plan, expr: p.RowExpr) -> tuple[Array, Array]:
        self.questions.append(Question(plan, exprs=(expr,), tallied=True))
        return super().tally(plan, expr)

    def tuples(self, plan: p.Plan, exprs: tuple[p.RowExpr, ...]) -> tuple[list[tuple[object, ...]], Array]:
        self.questions.append(Question(plan, exprs=exprs, tallied=True))
        return super().tuples(plan, exprs)


_MOST_ROWS = 2**62
_KINDS = {"number": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "time": "TIMESTAMP us"}


class Form(StoredRelations):
    """The forms of several questions. `names` has what the data sets of plans are called.

    `views` are the names of queries whose rows an engine keeps, or which it puts in place of their names.
    """

    def __init__(self, questions: Iterable[Question], dialect: Dialect, names: Mapping[str, str]) -> None:
        super().__init__()
        self.dialect, self.views = dialect, dict[str, str]()
        self._columns: dict[str, dict[str, str]] = {}  # of each data set the kinds
        for question in questions:
            self._look(question.plan)
        self._tables = {key: _table(names.get(key, f"public_{key}"), kinds) for key, kinds in self._columns.items()}

    @property
    def tables(self) -> list[Stored]:
        """The tables that the statements read, with what stands for their raw cells."""
        return list(self._tables.values())

    def sql(self, question: Question) -> str:
        """The form of a statement. Refused with `DataError` where the dialect cannot do it as the others do."""
        check(question, self.dialect, self.check_source)
        relation = relations.relation(question.plan, self.base, self.dialect)
        if question.terms:
            return grouped(relation, question.keys, question.terms).sql
        if question.tallied and len(question.exprs) == 1:
            return relations.tally(relation, question.exprs[0])
        return (relations.tuples if question.tallied else relations.vectors)(relation, question.exprs)

    def stored(self, key: str) -> Stored:
        return self._tables[key]

    def keep(self, query: str) -> str:
        return self.views.setdefault(query, f"view{len(self.views)}")

    def count(self, table: str) -> int:
        return _MOST_ROWS

    def _look(self, plan: p.Plan) -> None:
        """Notes the columns that a plan reads; of those that only tell whose a row is no type is known: texts."""
        for source in p.inputs(plan):
            self._look(source)
        if isinstance(plan, p.Scan):
            self._columns.setdefault(plan.data, {}).update((name, _kind(domain)) for name, domain in plan.columns)
        if isinstance(plan, p.Bound):
            self._tell(plan.scan.data, *(one for one in plan.by if isinstance(one, str)))
        if isinstance(plan, p.Bound) and plan.owners is not None:
            self._tell(plan.scan.data, plan.owners.on)
            self._tell(plan.owners.table.scan.data, plan.owners.key)

    def _tell(self, key: str, *names: str) -> None:
        for name in names:
            self._columns[key].setdefault(name, "VARCHAR")


def _table(name: str, kinds: Mapping[str, str]) -> Stored:
    cells = tuple((f"r{i}", kind) for i, kind in enumerate(kinds.values()))
    return Stored(name, name, tuple(kinds), cells, _MOST_ROWS)


def _kind(domain: p.Domain) -> str:
    if isinstance(domain, p.Integer) or domain == p.Open("integer"):
        return "BIGINT"
    return _KINDS.get(domain_kind(domain), "VARCHAR")


_NUMBERS = sql_cells.WHOLE | sql_cells.FLOATS | {"UBIGINT"}
_SENT = {**dict.fromkeys(sql_cells.WHOLE, "BIGINT"), **dict.fromkeys(sql_cells.FLOATS, "DOUBLE"),
         **dict.fromkeys(("BOOLEAN", "DATE", "VARCHAR"))}  # fmt: skip
"""Kinds that are sent as they are, or as the one that has all their values; dates and times that are whole numbers are
sent as these; others are sent as texts."""
_MOMENTS = ("DATE ", "TIME ", "TIMESTAMP ")


class ServerEngine(StoredRelations, PublicSql):
    """An engine whose data lie on a server, behind one connection. Not for several threads at once."""

    def __init__(self) -> None:
        super().__init__()
        self.here = LocalDuckDb()
        self._stored: dict[str, Stored | Opened] = {}  # what is still to be sent as this process knows it
        self._opened: dict[Hashable, Opened] = {}
        self._numbers = itertools.count()
        self._patterns: set[str] = set()  # that it reads

    def check(self, question: object) -> None:
        check(question, self.dialect, self.check_source, self.check_rows, self._check_pattern)

    def _check_pattern(self, pattern: str) -> None:
        """Has the server read a pattern before anything is charged: it reads one at the first row that comes to it, and
        one that it cannot would fail there."""
        if pattern not in self._patterns:
            self.fetch(f"SELECT {self.dialect.matches.format(self.dialect.literal('a'), pattern)} AS x")
            self._patterns.add(pattern)

    def check_rows(self, rows: p.Summands | p.Sample) -> None:
        """Refuses what is done with rows one by one, where they are elsewhere."""
        return

    def group(self, plan: p.Plan, keys: tuple[p.Key, ...], terms: tuple[p.Term, ...]) -> list[Array]:
        cells = uncommon(super().group, plan, keys) if terms == (p.Count(),) else None
        return super().group(plan, keys, terms) if cells is None else [cells]

    @abstractmethod
    def located(self, data: RemoteData) -> tuple[Stored, Hashable]:
        """A table of the server, or files that it reads, and what their data are known by."""

    @abstractmethod
    def definition(self, data: RemoteData) -> tuple[str, dict[str, str]]:
        """What the catalog says of a table, as a `CREATE TABLE` statement, and the comments on its columns. No row is
        read."""

    @abstractmethod
    def send(self, table: object) -> str:
        """The name of a table of the server's with the rows of an Arrow table of the types of `_SENT`."""

    def close(self) -> None:
        """Frees what this process holds; nothing can be asked of the engine afterwards."""
        self.here.close()

    @property
    def objects(self) -> Objects:
        return self.here.objects

    @objects.setter
    def objects(self, objects: Objects) -> None:
        self.here.objects = objects

    def own(self, key: str) -> frozenset[Hashable]:
        """The marks by which data that this server has are to be found again."""
        stored = self._stored[key]
        return stored.own if isinstance(stored, Stored) else frozenset()

    # Opening -----------------------------------------------------------------------------------------

    def file(self, path: Any) -> OpenFile:
        return self.here.file(path)

    def open(self, origin: object, *, public: bool, names: tuple[str, ...] = ()) -> Opened:
        """Makes a data set known: one of the server, or public rows, which are sent there. Private ones are not, since
        whether they can be follows from their size and cells, and is said before anything is charged."""
        if isinstance(origin, RemoteData):
            if origin not in self._opened:
                stored, identity = self.located(origin)
                self._opened[origin] = self._add(stored, stored.columns, identity, stored.unread)
            return self._opened[origin]
        if not public:
            of_file = isinstance(origin, str | OpenFile | FileSet)
            what, them = ("a private file is", "it") if of_file else ("private rows in memory are", "them")
            message = f"{what} not sent to a server, and this session works on {self.dialect.name}"
            help = f'put {them} where the server reads {them}, and name {them} `{self.remote}("…")`; '
            raise refuse("DataError", message, help=f"{help}or leave `--engine` out")
        here = self.here.open(origin, public=public, names=names)
        opened = self._opened.get(here.key) or self._add(here, here.columns, here.identity, here.unread)
        self._opened[here.key] = opened
        return replace(opened, identity=here.identity)

    def _add(
        self, data: Stored | Opened, columns: tuple[str, ...], identity: Hashable, unread: tuple[tuple[str, str], ...]
    ) -> Opened:
        opened = Opened(f"s{next(KEYS)}", columns, identity, unread, 0 if isinstance(data, Stored) else data.header)
        self._stored[opened.key] = data
        return opened

    def stored(self, key: str) -> Stored:
        """A data set on the server, sent there when it is first asked about."""
        data = self._stored[key]
        if isinstance(data, Opened):
            data = self._stored[key] = self._sent(data)
        return data

    def _sent(self, opened: Opened) -> Stored:
        raw, table = self.here.raw(opened.key)
        items, cells = [], []
        for i, (cell, kind) in enumerate(map(raw.cell, raw.columns)):
            moment = kind.startswith(_MOMENTS)
            sent = "BIGINT" if moment else _SENT.get(kind, "VARCHAR") or kind
            value = cell if moment or kind in _SENT else sql_cells.text(DUCKDB, cell, kind)
            value = sql_cells.short(DUCKDB, value, value) if sent == "VARCHAR" else value
            items.append(f"CAST({value} AS {sent}) AS c{i}")
            cells.append((f"c{i}", kind if moment else sent))
        rows = self.here.arrow(f"SELECT {', '.join(items)} FROM {table}", raw.label)
        return Stored(self.send(rows), raw.label, raw.columns, tuple(cells), len(rows), unread=raw.unread)

    def guess(self, key: str) -> tuple[tuple[str, p.Domain], ...]:
        """Domains for a public source without a description: `real` where every cell that is not empty is a finite
        number, `boolean` where it is stored so, `text` elsewhere. Reads the data."""
        stored, d = self.stored(key), self.dialect
        unread = dict(stored.unread)
        kinds = {name: cell for name, cell in zip(stored.columns, stored.cells, strict=True) if name not in unread}
        texts = {name: cell for name, (cell, kind) in kinds.items() if kind == "VARCHAR"}
        spelled = dict.fromkeys(texts, True)
        if texts:
            tests = [f"count({sql_cells.text(d, cell, 'VARCHAR')}) = count({sql_cells.number(d, cell, 'VARCHAR')})"
                     for cell in texts.values()]  # fmt: skip
            items = ", ".join(f"{test} AS t{i}" for i, test in enumerate(tests))
            spelled = dict(zip(texts, self.fetch(f"SELECT {items} FROM {stored.table}")[0], strict=True))
        real = {name: spelled[name] if name in texts else kind in _NUMBERS for name, (_, kind) in kinds.items()}
        open_kinds = {name: "real" if is_real else "text" for name, is_real in real.items()}
        open_kinds |= {name: "boolean" for name, (_, kind) in kinds.items() if kind == "BOOLEAN"}
        return tuple((name, p.Open(kind)) for name, kind in open_kinds.items())

    def stamp(self, key: str) -> str:
        """A text that changes when the cells of a public data set do, whatever the order of rows."""
        stored = self.stored(key)
        unread = dict(stored.unread)
        rows = self._hashed_cells(stored, [name for name in stored.columns if name not in unread])
        items = ", ".join(f"{cell.alias} AS y{i}" for i, cell in enumerate(rows))
        cells = [replace(cell, alias=f"y{i}") for i, cell in enumerate(rows)]
        query = hashed(f"SELECT {items} FROM {stored.table}", cells, self.dialect)
        total = self.dialect.total.format("h")
        ((many, summed),) = self.fetch(f"SELECT count(*) AS a0, {total} AS a1 FROM {subquery(query)}")
        return f"{stored.columns}:{many}:{summed}"

    def relation(self, plan: p.Plan, requested: Iterable[p.RowExpr] | None = None) -> Relation:
        """A plan as a SELECT, without columns that nothing asked is made of."""
        return super().relation(plan if requested is None else narrowed(plan, requested))

    def survey(self, key: str, schema: Sequence[tuple[str, p.Domain]], forms: Forms = NO_FORMS) -> Survey:
        """How the cells of a table fit a description: exact, and for its owner alone."""
        stored = self.stored(key)
        cells = [stored.cell(name, domain) for name, domain in schema]
        return surveyed(self.dialect, self.fetch, stored.table, cells, schema, forms)

    def most_alike(self, key: str, column: str) -> int:
        """The most rows that one value of a column has: exact, and for the table's owner alone."""
        stored = self.stored(key)
        return most_alike(self.dialect, self.fetch, stored.table, stored.cell(column))

    def count(self, table: str) -> int:
        return int(self.fetch(f"SELECT count(*) AS a0 FROM {table}")[0][0])
