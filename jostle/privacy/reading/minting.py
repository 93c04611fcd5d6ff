"""Creates the handles of data that a program declares, opens or simulates. Only `privacy` creates handles.

A private handle belongs to a declared source. A public handle is of data that belong to no private source of the
session, which is tested here with the register. A simulated source has seeded noise and its own budget, and is used
with public data only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.accounting.amounts import Amount, Unit
from jostle.accounting.definitions import Measure
from jostle.diagnostics import refuse
from jostle.lazy import Ints
from jostle.plan.plan import Bound, Column, Domain, Known, Listed, Owners, Plan, RowExpr, Scan, filled
from jostle.plan.schemas import BY_KINDS, Facts, with_period
from jostle.privacy.kernel.exposures import Exposure, Exposures, Handle, Source
from jostle.privacy.kernel.handles import Cube, Origin, Table, Vectors, partition_label
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.reading.public_data import PublicData, need_public
from jostle.records import replace
from jostle.source import Span

Schema = tuple[tuple[str, Domain], ...]


def private_table(
    source: Source, key: str, schema: Schema, never: Sequence[str] = (), unit: Unit | None = None,
    owners: Owners | None = None, facts: Facts = BY_KINDS,
) -> Table:  # fmt: skip
    """A table of a source: its described columns, where those in `never` are never missing. `unit` is the table's own,
    and `owners` tells whose a row is. With periods, a last column `period` has the first day of the row's period."""
    unit, scan = unit or source.unit, Scan(key, schema)
    by: tuple[str | tuple[str, str], ...] = () if owners is not None else unit.columns
    each, _, day = unit.each.partition(" of ")
    by = (*by, (day, each)) if each and by and day not in by else by
    plan: Plan = Bound(scan, by, unit.rows, unit.weighted, owners) if unit.columns else scan
    plan, origin = filled(plan, schema, never), Origin(key, schema, never, unit, owners)
    plan, schema = with_period(plan, schema, day, each, facts) if each else (plan, schema)
    table = Table((Exposure.of(source, unit),), plan, schema, origin=origin, facts=facts)
    periods = partition_label(table, Column(schema[-1][0]), exact=True) if each else None
    if periods != (source.periods or periods):  # a person's rows in a period would differ
        raise refuse("DataError", f"`{source.name}` has these rows in other periods", help="describe both alike")
    source.periods = periods
    return table


def private_cube(data: PublicData, source: Source, cells: Ints, names: Sequence[str]) -> Cube:
    """Private counts. Each declaration is a new origin, since a row may be in another cell of another declaration."""
    return Cube((Exposure.of(source, source.unit),), data.keep(cells), tuple(names), cells.shape, origin=object())


def public_table(
    data: PublicData, key: str, schema: Schema, identity: object, span: Span | None, never: Sequence[str] = (),
    facts: Facts = BY_KINDS,
) -> Table:  # fmt: skip
    """A public table. Refused if `identity` belongs to a private source."""
    data.read_publicly(identity, span)
    plan = filled(Scan(key, schema), schema, never)
    return Table((), plan, schema, origin=Origin(key, schema, never), facts=facts)


def listed_table(schema: Schema, rows: Sequence[tuple[Any, ...]], facts: Facts = BY_KINDS) -> Table:
    """A public table of rows that are written in a program. No source is read."""
    return Table((), Listed(schema, tuple(rows)), schema, facts=facts)


def known_table(table: Table, schema: Schema) -> Table:
    """A public table with a narrower schema, which its rows satisfy."""
    need_public(table, "rows", "measure them")
    return replace(table, plan=Known(table.plan, schema), schema=schema, origin=None)


def public_cube(
    data: PublicData, cells: Ints, names: Sequence[str], identity: object = None, span: Span | None = None
) -> Cube:
    """Public counts. Refused if `identity` belongs to a private source."""
    if identity is not None:
        data.read_publicly(identity, span)
    return Cube((), data.keep(cells), tuple(names), cells.shape, origin=identity)


def row_vectors(
    table: Table, columns: Sequence[tuple[str, RowExpr, float, float]], radius: float, norm: str
) -> Vectors:
    """The rows of a table as vectors within a ball: for each coordinate a name, an expression, a centre and a scale."""
    names, exprs, centres, scales = zip(*columns, strict=True)
    return Vectors(table.exposures, table.plan, exprs, names, centres, scales, radius, norm)


def simulated_source(amount: Amount, noise: Noise) -> Source:
    """A source of simulations, with a budget of `amount` and seeded noise."""
    kind = "zcdp" if amount.unit == "rho" else "basic" if amount.delta else "pure"
    return Source("simulated", Measure(kind, amount), Unit(), None, noise, simulated=True)


def simulated(handle: Any, source: Source, stability: int) -> Any:
    """A public handle with the exposure of a simulated source."""
    if not isinstance(handle, Handle) or handle.private or not source.simulated:
        raise refuse("PrivateValue", "only public data are simulated with")
    return replace(handle, exposures=(Exposure(source, (), stability),))


def exposed(source: Source) -> Exposures:
    """The exposures of a source itself, for opening an allotment."""
    return (Exposure(source),)
