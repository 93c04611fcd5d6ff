"""Quantiles and modes: report noisy max over public candidates.

*Quantile.* Candidates are public values of the expression's bounds: every integer where there are at most 4,096,
else 4,096 evenly spaced values. With q = a/d, the score of c is minus the distance from 0 to the interval
[d·#{v < c} − a·N, d·#{v ≤ c} − a·N]. One row moves each end by −a or by d − a, hence the score by at most
max(a, d − a), either way, so that noise of scale 2·max(a, d − a)·k/ε is ε-DP for k changed rows. A minimum or
maximum would pick the edge of the domain at any noise, so it aims, by a public shift, at the rank that noise can
resolve, and at the first or last row where that is finer.

*Mode.* The candidates are the public keys, the scores their counts. One more row raises one count and lowers none:
the scores are monotone and move by at most k, so that scale k/ε is ε-DP (Dwork & Roth 2014, 3.3; one-sided
exponential noise: McKenna & Sheldon 2020); where a row may be replaced they are not, and the scale is doubled.

*Weights.* Where rows have weights, both count by them, in whole units. The ends and the counts are linear in the rows,
so that rows of a weight of 1 in all move them by no more than one row would; k is then that weight.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.plan.bounds import bounds_of, is_integral
from jostle.plan.keys import key_values
from jostle.plan.plan import WEIGHT_BITS, RowExpr
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.mechanisms.released import Noised
from jostle.privacy.mechanisms.selection import Selection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.privacy.kernel.handles import Table

MOST = 4096


def candidates_of(table: Table, expr: RowExpr, function: str) -> Any:
    """The public candidates; refused where the expression has none."""
    if function == "mode":
        values = key_values(expr, table.domains, 2**20)
        if values is None:
            raise refuse(
                "OpenKeys", "the values that this mode is chosen from are not public",
                help="describe the column with its categories or bounds",
            )  # fmt: skip
        return values
    bounds = bounds_of(expr, table.domains)
    if bounds is None or not all(math.isfinite(b) for b in bounds):
        raise refuse(
            "UnboundedSum", f"this {function} has no known bounds to search between",
            help="describe the column with a range, or bound it: `clamp(E, low, high)`",
        )  # fmt: skip
    return bounds


def choose_quantile(
    table: Table, expr: RowExpr, q: float, how: Selection, noise: Noise, stability: int, tally: tuple[Any, Any]
) -> tuple[Noised, float]:
    """The chosen candidate and the scale of the noise in ranks, from all values and how many rows have each."""
    import numpy as np

    low, high = candidates_of(table, expr, "quantile")
    grid = _grid(low, high, is_integral(expr, table.domains))
    values, counts = tally
    running = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))])
    ordered = np.asarray(values, dtype=float)
    below = running[np.searchsorted(ordered, grid, side="left")]
    above = running[-1] - running[np.searchsorted(ordered, grid, side="right")]
    part = Fraction(q).limit_denominator(1000)
    a, d = part.numerator, part.denominator
    sensitivity = max(a, d - a)
    unit = 1 << (WEIGHT_BITS if table.weighted else 0)  # of a row in the counts
    scale = how.scale(sensitivity * stability * unit, monotone=False)
    least = (d - a) * below - a * (running[-1] - below)  # d times the ranks that c may take, less d·q·N
    most = least + d * (running[-1] - below - above)
    if a in (0, d):
        aim = max(unit, math.ceil(min(scale * math.log(len(grid)) / 2, 2.0**61)))
        shift = aim if a == 0 else -aim
        least, most = least - shift, most - shift
    scores = -np.maximum(0, np.maximum(least, -most))
    ranks = scale / (d * unit)
    return Noised(float(grid[how.choose(noise, scores, scale)]), "selection", ranks, len(grid)), ranks


def choose_mode(
    table: Table, expr: RowExpr, how: Selection, noise: Noise, stability: int, counts: Any
) -> tuple[Any, float]:
    """The chosen key and the scale of the noise in rows, from the count of each candidate."""
    import numpy as np

    values = candidates_of(table, expr, "mode")
    monotone = not any(e.source.unit.public_size for e in table.exposures)
    unit = 1 << (WEIGHT_BITS if table.weighted else 0)
    scale = how.scale(stability * unit, monotone)
    chosen = values[how.choose(noise, np.asarray(counts, dtype=np.int64), scale)]
    return (float(chosen) if isinstance(chosen, int) and not isinstance(chosen, bool) else chosen), scale / unit


def _grid(low: float, high: float, integral: bool) -> NDArray[np.float64]:
    import numpy as np

    if integral and high - low < MOST:
        return np.arange(math.floor(low), math.floor(high) + 1, dtype=float)
    grid = np.linspace(low, high, MOST)
    return np.floor(grid) if integral else grid
