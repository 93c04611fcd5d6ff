"""Selection: the index of the (nearly) largest of private scores, by report noisy max, or of the `count` largest.

*Argument.* Let score j move by δ_j between neighbours, and R = max δ − min δ: R ≤ 2kΔ for scores of sensitivity Δ
and k changed rows, R ≤ kΔ where all of them move the same way (monotone). With noise of scale b every outcome's
log-probability moves by at most R/b, so b = R/ε is ε-DP, for exponential noise (permute-and-flip's law, the better
one at a given ε: McKenna & Sheldon 2020) as for Gumbel noise (the exponential mechanism's).

Under a budget that is counted in zCDP the noise is Gumbel's: the log-ratios of all outcomes then lie within a range
of ε, which makes it ε²/8-zCDP (Cesar & Rogers 2021, Lemma 3.4), a quarter of what exponential noise costs.

The `count` largest are chosen one after the other, each with an equal part, all by the same noise (Durfee & Rogers
2019; docs/privacy/selection.md): parts of ε add up, and so do ε²/8 of them.

How many runs of a program there are, of which one is shown, is drawn by `Stopping`, from fair bits alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from jostle.accounting.amounts import QUANTA, Amount, as_float
from jostle.accounting.definitions import Measure, Price, pure_epsilon, pure_price, root_two_rho
from jostle.diagnostics import refuse
from jostle.noise_laws import Selected
from jostle.privacy.mechanisms.noise import Noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COUNTED_IN_ZCDP = ("zcdp", "approximate")


class Selection(Struct, frozen=True):
    """A selection of `count` within one amount. A delta does nothing for it."""

    amount: Amount
    gumbel: bool
    count: int = 1

    @classmethod
    def of(cls, amount: Amount, measures: Sequence[Measure], count: int = 1, exponential: bool = False) -> Selection:
        """`exponential`: with exponential noise, however its sources are counted."""
        if amount.value == 0:
            raise refuse("BadAmount", "too little to share among the parts of this measurement")
        plain = Amount(amount.unit, amount.value)
        in_zcdp = all(measure.kind in COUNTED_IN_ZCDP for measure in measures)
        return cls(plain, in_zcdp and not exponential, count)

    @property
    def mechanism(self) -> str:
        return Selected.name

    @property
    def price(self) -> Price:
        if self.amount.unit == "rho":
            return Price(self.amount, self.amount.value)
        if self.gumbel:
            rho = -(-self.amount.value * self.amount.value // (8 * QUANTA * self.count))
            return Price(self.amount, rho, pure=True)
        return pure_price(self.amount)

    @property
    def epsilon(self) -> float:
        """The ε of each of `count`; in ρ, that of which ρ is `count`·ε²/8 (for exponential noise (count·ε)·tanh of its
        half)."""
        value = as_float(self.amount.value)
        if self.amount.unit == "rho":
            return 2 * root_two_rho(value / self.count) if self.gumbel else pure_epsilon(value) / self.count
        return value / self.count

    def scale(self, reach: float, monotone: bool) -> float:
        """Of the noise, for scores that k changed rows move by at most `reach` = kΔ each."""
        return (1 if monotone else 2) * reach / self.epsilon

    def choose(self, noise: Noise, scores: NDArray[np.int64], scale: float) -> int:
        return noise.gumbel_max(scores, scale) if self.gumbel else noise.noisy_max(scores, scale)


PARTS = {"geometric": 3, "logarithmic": 2}
"""How many parts of a run's ε the best of many costs, by the law of how many there are."""
TO_A_GOOD_ONE = 2
"""The same of the first good one, among a geometric number of them."""
MOST_RUNS = 100_000
HALF = 2**15
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
    def trace_fields(self) -> dict[str, Any]:
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
        number = sum(int(bit) << place for place, bit in enumerate(noise.sample(bits, HALF)))
        if number < bound:
            return number
