"""The laws of noise that released numbers carry: public facts, which know how far off a number may be.

What is drawn is a discrete law on a grid (`privacy.mechanisms`). A law that knows the `step` of its grid has the
half-width of that; others are the continuous sisters, which differ by less than a step. Nothing is drawn here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from msgspec import Struct

from jostle.records import replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.95
FINE = 1000  # steps in a scale, from which on a grid is not told from none


@dataclass(frozen=True, slots=True)
class AdditiveLaw(ABC):
    """Noise that is added: its law, and its scale and the step of its grid in the units of what is released."""

    scale: float
    step: float = 0.0
    """Noise is a whole number of these; 0 where it is any number, or nothing is known of a grid."""
    name: ClassVar[str]
    """What programs, histories and traces call it."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation, on the grid where that makes a difference."""

    @property
    @abstractmethod
    def laplace_scale(self) -> float:
        """The scale of Laplace noise of the same deviation."""

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

    def widest(self, wide: float) -> Self:
        """The law of the largest scale, on the same grid, whose half-width at 95 % is at most `wide`, above 0."""
        low, high = 0.0, wide + self.step  # of noise of that scale, more than 5 % are further out
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if replace(self, scale=middle).half_width() <= wide else (low, middle)
        return replace(self, scale=low)

    @abstractmethod
    def _steps(self, level: float) -> int: ...

    @abstractmethod
    def _half_width(self, level: float) -> float: ...

    @abstractmethod
    def quantiles(self, places: Floats) -> Floats:
        """The quantiles of the noise at these places in (0, 1)."""

    @staticmethod
    @abstractmethod
    def sum_quantile(level: float = LEVEL) -> float:
        """The same from above for a weighted sum of such noises, in deviations of the sum."""

    @abstractmethod
    def power(self, exponent: float) -> Self:
        """The law whose density is proportional to this one's to that power: a proximal step of it is so many long."""

    def times(self, factor: float) -> Self:
        """The law of so many times this noise."""
        return replace(self, scale=self.scale * factor, step=self.step * factor)

    @property
    def facts(self) -> tuple[Any, ...]:
        """What `law_named` makes it again of."""
        return self.name, self.scale, 1, self.step

    @property
    def told(self) -> dict[str, Any]:
        """What a trace tells beside the scale: the step of the grid, where that makes a difference."""
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

    @property
    def laplace_scale(self) -> float:
        return self.scale

    def _steps(self, level: float) -> int:
        """On whole numbers P(|k| > w) = 2p^(w + 1)/(1 + p), with p = exp(−1/b)."""
        b = self.coarse
        return max(0, math.ceil(b * math.log(2 / ((1 + math.exp(-1 / b)) * (1 - level))) - 1))

    def _half_width(self, level: float) -> float:
        return -self.scale * math.log1p(-level)

    def quantiles(self, places: Floats) -> Floats:
        import numpy as np

        side, outside = np.sign(places - 0.5), 1 - np.abs(2 * places - 1)  # P(|noise| is as far out or further)
        if not (b := self.coarse):
            return np.asarray(-self.scale * side * np.log(outside))
        steps = np.ceil(b * np.log(2 / ((1 + math.exp(-1 / b)) * outside)) - 1)
        return np.asarray(self.step * side * np.maximum(0, steps))

    @staticmethod
    def sum_quantile(level: float = LEVEL) -> float:
        """A sum of Laplace noises lies between one of them and a Gaussian: the larger quantile of the two."""
        return max(Gaussian.sum_quantile(level), -math.log1p(-level) / math.sqrt(2))

    def power(self, exponent: float) -> Laplace:
        return Laplace(self.scale / exponent)

    def of_two(self, weight: float, rounded: bool = False) -> LaplaceSum:
        """The law of so many times the sum of two such noises; of an integer next to it where it is `rounded`."""
        wide = _two_laplace() * self.scale * weight
        return LaplaceSum(self.scale * weight * math.sqrt(2), wide=math.floor(wide + 0.5) if rounded else wide)


