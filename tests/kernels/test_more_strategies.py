"""Wavelets, weighted trees, grids and clusters against dense linear algebra and what their papers say."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from jostle.diagnostics import Refusal
from jostle.kernels import accuracy
from jostle.kernels.histograms import estimates, greedy, grids, partitions, strategies
from jostle.kernels.workloads import boxes as workloads
from jostle.privacy.mechanisms import linear

sys.path.insert(0, str(Path(__file__).resolve().parent))
from dense_core import matrix_of, sensitivity

SHAPES = [(1,), (2,), (3,), (8,), (100,), (1, 1), (1, 6), (5, 9), (8, 8), (2, 3, 4)]


def wavelet_matrix(blocks):
    """As `matrix_of`, for `signed` blocks: one row a product of groups."""
    found = []
    for block in blocks:
        rows = np.ones((1, 1))
        for axis in block["axes"]:
            along = np.zeros((axis["size"], len(axis["labels"])))
            inside = np.flatnonzero(axis["labels"] >= 0)
            along[axis["labels"][inside], inside] = axis["signs"][inside]
            rows = np.kron(rows, along)
        found.append(rows * block["weight"])
    return np.concatenate(found)


def error(a, workload):
    """The root mean square error of a query by least squares, at ε = 1."""
    scale = np.abs(a).sum(axis=0).max()
    rows = np.stack([workload.member(at) for at in range(workload.size)]).astype(float)
    return scale * np.sqrt(2 * np.trace(rows @ np.linalg.inv(a.T @ a) @ rows.T) / workload.size)


@pytest.mark.parametrize("shape", SHAPES)
def test_wavelets_are_undone(shape):
    blocks, n = greedy.privelet_strategy(shape), int(np.prod(shape))
    a = wavelet_matrix(blocks)
    assert a.shape == (n, n)
    assert np.abs(a).sum(axis=0).max() == pytest.approx(1)
    sizes = [int(np.prod([axis["size"] for axis in block["axes"]])) for block in blocks]
    answers = [np.random.default_rng(0).normal(size=size) for size in sizes]
    expected = np.linalg.solve(a, np.concatenate(answers))
    np.testing.assert_allclose(greedy.wavelet_cells(shape, answers), expected, atol=1e-9)


@pytest.mark.parametrize("shape", [*SHAPES, (13,), (64,)])
def test_the_error_of_a_box_by_wavelets_is_that_of_dense_algebra(shape):
    blocks = greedy.privelet_strategy(shape)
    asked = workloads.rectangles(shape, 40) if len(shape) > 1 else workloads.ranges(shape, 40)
    rows = np.stack([asked.member(at).ravel() for at in range(asked.size)]).astype(float)
    expected = ((rows @ np.linalg.inv(wavelet_matrix(blocks))) ** 2).sum(axis=1)
    np.testing.assert_allclose(accuracy.variances(blocks, asked), expected)


def test_a_row_touches_one_coefficient_a_level():
    a = wavelet_matrix(greedy.privelet_strategy(64))
    assert ((a != 0).sum(axis=0) == 7).all()
    np.testing.assert_allclose(np.unique(np.abs(a)), [0, 1 / 7])


def test_wavelets_are_better_than_the_tree_of_the_same_halves():
    workload = workloads.ranges(256, 500)
    tree = matrix_of(grids.tree_strategy((256,), 2, root=True), 256)
    assert error(wavelet_matrix(greedy.privelet_strategy(256)), workload) < error(tree, workload)


@pytest.mark.parametrize("shape", [(7,), (64,), (5, 9), (2, 3, 4)])
def test_the_core_measures_the_wavelets(shape):
    """The trusted core's exact answers and column norms of `signed` blocks, against dense matrices."""
    blocks, x = greedy.privelet_strategy(shape), np.random.default_rng(2).integers(0, 50, shape)
    a, core = wavelet_matrix(blocks), linear.Strategy(blocks, shape)
    assert core.norms[0] * 2.0**-core.bits == pytest.approx(np.abs(a).sum(axis=0).max(), rel=1e-6)
    assert core.norms[1] * 2.0**-core.bits == pytest.approx(np.sqrt((a**2).sum(axis=0).max()), rel=1e-6)
    found = np.concatenate(core.answers(x)) * 2.0**-core.bits
    np.testing.assert_allclose(found, a @ x.ravel(), rtol=1e-6)


