"""Counts of rows and of distinct values, sums and means."""

from __future__ import annotations

from jostle.integers import fixed_width
from jostle.lazy import Floats, Ints, np
from jostle.plan.kinds import is_integral
from jostle.plan.plan import Count as RowCount
from jostle.plan.plan import FixedSum, Term
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates import aggregate as agg


class Count(agg.AdditiveAggregate):
    """The number of rows, or of rows in which an expression is not missing.

    *Measures* The number of rows, or of rows where E is not none.
    *Sensitivity* 1.
    *Mechanism* Additive.
    *Why* A row counts or does not.

    Of a cube: the number of cells. The one cell that a row changes is added or removed, in its own group.

    `count(*)` has no expression.
    """

    name = "count"
    any_kind = True

    def of_cells(self, cells: Ints, group: Ints, groups: int) -> Ints:
        return fixed_width(np.bincount(group, minlength=groups))

    def measured(self, table: Table) -> tuple[Term, ...]:
        return (RowCount(next(iter(self.expressions), None), weighted=table.weighted),)


class CountDistinct(agg.AdditiveAggregate):
    """The number of distinct values of an expression.

    *Measures* The number of different values of E that are not none.
    *Sensitivity* 1.
    *Mechanism* Additive.
    *Why* A row adds at most one value, and k rows at most k. For the protected column, without groups, 1 in all.

    For several expressions E is one text for each combination of their values (`pair`), and a row has at most one.
    """

    name = "count_distinct"
    any_kind = True

    def measured(self, table: Table) -> tuple[Term, ...]:
        return (RowCount(self.expr, distinct=True),)


class Sum(agg.AdditiveAggregate):
    """The sum of an expression.

    *Measures* Σ E on a grid of about 2⁻³⁰ B, whole numbers exactly.
    *Sensitivity* B.
    *Mechanism* Additive.
    *Why* A row adds one clamped, rounded term, at most ⌈B·2^bits⌉ grid steps.

    Of a cube: sums over disjoint groups of cells, which change by at most what the cells change by.
    """

    name = "sum"

    def of_cells(self, cells: Ints, group: Ints, groups: int) -> Ints:
        answers = np.zeros(groups, dtype=cells.dtype)
        np.add.at(answers, group, cells)
        return answers

    def measured(self, table: Table) -> tuple[Term, ...]:
        low, high = agg.public_bounds(self.expr, table, self.name)
        whole = is_integral(self.expr, table.domains) and not table.weighted
        bits = 0 if whole else agg.grid_for(max(abs(low), abs(high)))
        return (FixedSum(self.expr, low, high, bits, weighted=table.weighted),)


class Avg(agg.Estimate):
    """The mean of an expression.

    *Measures* Σ(h + x) and Σ(h − x), x = E − middle: a pair, which determines the sum of x and the count.
    *Sensitivity* 2h of both together.
    *Mechanism* Additive, of a vector of two.
    *Why* A row adds h + x ≥ 0 and h − x ≥ 0, 2h in all; the quotient is post-processing, kept within the bounds.
    """

    name = "avg"

    def measured(self, table: Table) -> tuple[agg.Pair]:
        return (agg.sum_and_count(self.expr, table, self.name),)

    def estimator(self, table: Table) -> agg.Estimator:
        x = agg.Centred.of(self.expr, table, self.name)
        half, middle = x.half, x.middle

        def mean(total: Floats, count: Floats) -> Floats:
            return total / np.maximum(count, 1.0) + middle

        return agg.Estimator(mean, 1, 1.0, middle - half, middle + half)


class CentredSum(Avg):
    """The sum of an expression beside its mean, from the same terms.

    *Measures* The pair of the mean, with all of the amount.
    *Sensitivity* 2h of the pair.
    *Mechanism* Additive, of a vector of two.
    *Why* Σ E = Σ(E − middle) + middle · count, over the rows where E is not none.
    """

    name = "sum"

    def estimator(self, table: Table) -> agg.Estimator:
        middle = agg.Centred.of(self.expr, table, self.name).middle

        def whole(total: Floats, count: Floats) -> Floats:
            return total + middle * count

        return agg.Estimator(whole, 1, float("-inf"), float("-inf"), float("inf"))
