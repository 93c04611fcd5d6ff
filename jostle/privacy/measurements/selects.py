"""A select, from names to aggregates: `prepare` finds all that is wrong from public facts.

The terms of a private table's aggregates are exact integers, asked of the engine in one pass; selections choose among
public candidates. A public table is asked for exact statistics, for nothing. How far a row moves each aggregate is
argued in its file in `aggregates`.

Selects on a table: noisy aggregates and selections in groups of public keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import attrgetter
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import Amount
from jostle.accounting.definitions import Price
from jostle.diagnostics import refuse
from jostle.engine.base import CELLS
from jostle.lazy import Floats, np
from jostle.noise_laws import Bracketed, Gaussian, Laplace, Selected
from jostle.plan.plan import Column, Filter, GroupRows, Key, RowExpr, Truncate, rows_below
from jostle.plan.plan import Count as Counted
from jostle.plan.schemas import MOST_KEYS, key_of, need_unicode
from jostle.plan.schemas import open_keys as refuse_open_keys
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.kernel.measurement import Measured, Measurement, Release
from jostle.privacy.measurements.aggregates.aggregate import Aggregate, Chosen, GroupAggregate, Mechanism, terms_of
from jostle.privacy.measurements.aggregates.quantile import Quantile
from jostle.privacy.measurements.aggregates.sums import Count
from jostle.privacy.measurements.purchases import Layout, Purchases
from jostle.privacy.mechanisms.additive import share, sum_prices
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.reading.public_data import PublicData, sizes_are_public
from jostle.privacy.reading.vault import Reader
from jostle.records import replace

MOST_SELECTED = 1000  # groups of a selection: each is chosen by itself


class GroupKey(Struct, frozen=True):
    """A group key as the program wrote it; `over` are its public values where it gives them.

    Of a key that stands for several, `names` are what these are called, and `rows` their values at each place of
    `over`.
    """

    name: str
    expr: RowExpr
    over: tuple[Any, ...] | range | None = None
    names: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    running: Any = None
    """Of a key whose groups hold all rows up to its value, the last value that is answered; `...` for all of them."""

    def spread(self, column: list[Any]) -> list[list[Any]]:
        """The columns of what the key stands for."""
        return [[self.rows[int(v)][i] for v in column] for i in range(len(self.names))] if self.names else [column]


class Answer(Struct, frozen=True):
    """Key columns and value columns, each a sequence over groups; without keys, of one value.

    `law`: that of the noise in all values, where all have the same.
    """

    keys: list[list[Any]]
    values: Sequence[Sequence[Any]]
    law: Laplace | Gaussian | None = None


class Request(Struct, frozen=True):
    """A prepared select on a table."""

    table: Table
    keys: tuple[Key, ...]
    open_keys: tuple[RowExpr, ...]
    group_keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def title(self) -> str:
        return ", ".join(map(attrgetter("name"), self.aggregates))

    @property
    def running(self) -> bool:
        return not set(map(attrgetter("running"), self.group_keys)) <= {None}

    @property
    def undivided(self) -> bool:
        """Whether it has no groups."""
        return not self.keys and not self.open_keys

    # Public ----------------------------------------------------------------------------------------

    def exact(self, kernel: Kernel, data: PublicData) -> Answer:
        statistics = [a.statistics() for a in self.aggregates]
        keys = tuple(key_of(k.expr, k.over, self.table.domains, MOST_KEYS) or k.expr for k in self.group_keys)
        columns, values = data.exact(self.table, keys, tuple(s for some in statistics for s in some))
        rest = iter(values)
        groups = [zip(*islice(rest, len(some)), strict=True) for some in statistics]
        pairs = zip(self.aggregates, groups, strict=True)
        return Answer(self.key_columns(columns), [[a.of_statistics(group) for group in some] for a, some in pairs])

    def key_columns(self, columns: list[list[Any]]) -> list[list[Any]]:
        """The key columns of an answer, a column for each that a key stands for."""
        return [part for key, column in zip(self.group_keys, columns, strict=True) for part in key.spread(column)]

    @property
    def free(self) -> bool:
        """Whether this counts the rows of a source whose size is public, all of them or by columns whose groups are
        (`reading.public_data`)."""
        plain = self.aggregates == (Count(),) and not self.open_keys
        plain = plain and not (self.group_keys and (self.running or any(map(attrgetter("names"), self.group_keys))))
        return plain and sizes_are_public(self.table, list(map(attrgetter("expr"), self.group_keys)))

    def size(self, data: PublicData) -> Answer:
        counts = data.group_sizes(self.table, self.keys)
        return Answer(key_columns([list(k.values) for k in self.keys]), [[float(n) for n in counts.ravel()]])


def prepare(table: Table, group_keys: Sequence[GroupKey], aggregates: Sequence[Aggregate]) -> Request:
    """Types, keys and bounds of a select, in that order; refuses before any amount is looked at."""
    for aggregate in aggregates:
        aggregate.check(table)
    if not table.private:
        return Request(table, (), (), tuple(group_keys), tuple(aggregates))
    keys: list[Key] = []
    open_keys: tuple[RowExpr, ...] = ()
    for group_key in group_keys:
        key = key_of(group_key.expr, group_key.over, table.domains, MOST_KEYS)
        if key is None:
            if not any(e.source.measure.width > 1 for e in table.exposures):
                raise refuse_open_keys(group_key.name)
            open_keys = tuple(k.expr for k in group_keys)
            break
        if not isinstance(key.values, range):
            for value in key.values if isinstance(next(iter(key.values), None), str) else ():
                need_unicode(value)
        keys.append(key)
    keys = [] if open_keys else keys
    if len(group_keys) > 1 and open_keys:
        _check_together(group_keys)
    groups = math.prod([len(key.values) for key in keys]) if keys else 1
    if groups > MOST_KEYS:
        raise refuse("DataError", f"{groups:,} groups are too many", help=f"at most {MOST_KEYS:,}: group more coarsely")
    for aggregate in aggregates:
        aggregate.check_private(table)
        if isinstance(aggregate, GroupAggregate):
            most = min(MOST_SELECTED, CELLS // max(1, len(aggregate.places(table).values)))
            if groups > most:
                raise refuse(
                    "DataError", f"a {aggregate.name} in each of {groups:,} groups is too much to choose",
                    help=f"at most {most:,} groups: group more coarsely",
                )  # fmt: skip
    return Request(in_groups(table, keys, open_keys), tuple(keys), open_keys, tuple(group_keys), tuple(aggregates))


def in_groups(table: Table, keys: Sequence[Key], open_keys: Sequence[RowExpr]) -> Table:
    """The same rows; how many of a person's are in one group is known where groups by these keys are no larger than
    those that were bounded, by what the plan says, and else left out."""
    if set(map(attrgetter("each"), table.exposures)) <= {None}:
        return table
    exprs = {*open_keys, *(key.expr for key in keys)}
    match rows_below(table.plan, (Filter,)):
        case Truncate(keys=bounded) if set(bounded) <= exprs:
            return table
        case GroupRows(keys=bounded) if {Column(name) for name, _ in bounded} <= exprs:
            return table
    return replace(table, exposures=tuple(replace(e, each=None) for e in table.exposures))


def _check_together(group_keys: Sequence[GroupKey]) -> None:
    """Where one of several keys is open, their combinations are measured: none of them may be listed."""
    for key in group_keys:
        if key.over is not None:
            raise refuse(
                "OpenKeys", f"the key `{key.name}` is listed and another is not: their combinations are not public",
                help="list all keys, or their combinations, `groupby (a, b) over [(1, 2), …]`; or none: those with "
                "enough rows are then found, with a delta",
            )  # fmt: skip


def key_columns(columns: list[list[Any]]) -> list[list[object]]:
    """Key columns of the full cross product, the last key moving fastest."""
    if not columns:
        return []
    total = reduce(lambda a, b: a * len(b), columns, 1)
    out, inner = [], total
    for column in columns:
        inner //= max(1, len(column))
        repeated = column if inner == 1 else [v for v in column for _ in range(inner)]
        out.append(repeated * (total // max(1, len(repeated))) if repeated else [])
    return out


OF_QUANTILES = (Bracketed.name, Selected.name)
"""Mechanisms that quantiles alone are asked by: beside them other aggregates are as ever."""


def select(request: Request, amount: Amount, via: str | None) -> Select:
    """A prepared select at an amount, of which each aggregate has an equal share."""
    purchases = shared_purchases(request, amount, via)
    how = Several.of(purchases.mechanisms, sum_prices(amount, purchases.prices))
    return Select(request.table.exposures, request.title, how, request, purchases, request.keys, subject=request)


def shared_purchases(request: Request, amount: Amount, via: str | None) -> Purchases:
    """What the aggregates buy, with an equal share of an amount each."""
    aggregates, part = request.aggregates, share(amount, max(1, len(request.aggregates)))
    if via in OF_QUANTILES and not any(isinstance(a, Quantile) for a in aggregates):
        raise refuse("TypeError", f"`via {via}` is for quantiles, and here is none", help="leave it out")
    vias = [via] * len(aggregates)
    if via in OF_QUANTILES:  # beside a quantile's interval are others
        vias = [via if isinstance(aggregate, Quantile) else None for aggregate in aggregates]
    return Purchases.of(aggregates, request.table, part, vias, request.undivided)


class Numbers(Struct, frozen=True):
    """What a select releases, of which its answers are calculated (`run.answers`).

    `measured`: of each purchase an array of noisy numbers, a row for each of its terms, and their law. `chosen`: of
    each aggregate that has no terms, the answers of all groups and their laws, and None of others.
    """

    keys: list[list[Any]]
    table: Table
    layout: Layout
    measured: list[tuple[Floats, Laplace | Gaussian]]
    chosen: list[list[Chosen] | None]


class Several(Struct, frozen=True):
    """What measures by several mechanisms, for the price of all together."""

    mechanism: str
    price: Price

    @classmethod
    def of(cls, mechanisms: Sequence[Mechanism], price: Price) -> Several:
        return cls(", ".join(dict.fromkeys(map(attrgetter("mechanism"), mechanisms))), price)


@dataclass(frozen=True, eq=False)
class Select(Measurement["tuple[list[Any], list[Any]]", "Answer | Numbers"]):
    """A select with public keys: the exact terms over the groups, and for each aggregate that has no terms the counts
    at its places in each group (for others nothing)."""

    request: Request
    purchases: Purchases
    keys: tuple[Key, ...]

    def read(self, reader: Reader) -> tuple[list[Any], list[Any]]:
        table = self.request.table
        terms = tuple([t for one in self.purchases.bought for t in terms_of(one.term)])
        exact = reader.answers.group(table.plan, self.keys, terms) if terms else []
        counts: dict[Key, Any] = {}  # at places that several aggregates may have in common
        columns = []
        for aggregate in self.purchases.layout.aggregates:
            key = aggregate.places(table) if isinstance(aggregate, GroupAggregate) else None
            if key is not None and key not in counts:
                counts[key] = self._counts(reader, key)
            columns.append(None if key is None else counts[key])
        return list(exact), columns

    def _counts(self, reader: Reader, places: Key) -> Any:
        """How many rows of each group are at each place; where one key has more values than fit, of some at a time."""
        table, blocks = self.request.table, [self.keys]
        if len(self.keys) == 1:
            ((key,), most) = self.keys, max(1, CELLS // len(places.values))
            blocks = [(Key(key.expr, key.values[i : i + most]),) for i in range(0, len(key.values) or 1, most)]
        term = Counted(weighted=table.weighted)
        counts = [reader.answers.group(table.plan, (*keys, places), (term,))[0].ravel() for keys in blocks]
        return np.concatenate(counts).reshape(self._groups, len(places.values))

    @property
    def _groups(self) -> int:
        return math.prod(len(key.values) for key in self.keys)

    def release(self, exact: tuple[list[Any], list[Any]], noise: Noise | None) -> Release[Answer | Numbers]:
        """What was measured, and of each aggregate by groups what was chosen in each."""
        table, undivided, source = self.request.table, self.request.undivided, needed_noise(noise)
        terms, counts = iter(exact[0]), exact[1]
        events: list[Measured] = []
        measured: list[Any] = []
        for purchase in self.purchases.bought:
            numbers, reported = purchase.release(list(islice(terms, len(terms_of(purchase.term)))), source, table)
            measured.append(numbers)
            events.append(reported)
        columns: list[Any] = []
        for aggregate, mechanism, numbers in zip(
            self.purchases.layout.aggregates, self.purchases.mechanisms, counts, strict=True
        ):
            column: Any = None
            measurements: list[Measured] = []
            if isinstance(aggregate, GroupAggregate):
                column, measurements = aggregate.release(mechanism, numbers, source, table, undivided)
            columns.append(column)
            events += measurements
        keys = self.request.key_columns(key_columns([list(k.values) for k in self.keys])) if self.keys else []
        return Release(Numbers(keys, table, self.purchases.layout, measured, columns), tuple(events))
