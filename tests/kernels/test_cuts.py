"""Cuts, boundaries and frequencies against brute force: costs, their sensitivities, and what the options measure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.fft import dctn

from jostle.kernels.histograms import estimates
from jostle.kernels.histograms import partitions as public
from jostle.kernels.workloads import boxes as workloads
from jostle.privacy.mechanisms import least_cost


def score(values):
    """min over c of Σ|x − c|, by trying every c that could be best."""
    return min((sum(abs(x - c) for x in values) for c in values), default=0)


def neighbours(rng, shape, trials=60, most=9):
    """Pairs of counts of which the second has one row more."""
    for _ in range(trials):
        x = rng.integers(0, int(rng.choice([2, most, 500])), shape)
        y = x.copy()
        y.ravel()[rng.integers(x.size)] += 1
        yield x, y


def test_bisections_cost_what_their_halves_do_and_move_in_one_segment_by_one():
    rng = np.random.default_rng(0)
    starts = [0, 1, 4, 9, 14]
    places = [np.arange(a, b) for a, b in itertools.pairwise([*starts, 19])]
    for x, y in neighbours(rng, 19):
        one, other = (least_cost.bisection_costs(z, starts, places) for z in (x, y))
        moved = 0
        for a, b, some, costs, more in zip(starts, [*starts[1:], 19], places, one, other, strict=True):
            assert costs.tolist() == [score(x[a:p]) + score(x[p:b]) for p in some]
            assert np.abs(costs - more).max() <= 1
            moved += bool((costs != more).any())
        assert moved <= 1


def test_boundaries_cost_what_the_best_partition_does_and_move_by_one():
    rng = np.random.default_rng(1)

    def best(x, bins):
        if bins == 0:
            return 0 if len(x) == 0 else 10**9
        return min((best(x[:q], bins - 1) + score(x[q:]) for q in range(bins - 1, len(x))), default=10**9)

    for x, y in neighbours(rng, 8, trials=15):
        for bins, end in ((2, 8), (3, 8), (4, 6), (3, 3)):
            one, other = (least_cost.Line(z).boundary_costs(bins, end) for z in (x, y))
            assert one.tolist() == [best(x[:q], bins - 1) + score(x[q:end]) for q in range(bins - 1, end)]
            assert np.abs(one - other).max() <= 1


@pytest.mark.parametrize("shape", [(16,), (7,), (4, 6), (1, 5)])
@pytest.mark.parametrize("even", [True, False])
def test_residuals_move_by_no_more_than_their_reach(shape, even):
    rng = np.random.default_rng(2)
    small = tuple(min(side, 5) for side in shape)
    weights = np.ones(small) if even else rng.random(small) / np.sum(np.indices(small) + 1, axis=0)
    kept = np.array([1, 2, 4, 5])
    most, nearest = least_cost.reach(shape, 1, weights), 0
    for x, y in neighbours(rng, shape, trials=200):
        one, other = (least_cost.residuals(z, kept, weights) for z in (x, y))
        nearest = max(nearest, int(np.abs(one - other).max()))
    assert nearest <= most <= 2**least_cost.BITS + least_cost.SLACK
    assert nearest > most / 4  # the bound is not idle


def test_residuals_are_what_is_left_out():
    x = np.random.default_rng(3).integers(0, 50, (6, 9))
    spectrum = dctn(x.astype(float), norm="ortho")
    for k, found in zip((1, 3, 6, 9), least_cost.residuals(x, np.array([1, 3, 6, 9]), np.ones((6, 9))), strict=True):
        left = spectrum.copy()
        left[:k, :k] = 0
        assert found * 2.0**-least_cost.BITS == pytest.approx(np.linalg.norm(left), abs=1e-5)


def test_blocks_are_sums_and_counts_are_clamped():
    x = np.arange(35).reshape(5, 7)
    found = least_cost.block_sums(x, 3)
    assert found.shape == (2, 3) and found.sum() == x.sum() and found[0, 0] == x[:3, :3].sum()
    assert least_cost.block_sums(np.array([2**60, 2**60]), 2).tolist() == [least_cost.MOST_COUNT]


def test_candidates_stand_in_their_segments():
    starts = np.array([0, 1, 5, 100])
    places = public.cut_places(900, starts, 3, most=10)
    for low, high, some in zip(starts, [1, 5, 100, 300], places, strict=True):
        assert some[0] == low and (np.diff(some) > 0).all() and some[-1] < high and len(some) == min(10, high - low)
    assert public.cut(starts, places, np.array([0, 2, 0, 1])).tolist() == [0, 1, 3, 5, 100, 120]
    labels = public.segment_labels(900, np.array([0, 1, 100]), 3)
    assert np.bincount(labels).tolist() == [3, 297, 600]
    assert public.grain_for(1000, 4096) == 1 and public.grain_for((1024, 1024), 4096) == 16


@pytest.mark.parametrize("shape", [(12,), (10,), (4, 6)])
def test_all_frequencies_give_the_cells_back(shape):
    queries, x = workloads.ranges(shape, 40), np.random.default_rng(4).integers(0, 9, shape)
    basis = estimates.fourier_basis(queries, 1)
    strategy = estimates.fourier_strategy(basis, 1, shape, len(basis[0]) - 1)
    assert strategy[0]["matrix"].shape == (x.size, x.size)
    answers = [strategy[0]["matrix"] @ x.ravel()]
    np.testing.assert_allclose(estimates.fourier_cells(strategy, answers), x.ravel(), atol=1e-9)


def test_the_cost_of_frequencies_is_the_length_of_their_noise():
    queries, rng, epsilon = workloads.ranges(24, 100), np.random.default_rng(5), 0.5
    basis = estimates.fourier_basis(queries, 2)
    costs = estimates.fourier_costs(basis, 2, 24, epsilon)
    longest = max(np.linalg.norm(queries.answers(np.repeat(v, 2) / 2)) for v in estimates._cosines(12))
    for at in (0, 2, len(costs) - 1):
        strategy = estimates.fourier_strategy(basis, 2, 24, at)
        scale = np.abs(strategy[0]["matrix"]).sum(axis=0).max() / epsilon
        noise = rng.laplace(0, scale, (400, len(strategy[0]["matrix"])))
        lengths = [np.linalg.norm(queries.answers(estimates.fourier_cells(strategy, [z]))) / longest for z in noise]
        assert np.sqrt(np.mean(np.square(lengths))) == pytest.approx(costs[at], rel=0.2)
