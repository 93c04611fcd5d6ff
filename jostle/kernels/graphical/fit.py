"""Maximum likelihood of a model's potentials from tables of marginals, with a ridge that the noise decides.

Minimises A(θ) − θ·μ̃ + Σ λ_C‖θ_C‖², convex, by L-BFGS. Its solution has marginals μ with μ − μ̃ = −2λθ: the ridge is
what keeps projected noisy tables, which are full of zeros and belong to no distribution, from driving potentials to
−∞ (Bernstein et al., *Differentially private learning of undirected graphical models using collective graphical
models*, ICML 2017, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.graphical.simplex import on_simplex
from jostle.kernels.graphical.structure import Structure

Floats = NDArray[np.float64]


def public_ridge(scale: float, rows: float) -> float:
    """λ = 4(b/N)^1.35 for Laplace noise of scale b on counts of N rows (b = σ/√2 for Gaussian noise).

    The constants were fitted once on third-order chains and random graphs (docs/experiments/graphical.md) and are
    not tuned to data. Without noise a tenth of a row's weight is left, for cells that nobody is in.
    """
    rows = max(float(rows), 1.0)
    return max(4.0 * (float(scale) / rows) ** 1.35, 0.1 / rows)


def fitted(
    structure: Structure, marginals: Floats, ridge: Floats, start: Floats | None = None, *, steps: int = 1000,
    tolerance: float = 1e-7,
) -> Floats:  # fmt: skip
    """θ for flat `marginals` μ̃ and a ridge for every cell (or one a number); the gradient ends below `tolerance`."""
    from scipy.optimize import minimize

    strength = np.broadcast_to(np.asarray(ridge, dtype=float), marginals.shape)

    def loss(theta: Floats) -> tuple[float, Floats]:
        log_partition, mu = structure.infer(theta)
        pulled = strength * theta
        return log_partition - float(theta @ marginals) + float(pulled @ theta), mu - marginals + 2 * pulled

    if not marginals.size:
        return marginals
    first = np.zeros_like(marginals) if start is None else start
    found = minimize(
        loss, first, jac=True, method="L-BFGS-B",
        options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "gtol": tolerance, "ftol": 1e-9},
    )  # fmt: skip
    return np.asarray(found.x, dtype=np.float64)


def projected(structure: Structure, tables: Sequence[Floats], rows: float) -> Floats:
    """Noisy tables of counts of `rows` rows as flat marginals, each table on its simplex."""
    flat = structure.joined(tables)
    return np.concatenate([on_simplex(t / max(rows, 1.0)).ravel() for t in structure.split(flat)])
