"""Ising models as public values: synthetic truths, models of noisy moments, and models of node regressions.

p(x) ∝ exp(Σ_{i<j} A_ij x_i x_j + Σ_i θ_i x_i) over x in {−1, 1}^p; a column of 0 and 1 stands for −1 and 1. The width
is λ = max_i Σ_j |A_ij| + |θ_i|. It is the pairwise field of two values whose centred tables are ±A_ij: `Field` is the
base of both.

The statistics are products of x over a set S of one or two variables. Over all states both the energy and every
moment E[Π_S x] are one Walsh–Hadamard transform of 2^p numbers, S a bit mask. The covariance of the statistics S and S'
is M[S xor S'] − M[S]·M[S'], from the same transform, so that Newton's method costs no more than the moments do. Up to
EXACT variables; beyond, moments come from Gibbs chains that go on from step to step (persistent contrastive divergence:
Tieleman 2008), seeded, with steps that shrink.

Noisy moments may be those of no distribution, and then the likelihood has no maximum. A ridge (s²/2)·‖(A, θ)‖²/PRIOR²
with s² the variance of a moment's error, 1/n for sampling and the noise's, is what a normal prior of deviation PRIOR on
each parameter asks for: next to nothing where rows are many, and it goes to independence where noise is all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.kernels import KernelError, Model, members
from jostle.kernels.arrays import Floats, Ints, Rows

MOST_ROWS = 10**7
"""The most rows of one sample."""


def sample_states(probabilities: Floats, rows: int, seed: int) -> Ints:
    """`rows` independent numbers of states, drawn by their probabilities."""
    if not 1 <= rows <= MOST_ROWS:
        raise KernelError(f"a sample has 1 to {MOST_ROWS:,} rows")
    rng = np.random.default_rng(int(seed))
    edges = np.cumsum(probabilities)
    states = np.searchsorted(edges, rng.random(int(rows)) * edges[-1], side="right")
    return np.asarray(np.minimum(states, len(edges) - 1), dtype=np.int64)


def random_signs(count: int, seed: int) -> Floats:
    """`count` numbers of −1 and 1."""
    return np.asarray(np.random.default_rng(int(seed)).integers(0, 2, int(count)) * 2.0 - 1.0, dtype=np.float64)


class Chains:
    """Gibbs sampling of an Ising model in many chains at once, from independent fair signs."""

    def __init__(self, chains: int, variables: int, seed: int) -> None:
        self._rng = np.random.default_rng(int(seed))
        self.states: Floats = np.asarray(self._rng.integers(0, 2, (chains, variables)) * 2.0 - 1.0, dtype=np.float64)

    def sweep(self, couplings: Floats, fields: Floats, times: int = 1) -> Floats:
        """Each variable of each chain drawn anew given the others, `times` over; (chains, variables) of −1 and 1."""
        x = self.states
        for _ in range(times):
            uniform = self._rng.random(x.shape)
            for i in range(x.shape[1]):
                pull = x @ couplings[i] + fields[i]
                x[:, i] = np.where(uniform[:, i] < 0.5 * (1.0 + np.tanh(pull)), 1.0, -1.0)
        return x


EXACT = 20
"""Variables up to which all states are listed: 2^20 of them take some tenths of a second a step."""
PRIOR = 0.5
STEPS = 60  # of Newton's method, at the very most; it takes about five
CHAINS, ROUNDS = 2000, 400


def walsh_hadamard(values: Floats) -> Floats:
    """Σ_x values[x]·(−1)^{|x and S|} for each mask S: the Walsh–Hadamard transform of 2^p numbers."""
    sums, half = values.copy(), 1
    while half < len(sums):
        sums = sums.reshape(-1, 2, half)
        sums = np.stack((sums[:, 0] + sums[:, 1], sums[:, 0] - sums[:, 1]), axis=1).reshape(-1)
        half *= 2
    return np.asarray(sums)


def masks(variables: int) -> Ints:
    """The bit masks of the statistics: the p variables, then their pairs i < j in order."""
    first, second = np.triu_indices(variables, 1)
    bits = 1 << np.arange(variables, dtype=np.int64)
    return np.concatenate([bits, bits[first] | bits[second]])


def parameter_vector(couplings: Floats, fields: Floats) -> Floats:
    """The parameters in the order of the statistics."""
    return np.concatenate([fields, couplings[np.triu_indices(len(fields), 1)]])


def parameter_arrays(parameters: Floats, variables: int) -> tuple[Floats, Floats]:
    """Couplings (p, p), symmetric, and fields (p,)."""
    couplings = np.zeros((variables, variables))
    couplings[np.triu_indices(variables, 1)] = parameters[variables:]
    return couplings + couplings.T, parameters[:variables].copy()


def state_probabilities(parameters: Floats, variables: int) -> tuple[Floats, float]:
    """The probability of each of 2^p states (bit i of a state's number is 1 where x_i = −1), and log Z."""
    places = np.zeros(2**variables)
    places[masks(variables)] = parameters
    energies = walsh_hadamard(places)
    most = float(energies.max())
    weights = np.exp(energies - most)
    total = float(weights.sum())
    return weights / total, most + float(np.log(total))


def newton_fit(moments: Floats, variables: int, ridge: float) -> Floats:
    """The parameters with the largest penalised likelihood for these moments, exact; `ridge` in front of ‖·‖²/2.

    Newton's method with halved steps: the objective log Z(θ) − θ·m + (ridge/2)‖θ‖² is strictly convex.
    """
    where = masks(variables)
    crossed = where[:, None] ^ where[None, :]
    theta = np.zeros(len(where))

    def objective(at: Floats) -> tuple[float, Floats]:
        probabilities, log_z = state_probabilities(at, variables)
        return log_z - float(at @ moments) + 0.5 * ridge * float(at @ at), probabilities

    value, probabilities = objective(theta)
    for _ in range(STEPS):
        all_moments = walsh_hadamard(probabilities)
        expectation = all_moments[where]
        gradient = expectation - moments + ridge * theta
        if float(np.abs(gradient).max()) < 1e-10:
            break
        curvature = all_moments[crossed] - np.outer(expectation, expectation)
        curvature[np.diag_indices_from(curvature)] += ridge + 1e-12
        step = np.linalg.solve(curvature, gradient)
        size, slope = 1.0, float(gradient @ step)
        while size > 1e-10:
            candidate, there = objective(theta - size * step)
            if candidate <= value - 1e-4 * size * slope + 1e-14:
                break
            size /= 2
        if size <= 1e-10:
            break
        theta, value, probabilities = theta - size * step, candidate, there
    return theta


def stochastic_fit(moments: Floats, variables: int, ridge: float, seed: int = 0) -> Floats:
    """Fits more than EXACT variables by stochastic ascent, with moments from persistent Gibbs chains.

    Each parameter goes by the scale of its own statistic's variance; the second half of the steps is averaged. The
    error of simulation is about 1/√(CHAINS·ROUNDS/2), a few thousandths.
    """
    first, second = np.triu_indices(variables, 1)
    means = moments[:variables]
    theta = np.concatenate([np.arctanh(np.clip(means, -0.99, 0.99)), np.zeros(len(first))])
    scale = np.maximum(1.0 - moments**2, 0.05) + ridge
    chains = Chains(CHAINS, variables, seed)
    total, many = np.zeros_like(theta), 0
    for t in range(ROUNDS):
        couplings, fields = parameter_arrays(theta, variables)
        x = chains.sweep(couplings, fields)
        products = (x.T @ x)[first, second] / len(x)
        expectation = np.concatenate([x.mean(axis=0), products])
        rate = 0.6 if t < ROUNDS // 4 else 0.6 * ROUNDS / (4 * t)
        theta = np.clip(theta - rate * (expectation - moments + ridge * theta) / scale, -5.0, 5.0)
        if t >= ROUNDS // 2:
            total += theta
            many += 1
    return total / many


def log_shares(sums: object, values: Sequence[int], noise: float) -> list[Floats]:
    """Centred log-probabilities of each variable's values, from sums of `indicators` without pairs.

    Counts are kept from below half a row or the noise's deviation, whichever is more: less may be none.
    """
    counts = np.asarray(sums, dtype=float)
    shares, at = [], 1
    for many in values:
        logs = np.log(np.maximum(counts[at : at + many], max(0.5, float(noise))))
        shares.append(logs - logs.mean())
        at += many
    return shares


SHOWN = 12  # pairs of a printed model


@dataclass(frozen=True)
class Field(Model, ABC):
    """A field over named variables; what it is made of is for its kind to say."""

    names: tuple[str, ...]

    jostle_members = members("names width edges error sample log_likelihood")

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
    def width(self) -> float:
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


@dataclass(frozen=True)
class IsingModel(Field):
    """`couplings` (p, p) symmetric with a zero diagonal, `fields` (p,), and the `method` that found them."""

    couplings: Floats
    fields: Floats
    method: str = "made up"

    jostle_kind = "an Ising model"

    jostle_members = Field.jostle_members | members("couplings fields method moments")

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

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "ising", "names": list(self.names), "couplings": self.couplings.tolist(),
            "fields": self.fields.tolist(), "method": self.method,
        }  # fmt: skip

    def __str__(self) -> str:
        head = f"Ising model of {len(self.names)} variables, width {self.width:.2f} ({self.method})"
        return self.summary(head, "its couplings, of x·y where both are −1 or 1")


