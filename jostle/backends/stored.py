"""The relations of tables that are stored somewhere: cleaned columns, and the rows of persons that stay, as SQL.

Nothing is read here. Whoever has the tables says which they are, how a query is kept, and how many rows there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any

from msgspec import Struct, field

from jostle.diagnostics import did_you_mean, refuse
from jostle.engine.base import check_read
from jostle.engine.sql import cells as sql_cells
from jostle.engine.sql import persons, relations
from jostle.engine.sql.dialect import Dialect, subquery
from jostle.engine.sql.rows import Physical, Raw
from jostle.plan.kinds import domain_kind
from jostle.plan.plan import Bound, Domain, Owners, Scan
from jostle.records import replace

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

    def cell(self, name: str, domain: Domain | None = None) -> Cell:
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
        self._relations: dict[Scan | Bound, relations.Relation] = {}

    @abstractmethod
    def stored(self, key: str) -> Stored:
        """The table that a plan knows by a key."""

    @abstractmethod
    def keep(self, query: str) -> str:
        """What names a table with the rows of a query, for as long as the session lasts."""

    @abstractmethod
    def count(self, table: str) -> int:
        """How many rows a table has, or at most has."""

    def base(self, plan: Scan | Bound) -> relations.Relation:
        if plan in self._relations:
            return self._relations[plan]
        scan = plan.scan if isinstance(plan, Bound) else plan
        stored, d = self.stored(scan.data), self.dialect
        cells = [stored.cell(name, domain) for name, domain in scan.columns]
        cleaned = [sql_cells.clean(d, *cell, domain) for cell, (_, domain) in zip(cells, scan.columns, strict=True)]
        items = [f"{cell.alias} AS c{i}" for i, cell in enumerate(cleaned)]
        columns = {name: replace(cleaned[i], alias=f"c{i}") for i, (name, _) in enumerate(scan.columns)}
        if isinstance(plan, Bound):
            query, size = self._bounded(plan, stored, items)
        else:
            items += [f"{cell} AS raw{i}" for i, (cell, _) in enumerate(cells)]
            for i, (name, domain) in enumerate(scan.columns):
                columns[name] = replace(columns[name], raw=Raw(f"raw{i}", cells[i][1], domain))
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
            sql_cells.text(self.dialect, *stored.cell(plan.owners.on))
            self._claims(plan.owners)

    def _size(self, stored: Stored) -> int:
        if stored.size is None:
            stored.size = self.count(stored.table)
        return stored.size

    def _bounded(self, plan: Bound, stored: Stored, items: list[str]) -> tuple[str, int]:
        """The rows of each person that stay, with `p`, whose they are, and weights; and at most how many there are.

        In the hash columns are by the order of names.
        """
        source = self._rows_of_persons(plan)
        names = [f"c{i}" for i in range(len(items))]
        if plan.most is None:
            rows = f"SELECT {', '.join([*items, 'q'])} FROM {subquery(source)}{persons.not_null(['q'])}"
        else:
            hashing = self._hashed_cells(stored, sorted(dict(plan.scan.columns)))
            added = [f"{cell.alias} AS y{i}" for i, cell in enumerate(hashing)]
            whole = [Physical(f"y{i}", cell.whole) for i, cell in enumerate(hashing)]
            rows = f"SELECT {', '.join([*items, *added, 'q'])} FROM {subquery(source)}"
            rows = persons.rows_per_key(
                ", ".join([*names, "q"]), rows, ["q"], whole, plan.most, weighted=plan.weighted, dialect=self.dialect
            )
        view = self.keep(rows)
        columns = ", ".join([*names, *["w"] * plan.weighted, f"{self.dialect.as_text('q')} AS p"])
        size = self._size(stored) if plan.owners is None else self.count(view)
        return f"SELECT {columns} FROM {view}", size

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
        on = sql_cells.text(self.dialect, *stored.cell(owners.on))
        rows = subquery(f"SELECT *, {on} AS k FROM {stored.table}").removesuffix("s")
        claims = subquery(self._claims(owners)).removesuffix("s")
        return f"SELECT t.*, o.q FROM {rows}t JOIN {claims}o ON t.k = o.k"

    def _claims(self, owners: Owners) -> str:
        """Every person `q` with every value `k` that a row of theirs has, once."""
        key = sql_cells.text(self.dialect, *self.stored(owners.table.scan.data).cell(owners.key))
        return f"SELECT DISTINCT q, {key} AS k FROM {subquery(self._rows_of_persons(owners.table))}"
