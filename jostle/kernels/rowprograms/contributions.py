"""Contributions of a row: the row itself, gradients of logistic regressions, and which cells of tables it is in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.errors import KernelError
from jostle.kernels.rowprograms.scales import FAR, STEPS, affine, logistic, numbers, row
from jostle.privacy.rows.arrays import concatenate, lookup, one_hot, part, reshape
from jostle.privacy.rows.expressions import Columns, Expression, comparison, constant, rounded, shift
from jostle.privacy.rows.norms import GRID, GRID_BITS, Contributions, Weights
from jostle.privacy.rows.program import program

SLOPE_BITS = 30
NEAR = 4
"""Units that a coordinate may be off by and still be the one that a test asks for."""


def coordinates(d: int) -> Contributions:
    """The row itself."""
    units = row(d)
    return Contributions("coordinates", program([units], units), GRID_BITS)


def logistic_gradient(d: int, *, target: object, weights: object) -> Contributions:
    """The gradient of ln(1 + exp(−y·w·x)) in w: −y·x/(1 + exp(y·w·x)), y the sign of coordinate `target`.

    `weights` (d,): that of `target` belongs to a constant 1, which stands in the target's place. Shape (d, n).
    """
    w, place = numbers(weights, (d,), "weights"), place_of(target, d)
    units = row(d)
    sign = comparison(constant(-1), "<", part(units, [place])) * 2 - 1
    others = np.where(np.arange(d) == place, 0.0, w)
    margin, bits = affine(others[None, :] / GRID, w[[place]], units, 50)
    slope = falling_slope(margin * sign, bits) * sign
    before, behind = ([part(units, places)] if places else [] for places in (range(place), range(place + 1, d)))
    x = concatenate([*before, constant([GRID]), *behind])
    return Contributions("logistic_gradient", program([units], x * slope), SLOPE_BITS + GRID_BITS)


def logistic_curvature(d: int, *, target: object, weights: object) -> Weights:
    """How much a row says of a logistic regression: 4p(1 − p) for the probability p that `weights` give its class.

    `weights` as in `logistic_gradient`. A quarter of the second moments under these is the second derivative.
    """
    w, place = numbers(weights, (d,), "weights"), place_of(target, d)
    units = row(d)
    others = np.where(np.arange(d) == place, 0.0, w)
    margin, bits = affine(others[None, :] / GRID, w[[place]], units, 50)
    places = rounded(margin, bits - STEPS.bit_length() + 1, -FAR * STEPS, FAR * STEPS)
    share = logistic(SLOPE_BITS) / 2.0**SLOPE_BITS
    table = np.floor(4.0 * share * (1.0 - share) * GRID)
    return Weights("logistic_curvature", program([units], lookup(table, places + FAR * STEPS)))


def falling_slope(margin: Expression, bits: int) -> Expression:
    """−1/(1 + exp(margin)) in units of 2^-SLOPE_BITS, of a margin in units of 2^-bits."""
    places = rounded(margin, bits - STEPS.bit_length() + 1, -FAR * STEPS, FAR * STEPS)
    return lookup(-logistic(SLOPE_BITS), places + FAR * STEPS)


def pair_products(d: int) -> Contributions:
    """1, the row, and the products x_i x_j for i < j in order: the statistics of an Ising model. Each within ±1."""
    units = row(d)
    first, second = np.triu_indices(d, 1)
    parts: list[Expression] = [constant([GRID * GRID]), shift(units, -GRID_BITS)]
    if d > 1:
        parts.append(part(units, first.tolist()) * part(units, second.tolist()))
    return Contributions("pair_products", program([units], concatenate(parts)), 2 * GRID_BITS)


def products(d: int) -> Contributions:
    """1, the row, and the products x_i x_j for i ≤ j in order: what least squares needs. Each within ±1."""
    units = row(d)
    first, second = np.triu_indices(d)
    parts = [
        constant([GRID * GRID]),
        shift(units, -GRID_BITS),
        part(units, first.tolist()) * part(units, second.tolist()),
    ]
    return Contributions("products", program([units], concatenate(parts)), 2 * GRID_BITS)


def told_apart(d: int, *, columns: object, at: object, same: object, expected: object = 0.0) -> Contributions:
    """How far the last coordinate is from what is `expected`, halved, where a test holds, and 0 elsewhere.

    Test i is that coordinate `columns[i]` is `at[i]` or more, or with `same[i]` is it, to a few units of the grid.
    Shape (tests, n), each within ±1.
    """
    middle = float(np.clip(np.rint(float(numbers(expected, (), "expected")) * GRID), -GRID, GRID))
    units = row(d)
    off = part(units, [d - 1]) - constant([middle])
    return Contributions("told_apart", program([units], holding(units, d, columns, at, same) * off), GRID_BITS + 1)


def holding(units: Columns, d: int, columns: object, at: object, same: object) -> Expression:
    """1 where a test of the coordinates before the last holds, else 0, (tests,): as `told_apart` has them."""
    places = columns_of(columns, d)
    edges = np.rint(numbers(at, places.shape, "at") * GRID)
    alike = numbers(same, places.shape, "same") != 0
    here = part(units, places.tolist())
    one = constant(np.ones(len(edges)))
    reached = one - comparison(here, "<", constant(edges - NEAR * alike))
    beyond = (one - comparison(here, "<", constant(edges + NEAR + 1))) * constant(1.0 * alike)
    return reached - beyond


def columns_of(columns: object, d: int) -> NDArray[np.int64]:
    """A parameter as numbers of coordinates before the last."""
    places = numbers(columns, (None,), "columns")
    if (places != np.trunc(places)).any() or places.min() < 0 or places.max() >= d - 1:
        raise KernelError(f"`columns` are numbers of columns, 0 to {d - 2}")
    return places.astype(int)


def indicators(d: int, *, values: object, pairs: object = True) -> Contributions:
    """1, then [x_i = a] for each column and value, then, if `pairs`, [x_i = a, x_j = b] for i < j: which cell of each
    table of one and two columns the row is in. Coordinate i stands for one of `values[i]` values, evenly spread.

    As many of them are 1 as there are tables, and one more; the others are 0.
    """
    sizes = numbers(values, (d,), "values")
    if (sizes < 1).any() or (sizes != np.trunc(sizes)).any() or sizes.max() > 2**20 or not isinstance(pairs, bool):
        raise KernelError("`values` say how many values each column has")
    units = row(d)
    cells = []
    for i, size in enumerate(sizes.astype(int).tolist()):
        above = (part(units, [i]) + GRID) * (size - 1) + GRID  # to the nearest of `size` numbers from −GRID to GRID
        cells.append(one_hot(reshape(shift(above, GRID_BITS + 1), ()), size))
    tables: list[Expression] = [constant([1]), *cells]
    if pairs:
        for i, one in enumerate(cells):
            for other in cells[i + 1 :]:
                (m,), (n,) = one.shape, other.shape
                tables.append(reshape(reshape(one, (m, 1)) * reshape(other, (1, n)), (m * n,)))
    return Contributions("indicators", program([units], concatenate(tables)), 0)


def place_of(target: object, d: int) -> int:
    """A column by its number."""
    place = float(numbers(target, (), "target"))
    if not place.is_integer() or not 0 <= place < d:
        raise KernelError(f"`target` is the number of a column, 0 to {d - 1}")
    return int(place)
