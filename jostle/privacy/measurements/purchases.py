"""What a select buys: every sum and count that its aggregates are made of, each once.

A select shares its amount equally among its aggregates, and each of these its part among what it measures
(`AdditiveAggregate.shares`). Terms that are equal, such as the count of x for `avg(x)`, `var(x)` and `count(x)`, are
the same number of every group: it is measured once, in a pair if there is one, with all parts that fall to it. A sum
beside a mean of the same expression is Σ(E − m) + m·count(E), of the mean's terms (`CentredSum`). So aggregates of one
column agree: `stddev` is the root of `var`, and `sum` is `avg` times `count`, where the mean is within its bounds.

*Price.* A term with parts ε₁ … εₖ is measured with ε′ ≤ Σεᵢ, so the select costs Σₜ ε′ₜ ≤ ε in all, by sequential
composition; in (ε, δ) by plain sums δ′ = Σδᵢ likewise. In ρ the parts add up in the same way. Where (ε, δ) is counted
in zCDP, ρ(ε) grows faster than ε, and ρ(Σεᵢ) would exceed Σρ(εᵢ): ε′ is then the largest with ρ(ε′) ≤ Σρ(εᵢ). So the
price is in every unit at most that of the terms bought one by one.

*Accuracy.* ε′ and ρ(ε′) are at least those of each part, so a term that is measured by itself has no more noise than if
it were bought alone. A count or a sum beside a mean is of the pair that the mean buys (`Pair`): with the share s
of the mean and its own, the count has variance 2·2/(2s)², that of 2/s² alone, and less where ρ(ε) grows as ε²; the sum
(h² + m²)/s², at most the 2(h + |m|)²/s² that it has by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from jostle.accounting.amounts import QUANTA, Amount, as_float
from jostle.accounting.definitions import Price, epsilon_of, pure_price
from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import Gaussian, Laplace
from jostle.plan.plan import Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured
from jostle.privacy.measurements.aggregates.aggregate import (
    AdditiveAggregate,
    Aggregate,
    GroupAggregate,
    Mechanism,
    Pair,
    grid_of,
    reach_of,
    sensitivity_of,
    stability_of_term,
    terms_of,
)
from jostle.privacy.measurements.aggregates.sums import Avg, CentredSum, Sum
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.privacy.mechanisms.noise import Noise
from jostle.records import replace


class Purchase(Struct, frozen=True):
    """What is measured, and its noise. `uses` has the share of each aggregate that it serves, by name."""

    term: Term | Pair
    how: Additive
    uses: Mapping[str, float]
    direct: bool
    linear: Linear
    stability: int

    def release(
        self, exact: Sequence[Ints], noise: Noise, table: Table
    ) -> tuple[tuple[Floats, Laplace | Gaussian], Measured]:
        """The noisy numbers of all groups, a row each (of a pair A and B), with their law; and what a trace reports."""
        linear, many, law = self.linear, len(exact), self.linear.law
        if isinstance(self.term, Pair):
            exact = self.term.mixed(exact[0], exact[1], table)
        change, uses = sensitivity_of(self.term, table) / 2.0**linear.bits, self.uses if len(self.uses) > 1 else {}
        reported = Measured(", ".join(self.uses), law, self.how, change, self.stability, direct=self.direct, uses=uses)
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
    return Purchase(term, how, uses, direct, linear, stability_of_term(term, table, undivided))


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
