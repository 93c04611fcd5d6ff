"""Seeded noise and resampling, for public data alone: training, simulation, tests.

The one module outside `privacy` that may draw random numbers. It works on arrays that are public, cannot see a
handle, and imports nothing that could.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray


class SeededNoise:
    """Fast noise of the same laws as `privacy.mechanisms` draws, from a seed: never for a private release."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @cached_property
    def _rng(self) -> np.random.Generator:
        import numpy as np

        return np.random.default_rng(self._seed)

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Adds discrete Laplace noise, P(k) ∝ exp(−|k|/scale): a difference of two geometrics."""
        import numpy as np

        if scale > 1e15:  # beyond what doubles resolve a unit of; the law is the continuous one there
            noise = np.clip(self._rng.laplace(0.0, scale, values.shape), -9e18, 9e18).astype(np.int64)
            wide: NDArray[np.int64] = np.clip(values.astype(float) + noise, -9e18, 9e18).astype(np.int64)
            return wide
        stop = -np.expm1(-1.0 / scale)
        difference: NDArray[np.int64] = self._rng.geometric(stop, values.shape) - self._rng.geometric(
            stop, values.shape
        )
        return values + difference

    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
        """Adds rounded Gaussian noise (close to the discrete one for σ ≥ 1)."""
        import numpy as np

        noise = np.rint(self._rng.normal(0.0, sigma, values.shape))
        return values + np.clip(noise, -9e18, 9e18).astype(np.int64)

    def cube(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Adds noise that lies evenly in a cube, P(z) ∝ exp(−max |zᵢ|/scale), rounded (close to it for scales ≥ 1)."""
        import numpy as np

        side = self._rng.gamma(values.size + 1, scale)
        noise = np.rint(self._rng.uniform(-side, side, values.shape))
        return values + np.clip(noise, -9e18, 9e18).astype(np.int64)

    def noisy_max(self, scores: NDArray[np.int64], scale: float) -> int:
        """The index of the largest score after one-sided exponential noise (permute-and-flip's law)."""
        import numpy as np

        return int(np.argmax(scores + self._rng.exponential(scale, scores.shape)))

    def gumbel_max(self, scores: NDArray[np.int64], scale: float) -> int:
        """The same with Gumbel noise: the exponential mechanism's law."""
        import numpy as np

        return int(np.argmax(scores + self._rng.gumbel(0.0, scale, scores.shape)))

    def sample(self, size: int, share: int) -> NDArray[np.bool_]:
        """Each of `size` with probability kept/2^16."""
        selection: NDArray[np.bool_] = self._rng.integers(0, 2**16, size) < share
        return selection


def random_orders(length: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Orders of 0 … length − 1, one after the other, without end."""
    import numpy as np

    rng = np.random.default_rng(seed)
    while True:
        yield rng.permutation(length)


def resample(counts: NDArray[np.int64], rows: int, seed: int) -> NDArray[np.int64]:
    """`rows` draws from the shape counts/Σcounts (DPBench's protocol); an empty array stays empty."""
    import numpy as np

    total = counts.sum()
    if total == 0:
        return counts
    shares = counts.ravel() / total
    sample = np.random.default_rng(seed).multinomial(rows, shares)
    return sample.reshape(counts.shape).astype(np.int64)


ColumnLaw = tuple[str, Any, Any]
"""`integer` or `real`, low, high; `date` or `time`, low, high in days or microseconds from 1970; `listed`, values."""


def rows_of(columns: dict[str, ColumnLaw], rows: int, seed: int) -> dict[str, object]:
    """Simulated rows, one array a column, each drawn evenly from its public domain: what stands in for private data."""
    import numpy as np

    rng = np.random.default_rng(seed)
    table: dict[str, object] = {}
    for name, (kind, low, high) in columns.items():
        if kind == "integer":
            table[name] = rng.integers(low, high, rows, endpoint=True)
        elif kind == "real":
            table[name] = rng.uniform(low, high, rows)
        elif kind in ("date", "time"):
            unit = "D" if kind == "date" else "us"
            table[name] = rng.integers(low, high, rows, endpoint=True).astype(f"datetime64[{unit}]")
        else:
            table[name] = np.array(low)[rng.integers(0, len(low), rows)]
    return table


def counts_of(shape: tuple[int, ...], rows: int, seed: int) -> NDArray[np.int64]:
    """A synthetic cube: `rows` rows spread evenly at random."""
    import numpy as np

    return resample(np.ones(shape, dtype=np.int64), rows, seed)
