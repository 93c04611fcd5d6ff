"""The large margin mechanism, watches for a threshold, rankings and stopping: what one-sided noise is for.

Sorted, the scores have margins d_ℓ = q₍₁₎ − q₍ℓ₊₁₎, rising in ℓ. A sparse vector looks for the first ℓ whose margin is
above a public threshold T_ℓ; among the ℓ largest scores, or among all, the exponential mechanism selects (Chaudhuri,
Hsu and Song 2014). Two scores part by at most R between neighbours, so that each d_ℓ moves by at most R either way. The
first half of ε finds ℓ, and the second selects, b = R/(ε/2); both have half of δ.

The noise is geometric, P(k) = (1 − p)·p^k for k = 0, 1, … with p = e^(−1/b): discrete Laplace noise z, folded to z or
−z − 1. So it is drawn by the sampler of every other release, exactly, and comparisons are of whole numbers. Moving a
draw up by s makes it less likely by e^(−s/b) and by no more, which is all that the proofs in docs/privacy/selection.md
ask of it.
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
"""Of a scale: a draw that 64 bits cannot hold then has a probability below exp(−2^22), which is none."""

CLAMP = 2**61
"""Scores and thresholds are clamped to ± this (which moves no two numbers apart), so that no sum wraps."""


def stability_price(amount: Amount) -> Price:
    """Of stability-based selection of keys: ε-DP noise, and δ for a key that only one person has."""
    return Price(amount, pure_price(amount).rho, amount.delta, pure=True)


class Compared(Struct, frozen=True):
    """A number was compared with a threshold; each had one-sided exponential noise less its mean.

    `scale` is that of the number's noise, `threshold` that of the threshold's. Only the answer is released.
    """

    scale: float
    threshold: float
    name: ClassVar[str] = "threshold"

    @property
    def trace_fields(self) -> dict[str, object]:
        """What a trace shows beside the scale: how far from the threshold an answer is right, with 95 %."""
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


def check_scale(scale: float) -> None:
    """Refuses noise that is too wide: before anything is charged."""
    if scale > WIDEST:
        raise refuse("BadAmount", "too little epsilon for noise on whole numbers", help="ask for more epsilon")


def largest_scale(scale: float) -> float:
    """That of no noise of this scale is larger, as samplers round it up: a threshold that holds back a δ goes by it."""
    above = scale * (1 + 2.0**-40)
    t, s = fraction(above) if fits(scale) else (above, 1)
    return t / s


def geometric(noise: Noise, size: int, scale: float) -> Ints:
    """`size` draws of one-sided noise of this scale, which is at most WIDEST."""
    values = noise.laplace(np.zeros(size, dtype=np.int64), scale)
    return np.where(values >= 0, values, -1 - values)


def ranked(noisy: Ints, count: int) -> tuple[list[int], list[int]]:
    """The places of the `count` largest numbers, in order, and by how much each leads the next.

    Of equal ones the first comes first, and one that stands behind must be larger by 1 to come before: a lead is what
    is left of that, at least 0. The last one leads the best of all that are left out, if there are any.
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
    """The noise of a watch in steps of its grid: of its `threshold`, of each `question`, and of each `number` told.

    A threshold lasts for `each` answers above; then a new one is drawn.
    """

    threshold: float
    question: float
    number: float
    each: int

    @classmethod
    def of(cls, epsilon: float, reach: float, apart: float, each: int, numbers: bool) -> WatchScales:
        """Those of `each` answers above at ε in all, where a question moves by `reach` and two by `apart` from another.

        Half of ε is for numbers, where they are released. The rest is shared so that the noise of one comparison has
        the least variance b² + c², given reach/b + each·apart/c.
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
        """The mean of a question's noise less that of the threshold's, rounded: public, and taken off."""
        return round(_mean(self.question) - _mean(self.threshold))


def _mean(scale: float) -> float:
    """Of one-sided noise."""
    return math.exp(-1 / scale) / -math.expm1(-1 / scale)


HALF_OF_DELTA = 0.5 - 1e-9  # which is more than logarithms of doubles take


class MarginScales(Struct, frozen=True):
    """In steps of the grid: noise of the `threshold` and of each `question` (a margin), and of the `selection`.

    `reach` is R, ε and δ those of the whole.
    """

    reach: int
    threshold: float
    question: float
    selection: float
    delta: float

    @classmethod
    def of(cls, reach: int, epsilon: float, delta: float) -> MarginScales:
        """A margin moves by R either way: R/threshold + 2R/question is the first half of ε. The two are shared so that
        `threshold` + `question`·ln(2/δ), about what a margin has to have, is least."""
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
        """T_1, …, T_most: a margin that passes is at least G = R + b·ln(ℓ/(δ/2)), but for a chance of δ/2 in all.

        One that is smaller passes where its noise is above T − G + τ: with probability e^{−(T − G)/c}·E[e^{−τ/c}] at
        most, which is δ/2 ÷ ℓ(ℓ + 1).
        """
        number, question = np.arange(1, most + 1, dtype=float), largest_scale(self.question)
        margin = self.reach + largest_scale(self.selection) * np.log(number / (self.delta * HALF_OF_DELTA))
        luck = math.expm1(-1 / self.threshold) / math.expm1(-1 / self.threshold - 1 / question)
        room = question * np.log(np.maximum(luck * number * (number + 1) / (self.delta * HALF_OF_DELTA), 1.0))
        return fixed_width(np.ceil(margin)) + fixed_width(np.ceil(room))


def clear(values: Ints, scales: MarginScales, noise: Noise) -> Ints:
    """The places of the fewest scores that stand clear of the others, the largest first; all where none do.

    `values` within ±2^61, two at least.
    """
    order = (-values).argsort(kind="stable")
    margins = values[order[0]] - values[order[1:]]
    threshold = geometric(noise, 1, scales.threshold)
    above = margins + geometric(noise, len(margins), scales.question) >= scales.thresholds(len(margins)) + threshold
    return order[: int(above.argmax()) + 1] if above.any() else np.sort(order)


class Approximate(Selection, frozen=True):
    """What takes one amount as a whole; `delta` is the δ that it uses of the amount's."""

    delta: float = 0.0

    @property
    def price(self) -> Price:
        """On two neighbours an (ε, δ)-DP mechanism is ε-DP outside an event of δ (Kairouz, Oh & Viswanath 2015)."""
        return stability_price(self.amount)


