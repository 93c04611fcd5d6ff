"""Expected counts under mixtures of negative binomial laws, beside the sums over all counts that define them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from jostle.kernels.histograms import grids, smoothing, strategies
from jostle.kernels.workloads import boxes as workloads


def defined(seen: float, scale: float, mean: float, most: int) -> tuple[list[float], list[float]]:
    """The likelihood and the expected count under every kind, by sums over 0 … most."""
    counts = np.arange(most + 1)
    noise = np.exp(-np.abs(counts - seen) / scale)
    alone, laws = [0.0, mean], []
    for dispersion in smoothing.DISPERSIONS:
        if dispersion == 0:
            laws.append(stats.poisson.pmf(counts, mean))
        else:
            laws.append(stats.nbinom.pmf(counts, 1 / dispersion, 1 / (1 + mean * dispersion)))
    joint = [noise * law for law in laws]
    likely = [float(np.exp(-abs(count - seen) / scale)) for count in alone]
    return likely + [float(one.sum()) for one in joint], alone + [float(one @ counts / one.sum()) for one in joint]


@pytest.mark.parametrize(("scale", "mean"), [(0.25, 0.1), (1.0, 3.0), (2.0, 0.4), (20.0, 8.0), (10.0, 300.0)])
def test_few_counts_stand_for_all(scale: float, mean: float) -> None:
    """Expected counts differ from their definition by little of the noise, likelihoods by a fifth at most."""
    for seen in (mean - 4 * scale, mean, mean + 1.5 * scale, mean + 7 * scale):
        likely, expected = smoothing._by_kind(np.array([seen]), np.array([scale]), np.array([mean]))
        likely_told, expected_told = defined(seen, scale, mean, 4000)
        np.testing.assert_allclose(expected[0], expected_told, atol=0.15 * scale)
        ratios = likely[0] / np.array(likely_told)
        assert ratios.max() < 1.2 * ratios.min()


def test_kinds_are_learned_from_the_cells_of_a_box() -> None:
    """Of ten thousand cells, nine tenths empty and the others many, the shares are found."""
    draw = np.random.default_rng(2)
    counts = np.where(draw.random(10_000) < 0.9, 0, draw.poisson(50, 10_000))
    seen = counts + draw.laplace(0, 2, counts.shape)
    found = smoothing.posterior_means(seen, np.full(10_000, 2.0), np.ones(10_000), np.zeros(10_000, dtype=np.int64))
    plain, shrunk = (float(np.mean((one - counts) ** 2)) for one in (np.maximum(seen, 0), found))
    assert shrunk < 0.4 * plain
    assert found[counts == 0].mean() < 0.4 and abs(float((found - counts)[counts > 0].mean())) < 0.5
    assert found.min() >= 0


@pytest.mark.parametrize(("shape", "scale"), [((400, 400), 0.7), ((400, 400), 4.3), ((5000,), 2.0)])
def test_cells_of_which_most_are_empty_have_the_sum_that_was_measured(shape: tuple[int, ...], scale: float) -> None:
    """Cut at 0, noise alone makes a sum that is many times too high."""
    draw, cells = np.random.default_rng(4), int(np.prod(shape))
    counts = np.where(draw.random(cells) < 0.05, draw.negative_binomial(0.5, 0.02, cells), 0).astype(float)
    seen = counts + np.rint(draw.laplace(0, scale, cells))
    found = smoothing.smoothed(grids.identity_strategy(shape), [seen], scale, workloads.identity(shape)).ravel()
    cut = np.maximum(seen, 0)
    assert found.min() >= 0 and np.mean((found - counts) ** 2) < 0.3 * np.mean((cut - counts) ** 2)
    assert abs(found.sum() - counts.sum()) < 4 * scale * np.sqrt(2 * cells) < cut.sum() - counts.sum()


def test_a_spike_stays_where_all_else_is_empty() -> None:
    counts = np.zeros(4096)
    counts[77] = 100_000
    seen = counts + np.random.default_rng(3).laplace(0, 5, 4096)
    found = smoothing.posterior_means(seen, np.full(4096, 5.0), np.ones(4096), np.zeros(4096, dtype=np.int64))
    assert abs(found[77] - seen[77]) < 5
    assert np.delete(found, 77).mean() < 0.2 < np.delete(np.maximum(seen, 0), 77).mean() / 10


def test_cells_that_were_measured_one_by_one_are_shrunk_by_their_expected_counts() -> None:
    """Of a table of which a tenth is not empty, a third of the squared error of counts cut at 0 goes; least squares
    that keep the sum have less yet."""
    shape, errors = (24, 24), []
    asked = workloads.identity(shape)
    strategy = strategies.hdmm_strategy(asked)
    for seed in range(6):
        draw = np.random.default_rng(seed)
        counts = np.where(draw.random(shape) < 0.1, draw.poisson(30, shape), 0)
        seen = [counts.ravel() + draw.laplace(0, 4, counts.size)]
        plain, drawn = strategies.estimate(strategy, seen, asked), smoothing.smoothed(strategy, seen, 4.0, asked)
        assert drawn.shape == shape and drawn.min() >= 0
        cut = np.maximum(seen[0], 0).reshape(shape)
        errors.append([float(((cells - counts) ** 2).sum()) for cells in (cut, np.asarray(plain), drawn)])
    cut_at_0, least_squares, expected = np.sum(errors, axis=0)
    assert expected < 0.75 * cut_at_0 and least_squares < 0.6 * cut_at_0
