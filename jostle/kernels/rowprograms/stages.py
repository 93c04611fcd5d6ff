"""What a stage of an additive regression leaves of a target: for tests that tell it apart, and by a column's cells.

A row is its columns and its target, each within ±1. A stage is public: `steps` (s, 4), of which each is a coordinate, a
place, whether to be there (1) or from there on (0), and what it adds where that holds; `lines` (l, 2), of which each is
a coordinate and what it is multiplied by, and added; and `scale`, the base, the least and the largest of the target,
and the reach. What it leaves is (target − base − Σ added)/reach, the target kept within its bounds, and the whole
within ±1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.kernels.errors import KernelError
from jostle.kernels.rowprograms.contributions import columns_of, holding
from jostle.kernels.rowprograms.scales import numbers, row
from jostle.kernels.rowprograms.shares import cell_of, shares_of
from jostle.privacy.rows.arrays import matrix_product, one_hot, part, reshape, total
from jostle.privacy.rows.expressions import Columns, Expression, clamp, comparison, constant, shift
from jostle.privacy.rows.functions import Contributions
from jostle.privacy.rows.norms import GRID, GRID_BITS
from jostle.privacy.rows.program import program

FINER_BITS = 6
"""What is left is added up in units so much finer than those of the grid."""
LINE_BITS = 14
SLOPE_BITS = 12
LEAST_REACH = 2.0**-9


def rest_apart(d: int, *, columns: Any, at: Any, same: Any, steps: Any, scale: Any, lines: Any = None) -> Contributions:
    """Half of what is left where a test holds, as of `told_apart`, and 0 elsewhere. Shape (tests, n), within ±1/2."""
    units = row(d)
    rest = _rest(units, d, steps, scale, lines)
    return Contributions("rest_apart", program([units], holding(units, d, columns, at, same) * rest), GRID_BITS + 1)


def rest_shares(
    d: int, *, column: Any, edges: Any, values: Any, steps: Any, scale: Any, lines: Any = None
) -> Contributions:
    """The three shares of what is left, in the cell of one column that the row is in: of `values` as many evenly spread
    places, or where these are 0 the number of `edges` that it reaches. Shape (cells · 3, n), adding up to 1."""
    units = row(d)
    rest = _rest(units, d, steps, scale, lines)
    place = int(columns_of([column], d)[0])
    many = int(numbers(values, (), "values"))
    if many > 0:
        cell = cell_of(part(units, [place]), many)
    else:
        ends = np.rint(numbers(edges, (None,), "edges") * GRID)
        reached = constant(np.ones(len(ends))) - comparison(part(units, [place] * len(ends)), "<", constant(ends))
        cell, many = total(reached), len(ends) + 1
    shares, bits = shares_of(rest + GRID, GRID_BITS + 1, True)
    own = reshape(one_hot(cell, many), (many, 1))
    return Contributions("rest_shares", program([units], reshape(own * reshape(shares, (1, 3)), (many * 3,))), bits)


def _rest(units: Columns, d: int, steps: Any, scale: Any, lines: Any) -> Expression:
    """What is left, (1,), in units of the grid within ±GRID."""
    fine = float(GRID * 2**FINER_BITS)
    reads, places, alike, adds = numbers(steps, (None, 4), "steps").T
    base, low, high, reach = numbers(scale, (4,), "scale").tolist()
    if low > high:
        raise KernelError("the least of `scale` is at most the largest")
    ends = np.clip(np.rint(np.array([low, high]) * GRID), -GRID, GRID)
    holds = holding(units, d, reads, places, alike)
    added = np.rint(np.clip(adds, -4.0, 4.0) * fine)
    start = float(np.rint(np.clip(base, -4.0, 4.0) * fine))
    slope = float(np.rint(2**SLOPE_BITS / max(reach, LEAST_REACH)))
    target = clamp(part(units, [d - 1]), int(ends[0]), int(ends[1])) * 2**FINER_BITS
    added_up = matrix_product(added[None, :], holds) + constant([start])
    if lines is not None:
        ways, rates = numbers(lines, (None, 2), "lines").T
        slopes = np.rint(np.clip(rates, -4.0, 4.0) * 2**LINE_BITS)
        along = matrix_product(slopes[None, :], part(units, columns_of(ways, d).tolist()))
        added_up = added_up + shift(along + 2 ** (LINE_BITS - FINER_BITS - 1), LINE_BITS - FINER_BITS)
    off = clamp(target - added_up, int(-8 * fine), int(8 * fine))
    places_off = FINER_BITS + SLOPE_BITS
    return clamp(shift(off * constant([slope]) + 2 ** (places_off - 1), places_off), -GRID, GRID)
