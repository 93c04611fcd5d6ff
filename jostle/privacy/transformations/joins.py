"""Joins and unions, each with its stability: by how many rows k changed rows of a table change the result.

Rows meet where their keys are equal; a side of a `left`, `right` or `full` join keeps its rows that meet none as well.
The proofs are in docs/privacy/transformations.md, and in docs/privacy/elastic.md for joins without a bound.

* *With a public table*, f ≥ 1 the most rows that one key has there: k·f where rows of the private side, or none, are
  kept; k·2f where rows of the public side are.
* *Two private sides* need `up to m`: k·2m rows for each side; if a source is on both, the sums add. *A table with
  itself*, by the same columns on both sides: k·(4m − 2).
* *Weights.* A join with a public table gives each copy of a row its weight, and a row that met none its own. Refused
  are `up to`, and what keeps public rows beside rows with weights.
* *Private tables without a bound* (`FreeJoin`): one unit of a source changes at most `moves` rows, a sum of products of
  *frequencies*, the most rows of a table that have one value of some columns.
* *A union*: Σ kᵢ over the tables that read a source, at the common prefix of their paths. Weights are kept and add up;
  a row without one weighs 1.
* *The common table* of several, below their filters and derived columns, is exposed within every agent of theirs, at
  their common path up to the first part outside of which it has rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from msgspec import Struct

from jostle.accounting.amounts import Path
from jostle.diagnostics import refuse
from jostle.plan import plan as p
from jostle.plan.kinds import kind_of
from jostle.plan.schemas import schema_of, united_schema
from jostle.privacy.kernel.exposures import Exposure, Exposures
from jostle.privacy.kernel.handles import Table
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.transformations.transform import need_column
from jostle.records import replace


def join_exposures(sides: Iterable[Exposures], factors: Iterable[int]) -> Exposures:
    """Of something made from several handles: one exposure a source, at the common prefix, stabilities summed."""
    joined: dict[int, Exposure] = {}
    for side, factor in zip(sides, factors, strict=True):
        for new in side:
            nothing = replace(new, rows=0, agents=(), weight=None if new.weight is None else 0)
            old = joined.get(id(new.source), nothing)
            rows = None if old.rows is None or new.rows is None else old.rows + new.rows * factor
            weight = None if old.weight is None or new.weight is None else old.weight + new.weight * factor
            agents = tuple(dict.fromkeys((*old.agents, *new.agents)))
            declared = new.declared if old.declared == new.declared else replace(new.unit, at_most=None)  # of one alone
            path = common_prefix(old.path, new.path)
            joined[id(new.source)] = Exposure(new.source, path, rows, agents, weight, declared=declared)
    return tuple(joined.values())


def common_prefix(a: Path, b: Path) -> Path:
    return tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def join(
    data: PublicData, left: Table, right: Table, on: Sequence[tuple[str, str]], most: int | None, kind: str = "inner"
) -> Table:
    """Rows of both sides that agree on pairs of columns, a left one and a right one each.

    `kind` is `inner`, or says of which side rows without a partner are kept: `left`, `right` or `full`.
    """
    check_keys(left, right, on)
    _check_sides(left, right, on, most, kind)
    mine, theirs = tuple(name for name, _ in on), tuple(name for _, name in on)
    plan = p.Join(left.plan, right.plan, mine, most, theirs=() if mine == theirs else theirs, kind=kind)
    return Table(_exposures(data, left, right, plan), plan, _schema(plan, left), facts=left.facts)


def _schema(plan: p.Plan, like: Table) -> tuple[tuple[str, p.Domain], ...]:
    """The columns of a plan, with what is known of them as of those of a table."""
    return tuple(schema_of(plan, like.facts).items())


def _check_sides(left: Table, right: Table, on: Sequence[tuple[str, str]], most: int | None, kind: str) -> None:
    """Refuses private sides without a bound, and weights beside a bound or public rows without a partner."""
    names = ", ".join(mine if mine == theirs else f"{mine} = {theirs}" for mine, theirs in on)
    if left.private and right.private and most is None:
        help = f"write `join … on {names} up to 3`, or for a count `with epsilon 1 delta 1e-6 via smooth`"
        if _of_same_persons(left, right):
            help = f"write `join … on person, {names}`: each person's rows meet their own; or `on {names} up to 3`"
        raise refuse("TypeError", "a join of two private sides needs a bound", help=help)
    if (left.weighted or right.weighted) and (most or (left.private and right.private)):
        raise refuse(
            "TypeError", "rows that have weights are joined with a public table, without `up to`",
            help="a row that is pushed out of the join may weigh more than the one that came in: leave `weighted` out",
        )  # fmt: skip
    if (left.weighted and kind in ("right", "full")) or (right.weighted and kind in ("left", "full")):
        side = "left" if left.weighted else "right"
        raise refuse(
            "TypeError", "a public row that meets none has no weight beside rows that have one",
            help=f"write `join`, or `{side} join`: the rows that have weights may stay without a partner",
        )  # fmt: skip


def _exposures(data: PublicData, left: Table, right: Table, plan: p.Join) -> Exposures:
    """What a join depends on, and by how many rows, as above."""
    most, mine, theirs = plan.most, plan.on, plan.theirs or plan.on
    sides = (right, theirs, plan.kind in ("right", "full")), (left, mine, plan.kind in ("left", "full"))
    factors = [2 * most if most else _factor(data, *side) for side in sides]
    exposures = join_exposures((left.exposures, right.exposures), factors)
    if most and left.exposures == right.exposures and made_of(left.plan, mine) == made_of(right.plan, theirs):
        return join_exposures((left.exposures,), (4 * most - 2,))
    return exposures


def _of_same_persons(left: Table, right: Table) -> bool:
    """Whether a person's rows of one side can be joined with their own of the other."""
    sources = {id(exposure.source) for exposure in (*left.exposures, *right.exposures)}
    return len(sources) == 1 and all(p.has_persons(side.plan) and not side.weighted for side in (left, right))


