"""Mechanisms with one-sided noise: large margin selection, sparse vectors (watches), rankings and random stopping.

The sorted scores have margins d_ℓ = q₍₁₎ − q₍ℓ₊₁₎, rising in ℓ. A sparse vector finds the first ℓ whose margin is above
a public threshold T_ℓ. The exponential mechanism selects among the ℓ largest scores, or among all if there is no such ℓ
(Chaudhuri, Hsu and Song 2014). The difference of two scores changes by at most R between neighbours, so each d_ℓ
changes by at most R. Half of ε finds ℓ, and half selects, b = R/(ε/2). Both have half of δ.

The noise is geometric, P(k) = (1 − p)·p^k for k = 0, 1, … with p = e^(−1/b): discrete Laplace noise z, folded to z or
−z − 1. It is drawn exactly by the common sampler, and only integers are compared. The probability of a draw that is
larger by s is smaller by at most e^(−s/b), which is all that the proofs in docs/privacy/selection.md need.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from msgspec import Struct

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import Measure, Price, pure_price, used_delta
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Ints, np
from jostle.noise_laws import LEVEL
from jostle.privacy.mechanisms.noise import Noise, fits, fraction
from jostle.privacy.mechanisms.selection import Selection

WIDEST = 2.0**40
"""The largest scale. A draw that 64 bits cannot hold then has a probability below exp(−2^22), which is negligible."""

CLAMP = 2**61
"""Scores and thresholds are clamped to ± this value, which increases no difference, so that no sum overflows."""


def stability_price(amount: Amount) -> Price:
    """The price of stability-based selection of keys: ε-DP noise, and δ for keys that only one person has."""
    return Price(amount, pure_price(amount).rho, amount.delta, pure=True)


class Compared(Struct, frozen=True):
    """The law of comparing a number with a threshold, both with one-sided exponential noise less its mean.

    `scale` is the scale of the number's noise, `threshold` that of the threshold's noise. Only the result is released.
    """

    scale: float
    threshold: float
    name: ClassVar[str] = "threshold"

    @property
    def trace_fields(self) -> dict[str, object]:
        """Trace fields beside the scale: the distance from the threshold beyond which an answer is right with 95 %."""
        return {"within": self.half_width(), "of": "of the threshold"}

    def half_width(self, level: float = LEVEL) -> float:
        """The bound that the noise of one comparison stays within, on either side, with probability `level`."""
        low, high = 0.0, -(self.scale + self.threshold) * math.log1p(-level) + abs(self.scale - self.threshold)
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._beyond(middle) <= 1 - level else (middle, high)
        return high

    def _beyond(self, wide: float) -> float:
        """P(|noise| > wide) for the difference of two exponentials less its mean."""
        both, mean = self.scale + self.threshold, self.scale - self.threshold

        def above(x: float) -> float:
            if x >= 0:
                return self.scale / both * math.exp(-x / self.scale)
            return 1 - self.threshold / both * math.exp(x / self.threshold)

        return above(mean + wide) + 1 - above(mean - wide)


def check_scale(scale: float) -> None:
    """Refuses a scale above `WIDEST`, before anything is charged."""
    if scale > WIDEST:
        raise refuse("BadAmount", "too little epsilon for noise on whole numbers", help="ask for more epsilon")


def largest_scale(scale: float) -> float:
    """The scale after the samplers have rounded it up. Thresholds that bound a δ must use this scale."""
    above = scale * (1 + 2.0**-40)
    t, s = fraction(above) if fits(scale) else (above, 1)
    return t / s


def geometric(noise: Noise, size: int, scale: float) -> Ints:
    """`size` draws of one-sided noise. The scale is at most `WIDEST`."""
    values = noise.laplace(np.zeros(size, dtype=np.int64), scale)
    return np.where(values >= 0, values, -1 - values)


def ranked(noisy: Ints, count: int) -> tuple[list[int], list[int]]:
    """The indices of the `count` largest numbers, in order, and the lead of each over the next.

    Ties go to the lower index, so a number must exceed one of lower index by 1 to precede it. A lead is the rest of the
    difference, at least 0. The last lead is over the best number that is left out, if there is one.
    """
    order = [int(place) for place in (-noisy).argsort(kind="stable")]
    places, left_out = order[:count], order[count:]
    leads = [_lead(noisy, a, b) for a, b in pairwise(places)]
    if left_out:
        leads.append(min(_lead(noisy, places[-1], other) for other in left_out))
    return places, leads


def _lead(noisy: Ints, ahead: int, behind: int) -> int:
    return int(noisy[ahead]) - int(noisy[behind]) - (behind < ahead)


class WatchScales(Struct, frozen=True):
    """The noise scales of a sparse vector in steps of its grid: of the `threshold`, of each `question`, and of each
    released `number`. A threshold is used for `each` positive answers; then its noise is drawn again.
    """

    threshold: float
    question: float
    number: float
    each: int

    @classmethod
    def of(cls, epsilon: float, reach: float, apart: float, each: int, numbers: bool) -> WatchScales:
        """The scales for `each` positive answers. A question changes by at most `reach`, a difference by `apart`.

        Half of ε is for numbers, if they are released. The rest is divided so that the variance b² + c² of the noise of
        one comparison is least, given reach/b + each·apart/c.
        """
        rest = epsilon / 2 if numbers else epsilon
        threshold = rest / (1 + (each * apart / reach) ** (2 / 3))
        number = each * reach / (epsilon / 2) if numbers else 0.0
        return cls(reach / threshold, each * apart / (rest - threshold), number, each)

    @property
    def widest(self) -> float:
        """The largest of the scales."""
        return max(self.threshold, self.question, self.number)

    @property
    def excess(self) -> int:
        """The mean of a question's noise less that of the threshold's, rounded. It is public, and subtracted."""
        return round(_mean(self.question) - _mean(self.threshold))


def _mean(scale: float) -> float:
    """The mean of one-sided noise."""
    return math.exp(-1 / scale) / -math.expm1(-1 / scale)


HALF_OF_DELTA = 0.5 - 1e-9  # the margin exceeds the rounding of logarithms in doubles


class MarginScales(Struct, frozen=True):
    """The noise scales of a selection by margin, in steps of the grid: `threshold`, each `question` (a margin), and
    `selection`. `reach` is R, and `delta` the δ of the whole.
    """

    reach: int
    threshold: float
    question: float
    selection: float
    delta: float

    @classmethod
    def of(cls, reach: int, epsilon: float, delta: float) -> MarginScales:
        """The scales for the whole ε and δ. A margin changes by at most R, so R/threshold + 2R/question is ε/2. It is
        divided so that `threshold` + `question`·ln(2/δ), about the margin that is needed, is least."""
        first = epsilon / 2
        root = math.sqrt(2 * max(1.0, math.log(2 / delta)))
        threshold = reach * (1 + root) / first
        question = 2 * reach / (first - reach / threshold)
        return cls(reach, threshold, question, reach / (epsilon - first), delta)

    @property
    def widest(self) -> float:
        """The largest of the scales."""
        return max(self.threshold, self.question, self.selection)

    def thresholds(self, most: int) -> Ints:
        """T_1, …, T_most such that every margin that passes is at least G = R + b·ln(ℓ/(δ/2)), except with
        probability δ/2 in all. A smaller margin passes only if its noise is above T − G + τ, with probability at most
        e^{−(T − G)/c}·E[e^{−τ/c}], which is δ/2 ÷ ℓ(ℓ + 1).
        """
        number, question = np.arange(1, most + 1, dtype=float), largest_scale(self.question)
        margin = self.reach + largest_scale(self.selection) * np.log(number / (self.delta * HALF_OF_DELTA))
        luck = math.expm1(-1 / self.threshold) / math.expm1(-1 / self.threshold - 1 / question)
        room = question * np.log(np.maximum(luck * number * (number + 1) / (self.delta * HALF_OF_DELTA), 1.0))
        return fixed_width(np.ceil(margin)) + fixed_width(np.ceil(room))


def clear(values: Ints, scales: MarginScales, noise: Noise) -> Ints:
    """The indices of the fewest scores with a large margin over the others, the largest first; all without one.

    `values`: at least two integers within ±2^61.
    """
    order = (-values).argsort(kind="stable")
    margins = values[order[0]] - values[order[1:]]
    threshold = geometric(noise, 1, scales.threshold)
    above = margins + geometric(noise, len(margins), scales.question) >= scales.thresholds(len(margins)) + threshold
    return order[: int(above.argmax()) + 1] if above.any() else np.sort(order)


class Approximate(Selection, frozen=True):
    """A selection that spends one amount as a whole. `delta` is the part of the amount's δ that it uses."""

    delta: float = 0.0

    @property
    def price(self) -> Price:
        """An (ε, δ)-DP mechanism is ε-DP outside an event of probability δ (Kairouz, Oh & Viswanath 2015)."""
        return stability_price(self.amount)


