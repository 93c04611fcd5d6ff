"""The large margin mechanism: a selection among as few of the scores as stand clear of all others.

After Chaudhuri, Hsu and Song (2014). Sorted, the scores have margins d_ℓ = q₍₁₎ − q₍ℓ₊₁₎, rising in ℓ. A sparse vector
looks for the first ℓ whose margin is above a public threshold T_ℓ; among the ℓ largest scores the exponential mechanism
selects. Where no margin is, it selects among all. Error then goes with log ℓ, however many scores there are.

*Argument* (docs/privacy/selection.md): let two scores part by at most R between neighbours, so that each d_ℓ moves by
at most R either way. The first half of ε finds ℓ, and the second selects, b = R/(ε/2); both have half of δ.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting.amounts import Amount, as_float
from jostle.accounting.definitions import Measure, Price, stability_price, used_delta
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.one_sided import geometric
from jostle.privacy.mechanisms.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

HALF = 0.5
HALF_OF_DELTA = HALF - 1e-9  # which is more than logarithms of doubles and scales that are rounded up take


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
        first = epsilon * HALF
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
        import numpy as np

        number = np.arange(1, most + 1, dtype=float)
        margin = self.reach + self.selection * np.log(number / (self.delta * HALF_OF_DELTA))
        luck = math.expm1(-1 / self.threshold) / math.expm1(-1 / self.threshold - 1 / self.question)
        room = self.question * np.log(np.maximum(luck * number * (number + 1) / (self.delta * HALF_OF_DELTA), 1.0))
        return fixed_width(np.ceil(margin)) + fixed_width(np.ceil(room))


def clear(values: Ints, scales: MarginScales, noise: Noise) -> Ints:
    """The places of the fewest scores that stand clear of the others, the largest first; all where none do.

    `values` within ±2^61, two at least.
    """
    import numpy as np

    order = (-values).argsort(kind="stable")
    margins = values[order[0]] - values[order[1:]]
    threshold = geometric(noise, 1, scales.threshold)
    above = margins + geometric(noise, len(margins), scales.question) >= scales.thresholds(len(margins)) + threshold
    return order[: int(above.argmax()) + 1] if above.any() else np.sort(order)


class LargeMargin(Selection, frozen=True):
    """A selection by margin within one amount; `delta` is the δ that it uses of the amount's."""

    delta: float = 0.0

    @classmethod
    def within(cls, amount: Amount, measures: Sequence[Measure]) -> LargeMargin:
        """Raises `BadAmount` without a δ, and where ε is too little."""
        if not amount.delta:
            help = "`with epsilon 1 delta 1e-6`, of a source with `budget epsilon e, delta d`; or use `noisy_max`"
            raise refuse("BadAmount", "a selection by margin needs a delta", help=help)
        if amount.value < 2:
            raise refuse("BadAmount", "too little to share among the parts of this measurement")
        return cls(amount, True, 1, used_delta(amount, measures))

    @property
    def price(self) -> Price:
        """On two neighbours an (ε, δ)-DP mechanism is ε-DP outside an event of δ (Kairouz, Oh & Viswanath 2015)."""
        return stability_price(self.amount)

    def scales(self, reach: int) -> MarginScales:
        """The noise for scores of which two part by at most `reach`."""
        return MarginScales.of(reach, as_float(self.amount.value), self.delta)
