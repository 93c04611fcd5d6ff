"""A quantile of an expression: report noisy max over public intervals.

*Measures* A public interval [a, b), by minus the distance of 0 from [d·#{< a} − c·N, d·#{< b} − c·N], q = c/d.
*Sensitivity* max(c, d − c), either way.
*Mechanism* Noisy max at 2·max(c, d − c)·k/ε.
*Why* A row moves each end by −c or by d − c, and a distance is 1-Lipschitz in the ends.

The intervals cover the public bounds of the expression (`intervals`): a whole number each where there are at most
4,096, else 4,096 of equal width, cut finer towards 0. The answer is the public number that stands for the interval.
The last interval has no end: #{< b} is N there. A minimum or maximum would pick the edge of the domain at any noise,
so it aims, by a public shift, at the rank that noise can resolve, and at the first or last row where that is finer.
Where rows have weights, the ends count by them, in whole units. The ends are linear in the rows, so that rows of a
weight of 1 in all move them by no more than one row would; k is then that weight.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.formulas import Noised
from jostle.language.aggregates import AGGREGATES
from jostle.noise_laws import Selected
from jostle.plan.bounds import bounds_of, is_integral
from jostle.plan.plan import WEIGHT_BITS, Plan
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import weighted_stability_of
from jostle.privacy.measurements.aggregates.aggregate import SelectionAggregate
from jostle.privacy.measurements.aggregates.intervals import intervals
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection

if TYPE_CHECKING:
    from jostle.privacy.kernel.reader import Reader


class Quantile(SelectionAggregate):
    row = AGGREGATES["quantile"]

    def rank(self) -> float:
        """The q that is aimed at."""
        return self.numbers[0]

    def check(self, table: Table) -> None:
        super().check(table)
        if not 0 <= self.rank() <= 1:
            raise refuse("ValueError", "a quantile lies between 0 and 1", help="write `quantile(age, 0.25)`")

    def candidates(self, table: Table) -> tuple[float, float]:
        bounds = bounds_of(self.expr, table.domains)
        if bounds is None or not all(math.isfinite(b) for b in bounds):
            raise refuse(
                "UnboundedSum", f"this {self.name} has no known bounds to search between",
                help="describe the column with a range, or bound it: `clamp(E, low, high)`; `bounds(E)` buys them",
            )  # fmt: skip
        return bounds

    def read(self, reader: Reader, table: Table, plan: Plan) -> tuple[Any, Any]:
        return reader.tally(plan, self.expr, weighted=table.weighted)

    def empty(self, table: Table) -> tuple[Any, Any]:
        return [], []

    def choose(
        self, mechanism: Selection, exact: tuple[Any, Any], noise: Noise, table: Table
    ) -> tuple[Noised, Selected]:
        import numpy as np

        starts, numbers = intervals(*self.candidates(table), is_integral(self.expr, table.domains))
        values, counts = exact
        running = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))])
        ordered = np.asarray(values, dtype=float)
        below = running[np.searchsorted(ordered, starts, side="left")]
        through = np.append(below[1:], running[-1])  # the rows of an interval are below the next one's start
        part = Fraction(self.rank()).limit_denominator(1000)
        c, d = part.numerator, part.denominator
        unit = 1 << (WEIGHT_BITS if table.weighted else 0)  # of a row in the counts
        scale = mechanism.scale(max(c, d - c) * weighted_stability_of(table) * unit, monotone=False)
        least, most = d * below - c * running[-1], d * through - c * running[-1]
        if c in (0, d):
            aim = max(unit, math.ceil(min(scale * math.log(len(starts)) / 2, 2.0**61)))
            shift = aim if c == 0 else -aim
            least, most = least - shift, most - shift
        scores = -np.maximum(0, np.maximum(least, -most))
        law = Selected(scale / (d * unit), len(starts))  # in ranks
        return Noised(float(numbers[mechanism.choose(noise, scores, scale)]), law), law
