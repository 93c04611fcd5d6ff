"""A data-aware partition of a cube, for DAWA's first stage: the PrivTree walk over the deviation from the median.

The public codes of DAWA are not private in this stage; this is another mechanism in its place. A public tree of
blocks is walked from the top. A block v of more than one cell is split when

    max(θ − δ, s(v) − depth(v)·δ) + noise > θ,    s(v) = min_c Σ_{i∈v} |x_i − c|,

and becomes a bucket otherwise. One row more or less changes s by at most 1, and s never grows from a block to a
part of it (Zhang, Xiao, Xie, *PrivTree*, SIGMOD 2016, for a score that only falls; here it may move either way).
With s(v) = Σ_{i∈v} x_i, of which the same is true, the walk is PrivTree's own.
With θ, δ and the scale λ of `constants` the walk is ε-differentially private for one row more or less; the argument,
for the discrete noise that is drawn, is in `docs/privacy/least_cost_partition.md`. Only the buckets leave: scores
are neither released nor used again.

This file decides from exact integers and draws through the function it is given; it charges nothing and opens nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jostle.diagnostics import refuse
from jostle.integers import fixed_width

Ints = NDArray[np.int64]
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
    """A partition of the cells into blocks of the public tree: labels from 0, of the shape of `counts`.

    `counts` is an exact cube of rows, ≥ 0. `draw(scale, size)` gives `size` fresh discrete Laplace integers,
    P(k) ∝ exp(−|k|/scale); it is called at most once a level. `theta` is in units of λ. A split halves every axis
    that is not yet down to cells. The first `public_splits` levels (3 in one dimension and 2 in more, if left out)
    are split whatever the counts are, and spend nothing. In one dimension labels rise with the cells. `by` is the
    score: the `deviation` from the median, or the `count` of rows.

    Privacy: `epsilon`-differentially private for one row more or less; `theta`, `public_splits`, `decay` and the
    shape must be public.
    """
    if public_splits is None:
        public_splits = 3 if counts.ndim == 1 else 2
    tuned = constants(epsilon, decay)
    threshold = round(theta * tuned.scale)
    order = _tree_order(counts.shape)
    values = np.clip(fixed_width(counts).ravel(), 0, 2**40)
    real = order >= 0
    padded = np.where(real, values[order], BEYOND)
    starts = np.zeros(len(order), dtype=bool)
    live = np.zeros(1, dtype=np.int64)
    width, depth = len(order), -public_splits
    while True:
        sizes = real.reshape(-1, width)[live].sum(axis=1)
        starts[live[sizes == 1] * width] = True
        live, sizes = live[sizes > 1], sizes[sizes > 1]
        if not len(live):
            break
        if depth >= 0:
            scores = np.minimum(SCORES[by](padded.reshape(-1, width)[live], sizes), 2**42) << 20
            scores = np.maximum(threshold - tuned.decay, scores - depth * tuned.decay)
            split = scores + draw(tuned.scale, len(live)) > threshold
            starts[live[~split] * width] = True
            live = live[split]
        parts = min(1 << counts.ndim, width)
        live = (parts * live[:, None] + np.arange(parts)).ravel()
        width, depth = width // parts, depth + 1
    buckets = np.cumsum(starts) - 1
    labels = np.empty(counts.size, dtype=np.int64)
    labels[order[real]] = np.unique(buckets[real], return_inverse=True)[1]
    return labels.reshape(counts.shape)


BEYOND = np.int64(2**62)


def deviations(rows: Ints, sizes: Ints) -> Ints:
    """min_c Σ|x − c| over the first `sizes` values of each row; what is beyond is padded by `BEYOND`."""
    rows = np.sort(rows, axis=1)
    rows[rows == BEYOND] = 0
    sums = np.cumsum(rows, axis=1)
    at = np.arange(len(rows))
    below = np.where(sizes > 1, sums[at, np.maximum(sizes // 2 - 1, 0)], 0)
    upto = sums[at, (sizes + 1) // 2 - 1]
    return np.asarray(sums[at, sizes - 1] - upto - below)


def _sums(rows: Ints, sizes: Ints) -> Ints:
    return np.asarray(np.where(rows == BEYOND, 0, rows).sum(axis=1))


SCORES: dict[str, Callable[[Ints, Ints], Ints]] = {"deviation": deviations, "count": _sums}
"""Each moves by at most 1 with a row, and never grows from a block to a part of it: all that the proof asks."""


def _tree_order(shape: tuple[int, ...]) -> Ints:
    """The cell at each leaf of the public tree, or −1 for none; a power of two long.

    Every level halves the axis that has the most halvings left, and a cell i of n stands at leaf ⌊i·2^k/n⌋ of its
    axis, so the halves are even for every n.
    """
    bits = [max(0, (cells - 1).bit_length()) for cells in shape]
    places = [np.arange(cells) * (1 << k) // cells for cells, k in zip(shape, bits, strict=True)]
    key: Any = np.zeros(shape, dtype=np.int64)
    left = list(bits)
    for _ in range(sum(bits)):
        axis = left.index(max(left))
        left[axis] -= 1
        bit = places[axis] >> left[axis] & 1
        key = 2 * key + bit.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    order = np.full(1 << sum(bits), -1, dtype=np.int64)
    order[key.ravel()] = np.arange(key.size)
    return order
