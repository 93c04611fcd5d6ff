"""Posterior counts over a tree of blocks against dense algebra, sums over a lattice, and what they are for."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from dense_core import measure

from jostle.kernels.arrays import groups, with_sum
from jostle.kernels.histograms import adaptive, blocktree, grids, smoothing, strategies
from jostle.kernels.histograms.blocktree import Seen
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.kernels.workloads import boxes
from jostle.noise_laws import Gaussian


def leaves(tree):
    found = np.flatnonzero(tree.high - tree.low == 1)
    return found[np.argsort(tree.low[found])]


@pytest.mark.parametrize("places", [[0], [0, 1], [0, 4, 6, 7], [0, 1, 2, 3, 8, 12], [0, 3, 5, 6, 9, 10, 15]])
def test_a_tree_has_every_block_once_and_halves_what_it_says(places):
    cells = np.arange(1.0, len(places) + 1)
    tree = blocktree.tree_over(np.array(places), cells, 4)
    assert len(tree.low) == 2 * len(places) - 1
    np.testing.assert_array_equal(tree.cells[leaves(tree)], cells)
    for level in tree.levels:
        np.testing.assert_array_equal(tree.low[level.nodes], tree.low[level.left])
        np.testing.assert_array_equal(tree.high[level.left], tree.low[level.right])
        np.testing.assert_array_equal(tree.high[level.nodes], tree.high[level.right])
        np.testing.assert_allclose(tree.cells[level.nodes], tree.cells[level.left] + tree.cells[level.right])
    np.testing.assert_array_equal(tree.node_of(tree.low, tree.high), np.arange(len(tree.low)))
    assert tree.node_of(np.array([0]), np.array([len(places) + 1]))[0] == -1


def test_least_squares_are_those_of_dense_algebra():
    rng, places = np.random.default_rng(0), np.array([0, 2, 3, 8, 9, 13])
    tree = blocktree.tree_over(places, np.ones(6), 4)
    nodes = np.concatenate([leaves(tree), np.arange(len(tree.low))])
    values, scales = rng.normal(50, 20, len(nodes)), rng.uniform(1, 5, len(nodes))
    rows = np.array(
        [(np.arange(6) >= tree.low[node]) & (np.arange(6) < tree.high[node]) for node in nodes], dtype=float
    )
    weighted = rows / scales[:, None]
    dense = np.linalg.lstsq(weighted, values / scales, rcond=None)[0]
    found, variance = blocktree.least_squares(
        tree, [Seen(nodes[:6], values[:6], scales[:6]), Seen(nodes[6:], values[6:], scales[6:])]
    )
    np.testing.assert_allclose(found[leaves(tree)], dense, rtol=1e-9)
    np.testing.assert_allclose(variance[leaves(tree)], 2 * np.diag(np.linalg.inv(weighted.T @ weighted)), rtol=1e-9)


@pytest.mark.parametrize(
    ("seen", "scale"), [((30.0, 2.0), 4.0), ((10.0, 8.0), 4.0), ((0.0, -3.0), 2.0), ((200.0, 90.0), 10.0)]
)
def test_two_cells_have_the_mean_that_a_sum_over_shares_gives(seen, scale):
    """Counts up to 300, shares in 20,000 steps, and the three kinds of halves, summed without a grid of messages."""
    tree = blocktree.tree_over(np.array([0, 1]), np.ones(2), 1)
    found = blocktree.posterior(tree, [Seen(leaves(tree), np.array(seen), np.full(2, scale))], scale)
    edges = (1 - np.cos(np.pi * np.linspace(0, 1, 20001))) / 2
    share = (edges[1:] + edges[:-1]) / 2
    chance = (blocktree.masses(edges[None], np.zeros(1)) @ blocktree.laws(np.zeros(1))[0])[0]
    even, point = float(blocktree.chance_of_even(np.array([2.0]))[0]), blocktree.POINT
    share = np.concatenate([share, [0.5, 0.0, 1.0]])
    chance = np.concatenate([(1 - even - point) * chance, [even, point / 2, point / 2]])
    count = np.arange(0, 500, 0.5)[:, None]
    likely = chance * np.exp(-(np.abs(seen[0] - count * share) + np.abs(seen[1] - count * (1 - share))) / scale)
    likely = likely / (count + scale)  # before, rows are as likely at any order of magnitude
    means = [(likely * count * part).sum() / likely.sum() for part in (share, 1 - share)]
    np.testing.assert_allclose(found.mean[leaves(tree)], means, atol=0.25 * scale)
    assert found.mean[0] == pytest.approx(found.mean[leaves(tree)].sum(), abs=1e-6 + 0.05 * scale)


def test_few_rows_among_many_cells_are_told_by_a_grid_that_is_finer_near_none():
    """Reading what was written at points of a grid from 0 on gives it back, and so do counts between two of them."""
    tree = blocktree.tree_over(np.arange(64), np.ones(64), 6)
    grids = blocktree._Grids(tree, [Seen(leaves(tree), np.zeros(64), np.ones(64))], 1.0)
    root = np.zeros(1, dtype=np.int64)
    assert grids.low[0] == 0 and grids.counts[0, 1] < grids.counts[0, -1] / 900
    np.testing.assert_allclose(grids.write(root, grids.counts[:1], np.ones((1, blocktree.POINTS))), 1, atol=1e-6)
    between = grids.counts[:1, :-1] * 0.3 + grids.counts[:1, 1:] * 0.7
    np.testing.assert_allclose(grids.read(root, grids.counts[:1], between), between, rtol=1e-9)
    at = grids.write(root, between, np.ones_like(between))
    np.testing.assert_allclose((at * grids.counts[:1]).sum(), between.sum(), rtol=1e-5)


def test_halves_add_up_and_exact_counts_stay():
    rng = np.random.default_rng(1)
    x = np.where(rng.random(64) < 0.3, rng.pareto(1, 64) * 100, 0.0)
    tree = blocktree.tree_over(np.arange(64), np.ones(64), 6)
    noisy = blocktree.posterior(tree, [Seen(leaves(tree), x + rng.laplace(0, 5, 64), np.full(64, 5.0))], 5.0)
    for level in tree.levels:
        both = noisy.mean[level.left] + noisy.mean[level.right]
        np.testing.assert_allclose(both, noisy.mean[level.nodes], atol=8.0)
    sure = blocktree.posterior(tree, [Seen(leaves(tree), x, np.full(64, 1e-3))], 1e-3)
    np.testing.assert_allclose(sure.mean[leaves(tree)], x, atol=0.02)


def test_cells_get_nearer_to_few_full_ones_and_to_slopes():
    """Mean squared errors over ten seeded noises, against the noise cut at 0, which has about half of its square."""
    shapes = {"points": np.where(np.arange(256) % 64 == 5, 300.0, 0.0), "slope": np.linspace(0, 30, 256)}
    for name, x in shapes.items():
        errors = np.zeros(2)
        for seed in range(10):
            noisy = x + np.random.default_rng(seed).laplace(0, 10, 256)
            found = adaptive.expected_cells([noisy], 10.0, boxes.identity(256))
            errors += ((found - x) ** 2).mean(), ((np.maximum(noisy, 0) - x) ** 2).mean()
        assert errors[0] < 0.5 * errors[1], name


def test_cells_are_a_mean_of_both_posteriors_which_is_more_of_the_tree_where_rows_are_few(monkeypatch):
    rng, asked = np.random.default_rng(4), boxes.identity(64)
    for rows in (0, 3, 500):
        noisy = rng.poisson(rows, 64) + rng.laplace(0, 10, 64)
        both = adaptive.expected_cells([noisy], 10.0, asked)
        alone = smoothing.smoothed(grids.identity_strategy(64), [noisy], 10.0, asked)
        with monkeypatch.context() as whole:
            whole.setattr(adaptive, "HALF", 1e9)
            halves = adaptive.expected_cells([noisy], 10.0, asked)
        each = max(noisy.mean(), 0) / 10
        share = 1 / (1 + (each / 0.4) ** 2)
        np.testing.assert_allclose(both, share * halves + (1 - share) * alone, rtol=1e-9)


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (100,), (9, 5), (6, 5, 4)])
def test_all_counts_together_are_near_the_truth_where_noise_is_small(shape):
    rng = np.random.default_rng(2)
    x, asked = rng.integers(0, 40, shape), boxes.ranges(shape, 20)
    labels = np.zeros(shape, dtype=np.int64)
    held = np.array([float(x.sum())])
    strategy = adaptive.refined_strategy(labels, held, 0.01, asked)
    sums = np.bincount(strategy[0]["labels"], weights=x.ravel())
    answers = [np.asarray(strategy[0]["weight"]) * sums]
    if len(strategy) > 1:
        answers.append(np.asarray(strategy[1]["matrix"]) @ sums)
    found = adaptive.drawn_together(labels, held, 0.01, strategy, answers, 0.01, asked)
    assert found.shape == shape and found.min() >= 0
    np.testing.assert_allclose(asked.answers(found), asked.answers(x.astype(float)), atol=1.0)


def test_smaller_blocks_are_worth_more_in_fewer_dimensions():
    """Of a line one query in n/k ends in a block of k of n cells, of a square one in about the root of that."""
    share = np.array([1.0, 1 / 4096])
    np.testing.assert_allclose(adaptive._worth(share, 1), [2, 128])
    np.testing.assert_allclose(adaptive._worth(share, 2), [1, 8])


def test_a_full_block_is_halved_and_empty_ones_are_joined():
    asked = boxes.ranges(64, 50)
    labels = np.repeat(np.arange(4), 16)
    strategy = adaptive.refined_strategy(labels, np.array([0.3, -0.2, 5000.0, 0.1]), 1.0, asked)
    blocks = np.asarray(strategy[0]["labels"])
    assert len(np.unique(blocks[32:48])) == 16 and len(np.unique(blocks[:32])) <= 2


def test_exact_and_very_many_blocks_are_only_estimated(monkeypatch):
    asked, labels, x = boxes.ranges(16, 9), np.arange(16), np.arange(16.0)
    strategy = adaptive.refined_strategy(labels, x, 0.0, asked)
    answers = [np.asarray(strategy[0]["weight"]) * x, *(np.asarray(b["matrix"]) @ x for b in strategy[1:])]
    found = adaptive.drawn_together(labels, x, 0.0, strategy, answers, 0.0, asked)
    np.testing.assert_allclose(found, x, atol=1e-6)
    projected = with_sum(x - 1, np.ones(16), float((x - 1).sum()))
    np.testing.assert_array_equal(adaptive.expected_cells([x - 1], 0.0, boxes.identity(16)), projected)
    monkeypatch.setattr(adaptive, "MOST", 8)
    noisy = adaptive.drawn_together(labels, x, 1.0, strategy, answers, 1.0, asked)
    np.testing.assert_allclose(noisy, strategies.estimate(strategy, answers, asked))
    assert grids.group_strategy(labels)[0]["size"] == groups(labels, 1.0)["size"] == 16


def test_normal_laws_give_what_dense_algebra_gives():
    """Counts of nodes, precisions of gaps before, and weighted sums of blocks, as one system of equations."""
    rng, places = np.random.default_rng(2), np.array([0, 2, 3, 8, 9, 13])
    tree = blocktree.tree_over(places, rng.uniform(1, 9, 6), 4)
    tree = replace(tree, cells=np.array([tree.cells[leaves(tree)][low:high].sum()
                                         for low, high in zip(tree.low, tree.high, strict=True)]))  # fmt: skip
    nodes, own, tight = len(tree.low), rng.uniform(0.1, 2, len(tree.low)), np.zeros(len(tree.low))
    told = rng.normal(0, 5, (nodes, 3))
    told[np.setdiff1d(np.arange(nodes), leaves(tree)), 1:] = 0
    inside = np.array([(np.arange(6) >= low) & (np.arange(6) < high)
                       for low, high in zip(tree.low, tree.high, strict=True)], dtype=float)  # fmt: skip
    precision, gaps = (inside.T * own) @ inside, np.zeros((nodes, 6))
    for level in tree.levels:
        tight[level.nodes] = rng.uniform(0.1, 2, len(level.nodes))
        even = (tree.cells[level.left] / tree.cells[level.nodes])[:, None]
        gaps[level.nodes] = inside[level.left] - even * inside[level.nodes]
    precision += (gaps.T * tight) @ gaps
    covariance = np.linalg.inv(precision)
    means, variance, apart, spread = blocktree._normal(tree, own, told, tight)
    np.testing.assert_allclose(means, inside @ covariance @ inside.T @ told, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variance, np.diag(inside @ covariance @ inside.T), rtol=1e-9)
    np.testing.assert_allclose(apart, gaps @ covariance @ inside.T @ told, rtol=1e-9, atol=1e-9)
    cut = np.concatenate([level.nodes for level in tree.levels])
    np.testing.assert_allclose(spread[cut], np.diag(gaps @ covariance @ gaps.T)[cut], rtol=1e-9)


def test_halves_know_more_than_cells_and_sums_alone():
    """A hill, and steps, seen through a strategy for ranges: less squared error than `hdmm` and than like cells."""
    cells, workload = np.arange(256), boxes.ranges(256, 300)
    strategy, rng = strategies.hdmm_strategy(workload), np.random.default_rng(4)
    for truth in (np.rint(60 * np.exp(-(((cells - 90) / 25) ** 2))), np.repeat(rng.poisson(6, 16), 16).astype(float)):
        errors = np.zeros(3)
        for _ in range(20):
            answers = measure(strategy, truth, 0.1, rng)
            for i, way in enumerate((strategies.estimate, smoothing.smoothed, adaptive.halved_cells)):
                told = (answers, workload) if i == 0 else (answers, 10.0, workload)
                errors[i] += np.sum((workload.answers(way(strategy, *told)) - workload.answers(truth)) ** 2)
        assert errors[2] < 0.9 * errors[0]
        assert errors[2] < errors[1]


def test_halves_of_a_plane_know_more_than_like_cells_alone():
    """A hill, and lines along both axes: a tenth less squared error, at least, than like cells."""
    i, workload = np.arange(16), boxes.ranges((16, 16), 300)
    strategy, rng = strategies.hdmm_strategy(workload), np.random.default_rng(4)
    hill = np.rint(40 * np.exp(-(((i[:, None] - 5) / 3) ** 2) - ((i - 9) / 2) ** 2))
    for truth in (hill, np.rint(4 * np.outer(np.where(i % 5 == 0, 8, 1), np.exp(-i / 3)))):
        errors = np.zeros(2)
        for _ in range(8):
            answers = measure(strategy, truth, 0.1, rng)
            for at, way in enumerate((smoothing.smoothed, adaptive.halved_cells)):
                found = way(strategy, answers, 10.0, workload)
                errors[at] += np.sum((workload.answers(found) - workload.answers(truth)) ** 2)
        assert errors[1] < 0.9 * errors[0]


def test_where_rows_are_few_halves_know_more_by_sums_that_count_more():
    """Steps, half a row for each cell in scales of the noise: a quarter less squared error, at least."""
    truth, workload = np.repeat(np.random.default_rng(1).poisson(6, 16), 16).astype(float), boxes.ranges(256, 300)
    fitted, rng, scale = strategies.hdmm_strategy(workload), np.random.default_rng(7), 2 * truth.mean()
    few, errors = strategies.for_few_rows(fitted, truth.sum() / scale), np.zeros(2)
    for _ in range(12):
        for at, strategy in enumerate((fitted, few)):
            found = adaptive.halved_cells(strategy, measure(strategy, truth, 1 / scale, rng), scale, workload)
            errors[at] += np.sum((workload.answers(found) - workload.answers(truth)) ** 2)
    assert errors[1] < 0.75 * errors[0]


@pytest.mark.parametrize("shape", [(4,), (5,), (64,), (8, 8), (3, 5, 4)])
def test_what_a_tree_draws_together_is_a_number_whatever_was_seen(shape):
    workload = boxes.ranges(shape, 20)
    strategy, rng = strategies.hdmm_strategy(workload), np.random.default_rng(5)
    for scale, size in ((1e-9, 1e12), (1.0, 0.0), (1e9, 1.0), (1e-3, 1e-9)):
        answers = measure(strategy, size * rng.random(shape), 1 / scale, rng)
        found = adaptive.halved_cells(strategy, answers, scale, workload)
        assert found.shape == shape
        assert np.isfinite(found).all()
        assert found.min() >= 0


def test_halves_without_rows_are_known_to_be_empty():
    """All rows in three of 64 cells: the others have less than half of the squares that trees give them otherwise."""
    workload, truth = boxes.ranges(64, 200), np.zeros(64)
    truth[[9, 20, 51]] = 900, 2500, 600
    strategy, rng = strategies.hdmm_strategy(workload), np.random.default_rng(6)
    line, weight = adaptive._line((64,)), np.broadcast_to(strategy[0]["weight"], (64,))
    tree, errors = line.tree(np.arange(64)), np.zeros(2)
    for _ in range(10):
        answers = measure(strategy, truth, 0.1, rng)
        seen = blocktree.Seen(blocktree.leaves_of(tree), answers[0] / weight, 10 / weight)
        sums = blocktree.Sums(np.asarray(strategy[1]["matrix"]), answers[1], 10.0)
        for i, shows in enumerate((np.inf, blocktree.SHOWS)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(blocktree, "SHOWS", shows)
                found = blocktree.normal_posterior(tree, [seen], 10.0, sums).mean[seen.nodes]
            errors[i] += np.sum(found[truth == 0] ** 2)
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(("shape", "parts"), [((1,), 1), ((8,), 8), ((53,), 16), ((3, 70), 16), ((9, 9, 9), 16)])
def test_equal_parts_are_blocks_of_the_tree_of_halves(shape, parts):
    assert adaptive.equal_parts(shape, -3.0).max() == 0
    labels = adaptive.equal_parts(shape, 13.0)
    assert len(adaptive._line(shape).blocks(labels)) == parts == labels.max() + 1
    assert np.bincount(labels).min() > 0
    asked, x = boxes.ranges(shape, 20), np.random.default_rng(3).integers(0, 40, shape)
    strategy = strategies.bucket_strategy(labels, asked)
    answers = measure(strategy, x, 1e3, np.random.default_rng(4))
    one, whole = np.zeros(x.shape, dtype=np.int64), np.array([float(x.sum())])
    found = adaptive.drawn_together(one, whole, 1.0, strategy, answers, 1e-3, asked)
    np.testing.assert_allclose(np.bincount(labels, found.ravel()), np.bincount(labels, x.ravel()), rtol=0.005)


def _few_rows(x, asked, run):
    """A line with 40 rows in units of the noise: answers to 64 parts and sums of them, as examples make them likely,
    and answers to six parts, by laws of halves."""
    rng, one = np.random.default_rng(run), np.zeros(x.shape, dtype=np.int64)
    fine = strategies.for_few_rows(strategies.bucket_strategy(adaptive.equal_parts(x.shape, 64), asked), 1)
    like = adaptive.like_examples(fine, measure(fine, x, 0.1, rng), 10.0, asked)
    few, total = strategies.bucket_strategy(adaptive.equal_parts(x.shape, 6), asked), np.array([x.sum()])
    return like, adaptive.drawn_together(one, total, 100.0, few, measure(few, x, 0.1, rng), 10.0, asked)


def test_gaussian_noise_is_known_as_such():
    """A hill and a spike: what is drawn together of it is worse where it is taken for Laplace noise as wide."""
    x, asked = np.rint(40 * np.exp(-(((np.arange(64) - 20) / 6) ** 2))), boxes.ranges(64, 200)
    x[50], rng, single = 400, np.random.default_rng(8), boxes.identity(64)
    fitted, cells = strategies.hdmm_strategy(asked, 2), grids.identity_strategy(64)
    ways = [
        (fitted, lambda a: adaptive.halved_cells(fitted, a, 10.0, asked), asked),
        (cells, lambda a: adaptive.expected_cells(a, 10.0, single), single),
        (fitted, lambda a: adaptive.like_examples(fitted, a, 10.0, asked), asked),
    ]  # fmt: skip
    errors = np.zeros((2, len(ways)))
    for _, (way, (strategy, drawn, queries)) in itertools.product(range(40), enumerate(ways)):
        exact = measure(strategy, x, 1e12, rng)
        plain = [one + rng.normal(0, 10 * 2**0.5, len(one)) for one in exact]
        told = [with_noise(one, NoiseModel(Gaussian(10 * 2**0.5))) for one in plain]
        for known, answers in enumerate((plain, told)):
            errors[known, way] += np.mean((queries.answers(drawn(answers)) - queries.answers(x)) ** 2)
    assert (errors[1] < np.array([0.98, 1, 0.6]) * errors[0]).all()


def test_few_rows_of_a_line_are_like_columns_of_tables():
    """A hill, a tail, a slope, a plateau and a gamma law: laws of halves alone have 1.2 times the error."""
    at = np.arange(200) / 200
    lines = [np.exp(-(((at - 0.3) / 0.1) ** 2) / 2), 0.9 ** np.arange(200), 1 + at, at < 0.3, at * 0.97 ** (100 * at)]
    asked, errors = boxes.ranges(200, 200), np.zeros((2, len(lines)))
    for run, (i, line) in itertools.product(range(20), enumerate(lines)):
        x = np.rint(400 * line / line.sum())
        for way, found in enumerate(_few_rows(x, asked, run)):
            assert found.shape == x.shape and found.min() >= 0
            errors[way, i] += np.sqrt(np.mean((asked.answers(found) - asked.answers(x)) ** 2))
    assert np.exp(np.log(errors[0] / errors[1]).mean()) < 0.85


@pytest.mark.parametrize(
    "shape", [(1,), (2,), (5,), (64,), (65,), (700,), (1, 3), (4, 5), (8, 8), (9, 40), (70, 6), (4, 5, 6)]
)
def test_examples_give_way_to_what_is_measured_well(shape):
    x, asked = np.random.default_rng(5).integers(0, 40, shape), boxes.ranges(shape, 20)
    labels = adaptive.equal_parts(shape, 16)
    strategy = strategies.bucket_strategy(labels, asked)
    answers = measure(strategy, x, 1e3, np.random.default_rng(6))
    found = adaptive.like_examples(strategy, answers, 1e-3, asked)
    assert found.shape == x.shape and found.min() >= 0
    np.testing.assert_allclose(np.bincount(labels, found.ravel()), np.bincount(labels, x.ravel()), rtol=0.01, atol=0.3)
