"""A quantile of an expression: report noisy max over public intervals.

*Measures* A public interval [a, b), by minus the distance of 0 from [d·#{< a} − c·N, d·#{< b} − c·N], q = c/d.
*Sensitivity* max(c, d − c), either way.
*Mechanism* Noisy max at 2·max(c, d − c)·k/ε.
*Why* A row moves each end by −c or by d − c, and a distance is 1-Lipschitz in the ends.

The intervals cover the public bounds of the expression (`intervals`): a whole number each where there are at most
4,096, else about 4,096 of equal width, cut finer towards 0. The answer is the public number that stands for the
interval. How many rows are in each, all that is read, tells how many lie below each end.
The last interval has no end: #{< b} is N there. A minimum or maximum would pick the edge of the domain at any noise,
so it aims, by a public shift, at the rank that noise can resolve, and at the first or last row where that is finer.
Where rows have weights, the ends count by them, in whole units. The ends are linear in the rows, so that rows of a
weight of 1 in all move them by no more than one row would; k is then that weight.

A quarter of the amount is spent on noisy counts around the answer (`bracketing`), which give its error in values, and
half of it `via interval`. `via selection` spends all on the answer, whose error is known in ranks; so do a minimum and
a maximum, of which counts tell nothing beyond the outermost rows, and quantiles of dates and times, beside which no
error is shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import Any

from jostle.accounting.amounts import Amount, as_float
from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.language.aggregates import AGGREGATES
from jostle.noise_laws import Bracketed, Selected
from jostle.plan.bounds import bounds_of, is_integral
from jostle.plan.plan import WEIGHT_BITS, Apply, Constant, Key, RowExpr
from jostle.privacy.kernel.handles import Table
from jostle.privacy.kernel.measurement import Measured, weighted_stability_of
from jostle.privacy.measurements.aggregates.aggregate import Chosen, Ints, SelectionAggregate
from jostle.privacy.measurements.aggregates.bracketing import Bracketing
from jostle.privacy.measurements.aggregates.intervals import Intervals, intervals
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.selection import Selection
from jostle.records import replace

PARTS = 4
"""One of so many parts of the amount of a quantile buys its error in values."""


class Quantile(SelectionAggregate):
    row = AGGREGATES["quantile"]

    def rank(self) -> float:
        """The q that is aimed at."""
        return self.numbers[0]

    def check(self, table: Table) -> None:
        super().check(table)
        if not 0 <= self.rank() <= 1:
            share = self.rank() / 100 if 1 < self.rank() <= 100 else 0.25
            raise refuse("ValueError", "a quantile lies between 0 and 1", help=f"write `quantile(x, {share:g})`")

    def candidates(self, table: Table) -> tuple[float, float]:
        bounds = bounds_of(self.expr, table.domains)
        if bounds is None or not all(math.isfinite(b) for b in bounds):
            raise refuse(
                "UnboundedSum", f"this {self.name} has no known bounds to search between",
                help="describe the column with a range, or bound it: `clamp(E, low, high)`; `bounds(E)` buys them",
            )  # fmt: skip
        return bounds

    def places(self, table: Table) -> Key:
        return self._intervals(table).key(self.expr)

    def mechanism(self, amount: Amount, via: str | None, table: Table) -> Selection | Bracketing:  # type: ignore[override]
        if via == Selected.name or (via is None and (self.rank() in (0, 1) or _is_moment(self.expr))):
            return super().mechanism(amount, None, table)
        parts = {None: PARTS, Bracketed.name: 2}.get(via)
        return super().mechanism(amount, via, table) if parts is None else Bracketing.of(amount, table, parts)

    def choose(self, mechanism: Selection, exact: Ints, noise: Noise, table: Table) -> tuple[float, Selected]:
        import numpy as np

        numbers, below = self._intervals(table).numbers, _rows_below(exact)
        part = Fraction(self.rank()).limit_denominator(1000)
        c, d = part.numerator, part.denominator
        unit = 1 << (WEIGHT_BITS if table.weighted else 0)  # of a row in the counts
        scale = mechanism.scale(max(c, d - c) * weighted_stability_of(table) * unit, monotone=False)
        least, most = d * below[:-1] - c * below[-1], d * below[1:] - c * below[-1]
        if c in (0, d):
            aim = max(unit, math.ceil(min(scale * math.log(len(numbers)) / 2, 2.0**61)))
            shift = aim if c == 0 else -aim
            least, most = least - shift, most - shift
        scores = -np.maximum(0, np.maximum(least, -most))
        law = Selected(scale / (d * unit), len(numbers))  # in ranks
        return float(numbers[mechanism.choose(noise, scores, scale)]), law

    def release(
        self, mechanism: Any, exact: Sequence[Ints], noise: Noise, table: Table, undivided: bool
    ) -> tuple[list[Chosen], list[Measured]]:
        if not isinstance(mechanism, Bracketing):
            return super().release(mechanism, exact, noise, table, undivided)
        answers, (event,) = super().release(mechanism.selection, exact, noise, table, undivided)
        events = [replace(event, uses={self.name: as_float(mechanism.amount.value)})]
        low, high = self.candidates(table)
        starts, whole = self._intervals(table).starts, is_integral(self.expr, table.domains)
        bracketed: list[Chosen] = []
        for (answer, _), numbers in zip(answers, exact, strict=True):
            place, below = int(starts.searchsorted(answer, side="right")) - 1, _rows_below(numbers)
            around = mechanism.around(place, below, starts, self.rank(), noise)
            places, clear = (tuple(array.tolist()) for array in around)
            law = Bracketed(low, high, places, clear, mechanism.counts.mechanism, whole)
            bracketed.append((answer, law))
        return bracketed, [*events, mechanism.measured]

    def _intervals(self, table: Table) -> Intervals:
        return intervals(*self.candidates(table), is_integral(self.expr, table.domains))


def _is_moment(expr: RowExpr) -> bool:
    """Whether an expression is the number of days or seconds that stands for a date or a time (`run.persons`)."""
    while isinstance(expr, Apply) and expr.op in ("floor", "/"):
        expr = expr.args[0]
    beginning = isinstance(expr, Apply) and isinstance(expr.args[0], Constant) and expr.args[0].value
    return isinstance(beginning, date) and expr.op.endswith("_between")  # type: ignore[union-attr]


def _rows_below(exact: Ints) -> Ints:
    """How many rows lie below each start, and last of all how many there are."""
    import numpy as np

    return np.concatenate([[0], fixed_width(exact).cumsum()])
