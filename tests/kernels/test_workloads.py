"""Workloads and their Gram operators against dense matrices."""

from __future__ import annotations

import time

import numpy as np
import pytest

from jostle.kernels.histograms import grams
from jostle.kernels.workloads import boxes as workloads

CASES = [
    workloads.identity(10),
    workloads.prefixes(10),
    workloads.ranges(10, 30, 1),
    workloads.boxes(10, np.array([0, 3, 9]), np.array([9, 3, 9])),
    workloads.identity((4, 6)),
    workloads.prefixes((4, 6)),
    workloads.rectangles((4, 6), 40, 2),
    workloads.ranges((2, 3, 4), 25, 3),
]


def dense(workload):
    lows, highs = workload.bounds()
    rows = np.zeros((workload.size, *workload.shape))
    for q in range(workload.size):
        rows[(q, *(slice(a, b + 1) for a, b in zip(lows[q], highs[q], strict=True)))] = 1
    return rows.reshape(workload.size, -1)


@pytest.mark.parametrize("workload", CASES, ids=lambda w: f"{w.kind}{w.shape}")
def test_implicit_operations_agree_with_the_matrix(workload):
    rng, matrix = np.random.default_rng(0), dense(workload)
    x = rng.random(workload.cells)
    np.testing.assert_allclose(workload.answers(x), matrix @ x)
    np.testing.assert_allclose(workload.answers(x.reshape(workload.shape)), matrix @ x)
    assert workload.gram_diagonal().shape == workload.shape
    np.testing.assert_allclose(workload.gram_diagonal().ravel(), (matrix**2).sum(axis=0))
    assert workload.mean_length == pytest.approx(matrix.sum(axis=1).mean())


@pytest.mark.parametrize("most_dense", [0, 1000])
@pytest.mark.parametrize("workload", CASES, ids=lambda w: f"{w.kind}{w.shape}")
def test_gram_on_buckets(workload, most_dense, monkeypatch):
    monkeypatch.setattr(grams, "DENSE_BUCKETS", most_dense)
    rng, n = np.random.default_rng(1), workload.cells
    mixed = np.concatenate([np.arange(4), rng.integers(0, 4, n - 4)])
    for labels in (np.arange(n), rng.permutation(n), np.sort(mixed), rng.permutation(mixed)):
        share = np.eye(labels.max() + 1)[labels]
        share /= share.sum(axis=0)
        expected = share.T @ dense(workload).T @ dense(workload) @ share
        gram = grams.on_buckets(workload, labels)
        rows = rng.random((3, gram.buckets))
        np.testing.assert_allclose(gram.dot(rows), rows @ expected)
        np.testing.assert_allclose(gram.diagonal(), np.diag(expected))
        np.testing.assert_allclose(gram.dense(), expected)
        np.testing.assert_allclose(gram.workload.answers(gram.spread(rows[0])), dense(workload) @ share @ rows[0])


def test_long_axes_and_scattered_labels():
    """Axes beyond the length at which slices give way to `cumsum`."""
    workload, rng = workloads.ranges(700, 50), np.random.default_rng(2)
    gram = grams.on_buckets(workload, rng.permutation(700))
    x = rng.random(700)
    np.testing.assert_allclose(x @ gram.dot(x[None])[0], (gram.workload.answers(gram.spread(x)) ** 2).sum())


def test_random_ranges_are_seeded_and_of_uniform_length():
    one, two = workloads.ranges(1000, 5000, 3), workloads.ranges(1000, 5000, 3)
    assert (one.lows == two.lows).all() and (one.highs == two.highs).all()
    assert (workloads.ranges(1000, 5000, 4).lows != one.lows).any()
    lengths = (one.highs - one.lows + 1).ravel()
    assert lengths.min() >= 1 and one.highs.max() <= 999 and one.lows.min() >= 0
    assert abs(lengths.mean() - 500.5) < 5.5 * 1000 / np.sqrt(12 * 5000)


def test_a_million_cells():
    x, began = np.ones(10**6), time.process_time()
    for workload in (workloads.identity(10**6), workloads.prefixes(10**6), workloads.ranges(10**6)):
        assert workload.answers(x).shape == (workload.size,) and workload.gram_diagonal().shape == (10**6,)
    assert workloads.prefixes((1000, 1000)).answers(x)[-1] == 10**6
    assert time.process_time() - began < 5


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError):
        workloads.ranges(0)
    with pytest.raises(ValueError):
        workloads.boxes(5, np.array([3]), np.array([5]))
    with pytest.raises(ValueError):
        grams.on_buckets(workloads.identity(4), np.array([0, 2, 2, 2]))
    with pytest.raises(ValueError):
        grams.on_buckets(workloads.identity(4), np.zeros(3, dtype=int))