class LargeMargin(Approximate, frozen=True):
    """A selection by margin within one amount."""

    @classmethod
    def within(cls, amount: Amount, measures: Sequence[Measure]) -> LargeMargin:
        """Raises `BadAmount` without a δ, or if ε is too small."""
        if not amount.delta:
            help = "`with epsilon 1 delta 1e-6`, of a source with `budget epsilon e, delta d`; or use `noisy_max`"
            raise refuse("BadAmount", "a selection by margin needs a delta", help=help)
        if amount.value < 2:
            raise refuse("BadAmount", "too little to share among the parts of this measurement")
        return cls(amount, True, 1, used_delta(amount, measures))

    def scales(self, reach: int) -> MarginScales:
        """The noise for scores whose differences change by at most `reach`."""
        return MarginScales.of(reach, as_float(self.amount.value), self.delta)


PARTS = {"geometric": 3, "logarithmic": 2}
"""The price of the best of many runs, as a multiple of the ε of one run, by the law of the number of runs."""
TO_A_GOOD_ONE = 2
"""The same for the first good run among a geometric number of runs."""
MOST_RUNS = 100_000
FAIR = 2**15
"""The share of `Noise.sample` that gives a fair bit."""


class Stopping(Struct, frozen=True):
    """The law of the number of runs (`runs` in the mean, at least 1), and which run is released.

    Geometric, P(k) = (1 − γ)^(k − 1)·γ, or logarithmic, P(k) ∝ (1 − γ)^k/k, with γ = 1/`odds`. The best run is
    released, or, if `good` is given, the first one whose score reaches it, which is the last.
    """

    runs: float
    law: str
    good: float | None
    odds: int
    name: ClassVar[str] = "random stopping"

    @classmethod
    def of(cls, runs: float, law: str, good: float | None) -> Stopping:
        """The law with the least integer `odds` for which the mean is at least `runs`. Raises `ValueError`."""
        if law not in PARTS:
            raise refuse("ValueError", f"no law of how many runs there are is called `{law}`",
                         help='`law = "geometric"`, or "logarithmic"')  # fmt: skip
        if not (float(runs).is_integer() and 1 <= runs <= MOST_RUNS):
            raise refuse("ValueError", f"`runs` is a whole number from 1 to {MOST_RUNS:,}", help="`runs = 30`")
        if good is not None and (law != "geometric" or not math.isfinite(good)):
            raise refuse("ValueError", "runs to a good one are geometric in number, and `good` is a finite number")
        odds = int(runs)
        if law == "logarithmic" and runs > 1:
            while (odds - 1) / math.log(odds) < runs:
                odds += max(1, odds >> 10)
        mean = (odds - 1) / math.log(odds) if law == "logarithmic" and runs > 1 else runs
        return cls(float(mean), law, good, odds)

    @property
    def parts(self) -> int:
        """The price of all runs as a multiple of the ε of one run."""
        return PARTS[self.law] if self.good is None else TO_A_GOOD_ONE

    @property
    def scale(self) -> float:
        return self.runs

    @property
    def trace_fields(self) -> dict[str, object]:
        return {"law": self.law, "parts": self.parts} | ({} if self.good is None else {"good": self.good})

    def draw(self, noise: Noise) -> int:
        """A random number of runs. Each is the last with probability γ. For the logarithmic law, k continues to k + 1
        with probability k/(k + 1) or the count starts again, so k has probability ∝ (1 − γ)^(k − 1)·γ·1/k."""
        many = 1
        while below(noise, self.odds):
            if self.law == "logarithmic" and not below(noise, many + 1):
                many = 1
            else:
                many += 1
        return many


def below(noise: Noise, bound: int) -> int:
    """A uniform integer in 0 … bound − 1 from fair bits. Numbers that are too large are drawn again."""
    bits = (bound - 1).bit_length()
    while True:
        number = sum(int(bit) << place for place, bit in enumerate(noise.sample(bits, FAIR)))
        if number < bound:
            return number