def check_keys(left: Table, right: Table, on: Sequence[tuple[str, str]]) -> None:
    """Refuses key columns that are not there, or of two kinds."""
    for mine, theirs in on:
        need_column(left.domains, mine)
        need_column(right.domains, theirs)
        if kind_of(p.Column(mine), left.domains) != kind_of(p.Column(theirs), right.domains):
            name = f"`{mine}`" if mine == theirs else f"`{mine} = {theirs}`"
            raise refuse("TypeError", f"{name} is a number on one side of the join and a text on the other")


def made_of(plan: p.Plan, names: tuple[str, ...]) -> tuple[p.Plan, tuple[str, ...]]:
    """What a plan is made of by filters and derived columns, and what these columns of it are called there.

    A row of the plan is one of those rows, and its columns have the same cells.
    """
    while isinstance(plan, p.Filter | p.Derive):
        if isinstance(plan, p.Derive):
            columns = [dict(plan.columns)[name] for name in names]
            same = tuple(column.name for column in columns if isinstance(column, p.Column))
            if len(same) < len(names):
                break
            names = same
        plan = plan.source
    return plan, names


def _factor(data: PublicData, table: Table, on: Sequence[str], outer: bool) -> int:
    """By how many rows one row changes a join with a public side, whose rows without a partner may stay (`outer`): the
    most rows of one key, a public number (1 where the side is private, and unused), or twice that."""
    if table.private:
        return 1
    plan = p.GroupRows(
        table.plan, False, tuple((f"k{i}", p.Column(name)) for i, name in enumerate(on)), (("n", p.Count()),)
    )
    groups = replace(table, plan=plan, schema=_schema(plan, table), origin=None)

    def most_of_one_key() -> int:
        ((most,),) = data.exact(groups, (), (p.Exact("max", p.Column("n")),))[1]
        return int(most or 1)

    return data.remembered(groups, most_of_one_key) * (2 if outer else 1)


MOST_TABLES = 6

Place = tuple[int, str]
"""A column of the tables that are joined: which table, and the column's name there."""


class Side(Struct, frozen=True):
    """A table of such a join, and what it is joined with those before it on: their columns, and its own."""

    plan: p.Plan
    exposures: Exposures
    mine: tuple[Place, ...] = ()
    theirs: tuple[str, ...] = ()


class Frequency(Struct, frozen=True):
    """The most rows of a table that have one value of these columns, and how far one unit of each source raises it."""

    plan: p.Plan
    columns: tuple[p.Column, ...]
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

    joined: p.Plan | None = None
    sides: tuple[Side, ...] = ()
    paid: Exposures = ()

    @property
    def filtered(self) -> bool:
        """Whether its rows are those that met, each at most once: filtered, with columns of their own, in groups."""
        plan = self.plan
        while plan != self.joined and isinstance(plan, p.Filter | p.Derive | p.Join):
            if isinstance(plan, p.Join) and not isinstance(plan.right, p.Listed):
                break
            plan = plan.left if isinstance(plan, p.Join) else plan.source
        return plan == self.joined

    def moves(self) -> tuple[list[Frequency], list[list[Product]]]:
        """Frequencies, and for each source of `paid` the products that add up to the rows that one unit may change."""
        frequencies = _Frequencies(self.sides, self.paid)
        moves = [frequencies.moved(source) for source in range(len(self.paid))]
        return frequencies.items, moves


