"""The smallest value of an expression, or of texts of a public table the first.

*Measures* The same as a quantile, with q = 0, aimed a little inside.
*Sensitivity* 1, either way.
*Mechanism* Noisy max at 2k/ε.
*Why* As for a quantile; the shift is public.
"""

from __future__ import annotations

from jostle.language.aggregates import AGGREGATES
from jostle.privacy.measurements.aggregates.quantile import Quantile


class Min(Quantile):
    row = AGGREGATES["min"]

    def rank(self) -> float:
        return 0.0
