"""The candidates of a quantile: public intervals that cover its bounds, and the number that stands for each.

An interval is better than a point. Data come in values that many rows share, and between two of them all points have
the same rank; the interval around such a value holds all its rows, wherever its ends are. The number that stands for
an interval is the one with the fewest decimal digits in it, as the values of data mostly are.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EVEN = 4096  # intervals of equal width
OCTAVES, STEPS = 40, 64  # on each side of 0, from the largest magnitude down: intervals of equal ratio


@lru_cache(64)
def intervals(low: float, high: float, integral: bool) -> tuple[Floats, Floats]:
    """Where each interval begins, up to where the next does, and the number that stands for it.

    `low` and `high` are finite, and belong to the first and the last of them. Every whole number has an interval of
    its own where there are at most `EVEN`, and else all have ends that are whole.
    """
    import numpy as np

    if integral and high - low < EVEN:
        starts = np.arange(math.floor(low), math.floor(high) + 1, dtype=float)
        return starts, starts
    part = np.arange(EVEN) / EVEN
    ratios = np.exp2(-np.arange(1, OCTAVES * STEPS) / STEPS)
    largest = max(abs(low), abs(high))
    starts = np.concatenate([low * (1 - part) + high * part, largest * ratios, -largest * ratios, [0.0]])
    starts = starts[(low <= starts) & (starts < high)]
    starts = np.unique(np.concatenate([[low], np.floor(starts) if integral else starts]))
    return starts, shortest(starts, np.append(starts[1:], np.nextafter(high, np.inf)))


def shortest(starts: Floats, ends: Floats) -> Floats:
    """In each interval the number with the fewest decimal digits, of several the one nearest to the middle.

    Intervals hold their start and not their end. Where doubles tell no shorter number, it is the start.
    """
    import numpy as np

    middles = starts / 2 + ends / 2
    numbers = np.where((starts <= 0) & (ends > 0), 0.0, starts)
    left = numbers != 0
    largest, narrowest = float(np.abs(ends).max()), float((ends - starts).min())
    for place in range(_place(largest), _place(narrowest) - 2, -1):
        step = 10.0 ** abs(place)
        for at, whole in ((middles, np.round), (starts, np.ceil)):
            number = whole(at / step) * step if place >= 0 else whole(at * step) / step
            fits = left & (starts <= number) & (number < ends)
            numbers[fits] = number[fits]
            left &= ~fits
    return numbers


def _place(value: float) -> int:
    """The place of its first digit, 0 for 1 … 9, within what powers of ten can be doubles."""
    return math.floor(math.log10(min(max(value, 1e-290), 1e300)))
