"""The measures of privacy loss: pure ε, ρ-zCDP, and (ε, δ) counted in approximate zCDP.

The cost of a mechanism is a `Price`: the amount in the requested unit (for allotments, which add it up) and its cost in
zCDP. The following facts are used, for neighbours at the distance that the noise was scaled to, and rounded safely:

* an ε-DP mechanism is ε·tanh(ε/2)-zCDP, including report noisy max with exponential noise (`pure_price`).
  docs/privacy/mechanisms.md shows why ε²/8 holds for Gumbel noise only;
* Gaussian noise of deviation σ on an ℓ₂-sensitivity Δ is Δ²/(2σ²)-zCDP (discrete: Canonne, Kamath & Steinke 2020);
* ρ-zCDP implies (ε, δ) with δ = inf_α exp((α−1)(αρ−ε)) / (α−1) · (1−1/α)^α (Canonne et al. 2020, Cor. 13).

`Account` is the protocol by which registered sources are also counted in a ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from jostle.accounting.amounts import QUANTA, Amount, Cost, Meter, Path, as_float, rounded_up
from jostle.source import Source as Text
from jostle.source import Span

ROUNDING = 1 + 2.0**-45
"""More than the rounding error of ε·tanh(ε/2)."""
MOST = 1e290
"""The largest ρ of any price; in quanta it is still a float."""


@lru_cache(maxsize=4096)
def epsilon_of(rho: float, delta: float) -> float:
    """The least ε for which ρ-zCDP implies (ε, δ), by ternary search over α. Every α gives an upper bound."""
    if rho == 0:
        return 0.0
    if not 0 < delta < 1:
        return math.inf

    def bound(alpha: float) -> float:
        return alpha * rho + math.log1p(-1 / alpha) + (math.log(1 / delta) - math.log(alpha)) / (alpha - 1)

    return max(0.0, bound(_best(bound)))


def _best(bound: Callable[[float], float]) -> float:
    """The α > 1 at which a quasi-convex bound is least."""

    def at(t: float) -> float:
        return 1.0 + math.exp(t - 20.0)

    low, high = 0.0, 60.0  # of log(α − 1), shifted
    for _ in range(200):
        third = (high - low) / 3
        a, b = low + third, high - third
        if bound(at(a)) < bound(at(b)):
            high = b
        else:
            low = a
    return at((low + high) / 2)


def root_two_rho(rho: float) -> float:
    """√(2ρ), the inverse of the deviation of Gaussian noise, without overflow of 2ρ."""
    return 2 * math.sqrt(rho / 2)


@lru_cache(maxsize=1024)
def pure_epsilon(rho: float) -> float:
    """The largest ε that costs at most ρ in zCDP, from below: the inverse of ε·tanh(ε/2), at least √(2ρ)."""
    low = root_two_rho(rho)
    high = max(2 * low, 2 * rho)  # ε·tanh(ε/2) is at least ε²/4 up to ε = 2, and ε/2 beyond
    return last(low, high, lambda epsilon: epsilon * math.tanh(epsilon / 2) * ROUNDING <= rho)


@lru_cache(maxsize=1024)
def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ within (ε, δ), from below: the inverse of `epsilon_of`."""
    if not (0 < delta < 1 and epsilon > 0):
        return 0.0

    def most(alpha: float) -> float:
        """The ρ whose bound is `epsilon` at this α."""
        return (epsilon - math.log1p(-1 / alpha) - (math.log(1 / delta) - math.log(alpha)) / (alpha - 1)) / alpha

    rho = min(max(0.0, most(_best(lambda alpha: -most(alpha)))), max(1.0, 2 * epsilon), MOST)
    while epsilon_of(rho := math.floor(rho * QUANTA) / QUANTA, delta) > epsilon:  # which rounding can cause
        rho *= 1 - 2.0**-50
    return rho


def last(low: float, high: float, fits: Callable[[float], bool]) -> float:
    """The largest number from `low` on that fits, by bisection, from below."""
    for _ in range(100):
        middle = low + (high - low) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


