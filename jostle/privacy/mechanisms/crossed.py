"""Sums of slopes times features over private rows of codes: the arithmetic behind steps towards a vertex.

A row of codes r adds, to the score of a combination s and a feature f of one column, Σ_u s_u·v_u(r)·f(r). `Crossing`
holds what is public: features and combinations as whole numbers −1, 0, 1, and the tables of pulls. What a slope kernel
gives for a row is brought to whole multiples of 2^-30 whose absolute values sum to at most 2^30, whatever it gave.

*Sensitivity.* |Σ_u s_u·v_u·f| ≤ Σ_u |v_u| ≤ 2^30: one row more or less moves every score by at most 1 in units of
2^-30, and by nothing else, since slopes depend on their row alone.

*Exactness.* Slopes are first added up for each pattern of codes of a group of columns, times how many equal rows there
are, and the sums then weighed by the features of the patterns. Sums of a chunk are made of doubles that hold
whole numbers: CHUNK = 2^14 rows of at most 2^30, each taken for at most 2^8 equal rows at a time, stay below 2^53.
Everything after is 64-bit integers, or Python's where there are more than 2^32 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import refuse
from jostle.kernels.slopes import SLOPES
from jostle.privacy.mechanisms.rows import BITS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Array = NDArray[np.float64]

CHUNK = 2**14
PATTERNS = 2**11  # of a group of columns, where there is more than one column in it
TIMES = 2**8  # equal rows that are added at a time
MOST_VALUES = 64
MOST_SCORES = 2**20
UNIT = 2.0**BITS


@dataclass(frozen=True, slots=True)
class Crossing:
    """A slope kernel with its public parameters, worked out for each group of columns; `size` scores in all."""

    name: str
    values: tuple[int, ...]
    target: int
    outer: Ints  # (S, k)
    pulls: tuple[Array, ...]  # (k', patterns) each
    features: tuple[Ints, ...]  # (·, patterns) each
    slopes: Callable[[Array, Any], Array]

    @property
    def size(self) -> int:
        return len(self.outer) * sum(len(f) for f in self.features)


@dataclass(frozen=True, slots=True)
class CodedRows:
    """Different rows: `columns` (d, m) their codes, `groups` (g, m) the pattern of each group, `times` how many."""

    columns: NDArray[np.uint8]
    groups: NDArray[np.int32]
    times: Ints


def crossing(columns: int, name: str, parameters: Mapping[str, Any]) -> Crossing:
    """The kernel on `columns` columns, checked; nothing private is needed for it."""
    import numpy as np

    wrong = refuse("ValueError", f"`{name}` cannot work with these parameters on {columns} columns")
    try:
        with np.errstate(all="ignore"):
            kernel = SLOPES[name](**parameters)
            values = tuple(int(v) for v in kernel.values)
            target = int(kernel.target)
            if len(values) != columns or not all(2 <= v <= MOST_VALUES for v in values) or target not in range(columns):
                raise wrong
            parts = list(zip(grouped(values), patterns(values), strict=True))
            pulls = tuple(np.asarray(kernel.pulls(codes, first), dtype=float) for (first, _), codes in parts)
            features = tuple(_signs(kernel.features(codes, first)) for (first, _), codes in parts)
            outer = _signs(kernel.outer)
            tried = kernel.slopes(np.zeros((len(pulls[0]), 2)), np.zeros(2, dtype=np.uint8))
    except (TypeError, ValueError, IndexError, KeyError, AttributeError):
        raise wrong from None
    many = [codes.shape[1] for _, codes in parts]
    fits = [p.shape[1] for p in pulls] == many and [f.shape[1] for f in features] == many
    if not fits or tried.shape != (outer.shape[1], 2) or len({len(p) for p in pulls}) > 1:
        raise wrong
    made = Crossing(name, values, target, outer, pulls, features, kernel.slopes)
    if not 1 <= made.size <= MOST_SCORES:
        raise wrong
    return made


@lru_cache(maxsize=64)
def grouped(values: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Neighbouring columns, from and to, whose patterns of codes are at most PATTERNS."""
    ends = [0]
    size = 1
    for place, many in enumerate(values):
        if size * many > PATTERNS and place > ends[-1]:
            ends.append(place)
            size = 1
        size *= many
    return tuple(pairwise([*ends, len(values)]))


@lru_cache(maxsize=64)
def patterns(values: tuple[int, ...]) -> tuple[NDArray[np.intp], ...]:
    """All codes of each group of columns: (columns, patterns)."""
    import numpy as np

    found = []
    for first, last in grouped(values):
        shape = values[first:last]
        made = np.stack(np.unravel_index(np.arange(int(np.prod(shape))), shape))
        made.setflags(write=False)
        found.append(made)
    return tuple(found)


