"""Second moments: variance, standard deviation and covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jostle.lazy import Floats, np
from jostle.plan.plan import Apply, Constant, Count, Exact, RowExpr, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates import aggregate as agg
from jostle.records import replace


class Var(agg.Estimate):
    """The sample variance of an expression.

    *Measures* The pair of the mean with two thirds of the amount, and Σ(E − middle)² with one.
    *Sensitivity* 2h of the pair, and h².
    *Mechanism* Additive, twice.
    *Why* As for the mean; a square is clamped and rounded like any other term.
    """

    name = "var"

    def measured(self, table: Table) -> tuple[Term | agg.Pair, ...]:
        x = agg.Centred.of(self.expr, table, self.name)
        squares = replace(agg.fixed_sum(x.expr, x.half, table), bits=agg.grid_for(x.half**2), square=True)
        return (agg.sum_and_count(self.expr, table, self.name), squares)

    def estimator(self, table: Table) -> agg.Estimator:
        x = agg.Centred.of(self.expr, table, self.name)
        half, most = x.half, x.width**2 / 2

        def variance(total: Floats, count: Floats, squares: Floats) -> Floats:
            mean = np.clip(total / np.maximum(count, 1.0), -half, half)
            rows = np.maximum(count, 2.0)
            result: Floats = (squares - rows * mean**2) / (rows - 1)
            return result

        return agg.Estimator(variance, 1, 2.0, 0.0, most)


class Stddev(Var):
    """The sample standard deviation of an expression.

    *Measures* The same as the variance.
    *Sensitivity* 2h and h².
    *Mechanism* Additive, twice.
    *Why* It is the root of the noisy variance, which is post-processing.
    """

    name = "stddev"

    def statistics(self) -> tuple[Exact, ...]:
        return (Exact("var", self.expr),)

    def of_statistics(self, values: Sequence[float | None]) -> float | None:
        return None if values[0] is None else math.sqrt(values[0])

    def estimator(self, table: Table) -> agg.Estimator:
        variance = super().estimator(table)

        def deviation(*terms: Floats) -> Floats:
            squares = variance.answers(*terms)
            result: Floats = np.sign(squares) * np.sqrt(np.abs(squares))
            return result

        return agg.Estimator(deviation, variance.count, variance.least, 0.0, math.sqrt(variance.high))


class Covariance(agg.Estimate):
    """The sample covariance of two expressions.

    *Measures* The pair of Y with half of the amount, Σ(X − middle) and Σ(X − middle)(Y − middle) with a quarter each.
    *Sensitivity* 2h of Y for the pair, h of X, and their product h·h.
    *Mechanism* Additive, three times.
    *Why* A row adds to each sum once, and to none where X or Y is none; the rest is post-processing, within bounds.
    """

    name = "covariance"

    def statistics(self) -> tuple[Exact, ...]:
        """The variances of (var(X + Y) − var(X − Y)) / 4, over the rows that have both values."""
        return (Exact("var", Apply("+", self.expressions)), Exact("var", Apply("-", self.expressions)))

    def of_statistics(self, values: Sequence[float | None]) -> float | None:
        plus, minus = values
        return None if plus is None or minus is None else (plus - minus) / 4

    def _centred(self, table: Table) -> list[agg.Centred]:
        return [agg.Centred.of(expr, table, self.name) for expr in self.expressions]

    def measured(self, table: Table) -> tuple[Term | agg.Pair, ...]:
        x, y = self._centred(table)
        product = Apply("*", (x.expr, y.expr))
        total = agg.fixed_sum(_where(x.expr, y.expr), y.half, table)
        return (
            agg.fixed_sum(_where(y.expr, x.expr), x.half, table),
            agg.Pair.of(total, Count(product, weighted=table.weighted)),
            agg.fixed_sum(product, x.half * y.half, table),
        )

    def estimator(self, table: Table) -> agg.Estimator:
        x, y = self._centred(table)
        halves, most = (x.half, y.half), x.width * y.width / 2

        def covariance(of_x: Floats, of_y: Floats, count: Floats, products: Floats) -> Floats:
            mean_x, mean_y = (
                np.clip(total / np.maximum(count, 1.0), -half, half)
                for total, half in zip((of_x, of_y), halves, strict=True)
            )
            rows = np.maximum(count, 2.0)
            result: Floats = (products - rows * mean_x * mean_y) / (rows - 1)
            return result

        return agg.Estimator(covariance, 2, 2.0, -most, most)


def _where(other: RowExpr, expr: RowExpr) -> RowExpr:
    """`expr` in the rows where `other` is not none."""
    return Apply("if", (Apply("==", (other, other)), expr, Constant(None)))
