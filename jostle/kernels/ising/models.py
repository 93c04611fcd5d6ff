"""Ising models as public values: synthetic truths, models of noisy moments, and models of node regressions.

p(x) ∝ exp(Σ_{i<j} A_ij x_i x_j + Σ_i θ_i x_i) over x in {−1, 1}^p; a column of 0 and 1 stands for −1 and 1. The width
is λ = max_i Σ_j |A_ij| + |θ_i|. Nothing here has seen a row: all is made of released numbers.

The common base of Ising models and pairwise fields: parameters for pairs of variables.

An Ising model is the pairwise field of two values whose centred tables are ±A_ij, so that how wide a model is, which
pairs are its edges, how far two models are apart and how rows are drawn mean the same for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.ising.fit import (
    EXACT,
    PRIOR,
    Chains,
    log_shares,
    newton_fit,
    parameter_arrays,
    parameter_vector,
    random_signs,
    sample_states,
    state_probabilities,
    stochastic_fit,
)

SHOWN = 12  # pairs of a printed model


@dataclass(frozen=True)
class Field(ABC):
    """A field over named variables; what it is made of is for its kind to say."""

    names: tuple[str, ...]

    @property
    @abstractmethod
    def pulls(self) -> Floats:
        """All parameters of pairs, (p, p) or (p, p, k, k), symmetric."""

    @property
    @abstractmethod
    def widths(self) -> Floats:
        """For each variable the most that its neighbours and its own parameter can pull at it together."""

    @abstractmethod
    def sample_array(self, rows: int, seed: int = 0) -> Floats:
        """(rows, p): independent rows, as the model has its values."""

    @abstractmethod
    def log_likelihood(self, rows: object) -> float:
        """The mean log-probability of public rows, as the model has its values."""

    @property
    def shared_fields(self) -> dict[str, object]:
        """The fields that a program can read of both kinds of model."""
        methods: dict[str, Callable[..., object]] = {
            "edges": self.edges, "error": self.error, "sample": self.sample, "log_likelihood": self.log_likelihood,
        }  # fmt: skip
        return {"names": list(self.names), "width": self.width, **methods}

    @property
    def width(self) -> float:
        """λ, the largest of `widths`."""
        return float(self.widths.max())

    def edges(self, threshold: float) -> list[list[str]]:
        """The pairs of which some parameter reaches `threshold`: the structure, right where none is off by half of the
        smallest true one and that half is the threshold."""
        p = len(self.names)
        strongest = np.abs(self.pulls).reshape(p, p, -1).max(axis=2)
        pairs = zip(*np.triu_indices(p, 1), strict=True)
        return [[self.names[i], self.names[j]] for i, j in pairs if strongest[i, j] >= threshold]

    def summary(self, what: str, of_pairs: str) -> str:
        """What people read: `what` it is, then the strongest pairs and, of each, the largest number, `of_pairs`."""
        p = len(self.names)
        pulls = self.pulls.reshape(p, p, -1)
        single = pulls.shape[2] == 1  # else the sign is that of one entry of many, and is left out
        largest = pulls[:, :, 0] if single else np.abs(pulls).max(axis=2)
        pairs = [(i, j) for i, j in zip(*np.triu_indices(p, 1), strict=True) if largest[i, j] != 0]
        if not pairs:
            return f"{what}, no pairs"
        pairs.sort(key=lambda pair: -abs(largest[pair]))
        long, form = max(map(len, self.names)), "+.3f" if single else ".3f"
        lines = [f"    {self.names[i]:<{long}}  {self.names[j]:<{long}}  {largest[i, j]:{form}}" for i, j in pairs]
        more = [f"    … and {len(pairs) - SHOWN} weaker pairs"] if len(pairs) > SHOWN else []
        return "\n".join([f"{what}; {of_pairs}:", *lines[:SHOWN], *more])

    def error(self, other: object) -> float:
        """The largest difference of a parameter of a pair."""
        if not isinstance(other, Field) or other.pulls.shape != self.pulls.shape:
            raise KernelError("only models of one kind over as many variables and values can be compared")
        return float(np.abs(self.pulls - other.pulls).max())

    def sample(self, rows: int, seed: int = 0) -> list[list[float]]:
        """Rows as lists: synthetic, and free."""
        return self.sample_array(rows, seed).tolist()  # type: ignore[no-any-return]


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
    def jostle_fields(self) -> dict[str, object]:
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
        return self.summary(head, "its couplings, of x·y where both are −1 or 1")


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
