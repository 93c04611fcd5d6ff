# ruff: noqa: E501 (a way to change a value stands on one line)
"""Public values from a seed: ones that fit, and what somebody writes in their place to see what breaks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jostle.run.values import Interval, JSet, Record

SCALARS: tuple[Any, ...] = (
    math.nan, math.inf, -math.inf, 1e305, -1e305, 1e308, 1e16, -1e16, 1e-320, -5e-324, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.0,
    -3.0, 2.0**53, 2.0**53 - 1, 2**53 + 1, 2.0**31, 2.0**62, 2.0**63, -(2.0**63), 1e-12, 1e12, 2.0**40,
    2.0**40 * (1 + 2**-52), 1 - 2**-53, 16383 / 16384, True, False, None, "", "x", "a", "nan", "1", "coordinates", "l2", "sup",
)  # fmt: skip


class Values(random.Random):
    """Draws of numbers, tables and texts, and changes to them."""

    strange: float = 0.5
    """The probability that a value is changed at all."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def number(self) -> float:
        """An ordinary number: often one that makes ties."""
        way = self.randrange(4)
        if way == 0:
            return self.choice((0.0, 0.25, 0.5, 1.0, -1.0, -0.5, 2.0))
        if way == 1:
            return round(self.gauss(0, 1e-3), 6)
        return self.gauss(0, 0.6) if way == 2 else float(self.randint(-3, 8))

    def table(self, *shape: int, entry: Callable[[], Any] | None = None) -> Any:
        """Nested lists of this shape."""
        if not shape:
            return (entry or self.number)()
        return [self.table(*shape[1:], entry=entry) for _ in range(shape[0])]

    def whole(self, low: int, high: int) -> float:
        return float(self.randint(low, high))

    def scalar(self) -> Any:
        return self.choice(SCALARS)

    def anything(self) -> Any:
        """Some value of the language, of any kind."""
        made: Sequence[Callable[[], Any]] = (
            self.scalar, self.scalar, list, lambda: [[]], lambda: [self.scalar()], lambda: [[1.0, 2.0], [3.0]],
            lambda: Record({}), lambda: Record({"a": self.scalar()}), lambda: JSet([1.0, 2.0]), lambda: Interval(0.0, 3.0),
            lambda: np.zeros(0), lambda: np.array([self.number()]), lambda: self.table(2, 2), lambda: self.table(1, 1, 1),
            lambda: np.full((2, 2), math.nan),
        )  # fmt: skip
        return self.choice(made)()

    def perhaps(self, value: Any) -> Any:
        """The value itself, or with the probability `strange` changed, once or several times."""
        while self.chance(self.strange):
            value = self.changed(value)
        return value

    def changed(self, value: Any) -> Any:
        if isinstance(value, dict) and value:
            return self._record(value)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if self.chance(0.06):
            return self.anything()
        if not isinstance(value, list):
            return self._leaf(value)
        return self._list(value)

    def _leaf(self, value: Any) -> Any:
        ways: list[Callable[[], Any]] = [self.scalar, self.scalar, self.scalar, lambda: [value], lambda: str(value)]
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300:
            ways += [lambda: -value, lambda: value + 1, lambda: value - 1, lambda: value * 1e6, lambda: value + 0.5]
            ways += [
                lambda: value * 1e-9,
                lambda: math.nextafter(value, math.inf),
                lambda: math.nextafter(value, -math.inf),
            ]
        return self.choice(ways)()

    def _record(self, value: dict[str, Any]) -> Any:
        made = dict(value)
        name = self.choice(list(made))
        way = self.random()
        if way < 0.8:
            made[name] = self.changed(made[name])
        elif way < 0.87:
            del made[name]
        elif way < 0.94:
            made[self.choice(("pairs", "radius", "weights", "values", "x", name + " "))] = self.anything()
        else:
            return self.anything()
        return Record(made)

    def _list(self, value: list[Any]) -> Any:
        if not value:
            return self.choice(([self.number()], [[]], [self.scalar()], value))
        if self.chance(0.45):  # somewhere inside
            at = self.randrange(len(value))
            return [*value[:at], self.changed(value[at]), *value[at + 1 :]]
        at = self.randrange(len(value))
        one = value[at]
        ways: tuple[Callable[[], Any], ...] = (
            lambda: [*value[:at], *value[at + 1 :]], lambda: [*value, one], lambda: [*value[:at], one, *value[at:]],
            lambda: self.sample(value, len(value)), lambda: value[::-1], lambda: [value], lambda: one, lambda: value * 2,
            lambda: [*value, self.sample(one, len(one)) if isinstance(one, list) else one],  # ties: a permuted copy
            lambda: [*value[:at], self._filled(one), *value[at + 1 :]], lambda: self._filled(value),
            lambda: [self._filled(one), *value], lambda: self._array(value), lambda: self._array(value), list,
            lambda: [list(p) for p in zip(*value)] if all(isinstance(v, list) for v in value) else value[:1],  # noqa: B905
            lambda: JSet(value) if all(isinstance(v, (int, float, str)) for v in value) else value,
        )  # fmt: skip
        return self.choice(ways)()

    def _filled(self, value: Any) -> Any:
        """The same shape, of one number."""
        number = self.choice((self.scalar(), self.number(), -1e305, 1e305, 0.0))

        def fill(inner: Any) -> Any:
            return [fill(v) for v in inner] if isinstance(inner, list) else number

        return fill(value)

    def _array(self, value: list[Any]) -> Any:
        try:
            return np.array(value, dtype=float)
        except (TypeError, ValueError, OverflowError):
            return value
