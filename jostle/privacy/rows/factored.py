"""Exact sums over rows: moments under weights, contributions, and gradients in two factors.

*Moments and contributions.* Products and sums are matrix products of doubles that hold integers below 2^53, in batches
of BATCH rows, so that every partial sum is exact (docs/privacy/vectors.md, "Sums are exact"). Batches are added in
64-bit integers and moved to Python integers before they could overflow.

*Gradients.* A row of codes r adds Σ_u s_u·v_u(r)·f(r) to the score of a combination s and a feature f of one column.
The *slopes* v are a row program of sums of public tables, one per column, and of one column's code; each *feature* is a
function of one column. Features and combinations are −1, 0 and 1. Slopes are integer multiples of 2^-30 whose absolute
values sum to at most 2^30, so one row changes every score by at most 1 in units of 2^-30. They are added up for each
pattern of codes of a group of columns, and then weighted. Sums of a chunk, CHUNK = 2^14 rows of at most 2^30, each for
at most 2^8 equal rows at a time, stay below 2^53. Everything after that is in 64-bit integers, or in Python integers
for more than 2^32 rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from jostle.integers import fixed_width, narrowed
from jostle.lazy import Floats, Ints, NDArray, np
from jostle.privacy.rows.expressions import RowProgramError, whole_array
from jostle.privacy.rows.norms import BITS, GRID, GRID_BITS, whole_slopes
from jostle.privacy.rows.program import RowProgram

BATCH = 2**11
FOLD = 2**9
"""The number of batches of at most 2^53 before a 64-bit sum is moved to Python integers."""


class MomentSums:
    """Σ γ_k, Σ γ_k x and Σ γ_k xxᵀ over rows, up to `degree` 0, 1 or 2, for `count` weights and `d` coordinates."""

    def __init__(self, count: int, d: int, degree: int) -> None:
        shapes = [(count,), (count, d), (count, d, d)][: degree + 1]
        self._whole: list[object] = [np.zeros(shape, dtype=object) for shape in shapes]
        self._open: list[Ints] = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        self._batches = 0

    def add(self, units: Floats, weights: Floats) -> None:
        """Adds at most BATCH rows: integers `units` (d, n), or one such array per weight, and `weights` (K, n)."""
        views = units if units.ndim == 3 else np.broadcast_to(units, (len(weights), *units.shape))
        sums: list[Floats] = [weights.sum(axis=1)]
        if len(self._open) > 1:
            sums.append(np.stack([view @ weight for view, weight in zip(views, weights, strict=True)]))
        if len(self._open) > 2:
            weighted = views * weights[:, None, :]
            sums.append(np.stack([w @ view.T for w, view in zip(weighted, views, strict=True)]))
        for total, more in zip(self._open, sums, strict=True):
            total += fixed_width(more)
        self._batches += 1
        if self._batches >= FOLD:
            self._fold()

    def _fold(self) -> None:
        for i, batches in enumerate(self._open):
            self._whole[i] = self._whole[i] + batches.astype(object)
            self._open[i] = np.zeros_like(batches)
        self._batches = 0

    def whole(self) -> list[Any]:
        """The sums in units of the grid, as Python integers."""
        self._fold()
        return self._whole


def moments_of(whole: list[object]) -> list[Ints]:
    """Sums in units of 2^-BITS, finer ones rounded down; clamped to 64 bits."""
    out = []
    for degree, total in enumerate(whole):
        shift = GRID_BITS * (degree + 1) - BITS
        out.append(fixed_width(total * 2**-shift if shift < 0 else total // 2**shift))
    return out


def total_of(units: Ints, times: Ints) -> Any:
    """Σ of columns (m, n) of at most 2^30, of which column j represents `times[j]` equal rows."""
    if int(times.sum()) < 2**32:  # no sum exceeds 64 bits
        return (units @ times).astype(object)
    return units.astype(object) @ times.astype(object)


CHUNK = 2**14
PATTERNS = 2**11  # the largest number of patterns of a group of several columns
TIMES = 2**8  # the largest number of equal rows that are added at once
MOST_VALUES = 64
MOST_SCORES = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class FactoredGradient:
    """`values` are the numbers of values of the columns. `target` is the column whose codes the slopes use.

    Each of the `combinations` (S, k) of the k slopes is scored with each feature. For each group of columns (`grouped`)
    and each pattern of codes in it (`patterns`), `tables` (k', patterns) are added up for the slopes, and `features`
    are (·, patterns). `program` maps the sums (k',) and the target's code to slopes (k,) in units of 2^-`bits`.
    """

    name: str
    values: tuple[int, ...]
    target: int
    combinations: Ints
    tables: tuple[Floats, ...]
    features: tuple[Ints, ...]
    program: RowProgram
    bits: int

    def __post_init__(self) -> None:
        if not all(2 <= v <= MOST_VALUES for v in self.values) or self.target not in range(len(self.values)):
            raise RowProgramError(f"columns have 2 to {MOST_VALUES} values")
        (sums, own), (slopes,) = self.program.inputs, self.program.outputs
        many = [codes.shape[1] for codes in patterns(self.values)]
        shapes = [t.shape for t in self.tables], [f.shape[1:] for f in self.features], slopes.shape, own.shape
        fitting = [(*sums.shape, m) for m in many], [(m,) for m in many], self.combinations.shape[1:], ()
        if shapes != fitting or not 1 <= self.size <= MOST_SCORES or not 0 <= self.bits <= 60:
            raise RowProgramError("tables, features and slopes do not fit")
        if any(np.abs(a).max(initial=0) > 1 for a in (self.combinations, *self.features)):
            raise RowProgramError("features and combinations are -1, 0 and 1")
        reach = [int(f) for f in np.sum([np.abs(whole_array(t)).max(axis=1) for t in self.tables], axis=0)]
        if max(reach) > min(-sums.low, sums.high) or own.low > 0 or own.high < self.values[self.target] - 1:
            raise RowProgramError("the sums of tables may leave the program's intervals")

    @property
    def columns(self) -> int:
        return len(self.values)

    @property
    def size(self) -> int:
        return len(self.combinations) * sum(len(f) for f in self.features)


@dataclass(frozen=True, slots=True)
class CodedRows:
    """Distinct rows: codes `columns` (d, m), patterns of each group `groups` (g, m), and multiplicities `times`."""

    columns: NDArray[np.uint8]
    groups: NDArray[np.int32]
    times: Ints


@lru_cache(maxsize=64)
def grouped(values: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Groups of neighbouring columns, from and to, with at most PATTERNS patterns of codes."""
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
    """All patterns of codes of each group of columns: (columns, patterns)."""
    result = []
    for first, last in grouped(values):
        shape = values[first:last]
        codes = np.stack(np.unravel_index(np.arange(int(np.prod(shape))), shape))
        codes.setflags(write=False)
        result.append(codes)
    return tuple(result)


def coded(batches: Iterable[Floats], values: tuple[int, ...]) -> CodedRows:
    """Batches of rows (d, n), in units of 1/GRID within ±1, as codes: the nearest of `values[j]` evenly spread numbers.

    Equal rows are merged if the number of patterns fits in 62 bits. A row's code depends on that row alone.
    """
    whole = 1
    for many in values:
        whole *= many
    steps = np.array(values, dtype=float)[:, None] - 1

    def codes_of(units: Floats) -> NDArray[np.uint8]:
        return np.asarray(np.clip(np.rint((units / GRID + 1) * (0.5 * steps)), 0, steps), dtype=np.uint8)

    if whole >= 2**62:
        read = [codes_of(units) for units in batches]
        columns = np.concatenate(read, axis=1) if read else np.zeros((len(values), 0), dtype=np.uint8)
        times = np.ones(columns.shape[1], dtype=np.int64)
    else:
        numbers, times = _tallied(np.ravel_multi_index(tuple(codes_of(units)), values) for units in batches)
        columns = np.stack(np.unravel_index(numbers, values)).astype(np.uint8)
    groups = [
        narrowed(np.ravel_multi_index(tuple(columns[first:last]), values[first:last]), np.int32)
        for first, last in grouped(values)
    ]
    return CodedRows(columns, np.stack(groups), times)


def _tallied(batches: Iterator[Ints]) -> tuple[Ints, Ints]:
    """The distinct numbers in order, and their multiplicities. Memory is proportional to the distinct numbers."""
    different, times = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    waiting: list[Ints] = []

    def fold() -> None:
        nonlocal different, times, waiting
        read, many = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *waiting]), return_counts=True)
        together, back = np.unique(np.concatenate([different, read]), return_inverse=True)
        summed = np.zeros(len(together), dtype=np.int64)
        np.add.at(summed, back.ravel(), np.concatenate([times, many]))
        different, times, waiting = together, summed, []

    for numbers in batches:
        waiting.append(fixed_width(numbers))
        if sum(len(w) for w in waiting) > 2**22:
            fold()
    fold()
    return different, times


