"""The sum of an expression.

*Measures* Σ E on a grid of about 2⁻³⁰ B, whole numbers exactly.
*Sensitivity* B.
*Mechanism* Additive.
*Why* A row adds one clamped, rounded term, at most ⌈B·2^bits⌉ grid steps.

Of a cube: sums over disjoint groups of cells, which move by what the cells move by.
"""

from __future__ import annotations

from jostle.language.aggregates import AGGREGATES
from jostle.lazy import Ints, np
from jostle.plan.bounds import is_integral
from jostle.plan.plan import FixedSum, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import AdditiveAggregate
from jostle.privacy.measurements.aggregates.terms import grid_for, public_bounds


class Sum(AdditiveAggregate):
    row = AGGREGATES["sum"]

    def of_cells(self, cells: Ints, group: Ints, groups: int) -> Ints:
        answers = np.zeros(groups, dtype=np.int64)
        np.add.at(answers, group, cells)
        return answers

    def measured(self, table: Table) -> tuple[Term, ...]:
        low, high = public_bounds(self.expr, table, self.name)
        whole = is_integral(self.expr, table.domains) and not table.weighted
        bits = 0 if whole else grid_for(max(abs(low), abs(high)))
        return (FixedSum(self.expr, low, high, bits, weighted=table.weighted),)
