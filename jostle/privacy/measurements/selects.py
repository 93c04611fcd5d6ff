"""Selects on tables. `prepare` refuses everything that public facts show to be wrong.

The terms of a private table's aggregates are exact integers, read from the engine in one pass; selections choose among
public candidates. Statistics of a public table are exact and free. The sensitivity of each aggregate is argued in its
file in `aggregates`.

*Purchases.* Every sum and count that the aggregates need is measured once. A select divides its amount equally among
its aggregates, and each of these its part among its terms (`AdditiveAggregate.shares`). Equal terms, such as the count
of x for `avg(x)`, `var(x)` and `count(x)`, are the same number in every group. Such a number is measured once, in a
pair if there is one, with all parts that belong to it. A sum beside a mean of the same expression is computed from the
mean's terms as Σ(E − m) + m·count(E) (`CentredSum`). So aggregates of one column agree: `stddev` is the root of `var`,
and `sum` is `avg` times `count`, if the mean is within its bounds.

*Price.* A term with parts ε₁ … εₖ is measured with ε′ ≤ Σεᵢ, so the select costs Σₜ ε′ₜ ≤ ε in all, by sequential
composition. In (ε, δ) counted by plain sums δ′ = Σδᵢ, and in ρ the parts add up in the same way. If (ε, δ) is counted
in zCDP, ρ(ε) grows faster than ε, and ρ(Σεᵢ) would exceed Σρ(εᵢ); ε′ is then the largest with ρ(ε′) ≤ Σρ(εᵢ). So in
every unit the price is at most that of buying the terms one by one.
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

MOST_SELECTED = 100_000  # groups of a selection, each of which takes a millisecond


class GroupKey(Struct, frozen=True):
    """A group key as written in the program. `over` has its public values, if the program lists them.

    A key that stands for several has their `names`, and `rows` has their values for each value of `over`.
    """

    name: str
    expr: RowExpr
    over: tuple[Any, ...] | range | None = None
    names: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    running: Any = None
    """For a key whose groups have all rows up to its value: the last value to answer, or `...` for all values."""

    def spread(self, column: list[Any]) -> list[list[Any]]:
        """The columns of the keys that this key stands for."""
        return [[self.rows[int(v)][i] for v in column] for i in range(len(self.names))] if self.names else [column]


class Answer(Struct, frozen=True):
    """Key columns and value columns, each a sequence over the groups, or of one value without keys.

    `law` is the law of the noise, if it is the same in all values.
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
        """Whether the select has no group keys."""
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
        """The key columns of an answer, with one column for each key that a key stands for."""
        return [part for key, column in zip(self.group_keys, columns, strict=True) for part in key.spread(column)]

    @property
    def free(self) -> bool:
        """Whether this counts the rows of a source with public size, in all or by columns with public groups
        (`reading.public_data`)."""
        plain = self.aggregates == (Count(),) and not self.open_keys
        plain = plain and not (self.group_keys and (self.running or any(map(attrgetter("names"), self.group_keys))))
        return plain and sizes_are_public(self.table, list(map(attrgetter("expr"), self.group_keys)))

    def size(self, data: PublicData) -> Answer:
        counts = data.group_sizes(self.table, self.keys)
        return Answer(key_columns([list(k.values) for k in self.keys]), [[float(n) for n in counts.ravel()]])


def prepare(table: Table, group_keys: Sequence[GroupKey], aggregates: Sequence[Aggregate]) -> Request:
    """Checks types, keys and bounds of a select, in that order, before its amount is considered."""
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
    """The same table. `each` of its exposures is kept only if the plan shows that groups by these keys are contained in
    the groups for which it was bounded."""
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
    """Refuses listed keys beside open ones, since the combinations of all keys are measured."""
    for key in group_keys:
        if key.over is not None:
            raise refuse(
                "OpenKeys", f"the key `{key.name}` is listed and another is not: their combinations are not public",
                help="list all keys, or their combinations, `groupby (a, b) over [(1, 2), …]`; or none: those with "
                "enough rows are then found, with a delta",
            )  # fmt: skip


def key_columns(columns: list[list[Any]]) -> list[list[object]]:
    """Key columns of the full cross product; the last key varies fastest."""
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
"""Mechanisms of quantiles only; other aggregates of the select use their default."""


def select(request: Request, amount: Amount, via: str | None) -> Select:
    """A prepared select at an amount, which is divided equally among the aggregates."""
    purchases = shared_purchases(request, amount, via)
    how = Several.of(purchases.mechanisms, sum_prices(amount, purchases.prices))
    return Select(request.table.exposures, request.title, how, request, purchases, request.keys, subject=request)


