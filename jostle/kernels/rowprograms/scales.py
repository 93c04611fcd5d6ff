"""Fixed-point numbers for row programs: public parameters as whole numbers of a power of two, as fine as is exact."""

from __future__ import annotations

import math

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats
from jostle.privacy.rows.expressions import EXACT, Expression, clamp, columns, constant, matrix_product, shift
from jostle.privacy.rows.norms import GRID

STEPS = 2**10
"""Of the tables of exp and of the logistic function, to one unit of their argument."""

FAR = 18
"""exp(−FAR) is below what weights and slopes are rounded to."""


def row(d: int) -> Expression:
    """A row of d columns in units of the ball."""
    return columns((d,), -GRID, GRID)


LARGEST = 2.0**40
"""Of a parameter's numbers."""


def numbers(values: object, shape: tuple[int | None, ...], name: str, least: float = -math.inf) -> Floats:
    """A parameter as numbers within ±LARGEST of exactly this shape, where None is any length from 1 on.

    Numbers below `least` become it.
    """
    array = np.maximum(np.array(values, dtype=np.float64), least)  # keeps what is no number
    fits = len(array.shape) == len(shape) and array.size > 0
    if not fits or any(size not in (None, side) for size, side in zip(shape, array.shape, strict=True)):
        raise KernelError(f"`{name}` has {' × '.join('any' if s is None else str(s) for s in shape) or 'one'} numbers")
    if not (np.abs(array) <= LARGEST).all():
        raise KernelError(f"`{name}` is made of numbers of at most {LARGEST:g}")
    return array


def bits_for(reach: float, most: int, finest: int = 60) -> int:
    """The largest b up to `finest` with reach · 2^b ≤ 2^most; negative where the reach is large."""
    if not math.isfinite(reach):
        raise KernelError("parameters are too large")
    return min(finest, most - math.frexp(reach)[1]) if reach > 0 else finest


def affine(
    matrix: Floats, offsets: Floats, argument: Expression, most: int, finest: int = 60
) -> tuple[Expression, int]:  # fmt: skip
    """matrix · argument + offsets in units of 2^-b, exactly for the matrix rounded to them, and b, at most `finest`.

    No result and no partial sum exceeds 2^most by more than rounding, where most ≤ 51.
    """
    reach = max(abs(argument.low), abs(argument.high), 1)  # of what is 0 everywhere too a matrix has its bits
    with np.errstate(over="ignore"):
        bound = np.abs(matrix).sum(axis=1) * reach + np.abs(offsets)
    bits = bits_for(float(bound.max(initial=0.0)) * (1 + 2.0**-20), most, finest)
    product = matrix_product(np.rint(np.ldexp(matrix, bits)), argument)
    return product + constant(np.rint(np.ldexp(offsets, bits))), bits


def exponentials(bits: int) -> Floats:
    """exp(−i/STEPS) in units of 2^-bits for i = 0 … FAR · STEPS, the last 0."""
    table = np.rint(np.ldexp(np.exp(-np.arange(FAR * STEPS + 1) / STEPS), bits))
    table[-1] = 0.0
    return table


def logistic(bits: int) -> Floats:
    """1/(1 + exp(i/STEPS)) in units of 2^-bits for i = −FAR · STEPS … FAR · STEPS."""
    argument = np.arange(-FAR * STEPS, FAR * STEPS + 1) / STEPS
    return np.asarray(np.rint(np.ldexp(1 / (1 + np.exp(argument)), bits)))


def rounded(argument: Expression, places: int, low: int, high: int) -> Expression:
    """The argument divided by 2^places, to the nearest and within [low, high]; of negative places multiplied."""
    if places <= 0:
        edge = max(abs(low), abs(high)) >> -places
        return clamp(shift(clamp(argument, -edge - 1, edge + 1), places), low, high)
    if places > 60:
        return clamp(constant(np.zeros(argument.shape)), low, high)
    half = 1 << (places - 1)
    if max(abs(argument.low), abs(argument.high)) + half >= EXACT:
        edge = min((max(abs(low), abs(high)) + 1) << places, EXACT // 2)
        argument = clamp(argument, -edge, edge)
    return clamp(shift(argument + half, places), low, high)
