"""The table of the rows of persons that stay, made part by part, so that memory does not grow with the rows.

Persons are dealt into parts by DuckDB's hash of whose a row is: all rows of a person are in one part, so that what the
parts are decides nothing about which of them stay. A part is read, its rows are chosen in arrays (`bounding`), and
those that stay are added to a table of the database, which DuckDB spills where it does not fit in memory. A part of
which too much was read is halved. Where arrays cannot decide, or rows have weights, the SQL of `sql.persons` chooses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from jostle.diagnostics import Refusal
from jostle.engine.sql import persons
from jostle.engine.sql.cells import whole_or_text
from jostle.engine.sql.hashes import BITS, counted_as, hashes_of
from jostle.speed import bounding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from jostle.engine.duckdb.raw import Raw
    from jostle.engine.sql.dialect import Dialect
    from jostle.engine.sql.rows import Physical
    from jostle.plan.plan import Bound


class Tables(Protocol):
    """What is asked of a database (`DuckDb`)."""

    dialect: Dialect

    def fetch(self, query: str) -> list[tuple[Any, ...]]: ...

    def batches(self, query: str, size: int, label: str = ...) -> Iterator[Any]: ...

    def keep(self, query: str, raw: Raw, table: str | None = None) -> str: ...

    def registered(self, rows: Any) -> AbstractContextManager[str]: ...


HALVINGS = 4  # of a part whose rows do not fit, before SQL chooses


class Bounding:
    """What chooses the rows of a plan, at most `most` of each person; `items` of them are kept, and weights `w`."""

    def __init__(self, engine: Tables, plan: Bound, most: int, raw: Raw, items: list[str]) -> None:
        self._engine, self._plan, self._most, self._raw, self._items = engine, plan, most, raw, items
        self._dialect = dialect = engine.dialect
        # by the order of names, in which the hash has them
        self._cells = [whole_or_text(dialect, *raw.cell(name)) for name in sorted(dict(plan.scan.columns))]
        self._raw_names = {raw.cell(name)[0] for name, _ in plan.scan.columns}
        owner = raw.cell(plan.by[0])[0] if plan.owners is None and len(plan.by) == 1 else ""
        whole = any(cell.whole and cell.alias == owner for cell in self._cells)
        self._owner = owner if whole else "q"  # the column that has `q`, which is not read twice
        self._table: str | None = None

    def table(self, source: str, size: int) -> str:
        """The name of the table for a source of `size` rows, with the raw cells and `q`, whose a row is."""
        parts = max(1, -(-size // bounding.MOST_ROWS))
        try:
            for part in range(parts):
                self._choose(source, part, parts, HALVINGS)
        except (Refusal, KeyboardInterrupt):
            if self._table is not None:
                self._engine.fetch(f"DROP TABLE IF EXISTS {self._table}")
            raise
        return str(self._table)

    def _choose(self, source: str, part: int, parts: int, halvings: int) -> None:
        rows = source if parts == 1 else f"SELECT * FROM ({source}) WHERE hash(q) % {parts} = {part}"
        read = None if self._plan.weighted else self._read(rows)
        if read is None and halvings and not self._plan.weighted:
            self._choose(source, part, 2 * parts, halvings - 1)
            self._choose(source, part + parts, 2 * parts, halvings - 1)
        elif not read or not self._chosen_in_arrays(read):
            weighted = self._plan.weighted
            chosen = persons.rows_per_key(
                "*", rows, ["q"], self._cells, self._most, weighted=weighted, dialect=self._dialect
            )
            self._keep(f"SELECT {', '.join([*self._items, *['w'] * weighted])} FROM ({chosen})")

    def _keep(self, query: str) -> None:
        self._table = self._engine.keep(query, self._raw, self._table)

    def _read(self, rows: str) -> list[Any] | None:
        """Batches of raw cells, of `q`, and of the numbers `x` that the others count as; None where they do not fit."""
        items = self._raw_names | {self._owner}
        others = [(i, cell) for i, cell in enumerate(self._cells) if not self._as_it_is(cell)]
        items |= {f"{counted_as(cell, self._dialect)} AS x{i}" for i, cell in others}
        query = f"SELECT {', '.join(sorted(items))} FROM ({rows}){persons.known(['q'])}"
        return bounding.gathered(self._engine.batches(query, bounding.BLOCK, self._raw.label))

    def _as_it_is(self, cell: Physical) -> bool:
        """Whether a raw cell is the whole number that it counts as."""
        return cell.whole and cell.alias in self._raw_names

    def _chosen_in_arrays(self, read: list[Any]) -> bool:
        """Whether the hashes could decide; what stays is kept then."""
        import pyarrow as pa

        numbers = [cell.alias if self._as_it_is(cell) else f"x{i}" for i, cell in enumerate(self._cells)]

        def hashes(part: Any) -> Any:
            return hashes_of([bounding.numbers_of(part[name]) for name in numbers], len(part))

        table = pa.Table.from_batches(read)
        if self._owner != "q":
            table = table.append_column("q", table[self._owner])
        stays = bounding.staying(table, self._most, [*numbers, "q"], hashes, BITS)
        if stays is None:
            return False
        with self._engine.registered(table.append_column("stays", [stays])) as name:
            self._keep(f"SELECT {', '.join(self._items)} FROM {name} WHERE stays")
        return True
