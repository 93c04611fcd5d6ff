"""How many different values an expression has.

*Measures* The number of different values of E that are not none.
*Sensitivity* 1.
*Mechanism* Additive.
*Why* A row brings at most one value, and k rows at most k. Of the protected column, undivided, 1 in all.

Of several expressions E is one text for each combination of their values (`pair`), and a row has one at most.
"""

from __future__ import annotations

from jostle.language.aggregates import DISTINCT
from jostle.plan import plan
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import AdditiveAggregate


class CountDistinct(AdditiveAggregate):
    row = DISTINCT["count"]

    def measured(self, table: Table) -> tuple[plan.Term, ...]:
        return (plan.Count(self.expr, distinct=True),)
