"""The sample covariance of two expressions.

*Measures* The pair of Y with half of the amount, Σ(X − middle) and Σ(X − middle)(Y − middle) with a quarter each.
*Sensitivity* 2h of Y for the pair, h of X, and their product h·h.
*Mechanism* Additive, three times.
*Why* A row adds to each sum once, and to none where X or Y is none; the rest is post-processing, kept within bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.language.aggregates import AGGREGATES
from jostle.lazy import Floats, np
from jostle.plan.plan import Apply, Constant, Count, Exact, RowExpr, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.aggregate import Estimate, Estimator
from jostle.privacy.measurements.aggregates.terms import Centred, Pair, fixed_sum


class Covariance(Estimate):
    row = AGGREGATES["covariance"]

    def statistics(self) -> tuple[Exact, ...]:
        """Those of (var(X + Y) − var(X − Y)) / 4, over the rows that have both."""
        return (Exact("var", Apply("+", self.expressions)), Exact("var", Apply("-", self.expressions)))

    def of_statistics(self, values: Sequence[float | None]) -> float | None:
        plus, minus = values
        return None if plus is None or minus is None else (plus - minus) / 4

    def _centred(self, table: Table) -> list[Centred]:
        return [Centred.of(expr, table, self.name) for expr in self.expressions]

    def measured(self, table: Table) -> tuple[Term | Pair, ...]:
        x, y = self._centred(table)
        product = Apply("*", (x.expr, y.expr))
        total = fixed_sum(_where(x.expr, y.expr), y.half, table)
        return (
            fixed_sum(_where(y.expr, x.expr), x.half, table),
            Pair.of(total, Count(product, weighted=table.weighted)),
            fixed_sum(product, x.half * y.half, table),
        )

    def estimator(self, table: Table) -> Estimator:
        x, y = self._centred(table)
        halves, most = (x.half, y.half), x.width * y.width / 2

        def covariance(of_x: Floats, of_y: Floats, count: Floats, products: Floats) -> Floats:
            mean_x, mean_y = (
                np.clip(total / np.maximum(count, 1.0), -half, half)
                for total, half in zip((of_x, of_y), halves, strict=True)
            )
            rows = np.maximum(count, 2.0)
            result: Floats = np.clip((products - rows * mean_x * mean_y) / (rows - 1), -most, most)
            return result

        return Estimator(covariance, 2, 2.0, -most, most)


def _where(other: RowExpr, expr: RowExpr) -> RowExpr:
    """`expr` in the rows where `other` is not none."""
    return Apply("if", (Apply("==", (other, other)), expr, Constant(None)))
