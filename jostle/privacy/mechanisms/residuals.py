"""How much of a cube its lowest frequencies leave out: what EFPA chooses their number by.

*Argument.* Let F be the orthonormal cosine transform, P_k keep the frequencies below k along every axis and drop the
others, and C be a diagonal of public weights in [0, 1]. r_k(y) = ‖C(I − P_k)Fy‖₂ is a norm of a linear map of y, so
one row, which moves y by a unit vector e_b, moves r_k by at most ‖C(I − P_k)Fe_b‖₂, either way. An entry of F has
F_fb² ≤ m_f, the product over axes of 1/side for frequency 0 and 2/side for others, so this is at most
(Σ c_f² m_f)^½ over the f that even the smallest k leaves out, and at most 1. EFPA's own score is of this kind (all
c_f = 1, all bounds 1); its noise is what was not private (docs/stdlib.md).

*Doubles.* The transform is computed in floating point. Counts are clamped so that ‖y‖₂ ≤ 2^31. The relative errors of a
fast transform of up to 2^24 cells, of pairwise sums of the squares, of adding up to 64 such sums and of the root are
together less than 2^8 · 2^-53, so that r_k is off by less than 2^-14, which is 2^(BITS − 14) steps of the grid, at each
of two neighbours, and rounding adds one step: `reach` adds `SLACK`, more than that, to the bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from jostle.integers import fixed_width

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BITS = 20
SLACK = 256
MOST_KEPT = 64


def reach(shape: tuple[int, ...], least: int, weights: Floats) -> int:
    """By how many steps of 2^-BITS one row can move a residual, where `least` is the smallest number kept."""
    c = _diagonal(shape, weights)
    c[(slice(0, least),) * len(shape)] = 0.0
    m = np.ones((1,) * len(shape))
    for axis, side in enumerate(shape):
        along = np.where(np.arange(side) > 0, 2.0, 1.0) / side
        m = m * along.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    bound = min(1.0, math.sqrt(float(np.sum(c**2 * m))) * (1 + 2**-30))
    return math.ceil(math.ldexp(bound, BITS)) + SLACK


def residuals(y: Ints, sizes: Ints, weights: Floats) -> Ints:
    """r_k in units of 2^-BITS for each k of `sizes`, which rises; `y` may have any number of axes.

    `weights` are those of the lowest frequencies, a cube with the axes of `y` and no larger, clipped to [0, 1];
    the least of them stands for all others.
    """
    from scipy.fft import dctn

    clamped = np.minimum(y, int(2.0**31 / math.sqrt(y.size)))
    energy = (np.asarray(dctn(clamped.astype(np.float64), norm="ortho")) * _diagonal(y.shape, weights)) ** 2
    level = np.zeros(y.shape, dtype=np.int64)
    for axis, side in enumerate(y.shape):
        at = np.searchsorted(sizes, np.arange(side), side="right")
        level = np.maximum(level, at.reshape([-1 if a == axis else 1 for a in range(y.ndim)]))
    # sums of a contiguous array are pairwise; `bincount` would add one after another
    by_level = [float(np.sum(energy[level == i])) for i in range(1, len(sizes) + 1)]
    left_out = np.cumsum(by_level[::-1])[::-1]
    return fixed_width(np.rint(np.sqrt(left_out) * 2.0**BITS))


def _diagonal(shape: tuple[int, ...], weights: Floats) -> Floats:
    clipped = np.nan_to_num(np.clip(weights, 0.0, 1.0))
    diagonal = np.full(shape, float(clipped.min()))
    diagonal[tuple(slice(0, side) for side in clipped.shape)] = clipped
    return diagonal
