"""The sum of an expression beside its mean, of the same terms.

*Measures* The pair of the mean, with all of the amount.
*Sensitivity* 2h of the pair.
*Mechanism* Additive, of a vector of two.
*Why* Σ E = Σ(E − middle) + middle · count, over the rows where E is not none.
"""

from __future__ import annotations

from jostle.language.aggregates import AGGREGATES
from jostle.lazy import Floats
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import Estimator
from jostle.privacy.measurements.aggregates.avg import Avg
from jostle.privacy.measurements.aggregates.terms import Centred


class CentredSum(Avg):
    row = AGGREGATES["sum"]

    def estimator(self, table: Table) -> Estimator:
        middle = Centred.of(self.expr, table, self.name).middle

        def whole(total: Floats, count: Floats) -> Floats:
            return total + middle * count

        return Estimator(whole, 1, float("-inf"), float("-inf"), float("inf"))
