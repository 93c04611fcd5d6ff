"""How a source counts what it loses: pure ε, ρ-zCDP, or (ε, δ) counted in approximate zCDP.

A mechanism says what it costs as a `Price`: the amount in the unit that was asked (for allotments, which add
plainly) and its cost in zCDP. Facts used, each for neighbours at the distance that the noise was scaled to:

* an ε-DP mechanism is ε·tanh(ε/2)-zCDP, report noisy max with exponential noise among them; the least number that holds
  for all of them, and for discrete Laplace noise on a count what it costs (the argument is with `pure_price`).
  The ε²/8 of the exponential mechanism (Cesar & Rogers 2021, Lemma 3.4) rests on a bounded range, which Gumbel noise
  has and exponential noise has not: of two equal scores, moved apart by Δ each, the loser falls to e^-ε/2 and the
  winner rises to 1 − e^-ε/2, a range above ε and a divergence that tends to ε²/2 for small ε (`mechanisms.selection`);
* Gaussian noise of deviation σ on an ℓ₂-sensitivity Δ is Δ²/(2σ²)-zCDP (discrete: Canonne, Kamath & Steinke 2020);
* ρ-zCDP implies (ε, δ) with δ = inf_α exp((α−1)(αρ−ε)) / (α−1) · (1−1/α)^α (Canonne et al. 2020, Cor. 13).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from jostle.accounting.amounts import QUANTA, Amount, as_float, rounded_up
from jostle.accounting.budget_tree import Cost
from jostle.accounting.conversions import ROUNDING, epsilon_of, rho_of

PARTS = 3
"""An adaptive program can lose a δ in three ways: what fails outright, Gaussian noise in a plain sum, and ρ turned into
ε. Each way has one part in so many of a budget's δ, and each amount's δ buys so much (`docs/privacy/budgets`)."""


class Price(Struct, frozen=True):
    """The cost of one measurement: as asked, in ρ quanta, and the δ asked for what no ρ covers (stability selection).

    `pure`: outside an event of that δ it is ε-DP, ε the amount. Gaussian noise is not.
    """

    amount: Amount
    rho: int
    delta0: int = 0
    pure: bool = False


@lru_cache(maxsize=256)
def pure_price(amount: Amount) -> Price:
    """Of an ε-DP mechanism: ε·tanh(ε/2), which is below ε²/2 (Bun & Steinke 2016, Prop. 1.4).

    *Argument.* On two neighbours the mechanism's outputs are a public function of randomised response, whose loss Z is
    ε with probability e^ε/(1 + e^ε), else −ε (Kairouz, Oh & Viswanath 2015). Its mean is ρ = ε·tanh(ε/2), and by the
    inequality of Kearns and Saul (1998) log E exp(λ(Z − ρ)) ≤ λ²ρ: so for each α > 1, with λ = α − 1,
    (α−1)·D_α = log E exp(λZ) ≤ λρ + λ²ρ = (α−1)αρ. As α → 1 this is the divergence itself, so no smaller ρ will do.
    """
    plain = -(-amount.value * amount.value // (2 * QUANTA))
    epsilon = as_float(amount.value)
    return Price(amount, min(plain, rounded_up(epsilon * math.tanh(epsilon / 2) * ROUNDING)), pure=True)


def gaussian_price(amount: Amount, delta: float) -> Price:
    """Of Gaussian noise: ρ itself, or the ρ that lies within the ε asked for and the `delta` that is used of it."""
    if amount.unit == "rho":
        return Price(amount, amount.value)
    # `rho_of` is a whole number of quanta as a double: rounding gives that number back, where a ceiling would add one
    return Price(amount, round(rho_of(as_float(amount.value), delta) * QUANTA))


def stability_price(amount: Amount) -> Price:
    """Of stability-based selection of keys: ε-DP noise, and δ for a key that only one person has."""
    return Price(amount, pure_price(amount).rho, amount.delta, pure=True)


class ChargePurpose(Struct, frozen=True):
    """What a charge is for, as a history tells it: the mechanism's name, and the plan it measures. Public."""

    mechanism: str = ""
    plan: object = None


