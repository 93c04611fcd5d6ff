"""What is asked of laws of noise once numbers are released: quantiles, the laws of sums, the law within an error.

Mechanisms draw by the laws of `noise_laws` and need none of this: no price and no scale rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, TypeVar

from jostle.lazy import Floats, Ints, np
from jostle.noise_laws import ADDITIVE, LEVEL, AdditiveLaw, Bracketed, Gaussian, Laplace, Selected, SmoothLaplace
from jostle.records import replace

L = TypeVar("L", bound=AdditiveLaw)

DRAWS = 8_000
LARGEST = 64  # noises of a sum that are drawn one by one; the others together are as good as normal


@dataclass(frozen=True, slots=True)
class LaplaceSum(Laplace):
    """A weighted sum of Laplace noises: `scale` is that of one with its deviation, `wide` its half-width at 95 %."""

    wide: float = 0.0

    def _half_width(self, level: float) -> float:
        return self.wide if level == LEVEL else sum_quantile(type(self), level) * self.deviation

    def times(self, factor: float) -> LaplaceSum:
        return replace(self, scale=self.scale * factor, wide=self.wide * factor)


class SmoothLaplaceErrors(SmoothLaplace):
    """What is said of a number holds for both of its noises together (docs/privacy/elastic.md)."""

    __slots__ = ()

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
            low, high = (middle, high) if self.beyond(middle) > 1 - level else (low, middle)
        return self.scale * high

    def beyond(self, x: Any) -> Any:
        """That the noise is further out than x scales: E e^(−x·e^W) for W the noise of ln b, at 1/SPREAD = n

        n/2·(E₍ₙ₊₁₎(x) + x^(−n)·γ(n, x)).
        """
        from scipy.special import expn, gamma, gammainc

        n = round(1 / self.SPREAD)
        return n / 2 * (expn(n + 1, x) + gamma(n) * gammainc(n, x) / x**n)


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

    def _beside(self, level: float) -> float:
        """The level of the noise beside the atom that is `level` of all of it."""
        return max(0.0, 1 - (1 - level) / (1 - self.atom))

    def _steps(self, level: float) -> int:
        return Laplace(self.scale, self.step)._steps(self._beside(level))

    def _half_width(self, level: float) -> float:
        return Laplace(self.scale)._half_width(self._beside(level))

    def times(self, factor: float) -> Widening:
        return replace(self, scale=self.scale * factor, step=self.step * factor, fine=self.fine * factor)


NoiseLaw = Laplace | Gaussian | Selected | Bracketed | Widening


def facts_of(law: NoiseLaw) -> tuple[Any, ...]:
    """What `law_named` makes a law again of."""
    if isinstance(law, Bracketed):
        return law.name, law.low, law.high, list(law.places), list(law.clear), law.counted, law.whole
    if isinstance(law, Selected):
        return law.name, law.scale, law.candidates, law.of, law.inside
    return law.name, law.scale, 1, law.step


def law_named(name: str, *facts: Any) -> NoiseLaw:
    """The law that a history or a trace names, with its other `facts`. Raises `KeyError`."""
    if name == Bracketed.name:
        low, high, places, clear, counted, whole = facts
        return Bracketed(low, high, tuple(places), tuple(clear), counted, whole)
    if name == Selected.name:
        return Selected(*facts)
    scale, *step = (facts[0], *facts[2:])
    return SmoothLaplaceErrors(scale, *step) if name == SmoothLaplace.name else ADDITIVE[name](scale, *step)


def widest(law: L, wide: float) -> L:
    """The law of the largest scale, on the same grid, whose half-width at 95 % is at most `wide`, above 0."""
    low, high = 0.0, wide + law.step  # of noise of that scale, more than 5 % are further out
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if replace(law, scale=middle).half_width() <= wide else (low, middle)
    return replace(law, scale=low)


@cache
def sum_quantile(kind: type[AdditiveLaw], level: float = LEVEL) -> float:
    """The half-width of a weighted sum of such noises, from above, in deviations of the sum.

    A sum of Laplace noises lies between one of them and a Gaussian: the larger quantile of the two.
    """
    from statistics import NormalDist

    gaussian = NormalDist().inv_cdf((1 + level) / 2)
    return gaussian if issubclass(kind, Gaussian) else max(gaussian, -math.log1p(-level) / math.sqrt(2))


def laplace_scale(law: AdditiveLaw) -> float:
    """The scale of Laplace noise of the same deviation."""
    return law.scale if isinstance(law, Laplace) else law.deviation / math.sqrt(2)


def to_power(law: Laplace | Gaussian, exponent: float) -> Laplace | Gaussian:
    """The law whose density is proportional to this one's to that power: a proximal step of it is so many long."""
    if isinstance(law, Gaussian):
        return Gaussian(law.scale / math.sqrt(exponent))
    return Laplace(law.scale / exponent)


