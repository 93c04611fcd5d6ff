"""The median of an expression.

*Measures* The same as a quantile, with q = 1/2.
*Sensitivity* 1, either way.
*Mechanism* Noisy max at 2k/ε.
*Why* As for a quantile.
"""

from __future__ import annotations

from jostle.language.aggregates import AGGREGATES
from jostle.plan.plan import Exact
from jostle.privacy.measurements.aggregates.quantile import Quantile


class Median(Quantile):
    row = AGGREGATES["median"]

    def rank(self) -> float:
        return 0.5

    def statistics(self) -> tuple[Exact, ...]:
        return (Exact("quantile", self.expr, 0.5),)
