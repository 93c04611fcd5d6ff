"""The laws of noise that released numbers carry: public facts, which know how far off a number may be.

What is drawn is a discrete law on a grid (`privacy.mechanisms`). A law that knows the `step` of its grid has the
half-width of that; others are the continuous sisters, which differ by less than a step. Nothing is drawn here. What
is calculated of released numbers asks more of laws: `error_laws`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar, Protocol, Self

from msgspec import Struct

from jostle.records import replace

LEVEL = 0.95
FINE = 1000  # steps in a scale, from which on a grid is not told from none


@dataclass(frozen=True, slots=True)
class AdditiveLaw(ABC):
    """Noise that is added: its law, and its scale and the step of its grid in the units of what is released."""

    scale: float
    step: float = 0.0
    """Noise is a whole number of these; 0 where it is any number, or nothing is known of a grid."""
    name: ClassVar[str]  # what programs, histories and traces call it

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation, on the grid where that makes a difference."""

    @property
    def coarse(self) -> float:
        """The scale in steps of the grid, where that makes a difference; 0 where it does not."""
        return self.scale / self.step if 0 < self.scale < FINE * self.step else 0.0

    @property
    def smooth(self) -> Self:
        """The continuous law of this scale, which is as wide at least in whatever is calculated of several noises."""
        return replace(self, step=0.0)

    def half_width(self, level: float = LEVEL) -> float:
        """The smallest h of the grid with P(|noise| ≤ h) ≥ `level`, in (0, 1); without a grid both are the same."""
        return self.step * self._steps(level) if self.coarse else self._half_width(level)

    @abstractmethod
    def _steps(self, level: float) -> int: ...

    @abstractmethod
    def _half_width(self, level: float) -> float: ...

    def times(self, factor: float) -> Self:
        return replace(self, scale=self.scale * factor, step=self.step * factor)

    @property
    def trace_fields(self) -> dict[str, object]:
        """What a trace shows beside the scale: the step of the grid, where that makes a difference."""
        return {"step": self.step} if self.coarse else {}


class Laplace(AdditiveLaw):
    """Density exp(−|x|/b)/2b, b the scale; ε = ℓ₁ sensitivity/b."""

    __slots__ = ()
    name = "laplace"

    @property
    def deviation(self) -> float:
        """On whole numbers √(2p)/(1 − p), with p = exp(−1/b)."""
        if not (b := self.coarse):
            return self.scale * math.sqrt(2)
        return self.step * math.sqrt(2) * math.exp(-0.5 / b) / -math.expm1(-1 / b)

    def _steps(self, level: float) -> int:
        """On whole numbers P(|k| > w) = 2p^(w + 1)/(1 + p), with p = exp(−1/b)."""
        b = self.coarse
        return max(0, math.ceil(b * math.log(2 / ((1 + math.exp(-1 / b)) * (1 - level))) - 1))

    def _half_width(self, level: float) -> float:
        return -self.scale * math.log1p(-level)


class Gaussian(AdditiveLaw):
    """Normal noise whose scale is its deviation σ; ρ = (ℓ₂ sensitivity/σ)²/2."""

    __slots__ = ()
    name = "gaussian"

    @property
    @lru_cache(maxsize=1024)  # noqa: B019
    def deviation(self) -> float:
        """From σ = 3 on that of whole numbers is σ too, to sixteen digits."""
        if not 0 < self.coarse < 3:
            return self.scale
        weights = [(k, math.exp(-0.5 * (k / self.coarse) ** 2)) for k in range(1, 121)]
        inside = 1 + 2 * math.fsum(weight for _, weight in weights)
        return self.step * math.sqrt(2 * math.fsum(k * k * weight for k, weight in weights) / inside)

    def _steps(self, level: float) -> int:
        return _gaussian_steps(self.coarse, level)

    def _half_width(self, level: float) -> float:
        from statistics import NormalDist

        return self.scale * NormalDist().inv_cdf((1 + level) / 2)


