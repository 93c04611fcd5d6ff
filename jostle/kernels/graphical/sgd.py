"""Stochastic gradients from noisy batches: the general-purpose baseline that the paper measures itself against.

Bernstein et al. (ICML 2017, section 4.1) after Abadi et al. (CCS 2016). A step's gradient of the mean negative
log-likelihood is μ(θ) − S/(qN), S the noisy clique tables of a batch that keeps each row with probability q, and 2λθ of
the ridge. A row's gradient is not clipped: its T has length √E whatever θ is, so what is noised is S, which does not
depend on θ, and all steps can be measured at once.

Steps go by AdaGrad (Duchi, Hazan & Singer, JMLR 2011), θ ← θ − η·g/√Σg², which takes each cell's own curvature and
noise into account, and the second half of them is averaged. Where the paper has a grid search, η = 0.5 is fixed, and
the ridge is `fit.public_ridge` for the noise of the mean of all batches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from jostle.kernels.errors import KernelError
from jostle.kernels.graphical.fit import public_ridge
from jostle.kernels.graphical.model import GraphicalModel

PACE = 0.5


def psgd_fit(model: GraphicalModel, batches: Mapping[str, Any], rows: object = None) -> GraphicalModel:
    """The model after a step for each of `batches.sums` (steps, cells), of `rate` q and `noise` σ, from uniform.

    `rows`: a public N; left out, it is read off the batches. A steady chain's batches may be of its steps alone.
    Post-processing: it costs nothing.
    """
    structure = model.learning
    sums, rate, noise = np.asarray(batches["sums"], dtype=float), float(batches["rate"]), float(batches["noise"])
    noises = np.full(len(structure.lengths), noise)
    if model.ties is not None and sums.ndim == 2 and [sums.shape[1]] == structure.lengths[1:]:
        places = structure.lengths[0]  # steps alone: where they start is where a steady chain starts (`steady_tables`)
        sums = np.concatenate([sums.reshape(len(sums), places, -1).sum(axis=2), sums], axis=1)
        noises[0] *= math.sqrt(places)
    if sums.ndim != 2 or sums.shape[1] != sum(structure.lengths) or not len(sums):
        raise KernelError(f"batches have the {sum(structure.lengths):,} cells of the model's tables")
    if rows is not None and not (isinstance(rows, (int, float)) and math.isfinite(rows)):
        raise KernelError(f"the number of rows is a number, not {rows}")
    tables = max(1, len(structure.lengths))
    n = max(1.0, float(rows) if rows is not None else float(sums.sum(axis=1).mean()) / (rate * tables))
    spreads = noises / (rate * math.sqrt(2 * len(sums)))
    pairs = zip(structure.lengths, spreads, strict=True)
    ridge = np.concatenate([np.full(k, public_ridge(spread, n, k)) for k, spread in pairs])
    theta, squares, total = (np.zeros(sums.shape[1]) for _ in range(3))
    half = len(sums) // 2
    for step, batch in enumerate(sums):
        gradient = structure.infer(theta)[1] - batch / (rate * n) + 2 * ridge * theta
        squares += gradient * gradient
        theta = theta - PACE * gradient / np.sqrt(np.maximum(squares, 1e-24))
        if step >= half:
            total += theta
    notes = {"learned": "psgd", "rows": n, "noise": float(spreads.max()), "steps": float(len(sums))}
    return model.with_potentials(total / (len(sums) - half), notes)
