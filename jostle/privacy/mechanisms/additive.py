"""Additive noise on exact integers, discrete Laplace or discrete Gaussian: the one linear measurement, `Linear`.

*Argument.* Let f map data to integers (in units of 2^-bits) with ‖f(D) − f(D′)‖₁ ≤ Δ₁ and ‖·‖₂ ≤ Δ₂ for neighbours.
Discrete Laplace noise of scale b = Δ₁/ε on every coordinate is ε-DP (Ghosh et al. 2009); discrete Gaussian noise of
deviation σ is Δ₂²/(2σ²)-zCDP (Canonne et al. 2020, Thm. 4). The amount is the one charged, a whole number of quanta,
and the scale is rounded up.

*Which of the two.* Where both could be drawn and the program does not say `via`, the one with the smaller deviation at
the same charge is drawn. It is found by the public Δ₁ and Δ₂ (docs/privacy/mechanisms.md, "Laplace or Gaussian").
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
    """An equal part of an amount; what does not divide is left over, on the safe side."""
    return Amount(amount.unit, amount.value // parts, amount.delta // parts)


def sum_prices(whole: Amount, prices: Sequence[definitions.Price]) -> definitions.Price:
    rho, delta0 = sum(map(attrgetter("rho"), prices)), sum(map(attrgetter("delta0"), prices))
    return definitions.Price(whole, rho, delta0, all(map(attrgetter("pure"), prices)))


class Additive(Struct, frozen=True):
    """A choice of noise for one amount; `because` says what decided, where something had to be.

    `delta` is the δ that it uses of the amount's, by how its sources are counted (`definitions.used_delta`).
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
        """The noise of a measurement with these sensitivities, in any unit: the smaller one, unless `via` names one."""
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
        """ε of Laplace noise, and of Gaussian noise μ = √(2ρ): a sensitivity over it is the scale."""
        value = as_float(self.amount.value)
        if self.kind is Laplace:
            return definitions.pure_epsilon(value) if self.amount.unit == "rho" else value
        return definitions.root_two_rho(value if self.amount.unit == "rho" else definitions.rho_of(value, self.delta))

    def law(self, l1: float, l2: float) -> Laplace | Gaussian:
        """The noise for these sensitivities, in the units they are given in, of which it is an integer."""
        return self.kind((l1 if self.kind is Laplace else l2) / self.strength, step=1.0)


class Linear(Struct, frozen=True):
    """Noise on a vector of exact integers: what every measurement that adds noise is an instance of.

    The integers are in steps of 2^-`bits`. Between neighbours they differ by at most `l1` steps in ℓ₁ and `l2` in ℓ₂;
    where `release` is given widths, each over its own. `strength` is ε for Laplace noise, and μ = √(2ρ) for Gaussian
    noise. Each integer is brought within ±2^62 first, which moves no two vectors further apart, so that the sum of it
    and its noise is exact in 64 bits.
    """

    kind: type[Laplace | Gaussian]
    strength: float
    l1: float
    l2: float
    bits: int = 0

    @classmethod
    def of(cls, how: Additive | None, l1: float, l2: float, bits: int = 0) -> Linear:
        """A vector on which all of an amount is spent; of public data, without an amount, it is exact."""
        return cls(Laplace, math.inf, l1, l2, bits) if how is None else cls(how.kind, how.strength, l1, l2, bits)

    def part(self, share: float) -> Linear:
        """The same with a share of the amount: shares add up, of ε and of ρ."""
        return replace(self, strength=self.strength * (share if self.kind is Laplace else math.sqrt(share)))

    @property
    def scale(self) -> float:
        """Of the noise, in steps; 0 where no row moves the vector."""
        return (self.l1 if self.kind is Laplace else self.l2) / self.strength

    @property
    def law(self) -> Laplace | Gaussian:
        """The noise of a number of width 1, in the units of what is released."""
        unit = 2.0**-self.bits
        return self.kind(self.scale * unit, step=unit)

    def release(self, exact: ArrayLike, noise: Noise | None, widths: NDArray[np.generic] | None = None) -> Floats:
        """The noisy numbers in the shape of the exact ones, as doubles in units of 1; of width w, with w times the
        noise. Only where no row moves them, or data are public, they are exact."""
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
    """The same of `many` integers, of which each differs by at most `l1` steps between neighbours: pure ε.

    *Argument.* P(z) ∝ exp(−max |zᵢ|·ε/l1), and max |zᵢ + vᵢ| ≤ max |zᵢ| + l1 where all |vᵢ| ≤ l1: no probability
    changes by more than a factor e^ε. The K-norm mechanism (Hardt & Talwar 2010) of a cube, on whole numbers. Its
    deviation is 0.41 of that of Laplace noise of scale many·l1/ε for many of them, and equal to it for one.
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
