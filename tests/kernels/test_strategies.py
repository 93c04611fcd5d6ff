"""Hierarchies, p-identity strategies and the projection against dense linear algebra and known numbers."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from jostle.kernels import linear_algebra
from jostle.kernels.accuracy import root_mean_square
from jostle.kernels.histograms import grams, grids, strategies
from jostle.kernels.workloads import boxes as workloads
from jostle.kernels.workloads import marginals
from jostle.privacy.mechanisms import linear

sys.path.insert(0, str(Path(__file__).resolve().parent))
from dense_core import matrix_of, measure, sensitivity

SQRT2 = 2**0.5  # the deviation of Laplace noise of scale 1


def test_branching_minimises_the_formula():
    for n in (2, 3, 64, 256, 1000, 1024, 4096, 4097, 10**4):
        costs = {b: (b - 1) * h**3 - 2 * (b + 1) * h**2 / 3 for b in range(2, n + 1) for h in [grids.height(n, b)]}
        assert costs[grids.best_branching(n)] == min(costs.values())
    assert [grids.best_branching(n) for n in (1024, 4096, 10**6)] == [32, 16, 16]


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (100,), (1000,), (1, 1), (5, 9), (16, 16), (3, 50)])
def test_tree_least_squares_is_least_squares(shape):
    blocks, rng, n = grids.hb_strategy(shape), np.random.default_rng(0), int(np.prod(shape))
    answers = [rng.normal(size=block["size"]) for block in blocks]
    dense = np.linalg.lstsq(matrix_of(blocks, n), np.concatenate(answers), rcond=None)[0]
    np.testing.assert_allclose(grids.tree_least_squares(blocks, answers), dense, atol=1e-9)
    assert sensitivity(blocks, n) == pytest.approx(1)


def test_levels_nest_and_the_root_is_measured_in_one_dimension_only():
    assert [block["size"] for block in grids.hb_strategy(1024)] == [1, 32, 1024]
    assert grids.hb_strategy((64, 64))[0]["size"] > 1
    for block, finer in zip(grids.hb_strategy(1000), grids.hb_strategy(1000)[1:], strict=False):
        assert len(np.unique(np.stack([block["labels"], finer["labels"]]), axis=1).T) == finer["size"]


def test_a_million_cells():
    began = time.process_time()
    blocks = grids.hb_strategy(10**6)
    x = grids.tree_least_squares(blocks, [np.bincount(b["labels"]) * b["weight"] for b in blocks])
    np.testing.assert_allclose(x, 1)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("cell_bits", [0, 20])
@pytest.mark.parametrize("shape", [(40,), (1024,), (32, 32), (70_000,)], ids=str)
def test_the_core_measures_the_sums_that_a_strategy_says(shape, cell_bits):
    """They were rounded to its grid there and not here: of 10⁹ rows the error was twenty times what was told."""
    cells = int(np.prod(shape))
    asked = workloads.ranges(shape, 50)
    fitted = strategies.bucket_strategy(np.arange(cells) * min(cells, 200) // cells, asked)
    for blocks in (fitted, strategies.for_few_rows(fitted, 1.0)):
        core = linear.Strategy(blocks, shape, cell_bits)
        np.testing.assert_array_equal(core.blocks[1]["matrix"] * 2.0**-core.bits, blocks[1]["matrix"])


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("shape", [(40,), (6, 7)])
def test_the_gradient_is_that_of_the_expected_error(shape, power):
    gram = grams.on_cells(workloads.ranges(shape, 60))
    n = gram.buckets
    blocks = strategies.p_identity_strategy(gram.labels, np.random.default_rng(0).random((3, n)), power)
    theta, a = blocks[1]["matrix"] / blocks[0]["weight"], matrix_of(blocks, n)  # on the grid of weights
    value, gradient = strategies.objective(theta, gram, gram.diagonal(), power)
    assert value == pytest.approx(np.trace(gram.dense() @ np.linalg.inv(a.T @ a)), rel=1e-4)
    for at in ((0, 0), (1, n // 2), (2, n - 1)):
        up, down = theta.copy(), theta.copy()
        up[at] += 1e-5
        down[at] -= 1e-5
        above, below = (strategies.objective(near, gram, gram.diagonal(), power)[0] for near in (up, down))
        assert gradient[at] == pytest.approx((above - below) / 2e-5, rel=1e-4)


@pytest.mark.parametrize(("n", "known"), [(256, 8.71), (1024, 11.62)])
def test_hdmm_reaches_the_known_error(n, known):
    workload = workloads.ranges(n)
    blocks = strategies.hdmm_strategy(workload)
    assert sensitivity(blocks, n) == pytest.approx(1)
    assert root_mean_square(blocks, workload, SQRT2) < known * 1.01


@pytest.mark.parametrize(("asked", "most"), [(workloads.ranges, 0.58), (workloads.prefixes, 0.56)])
def test_for_gaussian_noise_columns_have_a_euclidean_length_of_one(asked, most):
    workload, errors = asked(256), []
    for power in (1, 2):
        blocks = strategies.hdmm_strategy(workload, power)
        lengths = np.linalg.norm(matrix_of(strategies.for_few_rows(blocks, 30.0, power), 256), power, axis=0)
        np.testing.assert_allclose(lengths, 1, atol=1e-4)
        errors.append(root_mean_square(blocks, workload, np.linalg.norm(matrix_of(blocks, 256), axis=0).max()))
    assert errors[1] < most * errors[0]


@pytest.mark.parametrize("shape", [(64,), (12, 12)])
def test_sums_count_more_where_rows_are_few_and_a_row_moves_all_by_one_as_before(shape):
    fitted, cells = strategies.hdmm_strategy(workloads.ranges(shape, 100)), int(np.prod(shape))
    shares = []
    for signal in (-5.0, 0.2 * cells, cells, 100.0 * cells):
        blocks = strategies.for_few_rows(fitted, signal)
        assert np.abs(matrix_of(blocks, cells)).sum(axis=0) == pytest.approx(np.ones(cells))
        shares.append(float(np.mean(blocks[0]["weight"])))
    assert shares == sorted(shares) and shares[0] < shares[2] < shares[3]
    assert shares[3] == pytest.approx(np.mean(fitted[0]["weight"]))


def test_no_cells_and_sums_are_left_as_they_are():
    for blocks in (grids.hb_strategy(64), grids.identity_strategy(8)):
        assert strategies.for_few_rows(blocks, 1.0) is blocks


def test_expected_error_of_cells():
    workload = workloads.ranges(256)
    cells = root_mean_square(grids.identity_strategy(256), workload, SQRT2)
    assert cells == pytest.approx(np.sqrt(2 * workload.mean_length))


def test_expected_error_is_met():
    workload, x = workloads.ranges(256), np.random.default_rng(3).integers(0, 50, 256)
    blocks, rng = strategies.hdmm_strategy(workload), np.random.default_rng(4)
    errors = []
    for _ in range(300):
        found = strategies.estimate(blocks, measure(blocks, x, 1.0, rng), workload, nonnegative=False)
        errors.append(np.mean((workload.answers(found) - workload.answers(x)) ** 2))
    assert np.sqrt(np.mean(errors)) == pytest.approx(root_mean_square(blocks, workload, SQRT2), rel=0.1)


@pytest.mark.parametrize("shape", [(200,), (12, 12)])
def test_reconstruction_is_least_squares_on_buckets(shape):
    rng, n = np.random.default_rng(0), int(np.prod(shape))
    labels = np.arange(n) * 40 // n
    workload = workloads.ranges(shape, 100)
    blocks = strategies.bucket_strategy(labels.reshape(shape), workload)
    answers = [rng.normal(size=len(blocks[0]["weight"])), rng.normal(size=len(blocks[1]["matrix"]))]
    a = np.concatenate([np.diag(blocks[0]["weight"]), blocks[1]["matrix"]])
    expected = np.linalg.lstsq(a, np.concatenate(answers), rcond=None)[0]
    np.testing.assert_allclose(strategies.reconstruct(blocks, answers), expected, atol=1e-8)
    found = strategies.estimate(blocks, answers, workload, nonnegative=False)
    np.testing.assert_allclose(found.ravel(), (expected / np.bincount(labels))[labels], atol=1e-8)


@pytest.mark.parametrize("buckets", [1, 2, 3, 5, 30, 300, 1000])
def test_exact_answers_give_back_the_counts(buckets):
    n, workload = 1000, workloads.ranges(1000, 200)
    labels = np.arange(n) * buckets // n
    x = np.random.default_rng(0).integers(0, 9, buckets)[labels].astype(float)
    blocks = strategies.bucket_strategy(labels, workload)
    np.testing.assert_allclose(
        strategies.estimate(blocks, measure(blocks, x, 1e12, np.random.default_rng(0)), workload), x, atol=1e-6
    )


def test_too_many_buckets_get_a_hierarchy(monkeypatch):
    monkeypatch.setattr(strategies, "MOST_BUCKETS", 50)
    labels, workload = np.arange(400) // 4, workloads.prefixes(400)
    blocks = strategies.bucket_strategy(labels, workload)
    assert all(block["kind"] == "groups" for block in blocks) and sensitivity(blocks, 400) == pytest.approx(1)
    x = labels.astype(float)
    np.testing.assert_allclose(
        strategies.estimate(blocks, measure(blocks, x, 1e12, np.random.default_rng(0)), workload), x, atol=1e-6
    )
    assert strategies.hdmm_strategy(workload)[0]["kind"] == "groups"


def quadratic_program(z0, metric, keeps_sum):
    """min (z − z0)ᵀG(z − z0) over z ≥ 0, maybe with the sum of `z0`, by non-negative least squares on a root of G."""
    from scipy.optimize import nnls

    values, vectors = np.linalg.eigh(metric)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    whole = 1e5 * np.ones((int(keeps_sum), len(z0)))  # a sum that is off by 1e-5 costs 1
    return nnls(np.vstack([root, whole]), np.append(root @ z0, whole[:, 0] * max(z0.sum(), 0)), maxiter=10000)[0]


@pytest.mark.parametrize(
    "workload",
    [
        workloads.prefixes(60), workloads.ranges(60, 400), workloads.identity(60), workloads.rectangles((8, 8), 400),
        marginals.marginals((8, 8), 1), marginals.marginals((3, 4, 5), 2),
    ],
    ids=lambda w: f"{w.kind}{w.shape}",
)  # fmt: skip
def test_projection_is_the_quadratic_program(workload):
    gram, rng = grams.on_cells(workload), np.random.default_rng(0)
    rows = np.stack([workload.member(at) for at in range(workload.size)]).astype(float)
    metric = rows.T @ rows
    for shift in (-1.0, 0.3, 2.0):
        z0 = rng.normal(size=gram.buckets) + shift
        best = quadratic_program(z0, metric, not gram.contiguous or workload.kind == "identity")
        found = strategies.project(z0, gram, iterations=3000, tolerance=1e-7)
        cost, least = ((z - z0) @ metric @ (z - z0) for z in (found, best))
        assert (found >= 0).all() and cost <= least * (1 + 1e-3) + 1e-9
        assert (gram.contiguous and workload.kind != "identity") or found.sum() == pytest.approx(max(z0.sum(), 0))


def test_projection_keeps_what_is_already_there_and_helps_the_workload():
    gram, rng = grams.on_cells(workloads.ranges(1024)), np.random.default_rng(0)
    x = rng.integers(0, 5, 1024).astype(float)
    np.testing.assert_array_equal(strategies.project(x, gram), x)
    z0 = x + rng.laplace(0, 20, 1024)
    tried = (z0, strategies.project(z0, gram), np.maximum(z0, 0))
    error = [np.linalg.norm(gram.workload.answers(gram.spread(z - x))) for z in tried]
    assert error[1] < error[0] < error[2]


def test_a_hierarchy_may_be_projected_too():
    workload, rng = workloads.rectangles((16, 16), 300), np.random.default_rng(0)
    x = (rng.random((16, 16)) < 0.1) * 30
    blocks = grids.hb_strategy((16, 16))
    answers = measure(blocks, x, 0.2, rng)
    plain, kept = (strategies.estimate(blocks, answers, workload, nonnegative=flag) for flag in (False, True))
    assert plain.shape == kept.shape == (16, 16) and (kept >= 0).all() and (plain < 0).any()
    true = workload.answers(x)
    assert np.linalg.norm(workload.answers(kept) - true) < np.linalg.norm(workload.answers(plain) - true)


def test_linear_algebra_runs_on_one_thread():
    from threadpoolctl import threadpool_info

    @linear_algebra.on_one_thread
    def inside():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    linear_algebra._libraries.cache_clear()  # it knows the libraries that were loaded when it was first asked
    assert set(inside()) <= {1}


def test_margins_of_few_rows_in_many_cells_are_as_near_as_their_noise_and_keep_their_sum():
    rng, shape = np.random.default_rng(0), (40, 40, 20)
    x = np.zeros(shape)
    x[tuple(rng.integers(0, side, 300) for side in shape)] += 70
    for over, worst in ((1, 1.05), (2, 0.8), (3, 0.4)):
        workload = marginals.marginals(shape, over)
        blocks = strategies.hdmm_strategy(workload)
        answers = measure(blocks, x, 0.5, rng)
        plain, near = (strategies.estimate(blocks, answers, workload, nonnegative=flag) for flag in (False, True))
        error = [np.linalg.norm(workload.answers(cells - x)) for cells in (plain, near)]
        assert (near >= 0).all() and error[1] < worst * error[0]
        assert near.sum() == pytest.approx(max(plain.sum(), 0))
