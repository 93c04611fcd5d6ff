"""Cells of noisy tables, each drawn towards what the cells together say is usual: nonparametric empirical Bayes.

A cell holds r times what is expected of it: what an even table has, or a product of margins. The law of r is not known;
it is the one that makes all noisy cells together likeliest (Kiefer and Wolfowitz 1956, by expectation–maximisation on a
grid), beside a prior worth a few cells. A cell's estimate is its posterior mean (Robbins 1956). Where the noise is
large that is what is usual, where it is small the cell itself. All of it is calculated of released numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Floats
from jostle.noise_laws import Gaussian, Laplace

LEAST = 0.01  # a share of what is expected: what is less counts as none
STEPS = 240
ROUNDS = 40
MOST_CELLS = 8192
"""Cells that the law of r is learned from; of more, so many, evenly spaced."""
CHUNK = 4096


def posterior_means(
    tables: Sequence[Floats], expected: Sequence[Floats], laws: Sequence[Laplace | Gaussian], *,
    most: float, wide: float, weight: float,
) -> list[Floats]:  # fmt: skip
    """The posterior mean of every cell, each table's in its shape, in counts.

    `expected`: positive counts for every cell; `laws`: the noise of each table. `most`: the largest r of the grid;
    the prior is log-normal about 1 of deviation `wide`, with 0
    beside it as likely as 1, and weighs as much as `weight` cells.
    """
    seen = np.concatenate([np.ravel(t) for t in tables])
    usual = np.concatenate([np.ravel(e) for e in expected])
    scale = np.concatenate([np.full(np.size(t), max(law.scale, 1e-9)) for t, law in zip(tables, laws, strict=True)])
    squared = np.concatenate(
        [np.full(np.size(t), isinstance(law, Gaussian)) for t, law in zip(tables, laws, strict=True)]
    )
    grid = np.append(0.0, np.geomspace(LEAST, max(most, 2.0), STEPS))
    prior = np.append(1.0, np.exp(-((np.log(grid[1:]) / wide) ** 2) / 2))
    prior /= prior.sum()
    some = np.unique(np.linspace(0, len(seen) - 1, min(len(seen), MOST_CELLS)).astype(int))
    likely = _likelihoods(seen[some], usual[some], scale[some], squared[some], grid)
    law = prior
    for _ in range(ROUNDS):
        fit = likely.T @ (1 / np.maximum(likely @ law, 1e-300))
        law = (law * fit + weight * prior) / (len(some) + weight)
        law = law / law.sum()
    means = np.empty_like(seen)
    for start in range(0, len(seen), CHUNK):
        part = slice(start, start + CHUNK)
        here = _likelihoods(seen[part], usual[part], scale[part], squared[part], grid) * law
        means[part] = usual[part] * (here @ grid) / np.maximum(here.sum(axis=1), 1e-300)
    step = np.log(grid[2] / grid[1])
    exact = np.maximum(seen, 0.0)
    means = np.where(scale < step * exact, exact, means)  # the grid is coarser than the noise
    ends = np.cumsum([np.size(t) for t in tables])
    parts = np.split(means, ends[:-1])
    return [part.reshape(np.shape(t)) for part, t in zip(parts, tables, strict=True)]


def _likelihoods(seen: Floats, usual: Floats, scale: Floats, squared: NDArray[np.bool_], grid: Floats) -> Floats:
    """(cells, grid): how likely each noisy count is where the cell holds r times what is usual; the largest is 1."""
    away = np.abs(seen[:, None] - usual[:, None] * grid) / scale[:, None]
    away = np.where(squared[:, None], away**2 / 2, away)
    return np.asarray(np.exp(away.min(axis=1, keepdims=True) - away))
