"""What a select buys: every sum and count that its aggregates are made of, each once.

A select shares its amount equally among its aggregates, and each of these its part among its terms
(`AdditiveAggregate.shares`). Terms that are equal, such as the count of x for `avg(x)`, `var(x)` and `count(x)`, are
the same number of every group: it is measured once, with all parts that fall to it. A sum beside a mean of the same
expression is Σ(E − m) + m·count(E), of the mean's terms (`CentredSum`). So aggregates of one column agree: `stddev` is
the root of `var`, and `sum` is `avg` times `count`, where the mean is within its bounds.

*Price.* A term with parts ε₁ … εₖ is measured with ε′ ≤ Σεᵢ, so the select costs Σₜ ε′ₜ ≤ ε in all, by sequential
composition; in (ε, δ) by plain sums δ′ = Σδᵢ likewise. In ρ the parts add up in the same way. Where (ε, δ) is counted
in zCDP, ρ(ε) grows faster than ε, and ρ(Σεᵢ) would exceed Σρ(εᵢ): ε′ is then the largest with ρ(ε′) ≤ Σρ(εᵢ). So the
price is in every unit at most that of the terms bought one by one.

*Accuracy.* ε′ and ρ(ε′) are at least those of each part, so no term has more noise than if it were bought alone. The
share s of a sum between ±B goes to its two terms as h : |m| (B = h + |m|), and the mean buys s/2 of each. With t = h/B
and u = 1 − t the variance of the sum is at most half of what s alone gives by Laplace noise, (t/(½ + t))² +
(u/(½ + u))², two thirds of it by Gaussian noise in ρ, t²/(½ + t) + u²/(½ + u), and no more where ρ(ε) grows as ε²,
t²/(¼ + t²) + u²/(¼ + u²). (These are variances of the continuous laws: a whole number with less noise than its step
has less than they say.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jostle.accounting.amounts import QUANTA, Amount, as_float
from jostle.accounting.conversions import epsilon_of
from jostle.accounting.definitions import Price, pure_price
from jostle.formulas import Noised
from jostle.noise_laws import Laplace
from jostle.plan.plan import Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured
from jostle.privacy.measurements.aggregates.aggregate import AdditiveAggregate, Aggregate, GroupAggregate, Mechanism
from jostle.privacy.measurements.aggregates.avg import Avg
from jostle.privacy.measurements.aggregates.centred_sum import CentredSum
from jostle.privacy.measurements.aggregates.sum import Sum
from jostle.privacy.measurements.aggregates.terms import grid_of, reach_of, sensitivity_of, stability_of_term
from jostle.privacy.mechanisms.additive import Additive, share
from jostle.privacy.mechanisms.noise import Noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Purchase:
    """A term and the noise that it is measured with. `uses` has the share of each aggregate that it serves, by name."""

    term: Term
    how: Additive
    uses: tuple[tuple[str, float], ...]
    direct: bool

    def release(self, exact: Ints, noise: Noise, table: Table, undivided: bool) -> tuple[list[Noised], Measured]:
        """The noisy numbers of all groups, and what a trace tells of them."""
        import numpy as np

        sensitivity, stability = sensitivity_of(self.term, table), stability_of_term(self.term, table, undivided)
        bits, reach = grid_of(self.term), reach_of(self.term, table, undivided)
        values = self.how.draw(noise, np.asarray(exact), *reach) if sensitivity else np.asarray(exact)
        law = self.how.law(*reach).times(2.0**-bits)
        names = ", ".join(name for name, _ in self.uses)
        uses = dict(self.uses) if len(self.uses) > 1 else {}
        told = Measured(names, law, self.how, sensitivity / 2.0**bits, stability, direct=self.direct, uses=uses)
        return [Noised(value, law) for value in np.ldexp(values.astype(float).ravel(), -bits).tolist()], told


@dataclass(frozen=True, slots=True)
class Purchases:
    """All that a select buys: `aggregates` as they are computed, the first mechanism of each, and the places of the
    terms of each among the `bought`; none of one that is computed in another way."""

    aggregates: tuple[Aggregate, ...]
    mechanisms: tuple[Mechanism, ...]
    bought: tuple[Purchase, ...]
    places: tuple[tuple[int, ...], ...]
    prices: tuple[Price, ...]

    @classmethod
    def of(cls, aggregates: Sequence[Aggregate], table: Table, part: Amount, vias: Sequence[str | None]) -> Purchases:
        """What aggregates buy with a `part` of an amount each, by the mechanisms that are asked for."""
        computed = with_common_terms(aggregates)
        asked: dict[Term, list[tuple[AdditiveAggregate, Additive]]] = {}
        for aggregate, via in zip(computed, vias, strict=True):
            if isinstance(aggregate, AdditiveAggregate):
                for term, how in aggregate.mechanisms(part, via, table):
                    asked.setdefault(term, []).append((aggregate, how))
        bought = tuple(_together(term, parts, part, table) for term, parts in asked.items())
        prices = [purchase.how.price for purchase in bought]
        mechanisms: list[Mechanism] = []
        places: list[tuple[int, ...]] = []
        for aggregate, via in zip(computed, vias, strict=True):
            own = aggregate.terms(table)
            places.append(tuple(list(asked).index(term) for term in own))
            if isinstance(aggregate, GroupAggregate):
                mechanisms.append(aggregate.mechanism(part, via, table))
                prices.append(aggregate.price(mechanisms[-1], table))
            else:
                mechanisms.append(bought[places[-1][0]].how)
        return cls(computed, tuple(mechanisms), bought, tuple(places), tuple(prices))


def with_common_terms(aggregates: Sequence[Aggregate]) -> tuple[Aggregate, ...]:
    """Aggregates as they are computed: a sum beside a mean of the same expression, of its terms."""
    centred = {a.expressions for a in aggregates if type(a) is Avg}
    return tuple(CentredSum(a.expressions) if type(a) is Sum and a.expressions in centred else a for a in aggregates)


def _together(term: Term, parts: Sequence[tuple[AdditiveAggregate, Additive]], part: Amount, table: Table) -> Purchase:
    """One purchase for all parts of a term."""
    uses: dict[str, float] = {}
    for aggregate, _ in parts:
        uses[aggregate.name] = uses.get(aggregate.name, 0.0) + as_float(part.value)
    hows = [how for _, how in parts]
    direct = any(aggregate.direct for aggregate, _ in parts)
    return Purchase(term, hows[0] if len(hows) == 1 else merged(hows, term, table), tuple(uses.items()), direct)


def merged(hows: Sequence[Additive], term: Term, table: Table) -> Additive:
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


def term_amounts(aggregates: Sequence[Aggregate], table: Table, amount: Amount) -> dict[Term, Amount]:
    """The amount of each term, where the aggregates share one equally."""
    part = share(amount, max(1, len(aggregates)))
    amounts: dict[Term, Amount] = {}
    for aggregate in aggregates:
        for term, own in aggregate.shares(part, table) if isinstance(aggregate, AdditiveAggregate) else ():
            old = amounts.get(term, Amount(own.unit, 0, 0))
            amounts[term] = Amount(own.unit, old.value + own.value, old.delta + own.delta)
    return amounts
