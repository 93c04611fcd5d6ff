"""What a program's answers have to be: the exact numbers, worked out in pandas, and how far noise may take them.

Every bound is of the form t × scale with t = TAIL: a Laplace variable of scale b is beyond t·b with probability e^-t,
and about 3,000 numbers are looked at, so that all tests together fail by chance less than once in 10⁶ runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

TAIL = 23.0
SLACK = 1e-6


@dataclass(frozen=True)
class Noisy:
    """Numbers with Laplace noise: the exact ones (in groups by key) and the scale of the noise."""

    exact: Any
    scale: float
    tail: float = TAIL

    def faults(self, given: dict[Any, float]) -> Iterator[str]:
        yield from Near(self.exact, self.tail * self.scale).faults(given)


def gaussian(exact: Any, deviation: float) -> Noisy:
    """Numbers with Gaussian noise of a standard deviation: beyond 8 of them with a probability below 10⁻¹⁴."""
    return Noisy(exact, deviation, 8.0)


@dataclass(frozen=True)
class Upto:
    """Noisy sums between what is surely in them and what is at most."""

    low: Any
    high: Any
    scale: float

    def faults(self, given: dict[Any, float]) -> Iterator[str]:
        for key, value in given.items():
            low, high = at(self.low, key) - TAIL * self.scale, at(self.high, key) + TAIL * self.scale
            if not low - SLACK <= value <= high + SLACK:
                yield f"{key}: {value}, where {low}..{high} is expected"


@dataclass(frozen=True)
class Kept:
    """Noisy sums over the rows that are kept of each person, where which ones are kept is not known.

    Each is between `low`, of the rows that surely are, and `high`, of all; together they are `total`.
    """

    low: Any
    high: Any
    total: float
    scale: float

    def faults(self, given: dict[Any, float]) -> Iterator[str]:
        yield from Upto(self.low, self.high, self.scale).faults(given)
        off = TAIL * self.scale * len(given)
        if not abs(sum(given.values()) - self.total) <= off + SLACK:
            yield f"all: {sum(given.values())}, where {self.total} ± {off} is expected"


def kept(rows: pd.DataFrame, person: str, by: list[str], groups: int, each: int, k_by_epsilon: float) -> Kept:
    """Counts of the rows of each person in so many groups, and so many rows in each."""
    cells = rows.groupby([person, *by]).size().clip(upper=each).rename("n").reset_index()
    many = cells.groupby(person).n.transform("size")
    key: Any = by[0] if len(by) == 1 else by
    of_each = cells.sort_values("n").groupby(person).n
    assert each == 1 or (of_each.min() == of_each.max()).all() or (many <= groups).all(), "the total is not known"
    total = np.minimum(cells.groupby(person).size(), groups).sum() if each == 1 else cells.n.sum()
    return Kept(cells[many <= groups].groupby(key).n.sum(), cells.groupby(key).n.sum(), float(total), k_by_epsilon)


def kept_in_all(rows: pd.DataFrame, person: str, by: str, k: int, k_by_epsilon: float) -> Kept:
    """Counts of so many rows of each person in all."""
    many = rows.groupby(person)[person].transform("size")
    total = np.minimum(rows.groupby(person).size(), k).sum()
    return Kept(rows[many <= k].groupby(by).size(), rows.groupby(by).size(), float(total), k_by_epsilon)


def ratio(above: float, below: float, off_above: float, off_below: float) -> Near:
    """A quotient of noisy numbers, and the most that it can be off where each is within so much."""
    assert below > 1.5 * off_below, f"{below} is too little to tell anything of ± {off_below}"
    ends = [(above + i * off_above) / (below + j * off_below) for i in (-1, 1) for j in (-1, 1)]
    return Near(above / below, max(abs(end - above / below) for end in ends))


@dataclass(frozen=True)
class Near:
    """Numbers that are calculated from noisy ones, and how far they may be off, by the scales of those."""

    exact: Any
    width: Any

    def faults(self, given: dict[Any, float]) -> Iterator[str]:
        for key, value in given.items():
            exact, width = at(self.exact, key), at(self.width, key)
            if not abs(value - exact) <= width * (1 + SLACK) + SLACK * abs(exact):
                yield f"{key}: {value}, where {exact} ± {width} is expected"


@dataclass(frozen=True)
class Moment:
    """An `avg`, `var` or `stddev` of values between low and high, of a person's k rows, for an amount of epsilon."""

    kind: str
    values: Any
    low: float
    high: float
    k: float
    epsilon: float

    def faults(self, given: dict[Any, float]) -> Iterator[str]:
        for key, value in given.items():
            rows = np.asarray(rows_at(self.values, key), float)
            least, most = self.range_of(rows[~np.isnan(rows)])
            if not least * (1 - SLACK) - SLACK <= value <= most * (1 + SLACK) + SLACK:
                yield f"{key}: {value}, where {least}..{most} is expected"

    def range_of(self, rows: np.ndarray) -> tuple[float, float]:
        """The least and the most that noisy sums within the tail can give."""
        parts = {"avg": 2, "var": 3, "stddev": 3}[self.kind]
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        centred = np.clip(rows, self.low, self.high) - middle
        n, s, q = len(rows), centred.sum(), (centred**2).sum()
        off = TAIL * self.k * parts / self.epsilon
        assert n > 1.5 * off, f"{n} rows are too few to tell anything of ± {off}"
        found = []
        for i, j, l in itertools.product(np.linspace(-1, 1, 9), repeat=3):  # monotone in each but through 0 of s
            m, t, u = n + i * off, s + j * off * half, q + l * off * half**2
            found.append(middle + t / m if self.kind == "avg" else (u - t * t / m) / (m - 1))
        if self.kind == "avg":
            return max(min(found), self.low), min(max(found), self.high)
        least, most = max(min(found), 0.0), max(found)
        return (math.sqrt(least), math.sqrt(most)) if self.kind == "stddev" else (least, most)


