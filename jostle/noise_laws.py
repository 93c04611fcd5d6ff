"""The laws of noise that released numbers carry: public facts, which know how far off a number may be.

What is drawn is the discrete law of the same scale (`privacy.mechanisms`); these are its continuous sisters, which
differ from it by less than a step of the grid that numbers are released on. Nothing is drawn here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class AdditiveLaw(ABC):
    """Noise that is added: its law, and its scale in the units of what is released."""

    scale: float
    name: ClassVar[str]
    """What programs, histories and traces call it."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation."""

    @property
    @abstractmethod
    def laplace_scale(self) -> float:
        """The scale of Laplace noise of the same deviation."""

    @abstractmethod
    def half_width(self, level: float = LEVEL) -> float:
        """h with P(|noise| ≤ h) = `level`, in (0, 1)."""

    @staticmethod
    @abstractmethod
    def sum_quantile(level: float = LEVEL) -> float:
        """The same from above for a weighted sum of such noises, in deviations of the sum."""

    @abstractmethod
    def power(self, exponent: float) -> Self:
        """The law whose density is proportional to this one's to that power: a proximal step of it is so many long."""

    def times(self, factor: float) -> Self:
        """The law of so many times this noise."""
        return replace(self, scale=self.scale * factor)


class Laplace(AdditiveLaw):
    """Density exp(−|x|/b)/2b, b the scale; ε = ℓ₁ sensitivity/b."""

    __slots__ = ()
    name = "laplace"

    @property
    def deviation(self) -> float:
        return self.scale * math.sqrt(2)

    @property
    def laplace_scale(self) -> float:
        return self.scale

    def half_width(self, level: float = LEVEL) -> float:
        return -self.scale * math.log1p(-level)

    @staticmethod
    def sum_quantile(level: float = LEVEL) -> float:
        """A sum of Laplace noises lies between one of them and a Gaussian: the larger quantile of the two."""
        return max(Gaussian.sum_quantile(level), -math.log1p(-level) / math.sqrt(2))

    def power(self, exponent: float) -> Laplace:
        return Laplace(self.scale / exponent)


class Gaussian(AdditiveLaw):
    """Normal noise whose scale is its deviation σ; ρ = (ℓ₂ sensitivity/σ)²/2."""

    __slots__ = ()
    name = "gaussian"

    @property
    def deviation(self) -> float:
        return self.scale

    @property
    def laplace_scale(self) -> float:
        return self.scale / math.sqrt(2)

    def half_width(self, level: float = LEVEL) -> float:
        return self.scale * self.sum_quantile(level)

    @staticmethod
    def sum_quantile(level: float = LEVEL) -> float:
        from statistics import NormalDist

        return NormalDist().inv_cdf((1 + level) / 2)

    def power(self, exponent: float) -> Gaussian:
        return Gaussian(self.scale / math.sqrt(exponent))


@dataclass(frozen=True, slots=True)
class Selected:
    """No noise is added: one of `candidates` was chosen, by scores with noise of this scale, in ranks or rows."""

    scale: float
    candidates: int = 1
    name: ClassVar[str] = "selection"

    def half_width(self, level: float = LEVEL) -> float:
        """With probability `level` the chosen one's score is within this of the best."""
        return self.scale * math.log(self.candidates / (1 - level))


NoiseLaw = Laplace | Gaussian | Selected
ADDITIVE: dict[str, type[Laplace | Gaussian]] = {law.name: law for law in (Laplace, Gaussian)}


def law_named(name: str, scale: float, candidates: int = 1) -> NoiseLaw:
    """The law that a history or a trace names. Raises `KeyError`."""
    return Selected(scale, candidates) if name == Selected.name else ADDITIVE[name](scale)
