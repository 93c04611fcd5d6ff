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
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.plan.plan import Apply, Constant, Key, RowExpr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

EVEN = 4096  # intervals of equal width, or up to √2 times as many or as few
OCTAVES, STEPS = 40, 64  # halvings of the largest magnitude towards 0, and into how many each is cut there
_FINEST = -1021  # the exponent of the narrowest: a double holds its inverse


class Intervals(Struct, frozen=True, eq=False, dict=True):
    """The intervals between two ends, with codes from `first` to `last`.

    They have the width 2^`exponent` where a value is at least `STEPS` times that, and towards 0 half of it again and
    again, `halvings` times. Without an exponent each whole number is one.
    """

    low: float
    high: float
    first: int
    last: int
    exponent: int | None = None
    halvings: int = 0

    @cached_property
    def starts(self) -> Floats:
        """Where each begins, up to where the next does."""
        import numpy as np

        codes = np.arange(self.first, self.last + 1)
        if self.exponent is None:
            return codes.astype(float)
        starts = _starts(codes, self.exponent, self.halvings)
        starts[0] = self.low
        return starts

    @cached_property
    def numbers(self) -> Floats:
        """What stands for each."""
        import numpy as np

        if self.exponent is None:
            return self.starts
        return shortest(self.starts, np.append(self.starts[1:], np.nextafter(self.high, np.inf)))

    def key(self, expr: RowExpr) -> Key:
        """The intervals as a group key of rows; what is none is in no group."""
        return Key(self._code(expr), range(self.first, self.last + 1))

    def _code(self, expr: RowExpr) -> RowExpr:
        if self.exponent is None:
            return expr
        sides = [self._side(expr, 0, self.halvings, negative) for negative in (False, True)]
        if self.low >= 0 or not self.halvings:
            return sides[0]
        return Apply("if", (Apply(">=", (expr, Constant(0.0))), *sides))

    def _side(self, expr: RowExpr, first: int, last: int, negative: bool) -> RowExpr:
        """The code of a value on one side of 0, for which the width is halved from `first` to `last` times. Less often
        is asked first: most values are far from 0."""
        if first == last:
            scaled = Apply("*", (expr, Constant(math.ldexp(1.0, first - (self.exponent or 0)))))
            shift = _shift(first, self.halvings, negative)
            return Apply("+", (Apply("floor", (scaled,)), Constant(float(shift)))) if shift else scaled
        middle = 2 * first if 2 * first < last else (first + last) // 2
        least = math.ldexp(STEPS, (self.exponent or 0) - middle)
        wide = Apply("<=", (expr, Constant(-least))) if negative else Apply(">=", (expr, Constant(least)))
        few, many = self._side(expr, first, middle, negative), self._side(expr, middle + 1, last, negative)
        return Apply("if", (wide, few, many))


def _shift(halved: int, halvings: int, negative: bool) -> int:
    """What is added to the place of a value on the grid that was halved so many times: codes go on from grid to grid,
    as each has `STEPS` places to the next, on either side of 0."""
    return STEPS * (halved - 2 * halvings if negative else -halved)


@lru_cache(64)
def intervals(low: float, high: float, integral: bool) -> Intervals:
    """The intervals between two finite ends, which belong to the first and the last of them.

    Every whole number has an interval of its own where there are at most `EVEN`, and else all have ends that are whole.
    """
    if integral and high - low < EVEN:
        return Intervals(low, high, math.floor(low), math.floor(high))
    largest, nearest = max(abs(low), abs(high)), max(low, -high, 0.0)
    width, power = math.frexp(high / EVEN - low / EVEN)
    nearest_power = power - (width < math.sqrt(0.5)) if width else _FINEST
    exponent = max(nearest_power, math.frexp(largest)[1] - 53, _FINEST)  # doubles are no closer
    least = max(math.frexp(largest)[1] - OCTAVES - STEPS.bit_length(), 0 if integral else _FINEST)
    if nearest:
        least = max(least, math.frexp(nearest)[1] - STEPS.bit_length())
    halvings = max(0, exponent - least)
    first, last = (_code_of(end, exponent, halvings) for end in (low, high))
    return Intervals(low, high, first, last, exponent, halvings)


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
