"""A partition of a cube by a walk down a public tree, and the costs that cuts of a line are chosen by.

*The walk* (DAWA's first stage, and PrivTree of Zhang, Xiao and Xie 2016) splits a block v of more than one cell where
max(θ − δ, s(v) − depth(v)·δ) + noise > θ, with s(v) = min_c Σ_{i∈v} |x_i − c|, or Σ_{i∈v} x_i. With θ, δ and the scale
λ of `constants` it is ε-differentially private for one row more or less (docs/privacy/least_cost_partition.md). Only
the buckets leave. A tree is an order of the cells and a level for every place between two of them, whatever numbers
these are: a block of depth d is a run of cells with no level below d inside. Levels below 0 are split without looking.

*Costs of cuts* are deviations from the median of stretches of a line, for PHP and StructureFirst, and for EFPA how much
of a cube its lowest frequencies leave out (docs/privacy/cuts.md). Of the cosine transform in doubles: counts are
clamped so that ‖y‖₂ ≤ 2^31, and the relative errors of all that is done to up to 2^24 cells are together below 2^-45.
So a residual is off by less than 2^(BITS − 14) steps of the grid at each of two neighbours: `reach` adds `SLACK`, more
than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Floats, Ints, np

Draw = Callable[[float, int], Ints]

GRID = 2.0**-20
DECAY = math.log(2)
"""δ/λ. A larger one allows a smaller λ but holds deep blocks back more."""

TOP_SCALE = 2.0**52
"""The largest noise scale, in grid units, for which 64-bit integers cannot overflow in the walk."""


class Constants(Struct, frozen=True):
    """λ and δ of a walk, in grid units; δ is a whole number, λ is the scale of the noise."""

    scale: float
    decay: int


@lru_cache(maxsize=256)
def constants(epsilon: float, decay: float = DECAY) -> Constants:
    """The smallest λ for which the proof gives a loss of at most `epsilon`, with δ = `decay`·λ rounded up.

    `epsilon` is positive and finite, `decay` at least 0.1. A `BadAmount` where it is too small for exact integers.
    """
    low, high = 0.0, (2 + 1 / decay + 10) / epsilon + 10 / decay
    while loss_bound(high, decay) > epsilon:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if middle > 0 and loss_bound(middle, decay) <= epsilon else (middle, high)
    scale = high * (1 + 1e-9) / GRID
    if scale > TOP_SCALE:
        raise refuse("BadAmount", "the amount is too small for a partition", help="give it at least 1e-8")
    return Constants(scale, math.ceil(decay * scale * (1 + 1e-9)))


def loss_bound(scale: float, decay: float) -> float:
    """The proof's bound on the privacy loss of one row, for λ = `scale` in rows and δ ≥ `decay`·λ.

    (1/λ)·(2 + Σ_{r≥1} min(1, 1/(2e^{rδ/λ − (1+g)/λ} − 1))): the tail beyond the summed terms is bounded by a
    geometric series.
    """
    total, shift, r = 2.0, (1 + GRID) / scale, 1
    while r * decay - shift < 40:
        height = r * decay - shift
        total += 1.0 if height <= 0 else 1 / (2 * math.exp(height) - 1)
        r += 1
    return (total + math.exp(shift - r * decay) / (1 - math.exp(-decay))) / scale


def walk(
    counts: Ints,
    epsilon: float,
    draw: Draw,
    theta: float = 0.0,
    public_splits: int | None = None,
    decay: float = DECAY,
    by: str = "deviation",
) -> Ints:
    """A partition of the cells into blocks of a tree that halves the axes: labels from 0, of the shape of `counts`.

    `counts` is an exact cube of rows, ≥ 0. A split halves every axis that is not yet down to cells. The first
    `public_splits` levels (3 in one dimension and 2 in more, if left out) are split whatever the counts are, and spend
    nothing. In one dimension labels rise with the cells. The rest is as for `walk_tree`.
    """
    if public_splits is None:
        public_splits = 3 if counts.ndim == 1 else 2
    order, levels = halving_tree(counts.shape)
    return walk_tree(counts, epsilon, draw, order, levels - public_splits, theta, decay, by).reshape(counts.shape)


def walk_tree(
    counts: Ints,
    epsilon: float,
    draw: Draw,
    order: Ints,
    levels: Ints,
    theta: float = 0.0,
    decay: float = DECAY,
    by: str = "deviation",
) -> Ints:
    """A partition of the cells into blocks of a public tree: labels from 0, flat.

    `draw(scale, size)` gives `size` fresh discrete Laplace integers, P(k) ∝ exp(−|k|/scale); it is called at most once
    a level. `theta` is in units of λ. `by` is the score: the `deviation` from the median, or the `count` of rows.

    Privacy: `epsilon`-differentially private for one row more or less; `theta`, `decay` and the tree must be public.
    """
    tuned = constants(epsilon, decay)
    threshold = round(theta * tuned.scale)
    values = np.clip(fixed_width(counts).ravel(), 0, 2**40)[order]
    starts = levels < 0
    starts[0] = True
    live = np.ones(len(values), dtype=bool)
    for depth in range(int(levels.max()) + 1):
        firsts = np.flatnonzero(starts)
        sizes = np.diff(np.append(firsts, len(values)))
        candidates = live[firsts] & (sizes > 1)
        if not candidates.any():
            break
        scores = np.minimum(SCORES[by](values[np.repeat(candidates, sizes)], sizes[candidates]), 2**42) << 20
        scores = np.maximum(threshold - tuned.decay, scores - depth * tuned.decay)
        split = np.zeros(len(firsts), dtype=bool)
        split[candidates] = scores + draw(tuned.scale, len(scores)) > threshold
        live = np.repeat(split, sizes)
        starts |= live & (levels == depth)
    labels = np.empty(len(values), dtype=np.int64)
    labels[order] = np.cumsum(starts) - 1
    return labels


def deviations(values: Ints, sizes: Ints) -> Ints:
    """min_c Σ|x − c| over blocks of so many values, which stand one after the other."""
    firsts = np.cumsum(sizes) - sizes
    result = np.zeros(len(sizes), dtype=np.int64)
    for size in np.unique(sizes).tolist():
        alike = np.flatnonzero(sizes == size)
        rows = np.sort(values[firsts[alike][:, None] + np.arange(size)], axis=1)
        result[alike] = rows[:, (size + 1) // 2 :].sum(axis=1) - rows[:, : size // 2].sum(axis=1)
    return result


SCORES: dict[str, Callable[[Ints, Ints], Ints]] = {
    "deviation": deviations,
    "count": lambda values, sizes: np.asarray(np.add.reduceat(values, np.cumsum(sizes) - sizes)),
}
"""Each moves by at most 1 with a row, and never grows from a block to a part of it: all that the proof asks."""


def halving_tree(shape: tuple[int, ...]) -> tuple[Ints, Ints]:
    """The tree whose every level halves all axes that are longer than a cell, as an order of the cells and levels.

    A cell i of n stands at leaf ⌊i·2^k/n⌋ of its axis, so the halves are even for every n.
    """
    bits = [max(0, (cells - 1).bit_length()) for cells in shape]
    places = [np.arange(cells) * (1 << k) // cells for cells, k in zip(shape, bits, strict=True)]
    key: Any = np.zeros(shape, dtype=np.int64) if len(shape) > 1 else places[0]
    left = list(bits)
    for _ in range(sum(bits) if len(shape) > 1 else 0):
        axis = left.index(max(left))
        left[axis] -= 1
        bit = places[axis] >> left[axis] & 1
        key = 2 * key + bit.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    order = np.argsort(key, axis=None) if len(shape) > 1 else np.arange(key.size)
    leaves = key.ravel()[order]
    highest = np.frexp(leaves[1:] ^ leaves[:-1])[1]  # of the bits in which neighbours differ, from 1
    return order, np.append(0, (sum(bits) - highest) // len(shape))


MOST_LEVELS = 64


def along(counts: Ints, axis: int) -> Ints:
    """The sums of `counts` over all axes but one: one row moves one of them, by 1."""
    others = tuple(a for a in range(counts.ndim) if a != axis)
    return np.asarray(np.clip(counts, 0, 2**40).sum(axis=others, dtype=np.int64))


def public_tree(order: Any, levels: Any, cells: int) -> tuple[Ints, Ints]:
    """A tree over `cells` cells, its levels renumbered 0, 1, 2, … (−1 for all below 0); refused where it is none."""
    for numbers in (order, levels):
        if not (isinstance(numbers, np.ndarray) or all(isinstance(number, (int, float)) for number in numbers)):
            raise refuse("TypeError", "a tree is two lists of numbers")
    places, heights = np.asarray(order), np.asarray(levels)
    for numbers in (places, heights):
        if numbers.shape != (cells,) or numbers.dtype.kind not in "iuf" or (numbers != np.rint(numbers)).any():
            raise refuse("ValueError", f"a tree is an order of the {cells} cells and as many levels, in whole numbers")
    if not np.array_equal(np.sort(places), np.arange(cells)):
        raise refuse("ValueError", f"the order of a tree names every cell from 0 to {cells - 1} once")
    used, rank = np.unique(np.maximum(heights, -1), return_inverse=True)
    if len(used) > MOST_LEVELS:
        raise refuse("ValueError", f"a tree has at most {MOST_LEVELS} levels")
    return fixed_width(places), fixed_width(rank - int(used[0] < 0))


MOST_COUNT = 2**31 - 1
MOST_BLOCKS = 512
"""Boundaries look at every interval of blocks."""
FAR = 2**50
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
            costs = sum(
                deviations(np.broadcast_to(values, left.shape)[inside], sizes.ravel())
                for inside, sizes in ((left, cuts), (~left, length - cuts))
            )
            for g, row in zip(group, np.reshape(costs, cuts.shape), strict=True):
                of_segments[g] = row
    return of_segments


class Line:
    """The deviations of all intervals of one line, and the least costs of its beginnings: kept in the vault."""

    def __init__(self, y: Ints) -> None:
        """s of the blocks i … j − 1 at (i, j), of shape (m, m + 1); 0 where there are none."""
        costs = np.zeros((len(y), len(y) + 1), dtype=np.int64)
        for length in range(2, len(y) + 1):
            windows = np.lib.stride_tricks.sliding_window_view(y, length)
            at = np.arange(len(windows))
            costs[at, at + length] = deviations(windows.ravel(), np.full(len(windows), length))
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


BITS = 20
SLACK = 256
MOST_KEPT = 64


def reach(shape: tuple[int, ...], least: int, weights: Floats) -> int:
    """By how many steps of 2^-BITS one row can move a residual, where `least` is the smallest number kept."""
    c = _diagonal(shape, weights)
    c[(slice(0, least),) * len(shape)] = 0.0
    m = np.ones((1,) * len(shape))
    for axis, side in enumerate(shape):
        along = np.where(np.arange(side) > 0, 2.0, 1.0) / side
        m = m * along.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    bound = min(1.0, math.sqrt(float(np.sum(c**2 * m))) * (1 + 2**-30))
    return math.ceil(math.ldexp(bound, BITS)) + SLACK


def residuals(y: Ints, sizes: Ints, weights: Floats) -> Ints:
    """r_k in units of 2^-BITS for each k of `sizes`, which rises; `y` may have any number of axes.

    `weights` are those of the lowest frequencies, a cube with the axes of `y` and no larger, clipped to [0, 1];
    the least of them stands for all others.
    """
    from scipy.fft import dctn

    clamped = np.minimum(y, int(2.0**31 / math.sqrt(y.size)))
    energy = (np.asarray(dctn(clamped.astype(np.float64), norm="ortho")) * _diagonal(y.shape, weights)) ** 2
    level = np.zeros(y.shape, dtype=np.int64)
    for axis, side in enumerate(y.shape):
        at = np.searchsorted(sizes, np.arange(side), side="right")
        level = np.maximum(level, at.reshape([-1 if a == axis else 1 for a in range(y.ndim)]))
    # sums of a contiguous array are pairwise; `bincount` would add one after another
    by_level = [float(np.sum(energy[level == i])) for i in range(1, len(sizes) + 1)]
    left_out = np.cumsum(by_level[::-1])[::-1]
    return fixed_width(np.rint(np.sqrt(left_out) * 2.0**BITS))


def _diagonal(shape: tuple[int, ...], weights: Floats) -> Floats:
    clipped = np.nan_to_num(np.clip(weights, 0.0, 1.0))
    diagonal = np.full(shape, float(clipped.min()))
    diagonal[tuple(slice(0, side) for side in clipped.shape)] = clipped
    return diagonal
