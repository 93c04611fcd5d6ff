"""The sample variance of an expression.

*Measures* Σ(E − middle), the count and Σ(E − middle)², a third of the amount each.
*Sensitivity* h, 1 and h².
*Mechanism* Additive, three times.
*Why* As for the mean; a square is clamped and rounded like any other term.
"""

from __future__ import annotations

from dataclasses import replace

from jostle.language.aggregates import AGGREGATES
from jostle.plan.plan import Count, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import Estimate, Estimator, Floats
from jostle.privacy.measurements.aggregates.terms import Centred, fixed_sum, grid_for


class Var(Estimate):
    row = AGGREGATES["var"]

    def terms(self, table: Table) -> tuple[Term, ...]:
        x = Centred.of(self.expr, table, self.name)
        total = fixed_sum(x.expr, x.half, table)
        squares = replace(total, bits=grid_for(x.half**2), square=True)
        return (total, Count(self.expr, weighted=table.weighted), squares)

    def estimator(self, table: Table) -> Estimator:
        import numpy as np

        x = Centred.of(self.expr, table, self.name)
        half, most = x.half, x.width**2 / 2

        def variance(total: Floats, count: Floats, squares: Floats) -> Floats:
            mean = np.clip(total / np.maximum(count, 1.0), -half, half)
            rows = np.maximum(count, 2.0)
            result: Floats = np.clip((squares - rows * mean**2) / (rows - 1), 0.0, most)
            return result

        return Estimator(variance, 1, 2.0, 0.0, most)
