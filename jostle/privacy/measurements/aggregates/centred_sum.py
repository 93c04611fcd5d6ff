"""The sum of an expression beside its mean, of the same terms.

*Measures* Σ(E − middle) and the count, h and |middle| parts of the amount.
*Sensitivity* h and 1.
*Mechanism* Additive, twice.
*Why* Σ E = Σ(E − middle) + middle · count, over the rows where E is not none.
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.accounting.amounts import Amount
from jostle.formulas import calculated
from jostle.language.aggregates import AGGREGATES
from jostle.plan.plan import Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import Estimator, Floats
from jostle.privacy.measurements.aggregates.avg import Avg
from jostle.privacy.measurements.aggregates.terms import Centred

PARTS = 2**20


class CentredSum(Avg):
    row = AGGREGATES["sum"]

    def shares(self, amount: Amount, table: Table) -> list[tuple[Term, Amount]]:
        x, (total, count) = Centred.of(self.expr, table, self.name), self.terms(table)
        of_total = round(PARTS * x.half / (x.half + abs(x.middle))) if x.half else 0
        parts = [(total, of_total), (count, PARTS - of_total)]
        return [
            (term, Amount(amount.unit, amount.value * part // PARTS, amount.delta * part // PARTS))
            for term, part in parts if part
        ]  # fmt: skip

    def estimator(self, table: Table) -> Estimator:
        middle = Centred.of(self.expr, table, self.name).middle

        def whole(total: Floats, count: Floats) -> Floats:
            return total + middle * count

        return Estimator(whole, 1, float("-inf"), float("-inf"), float("inf"))

    def of_terms(self, table: Table, terms: Sequence[Sequence[float]]) -> list[float]:
        """A sum of noisy numbers, whose noise is known as such."""
        middle = Centred.of(self.expr, table, self.name).middle
        moved = [calculated(middle * count, "*", (middle, count)) for _, count in terms]
        return [calculated(total + more, "+", (total, more)) for (total, _), more in zip(terms, moved, strict=True)]