def free_join(left: Table, right: Table, on: Sequence[tuple[str, str]]) -> FreeJoin:
    """All pairs of rows of both sides that agree on pairs of columns, a left one and a right one each."""
    check_keys(left, right, on)
    if left.weighted or right.weighted:
        raise refuse(
            "TypeError", "rows that have weights are joined with a public table, without `up to`",
            help="a row that meets many would weigh as much each time: leave `weighted` out",
        )  # fmt: skip
    sides = left.sides if isinstance(left, FreeJoin) else (Side(left.plan, _bounded(left.exposures)),)
    if len(sides) >= MOST_TABLES:
        raise refuse("TypeError", f"a join without a bound is of {MOST_TABLES} tables at most")
    mine, theirs = tuple(name for name, _ in on), tuple(name for _, name in on)
    places = _places(sides)
    sides = (*sides, Side(right.plan, _bounded(right.exposures), tuple(places[name] for name in mine), theirs))
    plan = p.Join(left.plan, right.plan, mine, theirs=() if mine == theirs else theirs)
    paid = join_exposures([side.exposures for side in sides], [1] * len(sides))
    unbounded = tuple(replace(exposure, rows=None) for exposure in paid)
    return FreeJoin(unbounded, plan, _schema(plan, left), facts=left.facts, joined=plan, sides=sides, paid=paid)


def _bounded(exposures: Exposures) -> Exposures:
    """Refuses rows of which one unit may have any number."""
    for exposure in exposures:
        exposure.bounded()
    return exposures


def _places(sides: Sequence[Side]) -> Mapping[str, Place]:
    """Where each column of the join is from: the first table that has one of that name."""
    return {name: (at, name) for at, side in reversed([*enumerate(sides)]) for name in schema_of(side.plan)}


class _Frequencies:
    """The frequencies that are asked for, each once."""

    def __init__(self, sides: Sequence[Side], paid: Exposures) -> None:
        self.items: list[Frequency] = []
        self._sides = sides
        self._rows = [[_rows_of(side, at) for side in sides] for at in (exposure.source for exposure in paid)]

    def moved(self, source: int) -> list[Product]:
        """The rows of the join that one unit of the source may change."""
        first, *others = self._rows[source]
        products = [Product(first)] if first else []
        for at, rows in enumerate(others, 1):
            side = self._sides[at]
            beside = [product.by(1, (self._of(at, side.theirs),)) for product in products]
            if rows:
                beside.append(Product(rows, self._in_join(at - 1, side.mine)))
                beside += [product.by(rows) for product in products]
            products = beside
        return products

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
        columns = tuple(p.Column(name) for name in sorted(set(names)))
        frequency = Frequency(self._sides[at].plan, columns, tuple(rows[at] for rows in self._rows))
        if frequency not in self.items:
            self.items.append(frequency)
        return self.items.index(frequency)


def _rows_of(side: Side, source: object) -> int:
    """How many rows of a table one unit of a source can change."""
    return sum(exposure.bounded() for exposure in side.exposures if exposure.source is source)


# Unions --------------------------------------------------------------------------------------------


MOST_UNITED = 1000


def union(tables: Sequence[Table]) -> Table:
    """All rows of the tables, whose columns have the same names and kinds; stabilities add up, by source."""
    if not 1 <= len(tables) <= MOST_UNITED:
        raise refuse("ValueError", f"a union is of 1 to {MOST_UNITED:,} tables")
    facts = tables[0].facts
    schema = united_schema([table.domains for table in tables], facts)
    weighted = any(table.weighted for table in tables)
    exposures = join_exposures([_weighted(t) if weighted else t.exposures for t in tables], [1] * len(tables))
    return Table(exposures, p.Union(tuple(table.plan for table in tables)), tuple(schema.items()), facts=facts)


def _weighted(table: Table) -> Exposures:
    """The exposures of a table in a union that has weights: a row without one weighs 1."""
    return tuple(e if e.weight is not None else replace(e, weight=e.rows) for e in table.exposures)


def common_table(tables: Sequence[Table]) -> Table:
    """The table below all of these. Refuses those that are not made of one in this way, and rows that have weights."""
    first, chains = tables[0], [p.chain(table.plan) for table in tables]
    exposures, parts = first.exposures, [part for e in first.exposures for _, part in e.parts]
    base = next((one for one in chains[0] if one in parts and all(one in chain for chain in chains)), chains[0][-1])
    for table, chain in zip(tables, chains, strict=True):
        if table.weighted:
            raise refuse(
                "TypeError", "rows that have weights are not answered together",
                help="give each of these selects an amount of its own, without `jointly`",
            )  # fmt: skip
        mine, its = ([(e.source, e.rows, e.declared) for e in some] for some in (exposures, table.exposures))
        if chain[-1] != chains[0][-1] or mine != its:
            raise refuse(
                "TypeError", "a `jointly` block answers selects of one table, and these read different ones",
                help="give each table a block of its own",
            )  # fmt: skip
        exposures = tuple(_shared(mine, e, base) for mine, e in zip(exposures, table.exposures, strict=True))
    return Table(exposures, base, _schema(base, first), facts=first.facts)


def _shared(one: Exposure, other: Exposure, base: p.Plan) -> Exposure:
    """Of a table below both: at their common path, up to the first part of the other outside of which it has rows."""
    plans = p.chain(base, (p.Filter, p.Derive, p.Truncate, p.GroupRows))
    path = other.path[: min((n - 1 for n, part in other.parts if part not in plans), default=None)]
    agents = tuple(dict.fromkeys((*one.agents, *other.agents)))
    return replace(one, path=common_prefix(one.path, path), agents=agents)
