"""Projection of noisy tables on the simplex (Duchi, Shalev-Shwartz, Singer and Chandra, ICML 2008)."""

from __future__ import annotations

import numpy as np

from jostle.kernels.arrays import Floats


def on_simplex(table: Floats, total: float = 1.0) -> Floats:
    """The nearest table (in ℓ₂) of non-negative cells that sum to `total` > 0, of the same shape."""
    flat = np.asarray(table, dtype=np.float64).ravel()
    down = np.sort(flat)[::-1]
    over = (np.cumsum(down) - total) / np.arange(1, flat.size + 1)
    last = int(np.flatnonzero(down > over)[-1]) if flat.size else 0
    projection: Floats = np.maximum(flat - over[last], 0.0).reshape(np.shape(table))
    return projection