@cache
def _two_laplace() -> float:
    """t with P(|X + Y| > t) = (1 + t/2)·exp(−t) = 5 %, of Laplace noises X and Y of scale 1."""
    low, high = 0.0, 100.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if (1 + middle / 2) * math.exp(-middle) > 1 - LEVEL else (low, middle)
    return high


class Gaussian(AdditiveLaw):
    """Normal noise whose scale is its deviation σ; ρ = (ℓ₂ sensitivity/σ)²/2."""

    __slots__ = ()
    name = "gaussian"

    @property
    def deviation(self) -> float:
        """From σ = 3 on that of whole numbers is σ too, to sixteen digits."""
        if not 0 < self.coarse < 3:
            return self.scale
        weights = [(k, math.exp(-0.5 * (k / self.coarse) ** 2)) for k in range(1, 121)]
        inside = 1 + 2 * math.fsum(weight for _, weight in weights)
        return self.step * math.sqrt(2 * math.fsum(k * k * weight for k, weight in weights) / inside)

    @property
    def laplace_scale(self) -> float:
        return self.scale / math.sqrt(2)

    def _steps(self, level: float) -> int:
        """On whole numbers P(k) is proportional to exp(−k²/2σ²)."""
        within = [math.exp(-0.5 * (k / self.coarse) ** 2) for k in range(math.ceil(40 * self.coarse) + 2)]
        most, sum_within = level * (2 * math.fsum(within) - 1), -1.0
        for k, weight in enumerate(within):
            sum_within += 2 * weight
            if sum_within >= most:
                return k
        return len(within)

    def _half_width(self, level: float) -> float:
        return self.scale * self.sum_quantile(level)

    def quantiles(self, places: Floats) -> Floats:
        import numpy as np
        from scipy.special import ndtri

        continuous: Floats = self.scale * ndtri(places)
        return self.step * np.rint(continuous / self.step) if self.coarse else continuous

    @staticmethod
    def sum_quantile(level: float = LEVEL) -> float:
        from statistics import NormalDist

        return NormalDist().inv_cdf((1 + level) / 2)

    def power(self, exponent: float) -> Gaussian:
        return Gaussian(self.scale / math.sqrt(exponent))

    def of_two(self, weight: float, rounded: bool = False) -> Gaussian:
        """The law of so many times the sum of two such noises; of an integer next to it where it is `rounded`."""
        return Gaussian(self.scale * weight * math.sqrt(2), step=float(rounded))


@dataclass(frozen=True, slots=True)
class LaplaceSum(Laplace):
    """A weighted sum of Laplace noises: `scale` is that of one with its deviation, `wide` its half-width at 95 %."""

    wide: float = 0.0

    def _half_width(self, level: float) -> float:
        return self.wide if level == LEVEL else self.sum_quantile(level) * self.deviation

    def times(self, factor: float) -> LaplaceSum:
        return replace(self, scale=self.scale * factor, wide=self.wide * factor)


class SmoothLaplace(Laplace):
    """Laplace noise of a private scale b. `scale` is b with noise of its own: ln(scale/b) has Laplace noise of SPREAD.

    What is said of it holds for both noises together (docs/privacy/elastic.md).
    """

    __slots__ = ()
    name = "smooth"
    SPREAD: ClassVar[float] = 0.25

    @property
    def deviation(self) -> float:
        """E b² = scale²/(1 − 4·SPREAD²)."""
        return self.scale * math.sqrt(2 / (1 - 4 * self.SPREAD**2))

    def half_width(self, level: float = LEVEL) -> float:
        wide = self._half_width(level)
        return self.step * math.ceil(wide / self.step) if self.step else wide

    def _half_width(self, level: float) -> float:
        low, high = 0.0, 1e6
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._beyond(middle) > 1 - level else (low, middle)
        return self.scale * high

    def _beyond(self, x: Any) -> Any:
        """That the noise is further out than x scales: E e^(−x·e^W) for W the noise of ln b, at 1/SPREAD = n

        n/2·(E₍ₙ₊₁₎(x) + x^(−n)·γ(n, x)).
        """
        from scipy.special import expn, gamma, gammainc

        n = round(1 / self.SPREAD)
        return n / 2 * (expn(n + 1, x) + gamma(n) * gammainc(n, x) / x**n)

    def quantiles(self, places: Floats) -> Floats:
        import numpy as np

        wide = np.geomspace(1e-12, 1e4, 4000)
        side, outside = np.sign(places - 0.5), 1 - np.abs(2 * places - 1)  # P(|noise| is as far out or further)
        return np.asarray(self.scale * side * np.interp(-outside, -self._beyond(wide), wide))


