"""Learning by inference of the true tables: collective graphical models within EM.

Bernstein et al. (ICML 2017) treat the true tables n as latent: given potentials θ and noisy tables y, the E-step
maximises θ·n + H(n) + log p(y | n), which `nlbp` does as in their Algorithm 1 and `expected` exactly, by the dual:

    Laplace, scale b:   min over |l|∞ ≤ 1/b of  A(θ + l) − l·y/N
    Gaussian, σ:        min over l of           A(θ + l) − l·y/N + σ²‖l‖²/2N

with n = N·μ(θ + l) at the optimum. The M-step then is free: θ + l has these very marginals. Each step is a proximal
one, and EM run to its end is maximum likelihood under the noise, which fits noise; where to stop is its regulariser
(`steps_for`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.graphical.fit import drowned, public_ridge
from jostle.kernels.graphical.structure import Structure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """What was added to every cell: `laplace` of scale b, or `gaussian` of deviation σ."""

    kind: str
    scale: float

    @property
    def spread(self) -> float:
        """The Laplace scale of the same variance."""
        return self.scale if self.kind == "laplace" else self.scale / math.sqrt(2)

    @property
    def mean_size(self) -> float:
        """E|noise|."""
        return self.scale if self.kind == "laplace" else self.scale * math.sqrt(2 / math.pi)


def expected(
    structure: Structure, theta: Floats, noisy: Floats, rows: float, noise: Noise, start: Floats | None = None,
    *, tolerance: float = 1e-9, steps: int = 1000, loose: bool = False,
) -> tuple[Floats, float]:  # fmt: skip
    """(l, dual objective) of the E-step: the tables are rows·μ(θ + l). `noisy`: flat counts y.

    `loose`: for learning, where the noise is larger by far than what is left of the objective.
    """
    from scipy.optimize import minimize

    target = noisy / rows
    unit = 1.0 / noise.scale  # l in these units

    def dual(x: Floats) -> tuple[float, Floats]:
        step = unit * x
        log_partition, mu = structure.infer(theta + step)
        value, slope = log_partition - float(step @ target), mu - target
        if noise.kind == "gaussian":
            value += noise.scale**2 / (2 * rows) * float(step @ step)
            slope = slope + noise.scale**2 / rows * step
        return value / unit, slope

    bounds = [(-1.0, 1.0)] * len(noisy) if noise.kind == "laplace" else None
    first = np.zeros_like(noisy) if start is None else np.clip(start / unit, -1, 1) if bounds else start / unit
    found = minimize(
        dual, first, jac=True, method="L-BFGS-B", bounds=bounds,
        options={
            "maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "gtol": tolerance, "ftol": 1e-9 if loose else 1e-15,
        },
    )  # fmt: skip
    return np.asarray(found.x) * unit, float(found.fun) * unit


def steps_for(rows: float, noise: Noise, cells: float) -> float:
    """After how many EM steps to stop; public, from N, the noise and the number of cells of a table alone.

    A step moves potentials by at most 1/b under Laplace noise of scale b; they may come to 0.11(N/b)^0.4 in all. Under
    Gaussian noise as many steps as leave what the ridge of `fit.public_ridge` would. Both were fitted once
    (docs/experiments/graphical.md). Where the noise of a table, b√cells, stands out over its rows,
    fewer.
    """
    rows, spread = max(rows, 1.0), max(noise.spread, 1e-9)
    if noise.kind == "laplace":
        return drowned(spread, rows, cells) * spread * 0.11 * math.pow(rows / spread, 0.4)
    return spread * spread / (rows * public_ridge(spread, rows, cells))


def learned(structure: Structure, noisy: Floats, rows: float, noise: Noise, steps: float, rounds: int = 5) -> Floats:
    """θ after EM from the uniform model, its `steps` taken in at most `rounds` long ones.

    A long step of k is the E-step with noise of scale b/k (of variance σ²/k): k proximal steps in one, which ends
    nearly where they do and takes a fraction of the time.
    """
    rounds = max(1, min(rounds, int(steps)))
    each = steps / rounds
    scale = noise.scale / each if noise.kind == "laplace" else noise.scale / math.sqrt(each)
    theta, step = np.zeros_like(noisy), None
    for _ in range(rounds):
        step, _ = expected(structure, theta, noisy, rows, Noise(noise.kind, scale), step, tolerance=1e-7, loose=True)
        theta = theta + step
    return theta


def nlbp(
    structure: Structure, theta: Floats, noisy: Floats, rows: float, noise: Noise, *, damping: float = 0.02,
    rounds: int = 3000, tolerance: float = 1e-5,
) -> Floats:  # fmt: skip
    """The E-step as in the paper (Algorithm 1, after Sun, Sheldon and Kumar 2015): flat tables n of `rows` rows.

    n ← (1 − α)n + α·N·μ(θ + ∇log p(y | n)), α = `damping`. Under Laplace noise the gradient is a sign, which never
    settles: what converges is the average of n over the later half of the rounds, and that is returned. Stops when
    it moves by less than `tolerance` (ℓ₁ a table, as shares of N) over a quarter of the rounds so far.
    """
    n = rows * structure.infer(theta)[1]
    total, kept, at = np.zeros_like(n), n, 0
    mark, check = np.zeros_like(n), 64
    for i in range(1, rounds + 1):
        gap = n - noisy
        pull = -np.sign(gap) / noise.scale if noise.kind == "laplace" else -gap / noise.scale**2
        n = (1 - damping) * n + damping * rows * structure.infer(theta + pull)[1]
        total += n
        if i == check:
            now = (total - mark) / (i - at)
            moved = float(np.abs(now - kept).sum()) / (rows * len(structure.cliques))
            if i > 64 and moved < tolerance:
                return now
            kept, mark, at, check = now, total.copy(), i, min(2 * check, rounds)
    return kept
