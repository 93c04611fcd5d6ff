"""Learns a model from noisy tables, by the naive and the collective estimate of `stdlib/graphical.jst`.

Tables come as they were measured, one a clique of the model (a group of cliques, where they share a potential), each
carrying its noise (`kernels.noisy_array`); tables that carry none are taken as exact.

*Maximum likelihood* minimises A(θ) − θ·μ̃ + Σ λ_C‖θ_C‖², convex, by L-BFGS. Its solution has marginals μ with μ − μ̃ =
−2λθ: the ridge is what keeps projected noisy tables, which are full of zeros and belong to no distribution, from
driving potentials to −∞. (Bernstein et al., *Differentially private learning of undirected graphical models using
collective graphical models*, ICML 2017, section 3.1).

*Collective graphical models* treat the true tables n as latent: given potentials θ and noisy tables y, the E-step
maximises θ·n + H(n) + log p(y | n), by message passing in their Algorithm 1 and here exactly, by the dual:

    Laplace, scale b:   min over |l|∞ ≤ 1/b of  A(θ + l) − l·y/N
    Gaussian, σ:        min over l of           A(θ + l) − l·y/N + σ²‖l‖²/2N

with n = N·μ(θ + l) at the optimum. The M-step then is free: θ + l has these very marginals. EM run to its end is
maximum likelihood under the noise, which fits noise. Two ways to keep it from that: a prior (`posterior_mode`), and
stopping, as the paper does it (`early_stopped`).

*Stochastic gradients* from noisy batches (section 4.1, after Abadi et al., CCS 2016), the baseline: a step's gradient
of the mean negative log-likelihood is μ(θ) − S/(qN) + 2λθ, S the noisy clique tables of a batch that keeps each row
with probability q, λ the ridge. A row's T has length √E whatever θ is, so S is noised, which does not depend on θ, and
all steps can be measured at once. Steps go by AdaGrad (Duchi, Hazan & Singer, JMLR 2011), θ ← θ − η·g/√Σg² with η =
0.5, and the second half of them is averaged; the ridge is `public_ridge` for the noise of the mean of all batches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.error_laws import laplace_scale, to_power
from jostle.kernels import KernelError
from jostle.kernels.arrays import Floats, along, with_sum
from jostle.kernels.graphical.domain import Structure, TiedStructure
from jostle.kernels.graphical.model import GraphicalModel
from jostle.kernels.linear_algebra import on_one_thread
from jostle.kernels.noisy_array import law_of
from jostle.noise_laws import Gaussian, Laplace


def on_simplex(table: Floats) -> Floats:
    """The nearest table (in ℓ₂) of non-negative cells that sum to 1, of the same shape."""
    flat = np.asarray(table, dtype=np.float64).ravel()
    return with_sum(flat, np.ones(flat.size), 1.0).reshape(np.shape(table))


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
    start: Floats | None = None, *, tolerance: float = 1e-9, loose: bool = False,
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
            "maxiter": 1000, "maxfun": 2000, "maxcor": 20, "gtol": tolerance, "ftol": 1e-9 if loose else 1e-15,
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

    The E-step of a long step of k moves potentials by at most k/b (about k/σ). k is such that this is REACH, or
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


def naive_fit(
    model: GraphicalModel, tables: Sequence[object], rows: object = None, ridge: object = None, project: bool = True
) -> GraphicalModel:
    """Maximum likelihood on noisy tables, each projected on its simplex, with a ridge.

    `rows`: a public or measured N, else read off the tables. `ridge`: λ for every clique, else `public_ridge` of each
    table's noise. `project`: false leaves the tables as they are. Post-processing: it costs nothing.
    """
    structure, n = model.learning, rows_in(tables, rows)
    flat = structure.joined([np.asarray(t) for t in tables])
    noises = [law_of(t) for t in tables]
    marginals, strength = _target(structure, flat, n, noises, ridge, project)
    return model.with_potentials(
        maximum_likelihood(structure, marginals, strength), notes_of("naive", model, noises, n)
    )


def _target(
    structure: Structure | TiedStructure, flat: Floats, rows: float, noises: Sequence[Laplace | Gaussian],
    ridge: object, project: bool,
) -> tuple[Floats, Floats]:  # fmt: skip
    """(marginals μ̃, the ridge of every cell) of the naive estimate."""
    if ridge is not None and not (isinstance(ridge, (int, float)) and 0 < ridge < math.inf):
        raise KernelError(f"a ridge is a positive number, not {ridge}")
    spreads = [laplace_scale(noise) for noise in noises]
    parts = zip(structure.lengths, spreads, strict=True)
    strength = np.concatenate([np.full(k, float(ridge or public_ridge(s, rows, k))) for k, s in parts])
    return project_tables(structure, structure.split(flat), rows, spreads) if project else flat / rows, strength


def cgm_fit(
    model: GraphicalModel, tables: Sequence[object], rows: object = None, steps: Any = None, ridge: object = None
) -> GraphicalModel:
    """Expectation–maximisation over the true tables: from the naive estimate, with a prior (`cgm.posterior_mode`).

    With `steps`, from the uniform model without a prior, stopped after so many (as in the paper); 0: `cgm.steps_for`.
    """
    structure, n = model.learning, rows_in(tables, rows)
    flat = structure.joined([np.asarray(t) for t in tables])
    noises = [law_of(t) for t in tables]
    if len({type(noise) for noise in noises}) != 1:
        raise KernelError("these tables were measured with noise of several kinds: measure them together")
    least = min(noise.scale for noise in noises)
    if least == 0:
        return naive_fit(model, tables, rows, ridge)
    parts = zip(structure.lengths, noises, strict=True)
    relative = np.concatenate([np.full(k, noise.scale / least) for k, noise in parts])
    noise = CellNoise(type(noises[0])(least), relative)
    notes, cells = notes_of("cgm", model, noises, n), float(np.mean(structure.lengths))
    if steps is None:
        marginals, strength = _target(structure, flat, n, noises, ridge, True)
        theta = posterior_mode(structure, flat, n, noise, maximum_likelihood(structure, marginals, strength), cells)
        return model.with_potentials(theta, notes)
    if not (float(steps) == 0 or 1 <= float(steps) < 1e9):
        raise KernelError(f"EM takes at least one step, not {steps}")
    many = float(steps) or steps_for(n, noise, cells)
    return model.with_potentials(early_stopped(structure, flat, n, noise, many), notes | {"steps": many})


def perturbed_model(model: GraphicalModel, perturbed: Mapping[str, Any], rows: float) -> GraphicalModel:
    """The model of potentials that carry noise themselves, `perturbed.potentials` of deviation `perturbed.noise`."""
    notes = {"learned": "output perturbation", "rows": float(rows), "ridge": float(perturbed["ridge"])}
    return model.with_potentials(np.asarray(perturbed["potentials"], dtype=float), notes)


def rows_in(tables: Sequence[Any], rows: object = None) -> float:
    """N: as given (at least 1), or the mean of the tables' totals, those of less noise counting for more."""
    if rows is not None:
        if not isinstance(rows, (int, float)) or not math.isfinite(rows):
            raise KernelError(f"the number of rows is a number, not {rows}")
        return max(1.0, float(rows))
    if not len(tables):
        raise KernelError("without tables the number of rows is not known: give it")
    totals = np.array([float(np.sum(t)) for t in tables])
    weights = np.array([1.0 / (max(laplace_scale(law_of(t)), 1e-9) ** 2 * np.size(t)) for t in tables])
    return max(1.0, float(totals @ weights / weights.sum()))


def notes_of(how: str, model: GraphicalModel, noises: Sequence[Laplace | Gaussian], rows: float) -> dict[str, object]:
    """The notes of a model: its estimator, rows and noise, and a warning where noise dominates. All of it is public."""
    notes: dict[str, object] = {
        "learned": how,
        "rows": rows,
        "noise": max((laplace_scale(n) for n in noises), default=0.0),
    }
    notes["measured"] = [{"mechanism": n.name, "scale": n.scale} for n in noises]
    pairs = zip(noises, model.learning.lengths, strict=True)
    if noises and all(signal_share(laplace_scale(noise), rows, cells) < 1 for noise, cells in pairs):
        notes["warning"] = "the noise is as large as the tables: this model is near uniform"
    return notes


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
    tables = max(1, len(structure.lengths))
    n = rows_in((), float(sums.sum(axis=1).mean()) / (rate * tables) if rows is None else rows)
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
