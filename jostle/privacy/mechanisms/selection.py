"""Selection: the index of the (nearly) largest of private scores, by report noisy max, or of the `count` largest.

*Argument.* Let score j move by δ_j between neighbours, and R = max δ − min δ: R ≤ 2kΔ for scores of sensitivity Δ
and k changed rows, R ≤ kΔ where all of them move the same way (monotone). With noise of scale b every outcome's
log-probability moves by at most R/b, so b = R/ε is ε-DP, for exponential noise (permute-and-flip's law, the better
one at a given ε: McKenna & Sheldon 2020) as for Gumbel noise (the exponential mechanism's).

Under a budget that is counted in zCDP the noise is Gumbel's: the log-ratios of all outcomes then lie within a range
of ε, which makes it ε²/8-zCDP (Cesar & Rogers 2021, Lemma 3.4), a quarter of what exponential noise costs.

The `count` largest are chosen one after the other, each with an equal part, all by the same noise (Durfee & Rogers
2019; docs/privacy/selection.md): parts of ε add up, and so do ε²/8 of them.
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
