"""Maximum likelihood of a model's potentials from tables of marginals, with a ridge that the noise decides.

Minimises A(θ) − θ·μ̃ + Σ λ_C‖θ_C‖², convex, by L-BFGS. Its solution has marginals μ with μ − μ̃ = −2λθ: the ridge is
what keeps projected noisy tables, which are full of zeros and belong to no distribution, from driving potentials to
−∞ (Bernstein et al., *Differentially private learning of undirected graphical models using collective graphical
models*, ICML 2017, section 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jostle.kernels.arrays import Floats, along
from jostle.kernels.graphical.parameter_tying import TiedStructure
from jostle.kernels.graphical.simplex import on_simplex
from jostle.kernels.graphical.structure import Structure
from jostle.threads import on_one_thread

NOISE_DOMINATED = 2.0


def signal_share(scale: float, rows: float, cells: float) -> float:
    """1 where a table of N rows stands out of its noise, b√cells in all; else how little it does, squared."""
    return min(1.0, math.pow(max(float(rows), 1.0) / max(NOISE_DOMINATED * scale * math.sqrt(cells), 1e-9), 2))


def public_ridge(scale: float, rows: float, cells: float) -> float:
    """λ = 4(b/N)^1.35 for Laplace noise of scale b on counts of N rows (b = σ/√2 for Gaussian noise).

    The constants were fitted once on third-order chains and random graphs (docs/experiments/graphical.md) and are
    not tuned to data. Without noise a tenth of a row's weight is left, for cells that nobody is in; a table that is
    drowned in its noise gets a ridge that keeps it near uniform.
    """
    rows = max(float(rows), 1.0)
    return max(4.0 * math.pow(float(scale) / rows, 1.35) / signal_share(scale, rows, cells), 0.1 / rows)


def maximum_likelihood(
    structure: Structure | TiedStructure, marginals: Floats, ridge: Floats | float, start: Floats | None = None, *,
    steps: int = 1000, tolerance: float = 1e-7,
) -> Floats:  # fmt: skip
    """θ for flat `marginals` μ̃ and a ridge for every cell (or one a number); the gradient ends below `tolerance`."""
    from scipy.optimize import minimize

    strength = np.broadcast_to(np.asarray(ridge, dtype=float), marginals.shape)

    def loss(theta: Floats) -> tuple[float, Floats]:
        log_partition, mu = structure.infer(theta)
        penalty = strength * theta
        return log_partition - float(theta @ marginals) + float(penalty @ theta), mu - marginals + 2 * penalty

    if not marginals.size:
        return marginals
    first = np.zeros_like(marginals) if start is None else start
    optimum = on_one_thread(minimize)(
        loss, first, jac=True, method="L-BFGS-B",
        options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 30, "gtol": tolerance, "ftol": 4e-9},
    )  # fmt: skip
    return np.asarray(optimum.x, dtype=np.float64)


def project_tables(
    structure: Structure | TiedStructure, tables: Sequence[Floats], rows: float, spreads: Sequence[float]
) -> Floats:
    """Noisy tables of counts of `rows` rows as flat marginals: made to agree on single variables, then on the simplex.

    `spreads`: the scale of each table's noise. What several tables tell of one variable is averaged by its precision,
    and every table shifted evenly to that: two hundredths less divergence where noise is large, none where it is not.
    """
    shares = consistent_tables(structure, [np.asarray(t, dtype=float) / max(rows, 1.0) for t in tables], spreads)
    return np.concatenate([on_simplex(t).ravel() for t in shares])


def consistent_tables(
    structure: Structure | TiedStructure, tables: Sequence[Floats], spreads: Sequence[float]
) -> list[Floats]:
    """Tables that each sum to 1 and agree on the margins of single variables, nearest in weighted squares a margin."""
    shifted = [t + (1.0 - t.sum()) / t.size for t in tables]
    margin: dict[int, Floats] = {}
    weight: dict[int, float] = {}
    for clique, table, spread in zip(structure.margins, shifted, spreads, strict=True):
        for axis, v in enumerate(clique):
            precise = table.shape[axis] / (max(spread, 1e-9) ** 2 * table.size)
            margin[v] = margin.get(v, 0.0) + precise * _margin(table, axis)
            weight[v] = weight.get(v, 0.0) + precise
    agreed = []
    for clique, table in zip(structure.margins, shifted, strict=True):
        shifted_table = table
        for axis, v in enumerate(clique):
            gap = (margin[v] / weight[v] - _margin(table, axis)) * (table.shape[axis] / table.size)
            shifted_table = shifted_table + along(gap, axis, table.ndim)
        agreed.append(shifted_table)
    return agreed


def _margin(table: Floats, axis: int) -> Floats:
    out: Floats = table.sum(axis=tuple(a for a in range(table.ndim) if a != axis))
    return out
