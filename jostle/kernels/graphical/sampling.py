"""Synthetic rows of a model, by randomised rounding.

Bag by bag from the root of the junction tree: rows that agree on what is known are spread over the values to come in
the proportions of the conditional table, in turn along its cumulative sum from a random start. So every table of a
bag given its parent has each of its counts within 1 of what is expected, where independent draws would add noise of
the size of the square root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Ints
from jostle.kernels.graphical.calibrate import Calibrated
from jostle.noise_laws import Gaussian, Laplace


def stratified_sample(calibrated: Calibrated, rows: int, seed: int) -> Ints:
    """(rows, variables) positions of values; seeded, since nothing private is left to hide."""
    rng = np.random.default_rng(seed)
    positions = _down(calibrated, rows, rng, stratified=True)
    out: Ints = positions[rng.permutation(rows)]
    return out


def independent_sample(calibrated: Calibrated, rows: int, seed: int) -> Ints:
    """Draws (rows, variables) positions of values, each row independently."""
    return _down(calibrated, rows, np.random.default_rng(seed), stratified=False)


def dirichlet(lengths: Sequence[int], concentration: float, seed: int) -> list[NDArray[np.float64]]:
    """Points of simplices, for made-up potentials."""
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.full(n, float(concentration))) for n in lengths]


def noise_array(shape: Sequence[int], law: Laplace | Gaussian, seed: int, stream: int) -> NDArray[np.float64]:
    """Laplace noise of scale b or Gaussian noise of deviation σ, seeded: for what has been released already."""
    rng = np.random.default_rng([seed, stream])
    return (rng.laplace if isinstance(law, Laplace) else rng.normal)(0.0, law.scale, shape)


def subsets(of: int, size: int, seed: int, tries: int = 10_000) -> Iterator[list[int]]:
    """Random subsets of 0 … of − 1, in order, one after the other."""
    rng = np.random.default_rng(seed)
    for _ in range(tries):
        yield sorted(int(i) for i in rng.choice(of, size, replace=False))


def _down(calibrated: Calibrated, rows: int, rng: np.random.Generator, *, stratified: bool) -> Ints:
    plan = calibrated.plan
    positions = np.zeros((rows, len(plan.sizes)), dtype=np.int64)
    for bag, conditional in zip(reversed(plan.bags), reversed(calibrated.conditionals), strict=True):
        own, shared = bag.variables[: bag.own], bag.variables[bag.own :]
        state = np.zeros(rows, dtype=np.int64)
        if shared:
            state = np.ravel_multi_index(tuple(positions[:, v] for v in shared), bag.shape[bag.own :])
        states = _spread(conditional.T, state, rng, stratified)
        for v, values in zip(own, np.unravel_index(states, bag.shape[: bag.own]), strict=True):
            positions[:, v] = values
    return positions


def _spread(conditional: NDArray[np.float64], state: Ints, rng: np.random.Generator, stratified: bool) -> Ints:
    """A column for every row, in the proportions of the row's line of `conditional`, stratified within each line."""
    order = rng.permutation(len(state))
    order = order[np.argsort(state[order], kind="stable")]
    lines, first, many = np.unique(state[order], return_index=True, return_counts=True)
    within = np.arange(len(state)) - np.repeat(first, many)
    starts = np.repeat(rng.random(len(lines)), many)
    point = (within + starts) / np.repeat(many, many) if stratified else rng.random(len(state))
    sums = np.cumsum(conditional[lines], axis=1)
    sums /= sums[:, -1:]
    flat = (sums + np.arange(len(lines))[:, None]).ravel()
    at = np.repeat(np.arange(len(lines)), many)
    column = np.searchsorted(flat, at + point, side="right") - at * conditional.shape[1]
    columns = np.empty(len(state), dtype=np.int64)
    columns[order] = np.clip(column, 0, conditional.shape[1] - 1)
    return columns
