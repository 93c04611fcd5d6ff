"""Ising models as public values: synthetic truths, models of noisy moments, and models of node regressions.

p(x) ∝ exp(Σ_{i<j} A_ij x_i x_j + Σ_i θ_i x_i) over x in {−1, 1}^p; a column of 0 and 1 stands for −1 and 1. The width
is λ = max_i Σ_j |A_ij| + |θ_i|. Nothing here has seen a row: all is made of released numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.ising.draws import Chains, random_signs, sample_states
from jostle.kernels.ising.field import Field
from jostle.kernels.ising.fit import (
    EXACT,
    PRIOR,
    newton_fit,
    parameter_arrays,
    parameter_vector,
    state_probabilities,
    stochastic_fit,
)
from jostle.kernels.ising.independent import log_shares

MOST_VARIABLES = 2**12
"""Of a ring."""

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class IsingModel(Field):
    """`couplings` (p, p) symmetric with a zero diagonal, `fields` (p,), and the `method` that found them."""

    couplings: Floats
    fields: Floats
    method: str = "made up"

    jostle_kind = "an Ising model"

    @property
    def jostle_fields(self) -> dict[str, Any]:
        return self.shared_fields | {
            "couplings": self.couplings.tolist(), "fields": self.fields.tolist(), "method": self.method,
            "moments": lambda: self.moments().tolist(),
        }  # fmt: skip

    @property
    def pulls(self) -> Floats:
        return self.couplings

    @property
    def widths(self) -> Floats:
        """Σ_j |A_ij| + |θ_i| for each i."""
        return np.asarray(np.abs(self.couplings).sum(axis=1) + np.abs(self.fields))

    def sample_array(self, rows: int, seed: int = 0) -> Floats:
        """(rows, p) of −1 and 1: exactly where all states can be listed, else by Gibbs chains of 200 sweeps."""
        p = len(self.names)
        if p > EXACT:
            return Chains(int(rows), p, seed).sweep(self.couplings, self.fields, 200).copy()
        states = sample_states(self._states[0], rows, seed)
        return np.stack([1.0 - 2.0 * ((states >> i) & 1) for i in range(p)], axis=1)

    def moments(self) -> Floats:
        """(p, p): E[x_i x_j], with E[x_i] on the diagonal; exact, up to EXACT variables."""
        from jostle.kernels.ising.fit import masks, walsh_hadamard

        p = len(self.names)
        moments = walsh_hadamard(self._states[0])[masks(p)]
        pairs, means = parameter_arrays(moments, p)
        return pairs + np.diag(means)

    def log_likelihood(self, rows: object) -> float:
        """The mean log-probability of public rows of −1 and 1; up to EXACT variables."""
        x = np.asarray(rows, dtype=float)
        energy = 0.5 * np.einsum("ni,ij,nj->n", x, self.couplings, x) + x @ self.fields
        return float(energy.mean() - self._states[1])

    @cached_property
    def _states(self) -> tuple[Floats, float]:
        if len(self.names) > EXACT:
            raise KernelError(f"{len(self.names)} variables have too many states to list; at most {EXACT}")
        return state_probabilities(parameter_vector(self.couplings, self.fields), len(self.names))

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "ising", "names": list(self.names), "couplings": self.couplings.tolist(),
            "fields": self.fields.tolist(), "method": self.method,
        }  # fmt: skip

    def __str__(self) -> str:
        head = f"Ising model of {len(self.names)} variables, width {self.width:.2f} ({self.method})"
        return self.told(head, "its couplings, of x·y where both are −1 or 1")


def ising_model(couplings: Any, fields: Any = None, names: Any = None) -> IsingModel:
    """A model of one's own: a symmetric matrix of couplings, whose diagonal does not count, and fields (0)."""
    a = np.asarray(couplings, dtype=float)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not np.isfinite(a).all() or not np.allclose(a, a.T):
        raise KernelError("couplings are a symmetric matrix of numbers")
    theta = np.zeros(len(a)) if fields is None else np.asarray(fields, dtype=float)
    labels = [f"x{i + 1}" for i in range(len(a))] if names is None else list(names)
    if theta.shape != (len(a),) or len(labels) != len(a):
        raise KernelError("there is one field and one name for each variable")
    np.fill_diagonal(a := a.copy(), 0.0)
    return IsingModel(tuple(labels), a, theta)


def ring_with_chords(variables: int, strength: float = 0.25, seed: int = 0) -> IsingModel:
    """The truth of the experiments: a ring, and from every other node of one half a chord across; |A| = `strength`.

    The signs are drawn by `seed`; no fields. Its width is at most 3·strength.
    """
    p = int(variables)
    if not 3 <= p <= MOST_VARIABLES:
        raise KernelError(f"a ring has 3 to {MOST_VARIABLES:,} variables")
    pairs = ring_pairs(p)
    couplings = np.zeros((p, p))
    for (i, j), sign in zip(pairs, random_signs(len(pairs), seed), strict=True):
        couplings[i, j] = couplings[j, i] = float(strength) * sign
    return ising_model(couplings)


def ring_pairs(p: int) -> list[tuple[int, int]]:
    """The edges of a ring with chords."""
    ring = [(i, (i + 1) % p) for i in range(p)]
    return ring + [(i, i + p // 2) for i in range(0, p // 2, 2) if p > 4]


# Learned -------------------------------------------------------------------------------------------


def ising_fit(rows: Facts, sums: object, noise: float) -> IsingModel:
    """The model of noisy sums over rows: 1, then x_i, then x_i x_j for i < j, and the deviation of their noise.

    Exact maximum likelihood up to EXACT variables, by Gibbs chains above; see `fit` for the ridge.
    """
    p = len(rows["columns"])
    totals = np.asarray(sums, dtype=float)
    n = max(float(totals[0]), 1.0)
    moments = np.clip(totals[1:] / n, -1.0, 1.0)
    ridge = ((float(noise) / n) ** 2 + 1.0 / n) / PRIOR**2
    find = newton_fit if p <= EXACT else stochastic_fit
    couplings, fields = parameter_arrays(find(moments, p, ridge), p)
    method = "moments" if p <= EXACT else "moments and Gibbs chains"
    return IsingModel(tuple(rows["columns"]), couplings, fields, method)


def ising_independent_fit(rows: Facts, sums: object, noise: float) -> IsingModel:
    """No couplings: the fields of noisy numbers of rows in all and of each variable's −1 and 1."""
    fields = [half[1] for half in log_shares(sums, [2] * len(rows["columns"]), noise)]
    p = len(fields)
    return IsingModel(tuple(rows["columns"]), np.zeros((p, p)), np.array(fields), "variables apart")


def ising_of_nodes(rows: Facts, nodes: Sequence[Any]) -> IsingModel:
    """The model of p node regressions w_i (Klivans & Meka 2017): A_ij is half of w_ij, averaged with its transpose.

    In node i's regression the constant stands in the place of x_i itself: its half is the field.
    """
    halves = np.array([np.asarray(w, dtype=float) for w in nodes]) / 2
    fields = np.diag(halves).copy()
    np.fill_diagonal(halves, 0.0)
    return IsingModel(tuple(rows["columns"]), (halves + halves.T) / 2, fields, "Frank–Wolfe")
