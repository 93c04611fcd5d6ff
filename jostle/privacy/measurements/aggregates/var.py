"""The sample variance of an expression.

*Measures* The pair of the mean with two thirds of the amount, and Σ(E − middle)² with one.
*Sensitivity* 2h of the pair, and h².
*Mechanism* Additive, twice.
*Why* As for the mean; a square is clamped and rounded like any other term.
"""

from __future__ import annotations

from jostle.language.aggregates import AGGREGATES
from jostle.lazy import Floats, np
from jostle.plan.plan import Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import Estimate, Estimator
from jostle.privacy.measurements.aggregates.terms import Centred, Pair, fixed_sum, grid_for, sum_and_count
from jostle.records import replace


class Var(Estimate):
    row = AGGREGATES["var"]

    def measured(self, table: Table) -> tuple[Term | Pair, ...]:
        x = Centred.of(self.expr, table, self.name)
        squares = replace(fixed_sum(x.expr, x.half, table), bits=grid_for(x.half**2), square=True)
        return (sum_and_count(self.expr, table, self.name), squares)

    def estimator(self, table: Table) -> Estimator:
        x = Centred.of(self.expr, table, self.name)
        half, most = x.half, x.width**2 / 2

        def variance(total: Floats, count: Floats, squares: Floats) -> Floats:
            mean = np.clip(total / np.maximum(count, 1.0), -half, half)
            rows = np.maximum(count, 2.0)
            result: Floats = np.clip((squares - rows * mean**2) / (rows - 1), 0.0, most)
            return result

        return Estimator(variance, 1, 2.0, 0.0, most)
