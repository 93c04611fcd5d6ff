"""The lowest frequencies of a cube, as a strategy: EFPA's lossy compression.

Ács, Castelluccia and Chen, *Differentially private histogram publishing through lossy compression*, ICDM 2012. The
published algorithm adds noise to the size of complex coefficients and leaves their phases exact, which is not private.
Here the transform is the orthonormal cosine transform, the Fourier transform of the data mirrored at their ends: it
is real, some of its coefficients are some rows of a matrix, and what the trusted core measures is this matrix.
Mirroring has no jump between the last cell and the first, so that fewer frequencies suffice.

Frequencies come in squares: the first k along every axis. How much an error in one costs the workload is its
`importance`, the length of the workload's answers to that cosine; rows of importance c get weights
∝ c^⅔, which minimises Σ c²/w² for a given Σ w. (For single cells all are equal, as in the paper; for ranges low
frequencies matter more.) Where there are many cells, `grain` of them along every axis are joined first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats, Ints, Strategy, along, axes_of, labels_of
from jostle.kernels.workloads.boxes import Workload

Basis = list[Any]

MOST_ENTRIES = 2**21
"""The most entries of a matrix that is measured, frequencies times buckets."""

LEAST = 1e-3
"""The least importance: frequencies that no query needs are still measured a little."""


def fourier_basis(queries: Workload, grain: int) -> Basis:
    """Numbers of frequencies an axis that may be kept, and the importance of each frequency up to the largest.

    That is a cube with as many axes as the workload has, the largest entry 1. One answer of the workload a frequency.
    """
    blocks = _blocks(queries.shape, grain)
    most = min(max(blocks), max(1, int((MOST_ENTRIES / np.prod(blocks)) ** (1 / len(blocks)))))
    cosines = [_cosines(side)[:most] for side in blocks]
    buckets = [np.arange(cells) // grain for cells in queries.shape]
    sizes = [np.bincount(bucket) for bucket in buckets]
    importance = np.empty([len(rows) for rows in cosines])
    for at in np.ndindex(*importance.shape):
        cosine: Any = np.ones((1,) * len(cosines))
        for axis, i in enumerate(at):
            cosine = cosine * along((cosines[axis][i] / sizes[axis])[buckets[axis]], axis, len(cosines))
        importance[at] = np.linalg.norm(queries.answers(cosine))
    numbers = np.unique(np.rint(np.geomspace(1, most, 40)).astype(np.int64))
    return [numbers, np.maximum(importance / importance.max(), LEAST)]


def fourier_costs(basis: Basis, grain: int, shape: int | tuple[int, ...], epsilon: float) -> Floats:
    """For each of the basis' sizes, the expected length of the noise in the answers if measured with `epsilon`.

    In units of `importance`, as what is left out is.
    """
    rows, weights, importance = _rows(basis, grain, shape)
    norms = np.cumsum(np.abs(rows) * weights[:, None], axis=0).max(axis=1)
    noise = np.sqrt(2 * np.cumsum((importance / weights) ** 2)) * norms / epsilon
    return np.array([noise[count - 1] for count in _counts(basis)])


def fourier_strategy(basis: Basis, grain: int, shape: int | tuple[int, ...], size: int) -> Strategy:
    """The frequencies of the basis' `size`-th size, as one matrix over the buckets of `grain` cells an axis."""
    rows, weights, _ = _rows(basis, grain, shape)
    count = _counts(basis)[int(size)]
    labels = labels_of([np.arange(cells, dtype=np.int64) // int(grain) for cells in axes_of(shape)])
    matrix = rows[:count] * weights[:count, None]
    return [{"kind": "matrix", "labels": labels, "matrix": matrix}]


def fourier_cells(strategy: Strategy, answers: list[Floats]) -> Floats:
    """The cells, flat, whose buckets have the measured frequencies and no others."""
    labels, matrix = strategy[0]["labels"], strategy[0]["matrix"]
    # the rows are orthogonal: the transpose over their squared lengths is the inverse
    buckets = matrix.T @ (np.asarray(answers[0]) / (matrix**2).sum(axis=1))
    return np.asarray((buckets / np.bincount(labels))[labels])


def _rows(basis: Basis, grain: int, shape: int | tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
    """Cosines (K, buckets), their weights and importance (K,), in the order in which squares of frequencies grow."""
    importance = np.asarray(basis[1])
    rows: Floats = np.ones((1, 1))
    for side, frequencies in zip(_blocks(shape, grain), importance.shape, strict=True):
        rows = np.asarray(np.kron(rows, _cosines(side)[:frequencies]), dtype=np.float64)
    order = np.argsort(_level(importance.shape), kind="stable")
    flat = importance.ravel()[order]
    return rows[order], flat ** (2 / 3), flat


def _counts(basis: Basis) -> Ints:
    """The number of rows of each size."""
    level = np.sort(_level(np.asarray(basis[1]).shape))
    return np.asarray(np.searchsorted(level, basis[0], side="left"), dtype=np.int64)


def _level(shape: tuple[int, ...]) -> Ints:
    """The largest of each frequency's numbers along the axes, flat."""
    return np.asarray(np.max(np.indices(shape), axis=0).ravel(), dtype=np.int64)


def _blocks(shape: int | tuple[int, ...], grain: int) -> list[int]:
    return [-(-side // int(grain)) for side in axes_of(shape)]


def _cosines(n: int) -> Floats:
    """The orthonormal cosine transform (DCT-II) of n buckets, lowest frequency first; (n, n)."""
    rows = np.cos(np.pi / n * np.outer(np.arange(n), np.arange(n) + 0.5)) * np.sqrt(2 / n)
    rows[0] = 1 / np.sqrt(n)
    return np.asarray(rows)
