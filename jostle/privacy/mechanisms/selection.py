"""Selection: the index of the (nearly) largest of private scores, by report noisy max, or of the `count` largest.

Let score j move by δ_j between neighbours, and R = max δ − min δ: at most 2kΔ for scores of sensitivity Δ and k changed
rows, kΔ where all of them move the same way (monotone). Noise of scale R/ε is ε-DP: exponential noise
(permute-and-flip's law, the better one at a given ε), or where a budget is counted in zCDP Gumbel noise, which costs
ε²/8. The `count` largest are chosen one after the other, each with an equal part. docs/privacy/mechanisms.md has the
argument.
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

    def choose(self, noise: Noise, scores: Ints, scale: float) -> int:
        return noise.gumbel_max(scores, scale) if self.gumbel else noise.noisy_max(scores, scale)
