"""Shares of a row: numbers that are not negative and add up to 1, in the cell of a table that the row is in.

A row is two coordinates: its cell, of `cells` evenly spread from −1 to 1, and a number x of [0, 1] as 2x − 1. It gives
(x², 2x(1 − x), (1 − x)²), of which the number of rows, Σx and Σx² are combinations, or (x, 1 − x). So one row more or
less moves all sums together by 1 in ℓ₁, as one count would.
"""

from __future__ import annotations

import numpy as np

from jostle.kernels.errors import KernelError
from jostle.kernels.rowprograms.scales import numbers, row
from jostle.privacy.rows.arrays import concatenate, lookup, one_hot, part, reshape
from jostle.privacy.rows.expressions import Columns, Expression, clamp
from jostle.privacy.rows.expressions import shift as shift_places
from jostle.privacy.rows.functions import Contributions
from jostle.privacy.rows.norms import GRID, GRID_BITS
from jostle.privacy.rows.program import program

MOST_CELLS = 2**12
SCORE_BITS = 22
SLOPE_BITS = 20


def cell_shares(d: int, *, cells: object, squares: object = True) -> Contributions:
    """The shares of x (of three numbers, or with `squares = false` of two) in the row's own cell, 0 in all others.

    Shape (cells · 3 or 2, n), the shares of a cell side by side.
    """
    units = _two(d)
    many = _cells(cells)
    shares, bits = shares_of(part(units, [1]) + GRID, GRID_BITS + 1, squares)
    own = reshape(one_hot(cell_of(part(units, [0]), many), many), (many, 1))
    (m,) = shares.shape
    return Contributions("cell_shares", program([units], reshape(own * reshape(shares, (1, m)), (many * m,))), bits)


def score_shares(d: int, *, shift: object, slope: object) -> Contributions:
    """The three shares of u = shift + slope · x, with the numbers of the row's cell, kept within [0, 1].

    `shift` and `slope` (cells,) within ±1,000: so a row with a large weight has no larger part than another.
    """
    units = _two(d)
    starts = numbers(shift, (None,), "shift")
    slopes = numbers(slope, starts.shape, "slope")
    if max(np.abs(starts).max(), np.abs(slopes).max()) > 1000:
        raise KernelError("`shift` and `slope` are numbers within ±1000")
    cell = cell_of(part(units, [0]), _cells(len(starts)))
    rising = lookup(np.rint(np.ldexp(slopes, SLOPE_BITS)), cell) * reshape(part(units, [1]) + GRID, ())
    start = lookup(np.rint(np.ldexp(starts, SCORE_BITS)), cell)
    score = clamp(start + _shifted(rising, SLOPE_BITS + GRID_BITS + 1 - SCORE_BITS), 0, 2**SCORE_BITS)
    shares, bits = shares_of(reshape(score, (1,)), SCORE_BITS, True)
    return Contributions("score_shares", program([units], shares), bits)


def _shifted(argument: Expression, places: int) -> Expression:
    """Divided by 2^places, to the nearest."""
    return shift_places(argument + 2 ** (places - 1), places)


def _two(d: int) -> Columns:
    if d != 2:
        raise KernelError("a row is two coordinates: its cell, and a number")
    return row(2)


def _cells(cells: object) -> int:
    many = float(numbers(cells, (), "cells"))
    if not many.is_integer() or not 1 <= many <= MOST_CELLS:
        raise KernelError(f"`cells` is a whole number, 1 to {MOST_CELLS}")
    return int(many)


def cell_of(place: Expression, many: int) -> Expression:
    """The nearest to `place`, (1,), of so many places, evenly spread from −GRID to GRID."""
    above = (place + GRID) * (many - 1) + GRID
    return reshape(shift_places(above, GRID_BITS + 1), ())


def shares_of(x: Expression, bits: int, squares: object) -> tuple[Expression, int]:
    """Of x (1,) in units of 2^-bits within [0, 1], and the bits of the shares."""
    if not isinstance(squares, bool):
        raise KernelError("`squares` is true or false")
    rest = clamp(x * -1 + 2**bits, 0, 2**bits)
    return (concatenate([x * x, x * rest * 2, rest * rest]), 2 * bits) if squares else (concatenate([x, rest]), bits)