class LargeMargin(Approximate, frozen=True):
    """A selection by margin within one amount."""

    @classmethod
    def within(cls, amount: Amount, measures: Sequence[Measure]) -> LargeMargin:
        """Raises `BadAmount` without a δ, and where ε is too little."""
        if not amount.delta:
            help = "`with epsilon 1 delta 1e-6`, of a source with `budget epsilon e, delta d`; or use `noisy_max`"
            raise refuse("BadAmount", "a selection by margin needs a delta", help=help)
        if amount.value < 2:
            raise refuse("BadAmount", "too little to share among the parts of this measurement")
        return cls(amount, True, 1, used_delta(amount, measures))

    def scales(self, reach: int) -> MarginScales:
        """The noise for scores of which two part by at most `reach`."""
        return MarginScales.of(reach, as_float(self.amount.value), self.delta)


PARTS = {"geometric": 3, "logarithmic": 2}
"""How many parts of a run's ε the best of many costs, by the law of how many there are."""
TO_A_GOOD_ONE = 2
"""The same of the first good one, among a geometric number of them."""
MOST_RUNS = 100_000
FAIR = 2**15
"""Of `Noise.sample`: a fair bit."""


class Stopping(Struct, frozen=True):
    """How many runs there are, `runs` in the mean and at least one, and which of them is shown.

    Geometric, P(k) = (1 − γ)^(k − 1)·γ, or logarithmic, P(k) ∝ (1 − γ)^k/k, with γ = 1/`odds`. What is shown is the
    best run, or the first whose score is `good`, and then there are no more.
    """

    runs: float
    law: str
    good: float | None
    odds: int
    name: ClassVar[str] = "random stopping"

    @classmethod
    def of(cls, runs: float, law: str, good: float | None) -> Stopping:
        """With the least whole `odds` for which there are no fewer runs in the mean. Raises `ValueError`."""
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
        """How many parts of the ε of one run all of them cost."""
        return PARTS[self.law] if self.good is None else TO_A_GOOD_ONE

    @property
    def scale(self) -> float:
        return self.runs

    @property
    def trace_fields(self) -> dict[str, object]:
        return {"law": self.law, "parts": self.parts} | ({} if self.good is None else {"good": self.good})

    def draw(self, noise: Noise) -> int:
        """A number of runs. Each stops with γ; of logarithmic ones k survive to the next with k/(k + 1), or all is
        drawn anew: so k is left with (1 − γ)^(k − 1)·γ·1/k."""
        many = 1
        while below(noise, self.odds):
            if self.law == "logarithmic" and not below(noise, many + 1):
                many = 1
            else:
                many += 1
        return many


def below(noise: Noise, bound: int) -> int:
    """A uniform integer in 0 … bound − 1, of fair bits: numbers that are too large are drawn again."""
    bits = (bound - 1).bit_length()
    while True:
        number = sum(int(bit) << place for place, bit in enumerate(noise.sample(bits, FAIR)))
        if number < bound:
            return number
