"""Pairwise fields by their moments: maximum likelihood from noisy tables of all pairs, over all listed states.

What is minimised is log Z(W, θ) − Σ W·m − Σ θ·m + (ridge/2)‖(W, θ)‖², convex, by L-BFGS: its slope is the model's
tables of one and two variables less the noisy ones. The ridge is that of `fit` (a normal prior of deviation PRIOR on
each parameter, for moments that err by sampling and by noise), and makes up for tables that no distribution has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.ising.fit import PRIOR
from jostle.kernels.ising.independent import log_shares
from jostle.kernels.ising.pairwise import PairwiseModel, alphabets, centre_table, energies, require_listable

Facts = Mapping[str, Any]


def pairwise_room(rows: Facts) -> list[int]:
    """The number of values of each column. Raises `ValueError` where the joint states are too many to list."""
    values = alphabets(rows)
    require_listable(values)
    return values


def pairwise_fit(rows: Facts, sums: object, noise: float) -> PairwiseModel:
    """The model of noisy sums of `indicators` with pairs, and the deviation of their noise; exact inference."""
    from scipy.optimize import minimize

    values = pairwise_room(rows)
    totals = np.asarray(sums, dtype=float)
    n = max(float(totals[0]), 1.0)
    moments = totals[1:] / n
    ridge = ((float(noise) / n) ** 2 + 1.0 / (n * max(values) ** 2)) / PRIOR**2

    def objective(parameters: Floats) -> tuple[float, Floats]:
        energy = energies(values, *parameter_arrays(parameters, values))
        most = float(energy.max())
        weights = np.exp(energy - most)
        total = float(weights.sum())
        slope = marginals(weights / total) - moments + ridge * parameters
        value = most + float(np.log(total)) - float(parameters @ moments)
        return value + 0.5 * ridge * float(parameters @ parameters), slope

    optimum = minimize(
        objective, np.zeros(len(moments)), jac=True, method="L-BFGS-B",
        options={"maxiter": 500, "gtol": 1e-7, "ftol": 1e-12},
    )  # fmt: skip
    tables, fields = identifiable(*parameter_arrays(optimum.x, values), values)
    return PairwiseModel(tuple(rows["columns"]), tuple(values), tables, fields, "moments")


def pairwise_independent_fit(rows: Facts, sums: object, noise: float) -> PairwiseModel:
    """No tables: the fields of noisy counts of each variable's values."""
    values = alphabets(rows)
    p, k = len(values), max(values)
    fields = np.zeros((p, k))
    for i, logs in enumerate(log_shares(sums, values, noise)):
        fields[i, : values[i]] = logs
    return PairwiseModel(tuple(rows["columns"]), tuple(values), np.zeros((p, p, k, k)), fields, "variables apart")


def marginals(probabilities: Floats) -> Floats:
    """The tables of one variable, then those of two i < j, of an array of probabilities: flat, as of `indicators`."""
    p = probabilities.ndim
    axes = set(range(p))
    tables = [probabilities.sum(axis=tuple(axes - {i})) for i in range(p)]
    for i in range(p):
        # all variables but i and those after it are summed out once for all pairs of i
        rest = probabilities.sum(axis=tuple(range(i)))
        tables += [rest.sum(axis=tuple(set(range(1, p - i)) - {j - i})).ravel() for j in range(i + 1, p)]
    return np.concatenate(tables)


def parameter_arrays(parameters: Floats, values: Sequence[int]) -> tuple[Floats, Floats]:
    """Tables (p, p, k, k), those of i < j alone, and fields (p, k)."""
    p, k = len(values), max(values)
    tables, fields, at = np.zeros((p, p, k, k)), np.zeros((p, k)), 0
    for i, many in enumerate(values):
        fields[i, :many] = parameters[at : at + many]
        at += many
    for i in range(p):
        for j in range(i + 1, p):
            size = values[i] * values[j]
            tables[i, j, : values[i], : values[j]] = parameters[at : at + size].reshape(values[i], values[j])
            at += size
    return tables, fields


def identifiable(tables: Floats, fields: Floats, values: Sequence[int]) -> tuple[Floats, Floats]:
    """Makes parameters identifiable: tables are centred and symmetric, and their margins move into the fields."""
    result, own = np.zeros_like(tables), fields.copy()
    p = len(values)
    for i in range(p):
        for j in range(i + 1, p):
            used = tables[i, j, : values[i], : values[j]]
            result[i, j] = centre_table(tables[i, j], values[i], values[j])
            result[j, i] = result[i, j].T
            own[i, : values[i]] += used.mean(axis=1)
            own[j, : values[j]] += used.mean(axis=0)
    for i, many in enumerate(values):
        own[i, :many] -= own[i, :many].mean()
    return result, own
