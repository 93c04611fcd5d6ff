"""Conversions between measures against numeric references that share no code with them."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.accounting.amounts import QUANTA, Amount, Unit
from jostle.accounting.composition import part_of
from jostle.accounting.definitions import (
    Measure,
    Price,
    epsilon_of,
    gaussian_price,
    pure_epsilon,
    pure_price,
    rho_of,
    used_delta,
)
from jostle.privacy.kernel.exposures import Source
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.noise import SecureNoise
from jostle.privacy.mechanisms.selection import Selection


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
    terms = order * np.log(p) + (1 - order) * np.log(q)
    return float((terms.max() + np.log(np.exp(terms - terms.max()).sum())) / (order - 1))


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
    charged = Selection(amount, gumbel=False).price.rho / QUANTA
    assert worst <= charged
    assert worst > epsilon**2 / 8  # so the cheaper price is refuted
    under_rho = Selection(Amount("rho", round(charged * QUANTA)), gumbel=False).epsilon
    assert under_rho == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 3.0])
def test_what_the_exponential_mechanism_costs_in_zcdp(epsilon: float) -> None:
    """Gumbel noise: P(i) ∝ exp(score/scale). Three scores, every way in which they can move apart by 1 each."""
    scale, worst = 2 / epsilon, 0.0

    def law(scores: np.ndarray) -> np.ndarray:
        weights = np.exp((scores - scores.max()) / scale)
        return weights / weights.sum()

    for first, second in [(a, b) for a in np.linspace(-4, 4, 9) for b in np.linspace(-4, 4, 9)]:
        base = np.array([0.0, first, second])
        for moved in np.array(np.meshgrid([-1, 0, 1], [-1, 0, 1], [-1, 0, 1])).reshape(3, -1).T:
            p, q = law(base), law(base + moved)
            assert np.abs(np.log(p / q)).max() <= epsilon * (1 + 1e-12)
            worst = max(worst, *(renyi(p, q, order) / order for order in (1.001, 2, 8, 64)))
    charged = Selection(Amount("epsilon", round(epsilon * QUANTA)), gumbel=True).price.rho / QUANTA
    assert worst <= charged and worst > 0.8 * charged * min(1.0, 1 / epsilon)
    under_rho = Selection(Amount("rho", round(charged * QUANTA)), gumbel=True).epsilon
    assert under_rho == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.slow
def test_gumbel_selection_is_drawn_by_its_law() -> None:
    """OpenDP's draws and the seeded ones, against P(i) ∝ exp(score/scale): chi-square at 1e-9 each."""
    from scipy.stats import chisquare

    from jostle.simulate import SeededNoise

    scores, scale = np.array([0, 3, 5, 1]), 2.5
    weights = np.exp(scores / scale)
    for noise in (SecureNoise(), SeededNoise(7)):
        seen = np.bincount([noise.gumbel_max(scores, scale) for _ in range(20_000)], minlength=4)
        assert chisquare(seen, 20_000 * weights / weights.sum()).pvalue > 1e-9
        flipped = np.bincount([noise.noisy_max(scores, scale) for _ in range(20_000)], minlength=4)
        assert chisquare(flipped, 20_000 * weights / weights.sum()).pvalue < 1e-9  # the other law is another


def test_a_selection_draws_gumbel_noise_where_zcdp_counts_it() -> None:
    from jostle.privacy.mechanisms.noise import SecureNoise

    def law(*measures: Measure) -> bool:
        sources = [Source(f"s{i}", m, Unit(), None, SecureNoise()) for i, m in enumerate(measures)]
        amount = Amount(measures[0].unit, QUANTA)
        return Selection.of(amount, [s.measure for s in sources]).gumbel

    pure, zcdp = Measure("pure", Amount("epsilon", QUANTA)), Measure("zcdp", Amount("rho", QUANTA))
    both = Measure("approximate", Amount("epsilon", QUANTA, QUANTA // 1000))
    basic = Measure("basic", both.limit)
    assert law(zcdp) and law(both) and law(both, both)
    assert not law(pure) and not law(basic) and not law(both, pure)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 12.0])
