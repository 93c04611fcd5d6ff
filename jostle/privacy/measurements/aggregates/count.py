"""How many rows there are, or how many where an expression is not none.

*Measures* The number of rows, or of rows where E is not none.
*Sensitivity* 1.
*Mechanism* Additive.
*Why* A row counts or does not.

Of a cube: the number of cells. The one cell that a row moves comes in or goes out, in its own group.
"""

from __future__ import annotations

from jostle.integers import fixed_width
from jostle.language.aggregates import AGGREGATES
from jostle.lazy import Ints, np
from jostle.plan import plan
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import AdditiveAggregate


class Count(AdditiveAggregate):
    """`count(*)` has no expression."""

    row = AGGREGATES["count"]

    def of_cells(self, cells: Ints, group: Ints, groups: int) -> Ints:
        return fixed_width(np.bincount(group, minlength=groups))

    def measured(self, table: Table) -> tuple[plan.Term, ...]:
        return (plan.Count(next(iter(self.expressions), None), weighted=table.weighted),)
