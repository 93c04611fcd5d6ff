"""Regressions as public values: they are fitted to released sums (`fits`), predict a number, print and convert to JSON.

`Additive` adds up one number a column to a base; `Forked` asks one column and hands over to one of two. What they
predict is kept within the public bounds of the target. A missing cell adds nothing to a sum, as one of no known value
does; at a fork it has the mean of both sides.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jostle.kernels import KernelError, Model, Row, columns_of_row, members
from jostle.kernels.arrays import Floats
from jostle.kernels.classifiers.codes import Coded, Value, coded, plain, positions
from jostle.kernels.statistics import text

Columns = Mapping[str, Any]


@dataclass(frozen=True)
class Slope:
    """`rate` · (x − `centre`), x kept within `low` and `high`."""

    rate: float
    centre: float
    low: float
    high: float

    def of(self, column: Coded) -> Floats:
        x = _numbers(column)
        return np.where(np.isnan(x), 0.0, self.rate * (np.clip(x, self.low, self.high) - self.centre))

    def as_json(self) -> dict[str, object]:
        return {"rate": self.rate, "centre": self.centre, "low": self.low, "high": self.high}

    def summary(self, name: str) -> str:
        return f"{text(self.rate)} · ({name} − {text(self.centre)})"


@dataclass(frozen=True)
class Steps:
    """The number at the place that x has among the rising `edges`, one more of them than edges, and a line."""

    edges: tuple[float, ...]
    numbers: tuple[float, ...]
    slope: Slope | None = None

    def of(self, column: Coded) -> Floats:
        x = _numbers(column)
        steps = np.where(np.isnan(x), 0.0, np.array(self.numbers)[np.searchsorted(self.edges, x, side="right")])
        return steps if self.slope is None else steps + self.slope.of(column)

    def as_json(self) -> dict[str, object]:
        line = {} if self.slope is None else {"slope": self.slope.as_json()}
        return {"edges": list(self.edges), "numbers": list(self.numbers), **line}

    def summary(self, name: str) -> str:
        starts = ["", *(f" from {edge:g}" for edge in self.edges)]
        texts = [f"{text(number)}{start}" for start, number in zip(starts, self.numbers, strict=True)]
        line = "" if self.slope is None else f"{self.slope.summary(name)}, and "
        return f"{line}of {name}: " + ", ".join(texts)


@dataclass(frozen=True)
class Levels:
    """A number for each of the listed `values`."""

    values: tuple[Value, ...]
    numbers: tuple[float, ...]

    def of(self, column: Coded) -> Floats:
        return np.append(self.numbers, 0.0)[positions(column, self.values)]

    def as_json(self) -> dict[str, object]:
        return {"values": list(self.values), "numbers": list(self.numbers)}

    def summary(self, name: str) -> str:
        pairs = zip(self.values, self.numbers, strict=True)
        return f"of {name}: " + ", ".join(f"{text(number)} for {level}" for level, number in pairs)


Part = Slope | Steps | Levels


class Regression(Model, ABC):
    """The face that all have, in a program and in Python.

    `target`, the column that is predicted, lies within `low` and `high`. `error`: the root of the mean square of what
    it is off by, as the released sums tell; none where their noise hides it.
    """

    jostle_kind = "a regression"
    jostle_members = members("target attributes error", predict="of_row")
    target: str
    low: float
    high: float
    error: float | None

    @property
    @abstractmethod
    def attributes(self) -> tuple[str, ...]:
        """The columns that it reads."""

    @abstractmethod
    def raw(self, columns: Mapping[str, Coded], many: int) -> Floats:
        """What it predicts for so many rows (n,), before it is kept within bounds."""

    @abstractmethod
    def parts(self) -> dict[str, object]:
        """What it is made of, as plain JSON."""

    @abstractmethod
    def lines(self) -> list[str]:
        """What people read of it."""

    def predict(self, columns: Columns, many: int | None = None) -> Floats:
        """A prediction for each row (n,); `columns` holds one sequence of cells a column."""
        here = {name: coded(columns[name]) for name in self.attributes if name in columns}
        lengths = {len(column.codes) for column in here.values()} | ({many} if many is not None else set())
        lengths = lengths or {len(column) for column in columns.values()}
        if len(lengths) != 1:
            raise KernelError("columns of one length are needed, at least one")
        return np.clip(self.raw(here, lengths.pop()), self.low, self.high)

    def as_json(self) -> dict[str, object]:
        return {"target": self.target, "low": self.low, "high": self.high, "error": self.error} | self.parts()

    def __str__(self) -> str:
        hidden = "" if isinstance(self, Forked) else ", the noise hides how far off"  # a tree's leaves tell nothing
        off = hidden if self.error is None else f", off by {text(self.error)} (root mean square)"
        first, *rest = self.lines()
        return "\n".join([f"{self.target} by {first}{off}", *rest])

    def of_row(self, row: Row) -> float:
        """`model.predict({age: 40, sex: "Female"})`: the number of one row."""
        return float(self.predict(columns_of_row(row, self.attributes), 1)[0])


@dataclass(frozen=True, eq=False)
class Additive(Regression):
    """`base` and what each column adds to it."""

    kind: str
    target: str
    low: float
    high: float
    base: float
    adds: Mapping[str, Part] = field(default_factory=dict)
    error: float | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self.adds)

    def raw(self, columns: Mapping[str, Coded], many: int) -> Floats:
        total = np.full(many, self.base)
        for name, part in self.adds.items():
            if name in columns:
                total += part.of(columns[name])
        return total

    def parts(self) -> dict[str, object]:
        return {"model": self.kind, "base": self.base, "adds": {n: part.as_json() for n, part in self.adds.items()}}

    def lines(self) -> list[str]:
        return [f"{self.kind}: {text(self.base)}", *(f"  + {part.summary(name)}" for name, part in self.adds.items())]


@dataclass(frozen=True, eq=False)
class Forked(Regression):
    """Of two regressions `above` where a column is `at` or more, or with `same` is `at`, else `below`."""

    attribute: str
    at: Value
    same: bool
    above: Regression
    below: Regression

    target = property(lambda self: self.above.target)
    low = property(lambda self: self.above.low)
    high = property(lambda self: self.above.high)
    error = None

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.attribute, *self.above.attributes, *self.below.attributes)))

    def raw(self, columns: Mapping[str, Coded], many: int) -> Floats:
        above, below = self.above.raw(columns, many), self.below.raw(columns, many)
        if self.attribute not in columns:
            return np.asarray((above + below) / 2)
        column = columns[self.attribute]
        if self.same:
            share = (positions(column, (self.at,)) == 0).astype(float)
        else:
            x = _numbers(column)
            share = np.where(np.isnan(x), 0.5, x >= float(self.at))
        return np.asarray(share * above + (1 - share) * below)

    def parts(self) -> dict[str, object]:
        sides = {"above": self.above.parts(), "below": self.below.parts()}
        return {"model": "forked", "attribute": self.attribute, "at": self.at, "same": self.same, **sides}

    def lines(self) -> list[str]:
        words = ("is", "is not") if self.same else ("≥", "<")
        questions = [f"{self.attribute} {word} {text(self.at)}" for word in words]
        lines = ["a tree:"]
        for question, side in zip(questions, (self.above, self.below), strict=True):
            first, *rest = side.lines()
            lines += [f"  {question}: {first.removeprefix('a tree:').removeprefix('the mean: ')}".rstrip(),
                      *(f"  {line}" for line in rest)]  # fmt: skip
        return lines


def _numbers(column: Coded) -> Floats:
    """A number for each row, none where the cell is no number."""
    values = [plain(value) for value in column.values]
    table = np.array([v if isinstance(v, float) else math.nan for v in values] or [math.nan])
    return np.asarray(table[column.codes])


def floats(numbers: Sequence[float] | Floats) -> tuple[float, ...]:
    return tuple(float(x) for x in numbers)
