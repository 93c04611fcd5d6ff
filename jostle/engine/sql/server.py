"""What engines in front of a server have in common: its tables are read as they lie there, other data are sent to it.

A table of the server is a list of expressions, one a column, with their kinds (`sql.cells`); rows of persons are chosen
by the server too, and kept there for the session. Public files and tables in memory are read by the engine of this
process and sent; a private file is not, since a program that names one means it to stay where it is.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from jostle.diagnostics import did_you_mean, refuse
from jostle.engine.base import Opened
from jostle.engine.duckdb.dialect import DUCKDB
from jostle.engine.duckdb.engine import DuckDb
from jostle.engine.files import OpenFile
from jostle.engine.filesets import FileSet
from jostle.engine.objects import Objects
from jostle.engine.remote import RemoteData
from jostle.engine.sql import cells as sql_cells
from jostle.engine.sql import persons, relations
from jostle.engine.sql.dialect import Dialect, subquery
from jostle.engine.sql.engine import SqlEngine
from jostle.engine.sql.hashes import hashed
from jostle.engine.sql.rows import Physical
from jostle.plan.domains import Domain, Open
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Bound, Owners, Scan

Cell = tuple[str, str]
"""An expression of a raw cell, and its kind."""
_NUMBERS = sql_cells.WHOLE | sql_cells.FLOATS | {"UBIGINT", "BOOLEAN"}
_SENT = {**dict.fromkeys(sql_cells.WHOLE, "BIGINT"), **dict.fromkeys(sql_cells.FLOATS, "DOUBLE"),
         **dict.fromkeys(("BOOLEAN", "DATE", "VARCHAR"))}  # fmt: skip
"""Kinds that are sent as they are, or as the one that has all their values; others are sent as texts."""


@dataclass(slots=True)
class Stored:
    """A data set on the server. `table` names it there, `label` is what messages call it.

    `numbers` are the cells of columns that are read in another way where they are described as numbers: decimals, which
    are texts elsewhere. `calculated` names columns that are not stored.
    """

    table: str
    label: str
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]
    size: int | None = None
    numbers: dict[str, Cell] = field(default_factory=dict)
    calculated: frozenset[str] = frozenset()

    def cell(self, name: str, domain: Domain | None = None) -> Cell:
        """The cell of a column, as it is read where a domain describes it."""
        if name in self.calculated:
            raise refuse("DataError", f"the column `{name}` of {self.label} is calculated when it is read")
        if name in self.numbers and domain is not None and domain_kind(domain) == "number":
            return self.numbers[name]
        if name not in self.columns:
            help = did_you_mean(name, self.columns) or "the description names columns as the table does"
            raise refuse("DataError", f"{self.label} has no column `{name}`", help=help)
        return self.cells[self.columns.index(name)]


class ServerEngine(SqlEngine):
    """An engine whose data lie on a server, behind one connection. Not for several threads at once."""

    dialect: ClassVar[Dialect]

    def __init__(self) -> None:
        self._here = DuckDb()
        self._stored: dict[str, Stored | Opened] = {}  # what is still to be sent as this process knows it
        self._opened: dict[Hashable, Opened] = {}
        self._relations: dict[Scan | Bound, relations.Relation] = {}
        self._numbers = itertools.count()

    @abstractmethod
    def located(self, data: RemoteData) -> tuple[Stored, Hashable]:
        """A table of the server, or files that it reads, and what their data are known by."""

    @abstractmethod
    def send(self, table: Any) -> str:
        """The name of a table of the server's with the rows of an Arrow table of the types of `_SENT`."""

    @abstractmethod
    def keep(self, query: str) -> str:
        """The name of a table of the server's with the rows of a query, for as long as the session lasts."""

    def close(self) -> None:
        """Frees what this process holds; nothing can be asked of the engine afterwards."""
        self._here.close()

    @property
    def objects(self) -> Objects:
        return self._here.objects

    @objects.setter
    def objects(self, objects: Objects) -> None:
        self._here.objects = objects

    # Opening -----------------------------------------------------------------------------------------

    def file(self, path: Any) -> OpenFile:
        return self._here.file(path)

    def open(self, origin: Any, *, public: bool, names: tuple[str, ...] = ()) -> Opened:
        """Makes a data set known: one of the server, a public file, or a table in memory."""
        if isinstance(origin, RemoteData):
            if origin not in self._opened:
                stored, identity = self.located(origin)
                self._opened[origin] = self._add(stored, stored.columns, identity)
            return self._opened[origin]
        if not public and isinstance(origin, str | OpenFile | FileSet):
            message = f"a private file is not sent to a server, and this session works on {self.dialect.name}"
            help = f'put it where the server reads it, and name it `{self.remote}("…")`; or leave `--engine` out'
            raise refuse("DataError", message, help=help)
        here = self._here.open(origin, public=public, names=names)
        opened = self._opened.get(here.key) or self._add(here, here.columns, here.identity)
        self._opened[here.key] = opened
        return replace(opened, identity=here.identity)

    def _add(self, data: Stored | Opened, columns: tuple[str, ...], identity: Hashable) -> Opened:
        opened = Opened(f"s{len(self._stored)}", columns, identity)
        self._stored[opened.key] = data
        return opened

    def stored(self, key: str) -> Stored:
        """A data set on the server, sent there when it is first asked about."""
        data = self._stored[key]
        if isinstance(data, Opened):
            data = self._stored[key] = self._sent(data)
        return data

    def _sent(self, opened: Opened) -> Stored:
        raw, table = self._here.raw(opened.key)
        items, cells = [], []
        for i, (cell, kind) in enumerate(map(raw.cell, raw.columns)):
            sent = _SENT.get(kind, "VARCHAR") or kind
            value = cell if kind in _SENT else sql_cells.text(DUCKDB, cell, kind)
            items.append(f"CAST({value} AS {sent}) AS c{i}")
            cells.append((f"c{i}", sent))
        rows = self._here.connection.sql(f"SELECT {', '.join(items)} FROM {table}").to_arrow_table()
        return Stored(self.send(rows), raw.label, raw.columns, tuple(cells), len(rows))

    def guess(self, key: str) -> tuple[tuple[str, Domain], ...]:
        """Domains for a public source without a description: `real` where every cell that is not empty is a finite
        number, `text` elsewhere. Reads the data."""
        stored, d = self.stored(key), self.dialect
        kinds = dict(zip(stored.columns, stored.cells, strict=True))
        texts = {name: cell for name, (cell, kind) in kinds.items() if kind == "VARCHAR"}
        spelled = dict.fromkeys(texts, True)
        if texts:
            tests = [f"count({sql_cells.text(d, cell, 'VARCHAR')}) = count({sql_cells.number(d, cell, 'VARCHAR')})"
                     for cell in texts.values()]  # fmt: skip
            items = ", ".join(f"{test} AS t{i}" for i, test in enumerate(tests))
            spelled = dict(zip(texts, self.fetch(f"SELECT {items} FROM {stored.table}")[0], strict=True))
        real = {name: spelled[name] if name in texts else kind in _NUMBERS for name, (_, kind) in kinds.items()}
        return tuple((name, Open("real" if real[name] else "text")) for name in stored.columns)

    def stamp(self, key: str) -> str:
        """A text that changes when the cells of a public data set do, whatever the order of rows."""
        stored = self.stored(key)
        rows = self._hashed_cells(stored, stored.columns)
        items = ", ".join(f"{cell.alias} AS y{i}" for i, cell in enumerate(rows))
        cells = [replace(cell, alias=f"y{i}") for i, cell in enumerate(rows)]
        query = hashed(f"SELECT {items} FROM {stored.table}", cells, self.dialect)
        total = self.dialect.total.format("h")
        ((many, summed),) = self.fetch(f"SELECT count(*) AS a0, {total} AS a1 FROM {subquery(query)}")
        return f"{stored.columns}:{many}:{summed}"

    # Relations ---------------------------------------------------------------------------------------

    def base(self, plan: Scan | Bound) -> relations.Relation:
        if plan in self._relations:
            return self._relations[plan]
        scan = plan.scan if isinstance(plan, Bound) else plan
        stored, d = self.stored(scan.data), self.dialect
        cleaned = [sql_cells.clean(d, *stored.cell(name, domain), domain) for name, domain in scan.columns]
        items = [f"{cell.alias} AS c{i}" for i, cell in enumerate(cleaned)]
        columns = {name: replace(cleaned[i], alias=f"c{i}") for i, (name, _) in enumerate(scan.columns)}
        if isinstance(plan, Bound):
            query, size = self._bounded(plan, stored, items)
        else:
            query, size = f"SELECT {', '.join(items) or '1 AS unused'} FROM {stored.table}", self._size(stored)
        weighted = isinstance(plan, Bound) and plan.weighted
        self._relations[plan] = relations.Relation(
            query, columns, dict(scan.columns), size, d, weighted, personal=isinstance(plan, Bound)
        )
        return self._relations[plan]

    def check_source(self, plan: Scan | Bound) -> None:
        """Refuses a description, or what tells whose a row is, for which the server has no text of a number."""
        scan = plan.scan if isinstance(plan, Bound) else plan
        stored = self.stored(scan.data)
        for name, domain in scan.columns:
            sql_cells.clean(self.dialect, *stored.cell(name, domain), domain)
        if isinstance(plan, Bound):
            persons.owner([stored.cell(name) for name in plan.by], self.dialect)
        if isinstance(plan, Bound) and plan.owners is not None:
            sql_cells.identity(self.dialect, *stored.cell(plan.owners.on))
            self._claims(plan.owners)

    def _size(self, stored: Stored) -> int:
        if stored.size is None:
            stored.size = self.count(stored.table)
        return stored.size

    def count(self, table: str) -> int:
        return int(self.fetch(f"SELECT count(*) AS a0 FROM {table}")[0][0])

    def _bounded(self, plan: Bound, stored: Stored, items: list[str]) -> tuple[str, int]:
        """The rows of each person that stay, with `p`, whose they are, and weights; and at most how many there are.

        In the hash columns are by the order of names.
        """
        source = self._rows_of_persons(plan)
        names = [f"c{i}" for i in range(len(items))]
        if plan.most is None:
            rows = f"SELECT {', '.join([*items, 'q'])} FROM {subquery(source)}{persons.known(['q'])}"
        else:
            hashing = self._hashed_cells(stored, sorted(dict(plan.scan.columns)))
            added = [f"{cell.alias} AS y{i}" for i, cell in enumerate(hashing)]
            whole = [Physical(f"y{i}", cell.whole) for i, cell in enumerate(hashing)]
            rows = f"SELECT {', '.join([*items, *added, 'q'])} FROM {subquery(source)}"
            rows = persons.rows_per_key(
                ", ".join([*names, "q"]), rows, ["q"], whole, plan.most, weighted=plan.weighted, dialect=self.dialect
            )
        kept = self.keep(rows)
        shown = ", ".join([*names, *["w"] * plan.weighted, f"{self.dialect.as_text('q')} AS p"])
        size = self._size(stored) if plan.owners is None else self.count(kept)
        return f"SELECT {shown} FROM {kept}", size

    def _hashed_cells(self, stored: Stored, names: Any) -> list[Physical]:
        return [sql_cells.whole_or_text(self.dialect, *stored.cell(name)) for name in names]

    def _rows_of_persons(self, plan: Bound) -> str:
        """The raw rows of a plan with `q`, whose a row is: a whole number or a text, none where it is nobody's.

        Where owners are looked up, a row is there once of each; a row of an owner that is named twice is there once.
        """
        stored, owners = self.stored(plan.scan.data), plan.owners
        if owners is None:
            person = persons.owner([stored.cell(name) for name in plan.by], self.dialect)
            return f"SELECT *, {person} AS q FROM {stored.table}"
        on = sql_cells.identity(self.dialect, *stored.cell(owners.on))
        rows = subquery(f"SELECT *, {on} AS k FROM {stored.table}").removesuffix("s")
        claims = subquery(self._claims(owners)).removesuffix("s")
        return f"SELECT t.*, o.q FROM {rows}t JOIN {claims}o ON t.k = o.k"

    def _claims(self, owners: Owners) -> str:
        """Every person `q` with every value `k` that a row of theirs has, once."""
        key = sql_cells.identity(self.dialect, *self.stored(owners.table.scan.data).cell(owners.key))
        return f"SELECT DISTINCT q, {key} AS k FROM {subquery(self._rows_of_persons(owners.table))}"
