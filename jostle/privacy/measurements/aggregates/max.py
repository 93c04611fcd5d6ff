"""The largest value of an expression, or of texts of a public table the last.

*Measures* The same as a quantile, with q = 1, aimed a little inside.
*Sensitivity* 1, either way.
*Mechanism* Noisy max at 2k/ε.
*Why* As for a quantile; the shift is public.

Of a cube: the largest cell, with additive noise. The largest of one group moves by at most what its cells move by.
"""

from __future__ import annotations

from jostle.language.aggregates import AGGREGATES
from jostle.lazy import Ints, np
from jostle.privacy.measurements.aggregates.quantile import Quantile


class Max(Quantile):
    row = AGGREGATES["max"]

    def of_cells(self, cells: Ints, group: Ints, groups: int) -> Ints:
        answers = np.zeros(groups, dtype=np.int64)
        np.maximum.at(answers, group, cells)
        return answers

    def rank(self) -> float:
        return 1.0
