"""Rows as whole vectors in a ball, and exact sums over them: the arithmetic that noisy sums of vectors rest on.

* `within_ball` divides rows by their public radius, clips and rounds them toward zero to multiples of 1/GRID, and
  then checks each row **in whole numbers**: Σ units² ≤ GRID² for the Euclidean norm, |unit| ≤ GRID for the largest
  coordinate. A row that rounding put outside is shrunk. Nothing after this trusts a double.
* `Moments` adds up γ_k, γ_k·x and γ_k·xxᵀ, where x is the row or what a kernel's frame k makes of it, brought within
  the unit ball in the same way. The weights γ of a row kernel are brought to whole multiples of 1/GRID
  that are not negative and at most GRID in all for a row, whatever the kernel gave (what is no number is 0; a row
  with more than 1 in all is left out).
* `Contributions` adds up what a kernel gives for each row, scaled down to a norm of at most 1 and rounded toward
  zero to multiples of 2^-30, checked in whole numbers again.

*Exactness.* Products and sums are made by matrix products of doubles that hold whole numbers: with rows in batches
of BATCH = 2^11, no sum exceeds 2^11·2^14·2^14·2^14 = 2^53, so every partial sum, in whatever order and on however many
threads, is a whole number that a double holds. Batches are added in 64-bit integers and folded into Python's before
they could overflow. So sums do not depend on the order of rows, and one row moves them by exactly its own term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.kernels.rowkernels import GRID

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

BATCH = 2**11
BITS = 30  # of all sums: they come back in units of 2^-BITS
FOLD = 2**9  # batches of at most 2^53 before a 64-bit sum is folded
HALF = 14  # GRID = 2^HALF


def within_ball(rows: NDArray[np.float64], radius: float, norm: str) -> NDArray[np.int16]:
    """Rows (n, d) as units (d, n) in the ball of the norm `l2` or `sup`; rows with a value that is none are dropped."""
    import numpy as np

    kept = np.asarray(rows, dtype=float)[np.isfinite(rows).all(axis=1)]
    with np.errstate(all="ignore"):
        x = np.ascontiguousarray(kept.T) / radius
        if norm == "sup":
            return np.trunc(np.clip(x, -1.0, 1.0) * GRID).astype(np.int16)
        largest = np.maximum(np.abs(x).max(axis=0, initial=0.0), 1.0)
        x /= largest
        squared = np.zeros(x.shape[1])
        for row in x:
            squared += row * row
        # where the row reached beyond the ball: divided by its length, which is √squared times what was divided out
        length = np.sqrt(squared)
        x *= np.where(length * largest > 1.0, 1.0 / np.where(length > 0, length, 1.0), largest)
        units = np.trunc(np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0) * GRID)
    np.clip(units, -GRID, GRID, out=units)
    outside = (units * units).sum(axis=0) > GRID * GRID  # whole numbers below 2^53: exact
    if outside.any():
        units[:, outside] = np.trunc(units[:, outside] * (1 - 2.0**-10))
        units[:, (units * units).sum(axis=0) > GRID * GRID] = 0
    return units.astype(np.int16)


def whole_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (K, n) as whole numbers of 1/GRID, at least 0 and at most GRID in all for each row."""
    import numpy as np

    with np.errstate(invalid="ignore"):
        whole = np.floor(np.clip(weights, 0.0, 1.0) * GRID)
    if not np.isfinite(whole).all():
        whole = np.nan_to_num(whole, nan=0.0)
    total = whole.sum(axis=0)  # whole numbers below 2^53: exact
    if total.max(initial=0.0) > GRID:
        whole[:, total > GRID] = 0.0
    return whole


