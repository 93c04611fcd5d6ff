"""The candidates of a quantile: public intervals that cover its bounds, and the number that stands for each.

An interval is better than a point. Data come in values that many rows share, and between two of them all points have
the same rank; the interval around such a value holds all its rows, wherever its ends are. The number that stands for
an interval is the one with the fewest decimal digits in it, as the values of data mostly are.

Ends are whole multiples of powers of two, so that a row's interval is a product that rounds nothing, taken down: one
key of whole numbers, by which an engine counts all intervals of all groups at once, and the same on every engine.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from jostle.plan.plan import Apply, Constant, Key, RowExpr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

EVEN = 4096  # intervals of equal width, or up to √2 times as many or as few
OCTAVES, STEPS = 40, 64  # halvings of the largest magnitude towards 0, and into how many each is cut there
_FINEST = -1021  # the exponent of the narrowest: a double holds its inverse


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """`starts`: where each begins, up to where the next does; `numbers`: what stands for each.

    They have the width 2^`exponent` where a value is at least `STEPS` times that, and towards 0 half of it again and
    again, `halvings` times. Codes number them from `first`; without an exponent each whole number is one.
    """

    starts: Floats
    numbers: Floats
    first: int
    exponent: int | None = None
    halvings: int = 0

    def key(self, expr: RowExpr) -> Key:
        """The intervals as a group key of rows; what is none is in no group."""
        return Key(self._code(expr), range(self.first, self.first + len(self.starts)))

    def _code(self, expr: RowExpr) -> RowExpr:
        if self.exponent is None:
            return expr
        least, most = Constant(-self._reach(0)), Constant(self._reach(0))
        inner = self._inner(expr, 1, self.halvings) if self.halvings else self._scaled(expr, 0)
        if not self.halvings:
            return inner
        outer = Apply("if", (Apply("<", (expr, least)), self._level(expr, 0, negative=True), inner))
        return Apply("if", (Apply(">=", (expr, most)), self._scaled(expr, 0), outer))

    def _inner(self, expr: RowExpr, first: int, last: int) -> RowExpr:
        """The code of a value that was halved for from `first` to `last` times."""
        if first == last:
            negative = self._level(expr, first, negative=True)
            return Apply("if", (Apply("<", (expr, Constant(0.0))), negative, self._level(expr, first, negative=False)))
        middle = (first + last) // 2
        wide = Apply(">=", (Apply("abs", (expr,)), Constant(self._reach(middle))))
        return Apply("if", (wide, self._inner(expr, first, middle), self._inner(expr, middle + 1, last)))

    def _level(self, expr: RowExpr, halved: int, *, negative: bool) -> RowExpr:
        place = Apply("floor", (self._scaled(expr, halved),))
        return Apply("+", (place, Constant(float(_shift(halved, self.halvings, negative)))))

    def _scaled(self, expr: RowExpr, halved: int) -> RowExpr:
        return Apply("*", (expr, Constant(math.ldexp(1.0, halved - (self.exponent or 0)))))

    def _reach(self, halved: int) -> float:
        """The smallest magnitude that is halved for so many times."""
        return math.ldexp(STEPS, (self.exponent or 0) - halved)


def _shift(halved: int, halvings: int, negative: bool) -> int:
    """What is added to the place of a value on the grid that was halved so many times: codes go on from grid to grid,
    as each has `STEPS` places to the next, on either side of 0."""
    return STEPS * (halved - 2 * halvings if negative else -halved)


@lru_cache(64)
def intervals(low: float, high: float, integral: bool) -> Intervals:
    """The intervals between two finite ends, which belong to the first and the last of them.

    Every whole number has an interval of its own where there are at most `EVEN`, and else all have ends that are whole.
    """
    import numpy as np

    if integral and high - low < EVEN:
        starts = np.arange(math.floor(low), math.floor(high) + 1, dtype=float)
        return Intervals(starts, starts, int(starts[0]))
    largest, nearest = max(abs(low), abs(high)), max(low, -high, 0.0)
    width, power = math.frexp(high / EVEN - low / EVEN)
    nearest_power = power - (width < math.sqrt(0.5)) if width else _FINEST
    exponent = max(nearest_power, math.frexp(largest)[1] - 53, _FINEST)  # doubles are no closer
    least = max(math.frexp(largest)[1] - OCTAVES - STEPS.bit_length(), 0 if integral else _FINEST)
    if nearest:
        least = max(least, math.frexp(nearest)[1] - STEPS.bit_length())
    halvings = max(0, exponent - least)
    first, last = (_code_of(end, exponent, halvings) for end in (low, high))
    starts = _starts(np.arange(first, last + 1), exponent, halvings)
    starts[0] = low
    numbers = shortest(starts, np.append(starts[1:], np.nextafter(high, np.inf)))
    return Intervals(starts, numbers, first, exponent, halvings)


def _code_of(value: float, exponent: int, halvings: int) -> int:
    """The code of a number, as `Intervals.key` has it of a row."""
    halved = 0
    while halved < halvings and abs(value) < math.ldexp(STEPS, exponent - halved):
        halved += 1
    place = math.floor(math.ldexp(value, halved - exponent))
    return place if not halvings else place + _shift(halved, halvings, value < 0)


def _starts(codes: Ints, exponent: int, halvings: int) -> Floats:
    """Where the intervals of codes begin."""
    import numpy as np

    centred = codes + STEPS * halvings  # of the finest grid, and beyond its ends on coarser ones
    coarser = (np.maximum(centred, ~centred) // STEPS - 1).clip(0, halvings)
    places = centred - np.sign(centred) * STEPS * coarser
    starts: Floats = np.ldexp(places.astype(float), exponent - halvings + coarser)
    return starts


def shortest(starts: Floats, ends: Floats) -> Floats:
    """In each interval the number with the fewest decimal digits, of several the one that ends in 5, or else the one
    nearest to the middle.

    Intervals hold their start and not their end. Where doubles tell no shorter number, it is the start.
    """
    import numpy as np

    middles = starts / 2 + ends / 2
    numbers = np.where((starts <= 0) & (ends > 0), 0.0, starts)
    left = numbers != 0
    largest, narrowest = float(np.abs(ends).max()), float((ends - starts).min())
    for place in range(_place(largest), _place(narrowest) - 2, -1):
        step = 10.0 ** abs(place)
        for digit, (at, whole) in itertools.product((5, 1), ((middles, np.round), (starts, np.ceil))):
            number = whole((at / step if place >= 0 else at * step) / digit) * digit
            number = number * step if place >= 0 else number / step
            fits = left & (starts <= number) & (number < ends)
            numbers[fits] = number[fits]
            left &= ~fits
    return numbers


def _place(value: float) -> int:
    """The place of its first digit, 0 for 1 … 9, within what powers of ten can be doubles."""
    return math.floor(math.log10(min(max(value, 1e-290), 1e300)))
