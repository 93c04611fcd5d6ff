"""Numbers of rows and of different values."""

from __future__ import annotations

from jostle.integers import fixed_width
from jostle.language.aggregates import AGGREGATES, DISTINCT
from jostle.lazy import Ints, np
from jostle.plan import plan
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import AdditiveAggregate


class Count(AdditiveAggregate):
    """How many rows there are, or how many where an expression is not none.

    *Measures* The number of rows, or of rows where E is not none.
    *Sensitivity* 1.
    *Mechanism* Additive.
    *Why* A row counts or does not.

    Of a cube: the number of cells. The one cell that a row moves comes in or goes out, in its own group.

    `count(*)` has no expression.
    """

    row = AGGREGATES["count"]

    def of_cells(self, cells: Ints, group: Ints, groups: int) -> Ints:
        return fixed_width(np.bincount(group, minlength=groups))

    def measured(self, table: Table) -> tuple[plan.Term, ...]:
        return (plan.Count(next(iter(self.expressions), None), weighted=table.weighted),)


class CountDistinct(AdditiveAggregate):
    """How many different values an expression has.

    *Measures* The number of different values of E that are not none.
    *Sensitivity* 1.
    *Mechanism* Additive.
    *Why* A row brings at most one value, and k rows at most k. Of the protected column, undivided, 1 in all.

    Of several expressions E is one text for each combination of their values (`pair`), and a row has one at most.
    """

    row = DISTINCT["count"]

    def measured(self, table: Table) -> tuple[plan.Term, ...]:
        return (plan.Count(self.expr, distinct=True),)
