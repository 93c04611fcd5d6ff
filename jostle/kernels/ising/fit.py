"""Ising models by their moments: exact inference over all 2^p states, and maximum likelihood from noisy moments.

p(x) ∝ exp(Σ_{i<j} A_ij x_i x_j + Σ_i θ_i x_i), x in {−1, 1}^p. The statistics are products of x over a set S of one or
two variables, and over all states both the energy and every moment E[Π_S x] are one Walsh–Hadamard transform of 2^p
numbers, S a bit mask. The covariance of the statistics S and S' is M[S xor S'] − M[S]·M[S'], from the same transform,
so that Newton's method costs no more than the moments do. Up to EXACT variables; beyond, moments come from Gibbs
chains that go on from step to step (persistent contrastive divergence: Tieleman 2008), seeded, with steps that shrink.

Noisy moments may be those of no distribution, and then the likelihood has no maximum. A ridge (s²/2)·‖(A, θ)‖²/PRIOR²
with s² the variance of a moment's error, 1/n for sampling and the noise's, is what a normal prior of deviation PRIOR
on each parameter asks for: next to nothing where rows are many, and it goes to independence where noise is all.

Seeded sampling for Ising and pairwise models: rows of public models, and the Gibbs chains that fit large ones.

All on public values: a truth that was made up, or a model that was paid for.

Independent variables: log-probabilities of single values from noisy counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.kernels.arrays import Floats, Ints
from jostle.kernels.errors import KernelError

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

    Counts are kept from below half a row or the noise's deviation, whichever is more: less cannot be told from none.
    """
    counts = np.asarray(sums, dtype=float)
    shares, at = [], 1
    for many in values:
        logs = np.log(np.maximum(counts[at : at + many], max(0.5, float(noise))))
        shares.append(logs - logs.mean())
        at += many
    return shares