def whole_frames(frames: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Frames (K, d, n) as whole numbers of 1/GRID within the unit ball; what is no number takes no weight.

    Scaled by less than 1/length, with a margin of 2^-30 for the rounding of doubles (at most (d + 6)·2^-53), then
    rounded toward zero, which makes no vector longer. Then each vector is checked in whole numbers, Σ frame² ≤ GRID²
    (sums below 2^53: exact), so that nothing rests on how lengths were found. Both arrays are written to.
    """
    import numpy as np

    from jostle.kernels.rowkernels import squared_lengths

    squared = squared_lengths(frames)
    if not (np.isfinite(squared).all()):
        bad = ~np.isfinite(squared)
        weights[bad] = 0.0
        squared[bad] = 1.0
        frames[np.broadcast_to(bad[:, None, :], frames.shape)] = 0.0
    np.maximum(squared, 1.0, out=squared)
    np.sqrt(squared, out=squared)
    np.divide(GRID * (1 - 2.0**-30), squared, out=squared)
    frames *= squared[:, None, :]
    np.trunc(frames, out=frames)
    long = ~(np.einsum("kdn,kdn->kn", frames, frames) <= GRID * GRID)  # also what is no number
    if long.any():
        weights[long] = 0.0
        frames[np.broadcast_to(long[:, None, :], frames.shape)] = 0.0
    return frames


class Moments:
    """Σ γ_k, Σ γ_k x and Σ γ_k xxᵀ over rows, up to `degree` 0, 1 or 2, for `count` weights and `d` coordinates."""

    def __init__(self, count: int, d: int, degree: int) -> None:
        import numpy as np

        shapes = [(count,), (count, d), (count, d, d)][: degree + 1]
        self._whole: list[Any] = [np.zeros(shape, dtype=object) for shape in shapes]
        self._open: list[Ints] = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        self._batches = 0

    def add(self, units: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """At most BATCH rows: `units` (d, n), or one such for each weight, and `weights` (K, n); whole numbers both."""
        import numpy as np

        views = units if units.ndim == 3 else np.broadcast_to(units, (len(weights), *units.shape))
        found: list[NDArray[np.float64]] = [weights.sum(axis=1)]
        if len(self._open) > 1:
            found.append(np.stack([view @ weight for view, weight in zip(views, weights, strict=True)]))
        if len(self._open) > 2:
            weighted = views * weights[:, None, :]
            found.append(np.stack([w @ view.T for w, view in zip(weighted, views, strict=True)]))
        for total, more in zip(self._open, found, strict=True):
            total += more.astype(np.int64)
        self._batches += 1
        if self._batches >= FOLD:
            self._fold()

    def _fold(self) -> None:
        import numpy as np

        for i, made in enumerate(self._open):
            self._whole[i] = self._whole[i] + made.astype(object)
            self._open[i] = np.zeros_like(made)
        self._batches = 0

    def sums(self) -> list[Ints]:
        """In units of 2^-BITS, the finest ones taken down to it; clamped to 64 bits."""
        import numpy as np

        self._fold()
        out = []
        for degree, total in enumerate(self._whole):
            shift = HALF * (degree + 1) - BITS
            scaled = total * 2**-shift if shift < 0 else total // 2**shift
            out.append(np.clip(scaled, -(2**62), 2**62).astype(np.int64))
        return out


class Contributions:
    """Σ of what a kernel gives for each row, within a norm of 1."""

    def __init__(self, norm: str) -> None:
        self._norm = norm
        self._whole: Any = None

    def add(self, given: NDArray[np.float64], times: Ints | None = None) -> None:
        """`given` (m, n) as multiples of the bound; column j stands for `times[j]` equal rows (left out: one)."""
        units = clipped(given, self._norm)
        if times is None:
            total = units.sum(axis=1).astype(object)
        elif int(times.sum()) < 2**32:  # |units| ≤ 2^30: no sum leaves 64 bits
            total = (units @ times).astype(object)
        else:
            total = units.astype(object) @ times.astype(object)
        self._whole = total if self._whole is None else self._whole + total

    def sums(self, size: int) -> Ints:
        import numpy as np

        total = self._whole if self._whole is not None else np.zeros(size, dtype=object)
        return np.asarray(np.clip(total, -(2**62), 2**62), dtype=np.int64)


def clipped(given: NDArray[np.float64], norm: str) -> Ints:
    """Columns (m, n) within the unit ball of `l1`, `l2` or `sup`, rounded toward zero to multiples of 2^-BITS."""
    import numpy as np

    unit = 2.0**BITS
    with np.errstate(all="ignore"):
        x = np.nan_to_num(np.array(given, dtype=float), nan=0.0, posinf=0.0, neginf=0.0)
        if norm == "sup":
            return np.asarray(np.trunc(np.clip(x, -1.0, 1.0) * unit), dtype=np.int64)
        x = np.clip(x, -1.0, 1.0)  # a coordinate beyond the ball is out of it in any norm; keeps squares finite
        size = np.zeros(x.shape[1])
        for row in x:
            size += np.abs(row) if norm == "l1" else row * row
        size = size if norm == "l1" else np.sqrt(size)
        # one part in 2^30 smaller than the ball, so that rounding cannot carry a row out of it
        x *= (1 - 2.0**-28) / np.maximum(size, 1.0)
    units: Ints = np.trunc(x * unit).astype(np.int64)
    if norm == "l1":
        units[:, np.abs(units).sum(axis=0) > 2**BITS] = 0
    else:
        # in doubles first, where no square overflows, then exactly
        near = (units.astype(float) ** 2).sum(axis=0) < 2.0 ** (2 * BITS + 1)
        units[:, ~near] = 0
        units[:, (units * units).sum(axis=0) > 2 ** (2 * BITS)] = 0
    return units