def coded(batches: Iterable[NDArray[np.float64]], values: tuple[int, ...], grid: int) -> CodedRows:
    """Rows in units of 1/grid within ±1, batches (d, n), as codes: the nearest of `values[j]` numbers evenly spread.

    Equal rows stand once, where their number fits in 62 bits; a row's code depends on that row alone.
    """
    import numpy as np

    whole = 1
    for many in values:
        whole *= many
    steps = np.array(values, dtype=float)[:, None] - 1

    def codes_of(units: NDArray[np.float64]) -> NDArray[np.uint8]:
        return np.clip(np.rint((units / grid + 1) * (0.5 * steps)), 0, steps).astype(np.uint8)

    if whole >= 2**62:
        read = [codes_of(units) for units in batches]
        columns = np.concatenate(read, axis=1) if read else np.zeros((len(values), 0), dtype=np.uint8)
        times = np.ones(columns.shape[1], dtype=np.int64)
    else:
        numbers, times = _tallied(np.ravel_multi_index(tuple(codes_of(units)), values) for units in batches)
        columns = np.stack(np.unravel_index(numbers, values)).astype(np.uint8)
    groups = [
        np.ravel_multi_index(tuple(columns[first:last]), values[first:last]).astype(np.int32)
        for first, last in grouped(values)
    ]
    return CodedRows(columns, np.stack(groups), times)


def _tallied(batches: Iterator[Ints]) -> tuple[Ints, Ints]:
    """The different numbers in order and how often each is there; memory goes by how many are different."""
    import numpy as np

    kept, times = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    waiting: list[Ints] = []

    def fold() -> None:
        nonlocal kept, times, waiting
        read, many = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *waiting]), return_counts=True)
        found, back = np.unique(np.concatenate([kept, read]), return_inverse=True)
        summed = np.zeros(len(found), dtype=np.int64)
        np.add.at(summed, back.ravel(), np.concatenate([times, many]))
        kept, times, waiting = found, summed, []

    for numbers in batches:
        waiting.append(numbers.astype(np.int64))
        if sum(len(w) for w in waiting) > 2**22:
            fold()
    fold()
    return kept, times


def crossed(rows: CodedRows, given: Crossing, bound: float) -> Ints:
    """The exact scores (size,), in units of 2^-BITS of the bound; clamped to 64 bits."""
    import numpy as np

    large = int(rows.times.sum()) >= 2**32
    kind: Any = object if large else np.int64
    sums = [np.zeros((given.outer.shape[1], p.shape[1]), dtype=kind) for p in given.pulls]
    own = rows.columns[given.target]
    for start in range(0, len(rows.times), CHUNK):
        part = slice(start, start + CHUNK)
        places = [group[part].astype(np.intp) for group in rows.groups]
        pulls = given.pulls[0][:, places[0]]
        for table, place in zip(given.pulls[1:], places[1:], strict=True):
            pulls += table[:, place]
        units = whole_slopes(given.slopes(pulls, own[part]) / bound)
        times, scale = rows.times[part], 1
        while times.any():
            times, now = np.divmod(times, TIMES)
            weighed = units * now
            for total, place in zip(sums, places, strict=True):
                for u, weights in enumerate(weighed):
                    added = np.bincount(place, weights=weights, minlength=total.shape[1])
                    total[u] += added.astype(np.int64).astype(kind, copy=False) * scale
            scale *= TIMES
    scores = [given.outer.astype(kind) @ s @ f.T.astype(kind) for s, f in zip(sums, given.features, strict=True)]
    flat = np.concatenate(scores, axis=1).ravel()
    return np.asarray(np.clip(flat, -(2**62), 2**62), dtype=np.int64)


def whole_slopes(given: Array) -> Array:
    """Slopes (k, n) as doubles that hold whole multiples of 2^-BITS, whose absolute values sum to at most 2^BITS."""
    import numpy as np

    x = np.fmin(np.fmax(given, -1.0), 1.0)  # what is no number is −1
    if len(x) > 1:
        size = np.abs(x[0])
        for row in x[1:]:
            size += np.abs(row)
        # one part in 2^28 smaller than the bound, so that rounding cannot carry a row out of it
        x *= (1 - 2.0**-28) / np.fmax(size, 1.0)
    x *= UNIT
    np.trunc(x, out=x)
    if len(x) > 1:
        x[:, np.abs(x).sum(axis=0) > UNIT] = 0.0  # whole numbers: exact
    return np.asarray(x)


def _signs(given: Any) -> Ints:
    """Whole numbers −1, 0, 1."""
    import numpy as np

    found = np.rint(np.nan_to_num(np.asarray(given, dtype=float), nan=0.0))
    if found.ndim != 2:
        raise ValueError("a table is wanted")
    return np.asarray(np.clip(found, -1, 1), dtype=np.int64)