def sum_of_two(law: Laplace | Gaussian, weight: float, rounded: bool = False) -> Laplace | Gaussian:
    """The law of so many times the sum of two such noises; of an integer next to it where it is `rounded`."""
    if isinstance(law, Gaussian):
        return Gaussian(law.scale * weight * math.sqrt(2), step=float(rounded))
    wide = _two_laplace() * law.scale * weight
    return LaplaceSum(law.scale * weight * math.sqrt(2), wide=math.floor(wide + 0.5) if rounded else wide)


@cache
def _two_laplace() -> float:
    """t with P(|X + Y| > t) = (1 + t/2)·exp(−t) = 5 %, of Laplace noises X and Y of scale 1."""
    low, high = 0.0, 100.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if (1 + middle / 2) * math.exp(-middle) > 1 - LEVEL else (low, middle)
    return high


# Quantiles ------------------------------------------------------------------------------------------


def quantiles(law: AdditiveLaw | Bracketed, places: Floats) -> Floats:
    """The quantiles of the noise at these places in (0, 1); of a bracketed number those of the number itself."""
    if isinstance(law, Bracketed):
        return _bracketed(law, places)
    if isinstance(law, Gaussian):
        from scipy.special import ndtri

        continuous: Floats = law.scale * ndtri(places)
        return law.step * np.rint(continuous / law.step) if law.coarse else continuous
    side, outside = np.sign(places - 0.5), 1 - np.abs(2 * places - 1)  # P(|noise| is as far out or further)
    if isinstance(law, Widening):
        outside = np.minimum(1.0, outside / (1 - law.atom))
        return quantiles(Laplace(law.scale, law.step), 0.5 + side * (1 - outside) / 2)
    if isinstance(law, SmoothLaplaceErrors):
        wide = np.geomspace(1e-12, 1e4, 4000)
        return np.asarray(law.scale * side * np.interp(-outside, -law.beyond(wide), wide))
    if not (b := law.coarse):
        return np.asarray(-law.scale * side * np.log(outside))
    steps = np.ceil(b * np.log(2 / ((1 + math.exp(-1 / b)) * outside)) - 1)
    return np.asarray(law.step * side * np.maximum(0, steps))


def _bracketed(law: Bracketed, levels: Floats) -> Floats:
    """What the number is below with probability `level` at most, up to ½; above, what it exceeds with 1 − `level`.

    Places are tested from the outside in, up to the first that is not clear.
    """
    from scipy.special import ndtri

    within = np.abs(1 - 2 * levels)
    far = ndtri((1 + within) / 2)
    if law.counted == Laplace.name:  # as `sum_quantile`
        far = np.maximum(far, -np.log1p(-within) / math.sqrt(2))
    clear, places = np.array(law.clear, dtype=float), np.array(law.places, dtype=float)
    too_low = np.searchsorted(np.maximum.accumulate(clear), -far, side="left")
    too_high = np.searchsorted(np.minimum.accumulate(clear[::-1])[::-1], far, side="right")
    lows, highs = np.append(law.low, places), np.append(places - law.whole, law.high)
    return np.asarray(np.where(levels < 0.5, lows[too_low], highs[too_high]))


# Noise that is drawn again -------------------------------------------------------------------------


def place_of(many: int, q: float) -> int:
    """Where the quantile of so many draws stands in their order."""
    return min(many - 1, max(0, round(q * many - 0.5)))


@lru_cache(maxsize=16)
def quantiles_of(law: AdditiveLaw | Bracketed, draws: int) -> Floats:
    """The quantiles of noise, or of what is known of a number, in the middle of `draws` parts of equal probability."""
    return quantiles(law, (np.arange(draws) + 0.5) / draws)


def half_width(noises: Sequence[AdditiveLaw], level: float, orders: Iterator[Ints]) -> float:
    """h with P(|Σ noise| ≤ h) = `level`, of independent noises, whose quantiles stand in these `orders`."""
    if not noises:
        return 0.0
    widest = sorted(noises, key=lambda law: -law.deviation)
    if len(noises) > LARGEST and all(isinstance(law, Gaussian) and not law.coarse for law in noises):
        return Gaussian(math.hypot(*(law.deviation for law in noises))).half_width(level)
    rest = math.sqrt(math.fsum(law.deviation**2 for law in widest[LARGEST:]))
    total = np.zeros(DRAWS)
    for law in [*widest[:LARGEST], *([Gaussian(rest)] if rest else [])]:
        total += quantiles_of(law, DRAWS)[next(orders)]
    return float(np.sort(np.abs(total))[place_of(len(total), level)])


def toward_mean(values: Sequence[float], law: AdditiveLaw) -> list[float]:
    """Numbers that were measured with noise of one law, nearer to their mean by as much of their spread as noise may
    explain: three deviations more than it does in the mean, for Laplace noise (after James and Stein)."""
    many, measured = len(values), np.array(values)
    spread = float(measured.var(ddof=1)) if many > 1 else 0.0
    by_noise = law.deviation**2 * (1 + 3 * math.sqrt(2 / max(1, many - 1) + 3 / many))
    middle, left = measured.mean(), max(0.0, 1 - by_noise / spread) if spread else 0.0
    return (middle + left * (measured - middle)).tolist()  # type: ignore[no-any-return]