@dataclass(frozen=True, slots=True)
class Widening(AdditiveLaw):
    """What Laplace noise of scale `fine` lacks to Laplace noise of scale `scale`, a larger one on the same grid.

    It is 0 with probability `atom`, and else such noise itself (docs/privacy/gradual.md).
    """

    fine: float = 0.0
    name: ClassVar[str] = "widening"

    @property
    def atom(self) -> float:
        """The probability of 0."""
        if not self.step:
            return (self.fine / self.scale) ** 2
        return (math.sinh(self.step / (2 * self.scale)) / math.sinh(self.step / (2 * self.fine))) ** 2

    @property
    def deviation(self) -> float:
        wide, narrow = Laplace(self.scale, self.step).deviation, Laplace(self.fine, self.step).deviation
        return math.sqrt(max(0.0, wide**2 - narrow**2))

    @property
    def laplace_scale(self) -> float:
        return self.deviation / math.sqrt(2)

    def _beside(self, level: float) -> float:
        """The level of the noise beside the atom that is `level` of all of it."""
        return max(0.0, 1 - (1 - level) / (1 - self.atom))

    def _steps(self, level: float) -> int:
        return Laplace(self.scale, self.step)._steps(self._beside(level))

    def _half_width(self, level: float) -> float:
        return Laplace(self.scale)._half_width(self._beside(level))

    def quantiles(self, places: Floats) -> Floats:
        import numpy as np

        outside = np.minimum(1.0, (1 - np.abs(2 * places - 1)) / (1 - self.atom))
        return Laplace(self.scale, self.step).quantiles(0.5 + np.sign(places - 0.5) * (1 - outside) / 2)

    @staticmethod
    def sum_quantile(level: float = LEVEL) -> float:
        return Laplace.sum_quantile(level)

    def power(self, exponent: float) -> Widening:
        return replace(self, scale=self.scale / exponent, fine=self.fine / exponent)

    def times(self, factor: float) -> Widening:
        return replace(self, scale=self.scale * factor, step=self.step * factor, fine=self.fine * factor)


class Selected(Struct, frozen=True):
    """No noise is added: one of `candidates` was chosen, by scores with noise of this scale.

    `of` says what scores are counted in: ranks, rows (of which a mode has the most), or a score of the program's.
    """

    scale: float
    candidates: int = 1
    of: str = "ranks"
    name: ClassVar[str] = "selection"

    @property
    def facts(self) -> tuple[Any, ...]:
        """What `law_named` makes it again of."""
        return self.name, self.scale, self.candidates, self.of

    @property
    def told(self) -> dict[str, Any]:
        """What a trace tells beside the scale: how far from the best the chosen one is at most, with 95 %."""
        return {"within": self.half_width(), "of": self.of}

    def half_width(self, level: float = LEVEL) -> float:
        """With probability `level` the chosen one's score is within this of the best."""
        return self.scale * math.log(self.candidates / (1 - level))


