"""Costs of cutting a line of counts: what PHP and StructureFirst select their partitions by.

The line y is the cube's cells, or sums of public blocks of them. The cost of an interval v is its deviation from the
median, s(v) = min_c Σ_{i∈v} |y_i − c|, a whole number.

*Argument.* One row moves one y by 1, hence s(v) by at most 1 for the intervals that hold it and not at all for others
(for each c the sum moves by at most 1, hence so does the minimum over c). Therefore:

* *Bisections.* The cost s(left) + s(right) of cutting a segment moves by at most 1, and only in the one segment that
  holds the changed cell. Selecting in every segment at once with noise for ε is therefore ε-DP altogether: k rows that
  fall into segments g move the scores of g by at most k_g, Σ k_g ≤ k, and the losses k_g·ε/k add up to ε at most
  (in zCDP Σ (k_g·ε/k)²/8 ≤ ε²/8).
* *Boundaries.* The least cost of cutting a stretch into so many bins is a minimum, over public partitions, of sums
  of s over disjoint intervals: each sum moves by at most 1, hence so does the minimum.

Neither is monotone: a row may make an interval more or less even. The published costs are squares about the mean, whose
sensitivity is twice the largest count and one, which had to be clipped, at a number taken from the data.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jostle.privacy.mechanisms.least_cost import BEYOND, deviations

Ints = NDArray[np.int64]

MOST_COUNT = 2**31 - 1
MOST_BLOCKS = 512
"""Boundaries look at every interval of blocks."""
FAR = np.int64(2**50)
"""More than any cost."""


def block_sums(cells: Ints, grain: int) -> Ints:
    """Sums over public blocks of `grain` cells along every axis; counts are clamped, which moves no two apart."""
    sums = np.minimum(cells, MOST_COUNT)
    for axis, side in enumerate(cells.shape):
        sums = np.add.reduceat(sums, np.arange(0, side, grain), axis=axis)
    return np.minimum(sums, MOST_COUNT)


def bisection_costs(y: Ints, starts: list[int], places: list[Ints]) -> list[Ints]:
    """For each segment, from its start to the next, the cost of a cut before each of its `places`.

    A cut at a segment's own start leaves it whole.
    """
    of_segments: list[Ints] = [np.zeros(0, dtype=np.int64)] * len(starts)
    alike: dict[tuple[int, int], list[int]] = {}
    for g, (low, high) in enumerate(pairwise([*starts, len(y)])):
        alike.setdefault((high - low, len(places[g])), []).append(g)
    for (length, many), some in alike.items():
        size = max(1, 2**20 // (length * many))
        for group in (some[i : i + size] for i in range(0, len(some), size)):
            values = np.stack([y[starts[g] : starts[g] + length] for g in group])[:, None, :]
            cuts = np.stack([places[g] - starts[g] for g in group])
            left = np.arange(length) < cuts[:, :, None]
            costs = np.zeros(cuts.size, dtype=np.int64)
            for inside, sizes in ((left, cuts), (~left, length - cuts)):
                costs += deviations(np.where(inside, values, BEYOND).reshape(-1, length), sizes.ravel())
            for g, row in zip(group, costs.reshape(cuts.shape), strict=True):
                of_segments[g] = row
    return of_segments


class Line:
    """The deviations of all intervals of one line, and the least costs of its beginnings: kept in the vault."""

    def __init__(self, y: Ints) -> None:
        """s of the blocks i … j − 1 at (i, j), of shape (m, m + 1); 0 where there are none."""
        costs = np.zeros((len(y), len(y) + 1), dtype=np.int64)
        for length in range(2, len(y) + 1):
            rows = np.lib.stride_tricks.sliding_window_view(y, length)
            at = np.arange(len(rows))
            costs[at, at + length] = deviations(rows, np.full(len(rows), length))
        self._costs = costs
        self._best = [np.where(np.arange(len(y) + 1) == 0, np.int64(0), FAR)]

    def boundary_costs(self, bins: int, end: int) -> Ints:
        """For q = bins − 1 … end − 1, the least cost of y[:end] in `bins` intervals of which the last starts at q."""
        return np.asarray(self._least(bins - 1)[bins - 1 : end] + self._costs[bins - 1 : end, end])

    def _least(self, bins: int) -> Ints:
        """The least cost of the first q blocks in `bins` intervals, for q = 0 … m; `FAR` where there is none."""
        m = len(self._costs)
        while len(self._best) <= bins:
            before = self._best[-1][:-1]
            inside = np.arange(m + 1) > np.arange(m)[:, None]
            self._best.append(np.asarray(np.where(inside, before[:, None] + self._costs, FAR).min(axis=0)))
        return self._best[bins]
