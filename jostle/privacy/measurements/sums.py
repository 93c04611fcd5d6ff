"""The sum of an expression on rows, as a score: `sum_of`.

*Argument.* That of the aggregate `sum` (`measurements.aggregates.terms`): a row adds one term, which is clamped to the
public bounds of the expression and rounded to a grid, and so moves the sum by `sensitivity_of` at most. Where no term
is below 0, or none above, all rows move it one way. The grid is coarser than that of the aggregate: a score is measured
again and again, with wide noise at first, and has 2^20 steps within its bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.plan.bounds import grid_bits, is_integral
from jostle.plan.plan import FixedSum, RowExpr
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.aggregates.terms import grid_of, public_bounds, sensitivity_of
from jostle.privacy.scores.rule import Rule, Score
from jostle.privacy.scores.splits import table_of

if TYPE_CHECKING:
    from jostle.privacy.reading.reader import Reader

BITS = 20
"""Of the grid of a sum that is not whole, for terms of up to 1."""


@dataclass(frozen=True, eq=False)
class RowSum(Rule):
    """Σ E over the rows of a table."""

    def __call__(self, table: Table, expr: RowExpr) -> Score:
        low, high = public_bounds(expr, table, "sum")
        whole = is_integral(expr, table.domains) and not table.weighted
        bits = 0 if whole else grid_bits(max(abs(low), abs(high)), BITS)
        term = FixedSum(expr, low, high, bits, weighted=table.weighted)
        moved, falls = max(1, sensitivity_of(term, table)), low < 0 and high <= 0
        return Score(table.exposures, self, table, moved, low >= 0 or falls, grid_of(term), (term,), falls)

    def exact(self, reader: Reader, score: Score) -> list[int]:
        (total,) = reader.group(table_of(score).plan, (), score.arguments)
        return [int(total)]


sum_of = RowSum("sum_of", True)
