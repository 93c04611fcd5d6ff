"""Several measurements for one charge: a `Prepaid` holds what was paid for, and its parts pay for noisy sums.

*Argument.* What is bought is either pure ε, of which a part s buys ε·s of Laplace noise (parts add up), or μ: that
everything bought together is no easier to tell apart than N(0, 1) from N(μ, 1). A part s buys Gaussian noise with
Σ_blocks (sensitivity / σ)² = s·μ². That an adaptive sequence of such releases with Σ s ≤ 1, also when what is asked
next and with which part depends on what was seen, stays within μ: let W be a Brownian motion that drifts with rate
b, 0 under one database and 1 under its neighbour. Given the past, a release with (sensitivity/σ)² = v is, up to a map
that both sides know, one number from N(0, 1) or from N(√v, 1), as is the increment of W over the next stretch of
time v, which is independent of what W did before. So all releases are a function of the path of W up to μ², and of
that path W(μ²) is a sufficient statistic: N(0, μ²) against N(μ², μ²). (Smith & Thakurta 2022; Koskela, Tobaben &
Honkela 2022.) Hence δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), with equality where all is used (Balle & Wang 2018).

*Whole numbers.* The noise is discrete. Let D(k) ∝ exp(−k²/2σ²) and R the law of N(0, σ²) rounded to whole numbers,
which is post-processing of Gaussian noise on a whole number. R(k) = c·D(k)·∫ exp(−t²/2σ²)·cosh(kt/σ²) dt over
|t| ≤ ½ with c ≥ 1 (Poisson summation), and so R(k) ≥ D(k)·exp(−1/8σ²): the two laws are within 1/(8σ²) in total
variation. n draws with deviations σ_i, however adaptive, are within τ = Σ 1/(8σ_i²), which adds (1 + e^ε)·τ to δ:
a SLACK part of δ is kept for it, and a part that would need more is refused. Under a budget counted in zCDP nothing is
kept back, since there discrete noise has the same ρ as continuous (Canonne, Kamath & Steinke 2020) and μ² = 2ρ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

from jostle.amounts import as_float
from jostle.diagnostics import refuse
from jostle.privacy.accounting import exact_gaussian
from jostle.privacy.handles import Exposures, Handle
from jostle.privacy.kernel import Kernel
from jostle.privacy.measures import Amount, Asked, pure_epsilon, rho_of, root_two_rho
from jostle.privacy.mechanisms.additive import Additive
from jostle.source import Span

WHOLE = 2**40
"""Parts are counted in these units, rounded down."""

SLACK = 2.0**-10
EXACT_UP_TO = 12.0
"""Of ε: beyond it (1 + e^ε)·τ would be too much, and the conversion from zCDP, which needs no slack, is as good."""


@dataclass(slots=True, eq=False)
class Prepaid:
    """What one charge bought, and how much of it is left. `strength` is ε for Laplace noise and μ for Gaussian."""

    exposures: Exposures
    how: Additive
    strength: float
    room: float  # of δ, for the discreteness of noise; infinite where it needs none
    left: int = field(default=WHOLE)

    @property
    def gaussian(self) -> bool:
        return self.how.mechanism == "gaussian"

    def take(self, share: float) -> float:
        """ε or μ for a part of the whole, which is gone with it."""
        units = math.floor(share * WHOLE) if 0 < share <= 1 else 0
        if not units:
            raise refuse("ValueError", "a share of what was paid for is above 0 and at most 1")
        if units > self.left:
            raise refuse(
                "BudgetExceeded", f"a share of {share:g} was asked, and {self.left / WHOLE:g} is left of what was paid",
                help="the shares of all measurements add up to 1",
            )  # fmt: skip
        self.left -= units
        part = units / WHOLE
        return (self.strength * math.sqrt(part) if self.gaussian else self.strength * part) * (1 - 2.0**-40)

    def draw(self, deviation: float, many: int) -> None:
        """Accounts for `many` discrete Gaussian draws of at least this deviation, in steps of their grid."""
        self.room -= many / (8 * deviation * deviation)
        if self.room < 0:
            raise refuse("BadAmount", "so little noise cannot be told from Gaussian noise well enough", help="ask less")

    def check(self, handle: Handle) -> None:
        """Whether it was paid for the very data of `handle`, or for what holds them."""
        for exposure in handle.exposures:
            paid = [p for p in self.exposures if p.source is exposure.source]
            covered = any(
                p.path == exposure.path[: len(p.path)] and set(exposure.agents) <= set(p.agents) for p in paid
            )
            if not covered:
                raise refuse("TypeError", "this was paid for other data", help="`prepaid(rows)` of the same rows")


def prepay(kernel: Kernel, handle: Handle, amount: Amount, via: str | None, span: Span | None) -> Prepaid:
    """Charges `amount` at once on every source of a private handle."""
    how = Additive.of(amount, via)
    kernel.charge(handle.exposures, how.price, "prepaid", span, Asked(how.mechanism, handle))
    room = math.inf
    value, delta = as_float(amount.value), as_float(amount.delta)
    if how.mechanism == "laplace":
        strength = pure_epsilon(value) if amount.unit == "rho" else value
    elif amount.unit == "rho":
        strength = root_two_rho(value)
    elif value <= EXACT_UP_TO and all(e.source.measure.kind == "basic" for e in handle.exposures):
        strength = mu_of(value, delta * (1 - SLACK))
        room = delta * SLACK / (1 + math.exp(value))
    else:
        strength = root_two_rho(rho_of(value, delta))
    return Prepaid(handle.exposures, how, strength, room)


@lru_cache(maxsize=1024)
def mu_of(epsilon: float, delta: float) -> float:
    """The largest μ whose exact Gaussian curve passes within (ε, δ), from below."""
    low, high = 0.0, 1.0
    while exact_gaussian(high, delta) <= epsilon and high < 1e6:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if exact_gaussian(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low * (1 - 2.0**-40)