def shared_purchases(request: Request, amount: Amount, via: str | None) -> Purchases:
    """The purchases of the aggregates, with an equal share of an amount each."""
    aggregates, part = request.aggregates, share(amount, max(1, len(request.aggregates)))
    if via in OF_QUANTILES and not any(isinstance(a, Quantile) for a in aggregates):
        raise refuse("TypeError", f"`via {via}` is for quantiles, and here is none", help="leave it out")
    vias = [via] * len(aggregates)
    if via in OF_QUANTILES:  # other aggregates use their default
        vias = [via if isinstance(aggregate, Quantile) else None for aggregate in aggregates]
    return Purchases.of(aggregates, request.table, part, vias, request.undivided)


class Numbers(Struct, frozen=True):
    """The released numbers of a select, from which answers are computed (`run.answers`).

    `measured` has for each purchase an array of noisy numbers, one row per term, and their law. `chosen` has for each
    aggregate without terms the answers of all groups and their laws, and None for others.
    """

    keys: list[list[Any]]
    table: Table
    layout: Layout
    measured: list[tuple[Floats, Laplace | Gaussian]]
    chosen: list[list[Chosen] | None]


class Several(Struct, frozen=True):
    """The price and the names of several mechanisms in one measurement."""

    mechanism: str
    price: Price

    @classmethod
    def of(cls, mechanisms: Sequence[Mechanism], price: Price) -> Several:
        return cls(", ".join(dict.fromkeys(map(attrgetter("mechanism"), mechanisms))), price)


@dataclass(frozen=True, eq=False)
class Select(Measurement["tuple[list[Any], list[Any]]", "Answer | Numbers"]):
    """A select with public keys. It reads the exact terms of all groups and, for each aggregate without terms, counts
    at its places in each group."""

    request: Request
    purchases: Purchases
    keys: tuple[Key, ...]

    def read(self, reader: Reader) -> tuple[list[Any], list[Any]]:
        table = self.request.table
        terms = tuple([t for one in self.purchases.bought for t in terms_of(one.term)])
        exact = reader.answers.group(table.plan, self.keys, terms) if terms else []
        counts: dict[Key, Any] = {}  # by places, which aggregates may share
        columns = []
        for aggregate in self.purchases.layout.aggregates:
            key = aggregate.places(table) if isinstance(aggregate, GroupAggregate) else None
            if key is not None and key not in counts:
                counts[key] = self._counts(reader, key)
            columns.append(None if key is None else counts[key])
        return list(exact), columns

    def _counts(self, reader: Reader, places: Key) -> Any:
        """The rows of each group at each place, read in several steps if the cells exceed a limit."""
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
        """The noisy terms, and the choices of each aggregate without terms."""
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
    """One measured term or pair with its noise. `uses` has the share of each aggregate that uses it, by name."""

    term: Term | Pair
    how: Additive
    uses: Mapping[str, float]
    direct: bool
    linear: Linear

    def release(
        self, exact: Sequence[Ints], noise: Noise, table: Table, undivided: bool
    ) -> tuple[tuple[Floats, Laplace | Gaussian], Measured]:
        """The noisy numbers of all groups, one row per term, with their law, and the trace record."""
        linear, many, law = self.linear, len(exact), self.linear.law
        if isinstance(self.term, Pair):
            exact = self.term.mixed(exact[0], exact[1], table)
        change, uses = sensitivity_of(self.term, table) / 2.0**linear.bits, self.uses if len(self.uses) > 1 else {}
        stability = stability_of_term(self.term, table, undivided)
        reported = Measured(", ".join(self.uses), law, self.how, change, stability, direct=self.direct, uses=uses)
        return (linear.release(np.stack(exact), noise).reshape(many, -1), law), reported


class Layout(Struct, frozen=True):
    """The terms of a select: `aggregates` as they are computed, the distinct terms and pairs `bought`, and for each
    aggregate the `places` of its terms: the index of a purchase and of a term in it."""

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
    """The purchases of a select: its layout, the first mechanism of each aggregate, one purchase per distinct term, and
    the prices."""

    layout: Layout
    mechanisms: tuple[Mechanism, ...]
    bought: tuple[Purchase, ...]
    prices: tuple[Price, ...]

    @classmethod
    def of(
        cls, aggregates: Sequence[Aggregate], table: Table, part: Amount, vias: Sequence[str | None], undivided: bool
    ) -> Purchases:
        """The purchases of aggregates with a `part` of an amount each, by the requested mechanisms."""
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
    """Aggregates as they are computed: a sum beside a mean of the same expression uses the mean's terms."""
    if len(aggregates) == 1:
        return tuple(aggregates)
    centred = {a.expressions for a in aggregates if type(a) is Avg}
    return tuple([CentredSum(a.expressions) if type(a) is Sum and a.expressions in centred else a for a in aggregates])


def _together(
    term: Term | Pair, parts: Sequence[tuple[AdditiveAggregate, Additive]], part: Amount, table: Table, undivided: bool
) -> Purchase:
    """One purchase with all parts of a term."""
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
    while how.price.rho > most:  # which rounding can cause
        value -= max(1, value >> 40)
        how = replace(how, amount=replace(amount, value=value))
    return how
