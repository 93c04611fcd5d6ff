"""A select, from names to aggregates: `prepare` finds all that is wrong from public facts.

The terms of a private table's aggregates are exact integers, asked of the engine in one pass; selections choose among
public candidates. A public table is asked for exact statistics, for nothing. How far a row moves each aggregate is
argued in its file in `aggregates`.

*What it buys* is every sum and count that its aggregates are made of, each once. A select shares its amount equally
among its aggregates, and each of these its part among what it measures (`AdditiveAggregate.shares`). Terms that are
equal, such as the count of x for `avg(x)`, `var(x)` and `count(x)`, are the same number of every group: it is measured
once, in a pair if there is one, with all parts that fall to it. A sum beside a mean of the same expression is Σ(E − m)
+ m·count(E), of the mean's terms (`CentredSum`). So aggregates of one column agree: `stddev` is the root of `var`, and
`sum` is `avg` times `count`, where the mean is within its bounds.

*Price.* A term with parts ε₁ … εₖ is measured with ε′ ≤ Σεᵢ, so the select costs Σₜ ε′ₜ ≤ ε in all, by sequential
composition; in (ε, δ) by plain sums δ′ = Σδᵢ likewise. In ρ the parts add up in the same way. Where (ε, δ) is counted
in zCDP, ρ(ε) grows faster than ε, and ρ(Σεᵢ) would exceed Σρ(εᵢ): ε′ is then the largest with ρ(ε′) ≤ Σρ(εᵢ). So the
price is in every unit at most that of the terms bought one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import attrgetter
from typing import Any

from msgspec import Struct

from jostle.accounting.amounts import QUANTA, Amount, as_float
from jostle.accounting.definitions import Price, epsilon_of, pure_price
from jostle.diagnostics import refuse
from jostle.engine.base import CELLS
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import Bracketed, Gaussian, Laplace, Selected
from jostle.plan.plan import Column, Filter, GroupRows, Key, RowExpr, Term, Truncate, rows_below
from jostle.plan.plan import Count as Counted
from jostle.plan.schemas import MOST_GROUPS, MOST_KEYS, grouped_by, need_unicode
from jostle.plan.schemas import open_keys as refuse_open_keys
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.kernel.measurement import Measured, Measurement, Release
from jostle.privacy.measurements.aggregates.aggregate import (
    AdditiveAggregate,
    Aggregate,
    Chosen,
    GroupAggregate,
    Mechanism,
    Pair,
    grid_of,
    reach_of,
    sensitivity_of,
    stability_of_term,
    terms_of,
)
from jostle.privacy.measurements.aggregates.quantile import Quantile
from jostle.privacy.measurements.aggregates.sums import Avg, CentredSum, Count, Sum
from jostle.privacy.mechanisms.additive import Additive, Linear, share, sum_prices
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.privacy.reading.public_data import PublicData, sizes_are_public
from jostle.privacy.reading.vault import Reader
from jostle.records import replace

MOST_SELECTED = 100_000  # groups of a selection: each is chosen by itself, in a millisecond


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
        keys = tuple(self.table.key_of(k.expr, k.over, MOST_KEYS) or k.expr for k in self.group_keys)
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
        key = table.key_of(group_key.expr, group_key.over, MOST_KEYS)
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
    if groups > MOST_GROUPS:
        help = f"at most {MOST_GROUPS:,}: group more coarsely"
        raise refuse("ValueError", f"{groups:,} groups are too many", help=help)
    for aggregate in aggregates:
        aggregate.check_private(table)
        if isinstance(aggregate, GroupAggregate):
            most = min(MOST_SELECTED, CELLS // max(1, len(aggregate.places(table).values)))
            if groups > most:
                raise refuse(
                    "ValueError", f"a {aggregate.name} in each of {groups:,} groups is too much to choose",
                    help=f"at most {most:,} groups: group more coarsely",
                )  # fmt: skip
    return Request(in_groups(table, keys, open_keys), tuple(keys), open_keys, tuple(group_keys), tuple(aggregates))


def in_groups(table: Table, keys: Sequence[Key], open_keys: Sequence[RowExpr]) -> Table:
    """The same rows; how many of a person's are in one group is known where groups by these keys are no larger than
    those that were bounded, by what the plan says. Else it is left out."""
    if set(map(attrgetter("each"), table.exposures)) <= {None}:
        return table
    exprs = {*open_keys, *(grouped_by(key, table.domains) for key in keys)}
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
            exact_terms = list(islice(terms, len(terms_of(purchase.term))))
            numbers, reported = purchase.release(exact_terms, source, table, undivided)
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


# What a select buys --------------------------------------------------------------------------------


class Purchase(Struct, frozen=True):
    """What is measured, and its noise. `uses` has the share of each aggregate that it serves, by name."""

    term: Term | Pair
    how: Additive
    uses: Mapping[str, float]
    direct: bool
    linear: Linear

    def release(
        self, exact: Sequence[Ints], noise: Noise, table: Table, undivided: bool
    ) -> tuple[tuple[Floats, Laplace | Gaussian], Measured]:
        """The noisy numbers of all groups, a row each (of a pair A and B), with their law; and what a trace reports."""
        linear, many, law = self.linear, len(exact), self.linear.law
        if isinstance(self.term, Pair):
            exact = self.term.mixed(exact[0], exact[1], table)
        change, uses = sensitivity_of(self.term, table) / 2.0**linear.bits, self.uses if len(self.uses) > 1 else {}
        stability = stability_of_term(self.term, table, undivided)
        reported = Measured(", ".join(self.uses), law, self.how, change, stability, direct=self.direct, uses=uses)
        return (linear.release(np.stack(exact), noise).reshape(many, -1), law), reported


class Layout(Struct, frozen=True):
    """What aggregates measure: `aggregates` as they are computed, the `bought` terms and pairs, each once, and the
    `places` of the terms of each aggregate: in which of these, and as which of its terms."""

    aggregates: tuple[Aggregate, ...]
    bought: tuple[Term | Pair, ...]
    places: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, aggregates: Sequence[Aggregate], table: Table, pairs: bool = True) -> Layout:
        computed, own = with_common_terms(aggregates), list[list[Term]]()
        requests, in_pairs = dict[Term | Pair, None](), set[Term]()
        for aggregate in computed:
            own.append([])
            for one in aggregate.measured(table) if isinstance(aggregate, AdditiveAggregate) else ():
                terms = terms_of(one)
                own[-1] += terms
                requests.update(dict.fromkeys((one,) if pairs else terms))
                in_pairs.update(terms if pairs and isinstance(one, Pair) else ())
        bought = tuple([one for one in requests if one not in in_pairs])
        places = {term: (i, j) for i, one in enumerate(bought) for j, term in reversed(list(enumerate(terms_of(one))))}
        return cls(computed, bought, tuple([tuple(map(places.__getitem__, terms)) for terms in own]))


class Purchases(Struct, frozen=True):
    """All that a select buys: its layout, the first mechanism of each aggregate, a purchase for all that is bought, and
    the prices."""

    layout: Layout
    mechanisms: tuple[Mechanism, ...]
    bought: tuple[Purchase, ...]
    prices: tuple[Price, ...]

    @classmethod
    def of(
        cls, aggregates: Sequence[Aggregate], table: Table, part: Amount, vias: Sequence[str | None], undivided: bool
    ) -> Purchases:
        """What aggregates buy with a `part` of an amount each, by the mechanisms that are asked for."""
        layout = Layout.of(aggregates, table)
        parts: dict[Term | Pair, list[tuple[AdditiveAggregate, Additive]]] = {}
        within = {term: one for one in layout.bought for term in (one, *terms_of(one))}
        for aggregate, via in zip(layout.aggregates, vias, strict=True):
            if isinstance(aggregate, AdditiveAggregate):
                for term, how in aggregate.mechanisms(part, via, table):
                    parts.setdefault(within[term], []).append((aggregate, how))
        bought = tuple([_together(one, parts[one], part, table, undivided) for one in layout.bought])
        prices = [purchase.how.price for purchase in bought]
        mechanisms: list[Mechanism] = []
        for aggregate, places, via in zip(layout.aggregates, layout.places, vias, strict=True):
            if isinstance(aggregate, GroupAggregate):
                mechanisms.append(aggregate.mechanism(part, via, table))
                prices.append(aggregate.price(mechanisms[-1], table))
            else:
                mechanisms.append(bought[places[0][0]].how)
        return cls(layout, tuple(mechanisms), bought, tuple(prices))


def with_common_terms(aggregates: Sequence[Aggregate]) -> tuple[Aggregate, ...]:
    """Aggregates as they are computed: a sum beside a mean of the same expression, of its terms."""
    if len(aggregates) == 1:
        return tuple(aggregates)
    centred = {a.expressions for a in aggregates if type(a) is Avg}
    return tuple([CentredSum(a.expressions) if type(a) is Sum and a.expressions in centred else a for a in aggregates])


def _together(
    term: Term | Pair, parts: Sequence[tuple[AdditiveAggregate, Additive]], part: Amount, table: Table, undivided: bool
) -> Purchase:
    """One purchase for all parts of a term."""
    uses, direct, amount = dict[str, float](), False, as_float(part.value)
    for aggregate, _ in parts:
        uses[aggregate.name] = uses.get(aggregate.name, 0.0) + amount
        direct = direct or aggregate.direct
    how = parts[0][1] if len(parts) == 1 else merged([how for _, how in parts], term, table)
    linear = Linear.of(how, *reach_of(term, table, undivided), grid_of(term))
    return Purchase(term, how, uses, direct, linear)


def merged(hows: Sequence[Additive], term: Term | Pair, table: Table) -> Additive:
    """The noise of one measurement at the price of several: at most the sum of their amounts, and of their ρ."""
    amount = Amount(hows[0].amount.unit, sum(h.amount.value for h in hows), sum(h.amount.delta for h in hows))
    kinds = {how.kind for how in hows}
    via = kinds.pop().name if len(kinds) == 1 else None
    how = Additive.fitted(amount, via, table.measures, *reach_of(term, table, undivided=False))
    how = replace(how, because=how.because or hows[0].because)
    most = sum(h.price.rho for h in hows)
    if amount.unit == "rho" or how.price.rho <= most or all(m.kind != "approximate" for m in table.measures):
        return how
    if how.kind is Laplace:
        low, high = 0, amount.value
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if pure_price(replace(amount, value=middle)).rho <= most else (low, middle)
        return replace(how, amount=replace(amount, value=low))
    value = min(amount.value, math.floor(epsilon_of(as_float(most), how.delta) * QUANTA))
    how = replace(how, amount=replace(amount, value=value))
    while how.price.rho > most:  # by what rounding adds
        value -= max(1, value >> 40)
        how = replace(how, amount=replace(amount, value=value))
    return how
