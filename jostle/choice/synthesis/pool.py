"""All expressions of a few features up to a size, without those that have the values of a simpler one.

Sizes grow one by one; each operator is applied to all pairs of smaller expressions at once. Of expressions whose
values on the training rows agree the first, which is the simplest, stays. Nothing here depends on utilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from jostle.choice.grow import Array
from jostle.choice.synthesis.expressions import (
    ABOVE,
    BINARY,
    FEATURE,
    NUMBER,
    UNARY,
    Bounds,
    Expression,
    applied,
    bounded,
)

CUTS = 7
"""Thresholds that are tried for each feature: between equal parts of its values."""

NUMBERS = 1e7
"""The most numbers that the values of all expressions may be together (80 MB); what would come after is left out."""

DIGITS = 6
"""The significant digits of a number in a formula, which is what its text shows."""

_COMMUTE = frozenset("+*") | {"min", "max"}


class Pool(Struct, frozen=True):
    """`values` (m, n) of `expressions` (m) on the training rows, simplest first."""

    expressions: tuple[Expression, ...]
    values: Array

    @property
    def complexities(self) -> npt.NDArray[np.intp]:
        return np.array([expression.complexity for expression in self.expressions], dtype=np.intp)


def pool_of(columns: Mapping[str, Array], ranges: Mapping[str, Bounds], most: int) -> Pool:
    """The expressions of at most the size `most` over these columns, all of the shape (n,) and within their ranges.

    Leaves are the features, 1, and the size that each feature usually has. Constant expressions are left out, and of
    those that are the same up to a factor and a summand, which a formula fits, all but the simplest.
    """
    growth = _Growth(columns, ranges, int(NUMBERS // max(len(next(iter(columns.values()))), 1)))
    for size in range(1, most + 1):
        growth.grow(size)
    expressions, values = growth.expressions, np.array(growth.values)
    centred = values - values.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1))
    kept = np.flatnonzero(spread > 1e-9 * np.abs(values).max(axis=1))
    standard = centred[kept] / spread[kept, None]
    lead = np.argmax(np.abs(standard) > 0.5, axis=1)  # a value of unit variance is somewhere that large
    standard *= np.sign(standard[np.arange(len(kept)), lead])[:, None]
    first = kept[_distinct(standard)]
    return Pool(tuple(expressions[k] for k in first), values[first])


class _Growth(Struct):
    """The expressions so far, each with its values, its bounds and the size it was made at."""

    columns: Mapping[str, Array]
    ranges: Mapping[str, Bounds]
    room: int
    expressions: list[Expression] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    bounds: list[Bounds] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)

    def grow(self, size: int) -> None:
        """Adds the expressions of this size that are new by their values, as far as there is room."""
        for expression, bounds, values in self._candidates(size):
            key = _key(values)
            if key not in self.seen and len(self.values) < self.room:
                self.seen.add(key)
                self.expressions.append(expression)
                self.values.append(values)
                self.bounds.append(bounds)
                self.sizes.append(size)

    def _candidates(self, size: int) -> Iterator[tuple[Expression, Bounds, Array]]:
        if size == 1:
            yield from self._leaves()
            return
        by_size = {s: [k for k, own in enumerate(self.sizes) if own == s] for s in range(1, size)}
        if size == 3:
            yield from self._thresholds()
        for op in UNARY:
            yield from self._made(op, [(k,) for k in by_size[size - 1]])
        for left in range(1, size - 1):
            right = size - 1 - left
            pairs: list[tuple[int, ...]] = [(a, b) for a in by_size[left] for b in by_size[right]]
            rising = [pair for pair in pairs if pair[0] <= pair[1]]
            for op in BINARY:
                yield from self._made(op, rising if op in _COMMUTE else pairs)

    def _leaves(self) -> Iterator[tuple[Expression, Bounds, Array]]:
        many = len(next(iter(self.columns.values())))
        for name, values in self.columns.items():
            yield Expression(FEATURE, name=name), self.ranges[name], values
        usual = [float(f"{np.median(np.abs(values)):.3g}") for values in self.columns.values()]
        for number in dict.fromkeys([1.0, *usual]):
            if number > 0:
                yield Expression(NUMBER, number=number), (number, number), np.full(many, number)

    def _thresholds(self) -> Iterator[tuple[Expression, Bounds, Array]]:
        for name, values in self.columns.items():
            places = np.unique(values)
            for part in range(1, CUTS + 1):
                at = part * (len(places) - 1) // (CUTS + 1)
                if at + 1 < len(places):
                    cut = float(f"{(places[at] + places[at + 1]) / 2:.{DIGITS}g}")
                    step = Expression(ABOVE, (Expression(FEATURE, name=name),), cut)
                    yield step, (0.0, 1.0), step.values(self.columns)

    def _made(self, op: str, places: list[tuple[int, ...]]) -> Iterator[tuple[Expression, Bounds, Array]]:
        """An operator applied to earlier expressions wherever that has a bounded value."""
        places = [place for place in places if any(self.expressions[k].features for k in place)]
        bounds = [bounded(op, *(self.bounds[k] for k in place)) for place in places]
        good = [(place, limits) for place, limits in zip(places, bounds, strict=True) if limits is not None]
        for start in range(0, len(good), 1000):
            block = good[start : start + 1000]
            args = [np.array([self.values[place[i]] for place, _ in block]) for i in range(len(block[0][0]))]
            for (place, limits), values in zip(block, applied(op, *args), strict=True):
                yield Expression(op, tuple(self.expressions[k] for k in place)), limits, values


def _key(values: Array) -> bytes:
    """Equal for equal values, to nine digits; what rounding alone makes different is kept twice, which does no harm."""
    scale = float(np.abs(values).max())
    return np.rint(values * (1e9 / scale)).tobytes() + f"{scale:.9g}".encode() if scale else b"0"


def _distinct(values: Array) -> npt.NDArray[np.intp]:
    """The first of each group of equal rows, in order."""
    firsts: dict[bytes, int] = {}
    for place, row in enumerate(values):
        firsts.setdefault(np.rint(row * 1e7).tobytes(), place)
    return np.array(list(firsts.values()), dtype=np.intp)
