"""Joins of private tables without a bound: by how much one unit may change them, from how often keys are there.

The tables T₀, T₁, … of a select meet one after the other where keys are equal, and a row may meet any number. How many
rows of the join one unit of a source changes depends on the rows: at most `moves`, a sum of products of *frequencies*,
the most rows of a table that have one value of some columns. These are private numbers. One unit of a source s raises
the frequency of a table by at most k_s, the rows of the table that the unit can change, and that is all that
`measurements.smooth` goes by.

*Argument* (docs/privacy/elastic.md). Let L be the rows that T₀ … T_{i−1} make, T the next table, and let them change by
ΔL and ΔT, rows counted with their signs. A join is linear in either side: it changes by ΔL ⋈ T + L ⋈ ΔT + ΔL ⋈ ΔT, at
most |ΔL|·f(T, its keys) + f(L, its keys)·|ΔT| + |ΔL|·|ΔT| rows. The frequency of columns in a join is at most that of
those of the left side, times that of the keys and the other columns in the right one; where none is of the left side,
that of those of the right one times that of the keys in the left one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.plan.plan import Column, Derive, Filter, Join, Listed, Plan
from jostle.plan.schemas import schema_of
from jostle.privacy.kernel.exposures import Exposures, join_exposures
from jostle.privacy.kernel.handles import Table
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.transformations.joins import check_keys
from jostle.privacy.transformations.known import with_known_domains
from jostle.records import replace

MOST_TABLES = 6

Place = tuple[int, str]
"""A column of the tables that are joined: which table, and the column's name there."""


class Side(Struct, frozen=True):
    """A table of such a join, and what it is joined with those before it on: their columns, and its own."""

    plan: Plan
    exposures: Exposures
    mine: tuple[Place, ...] = ()
    theirs: tuple[str, ...] = ()


class Frequency(Struct, frozen=True):
    """The most rows of a table that have one value of these columns, and how far one unit of each source raises it."""

    plan: Plan
    columns: tuple[Column, ...]
    grows: tuple[int, ...]


class Product(Struct, frozen=True):
    """So many times the product of frequencies, by their places in the list of them."""

    times: int
    factors: tuple[int, ...] = ()

    def by(self, times: int, factors: tuple[int, ...] = ()) -> Product:
        return Product(self.times * times, self.factors + factors)


@dataclass(frozen=True, eq=False)
class FreeJoin(Table):
    """Rows of several private tables that met without a bound. Its own exposures have none: the door refuses them.

    `paid` are those that a measurement by frequencies is charged to.
    """

    joined: Plan | None = None
    sides: tuple[Side, ...] = ()
    paid: Exposures = ()

    @property
    def filtered(self) -> bool:
        """Whether its rows are those that met, each at most once: filtered, with columns of their own, in groups."""
        plan = self.plan
        while plan != self.joined and isinstance(plan, Filter | Derive | Join):
            if isinstance(plan, Join) and not isinstance(plan.right, Listed):
                break
            plan = plan.left if isinstance(plan, Join) else plan.source
        return plan == self.joined

    def moves(self) -> tuple[list[Frequency], list[list[Product]]]:
        """Frequencies, and for each source of `paid` the products that add up to the rows that one unit may change."""
        frequencies = _Frequencies(self.sides, self.paid)
        moves = [frequencies.moved(source) for source in range(len(self.paid))]
        return frequencies.found, moves


def free_join(data: PublicData, left: Table, right: Table, on: Sequence[tuple[str, str]]) -> FreeJoin:
    """All pairs of rows of both sides that agree on pairs of columns, a left one and a right one each."""
    check_keys(left, right, on)
    if left.weighted or right.weighted:
        raise refuse(
            "TypeError", "rows that have weights are joined with a public table, without `up to`",
            help="a row that meets many would weigh as much each time: leave `weighted` out",
        )  # fmt: skip
    left, right = (side if side.private else with_known_domains(data, side) for side in (left, right))
    sides = left.sides if isinstance(left, FreeJoin) else (Side(left.plan, _bounded(left.exposures)),)
    if len(sides) >= MOST_TABLES:
        raise refuse("TypeError", f"a join without a bound is of {MOST_TABLES} tables at most")
    mine, theirs = tuple(name for name, _ in on), tuple(name for _, name in on)
    places = _places(sides)
    sides = (*sides, Side(right.plan, _bounded(right.exposures), tuple(places[name] for name in mine), theirs))
    plan = Join(left.plan, right.plan, mine, theirs=() if mine == theirs else theirs)
    paid = join_exposures([side.exposures for side in sides], [1] * len(sides))
    unbounded = tuple(replace(exposure, rows=None) for exposure in paid)
    return FreeJoin(unbounded, plan, tuple(schema_of(plan).items()), joined=plan, sides=sides, paid=paid)


def _bounded(exposures: Exposures) -> Exposures:
    """Refuses rows of which one unit may have any number."""
    for exposure in exposures:
        exposure.bounded()
    return exposures


def _places(sides: Sequence[Side]) -> Mapping[str, Place]:
    """Where each column of the join is from: the first table that has one of that name."""
    places: dict[str, Place] = {}
    for at, side in enumerate(sides):
        for name in schema_of(side.plan):
            places.setdefault(name, (at, name))
    return places


class _Frequencies:
    """The frequencies that are asked for, each once."""

    def __init__(self, sides: Sequence[Side], paid: Exposures) -> None:
        self.found: list[Frequency] = []
        self._sides = sides
        self._rows = [[_rows_of(side, at) for side in sides] for at in (exposure.source for exposure in paid)]

    def moved(self, source: int) -> list[Product]:
        """The rows of the join that one unit of the source may change."""
        first, *others = self._rows[source]
        moved = [Product(first)] if first else []
        for at, rows in enumerate(others, 1):
            side = self._sides[at]
            beside = [product.by(1, (self._of(at, side.theirs),)) for product in moved]
            if rows:
                beside.append(Product(rows, self._in_join(at - 1, side.mine)))
                beside += [product.by(rows) for product in moved]
            moved = beside
        return moved

    def _in_join(self, last: int, places: Iterable[Place]) -> tuple[int, ...]:
        """Of columns of the join of the tables up to the `last`: factors whose product is no less."""
        own = tuple(name for at, name in places if at == last)
        if last == 0:
            return (self._of(0, own),)
        before, side = tuple(place for place in places if place[0] < last), self._sides[last]
        if before:
            return (*self._in_join(last - 1, before), self._of(last, (*side.theirs, *own)))
        return (self._of(last, own), *self._in_join(last - 1, side.mine))

    def _of(self, at: int, names: Iterable[str]) -> int:
        """The place of a table's frequency among those that are found."""
        columns = tuple(Column(name) for name in sorted(set(names)))
        wanted = Frequency(self._sides[at].plan, columns, tuple(rows[at] for rows in self._rows))
        if wanted not in self.found:
            self.found.append(wanted)
        return self.found.index(wanted)


def _rows_of(side: Side, source: object) -> int:
    """How many rows of a table one unit of a source can change."""
    return sum(exposure.bounded() for exposure in side.exposures if exposure.source is source)
