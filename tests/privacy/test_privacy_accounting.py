"""Conversions between measures against numeric references that share no code with them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jostle.privacy.amounts import QUANTA
from jostle.privacy.measures import Amount, Measure, Price, epsilon_of, gaussian_price, pure_price, rho_of
from jostle.privacy.mechanisms.additive import selection_epsilon, selection_price


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """The exact δ(ε) of Gaussian noise with sensitivity 1 (Balle & Wang 2018, Thm. 8)."""
    from scipy.stats import norm

    return float(norm.cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * norm.cdf(-0.5 / sigma - epsilon * sigma))


def delta_by_grid(rho: float, epsilon: float) -> float:
    """Canonne, Kamath & Steinke 2020, Cor. 13, by trying a million α: never below the infimum."""
    a = 1 + np.logspace(-6, 5, 1_000_000)
    return math.exp(min(0.0, float(((a - 1) * (a * rho - epsilon) + a * np.log1p(-1 / a) - np.log(a - 1)).min())))


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_zcdp_to_approximate(rho: float, delta: float) -> None:
    epsilon = epsilon_of(rho, delta)
    assert delta_by_grid(rho, epsilon) <= delta * (1 + 1e-3)
    assert epsilon == 0 or delta_by_grid(rho, epsilon) >= delta * (1 - 1e-3)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun & Steinke 2016, Prop. 1.3
    assert gaussian_delta(epsilon, 1 / math.sqrt(2 * rho)) <= delta  # what is claimed of a Gaussian is true of it
    if epsilon == 0:
        return
    back = rho_of(epsilon, delta)
    assert back <= rho + 1e-12 and back >= rho * (1 - 1e-6) - 1e-12
    assert epsilon_of(back, delta) <= epsilon


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return float(np.log((p**order * q ** (1 - order)).sum()) / (order - 1))


def permute_and_flip(scores: np.ndarray, scale: float) -> np.ndarray:
    """The exact law of report noisy max with exponential noise: P(i) = E over orders of coin flips, for two scores."""
    best = scores.max()
    keep = np.exp(-(best - scores) / scale)
    return np.array([keep[0] * (1 - keep[1] / 2), keep[1] * (1 - keep[0] / 2)])


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 3.0])
def test_what_a_selection_costs_in_zcdp(epsilon: float) -> None:
    """Two scores that move apart: ε²/8, as for the exponential mechanism, would be too little."""
    scale, worst = 2 / epsilon, 0.0
    for gap in np.linspace(-4, 4, 41):
        p = permute_and_flip(np.array([0.0, gap]), scale)
        q = permute_and_flip(np.array([1.0, gap - 1]), scale)
        for order in (1.001, 1.5, 2, 4, 16, 64):
            worst = max(worst, renyi(p, q, order) / order, renyi(q, p, order) / order)
    amount = Amount("epsilon", round(epsilon * QUANTA))
    charged = selection_price(amount).rho / QUANTA
    assert worst <= charged
    assert worst > epsilon**2 / 8  # so the cheaper price is refuted
    under_rho = selection_epsilon(Amount("rho", selection_price(amount).rho))
    assert under_rho == pytest.approx(epsilon, rel=1e-6)


def test_prices_are_never_below_the_true_cost() -> None:
    for value in (1, 7, 10**6 + 1, 123456789012, 3 * 10**15 + 1):
        assert pure_price(Amount("epsilon", value)).rho * 2 * QUANTA >= value * value
    wish = Amount("epsilon", QUANTA, QUANTA // 10**6)
    price = gaussian_price(wish)
    assert epsilon_of(price.rho / QUANTA, 1e-6) <= 1.0 < epsilon_of((price.rho + 2) / QUANTA, 1e-6)
    assert Measure("approximate", wish).admits((price.rho, 0))  # one Gaussian may spend all there is


def test_an_approximate_budget_stays_within_both() -> None:
    limit = Measure("approximate", Amount("epsilon", QUANTA, QUANTA // 10**6))
    rho, delta0 = 0, 0
    while limit.admits((rho + QUANTA // 1000, delta0 + 10**4)):
        rho, delta0 = rho + QUANTA // 1000, delta0 + 10**4
    assert delta0 < QUANTA // 10**6 and epsilon_of(rho / QUANTA, 1e-6 - delta0 / QUANTA) <= 1
    assert not limit.admits((0, QUANTA // 10**6))  # nothing would be left of δ for ρ
    assert limit.cost(Price(Amount("epsilon", 5), 3, 2)) == (3, 2)