@lru_cache(maxsize=1024)
def _gaussian_steps(sigma: float, level: float) -> int:
    """On whole numbers P(k) is proportional to exp(−k²/2σ²); beyond 9σ nothing is left in sixteen digits."""
    weights = [1.0, *(2 * math.exp(-0.5 * (k / sigma) ** 2) for k in range(1, math.ceil(9 * sigma) + 2))]
    most = level * math.fsum(weights)
    return next((k for k, within in enumerate(accumulate(weights)) if within >= most), len(weights))


class SmoothLaplace(Laplace):
    """Laplace noise of a private scale b. `scale` is b with noise of its own: ln(scale/b) has Laplace noise of SPREAD.

    What is known of an error by it: `error_laws.SmoothLaplaceErrors`.
    """

    __slots__ = ()
    name = "smooth"
    SPREAD: ClassVar[float] = 0.25


@dataclass(frozen=True, slots=True)
class Cube(AdditiveLaw):
    """One of `many` numbers z with P(z) ∝ exp(−max |zᵢ|/b), b the scale; ε = largest coordinate's sensitivity/b."""

    many: int = 1
    name: ClassVar[str] = "cube"

    @property
    def deviation(self) -> float:
        """Half a side has the law of a sum of many + 1 exponentials, along which a number lies evenly."""
        return self.scale * math.sqrt((self.many + 1) * (self.many + 2) / 3)

    def _steps(self, level: float) -> int:
        return math.ceil(self._half_width(level) / self.step)

    def _half_width(self, level: float) -> float:
        """P(|z| > w·b) = P(Γ(many + 1) > w) − w/many · P(Γ(many) > w), by Poisson's probabilities."""
        low, high = 0.0, 60.0 + 3.0 * self.many
        while high - low > 1e-9 * high:
            w = (low + high) / 2
            logs = [k * math.log(w) - w - math.lgamma(k + 1) for k in range(self.many + 1)]
            inner = math.fsum(map(math.exp, logs[:-1]))
            beyond = inner + math.exp(logs[-1]) - w / self.many * inner
            low, high = (w, high) if beyond > 1 - level else (low, w)
        return self.scale * high


class Selected(Struct, frozen=True):
    """No noise is added: one of `candidates` was chosen, by scores with noise of this scale, counted in what `of` says:
    ranks, rows (of which a mode has the most), or a score of the program's."""

    scale: float
    candidates: int = 1
    of: str = "ranks"
    inside: float = 0.0  # so many ranks from the last row a minimum or maximum is aimed at
    name: ClassVar[str] = "selection"

    @property
    def trace_fields(self) -> dict[str, object]:
        """What a trace shows beside the scale: how far from the best the chosen one is at most, with 95 %."""
        return {"within": self.half_width(), "of": self.of}

    def half_width(self, level: float = LEVEL) -> float:
        """With probability `level` the chosen one's score is within this of the best, or of the last row."""
        return self.inside + self.scale * (math.log(self.candidates) - math.log(1 - level))


class Bracketed(Struct, frozen=True):
    """A number was chosen, and the rows on both sides of public places around it were counted with noise.

    The number that was asked for lies between `low` and `high`. `clear` says at each of the ascending `places` how many
    rows too many (or, negative, too few) lie below it. It is in standard deviations of the noise of that, a sum of
    noises of the law `counted`. Where `whole`, values are whole numbers, and below a place is one less at most.
    """

    low: float
    high: float
    places: tuple[float, ...]
    clear: tuple[float, ...]
    counted: str
    whole: bool
    name: ClassVar[str] = "interval"


class DrawnLaw(Protocol):
    """What one mechanism draws by, as a trace reports it."""

    name: ClassVar[str]

    @property
    def scale(self) -> float: ...
    @property
    def trace_fields(self) -> dict[str, object]: ...


ADDITIVE: dict[str, type[Laplace | Gaussian]] = {law.name: law for law in (Laplace, Gaussian)}
