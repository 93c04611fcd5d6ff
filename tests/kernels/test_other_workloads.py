"""Marginals, predicates and unions, and their Gram operators, against dense matrices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jostle.kernels.histograms import grams, strategies
from jostle.kernels.workloads import boxes as workloads
from jostle.kernels.workloads import marginals


def holds(shape, count, seed):
    return list(np.random.default_rng(seed).random((count, *shape)) < 0.4)


def cases():
    mixed = marginals.marginals((3, 1, 4), [(), (0,), (0, 2)])
    boxes = workloads.ranges((3, 1, 4), 9, 1)
    some = marginals.predicates((3, 1, 4), holds((3, 1, 4), 5, 3))
    line = [workloads.ranges(11, 7, 1), workloads.prefixes(11), workloads.identity(11)]
    return [
        marginals.marginals((3, 4), 1),
        marginals.marginals((2, 3, 4), 2),
        marginals.marginals(7, 1),
        mixed,
        marginals.predicates(12, holds((12,), 6, 0)),
        marginals.predicates((4, 5), holds((4, 5), 9, 1)),
        some,
        marginals.union([mixed, boxes, some], [1, 0.5, 3]),
        marginals.union(line, [2, 1, 1]),
        marginals.union([marginals.union(line[:2], [3, 1]), workloads.identity(11)], [1, 2]),
    ]


CASES = cases()
IDS = [f"{i}-{w.kind}{w.shape}" for i, w in enumerate(CASES)]


def importance(workload):
    """The weight of an error in each answer: that of its part."""
    if not isinstance(workload, marginals.Union):
        return np.ones(workload.size)
    return np.repeat(workload.weights, [part.size for part in workload.parts])


def dense(workload):
    """The queries as rows, from what each says of itself."""
    n = workload.cells
    rows = []
    for said in workload.sums():
        if said["kind"] == "boxes":
            for low, high in zip(said["lows"], said["highs"], strict=True):
                cube = np.zeros(workload.shape)
                cube[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))] = 1
                rows.append(cube.ravel()[None])
        elif said["kind"] == "groups":
            rows.append(np.eye(said["size"])[said["labels"]].T)
        else:
            rows.append(said["inside"][:, said["labels"]].astype(float))
    found = np.concatenate(rows)
    assert found.shape == (workload.size, n)
    return found


@pytest.mark.parametrize("workload", CASES, ids=IDS)
def test_implicit_operations_agree_with_the_matrix(workload):
    rng, matrix = np.random.default_rng(0), dense(workload)
    weighted = importance(workload)[:, None] * matrix
    x = rng.random(workload.cells)
    np.testing.assert_allclose(workload.answers(x), matrix @ x)
    np.testing.assert_allclose(workload.answers(x.reshape(workload.shape)), matrix @ x)
    np.testing.assert_allclose(workload.gram_diagonal().ravel(), (weighted**2).sum(axis=0))
    assert workload.gram_diagonal().shape == workload.shape
    assert workload.mean_length == pytest.approx(matrix.sum(axis=1).mean())
    if workload.boxes:
        lows, highs = workload.bounds()
        np.testing.assert_allclose(workloads.boxes(workload.shape, lows, highs).answers(x), matrix @ x)
    else:
        with pytest.raises(ValueError, match="no bounds"):
            workload.bounds()


@pytest.mark.parametrize("most_dense", [0, 1000])
@pytest.mark.parametrize("workload", CASES, ids=IDS)
def test_gram_on_buckets(workload, most_dense, monkeypatch):
    monkeypatch.setattr(grams, "DENSE_BUCKETS", most_dense)
    monkeypatch.setattr(grams, "DENSE_BUCKETS", most_dense)
    monkeypatch.setattr(grams, "PIECE", 16)
    monkeypatch.setattr(marginals, "PRODUCTS", 8)
    rng, n = np.random.default_rng(1), workload.cells
    weighted = importance(workload)[:, None] * dense(workload)
    mixed = np.concatenate([np.arange(4), rng.integers(0, 4, n - 4)])
    for labels in (np.arange(n), rng.permutation(n), np.sort(mixed), rng.permutation(mixed)):
        share = np.eye(labels.max() + 1)[labels]
        share /= share.sum(axis=0)
        expected = share.T @ weighted.T @ weighted @ share
        gram = grams.on_buckets(workload, labels)
        rows = rng.random((3, gram.buckets))
        np.testing.assert_allclose(gram.dot(rows), rows @ expected)
        np.testing.assert_allclose(gram.diagonal(), np.diag(expected))
        np.testing.assert_allclose(gram.dense(), expected, atol=1e-12)
        np.testing.assert_allclose(gram.workload.answers(gram.spread(rows[0])), dense(workload) @ share @ rows[0])


@pytest.mark.parametrize("workload", CASES, ids=IDS)
def test_the_projection_is_the_nearest_in_the_metric(workload):
    """Of the sum that was measured the true counts are no nearer, nor scaled ones, and they come no further away."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4, workload.cells).astype(float)
    noise = rng.laplace(0, 3, workload.cells)
    z0 = x + noise - noise.mean()
    gram = grams.on_cells(workload)
    z = strategies.project(z0, gram, iterations=3000, tolerance=1e-9)
    metric = gram.dense()

    def distance(a, b):
        return float((a - b) @ metric @ (a - b))

    assert (z >= 0).all()
    assert distance(z, x) <= distance(z0, x) * (1 + 1e-6)
    scaled = np.maximum(z0, 0) * (z0.sum() / np.maximum(z0, 0).sum())
    assert distance(z, z0) <= min(distance(scaled, z0), distance(x, z0)) * (1 + 1e-6)