class Compared(Struct, frozen=True):
    """A number was compared with a threshold; each had one-sided exponential noise less its mean.

    `scale` is that of the number's noise, `threshold` that of the threshold's. Only the answer is told.
    """

    scale: float
    threshold: float
    name: ClassVar[str] = "threshold"

    @property
    def facts(self) -> tuple[Any, ...]:
        """What `law_named` makes it again of."""
        return self.name, self.scale, self.threshold

    @property
    def told(self) -> dict[str, Any]:
        """What a trace tells beside the scale: how far from the threshold an answer is right, with 95 %."""
        return {"within": self.half_width(), "of": "of the threshold"}

    def half_width(self, level: float = LEVEL) -> float:
        """With probability `level` the noise of one comparison is at most this, to either side."""
        low, high = 0.0, -(self.scale + self.threshold) * math.log1p(-level) + abs(self.scale - self.threshold)
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._beyond(middle) <= 1 - level else (middle, high)
        return high

    def _beyond(self, wide: float) -> float:
        """That the noise is further out: both ends of the difference of two exponentials, less its mean."""
        both, mean = self.scale + self.threshold, self.scale - self.threshold

        def above(x: float) -> float:
            if x >= 0:
                return self.scale / both * math.exp(-x / self.scale)
            return 1 - self.threshold / both * math.exp(x / self.threshold)

        return above(mean + wide) + 1 - above(mean - wide)


class Bracketed(Struct, frozen=True):
    """A number was chosen, and the rows on both sides of public places around it were counted with noise.

    The number that was asked for lies between `low` and `high`. `clear` says at each of the ascending `places` how many
    rows too many (or, negative, too few) lie below it, in standard deviations of the noise of that, a sum of noises of
    the law `counted`. Where `whole`, values are whole numbers, and below a place is one less at most.
    """

    low: float
    high: float
    places: tuple[float, ...]
    clear: tuple[float, ...]
    counted: str
    whole: bool
    name: ClassVar[str] = "interval"

    @property
    def facts(self) -> tuple[Any, ...]:
        """What `law_named` makes it again of."""
        return self.name, self.low, self.high, list(self.places), list(self.clear), self.counted, self.whole

    def quantiles(self, levels: Floats) -> Floats:
        """What the number is below with probability `level` at most, up to ½; above, what it exceeds with 1 − `level`.

        Places are tested from the outside in, up to the first that is not clear.
        """
        import numpy as np
        from scipy.special import ndtri

        within = np.abs(1 - 2 * levels)
        far = ndtri((1 + within) / 2)
        if self.counted == Laplace.name:  # as `sum_quantile`
            far = np.maximum(far, -np.log1p(-within) / math.sqrt(2))
        clear, places = np.array(self.clear, dtype=float), np.array(self.places, dtype=float)
        too_low = np.searchsorted(np.maximum.accumulate(clear), -far, side="left")
        too_high = np.searchsorted(np.minimum.accumulate(clear[::-1])[::-1], far, side="right")
        lows, highs = np.append(self.low, places), np.append(places - self.whole, self.high)
        return np.asarray(np.where(levels < 0.5, lows[too_low], highs[too_high]))


DrawnLaw = Laplace | Gaussian | Selected | Compared
"""What one mechanism draws by."""
NoiseLaw = DrawnLaw | Bracketed | Widening
ADDITIVE: dict[str, type[Laplace | Gaussian]] = {law.name: law for law in (Laplace, Gaussian)}


def law_named(name: str, *facts: Any) -> NoiseLaw:
    """The law that a history or a trace names, with its other `facts`. Raises `KeyError`."""
    if name == Bracketed.name:
        low, high, places, clear, counted, whole = facts
        return Bracketed(low, high, tuple(places), tuple(clear), counted, whole)
    if name == Selected.name:
        return Selected(*facts)
    if name == Compared.name:
        return Compared(*facts)
    scale, *step = (facts[0], *facts[2:])
    return SmoothLaplace(scale, *step) if name == SmoothLaplace.name else ADDITIVE[name](scale, *step)
