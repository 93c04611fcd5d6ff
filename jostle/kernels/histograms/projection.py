"""Projects an estimate onto nonnegative cells in the workload's metric.

Clipping at zero adds up to a bias on long ranges; the projection in the workload's own metric,
min (z − z₀)ᵀG(z − z₀) over z ≥ 0 with G = WᵀW, moves the answers as little as it can and, since the true counts
are nowhere negative, cannot increase the workload's squared error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.histograms.bounded import minimise
from jostle.kernels.histograms.grams import Gram


def project(z0: Floats, gram: Gram, iterations: int = 60, tolerance: float = 1e-3) -> Floats:
    """The nearest z ≥ 0 to `z0`, both (b,), in the metric of `gram`; exact for the identity workload.

    In one dimension the unknowns are the cumulative sums c, in which a range is a difference of two and z ≥ 0 says
    that c never falls: each accelerated step ends in an isotonic regression, and the metric is well conditioned.
    """
    z0 = np.asarray(z0, dtype=np.float64)
    if (z0 >= 0).all():
        return z0.copy()
    if gram.metric is None:
        return np.maximum(z0, 0.0)
    if gram.contiguous:
        return _rising(np.cumsum(z0), gram.metric, iterations, tolerance)
    return _descend(z0, gram, iterations, tolerance)


def _rising(c0: Floats, metric: Any, iterations: int, tolerance: float) -> Floats:
    """Differences of the c, 0 ≤ c₁ ≤ c₂ ≤ …, that minimises (c − c₀)ᵀM(c − c₀).

    FISTA with restarts in the metric of the row sums of |M|, which dominate M. Cumulative sums that no query uses
    get a small weight: they stay where they are unless a neighbour moves them.
    """
    from scipy.optimize import isotonic_regression

    weights = np.asarray(abs(metric).sum(axis=1)).ravel()
    weights = weights + 1e-6 * weights.mean()
    c = momentum = c0
    pace, scale = 1.0, max(float(c0.max() - c0.min()), 1e-300)
    for _ in range(iterations):
        aim = momentum - (metric @ (momentum - c0)) / weights
        candidate = np.maximum(isotonic_regression(aim, weights=weights).x, 0.0)
        if np.vdot(weights * (momentum - candidate), candidate - c) > 0:
            pace = 1.0
        faster = (1 + (1 + 4 * pace**2) ** 0.5) / 2
        momentum = candidate + (pace - 1) / faster * (candidate - c)
        still = float(np.abs(candidate - c).max()) < 1e-6 * tolerance * scale
        c, pace = candidate, faster
        if still:
            break
    return np.diff(c, prepend=0.0)


def _descend(z0: Floats, gram: Gram, iterations: int, tolerance: float) -> Floats:
    """Runs projected L-BFGS from the clipped estimate, in unknowns scaled by the metric's diagonal."""
    unit = 1 / np.sqrt(np.maximum(gram.diagonal(), 1e-12))

    def at(point: Floats) -> tuple[float, Floats]:
        gap = point * unit - z0
        pull = gram.dot(gap[None])[0]
        return float(gap @ pull), 2 * pull * unit

    return minimise(at, np.maximum(z0, 0.0) / unit, iterations, tolerance)[0] * unit
