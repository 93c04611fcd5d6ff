"""Additive noise on exact integers: discrete Laplace or discrete Gaussian.

*Argument.* Let f map data to integers (in units of 2^-bits) with ‖f(D) − f(D′)‖₁ ≤ Δ₁ and ‖·‖₂ ≤ Δ₂ for
neighbours. Discrete Laplace noise of scale b = Δ₁/ε on every coordinate is ε-DP (Ghosh et al. 2009); discrete
Gaussian noise of deviation σ is Δ₂²/(2σ²)-zCDP (Canonne et al. 2020, Thm. 4). The amount is the one charged, a
whole number of quanta, and the scale is rounded up.

*Which of the two.* Where both could be drawn and the program does not say `via`, the one with the smaller deviation at
the same charge is: a choice by the public Δ₁ and Δ₂, which the trace tells. In plain sums of (ε, δ) Laplace has √2·Δ₁/ε
against Δ₂/√(2ρ), ρ that of (ε, δ). In ρ it has the same with ε·tanh(ε/2) = ρ, and so is the larger up to ρ = 3.66 at
least (Δ₂ ≤ Δ₁). For (ε, δ) counted by zCDP Gaussian noise is taken: Laplace noise of all of ε would cost more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.conversions import pure_epsilon, rho_of, root_two_rho
from jostle.accounting.definitions import Measure, Price, gaussian_price, pure_price, used_delta
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.noise_laws import ADDITIVE, Gaussian, Laplace
from jostle.privacy.mechanisms.noise import Noise
from jostle.records import replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def share(amount: Amount, parts: int) -> Amount:
    """An equal part of an amount; what does not divide is left over, on the safe side."""
    return Amount(amount.unit, amount.value // parts, amount.delta // parts)


def sum_prices(whole: Amount, prices: list[Price]) -> Price:
    rho, delta0 = sum(p.rho for p in prices), sum(p.delta0 for p in prices)
    return Price(whole, rho, delta0, all(p.pure for p in prices))


class Additive(Struct, frozen=True):
    """A choice of noise for one amount; `because` says what decided, where something had to be.

    `delta` is the δ that it uses of the amount's, by how its sources are counted (`definitions.used_delta`).
    """

    amount: Amount
    kind: type[Laplace | Gaussian]
    because: str = ""
    delta: float = 0.0

    @classmethod
    def of(cls, amount: Amount, via: str | None, measures: Sequence[Measure]) -> Additive:
        can_gauss = amount.unit == "rho" or amount.delta > 0
        kind = ADDITIVE.get(via) if via is not None else Gaussian if can_gauss else Laplace
        if kind is None:
            raise refuse("NameError", f"unknown mechanism `{via}`", help="write `via laplace` or `via gaussian`")
        if kind is Gaussian and not can_gauss:
            raise refuse("TypeError", "Gaussian noise needs rho, or epsilon with delta", help="add `delta 1e-6`")
        if amount.value == 0:
            raise refuse("BadAmount", "too little epsilon to share among the parts of this measurement")
        additive = cls(amount, kind, delta=used_delta(amount, measures))
        if kind is Gaussian and additive.price.rho == 0:
            raise refuse("BadAmount", "too little epsilon and delta for Gaussian noise", help="write `via laplace`")
        return additive

    @classmethod
    def fitted(
        cls, amount: Amount, via: str | None, measures: Sequence[Measure], l1: float = 1.0, l2: float = 1.0
    ) -> Additive:
        """The noise of a measurement with these sensitivities, in any unit: the smaller one, unless `via` names one."""
        first = cls.of(amount, via, measures)
        if via is not None or first.kind is Laplace or not l2 > 0:
            return first
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
    def price(self) -> Price:
        if self.kind is Gaussian or self.amount.unit == "rho":
            return gaussian_price(self.amount, self.delta)
        return pure_price(self.amount)

    def law(self, l1: float, l2: float) -> Laplace | Gaussian:
        """The noise for these sensitivities, in the units they are given in, of which it is a whole number."""
        value = as_float(self.amount.value)
        if self.kind is Laplace:
            return Laplace(l1 / (pure_epsilon(value) if self.amount.unit == "rho" else value), step=1.0)
        rho = value if self.amount.unit == "rho" else rho_of(value, self.delta)
        return Gaussian(l2 / root_two_rho(rho), step=1.0)

    def draw(self, noise: Noise, exact: NDArray[np.int64], l1: float, l2: float) -> NDArray[np.int64]:
        return drawn_by(noise, self.kind)(fixed_width(exact), self.law(l1, l2).scale)


def drawn_by(noise: Noise, kind: type[Laplace | Gaussian]) -> Callable[[NDArray[np.int64], float], NDArray[np.int64]]:
    """What adds discrete noise of this law, given whole numbers and a scale in their units."""
    return noise.laplace if kind is Laplace else noise.gaussian