def test_signed_blocks_are_checked():
    good = {"labels": [0, 0, -1], "signs": [1, -1, 1], "size": 1}
    assert linear.Strategy([{"kind": "signed", "axes": [good], "weight": 1}], (3,)).norms[0] == 1
    for wrong in ({"signs": [1, 2, 1]}, {"signs": [1, 1]}, {"labels": [0, 1, 0]}, {"labels": [0, 0]}, {"size": "x"}):
        with pytest.raises(Refusal):
            linear.Strategy([{"kind": "signed", "axes": [good | wrong], "weight": 1}], (3,))
    with pytest.raises(Refusal):
        linear.Strategy([{"kind": "signed", "axes": [good, good], "weight": 1}], (3,))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["ranges", "prefixes", "identity"])
def test_every_column_of_a_weighted_tree_has_norm_one(shape, kind):
    workload, n = getattr(workloads, kind)(shape), int(np.prod(shape))
    a = matrix_of(greedy.greedy_h_strategy(workload), n)
    assert (a >= 0).all()
    np.testing.assert_allclose(a.sum(axis=0), 1)


@pytest.mark.parametrize("shape", [(256,), (200,), (16, 16), (5, 9)])
def test_weights_for_the_workload_are_better_than_equal_ones(shape):
    n = int(np.prod(shape))
    for workload in (workloads.ranges(shape, 500), workloads.prefixes(shape), workloads.identity(shape)):
        equal = error(matrix_of(grids.tree_strategy(shape, 2, root=True), n), workload)
        found = error(matrix_of(greedy.greedy_h_strategy(workload), n), workload)
        assert found < 0.99 * equal
    # For single cells nothing but single cells should be measured.
    assert found == pytest.approx(np.sqrt(2), rel=0.05)


@pytest.mark.parametrize("kind", ["ranges", "prefixes", "identity"])
@pytest.mark.parametrize("shape", [(40,), (6, 10)])
def test_what_queries_hold_of_nodes(shape, kind, monkeypatch):
    monkeypatch.setattr(greedy, "OVERLAPS", 64)  # several pieces
    workload, n = getattr(workloads, kind)(shape), int(np.prod(shape))
    w = np.stack([workload.answers(unit) for unit in np.eye(n)], axis=1)
    for block in grids.tree_strategy(shape, 2, root=True):
        inside = np.zeros((n, block["size"]))
        inside[np.arange(n), block["labels"]] = 1
        squares, covered = greedy._query_overlaps(workload, block)
        np.testing.assert_allclose(squares, ((w @ inside) ** 2).sum(axis=0))
        np.testing.assert_allclose(covered, (w @ inside == inside.sum(axis=0)).sum(axis=0))


def test_levels_of_a_quadtree_get_geometric_shares():
    blocks = grids.quadtree_strategy((16, 16))
    weights = [block["weight"] for block in blocks]
    np.testing.assert_allclose(np.array(weights[1:]) / weights[:-1], 2 ** (1 / 3))
    assert [block["size"] for block in blocks] == [1, 4, 16, 64, 256]
    assert sensitivity(blocks, 256) == pytest.approx(1)


