"""Additive noise on exact integers, discrete Laplace or discrete Gaussian: the one linear measurement, `Linear`.

*Argument.* Let f map data to integers (in units of 2^-bits) with ‖f(D) − f(D′)‖₁ ≤ Δ₁ and ‖·‖₂ ≤ Δ₂ for neighbours.
Discrete Laplace noise of scale b = Δ₁/ε on every coordinate is ε-DP (Ghosh et al. 2009). Discrete Gaussian noise of
deviation σ is Δ₂²/(2σ²)-zCDP (Canonne et al. 2020, Thm. 4). The amount is the charged one, a whole number of quanta,
and the scale is rounded up.

*Choice of noise.* If both are possible and the program does not say `via`, the noise with the smaller deviation at the
same charge is used. The comparison uses the public Δ₁ and Δ₂ (docs/privacy/mechanisms.md, "Laplace or Gaussian").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting import definitions
from jostle.accounting.amounts import Amount, as_float
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Floats, NDArray, np
from jostle.noise_laws import ADDITIVE, Cube, Gaussian, Laplace
from jostle.privacy.mechanisms.noise import Noise, needed_noise
from jostle.records import replace

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def share(amount: Amount, parts: int) -> Amount:
    """An equal part of an amount, rounded down."""
    return Amount(amount.unit, amount.value // parts, amount.delta // parts)


def sum_prices(whole: Amount, prices: Sequence[definitions.Price]) -> definitions.Price:
    rho, delta0 = sum(map(attrgetter("rho"), prices)), sum(map(attrgetter("delta0"), prices))
    return definitions.Price(whole, rho, delta0, all(map(attrgetter("pure"), prices)))


class Additive(Struct, frozen=True):
    """The kind of noise for one amount. `because` gives the reason, if there was a choice.

    `delta` is the part of the amount's δ that is used, which depends on the measure (`definitions.used_delta`).
    """

    amount: Amount
    kind: type[Laplace | Gaussian]
    because: str = ""
    delta: float = 0.0

    @classmethod
    def of(cls, amount: Amount, via: str | None, measures: Sequence[definitions.Measure]) -> Additive:
        can_gauss = amount.unit == "rho" or amount.delta > 0
        kind = ADDITIVE.get(via) if via is not None else Gaussian if can_gauss else Laplace
        if kind is None:
            raise refuse("NameError", f"unknown mechanism `{via}`", help="write `via laplace` or `via gaussian`")
        if kind is Gaussian and not can_gauss:
            raise refuse("TypeError", "Gaussian noise needs rho, or epsilon with delta", help="add `delta 1e-6`")
        if amount.value == 0:
            raise refuse("BadAmount", "too little epsilon to share among the parts of this measurement")
        additive = cls(amount, kind, delta=definitions.used_delta(amount, measures))
        if kind is Gaussian and additive.price.rho == 0:
            raise refuse("BadAmount", "too little epsilon and delta for Gaussian noise", help="write `via laplace`")
        return additive

    @classmethod
    def fitted(
        cls, amount: Amount, via: str | None, measures: Sequence[definitions.Measure], l1: float = 1.0, l2: float = 1.0
    ) -> Additive:
        """The smaller noise for these sensitivities (in any unit), or the one that `via` names."""
        first = cls.of(amount, via, measures)
        if via is not None or first.kind is Laplace or not l2 > 0:
            return first
        if amount.unit != "rho" and any(measure.kind == "basic" and measure.in_parts for measure in measures):
            return replace(first, kind=Laplace, because="in parts of units, Gaussian noise adds up")
        gaussian = first.law(l1, l2).smooth.deviation
        if amount.unit == "rho" or all(measure.kind == "basic" for measure in measures):
            laplace = replace(first, kind=Laplace).law(l1, l2).smooth.deviation
        else:
            laplace = math.sqrt(2) * l1 / l2 * gaussian
        least, other = sorted((gaussian, laplace))
        because = f"{least / other:.2g} of the deviation that the other noise has"
        return replace(first, kind=Gaussian if gaussian <= laplace else Laplace, because=because)

    @property
    def mechanism(self) -> str:
        return self.kind.name

    @property
    def price(self) -> definitions.Price:
        if self.kind is Gaussian or self.amount.unit == "rho":
            return definitions.gaussian_price(self.amount, self.delta)
        return definitions.pure_price(self.amount)

    @property
    def strength(self) -> float:
        """ε for Laplace noise, μ = √(2ρ) for Gaussian noise. The scale is a sensitivity divided by it."""
        value = as_float(self.amount.value)
        if self.kind is Laplace:
            return definitions.pure_epsilon(value) if self.amount.unit == "rho" else value
        return definitions.root_two_rho(value if self.amount.unit == "rho" else definitions.rho_of(value, self.delta))

    def law(self, l1: float, l2: float) -> Laplace | Gaussian:
        """The noise law for these sensitivities, an integer in the same units."""
        return self.kind((l1 if self.kind is Laplace else l2) / self.strength, step=1.0)


class Linear(Struct, frozen=True):
    """Noise on a vector of exact integers, the common part of all measurements that add noise.

    The integers are in steps of 2^-`bits`. Between neighbours they differ by at most `l1` steps in ℓ₁ and `l2` in ℓ₂,
    each divided by its width if `release` is given widths. `strength` is ε for Laplace noise and μ = √(2ρ) for Gaussian
    noise. Integers are first clamped to ±2^62, which increases no distance, so that adding noise is exact in 64 bits.
    """

    kind: type[Laplace | Gaussian]
    strength: float
    l1: float
    l2: float
    bits: int = 0

    @classmethod
    def of(cls, how: Additive | None, l1: float, l2: float, bits: int = 0) -> Linear:
        """A vector that the whole amount is spent on. Without an amount (public data) it is exact."""
        return cls(Laplace, math.inf, l1, l2, bits) if how is None else cls(how.kind, how.strength, l1, l2, bits)

    def part(self, share: float) -> Linear:
        """The same with a share of the amount. Shares add up, both in ε and in ρ."""
        return replace(self, strength=self.strength * (share if self.kind is Laplace else math.sqrt(share)))

    @property
    def scale(self) -> float:
        """The scale of the noise in steps; 0 if no row affects the vector."""
        return (self.l1 if self.kind is Laplace else self.l2) / self.strength

    @property
    def law(self) -> Laplace | Gaussian:
        """The noise law of a number of width 1, in the units of the released numbers."""
        unit = 2.0**-self.bits
        return self.kind(self.scale * unit, step=unit)

    def release(self, exact: ArrayLike, noise: Noise | None, widths: NDArray[np.generic] | None = None) -> Floats:
        """The noisy numbers as doubles in units of 1, in the shape of `exact`. A number of width w has w times the
        noise. They are exact only if no row affects them or data are public."""
        values, scale = fixed_width(exact), self.scale
        if self.l1 and noise is not None and not scale:
            raise TypeError("what rows move is not released without noise")
        if scale:
            source = needed_noise(noise)
            draw = source.laplace if self.kind is Laplace else source.gaussian
            if widths is None:
                values = draw(np.ascontiguousarray(values), scale)
            else:
                values, exact = np.array(values), values
                for width in np.unique(widths):
                    values[widths == width] = draw(exact[widths == width], scale * float(width))
        numbers: Floats = np.ldexp(values.astype(float), -self.bits)
        return numbers


class InCube(Linear, frozen=True):
    """Noise on `many` integers, each of which differs by at most `l1` steps between neighbours. Pure ε-DP.

    *Argument.* P(z) ∝ exp(−max |zᵢ|·ε/l1), and max |zᵢ + vᵢ| ≤ max |zᵢ| + l1 if all |vᵢ| ≤ l1, so no probability
    changes by more than a factor e^ε. This is the K-norm mechanism (Hardt & Talwar 2010) of a cube, on integers. For
    one number it is Laplace noise; for many its deviation is 0.41 of that of Laplace noise of scale many·l1/ε.
    """

    many: int = 1

    @property
    def law(self) -> Cube:  # type: ignore[override]
        unit = 2.0**-self.bits
        return Cube(self.scale * unit, unit, self.many)

    def release(self, exact: ArrayLike, noise: Noise | None, widths: NDArray[np.generic] | None = None) -> Floats:
        values = fixed_width(exact)
        if widths is not None or values.size != self.many:
            raise TypeError("noise in a cube is drawn for all numbers at once")
        numbers: Floats = np.ldexp(needed_noise(noise).cube(values, self.scale).astype(float), -self.bits)
        return numbers
