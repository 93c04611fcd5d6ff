"""A partition of a cube by a walk down a public tree.

*The walk* (DAWA's first stage, and PrivTree of Zhang, Xiao and Xie 2016) splits a block v of more than one cell if
max(θ − δ, s(v) − depth(v)·δ) + noise > θ. Here s(v) = min_c Σ_{i∈v} |x_i − c|, or Σ_{i∈v} x_i. With θ, δ and the scale
λ of `constants` it is ε-DP for adding or removing one row (docs/privacy/least_cost_partition.md). Only the buckets are
released. A tree is an order of the cells and a level for each boundary between two of them. A block of depth d is a run
of cells without a level below d inside. Boundaries of a level below 0 are split without a test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.integers import fixed_width
from jostle.lazy import Ints, np

Draw = Callable[[float, int], Ints]

GRID = 2.0**-20
DECAY = math.log(2)
"""δ/λ. A larger value allows a smaller λ, but makes deep blocks less likely to be split."""

TOP_SCALE = 2.0**52
"""The largest noise scale, in grid units, for which 64-bit integers cannot overflow in the walk."""


class Constants(Struct, frozen=True):
    """λ, the scale of the noise, and δ, an integer, in grid units."""

    scale: float
    decay: int


@lru_cache(maxsize=256)
def constants(epsilon: float, decay: float = DECAY) -> Constants:
    """The smallest λ for which the proof bounds the loss by `epsilon`, with δ = `decay`·λ rounded up.

    `epsilon` is positive and finite, `decay` at least 0.1. Raises `BadAmount` if ε is too small for exact integers.
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

    (1/λ)·(2 + Σ_{r≥1} min(1, 1/(2e^{rδ/λ − (1+g)/λ} − 1))). The tail beyond the summed terms is bounded by a geometric
    series.
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
    """A partition of the cells into blocks of a tree that halves the axes: labels from 0, in the shape of `counts`.

    `counts` is an exact cube of rows, ≥ 0. A split halves every axis of more than one cell. The first `public_splits`
    levels (3 in one dimension and 2 in more, by default) are split without a test and at no cost. In one dimension
    labels rise with the cells. The other arguments are those of `walk_tree`.
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

    `draw(scale, size)` returns `size` new discrete Laplace integers, P(k) ∝ exp(−|k|/scale). It is called at most once
    per level. `theta` is in units of λ. `by` is the score: the `deviation` from the median, or the `count` of rows.

    Privacy: `epsilon`-DP for adding or removing one row. `theta`, `decay` and the tree must be public.
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
    """min_c Σ|x − c| for consecutive blocks of the given sizes."""
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
"""Each changes by at most 1 with a row, and is at most as large for a part of a block: the proof needs no more."""


def halving_tree(shape: tuple[int, ...]) -> tuple[Ints, Ints]:
    """The tree in which every level halves all axes longer than one cell, as an order of the cells and levels.

    Cell i of n is at leaf ⌊i·2^k/n⌋ of its axis, so the halves are even for every n.
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
    highest = np.frexp(leaves[1:] ^ leaves[:-1])[1]  # the highest bit in which neighbours differ, from 1
    return order, np.append(0, (sum(bits) - highest) // len(shape))


MOST_LEVELS = 64


def along(counts: Ints, axis: int) -> Ints:
    """The sums of `counts` over all axes but `axis`. One row changes one of them by 1."""
    others = tuple(a for a in range(counts.ndim) if a != axis)
    return np.asarray(np.clip(counts, 0, 2**40).sum(axis=others, dtype=np.int64))


def public_tree(order: Any, levels: Any, cells: int) -> tuple[Ints, Ints]:
    """A valid tree over `cells` cells with levels renumbered 0, 1, 2, … (−1 for all below 0); refused otherwise."""
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