@pytest.mark.parametrize("shape", [*SHAPES, (64, 64), (3, 1000)])
@pytest.mark.parametrize("wanted", [0, 1, 5, 40, 1000, 1e15, np.inf, np.nan])
def test_a_grid_is_of_boxes_and_about_as_many_as_wanted(shape, wanted):
    labels, n = grids.uniform_grid(shape, wanted), int(np.prod(shape))
    lows, highs = grids.extents(shape, labels)
    assert np.prod(highs - lows + 1, axis=1).sum() == n
    assert sorted(set(labels)) == list(range(len(lows)))
    if len(shape) == 1 and np.isfinite(wanted):
        assert len(lows) == min(n, max(1, wanted))
    if shape == (64, 64) and np.isfinite(wanted):
        assert 0.8 <= len(lows) / min(4096, max(1, wanted)) <= 1.2
    if shape == (3, 1000) and wanted == 1000:
        assert 900 <= len(lows) <= 1100


def test_fine_grids_stand_where_rows_are():
    first = grids.agrid_first((64, 64), 1000)
    assert first[0]["size"] == 100
    counts = np.zeros(100)
    counts[0], counts[99] = 1e9, -5
    second = grids.agrid_second((64, 64), first, [counts * 0.5], 0.05)[0]
    inside = second["labels"][first[0]["labels"] == 0]
    assert len(np.unique(inside)) == len(inside)
    assert second["size"] == 99 + len(inside)
    both = [first[0], second]
    assert sensitivity(both, 4096) == pytest.approx(1)
    answers = [np.bincount(b["labels"]) * b["weight"] for b in both]
    np.testing.assert_allclose(strategies.estimate(both, answers, workloads.ranges((64, 64), 50)), 1)


def test_clusters_are_those_of_clear_data():
    cells = np.array([100.0, 0.3, 50.5, 99.5, -0.2, 49.5, 0.1])
    labels = partitions.ahp_labels(cells, 0.5, 5.0)
    np.testing.assert_array_equal(labels, [0, 2, 1, 0, 2, 1, 2])
    np.testing.assert_array_equal(partitions.ahp_labels(cells, 0.0, 0.0), [0, 4, 2, 1, 6, 3, 5])


def test_noise_alone_is_one_box_and_plain_steps_are_cut():
    rng = np.random.default_rng(0)
    assert partitions.kd_labels((32, 32), rng.laplace(0, 1, 1024), 1.0).max() == 0
    x = np.zeros((16, 16))
    x[:5], x[5:, 9:] = 100, 40
    found = partitions.kd_labels((16, 16), (x + rng.laplace(0, 1, x.shape)).ravel(), 1.0).reshape(16, 16)
    assert found.max() == 2 and all(len(np.unique(x[found == k])) == 1 for k in range(3))
    np.testing.assert_array_equal(partitions.kd_labels(4, np.array([1.0, 2, 2, 3]), 0.0), [0, 1, 1, 2])


def test_pooling_weighs_by_precision():
    strategy = grids.group_strategy(np.array([0, 0, 0, 0, 1]))
    cells = np.array([1.0, 2, 3, 4, 7])
    (found,) = estimates.pooled(strategy, [np.array([20.0, 5.0])], 2.0, cells, 1.0)
    # four cells of variance 1 against one count of variance 4; then one against 4
    np.testing.assert_allclose(found, [15, (5 / 4 + 7) / (1 / 4 + 1)])
    (same,) = estimates.pooled(strategy, [np.array([20.0, 5.0])], 0.0, cells, 0.0)
    np.testing.assert_array_equal(same, [20, 5])


def test_a_start_has_its_total_and_no_zero():
    found = estimates.mwem_start((2, 2), np.array([0.0, 6, -1, 2]), 100.0, 0.1)
    np.testing.assert_allclose(found, [[2.5, 70], [2.5, 25]])
    np.testing.assert_allclose(estimates.mwem_start(4, np.zeros(4), -3.0, 0.1), 0.25)


def test_projection_keeps_what_is_feasible():
    workload = workloads.ranges((4, 5), 30)
    cells = np.random.default_rng(0).random(20)
    np.testing.assert_allclose(estimates.nonnegative(cells, workload), cells.reshape(4, 5))
    assert estimates.nonnegative(cells - 0.5, workload).min() >= 0
