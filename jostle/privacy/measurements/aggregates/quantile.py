"""A quantile of an expression: report noisy max over public candidates.

*Measures* A public candidate c, by minus the distance of 0 from [d·#{< c} − a·N, d·#{≤ c} − a·N], q = a/d.
*Sensitivity* max(a, d − a), either way.
*Mechanism* Noisy max at 2·max(a, d − a)·k/ε.
*Why* A row moves each end by −a or by d − a, and a distance is 1-Lipschitz in the ends.

Candidates are public values of the expression's bounds: every integer where there are at most 4,096, else 4,096 evenly
spaced values. A minimum or maximum would pick the edge of the domain at any noise, so it aims, by a public shift, at
the rank that noise can resolve, and at the first or last row where that is finer. Where rows have weights, the ends
count by them, in whole units. The ends are linear in the rows, so that rows of a weight of 1 in all move them by no
more than one row would; k is then that weight.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.language.aggregates import AGGREGATES
from jostle.noise_laws import Selected
from jostle.plan.bounds import bounds_of, is_integral
from jostle.plan.plan import WEIGHT_BITS, Plan
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import weighted_stability_of
from jostle.privacy.measurements.aggregates.aggregate import Floats, SelectionAggregate
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.released import Noised
from jostle.privacy.mechanisms.selection import Selection

if TYPE_CHECKING:
    from jostle.privacy.kernel.reader import Reader

MOST = 4096  # candidates


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
                help="describe the column with a range, or bound it: `clamp(E, low, high)`",
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

        grid = _grid(*self.candidates(table), is_integral(self.expr, table.domains))
        values, counts = exact
        running = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))])
        ordered = np.asarray(values, dtype=float)
        below = running[np.searchsorted(ordered, grid, side="left")]
        above = running[-1] - running[np.searchsorted(ordered, grid, side="right")]
        part = Fraction(self.rank()).limit_denominator(1000)
        a, d = part.numerator, part.denominator
        unit = 1 << (WEIGHT_BITS if table.weighted else 0)  # of a row in the counts
        scale = mechanism.scale(max(a, d - a) * weighted_stability_of(table) * unit, monotone=False)
        least = (d - a) * below - a * (running[-1] - below)  # d times the ranks that c may take, less d·q·N
        most = least + d * (running[-1] - below - above)
        if a in (0, d):
            aim = max(unit, math.ceil(min(scale * math.log(len(grid)) / 2, 2.0**61)))
            shift = aim if a == 0 else -aim
            least, most = least - shift, most - shift
        scores = -np.maximum(0, np.maximum(least, -most))
        law = Selected(scale / (d * unit), len(grid))  # in ranks
        return Noised(float(grid[mechanism.choose(noise, scores, scale)]), law), law


def _grid(low: float, high: float, integral: bool) -> Floats:
    import numpy as np

    if integral and high - low < MOST:
        return np.arange(math.floor(low), math.floor(high) + 1, dtype=float)
    grid = np.linspace(low, high, MOST)
    return np.floor(grid) if integral else grid
