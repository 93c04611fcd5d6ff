"""Seeded random numbers for mixtures and clusters: starting points of fits, and samples of released models.

All on public values. The same seed gives the same numbers, so that a start is a public fact like any other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def generator(seed: int) -> Any:
    """NumPy's generator for a seed."""
    return np.random.default_rng(int(seed))


def dispersed_points(count: int, d: int, seed: int) -> NDArray[np.float64]:
    """`count` normal points of d coordinates: of 64 draws that whose nearest two are farthest apart."""
    rng = generator(seed)
    best, points = -1.0, np.zeros((count, d))
    for _ in range(64):
        candidate = rng.standard_normal((count, d))
        gaps = np.linalg.norm(candidate[:, None] - candidate[None], axis=2)[np.triu_indices(count, 1)]
        if gaps.min(initial=1e9) > best:
            best, points = float(gaps.min(initial=1e9)), candidate
    return points
