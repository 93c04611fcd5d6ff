"""Weights of mixtures, clusters and shells: how much of a row each of several sums of moments takes.

Shares of a row: numbers that are not negative and add up to 1, in the cell of a table that the row is in.

A row is two coordinates: its cell, of `cells` evenly spread from −1 to 1, and a number x of [0, 1] as 2x − 1. It gives
(x², 2x(1 − x), (1 − x)²), of which the number of rows, Σx and Σx² are combinations, or (x, 1 − x). So one row more or
less moves all sums together by 1 in ℓ₁, as one count would.
"""

from __future__ import annotations

import math

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats
from jostle.kernels.rowprograms.scales import FAR, LARGEST, STEPS, affine, bits_for, exponentials, numbers, rounded, row
from jostle.privacy.rows import expressions as xp
from jostle.privacy.rows.norms import GRID, GRID_BITS, Contributions, Weights
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
    shares, bits = shares_of(xp.part(units, [1]) + GRID, GRID_BITS + 1, squares)
    own = xp.reshape(xp.one_hot(cell_of(xp.part(units, [0]), many), many), (many, 1))
    (m,) = shares.shape
    return Contributions(
        "cell_shares", program([units], xp.reshape(own * xp.reshape(shares, (1, m)), (many * m,))), bits
    )


def score_shares(d: int, *, shift: object, slope: object) -> Contributions:
    """The three shares of u = shift + slope · x, with the numbers of the row's cell, kept within [0, 1].

    `shift` and `slope` (cells,) within ±1,000: so a row with a large weight has no larger part than another.
    """
    units = _two(d)
    starts = numbers(shift, (None,), "shift")
    slopes = numbers(slope, starts.shape, "slope")
    if max(np.abs(starts).max(), np.abs(slopes).max()) > 1000:
        raise KernelError("`shift` and `slope` are numbers within ±1000")
    cell = cell_of(xp.part(units, [0]), _cells(len(starts)))
    rising = xp.lookup(np.rint(np.ldexp(slopes, SLOPE_BITS)), cell) * xp.reshape(xp.part(units, [1]) + GRID, ())
    start = xp.lookup(np.rint(np.ldexp(starts, SCORE_BITS)), cell)
    score = xp.clamp(start + _shifted(rising, SLOPE_BITS + GRID_BITS + 1 - SCORE_BITS), 0, 2**SCORE_BITS)
    shares, bits = shares_of(xp.reshape(score, (1,)), SCORE_BITS, True)
    return Contributions("score_shares", program([units], shares), bits)


def _shifted(argument: xp.Expression, places: int) -> xp.Expression:
    """Divided by 2^places, to the nearest."""
    return xp.shift(argument + 2 ** (places - 1), places)


def _two(d: int) -> xp.Expression:
    if d != 2:
        raise KernelError("a row is two coordinates: its cell, and a number")
    return row(2)


def _cells(cells: object) -> int:
    many = float(numbers(cells, (), "cells"))
    if not many.is_integer() or not 1 <= many <= MOST_CELLS:
        raise KernelError(f"`cells` is a whole number, 1 to {MOST_CELLS}")
    return int(many)


def cell_of(place: xp.Expression, many: int) -> xp.Expression:
    """The nearest to `place`, (1,), of so many places, evenly spread from −GRID to GRID."""
    above = (place + GRID) * (many - 1) + GRID
    return xp.reshape(xp.shift(above, GRID_BITS + 1), ())


def shares_of(x: xp.Expression, bits: int, squares: object) -> tuple[xp.Expression, int]:
    """Of x (1,) in units of 2^-bits within [0, 1], and the bits of the shares."""
    if not isinstance(squares, bool):
        raise KernelError("`squares` is true or false")
    rest = xp.clamp(x * -1 + 2**bits, 0, 2**bits)
    return (
        (xp.concatenate([x * x, x * rest * 2, rest * rest]), 2 * bits) if squares else (xp.concatenate([x, rest]), bits)
    )


SQUARED = 49  # bits of a squared length
TABLE_BITS = 22  # of exp(·), and of a sum of few of them


def one(d: int) -> Weights:
    """Weight 1 for every row: plain moments of all rows."""
    return Weights("one", program([row(d)], xp.constant([GRID])))


def responsibilities(d: int, *, means: object, factors: object, offsets: object) -> Weights:
    """The E-step of a mixture of Gaussians: P(component k | row).

    `means` (K, d) in units of the ball; `factors` (K, d, d) with Σ_k^-1 = F_k F_kᵀ; `offsets` (K,) ln π_k + ln|F_k|.
    """
    units = row(d)
    weights, _, _, _ = _e_step(d, units, means, factors, offsets)
    return Weights("responsibilities", program([units], weights))


def framed(d: int, *, means: object, factors: object, offsets: object, radius: object) -> Weights:
    """The same, and each component's own view of the row: F_kᵀ(x − μ_k) / radius, which is whitened and centred.

    Rows of a component then have a length of about √d / radius, however small its covariance is.
    """
    units = row(d)
    weights, frames, squared, bits = _e_step(d, units, means, factors, offsets)
    return Weights("framed", program([units], weights, frames, squared), _radius(radius, bits))


def log_density(d: int, *, means: object, factors: object, offsets: object, low: object, high: object) -> Contributions:
    """ln(π_k N(row; k)) of a row's likeliest component, brought between `low` and `high`, less `low`, in nats.

    It is below the mixture's log density by at most ln K. Densities are in units of the ball.
    """
    units = row(d)
    logs, _, _, bits, top = _component_logs(d, units, means, factors, offsets)
    ends = [float(numbers(end, (), "low and high")) - top + d / 2 * math.log(2 * math.pi) for end in (low, high)]
    if bits < 0 or not ends[0] < ends[1]:
        raise KernelError("`low` is below `high`, and no component is too narrow for the grid")
    first, last = (math.floor(math.ldexp(end, 2 * bits + 1)) for end in ends)
    if max(abs(first), abs(last)) >= 2**52:
        raise KernelError("`low` and `high` are too far away")
    best = xp.clamp(xp.largest(logs), first, last) - first
    return Contributions("log_density", program([units], xp.reshape(best, (1,))), 2 * bits + 1)