@dataclass(frozen=True)
class Rank:
    """A quantile of values between low and high: in error by ranks, as a noisy max over at most 4,096 places is."""

    values: Any
    q: float
    k: float
    epsilon: float
    width: float = 0.0

    def faults(self, given: dict[Any, float]) -> Iterator[str]:
        for key, value in given.items():
            rows = np.asarray(rows_at(self.values, key), float)
            rows = np.sort(rows[~np.isnan(rows)])
            epsilon = self.epsilon * (0.75 if 0 < self.q < 1 else 1)  # the rest buys its error
            off = 2 * max(self.q, 1 - self.q) * self.k / epsilon * (math.log(4096) + TAIL) + 1
            assert 1.5 * off < len(rows), f"{len(rows)} rows are too few to tell anything of ± {off} ranks"
            below, upto = (rows < value - self.width).sum(), (rows <= value + self.width).sum()
            if not below - off <= self.q * len(rows) <= upto + off:
                yield f"{key}: {value} has rank {below}..{upto} of {len(rows)}, ± {off}"


@dataclass(frozen=True)
class InDays:
    """Dates and times, of which days since 1970 are looked at; a mean is taken down to its day, up to one `off`."""

    of: Any
    off: float = 0.0

    def faults(self, given: dict[Any, Any]) -> Iterator[str]:
        since = {key: pd.Timestamp(value) - pd.Timestamp(1970, 1, 1) for key, value in given.items()}
        yield from self.of.faults({key: apart / pd.Timedelta(days=1) + self.off / 2 for key, apart in since.items()})


@dataclass(frozen=True)
class One:
    """One of some answers, each of which is as good as the noise can tell."""

    of: Sequence[Any]

    def faults(self, given: dict[Any, Any]) -> Iterator[str]:
        for key, value in given.items():
            wanted = at(self.of, key) if isinstance(self.of, pd.Series) else self.of
            if value not in wanted:
                yield f"{key}: {value!r}, where one of {list(wanted)} is expected"


@dataclass(frozen=True)
class Groups:
    """A grouped answer: its key columns, and what each of the others has to be.

    `open` are the keys that must be there where keys are found (under δ); else `keys` are all of them, or None to take
    the answer's.
    """

    by: tuple[str, ...]
    columns: dict[str, Any] = field(default_factory=dict)
    keys: Any = None
    surely: Any = None
    order: str | None = None


def at(exact: Any, key: Any) -> Any:
    """The exact number of a group; 0 where no row has its key."""
    return exact.to_dict().get(key, 0) if isinstance(exact, pd.Series) else exact


def rows_at(values: Any, key: Any) -> Any:
    return values.get_group(key) if isinstance(values, pd.core.groupby.generic.SeriesGroupBy) else values


def faults(expected: Any, released: Any) -> Iterator[str]:
    """What is wrong with a released value, in words; nothing where all is within its bounds."""
    if isinstance(expected, dict):
        if set(expected) != set(released):
            yield f"has the columns {sorted(released)}, where {sorted(expected)} are expected"
        for name in expected:
            yield from (f"{name}: {fault}" for fault in faults(expected[name], released[name]))
    elif isinstance(expected, Groups):
        yield from _group_faults(expected, released)
    elif isinstance(expected, list):
        if len(expected) != len(released):
            yield f"has {len(released)} elements, where {len(expected)} are expected"
        for i, (one, value) in enumerate(zip(expected, released, strict=False)):
            yield from (f"{i}: {fault}" for fault in faults(one, value))
    else:
        yield from expected.faults({"the answer": released})


def _group_faults(expected: Groups, frame: Any) -> Iterator[str]:
    if not isinstance(frame, pd.DataFrame):
        yield f"is a {type(frame).__name__} and has no groups"
        return
    for name in expected.columns:  # the ends of its error stand beside a number
        ends = [end for end in (f"{name}_low", f"{name}_high") if end in frame]
        inside = frame[[ends[0], name, ends[1]]].T.apply(lambda row: row.is_monotonic_increasing) if ends else None
        if inside is not None and not inside.all():
            yield f"{name} lies outside of its own error"
        more = [f"{name}_{of}" for of in ("ranks", "days", "seconds", "cut")]
        frame = frame.drop(columns=[*ends, *frame.columns.intersection(more)])
    keys = [tuple(row) for row in frame[list(expected.by)].itertuples(index=False)]
    plain = [key[0] if len(key) == 1 else key for key in keys]
    if len(set(keys)) != len(keys):
        yield "has a key twice"
    if expected.keys is not None and set(plain) != set(expected.keys):
        yield f"has the keys {sorted(plain)}, where {sorted(expected.keys)} are expected"
    if expected.surely is not None and not set(expected.surely) <= set(plain):
        yield f"lacks {sorted(set(expected.surely) - set(plain))}, whose groups are large"
    if set(frame.columns) != {*expected.by, *expected.columns}:
        yield f"has the columns {list(frame.columns)}"
        return
    for name, wanted in expected.columns.items():
        yield from (f"{name} of {fault}" for fault in wanted.faults(dict(zip(plain, frame[name], strict=True))))
    if expected.order is not None and list(frame[expected.order]) != sorted(frame[expected.order], reverse=True):
        yield f"is not in the order of {expected.order}"