SHAPES = [
    ((64, 2), [(0, 1), (0,), (1,), ()]), ((3, 4), [(0,), (1,)]), ((2, 3, 4), [(0, 1), (2,)]),
    ((2, 1, 5), [(0, 2)]), ((3, 3), [()]), ((6,), [(0,)]),
    ((8, 2, 3), [(0, 1), (0, 2), (1, 2)]),
]  # fmt: skip


@pytest.mark.slow(only=["(64, 2)-[(0, 1), (0,), (1,), ()]"])
@pytest.mark.parametrize(("shape", "sets"), SHAPES, ids=str)
def test_marginal_strategies_against_dense_matrices(shape, sets):
    workload = marginals.marginals(shape, sets)
    blocks = marginals.marginal_strategy(shape, workload.spectrum())
    a = np.concatenate([np.eye(b["size"])[b["labels"]].T * b["weight"] for b in blocks])
    np.testing.assert_allclose(np.abs(a).sum(axis=0), 1)
    w = dense(workload)
    np.testing.assert_allclose(w @ np.linalg.pinv(a) @ a, w, atol=1e-9)  # the workload is supported
    y = [np.random.default_rng(1).normal(size=b["size"]) for b in blocks]
    np.testing.assert_allclose(
        marginals.reconstruct(blocks, y, shape).ravel(), np.linalg.pinv(a) @ np.concatenate(y), atol=1e-9
    )
    covariance = w @ np.linalg.pinv(a.T @ a) @ w.T
    np.testing.assert_allclose(marginals.variances(blocks, shape, workload.sets), np.diag(covariance))
    # No weights on a coarse grid do better.
    every = [t for k in range(len(shape) + 1) for t in itertools.combinations(range(len(shape)), k)]
    matrices = [np.eye(int(marginals._labels(shape, t).max()) + 1)[marginals._labels(shape, t)].T for t in every]
    rng = np.random.default_rng(3)
    for _ in range(50):
        theta = rng.dirichlet(np.full(len(every), 0.5)) + 1e-4
        other = np.concatenate([t * m for t, m in zip(theta / theta.sum(), matrices, strict=True)])
        assert np.trace(covariance) <= np.trace(w @ np.linalg.pinv(other.T @ other) @ w.T) * 1.01


def test_the_spectrum_of_one_way_marginals_is_its_eigenvalues():
    workload = marginals.marginals((3, 4), 1)
    found = sorted(np.linalg.eigvalsh(dense(workload).T @ dense(workload)))
    spectrum = workload.spectrum()
    dims = {(): 1, (0,): 2, (1,): 3, (0, 1): 6}
    assert found == pytest.approx(sorted(v for t, v in spectrum.items() for _ in range(dims[t])), abs=1e-9)


def test_what_does_not_fit_is_refused():
    for wrong in (3, -1, [(0, 0)], [(2,)], [], [(0,), (0,)]):
        with pytest.raises(ValueError):
            marginals.marginals((3, 4), wrong)
    with pytest.raises(ValueError):
        marginals.predicates(4, [])
    with pytest.raises(ValueError):
        marginals.predicates(4, [[True] * 5])
    one = workloads.identity(4)
    for weights in ([1, 2], [0], [-1], [np.inf]):
        with pytest.raises(ValueError):
            marginals.union([one], weights)
    with pytest.raises(ValueError):
        marginals.union([one, workloads.identity(5)])
    with pytest.raises(ValueError):
        marginals.union([])


@pytest.mark.parametrize("most", [0, 3000])
@pytest.mark.parametrize(
    "workload",
    [
        workloads.rectangles((6, 8), 30, 1),
        workloads.prefixes((6, 8)),
        marginals.marginals((6, 8), [(), (1,), (0, 1)]),
        marginals.union([workloads.rectangles((6, 8), 9, 2), marginals.marginals((6, 8), 1)], [2, 1]),
    ],
    ids=lambda w: w.kind,
)
def test_buckets_that_are_boxes(workload, most, monkeypatch):
    """What is used from 65,536 cells on, against dense matrices."""
    monkeypatch.setattr(grams, "MANY_CELLS", 1)
    monkeypatch.setattr(grams, "MOST_BUCKETS", most)
    monkeypatch.setattr(grams, "DENSE_BUCKETS", 0)
    monkeypatch.setattr(grams, "PIECE", 64)
    labels = (np.arange(6)[:, None] // 2 * 3 + np.array([0, 0, 0, 1, 2, 2, 2, 2])).ravel()
    weighted = importance(workload)[:, None] * dense(workload)
    for buckets in (labels, np.where(labels == 8, 7, labels), np.random.default_rng(0).permutation(labels)):
        share = np.eye(buckets.max() + 1)[buckets]
        share /= share.sum(axis=0)
        expected = share.T @ weighted.T @ weighted @ share
        gram = grams.on_buckets(workload, buckets)
        rows = np.random.default_rng(1).random((3, gram.buckets))
        np.testing.assert_allclose(gram.dot(rows), rows @ expected)
        np.testing.assert_allclose(gram.diagonal(), np.diag(expected))


def test_what_is_no_box_is_found_out():
    for labels in ([[0, 0, 1], [0, 1, 1]], [[0, 1, 0], [1, 1, 0]], [[0, 1, 1], [1, 0, 1]]):
        flat = np.array(labels).ravel()
        assert grams.box_extents((2, 3), flat, np.bincount(flat).astype(float)) is None
    lows, highs = grams.box_extents((2, 3), np.array([0, 1, 1, 0, 1, 1]), np.array([2.0, 4.0]))
    assert lows.tolist() == [[0, 0], [0, 1]] and highs.tolist() == [[1, 0], [1, 2]]
