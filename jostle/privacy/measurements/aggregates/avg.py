"""The mean of an expression.

*Measures* Σ(h + x) and Σ(h − x), x = E − middle: a pair, which has the sum of x and the count.
*Sensitivity* 2h of both together.
*Mechanism* Additive, of a vector of two.
*Why* A row adds h + x ≥ 0 and h − x ≥ 0, 2h in all; the quotient is post-processing, kept within the bounds.
"""

from __future__ import annotations

from jostle.language.aggregates import AGGREGATES
from jostle.lazy import Floats, np
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import Estimate, Estimator
from jostle.privacy.measurements.aggregates.terms import Centred, Pair, sum_and_count


class Avg(Estimate):
    row = AGGREGATES["avg"]

    def measured(self, table: Table) -> tuple[Pair]:
        return (sum_and_count(self.expr, table, self.name),)

    def estimator(self, table: Table) -> Estimator:
        x = Centred.of(self.expr, table, self.name)
        half, middle = x.half, x.middle

        def mean(total: Floats, count: Floats) -> Floats:
            result: Floats = np.clip(total / np.maximum(count, 1.0), -half, half) + middle
            return result

        return Estimator(mean, 1, 1.0, middle - half, middle + half)
