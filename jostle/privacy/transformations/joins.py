"""Joins and unions, each with its stability: the rows of the result that change if k rows of a table change.

Rows with equal keys are paired. A `left`, `right` or `full` join also keeps the unmatched rows of one or both sides.
The proofs are in docs/privacy/transformations.md, and in docs/privacy/elastic.md for joins without a bound.

* *With a public table*, where f ≥ 1 is the largest number of its rows with one key: k·f if unmatched public rows are
  dropped, and k·2f if they are kept.
* *Two private sides* need `up to m`: k·2m for each side. If a source is on both sides, both add up. *A table with
  itself*, on the same columns: k·(4m − 2).
* *Weights.* In a join with a public table every copy of a row has the row's weight, and an unmatched row keeps its own.
  `up to` is refused, and so are unmatched public rows beside rows with weights.
* *Private tables without a bound* (`FreeJoin`): one unit of a source changes at most `moves` rows, a sum of products of
  *frequencies*. A frequency is the largest number of rows of a table that agree in some columns.
* *A union*: Σ kᵢ over the tables that read a source, at the common prefix of their paths. Weights are kept and add up;
  a row without a weight counts as 1.
* *The common table* of several, below their filters and derived columns, has all of their agents. Its path is their
  common path, up to the first part that does not contain all of its rows.
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
    """The exposures of a combination of handles: one per source, at the common prefix, with stabilities added up."""
    joined: dict[int, Exposure] = {}
    for side, factor in zip(sides, factors, strict=True):
        for new in side:
            nothing = replace(new, rows=0, agents=(), weight=None if new.weight is None else 0)
            old = joined.get(id(new.source), nothing)
            rows = None if old.rows is None or new.rows is None else old.rows + new.rows * factor
            weight = None if old.weight is None or new.weight is None else old.weight + new.weight * factor
            agents = tuple(dict.fromkeys((*old.agents, *new.agents)))
            declared = new.declared if old.declared == new.declared else replace(new.unit, at_most=None)
            path = common_prefix(old.path, new.path)
            joined[id(new.source)] = Exposure(new.source, path, rows, agents, weight, declared=declared)
    return tuple(joined.values())


def common_prefix(a: Path, b: Path) -> Path:
    return tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def join(
    data: PublicData, left: Table, right: Table, on: Sequence[tuple[str, str]], most: int | None, kind: str = "inner"
) -> Table:
    """Pairs of rows that agree on `on`, pairs of a left and a right column.

    `kind` is `inner`, or `left`, `right` or `full`, which keep the unmatched rows of one or both sides.
    """
    check_keys(left, right, on)
    _check_sides(left, right, on, most, kind)
    mine, theirs = tuple(name for name, _ in on), tuple(name for _, name in on)
    plan = p.Join(left.plan, right.plan, mine, most, theirs=() if mine == theirs else theirs, kind=kind)
    return Table(_exposures(data, left, right, plan), plan, _schema(plan, left), facts=left.facts)


def _schema(plan: p.Plan, like: Table) -> tuple[tuple[str, p.Domain], ...]:
    """The schema of a plan, by the facts of the table `like`."""
    return tuple(schema_of(plan, like.facts).items())


def _check_sides(left: Table, right: Table, on: Sequence[tuple[str, str]], most: int | None, kind: str) -> None:
    """Refuses two private sides without a bound, and weights with a bound or with unmatched public rows."""
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
    """The exposures of a join, with the stabilities above."""
    most, mine, theirs = plan.most, plan.on, plan.theirs or plan.on
    sides = (right, theirs, plan.kind in ("right", "full")), (left, mine, plan.kind in ("left", "full"))
    factors = [2 * most if most else _factor(data, *side) for side in sides]
    exposures = join_exposures((left.exposures, right.exposures), factors)
    if most and left.exposures == right.exposures and made_of(left.plan, mine) == made_of(right.plan, theirs):
        return join_exposures((left.exposures,), (4 * most - 2,))
    return exposures


def _of_same_persons(left: Table, right: Table) -> bool:
    """Whether both sides have rows of the same persons, which can be joined person by person."""
    sources = {id(exposure.source) for exposure in (*left.exposures, *right.exposures)}
    return len(sources) == 1 and all(p.has_persons(side.plan) and not side.weighted for side in (left, right))


def check_keys(left: Table, right: Table, on: Sequence[tuple[str, str]]) -> None:
    """Refuses key columns that are missing or differ in kind."""
    for mine, theirs in on:
        need_column(left.domains, mine)
        need_column(right.domains, theirs)
        if kind_of(p.Column(mine), left.domains) != kind_of(p.Column(theirs), right.domains):
            name = f"`{mine}`" if mine == theirs else f"`{mine} = {theirs}`"
            raise refuse("TypeError", f"{name} is a number on one side of the join and a text on the other")


def made_of(plan: p.Plan, names: tuple[str, ...]) -> tuple[p.Plan, tuple[str, ...]]:
    """The plan below filters and derived columns, and the names of the columns `names` there.

    Each row of the plan is one of those rows, with the same cells in these columns.
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
    """The rows by which one row changes a join with a public side: the largest number of its rows with one key, which
    is public, or twice that if unmatched rows of the side are kept (`outer`). 1 for a private side, and unused."""
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
"""A column of the joined tables: the number of the table, and the column's name there."""


