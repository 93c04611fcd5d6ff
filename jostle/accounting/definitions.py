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
from dataclasses import dataclass

from jostle.accounting.amounts import QUANTA, Amount, as_float, rounded_up
from jostle.accounting.budget_tree import Cost
from jostle.accounting.conversions import ROUNDING, epsilon_of, rho_of

DIRECT = 4
"""One part in so many of a budget's δ is for what fails with a probability; the rest turns ρ into ε."""


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one measurement: as asked, in ρ quanta, and the δ that no ρ covers (stability selection).

    `pure`: outside an event of that δ it is ε-DP, ε the amount. Gaussian noise is not.
    """

    amount: Amount
    rho: int
    delta0: int = 0
    pure: bool = False


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


def gaussian_price(amount: Amount) -> Price:
    """Of Gaussian noise: ρ itself, or the ρ that lies within the (ε, δ) asked for."""
    if amount.unit == "rho":
        return Price(amount, amount.value)
    # `rho_of` is a whole number of quanta as a double: rounding gives that number back, where a ceiling would add one
    return Price(amount, round(rho_of(as_float(amount.value), as_float(amount.delta)) * QUANTA))


def stability_price(amount: Amount) -> Price:
    """Of stability-based selection of keys: ε-DP noise, and δ for a key that only one person has."""
    return Price(amount, pure_price(amount).rho, amount.delta, pure=True)


@dataclass(frozen=True, slots=True)
class ChargePurpose:
    """What a charge is for, as a history tells it: the mechanism's name, and the plan it measures. Public."""

    mechanism: str = ""
    plan: object = None


@dataclass(frozen=True, slots=True)
class Measure:
    """A budget: its unit, its limit, and whether (ε, δ) is counted by zCDP or by plain sums (`basic`)."""

    kind: str  # "pure" | "zcdp" | "approximate" | "basic"
    limit: Amount

    @property
    def unit(self) -> str:
        return self.limit.unit

    @property
    def width(self) -> int:
        return {"approximate": 3, "basic": 2}.get(self.kind, 1)

    @property
    def direct_delta(self) -> int:
        """Of an approximate budget: the most δ that mechanisms may spend which fail with a probability, in quanta."""
        return self.limit.delta // DIRECT

    @property
    def conversion_delta(self) -> int:
        """Of an approximate budget: the δ at which its ρ means its ε, in quanta."""
        return self.limit.delta - self.direct_delta

    @property
    def rho_limit(self) -> int:
        """Of an approximate budget: the ρ that it holds, in quanta. Fixed, whatever δ is spent."""
        most: int = round(rho_of(as_float(self.limit.value), as_float(self.conversion_delta)) * QUANTA)
        return most

    def cost(self, price: Price) -> Cost:
        if self.kind == "approximate":
            plain = price.amount.value if price.pure else self.limit.value + 1  # more than any plain sum may be
            return (price.rho, price.delta0, plain)
        if self.kind == "basic":
            return (price.amount.value, price.amount.delta)
        return (price.amount.value,)

    def admits(self, total: Cost) -> bool:
        if self.kind == "approximate":  # fixed boxes: ρ and δ must not be traded for each other (docs/privacy/budgets)
            within = total[0] <= self.rho_limit or total[2] <= self.limit.value
            return within and total[1] <= self.direct_delta
        if self.kind == "basic":
            return total[0] <= self.limit.value and total[1] <= self.limit.delta
        return total[0] <= self.limit.value

    def completed(self, total: Cost) -> Cost:
        """A total of a ledger that is older than the place for plain sums, which nothing fits any more."""
        older = self.kind == "approximate" and len(total) == 2
        return (*total, self.limit.value + 1 if any(total) else 0) if older else total

    def spent(self, total: Cost) -> dict[str, float]:
        """What was lost, in the budget's own words."""
        value, delta = self.spent_exactly(total)
        return {self.unit: as_float(value)} | ({"delta": as_float(delta)} if self.width > 1 else {})

    def spent_exactly(self, total: Cost) -> tuple[int, int]:
        """The same in quanta: of the unit, and of δ."""
        if self.kind == "approximate":
            epsilon = rounded_up(epsilon_of(as_float(total[0]), as_float(self.conversion_delta)))
            if total[2] <= min(epsilon, self.limit.value):
                return total[2], total[1]
            return epsilon, self.limit.delta
        return total[0], total[1] if self.width == 2 else 0
