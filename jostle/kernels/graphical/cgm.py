"""Learning by inference of the true tables: collective graphical models within EM.

Bernstein et al. (ICML 2017) treat the true tables n as latent: given potentials θ and noisy tables y, the E-step
maximises θ·n + H(n) + log p(y | n), by message passing in their Algorithm 1 and here exactly, by the dual:

    Laplace, scale b:   min over |l|∞ ≤ 1/b of  A(θ + l) − l·y/N
    Gaussian, σ:        min over l of           A(θ + l) − l·y/N + σ²‖l‖²/2N

with n = N·μ(θ + l) at the optimum. The M-step then is free: θ + l has these very marginals. Each step is a proximal
one, and EM run to its end is maximum likelihood under the noise, which fits noise. Two ways to keep it from that:

* a prior: `posterior_mode` takes EM steps from the naive estimate towards the mode of the posterior of θ under a normal
  prior, which is a ridge in the M-step;
* stopping, as the paper does it: `early_stopped` takes `steps_for` many steps from the uniform model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jostle.error_laws import laplace_scale, to_power
from jostle.kernels.arrays import Floats
from jostle.kernels.graphical.fit import maximum_likelihood, public_ridge, signal_share
from jostle.kernels.graphical.parameter_tying import TiedStructure
from jostle.kernels.graphical.structure import Structure
from jostle.noise_laws import Gaussian, Laplace
from jostle.threads import on_one_thread


@dataclass(frozen=True, eq=False)
class CellNoise:
    """The law of the noise on every cell; where cells differ, how many times that each has (`relative`)."""

    law: Laplace | Gaussian
    relative: Floats | float = 1.0

    @property
    def scale(self) -> float:
        return self.law.scale

    def power(self, steps: float) -> CellNoise:
        """The noise with which one E-step is as long as so many: its density to that power."""
        return CellNoise(to_power(self.law, steps), self.relative)


def e_step(
    structure: Structure | TiedStructure, theta: Floats, noisy: Floats, rows: float, noise: CellNoise,
    start: Floats | None = None, *, tolerance: float = 1e-9, steps: int = 1000, loose: bool = False,
) -> tuple[Floats, float]:  # fmt: skip
    """(l, dual objective) of the E-step: the tables are rows·μ(θ + l). `noisy`: flat counts y.

    `loose`: for learning, where the noise is larger by far than what is left of the objective.
    """
    from scipy.optimize import Bounds, minimize

    target = noisy / rows
    unit = 1.0 / noise.scale  # l in these units
    scales = noise.scale * np.asarray(noise.relative, dtype=float)

    def dual(x: Floats) -> tuple[float, Floats]:
        step = unit * x
        log_partition, mu = structure.infer(theta + step)
        value, slope = log_partition - float(step @ target), mu - target
        if isinstance(noise.law, Gaussian):
            value += float((scales * step) @ (scales * step)) / (2 * rows)
            slope = slope + scales**2 / rows * step
        return value / unit, slope

    reach = np.broadcast_to(noise.scale / scales, noisy.shape)
    bounds = Bounds(-reach, reach) if isinstance(noise.law, Laplace) else None
    first = np.zeros_like(noisy) if start is None else start / unit
    if bounds is not None:
        first = np.clip(first, -reach, reach)
    optimum = on_one_thread(minimize)(
        dual, first, jac=True, method="L-BFGS-B", bounds=bounds,
        options={
            "maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "gtol": tolerance, "ftol": 1e-9 if loose else 1e-15,
        },
    )  # fmt: skip
    return np.asarray(optimum.x) * unit, float(optimum.fun) * unit


def steps_for(rows: float, noise: CellNoise, cells: float) -> float:
    """After how many EM steps to stop; public, from N, the noise and the number of cells of a table alone.

    A step moves potentials by at most 1/b under Laplace noise of scale b; they may come to 0.11(N/b)^0.4 in all. Under
    Gaussian noise as many steps as leave what the ridge of `fit.public_ridge` would. Both were fitted once
    (docs/experiments/graphical.md). Where the noise of a table, b√cells, stands out over its rows,
    fewer.
    """
    rows, spread = max(rows, 1.0), max(laplace_scale(noise.law), 1e-9)
    if isinstance(noise.law, Laplace):
        return signal_share(spread, rows, cells) * spread * 0.11 * math.pow(rows / spread, 0.4)
    return spread * spread / (rows * public_ridge(spread, rows, cells))


def early_stopped(
    structure: Structure | TiedStructure, noisy: Floats, rows: float, noise: CellNoise, steps: float, rounds: int = 5
) -> Floats:
    """θ after EM from the uniform model, its `steps` taken in at most `rounds` long ones.

    A long step of k is the E-step with noise of scale b/k (of variance σ²/k): k proximal steps in one, which ends
    nearly where they do and takes a fraction of the time.
    """
    rounds = max(1, min(rounds, int(steps)))
    long = noise.power(steps / rounds)
    theta, step = np.zeros_like(noisy), None
    for _ in range(rounds):
        step, _ = e_step(structure, theta, noisy, rows, long, step, tolerance=1e-7, loose=True)
        theta = theta + step
    return theta


VARIANCE, REACH = 2.0, 0.1
LONG_STEPS = ((100.0, 0), (10.0, 1), (0.0, 2))
"""(clearness, steps): so many steps where the mean cell is more than so many times the noise."""


def posterior_mode(
    structure: Structure | TiedStructure, noisy: Floats, rows: float, noise: CellNoise, start: Floats, cells: float
) -> Floats:
    """θ after LONG_STEPS of EM from `start`, the naive estimate, with a normal prior on potentials, of VARIANCE.

    The E-step of a long step of k moves potentials by at most k/b (about k/σ), and k is such that this is REACH, or
    less where tables of so many `cells` are drowned in their noise. Its M-step is the fit to what was expected,
    with k times the prior. The constants are public and were chosen once, on truths of other seeds than are judged by
    (docs/experiments/graphical.md).
    """
    many = max(1.0, REACH * noise.scale * signal_share(laplace_scale(noise.law), rows, cells))
    long = noise.power(many)
    ridge, clear = many / (2 * VARIANCE * rows), rows / (noise.scale * cells)
    theta, step = start, None
    for _ in range(next(steps for above, steps in LONG_STEPS if clear > above)):
        step, _ = e_step(structure, theta, noisy, rows, long, step, tolerance=1e-7, loose=True)
        theta = maximum_likelihood(structure, structure.infer(theta + step)[1], ridge, theta, tolerance=1e-6)
    return theta
