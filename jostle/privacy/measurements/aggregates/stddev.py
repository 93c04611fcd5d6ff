"""The sample standard deviation of an expression.

*Measures* The same as the variance.
*Sensitivity* 2h and h².
*Mechanism* Additive, twice.
*Why* It is the root of the noisy variance, which is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jostle.language.aggregates import AGGREGATES
from jostle.lazy import Floats, np
from jostle.plan.plan import Exact
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import Estimator
from jostle.privacy.measurements.aggregates.var import Var


class Stddev(Var):
    row = AGGREGATES["stddev"]

    def statistics(self) -> tuple[Exact, ...]:
        return (Exact("var", self.expr),)

    def of_statistics(self, values: Sequence[float | None]) -> float | None:
        return None if values[0] is None else math.sqrt(values[0])

    def estimator(self, table: Table) -> Estimator:
        variance = super().estimator(table)

        def deviation(*terms: Floats) -> Floats:
            result: Floats = np.sqrt(variance.answers(*terms))
            return result

        return Estimator(deviation, variance.count, variance.least, 0.0, math.sqrt(variance.high))
