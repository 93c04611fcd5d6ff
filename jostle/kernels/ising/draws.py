"""Seeded sampling for Ising and pairwise models: rows of public models, and the Gibbs chains that fit large ones.

All on public values: a truth that was made up, or a model that was paid for.
"""

from __future__ import annotations

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