class Measure(Struct, frozen=True):
    """A budget: its unit, its limit, and whether (ε, δ) is counted by plain sums alone (`basic`).

    A total of an `approximate` budget has four places: Σρ, Σδ₀, and the plain sums Σε and Σδ. A charge is admitted
    where Σδ₀ ≤ d, and Σρ ≤ R or (Σε ≤ e and Σδ ≤ d). Each δ counts as it was asked for, and a third of it is used: of
    R, which is fixed, and of the two sums of δ each loses a third of d at most (proof: `docs/privacy/budgets`).
    """

    kind: str  # "pure" | "zcdp" | "approximate" | "basic"
    limit: Amount

    @property
    def unit(self) -> str:
        return self.limit.unit

    @property
    def width(self) -> int:
        return {"approximate": 4, "basic": 2}.get(self.kind, 1)

    @property
    def conversion_delta(self) -> float:
        """Of an approximate budget: the δ at which its ρ means its ε."""
        return used_delta(self.limit, [self])

    @property
    def rho_limit(self) -> int:
        """Of an approximate budget: the ρ that it holds, in quanta. Fixed, whatever δ is spent."""
        most: int = round(rho_of(as_float(self.limit.value), self.conversion_delta) * QUANTA)
        return most

    def cost(self, price: Price, in_part_of_person: bool = False) -> Cost:
        """What it adds to a total. Of Gaussian noise on some of the rows of a person there is no plain sum."""
        if self.kind == "approximate":
            if price.pure:
                return (price.rho, price.delta0, price.amount.value, price.delta0)
            value = self.limit.value + 1 if in_part_of_person else price.amount.value
            return (price.rho, price.delta0, value, max(price.delta0, price.amount.delta))
        if self.kind == "basic":
            return (price.amount.value, price.amount.delta)
        return (price.amount.value,)

    def admits(self, total: Cost) -> bool:
        if self.kind == "approximate":  # fixed boxes: ρ and δ must not be traded for each other (docs/privacy/budgets)
            return total[1] <= self.limit.delta and (self._in_zcdp(total) or self._in_plain_sums(total))
        if self.kind == "basic":
            return total[0] <= self.limit.value and total[1] <= self.limit.delta
        return total[0] <= self.limit.value

    def _in_zcdp(self, total: Cost) -> bool:
        return total[0] <= self.rho_limit

    def _in_plain_sums(self, total: Cost) -> bool:
        return total[2] <= self.limit.value and total[3] <= self.limit.delta

    def completed(self, total: Cost, places: int) -> Cost:
        """A total that a ledger counted by an earlier rule, in so many places.

        Two places: before plain sums; no plain sum goes on. Three: a δ₀ was used in full and up to a quarter of d, and
        ρ went up to that of ¾·d. What is left keeps within those shares: a third of the δ₀ still asked for is used, up
        to that quarter, and no Gaussian noise enters the plain sum. So old and new charges together stay within (e, d).
        """
        if self.kind == "approximate" and len(total) == 2 < places:
            total = (*total, self.limit.value + 1 if any(total) else 0)
        if self.kind == "approximate" and len(total) == 3 < places:
            asked = PARTS * total[1] + math.ceil(self.limit.delta / 4)
            total = (total[0], asked, total[2], self.limit.delta) if any(total) else (0, 0, 0, 0)
        return total

    def spent(self, total: Cost) -> dict[str, float]:
        """What was spent, in the budget's own words: by the account that says less."""
        value, delta = self.spent_exactly(total)
        return {self.unit: as_float(value)} | ({"delta": as_float(delta)} if self.width > 1 else {})

    def spent_exactly(self, total: Cost) -> tuple[int, int]:
        """The same in quanta: of the unit, and of δ, as it was asked for."""
        if self.kind != "approximate":
            return total[0], total[1] if self.width == 2 else 0
        if self.counts_in_zcdp(total):
            return min(self.limit.value, self._epsilon(total)), total[1]
        return (total[2], total[3]) if self._in_plain_sums(total) else (self.limit.value, self.limit.delta)

    def counts_in_zcdp(self, total: Cost) -> bool:
        """Whether zCDP is the account of an approximate budget that says less."""
        if self.kind != "approximate" or not self._in_zcdp(total):
            return False
        return not self._in_plain_sums(total) or self._epsilon(total) < total[2]

    def _epsilon(self, total: Cost) -> int:
        return rounded_up(epsilon_of(as_float(total[0]), self.conversion_delta))

    def left_exactly(self, total: Cost, slack: Cost) -> tuple[int, int]:
        """What is left of the limit, in quanta, where `slack` of the total is free: `spent` and it are the whole."""
        load = tuple(a - b for a, b in zip(total, slack, strict=True))
        if self.kind == "approximate":
            closed = (total[0] if not self._in_zcdp(total) else load[0], load[1])
            load = (*closed, *(load[2:] if self._in_plain_sums(total) else total[2:]))
        value, delta = self.spent_exactly(load)
        return max(0, self.limit.value - value), max(0, self.limit.delta - delta)


def used_delta(amount: Amount, measures: Sequence[Measure]) -> float:
    """The δ that a mechanism uses of what is asked for: a third, on sources whose δ is spent in three ways.

    And no more than a third of what such a source has.
    """
    limits = [measure.limit.delta for measure in measures if measure.kind == "approximate"]
    if not limits:
        return as_float(amount.delta)
    return as_float(min(amount.delta, *limits)) / PARTS * (1 - 2.0**-40)