def gradient_scores(rows: CodedRows, gradient: FactoredGradient, bound: float) -> Any:
    """The exact scores (size,) in units of 2^-BITS of the bound, integers that add up over parts of the rows."""
    large = int(rows.times.sum()) >= 2**32
    kind: Any = object if large else np.int64
    sums = [np.zeros((gradient.combinations.shape[1], t.shape[1]), dtype=kind) for t in gradient.tables]
    own = rows.columns[gradient.target]
    for start in range(0, len(rows.times), CHUNK):
        part = slice(start, start + CHUNK)
        places = [narrowed(group[part], np.intp) for group in rows.groups]
        added = gradient.tables[0][:, places[0]]
        for table, place in zip(gradient.tables[1:], places[1:], strict=True):
            added += table[:, place]
        (slopes,) = gradient.program(added, own[part])
        units = whole_slopes(slopes * (2.0**-gradient.bits / bound))
        times, scale = rows.times[part], 1
        while times.any():
            times, now = np.divmod(times, TIMES)
            weighed = units * now
            for total, place in zip(sums, places, strict=True):
                for u, weights in enumerate(weighed):
                    counts = np.bincount(place, weights=weights, minlength=total.shape[1])
                    total[u] += fixed_width(counts).astype(kind, copy=False) * scale
            scale *= TIMES
    pairs = zip(sums, gradient.features, strict=True)
    scores = [gradient.combinations.astype(kind) @ s @ f.T.astype(kind) for s, f in pairs]
    return np.concatenate(scores, axis=1).ravel()
