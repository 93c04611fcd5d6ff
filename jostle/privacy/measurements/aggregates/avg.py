"""The mean of an expression.

*Measures* Σ(E − middle) and the count, half the amount each.
*Sensitivity* h and 1.
*Mechanism* Additive, twice.
*Why* Centring halves what one row can add; the quotient is post-processing, kept within the bounds.
"""

from __future__ import annotations

from jostle.language.aggregates import AGGREGATES
from jostle.plan.plan import Count, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import Estimate, Estimator, Floats
from jostle.privacy.measurements.aggregates.terms import Centred, fixed_sum


class Avg(Estimate):
    row = AGGREGATES["avg"]

    def terms(self, table: Table) -> tuple[Term, ...]:
        x = Centred.of(self.expr, table, self.name)
        return (fixed_sum(x.expr, x.half, table), Count(self.expr, weighted=table.weighted))

    def estimator(self, table: Table) -> Estimator:
        import numpy as np

        x = Centred.of(self.expr, table, self.name)
        half, middle = x.half, x.middle

        def mean(total: Floats, count: Floats) -> Floats:
            result: Floats = np.clip(total / np.maximum(count, 1.0), -half, half) + middle
            return result

        return Estimator(mean, 1, 1.0, middle - half, middle + half)