def test_what_a_pure_mechanism_costs_in_zcdp(epsilon: float) -> None:
    """Randomised response, the worst of all, and discrete Laplace noise on a count, at orders from 1 on."""
    keep = 1 / (1 + math.exp(-epsilon))
    answers = np.array([keep, 1 - keep])
    values = np.arange(-int(60 / epsilon) - 40, int(60 / epsilon) + 42)
    laplace = [np.exp(-epsilon * np.abs(values - at)) * math.tanh(epsilon / 2) for at in (0, 1)]
    charged = pure_price(Amount("epsilon", round(epsilon * QUANTA))).rho / QUANTA
    for p, q in ((answers, answers[::-1]), laplace):
        each = [renyi(p, q, order) / order for order in (1.001, 1.1, 1.5, 2, 4, 16, 64)]
        assert max(each) <= charged * (1 + 1e-9)
        assert float(np.sum(p * np.log(p / q))) == pytest.approx(charged, rel=1e-6)  # α → 1: no less would do
        assert pure_epsilon(charged) == pytest.approx(epsilon, rel=1e-7)  # prices are whole quanta


@given(rho=st.floats(1e-12, 1e300))
def test_the_epsilon_of_rho_is_never_too_much(rho: float) -> None:
    with localcontext() as context:
        context.prec = 400
        epsilon = Decimal(pure_epsilon(rho))
        shrunk = (-epsilon).exp() if epsilon < 1000 else Decimal(0)
        assert epsilon * (1 - shrunk) / (1 + shrunk) <= Decimal(rho)


def test_prices_are_never_below_the_true_cost() -> None:
    for value in (1, 7, 10**6 + 1, 123456789012, 3 * 10**15 + 1):
        epsilon = Decimal(value) / QUANTA
        grown = epsilon.exp()
        true = epsilon * (grown - 1) / (grown + 1)  # ε·tanh(ε/2), to 50 digits
        charged = Decimal(pure_price(Amount("epsilon", value)).rho) / QUANTA
        assert true <= charged <= true * (1 + Decimal(2) ** -44) + Decimal(2) / QUANTA
    wish = Amount("epsilon", QUANTA, QUANTA // 10**6)
    price = gaussian_price(wish, 1e-6)
    assert epsilon_of(price.rho / QUANTA, 1e-6) <= 1.0 < epsilon_of((price.rho + 2) / QUANTA, 1e-6)


def test_one_gaussian_may_spend_all_of_an_approximate_budget() -> None:
    wish = Amount("epsilon", QUANTA, QUANTA // 10**6)
    measure = Measure("approximate", wish)
    price = Additive.fitted(wish, "gaussian", [measure]).price
    assert measure.admits(measure.cost(price)) and price.rho == measure.rho_limit
    more = Amount("epsilon", QUANTA, 10 * wish.delta)
    assert used_delta(more, [measure]) == used_delta(wish, [measure])  # no more than the budget has
    assert used_delta(more, [Measure("basic", wish)]) == more.delta / QUANTA


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 32.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-9])
def test_an_approximate_budget_is_fixed_boxes(epsilon: float, delta: float) -> None:
    measure = Measure("approximate", Amount("epsilon", round(epsilon * QUANTA), round(delta * QUANTA)))
    rho, whole, most = measure.rho_limit, measure.limit.value, measure.limit.delta
    assert measure.admits((rho, most, whole + 1, most + 1)) and measure.admits((rho + 1, most, whole, most))
    assert not measure.admits((rho + 1, 0, whole + 1, 0)) and not measure.admits((rho + 1, 0, whole, most + 1))
    assert not measure.admits((0, most + 1, 0, 0))
    used = used_delta(measure.limit, [measure])  # a third each for failures, Gaussian noise in plain sums, and ρ
    assert 2 * used + delta_by_grid(rho / QUANTA, epsilon) <= delta * (1 + 1e-6)  # a grid of orders
    assert rho > 0.8 * QUANTA * rho_of(epsilon, delta)  # what the boxes cost
    assert measure.cost(Price(Amount("epsilon", 5, 7), 3, 2)) == (3, 2, 5, 7)
    assert measure.cost(Price(Amount("epsilon", 5, 7), 3, 2, pure=True)) == (3, 2, 5, 2)
    assert measure.cost(Price(Amount("epsilon", 5, 7), 3, 2), in_part_of_person=True) == (3, 2, whole + 1, 7)


