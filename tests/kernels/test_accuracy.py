"""Closed forms of the error of strategies against dense matrices, and against noise."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.kernels import accuracy, noisy_array
from jostle.kernels.histograms import greedy, grids, strategies
from jostle.kernels.workloads import boxes as workloads
from jostle.kernels.workloads import marginals
from jostle.kernels.workloads.marginals import union
from jostle.noise_laws import Laplace


def matrix(strategy, cells):
    """The strategy as rows over cells."""
    rows = []
    for block in strategy:
        labels = np.asarray(block["labels"])
        size = block["size"] if block["kind"] == "groups" else block["matrix"].shape[1]
        onto = np.eye(size)[labels].T
        weight = np.broadcast_to(block.get("weight", 1.0), (size,))
        rows.append(onto * weight[:, None] if block["kind"] == "groups" else block["matrix"] @ onto)
    found = np.concatenate(rows)
    assert found.shape[1] == cells
    return found


def dense(workload):
    return np.stack([workload.member(at) for at in range(workload.size)]).astype(float)


def flags(shape, count):
    return list(np.random.default_rng(3).random((count, *shape)) < 0.5)


LINE = [
    workloads.ranges(13, 40, 1),
    workloads.prefixes(13),
    workloads.identity(13),
    marginals.predicates(13, flags((13,), 4)),
    marginals.marginals(13, 1),
    union([workloads.ranges(13, 5, 2), workloads.identity(13)], [1, 3]),
]
PLANE = [
    workloads.rectangles((6, 5), 30, 1),
    workloads.prefixes((6, 5)),
    workloads.identity((6, 5)),
    marginals.marginals((6, 5), 1),
    union([marginals.predicates((6, 5), flags((6, 5), 3)), marginals.marginals((6, 5), 2)]),
]
MAKERS = {
    "identity": lambda w: grids.identity_strategy(w.shape),
    "hb": lambda w: grids.hb_strategy(w.shape),
    "binary": lambda w: grids.tree_strategy(w.shape, 2, root=True),
    "quadtree": lambda w: grids.quadtree_strategy(w.shape),
    "greedy_h": lambda w: greedy.greedy_h_strategy(w),
    "hdmm": lambda w: strategies.hdmm_strategy(w),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("workload", LINE + PLANE, ids=lambda w: f"{w.kind}{w.shape}")
def test_variances_against_dense_matrices(workload, maker):
    if maker == "greedy_h" and not workload.boxes:
        with pytest.raises(ValueError, match="no bounds"):
            MAKERS[maker](workload)
        return
    strategy = MAKERS[maker](workload)
    assert accuracy.lossless(strategy, workload)
    a, w = matrix(strategy, workload.cells), dense(workload)
    expected = np.einsum("mi,ij,mj->m", w, np.linalg.pinv(a.T @ a), w)
    np.testing.assert_allclose(accuracy.variances(strategy, workload), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        accuracy.root_mean_square(strategy, workload, 3.0), 3 * np.sqrt(expected.mean()), rtol=1e-7
    )


def test_marginals_answer_other_queries_only_where_they_are_known():
    strategy = marginals.marginal_strategy((3, 4), marginals.marginals((3, 4), 1).spectrum())
    assert accuracy.lossless(strategy, marginals.marginals((3, 4), [(), (0,)]))
    for other in (marginals.marginals((3, 4), 2), workloads.identity((3, 4)), workloads.rectangles((3, 4), 5)):
        assert not accuracy.lossless(strategy, other)
        with pytest.raises(ValueError, match="cut through"):
            accuracy.variances(strategy, other)


def test_buckets_that_hide_cells_are_not_told_about():
    strategy = grids.group_strategy(np.array([0, 0, 1, 1]))
    assert not accuracy.lossless(strategy, workloads.prefixes(4))
    whole = marginals.predicates(4, [[True, True, False, False], [True] * 4])
    np.testing.assert_allclose(accuracy.variances(strategy, whole), [1, 2])


def test_large_hierarchies_are_sampled_or_refused(monkeypatch):
    workload = workloads.rectangles((16, 16), 300, 1)
    strategy = grids.tree_strategy((16, 16), 2, root=True)
    exact = accuracy.root_mean_square(strategy, workload)
    monkeypatch.setattr(accuracy, "MOST_PRODUCTS", 300_000)
    with pytest.raises(OverflowError):
        accuracy.variances(strategy, workload)
    assert accuracy.root_mean_square(strategy, workload) == pytest.approx(exact, rel=0.1)


def test_a_million_cells_have_errors():
    for workload in (workloads.ranges(3 * 10**5), workloads.identity(3 * 10**5), workloads.prefixes(3 * 10**5)):
        found = accuracy.variances(grids.hb_strategy(3 * 10**5), workload)
        assert found.shape == (workload.size,) and (found > 0).all()
    assert accuracy.variances(grids.identity_strategy((1000, 1000)), workloads.prefixes((1000, 1000))).max() == 1e6


def test_arrays_forget_their_noise_when_anything_is_done_with_them():
    noise = noisy_array.NoiseModel(Laplace(2.0))
    made = noisy_array.with_noise(np.arange(6.0), noise)
    assert noisy_array.noise_of(made) is noise
    np.testing.assert_allclose(accuracy.standard_errors(made), 2 * np.sqrt(2))
    for other in (made * 1, made[:3], made.reshape(2, 3), made.copy(), np.sort(made), np.asarray(made), made + made):
        assert noisy_array.noise_of(other) is None
        with pytest.raises(ValueError):
            accuracy.standard_errors(other)
    assert (
        noisy_array.common_noise([made, noisy_array.with_noise(np.zeros(2), noisy_array.NoiseModel(Laplace(3.0)))])
        is None
    )
    assert noisy_array.common_noise([]) is None and noisy_array.common_noise([made, np.zeros(3)]) is None