class Side(Struct, frozen=True):
    """A table of a join without a bound, joined with the tables before it on their columns `mine` = its `theirs`."""

    plan: p.Plan
    exposures: Exposures
    mine: tuple[Place, ...] = ()
    theirs: tuple[str, ...] = ()


class Frequency(Struct, frozen=True):
    """The largest number of rows of a table that agree in these columns. A unit of source i adds at most `grows[i]`."""

    plan: p.Plan
    columns: tuple[p.Column, ...]
    grows: tuple[int, ...]


class Product(Struct, frozen=True):
    """`times` the product of frequencies, given by their indices."""

    times: int
    factors: tuple[int, ...] = ()

    def by(self, times: int, factors: tuple[int, ...] = ()) -> Product:
        return Product(self.times * times, self.factors + factors)


@dataclass(frozen=True, eq=False)
class FreeJoin(Table):
    """The join of several private tables without a bound. Its exposures are unbounded, so the kernel refuses them.

    Measurements that use frequencies are charged to `paid`.
    """

    joined: p.Plan | None = None
    sides: tuple[Side, ...] = ()
    paid: Exposures = ()

    @property
    def filtered(self) -> bool:
        """Whether its rows are pairs of the join, each at most once: only filtered, derived or with a place."""
        plan = self.plan
        while plan != self.joined and isinstance(plan, p.Filter | p.Derive | p.Join):
            if isinstance(plan, p.Join) and not isinstance(plan.right, p.Listed):
                break
            plan = plan.left if isinstance(plan, p.Join) else plan.source
        return plan == self.joined

    def moves(self) -> tuple[list[Frequency], list[list[Product]]]:
        """Frequencies, and for each source of `paid` products whose sum bounds the rows that one unit changes."""
        frequencies = _Frequencies(self.sides, self.paid)
        moves = [frequencies.moved(source) for source in range(len(self.paid))]
        return frequencies.items, moves


def free_join(left: Table, right: Table, on: Sequence[tuple[str, str]]) -> FreeJoin:
    """All pairs of rows that agree on `on`, pairs of a left and a right column, without a bound."""
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
    """Refuses exposures without a bound on the rows of one unit."""
    for exposure in exposures:
        exposure.bounded()
    return exposures


def _places(sides: Sequence[Side]) -> Mapping[str, Place]:
    """The origin of each column of the join: the first table with a column of that name."""
    return {name: (at, name) for at, side in reversed([*enumerate(sides)]) for name in schema_of(side.plan)}


class _Frequencies:
    """Collects frequencies, each once."""

    def __init__(self, sides: Sequence[Side], paid: Exposures) -> None:
        self.items: list[Frequency] = []
        self._sides = sides
        self._rows = [[_rows_of(side, at) for side in sides] for at in (exposure.source for exposure in paid)]

    def moved(self, source: int) -> list[Product]:
        """Products whose sum bounds the rows of the join that one unit of the source changes."""
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
        """Factors whose product bounds the frequency of columns in the join of the tables up to `last`."""
        own = tuple(name for at, name in places if at == last)
        if last == 0:
            return (self._of(0, own),)
        before, side = tuple(place for place in places if place[0] < last), self._sides[last]
        if before:
            return (*self._in_join(last - 1, before), self._of(last, (*side.theirs, *own)))
        return (self._of(last, own), *self._in_join(last - 1, side.mine))

    def _of(self, at: int, names: Iterable[str]) -> int:
        """The index of a table's frequency, which is added if it is new."""
        columns = tuple(p.Column(name) for name in sorted(set(names)))
        frequency = Frequency(self._sides[at].plan, columns, tuple(rows[at] for rows in self._rows))
        if frequency not in self.items:
            self.items.append(frequency)
        return self.items.index(frequency)


def _rows_of(side: Side, source: object) -> int:
    """The number of rows of a table that one unit of a source can change."""
    return sum(exposure.bounded() for exposure in side.exposures if exposure.source is source)


# Unions --------------------------------------------------------------------------------------------


MOST_UNITED = 1000


def union(tables: Sequence[Table]) -> Table:
    """All rows of the tables, whose columns must have the same names and kinds. Stabilities add up by source."""
    if not 1 <= len(tables) <= MOST_UNITED:
        raise refuse("ValueError", f"a union is of 1 to {MOST_UNITED:,} tables")
    facts = tables[0].facts
    schema = united_schema([table.domains for table in tables], facts)
    weighted = any(table.weighted for table in tables)
    exposures = join_exposures([_weighted(t) if weighted else t.exposures for t in tables], [1] * len(tables))
    return Table(exposures, p.Union(tuple(table.plan for table in tables)), tuple(schema.items()), facts=facts)


def _weighted(table: Table) -> Exposures:
    """The exposures of a table in a union with weights, where a row without a weight counts as 1."""
    return tuple(e if e.weight is not None else replace(e, weight=e.rows) for e in table.exposures)


def common_table(tables: Sequence[Table]) -> Table:
    """The common table below all of these. Refuses tables without one, and rows with weights."""
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
    """The exposure of `base`, below both: their common path, up to the first part that lacks some of its rows."""
    plans = p.chain(base, (p.Filter, p.Derive, p.Truncate, p.GroupRows))
    path = other.path[: min((n - 1 for n, part in other.parts if part not in plans), default=None)]
    agents = tuple(dict.fromkeys((*one.agents, *other.agents)))
    return replace(one, path=common_prefix(one.path, path), agents=agents)