PARTS = 3
"""An adaptive program can lose δ in three ways: outright failures, Gaussian noise in a plain sum, and the conversion of
ρ. Each has this part of a budget's δ, and an amount's δ buys as much (`docs/privacy/budgets`)."""


class Price(Struct, frozen=True):
    """The cost of one measurement: the requested amount, ρ in quanta, and the requested δ that ρ does not cover
    (stability selection). `pure`: outside an event of that δ it is ε-DP for the ε of the amount, unlike Gaussian noise.
    """

    amount: Amount
    rho: int
    delta0: int = 0
    pure: bool = False


@lru_cache(maxsize=256)
def pure_price(amount: Amount) -> Price:
    """The price of an ε-DP mechanism: ε·tanh(ε/2), the best bound for all of them (docs/privacy/mechanisms.md)."""
    plain = -(-amount.value * amount.value // (2 * QUANTA))
    epsilon = as_float(amount.value)
    return Price(amount, min(plain, rounded_up(epsilon * math.tanh(epsilon / 2) * ROUNDING)), pure=True)


def gaussian_price(amount: Amount, delta: float) -> Price:
    """The price of Gaussian noise: ρ itself, or the ρ within the requested ε and the used `delta`."""
    if amount.unit == "rho":
        return Price(amount, amount.value)
    # `rho_of` is an integer number of quanta as a double: rounding recovers it, a ceiling could add one
    return Price(amount, round(rho_of(as_float(amount.value), delta) * QUANTA))


class ChargePurpose(Struct, frozen=True):
    """The purpose of a charge in a history: the name of the mechanism, and the measured plan. Public."""

    mechanism: str = ""
    plan: object = None


class Measure(Struct, frozen=True):
    """A budget: its unit, its limit, and whether (ε, δ) is counted by plain sums alone (`basic`).

    The total of an `approximate` budget has four places: Σρ, Σδ₀, and the plain sums Σε and Σδ. A charge is admitted if
    Σδ₀ ≤ d, and Σρ ≤ R or (Σε ≤ e and Σδ ≤ d). Each δ counts as requested, and a third of it is used: R, which is
    fixed, and both sums of δ lose at most a third of d each (proof: `docs/privacy/budgets`).
    """

    kind: str  # "pure" | "zcdp" | "approximate" | "basic"
    limit: Amount
    for_ever: int = 0  # for pure ε and zCDP: the limit of all periods together, the last place of a total
    in_parts: bool = False  # a unit may also have rows in other parts

    @property
    def unit(self) -> str:
        return self.limit.unit

    @property
    def width(self) -> int:
        return {"approximate": 4, "basic": 2}.get(self.kind, 1 + bool(self.for_ever))

    @property
    def has_delta(self) -> bool:
        return self.kind in ("approximate", "basic")

    @property
    def conversion_delta(self) -> float:
        """The δ at which the ρ of an approximate budget implies its ε."""
        return used_delta(self.limit, [self])

    @property
    def rho_limit(self) -> int:
        """The ρ of an approximate budget, in quanta, which does not depend on the δ that was spent."""
        most: int = round(rho_of(as_float(self.limit.value), self.conversion_delta) * QUANTA)
        return most

    def cost(self, price: Price, in_part_of_person: bool = False) -> Cost:
        """The cost that a price adds to a total. Gaussian noise on some of a person's rows has no plain sum."""
        if self.kind == "approximate":
            if price.pure:
                return (price.rho, price.delta0, price.amount.value, price.delta0)
            value = self.limit.value + 1 if in_part_of_person else price.amount.value
            return (price.rho, price.delta0, value, max(price.delta0, price.amount.delta))
        if self.kind == "basic":
            return (price.amount.value, price.delta0 if price.pure else price.amount.delta)
        return (price.amount.value,) * self.width

    def admits(self, total: Cost) -> bool:
        if self.kind == "approximate":  # ρ and δ have fixed limits and must not be exchanged (docs/privacy/budgets)
            return total[1] <= self.limit.delta and (self._in_zcdp(total) or self._in_plain_sums(total))
        if self.kind == "basic":
            return total[0] <= self.limit.value and total[1] <= self.limit.delta
        return total[0] <= self.limit.value and (not self.for_ever or total[1] <= self.for_ever)

    def _in_zcdp(self, total: Cost) -> bool:
        return total[0] <= self.rho_limit

    def _in_plain_sums(self, total: Cost) -> bool:
        return total[2] <= self.limit.value and total[3] <= self.limit.delta

    def spent(self, total: Cost) -> dict[str, float]:
        """The spent amount in the budget's unit, by the account with the smaller figure."""
        value, delta = self.spent_exactly(total)
        return {self.unit: as_float(value)} | ({"delta": as_float(delta)} if self.has_delta else {})

    def spent_exactly(self, total: Cost) -> tuple[int, int]:
        """The same in quanta of the unit, and the requested δ in quanta."""
        if self.kind != "approximate":
            return total[0], total[1] if self.kind == "basic" else 0
        if self.counts_in_zcdp(total):
            return min(self.limit.value, self._epsilon(total)), total[1]
        return (total[2], total[3]) if self._in_plain_sums(total) else (self.limit.value, self.limit.delta)

    def counts_in_zcdp(self, total: Cost) -> bool:
        """Whether zCDP gives the smaller figure for an approximate budget."""
        if self.kind != "approximate" or not self._in_zcdp(total):
            return False
        return not self._in_plain_sums(total) or self._epsilon(total) < total[2]

    def _epsilon(self, total: Cost) -> int:
        return rounded_up(epsilon_of(as_float(total[0]), self.conversion_delta))

    def left_exactly(self, total: Cost, slack: Cost) -> tuple[int, int]:
        """The rest of the limit in quanta, if `slack` of the total is free. With `spent` it adds up to the limit."""
        load = tuple(a - b for a, b in zip(total, slack, strict=True))
        if self.kind == "approximate":
            closed = (total[0] if not self._in_zcdp(total) else load[0], load[1])
            load = (*closed, *(load[2:] if self._in_plain_sums(total) else total[2:]))
        value, delta = self.spent_exactly(load)
        value = max(value, self.limit.value - self.for_ever + total[1]) if self.for_ever else value
        return max(0, self.limit.value - value), max(0, self.limit.delta - delta)


def used_delta(amount: Amount, measures: Sequence[Measure]) -> float:
    """The part of a requested δ that a mechanism uses: a third for sources whose δ is spent in three ways, and at most
    a third of the source's δ.
    """
    limits = [one.limit.delta for one in measures if one.kind == "approximate"] if amount.delta else []
    if not limits:
        return as_float(amount.delta)
    return as_float(min(amount.delta, *limits)) / PARTS * (1 - 2.0**-40)


class Account(Protocol):
    """A registered dataset as one session has opened it. `version` rises when its owner updates the data."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def spent(self) -> Cost:
        """The total that was read from the ledger when the dataset was opened."""

    def begin(self) -> None:
        """Starts another program of the session."""

    def counted(self, path: Path) -> Path: ...

    def catch_up(self, meter: Meter, total: Cost) -> None:
        """Adds the charges of other sessions to this session's meter. Refuses a total below the meter's."""

    def settle(
        self, charges: Sequence[Charge], price: Price, what: str, span: Span | None, program: Text | None,
        purpose: ChargePurpose,
    ) -> int | None:  # fmt: skip
        """Writes all charges of a measurement, each with its own account, or none of them. Returns the index of a
        charge that does not fit its budget, or None when all of them are on disk; raises `LedgerError` otherwise."""


class Charge(Struct, frozen=True):
    """The cost of one measurement for one registered source: the path in its meter, and the protected unit."""

    account: Account
    meter: Meter
    path: Path
    cost: Cost
    protects: str


def parts_of(identity: Hashable) -> frozenset[Hashable]:
    """The parts of an identity. Data with a common part share one budget."""
    return identity if isinstance(identity, frozenset) else frozenset((identity,))
