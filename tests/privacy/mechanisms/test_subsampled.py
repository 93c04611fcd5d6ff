"""Secret samples: what Gaussian noise on them loses, against exact sums over small laws and against dp-accounting."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from jostle.accounting.composition import rate_for
from jostle.accounting.subsampled_gaussian import ORDERS, divergences, epsilon_of_steps, noise_for
from jostle.privacy.mechanisms.noise import SHARES, SecureNoise
from jostle.simulate import SeededNoise

# dp-accounting 0.6.0, `RdpAccountant` with these very orders, and `PLDAccountant`, which knows the continuous law
# itself: (q, σ, steps, δ), ε by the first, ε by the second.
DP_ACCOUNTING = [
    ((0.01, 1.0, 1000, 1e-5), 2.1077530754515745, 1.8282436455855091),
    ((0.001, 0.8, 10000, 1e-6), 1.720122885906917, 0.94732386397318),
    ((0.0625, 4.0, 100, 1e-6), 0.7445161375963798, 0.6842415530088897),
    ((0.25, 1.5, 50, 1e-3), 5.3846819391803, 4.663807294723746),
    ((1.0, 10.0, 100, 1e-6), 5.222428660953289, 4.886554124377032),
    ((0.05, 0.5, 1, 1e-5), 6.3409488787479145, 5.5168771890034645),
    ((0.0625, 120.0, 100, 1e-6), 0.01847282615994337, 0.01670566447762633),
]


@pytest.mark.parametrize(("asked", "rdp", "pld"), DP_ACCOUNTING)
def test_steps_lose_what_dp_accounting_says(asked: tuple[float, float, int, float], rdp: float, pld: float) -> None:
    rate, sigma, steps, delta = asked
    found = epsilon_of_steps(rate, sigma, steps, delta)
    assert rdp * (1 - 1e-12) <= found <= rdp * (1 + 1e-7)
    assert found >= pld


def laws(rate: float, sigma: float, shift: tuple[int, ...], reach: int = 14) -> tuple[np.ndarray, np.ndarray]:
    """The discrete Gaussian on a box of ℤⁿ, and the mixture that a unit kept with probability q makes of it."""
    axes = [np.arange(-reach, reach + 1 + 8 * most) for most in shift]
    x = np.array(list(itertools.product(*axes)), dtype=float)

    def law(centre: np.ndarray) -> np.ndarray:
        p = np.exp(-((x - centre) ** 2).sum(axis=1) / (2 * sigma**2))
        return p / p.sum()

    plain = law(np.zeros(len(shift)))
    return plain, (1 - rate) * plain + rate * law(np.array(shift, dtype=float))


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return math.log(float((q * np.exp(order * (np.log(p) - np.log(q)))).sum())) / (order - 1)


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9, 1.0])
@pytest.mark.parametrize(("sigma", "shift"), [(0.6, (1,)), (1.3, (1,)), (1.7, (1, 1)), (1.5, (2,))])
def test_the_bound_is_what_discrete_noise_loses(rate: float, sigma: float, shift: tuple[int, ...]) -> None:
    """Towards the mixture with equality, and no more the other way round; deviations are in sensitivities."""
    plain, mixed = laws(rate, sigma, shift)
    bound = dict(zip(ORDERS, divergences(rate, sigma / math.hypot(*shift)), strict=True))
    for order in (2, 3, 5, 8):
        towards, back = renyi(mixed, plain, order), renyi(plain, mixed, order)
        assert towards == pytest.approx(bound[order], rel=1e-6, abs=1e-12)
        assert back <= bound[order] * (1 + 1e-9)


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.6, 1.5])
def test_three_steps_are_within_what_they_were_sold_for(rate: float, epsilon: float) -> None:
    """δ(ε) of three steps exactly, by convolving their loss; both ways. A little less noise would break it."""
    delta, steps = 1e-3, 3

    def lost(sigma: float) -> float:
        plain, mixed = laws(rate, sigma, (1,), reach=round(7 * sigma))
        return max(_delta(mixed, plain, epsilon, steps), _delta(plain, mixed, epsilon, steps))

    sigma = noise_for(epsilon, delta, rate, steps)
    assert lost(sigma) <= delta
    assert lost(0.6 * sigma) > delta


def _delta(p: np.ndarray, q: np.ndarray, epsilon: float, steps: int) -> float:
    total = np.zeros(1)
    for _ in range(steps):
        total = (total[:, None] + (np.log(p) - np.log(q))[None, :]).ravel()
    weights = np.ones(1)
    for _ in range(steps):
        weights = (weights[:, None] * p[None, :]).ravel()
    return float((weights * np.clip(-np.expm1(epsilon - total), 0.0, None)).sum())


def test_noise_follows_its_amount() -> None:
    for rate, steps in [(1.0, 10), (0.05, 100)]:
        sigmas = [noise_for(epsilon, 1e-6, rate, steps) for epsilon in (0.1, 1.0, 10.0)]
        assert sigmas == sorted(sigmas, reverse=True)
        for epsilon, sigma in zip((0.1, 1.0, 10.0), sigmas, strict=True):
            assert epsilon * (1 - 1e-3) <= epsilon_of_steps(rate, sigma, steps, 1e-6) <= epsilon


def test_a_rate_left_out_costs_a_tenth_at_most_and_meets_every_row() -> None:
    for epsilon in (0.01, 0.5, 4.0):
        rate = rate_for(epsilon, 1e-6, 100)
        assert 4 / 100 <= rate <= 1
        mean = noise_for(epsilon, 1e-6, rate, 100) / rate
        assert mean <= 1.1001 * noise_for(epsilon, 1e-6, 1.0, 100)


@pytest.mark.filterwarnings("error")
def test_an_amount_that_no_noise_keeps_is_no_warning_of_numpy() -> None:
    """A deviation without end was asked about, whose loss is no number: a line of this package on standard error."""
    assert noise_for(1e-9, 1e-9, 1.0, 3000) == math.inf and 4 / 3000 <= rate_for(1e-9, 1e-9, 3000) <= 1


@pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(3)], ids=["secure", "seeded"])
def test_a_sample_keeps_each_by_itself(noise: SecureNoise | SeededNoise) -> None:
    """At six standard errors: of the share kept, and of pairs kept together."""
    n, kept = 400_000, SHARES // 4
    chosen = noise.sample(n, kept)
    assert chosen.shape == (n,)
    assert abs(chosen.mean() - 0.25) < 6 * math.sqrt(0.25 * 0.75 / n)
    assert abs((chosen[:-1] & chosen[1:]).mean() - 1 / 16) < 6 * math.sqrt(0.3 / n)
    assert noise.sample(1000, SHARES).all() and noise.sample(0, kept).size == 0
    assert not np.array_equal(noise.sample(1000, kept), noise.sample(1000, kept))
