"""How a source counts what it loses: pure ε, ρ-zCDP, or (ε, δ) counted in approximate zCDP.

A mechanism says what it costs as a `Price`: the amount in the unit that was asked (for allotments, which add
plainly) and its cost in zCDP. Facts used, each for neighbours at the distance that the noise was scaled to, and each
from the safe side in doubles:

* an ε-DP mechanism is ε·tanh(ε/2)-zCDP, report noisy max with exponential noise among them (`pure_price`). Why
  ε²/8 holds for Gumbel noise alone is in docs/privacy/mechanisms.md too;
* Gaussian noise of deviation σ on an ℓ₂-sensitivity Δ is Δ²/(2σ²)-zCDP (discrete: Canonne, Kamath & Steinke 2020);
* ρ-zCDP implies (ε, δ) with δ = inf_α exp((α−1)(αρ−ε)) / (α−1) · (1−1/α)^α (Canonne et al. 2020, Cor. 13).

What a registered source is counted in beside its meter: a protocol, which the ledger on disk implements.
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
"""More than what floating point may lose in ε·tanh(ε/2)."""
MOST = 1e290
"""The most ρ that anything is given; in quanta it is still a float."""


@lru_cache(maxsize=4096)
def epsilon_of(rho: float, delta: float) -> float:
    """The least ε for which ρ-zCDP gives (ε, δ), by ternary search over α; an upper bound at any α it stops at."""
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
    """√(2ρ), the inverse of Gaussian noise's deviation; the same to the bit where 2ρ is no float any more."""
    return 2 * math.sqrt(rho / 2)


@lru_cache(maxsize=1024)
def pure_epsilon(rho: float) -> float:
    """The most ε that costs at most ρ in zCDP, from below: the inverse of ε·tanh(ε/2), and no less than √(2ρ)."""
    low = root_two_rho(rho)
    high = max(2 * low, 2 * rho)  # ε·tanh(ε/2) is at least ε²/4 up to ε = 2, and ε/2 beyond
    return last(low, high, lambda epsilon: epsilon * math.tanh(epsilon / 2) * ROUNDING <= rho)


@lru_cache(maxsize=1024)
def rho_of(epsilon: float, delta: float) -> float:
    """The most ρ that stays within (ε, δ): the inverse of `epsilon_of`, from below."""
    if not (0 < delta < 1 and epsilon > 0):
        return 0.0

    def most(alpha: float) -> float:
        """The ρ whose bound is `epsilon` at this α."""
        return (epsilon - math.log1p(-1 / alpha) - (math.log(1 / delta) - math.log(alpha)) / (alpha - 1)) / alpha

    rho = min(max(0.0, most(_best(lambda alpha: -most(alpha)))), max(1.0, 2 * epsilon), MOST)
    while epsilon_of(rho := math.floor(rho * QUANTA) / QUANTA, delta) > epsilon:  # by what was rounded
        rho *= 1 - 2.0**-50
    return rho


def last(low: float, high: float, fits: Callable[[float], bool]) -> float:
    """The last number from `low` on that fits, by bisection from below."""
    for _ in range(100):
        middle = low + (high - low) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


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
    """Of an ε-DP mechanism: ε·tanh(ε/2), the least that holds for all of them (docs/privacy/mechanisms.md)."""
    plain = -(-amount.value * amount.value // (2 * QUANTA))
    epsilon = as_float(amount.value)
    return Price(amount, min(plain, rounded_up(epsilon * math.tanh(epsilon / 2) * ROUNDING)), pure=True)


def gaussian_price(amount: Amount, delta: float) -> Price:
    """Of Gaussian noise: ρ itself, or the ρ that lies within the ε asked for and the `delta` that is used of it."""
    if amount.unit == "rho":
        return Price(amount, amount.value)
    # `rho_of` is a whole number of quanta as a double: rounding gives that number back, where a ceiling would add one
    return Price(amount, round(rho_of(as_float(amount.value), delta) * QUANTA))


class ChargePurpose(Struct, frozen=True):
    """What a charge is for, as a history shows it: the mechanism's name, and the plan it measures. Public."""

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
    for_ever: int = 0  # of pure ε and zCDP, and what all periods together may lose: the last place of a total
    in_parts: bool = False  # of data of which a unit may have rows in other parts too

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
            return (price.amount.value, price.delta0 if price.pure else price.amount.delta)
        return (price.amount.value,) * self.width

    def admits(self, total: Cost) -> bool:
        if self.kind == "approximate":  # fixed boxes: ρ and δ must not be traded for each other (docs/privacy/budgets)
            return total[1] <= self.limit.delta and (self._in_zcdp(total) or self._in_plain_sums(total))
        if self.kind == "basic":
            return total[0] <= self.limit.value and total[1] <= self.limit.delta
        return total[0] <= self.limit.value and (not self.for_ever or total[1] <= self.for_ever)

    def _in_zcdp(self, total: Cost) -> bool:
        return total[0] <= self.rho_limit

    def _in_plain_sums(self, total: Cost) -> bool:
        return total[2] <= self.limit.value and total[3] <= self.limit.delta

    def spent(self, total: Cost) -> dict[str, float]:
        """What was spent, in the budget's own words: by the account that says less."""
        value, delta = self.spent_exactly(total)
        return {self.unit: as_float(value)} | ({"delta": as_float(delta)} if self.has_delta else {})

    def spent_exactly(self, total: Cost) -> tuple[int, int]:
        """The same in quanta: of the unit, and of δ, as it was asked for."""
        if self.kind != "approximate":
            return total[0], total[1] if self.kind == "basic" else 0
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
        value = max(value, self.limit.value - self.for_ever + total[1]) if self.for_ever else value
        return max(0, self.limit.value - value), max(0, self.limit.delta - delta)


def used_delta(amount: Amount, measures: Sequence[Measure]) -> float:
    """The δ that a mechanism uses of what is asked for: a third, on sources whose δ is spent in three ways.

    And no more than a third of what such a source has.
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
        """Another program of the session begins."""

    def counted(self, path: Path) -> Path: ...

    def catch_up(self, meter: Meter, total: Cost) -> None:
        """Adds to the session's meter what other sessions have spent; refuses a total below the meter's."""

    def settle(
        self, charges: Sequence[Charge], price: Price, what: str, span: Span | None, program: Text | None,
        purpose: ChargePurpose,
    ) -> int | None:  # fmt: skip
        """Writes all charges of a measurement, each with its own account, or none of them. Returns the index of a
        charge that does not fit its budget, or None when all of them are on disk; raises `LedgerError` otherwise."""


class Charge(Struct, frozen=True):
    """What one measurement costs one registered source: on which path of its meter, and what a row protects."""

    account: Account
    meter: Meter
    path: Path
    cost: Cost
    protects: str


def parts_of(identity: Hashable) -> frozenset[Hashable]:
    """What data are known by: data that have a part in common are one, wherever one budget is to be counted."""
    return identity if isinstance(identity, frozenset) else frozenset((identity,))
