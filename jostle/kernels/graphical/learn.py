"""Learns a model from noisy tables, by the naive and the collective estimate of `stdlib/graphical.jst`.

Tables come as they were measured, one a clique of the model (a group of cliques, where they share a potential), each
carrying its noise (`kernels.noisy_array`); tables that carry none are taken as exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jostle.error_laws import laplace_scale
from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.graphical import cgm
from jostle.kernels.graphical.fit import maximum_likelihood, project_tables, public_ridge, signal_share
from jostle.kernels.graphical.model import GraphicalModel
from jostle.kernels.graphical.parameter_tying import TiedStructure
from jostle.kernels.graphical.structure import Structure
from jostle.kernels.noisy_array import law_of
from jostle.noise_laws import Gaussian, Laplace


def naive_fit(
    model: GraphicalModel, tables: Sequence[Any], rows: object = None, ridge: object = None, project: bool = True
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
    structure: Structure | TiedStructure,
    flat: Floats,
    rows: float,
    noises: Sequence[Laplace | Gaussian],
    ridge: object,
    project: bool,
) -> tuple[Floats, Floats]:
    """(marginals μ̃, the ridge of every cell) of the naive estimate."""
    if ridge is not None and not (isinstance(ridge, (int, float)) and 0 < ridge < math.inf):
        raise KernelError(f"a ridge is a positive number, not {ridge}")
    strengths = [
        float(ridge) if ridge is not None else public_ridge(laplace_scale(noise), rows, cells)
        for noise, cells in zip(noises, structure.lengths, strict=True)
    ]
    strength = np.concatenate([np.full(k, s) for k, s in zip(structure.lengths, strengths, strict=True)])
    spreads = [laplace_scale(noise) for noise in noises]
    return project_tables(structure, structure.split(flat), rows, spreads) if project else flat / rows, strength


def cgm_fit(
    model: GraphicalModel, tables: Sequence[Any], rows: Any = None, steps: Any = None, ridge: Any = None
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
    noise = cgm.CellNoise(type(noises[0])(least), relative)
    notes, cells = notes_of("cgm", model, noises, n), float(np.mean(structure.lengths))
    if steps is None:
        marginals, strength = _target(structure, flat, n, noises, ridge, True)
        theta = cgm.posterior_mode(structure, flat, n, noise, maximum_likelihood(structure, marginals, strength), cells)
        return model.with_potentials(theta, notes)
    if not (float(steps) == 0 or 1 <= float(steps) < 1e9):
        raise KernelError(f"EM takes at least one step, not {steps}")
    many = float(steps) or cgm.steps_for(n, noise, cells)
    return model.with_potentials(cgm.early_stopped(structure, flat, n, noise, many), notes | {"steps": many})


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


def notes_of(how: str, model: GraphicalModel, noises: Sequence[Laplace | Gaussian], rows: float) -> dict[str, Any]:
    """The notes of a model: its estimator, rows and noise, and a warning where noise dominates. All of it is public."""
    notes: dict[str, Any] = {
        "learned": how,
        "rows": rows,
        "noise": max((laplace_scale(n) for n in noises), default=0.0),
    }
    notes["measured"] = [{"mechanism": n.name, "scale": n.scale} for n in noises]
    pairs = zip(noises, model.learning.lengths, strict=True)
    if noises and all(signal_share(laplace_scale(noise), rows, cells) < 1 for noise, cells in pairs):
        notes["warning"] = "the noise is as large as the tables: this model is near uniform"
    return notes
