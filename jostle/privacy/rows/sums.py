"""Exact sums over rows: moments under weights, and contributions.

*Exactness.* Products and sums are matrix products of doubles that hold whole numbers: with rows in batches of
BATCH = 2^11, no sum exceeds 2^11·2^14·2^14·2^14 = 2^53, so every partial sum, in whatever order and on however many
threads, is a whole number that a double holds. Batches are added in 64-bit integers and folded into Python's before
they could overflow. So sums do not depend on the order of rows, and one row moves them by exactly its own term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.integers import fixed_width
from jostle.privacy.rows.norms import BITS, GRID_BITS, clipped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

BATCH = 2**11
FOLD = 2**9
"""Batches of at most 2^53 before a 64-bit sum is folded."""


class MomentSums:
    """Σ γ_k, Σ γ_k x and Σ γ_k xxᵀ over rows, up to `degree` 0, 1 or 2, for `count` weights and `d` coordinates."""

    def __init__(self, count: int, d: int, degree: int) -> None:
        import numpy as np

        shapes = [(count,), (count, d), (count, d, d)][: degree + 1]
        self._whole: list[Any] = [np.zeros(shape, dtype=object) for shape in shapes]
        self._open: list[Ints] = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        self._batches = 0

    def add(self, units: Floats, weights: Floats) -> None:
        """At most BATCH rows: `units` (d, n), or one such for each weight, and `weights` (K, n); whole numbers both."""
        import numpy as np

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
        import numpy as np

        for i, batches in enumerate(self._open):
            self._whole[i] = self._whole[i] + batches.astype(object)
            self._open[i] = np.zeros_like(batches)
        self._batches = 0

    def whole(self) -> list[Any]:
        """In units of the grid, Python's integers."""
        self._fold()
        return self._whole

    def sums(self) -> list[Ints]:
        return moments_of(self.whole())


def moments_of(whole: list[Any]) -> list[Ints]:
    """Sums of the grid in units of 2^-BITS, the finest ones taken down to it; clamped to 64 bits."""
    out = []
    for degree, total in enumerate(whole):
        shift = GRID_BITS * (degree + 1) - BITS
        out.append(clamped(total * 2**-shift if shift < 0 else total // 2**shift))
    return out


class ContributionSums:
    """Σ of what a program gives for each row, within a norm of 1."""

    def __init__(self, size: int, norm: str) -> None:
        import numpy as np

        self._norm = norm
        self.whole: Any = np.zeros(size, dtype=object)

    def add(self, contributions: Floats, times: Ints | None = None, sizes: Floats | None = None) -> None:
        """Multiples of the bound, (m, n); column j stands for `times[j]` equal rows (left out: one).

        `sizes` (n,): the norm of each column, where it is known (`norms.exact_sizes`).
        """
        units = clipped(contributions, self._norm, sizes)
        if times is None:
            total = units.sum(axis=1).astype(object)
        elif int(times.sum()) < 2**32:  # |units| ≤ 2^30: no sum leaves 64 bits
            total = (units @ times).astype(object)
        else:
            total = units.astype(object) @ times.astype(object)
        self.whole = self.whole + total

    def sums(self) -> Ints:
        return clamped(self.whole)


def clamped(total: Any) -> Ints:
    """Whole numbers brought into 62 bits and a sign."""
    return fixed_width(total)
