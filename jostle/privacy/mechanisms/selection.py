"""Selection by report noisy max: the index of the (nearly) largest private score, or of the `count` largest.

Let score j change by δ_j between neighbours, and R = max δ − min δ. R is at most 2kΔ for scores of sensitivity Δ and k
changed rows, and kΔ if all scores change in the same direction (monotone). Noise of scale R/ε is ε-DP. It is
exponential noise (the law of permute-and-flip, better at a given ε), or, if the budget is counted in zCDP, Gumbel
noise, which costs ε²/8. The `count` largest are selected one after the other, each with an equal part. The argument is
in docs/privacy/mechanisms.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from jostle.accounting.amounts import QUANTA, Amount, as_float
from jostle.accounting.definitions import Measure, Price, pure_epsilon, pure_price, root_two_rho
from jostle.diagnostics import refuse
from jostle.lazy import Ints
from jostle.noise_laws import Selected
from jostle.privacy.mechanisms.noise import Noise

COUNTED_IN_ZCDP = ("zcdp", "approximate")


class Selection(Struct, frozen=True):
    """A selection of `count` indices within one amount. A delta of the amount is not used."""

    amount: Amount
    gumbel: bool
    count: int = 1

    @classmethod
    def of(cls, amount: Amount, measures: Sequence[Measure], count: int = 1, exponential: bool = False) -> Selection:
        """`exponential`: use exponential noise whatever the measure."""
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
        """The ε of each of the `count` selections. An amount in ρ is `count`·ε²/8 for Gumbel noise, and
        (count·ε)·tanh(count·ε/2) for exponential noise."""
        value = as_float(self.amount.value)
        if self.amount.unit == "rho":
            return 2 * root_two_rho(value / self.count) if self.gumbel else pure_epsilon(value) / self.count
        return value / self.count

    def scale(self, reach: float, monotone: bool) -> float:
        """The scale of the noise for scores that k changed rows change by at most `reach` = kΔ each."""
        return (1 if monotone else 2) * reach / self.epsilon

    def choose(self, noise: Noise, scores: Ints, scale: float) -> int:
        return noise.gumbel_max(scores, scale) if self.gumbel else noise.noisy_max(scores, scale)