def nearest(d: int, *, centres: object) -> Weights:
    """k-means: 1 for the nearest of `centres` (K, d), in units of the ball; the first of equals."""
    units = row(d)
    return Weights("nearest", program([units], _nearest(units, numbers(centres, (None, d), "centres"))))


def nearest_from(d: int, *, centres: object, radius: object) -> Weights:
    """The same, and how the row lies from each centre, in units of `radius`."""
    units, places = row(d), numbers(centres, (None, d), "centres")
    far = math.sqrt(d) * (1 + float(np.abs(places).max()))
    bits = bits_for(far * GRID, SQUARED // 2, finest=20)
    shifted = xp.reshape(xp.shift(units, -bits) if bits >= 0 else rounded(units, -bits, -GRID, GRID), (1, d))
    frames = shifted - xp.constant(np.rint(np.ldexp(places * GRID, bits)))
    weights = _nearest(units, places)
    squared = xp.total(frames * frames, axis=1)
    return Weights("nearest_from", program([units], weights, frames, squared), _radius(radius, bits, GRID))


def within(d: int, *, radii: object) -> Weights:
    """Shares a row out by its length: 1 in the first of the shells |row| ≤ radii[0], ≤ radii[1], …, else nowhere."""
    edges = numbers(radii, (None,), "radii")
    units = row(d)
    squared = xp.total(units * units)
    limits = np.floor(np.minimum(edges * GRID, 2.0**25) ** 2) * (edges >= 0) - (edges < 0)
    inside = xp.comparison(xp.reshape(squared, (1,)), "<=", xp.constant(limits))
    shell = xp.first_largest(xp.concatenate([inside, xp.constant([1])]))
    return Weights("within", program([units], xp.one_hot(shell, len(edges)) * GRID))


def normalised(logs: xp.Expression, bits: int, weight_bits: int, unit: int) -> xp.Expression:
    """unit · exp(logs) / Σ exp(logs) over the first axis, rounded down; `logs` in units of 2^-bits.

    By a table of exp at steps of 1/STEPS, in units of 2^-weight_bits.
    """
    behind = xp.reshape(xp.largest(logs), (1, *logs.shape[1:])) - logs
    places = rounded(behind, bits - STEPS.bit_length() + 1, 0, FAR * STEPS)
    weights = xp.lookup(exponentials(weight_bits), places)
    together = xp.total(weights)
    divisor = xp.reshape(xp.clamp(together, 1, together.high), (1, *logs.shape[1:]))
    return weights * unit // divisor


def _e_step(
    d: int, units: xp.Expression, means: object, factors: object, offsets: object
) -> tuple[xp.Expression, xp.Expression, xp.Expression, int]:
    """Weights (K,), whitened rows (K, d), their squared lengths (K,), and the bits of the whitened rows' units."""
    logs, frames, squared, bits, _ = _component_logs(d, units, means, factors, offsets)
    return normalised(logs, 2 * bits + 1, TABLE_BITS, GRID), frames, squared, bits


def _component_logs(
    d: int, units: xp.Expression, means: object, factors: object, offsets: object
) -> tuple[xp.Expression, xp.Expression, xp.Expression, int, float]:
    """ln of each component's share, (K,) in units of 2^-(2 bits + 1), less the largest offset and −d/2 ln 2π; whitened
    rows (K, d) and their squared lengths (K,), the bits of their units, and the largest offset."""
    offset = numbers(offsets, (None,), "offsets", least=-LARGEST)  # minus infinity is the logarithm of nothing
    count = len(offset)
    mean, factor = numbers(means, (count, d), "means"), numbers(factors, (count, d, d), "factors")
    matrix = factor.transpose(0, 2, 1).reshape(count * d, d) / GRID
    shifts = -np.einsum("kj,kjl->kl", mean, factor).reshape(-1)
    whitened, fine = affine(matrix, shifts, units, 51)
    reach = math.ldexp(max(abs(whitened.low), abs(whitened.high)), -fine)
    bits = bits_for(reach * math.sqrt(d) * (1 + 2.0**-10), SQUARED // 2, finest=20)
    # a component further behind than any row's distance has no weight at all
    behind = np.maximum(offset - offset.max(), -(reach * reach * d / 2 + FAR + 1))
    edge = math.isqrt(2**SQUARED // d)
    frames = xp.reshape(rounded(whitened, fine - bits, -edge, edge), (count, d))
    squared = xp.total(frames * frames, axis=1)
    logs = xp.constant(np.rint(np.ldexp(behind, 2 * bits + 1))) - squared
    return logs, frames, squared, bits, float(offset.max())


def _nearest(units: xp.Expression, places: Floats) -> xp.Expression:
    scores, _ = affine(places / GRID, -0.5 * np.einsum("kd,kd->k", places, places), units, 51)
    return xp.one_hot(xp.first_largest(scores), len(places)) * GRID


def _radius(radius: object, bits: int, unit: int = 1) -> int:
    """A radius in units of 2^-bits / unit."""
    number = float(numbers(radius, (), "radius"))
    if not number >= 1 / LARGEST:
        raise KernelError("a radius is a positive number")
    return max(1, round(min(2.0 ** (SQUARED // 2), math.ldexp(number * unit, bits))))