def ising_model(couplings: object, fields: object = None, names: Any = None) -> IsingModel:
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
    ring = [(i, (i + 1) % p) for i in range(p)]
    return ring + [(i, i + p // 2) for i in range(0, p // 2, 2) if p > 4]


def ising_fit(rows: Rows, sums: object, noise: float) -> IsingModel:
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


def ising_independent_fit(rows: Rows, sums: object, noise: float) -> IsingModel:
    """No couplings: the fields of noisy numbers of rows in all and of each variable's −1 and 1."""
    fields = [half[1] for half in log_shares(sums, [2] * len(rows["columns"]), noise)]
    p = len(fields)
    return IsingModel(tuple(rows["columns"]), np.zeros((p, p)), np.array(fields), "variables apart")


def ising_of_nodes(rows: Rows, nodes: Sequence[object]) -> IsingModel:
    """The model of p node regressions w_i (Klivans & Meka 2017): A_ij is half of w_ij, averaged with its transpose.

    In node i's regression the constant stands in the place of x_i itself: its half is the field.
    """
    halves = np.array([np.asarray(w, dtype=float) for w in nodes]) / 2
    fields = np.diag(halves).copy()
    np.fill_diagonal(halves, 0.0)
    return IsingModel(tuple(rows["columns"]), (halves + halves.T) / 2, fields, "Frank–Wolfe")
