"""The noise itself: OpenDP's own maps agree with ours, its laws are the ones argued from, and nothing wraps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recording import Bench

from jostle.privacy.mechanisms.least_cost import constants
from jostle.privacy.mechanisms.noise import SecureNoise, _gaussian, _laplace, _selection, _up


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1 / 3, 1.0, 7.0])
@pytest.mark.parametrize("sensitivity", [1, 3, 1025, 2**30 - 1])
def test_scales_by_the_maps_of_another_author(epsilon: float, sensitivity: int) -> None:
    """What OpenDP says a mechanism costs, at the scale that we would give it."""
    assert _laplace(_up(sensitivity / epsilon)).map(sensitivity) <= epsilon
    assert _selection(_up(2 * sensitivity / epsilon), "exponential").map(sensitivity) <= epsilon
    sigma = _up(sensitivity / math.sqrt(2 * epsilon))
    assert _gaussian(sigma).map(float(sensitivity)) <= epsilon * (1 + 1e-12)


def within(hits: int, runs: int, p: float) -> bool:
    return abs(hits - runs * p) <= 6 * math.sqrt(runs * p * (1 - p)) + 1


def test_the_laws_are_those_argued_from() -> None:
    """Six standard deviations each: some twenty comparisons fail together less than once in ten million."""
    noise, runs = SecureNoise(), 20_000
    drawn = noise.laplace(np.zeros(runs, dtype=np.int64), 2.0)
    q = math.exp(-1 / 2.0)
    for k in range(-4, 5):
        assert within(int((drawn == k).sum()), runs, (1 - q) / (1 + q) * q ** abs(k))
    weights = {k: math.exp(-(k**2) / (2 * 1.5**2)) for k in range(-40, 41)}
    drawn = noise.gaussian(np.zeros(runs, dtype=np.int64), 1.5)
    for k in range(-3, 4):
        assert within(int((drawn == k).sum()), runs, weights[k] / sum(weights.values()))
    wins = sum(noise.noisy_max(np.array([0, 3]), 2.0) for _ in range(5000))
    assert within(wins, 5000, 1 - math.exp(-3 / 2.0) / 2)  # permute-and-flip, and so one-sided exponential noise


def test_the_largest_values_saturate() -> None:
    ends = np.array([2**62, -(2**62)] * 200)
    drawn = SecureNoise().laplace(ends, 1e18)
    assert (np.sign(drawn) == np.sign(ends)).mean() > 0.9  # had they wrapped, the signs would be mixed


def test_the_walk_is_given_its_share_of_the_distance(bench: Bench) -> None:
    for unit, distance in (("rows", 1), ("rows, public size", 2)):
        bench.table([[i % 8] for i in range(30)], ["v"])
        program = f'private t = table("t.csv") described by {{v: 0..7}} protecting {unit} budget epsilon 1\n'
        program += "p = least_cost_partition(histogram(t, x = v), public_splits = 0) with epsilon 1"
        (charge,) = bench.run(program).charges
        assert {draw.scale for draw in charge.draws} == {constants(1 / distance).scale}
