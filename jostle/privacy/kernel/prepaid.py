"""Prepaid amounts: one charge that pays for several noisy sums, each with a part of it.

*Argument.* The charge buys either pure ε, of which a part s gives Laplace noise for ε·s (parts add up), or μ: all
releases together are no easier to distinguish than N(0, 1) from N(μ, 1). A part s gives Gaussian noise with
Σ_blocks (sensitivity / σ)² = s·μ². An adaptive sequence of such releases with Σ s ≤ 1 stays within μ, also if each
question and its part depend on earlier answers. Proof: let W be a Brownian motion with drift b, which is 0 under one
database and 1 under its neighbour. Given the past, a release with (sensitivity/σ)² = v is, up to a map that both sides
know, one number from N(0, 1) or from N(√v, 1). So is the increment of W over the next interval of length v, which is
independent of the earlier path. So all releases are a function of the path of W up to μ², of which W(μ²) is a
sufficient statistic: N(0, μ²) against N(μ², μ²) (Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2022). Hence
δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), with equality if everything is used (Balle & Wang 2018).

*Discrete noise.* Let D(k) ∝ exp(−k²/2σ²), and let R be the law of N(0, σ²) rounded to integers, which is
post-processing of Gaussian noise on an integer. R(k) = c·D(k)·∫ exp(−t²/2σ²)·cosh(kt/σ²) dt over |t| ≤ ½ with c ≥ 1
(Poisson summation), so R(k) ≥ D(k)·exp(−1/8σ²), and the total variation distance of both laws is at most 1/(8σ²). For
n draws with deviations σ_i, also adaptive ones, it is at most τ = Σ 1/(8σ_i²), which adds (1 + e^ε)·τ to δ. The part
SLACK of δ is reserved for this, and a measurement that needs more is refused. Under zCDP nothing is reserved, since
discrete noise has the same ρ as continuous noise (Canonne, Kamath & Steinke 2020) and μ² = 2ρ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import pure_epsilon, rho_of, root_two_rho
from jostle.accounting.subsampled_gaussian import mu_of
from jostle.diagnostics import refuse
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.kernel.exposures import Handle
from jostle.privacy.kernel.measurement import Bought, Measured, Measurement, Payment, Release, stability_of
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.noise import Noise
from jostle.source import Span

WHOLE = 2**40
"""Parts are counted in these units, rounded down."""

SLACK = 2.0**-10
EXACT_UP_TO = 12.0
"""The largest ε for it. Beyond, (1 + e^ε)·τ is too large, and the conversion from zCDP, without slack, is as good."""


class Prepaid(Bought, frozen=True):
    """A balance for noisy sums. `strength` is ε for Laplace noise and μ for Gaussian noise.

    `single`: it pays for one measurement, whose event says so.
    """

    how: Additive
    strength: float
    discrete: bool  # whether its balance reserves δ for discrete noise
    single: bool

    def need_fit(self, measurement: Measurement[Any, Any], span: Span | None) -> None:
        """Refuses measurements of other data, and those that are not counted in ρ."""
        if not self.covers(measurement.exposures):
            help = "measure data that `in_rho` was given, or what is made of them"
            raise refuse("TypeError", "`in_rho` pays for other data", span, help=help)
        price = measurement.price
        if price.amount.unit != "rho" or price.amount.delta or price.delta0:
            raise refuse("TypeError", "what is counted in rho by `in_rho` has shares alone", span, help="`with 1/4`")

    @property
    def gaussian(self) -> bool:
        return self.how.kind is Gaussian

    def part(self, share: float) -> float:
        """The ε or μ of a share of the whole."""
        part = units_of(share) / WHOLE
        return (self.strength * math.sqrt(part) if self.gaussian else self.strength * part) * (1 - 2.0**-40)

    def room(self, deviation: float, many: int) -> float:
        """The δ for `many` discrete draws. `deviation` is their least, in steps of the grid."""
        return many / (8 * deviation * deviation) if self.discrete and self.gaussian else 0.0

    def payment(self, share: float, room: float) -> Payment:
        """The payment of a share of the whole."""
        return Payment(self, units_of(share), room)


def units_of(share: float) -> int:
    units = math.floor(share * WHOLE) if 0 < share <= 1 else 0
    if not units:
        raise refuse("ValueError", "a share of what was paid for is above 0 and at most 1")
    return units


@dataclass(frozen=True, eq=False)
class Prepayment(Measurement[None, Prepaid]):
    """The measurement that buys a `Prepaid` for one handle. It reads nothing."""

    handle: Handle
    single: bool

    @classmethod
    def of(cls, handle: Handle, amount: Amount, via: str | None) -> Prepayment:
        """Buys `amount` on every source of a private handle, for several measurements."""
        return cls.by(handle, Additive.of(amount, via, handle.measures), False)

    @classmethod
    def by(cls, handle: Handle, how: Additive, single: bool) -> Prepayment:
        """The same with a given noise `how`, for a `single` measurement or for several."""
        return cls(handle.exposures, "prepaid", how, handle, single, subject=handle)

    @cached_property
    def bought(self) -> tuple[float, float]:
        """The ε (Laplace noise) or μ (Gaussian noise), and the δ reserved for discrete noise."""
        amount = self.how.amount
        value, delta = as_float(amount.value), self.how.delta
        if self.how.kind is Laplace:
            return pure_epsilon(value) if amount.unit == "rho" else value, math.inf
        if amount.unit == "rho":
            return root_two_rho(value), math.inf
        if value <= EXACT_UP_TO and all(e.source.measure.kind == "basic" for e in self.handle.exposures):
            return mu_of(value, delta * (1 - SLACK)), delta * SLACK / (1 + math.exp(value))
        return root_two_rho(rho_of(value, delta)), math.inf

    def buys(self) -> tuple[int, float]:
        return WHOLE, self.bought[1]

    def read(self, reader: Any) -> None:
        return None

    def release(self, exact: None, noise: Noise | None) -> Release[Prepaid]:
        strength, room = self.bought
        rho = Amount("rho", self.how.price.rho)
        prepaid = Prepaid(self.handle.exposures, rho, self.how, strength, room < math.inf, self.single)
        event = Measured("prepaid", self.how.kind(1 / strength), self.how, 1, stability_of(self.handle))
        return Release(prepaid, () if self.single else (event,))
