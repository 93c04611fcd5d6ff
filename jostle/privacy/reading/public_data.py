"""Exact answers about public data, and the opening of data sets: what the rest of the system sees of the engine.

Every question refuses private handles, and nothing here is charged. The exceptions are public facts about private data:
the number of rows of a source that declares `public size`, in all and by its declared groups.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.diagnostics import refuse
from jostle.engine.base import Engine, LruCache, Opened
from jostle.lazy import Array, Floats, Ints, np
from jostle.plan.plan import Column, Count, Derive, Domain, Exact, Filter, Key, Plan, RowExpr, Scan, inputs, unfilled
from jostle.plan.schemas import schema_of
from jostle.privacy.kernel.exposures import Handle, Register
from jostle.privacy.kernel.handles import Counted, Cube, Table, Vectors
from jostle.records import replace
from jostle.source import Span

if TYPE_CHECKING:
    from jostle.engine.files import OpenFile


T = TypeVar("T")
Schema = tuple[tuple[str, "Domain"], ...]
STORED = 128 * 2**20


class PublicData:
    """Public tables, cubes and vectors, read exactly, and how data sets are opened."""

    def __init__(
        self, engine: Engine, keep: Callable[[Ints], Counted], cells: Callable[[Cube], Ints], register: Register
    ) -> None:
        """`keep` and `cells` are methods of the reader, which only the kernel holds."""
        self._engine, self._keep, self._cells, self._register = engine, keep, cells, register
        self._rows: LruCache[tuple[dict[str, Any], Floats]] = LruCache(STORED)
        self._remembered: LruCache[Any] = LruCache(STORED)

    # Opening -----------------------------------------------------------------------------------------

    @property
    def remote(self) -> str:
        """The kind of source that names data on the engine's server; empty for a local engine."""
        return self._engine.remote

    @property
    def forks(self) -> bool:
        """Whether a forked process may ask about public data."""
        return self._engine.capabilities.forks

    @property
    def objects(self) -> Any:
        """The names and identities of opened data in memory (`readers.filesets`)."""
        return self._engine.objects

    def file(self, path: str | os.PathLike[str]) -> OpenFile:
        """The open file at a path."""
        return self._engine.file(path)

    def open(self, origin: Any, *, public: bool, names: tuple[str, ...] = ()) -> Opened:
        """Opens a data set, as `Engine.open` describes."""
        return self._engine.open(origin, public=public, names=names)

    def rest(self) -> None:
        """Tells the engine that no question follows for a while."""
        self._engine.rest()

    def read_publicly(self, identity: Hashable, span: Span | None) -> None:
        """Registers data as public. Refused if a private source has their identity."""
        self._register.read_publicly(identity, span)

    def guess(self, data: Opened, span: Span | None) -> Schema:
        """Domains for a public data set without a description. Refused if a private source has its identity."""
        self.read_publicly(data.identity, span)
        schema: Schema | None = self._remembered.get(data.key)
        return self._remembered.put(data.key, self._engine.guess(data.key)) if schema is None else schema

    def stamps(self, handle: Table | Vectors) -> list[str]:
        """For each data set that a public handle reads a text that changes when its cells do."""
        need_public(handle, "rows", "measure them")
        return [self._engine.stamp(key) for key in [scan.data for scan in _below(handle.plan)]]

    # Cubes and vectors -------------------------------------------------------------------------------

    def keep(self, cells: Ints) -> Counted:
        """Stores an array of counts for as long as the returned key lives."""
        return self._keep(cells)

    def cells(self, cube: Cube) -> Ints:
        """The exact counts of a public cube, in its shape, not to be modified."""
        need_public(cube, "counts", "measure them")
        return self._cells(cube)

    def vectors(self, rows: Vectors) -> Floats:
        """The rows of public vectors (n, d), in the units of the columns."""
        need_public(rows, "rows", "sum them with noise")
        read = list(self._engine.vectors(rows.plan, rows.exprs, 2**16))
        points = np.concatenate(read) if read else np.zeros((0, len(rows.names)))
        return np.asarray(points * np.array(rows.scales) + np.array(rows.centres))

    # Tables ------------------------------------------------------------------------------------------

    def records(self, table: Table) -> list[tuple[Any, ...]]:
        """The rows of a public table, in their order: numbers, texts, booleans, dates, times, None."""
        need_public(table, "rows", "measure them")
        return self._engine.records(table.plan)

    def size(self, table: Table) -> int:
        """The number of rows of a public table."""
        if table.private:
            name = table.exposures[0].source.name
            raise refuse("PrivateValue", f"how many rows `{name}` has is private", help="count them: `select count(*)`")
        return self._engine.rows(table.plan)

    def rows(self, table: Table, code: Callable[[list[Any]], T]) -> tuple[dict[str, T], Floats]:
        """The distinct rows, a column each as `code` returns it, and the number of times that each occurs.

        Stored, since training reads the same few tables often: pass one `code` always.
        """
        need_public(table, "rows", "measure them")
        rows = self._rows.get(table.plan)
        if rows is None:
            names = list(table.domains)
            columns, counts = self._engine.different(table.plan, names)
            coded = {n: code(column) for n, column in zip(names, columns, strict=True)}
            size = 8 * len(counts) * (len(names) + 1)
            rows = self._rows.put(table.plan, (coded, np.array(counts, dtype=float)), size)
        return rows

    def exact(
        self, table: Table, keys: tuple[Key | RowExpr, ...], terms: tuple[Exact, ...]
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Exact aggregates of a public table, as `Engine.exact` describes."""
        need_public(table, "rows", "measure them")
        return self._engine.exact(table.plan, keys, terms)

    def remembered(self, table: Table, work: Callable[[], T], size: int = 0) -> T:
        """The result of `work`, a function of a public table alone, cached with a weight of `size` bytes."""
        need_public(table, "rows", "measure them")
        value: T | None = self._remembered.get(table.plan)
        return self._remembered.put(table.plan, work(), size) if value is None else value

    # Public sizes of private sources -----------------------------------------------------------------

    def rows_of_scan(self, table: Table, scan: Scan) -> int:
        """The number of rows of a scan below a table. The table, or its source's size, must be public."""
        if not all(e.unit.public_size for e in table.exposures) or scan not in _below(table.plan):
            raise refuse("PrivateValue", f"the size of `{table.exposures[0].source.name}` is not public")
        return self._engine.rows(scan)

    def group_sizes(self, table: Table, keys: tuple[Key, ...]) -> Array:
        """The number of rows, in all or by columns with public groups, of a source whose size is public.

        *Argument.* Neighbours differ in one row, and the row that replaces it has the same cells in these columns. So
        its values there, which follow from the cells, are the same under any description (also for columns that are
        never missing), and so is every count of rows by these values. Nothing else of such a source is public: filtered
        or joined rows, and groups by computed values, may differ in number.
        """
        if not sizes_are_public(table, [key.expr for key in keys]):
            raise refuse("PrivateValue", f"the groups of `{table.exposures[0].source.name}` are not public")
        self._register.need_open(table.exposures)
        (counts,) = self._engine.group(table.plan, keys, (Count(),))
        return counts


def as_read(table: Table) -> Table:
    """The table without its filters and derived columns, but with the replacements of missing cells."""
    plan = table.plan
    while isinstance(plan, Filter | Derive) and not isinstance(unfilled(plan), Scan):
        plan = plan.source
    return replace(table, plan=plan, schema=tuple(schema_of(plan, table.facts).items()), origin=None)


def sizes_are_public(table: Table, keys: Sequence[RowExpr | None]) -> bool:
    """Whether counts of a private table by these keys are public (`PublicData.group_sizes`)."""
    for unit in [exposure.unit for exposure in table.exposures]:
        if not unit.public_size or not all(isinstance(key, Column) and key.name in unit.groups for key in keys):
            return False
    return table.private and isinstance(unfilled(table.plan), Scan)


def need_public(handle: Handle, what: str, help: str) -> None:
    """Refuses a private handle."""
    if handle.private:
        name = handle.exposures[0].source.name
        raise refuse("PrivateValue", f"{what} of `{name}` are private and cannot be read", help=help)


def _below(plan: Plan) -> list[Scan]:
    return [plan] if isinstance(plan, Scan) else [scan for part in inputs(plan) for scan in _below(part)]
