"""The multiplicative-weights update against a plain loop over all cells."""

from __future__ import annotations

import time

import numpy as np
import pytest

from jostle.kernels.histograms import estimates
from jostle.kernels.workloads import boxes as workloads


def plain(estimate, lows, highs, answers, total, passes):
    x = estimate * (total / estimate.sum())
    for _ in range(passes):
        for low, high, answer in zip(lows, highs, answers, strict=True):
            box = tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))
            held = x[box].sum()
            x = x.copy()
            x[box] *= np.exp((answer - held) / (2 * total))
            x *= total / x.sum()
    return x


@pytest.mark.parametrize("shape", [(50,), (7, 9)])
def test_the_update_is_the_plain_loop(shape):
    rng, workload = np.random.default_rng(0), workloads.ranges(shape, 6, 2)
    lows, highs = workload.bounds()
    answers, start = rng.normal(100, 150, 6), rng.random(shape) * 3
    found = estimates.mwem_update(start, lows, highs, answers, 400.0, passes=7)
    np.testing.assert_allclose(found, plain(start, lows, highs, answers, 400.0, 7), rtol=1e-9)
    assert found.sum() == pytest.approx(400) and found.shape == shape


def test_many_passes_agree_with_consistent_answers():
    x, workload = np.arange(64.0), workloads.ranges(64, 8, 1)
    lows, highs = workload.bounds()
    found = estimates.mwem_update(
        estimates.uniform_estimate(64, x.sum()), lows[:, 0], highs[:, 0], workload.answers(x), x.sum(), 2000
    )
    np.testing.assert_allclose(workload.answers(found), workload.answers(x), rtol=0.02)


def test_useless_totals_and_answers_do_no_harm():
    start = estimates.uniform_estimate(10, -5.0)
    found = estimates.mwem_update(start, np.array([0, 4]), np.array([9, 5]), np.array([-1e9, 1e9]), -3.0)
    assert np.isfinite(found).all() and (found >= 0).all() and found.sum() == pytest.approx(1)


def test_ten_rounds_over_4096_cells_are_quick():
    lows, highs = workloads.ranges(4096, 10).bounds()
    estimate, began = estimates.uniform_estimate(4096, 1000.0), time.process_time()
    for t in range(1, 11):
        estimate = estimates.mwem_update(estimate, lows[:t], highs[:t], np.full(t, 400.0), 1000.0)
    assert time.process_time() - began < 5