def traded(epsilon: float, rho: float, first: float, delta0: float) -> float:
    """What two neighbours lose at ε: noise of `first`, then as it was seen the rest of ρ, or a key shown with δ₀.

    Of the key itself nothing else is lost, which is less than what finding it costs in ρ.
    """
    from scipy.stats import norm

    z = np.linspace(-12, 12, 6001)
    weights = norm.pdf(z) / norm.pdf(z).sum()
    loss = first + math.sqrt(2 * first) * z
    mu = math.sqrt(2 * (rho - first))
    left = epsilon - loss
    gaussian = norm.cdf(mu / 2 - left / mu) - np.exp(left + norm.logcdf(-mu / 2 - left / mu))
    key = np.maximum(delta0, -np.expm1(np.minimum(0, left)))
    return float((weights * np.maximum(gaussian, key)).sum())


@pytest.mark.parametrize("epsilon", [8.0, 32.0])
def test_what_is_seen_cannot_trade_rho_for_delta(epsilon: float) -> None:
    """By the rule that let the two be traded, an adaptive program loses more than δ; by the box it does not."""
    delta = 1e-4
    measure = Measure("approximate", Amount("epsilon", round(epsilon * QUANTA), round(delta * QUANTA)))
    rho, most = measure.rho_limit / QUANTA, measure.conversion_delta
    within = max(traded(epsilon, rho, rho * part, most) for part in np.linspace(0.05, 0.95, 19))
    assert 0.2 * delta < within <= delta
    if epsilon == 32:
        all_of_it, direct = rho_of(epsilon, delta), 0.995 * delta
        before = rho_of(epsilon, delta - direct)  # room for the key under the rule that traded
        assert max(traded(epsilon, all_of_it, before * part, direct) for part in (0.8, 0.9, 0.99)) > 1.05 * delta


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_what_is_seen_cannot_pick_the_better_of_two_accounts(epsilon: float) -> None:
    """Randomised response first; then, as it fell, all the pure ε that is left, or all the ρ that is left."""
    from scipy.stats import norm

    delta = 1e-4
    measure = Measure("approximate", Amount("epsilon", round(epsilon * QUANTA), round(delta * QUANTA)))
    worst = 0.0
    for first in np.linspace(0.02, 0.98, 25) * pure_epsilon(measure.rho_limit / QUANTA):
        price = pure_price(Amount("epsilon", round(first * QUANTA)))
        mu = math.sqrt(2 * (measure.rho_limit - price.rho) / QUANTA)
        lost = 0.0
        for loss, chance in ((first, 1 / (1 + math.exp(-first))), (-first, 1 / (1 + math.exp(first)))):
            left = epsilon - loss
            gaussian = norm.cdf(mu / 2 - left / mu) - math.exp(left + norm.logcdf(-mu / 2 - left / mu))
            pure = max(0.0, -math.expm1(left - (epsilon - first)))  # all of what is left says the same: never above ε
            lost += chance * max(gaussian, pure)
        worst = max(worst, lost)
    assert 0.05 * delta < worst <= measure.conversion_delta


@pytest.mark.parametrize("whole", [QUANTA, 10**8 * QUANTA])
@pytest.mark.parametrize("first", [0.1, 0.3, 0.7, 0.9, 1 / 3])
def test_a_share_and_the_rest_of_it_fit_into_any_amount(first: float, whole: int) -> None:
    parts = [(2 / 3) ** i for i in range(1, 7)]  # as the rounds of `stagewise` share what the mean leaves
    assert part_of(whole, first) + part_of(whole, 1 - first) <= whole
    rounds = [part_of(whole, (1 - first) * part / sum(parts)) for part in parts]
    assert whole * (1 - 1e-9) < part_of(whole, first) + sum(rounds) <= whole
