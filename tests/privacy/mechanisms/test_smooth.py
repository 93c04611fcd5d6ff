"""Smooth noise: the δ of the discrete law at ε, summed up over outcomes, and what is told of its error."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.accounting.definitions import Measure
from jostle.diagnostics import Refusal
from jostle.error_laws import SmoothLaplaceErrors, facts_of, law_named, quantiles
from jostle.noise_laws import Laplace
from jostle.privacy.measurements.smooth import (
    LEAST,
    SLACK,
    WIDEST,
    Smooth,
    largest_beta,
    needed_delta,
    peak,
    smoothed,
    told_epsilon,
)
from jostle.privacy.transformations.joins import Product
from jostle.simulate import SeededNoise


def amount(epsilon: float, delta: float) -> Amount:
    return Amount("epsilon", quanta(epsilon, "epsilon"), quanta(delta, "delta") if delta else 0)


def within(epsilon: float, delta: float, groups: int = 1) -> Smooth:
    return Smooth.within(amount(epsilon, delta), [Measure("basic", amount(9, 0.5))], groups)


def chances(scale: float, at: np.ndarray) -> np.ndarray:
    """P(z) of discrete Laplace noise."""
    return math.tanh(0.5 / scale) * np.exp(-np.abs(at) / scale)


def delta_of(epsilon: float, scale: float, other: float, shift: tuple[int, ...]) -> float:
    """Σ over all z of (P(z) − e^ε·P′(z + shift))₊, of noise of both scales, and what is left out."""
    reach = math.ceil(scale * math.log(1e14)) if len(shift) == 1 else math.ceil(scale * 22)
    one = np.arange(-reach, reach + 1)
    p, q = np.ones(()), np.ones(())
    for s in shift:
        p, q = np.multiply.outer(p, chances(scale, one)), np.multiply.outer(q, chances(other, one + s))
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum()) + max(0.0, 1 - float(p.sum()))


def worst(how: Smooth, beta: float, scales: tuple[float, ...]) -> float:
    """Over neighbours whose S are as far apart as β allows or less: with the smaller S they part by that S at most.

    What tells the scale takes a part of ε beside.
    """
    left = how.alpha * 2 - told_epsilon(how.beta) * beta / how.beta
    found = 0.0
    for small, part, swapped in product(scales, (0.3, 1.0), (False, True)):
        other = small * math.exp((beta + SLACK) * part)
        most = math.floor(how.alpha * small)
        shifts = [(most,), (most // 2,), (0,)] if how.groups == 1 else [(most - i, -i) for i in (0, most // 2)]
        if how.groups == 3:
            shifts = [(most, 0, 0)]
        for shift in shifts:
            pair = (other, small) if swapped else (small, other)
            found = max(found, delta_of(left, *pair, shift))
    return found


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.2, 1e-3), (1.0, 0.01), (4.0, 1e-5), (12.0, 0.1)])
def test_one_count_loses_no_more_than_epsilon_and_delta(epsilon: float, delta: float) -> None:
    how = within(epsilon, delta)
    scales = (1.0, 1.7, 5.3, 40.0, 700.0)
    exact = worst(how, how.beta, scales)
    assert exact <= delta
    if epsilon < 10:  # and not much less: the argument gives little away
        assert exact > delta / 4
        assert worst(how, 2 * how.beta, scales) > 2 * delta


@pytest.mark.parametrize(("epsilon", "delta", "groups"), [(1.0, 0.01, 2), (3.0, 1e-4, 2), (3.0, 0.02, 3)])
def test_several_counts_lose_no_more(epsilon: float, delta: float, groups: int) -> None:
    how = within(epsilon, delta, groups)
    assert worst(how, how.beta, (1.0, 3.1) if groups == 3 else (1.0, 2.3, 20.0)) <= delta


def test_beta_falls_with_the_number_of_counts_and_grows_with_what_is_paid() -> None:
    of_groups = [largest_beta(1.0, 1e-6, d) for d in (1, 2, 10, 100, 10_000)]
    assert of_groups == sorted(of_groups, reverse=True) and of_groups[-1] * 10_000 < 0.5
    assert largest_beta(1.0, 1e-6, 1) < largest_beta(1.0, 1e-3, 1) < largest_beta(2.0, 1e-3, 1)
    for groups in (1, 3, 50):
        beta = largest_beta(1.0, 1e-6, groups)
        assert 0.99e-6 < needed_delta(1.0, beta, groups) <= 1e-6 < needed_delta(1.0, 1.001 * beta, groups)


@pytest.mark.parametrize("beta", [0.01, 0.2, 1.3])
def test_the_peak_of_a_product(beta: float) -> None:
    for factors in product([(0, 1), (3, 1), (3, 2), (7, 0), (40, 5)], repeat=3):
        by_hand = max(math.exp(-beta * k) * math.prod(m + g * k for m, g in factors) for k in range(2000))
        assert peak(factors, beta) == pytest.approx(by_hand, rel=1e-12)
    assert peak([], beta) == peak([(1, 0)], beta) == 1 and peak([(0, 0), (3, 1)], beta) == 0
    assert peak([(10**18, 1), (10**18, 1)], beta) == pytest.approx(1e36)


def test_frequencies_of_one_source_grow_together() -> None:
    """Of one source (m + k)², of two the product of both maxima, which is less."""
    products, beta = [[Product(1, (0, 1))]], 0.1
    together = smoothed(products, [2, 2], [(1,), (1,)], beta)
    apart = smoothed(products, [2, 2], [(1, 0), (0, 1)], beta)
    assert together == pytest.approx(max(math.exp(-0.1 * k) * (2 + k) ** 2 for k in range(99)))
    assert apart == pytest.approx(max(math.exp(-0.1 * k) * (2 + k) for k in range(99)) ** 2) and apart < together / 2
    three = smoothed([[Product(1, (0, 1, 2))]], [2, 2, 2], [(1, 0), (0, 1), (1, 1)], beta)  # joined by the third
    assert three == pytest.approx(max(math.exp(-0.1 * k) * (2 + k) ** 3 for k in range(99)))


def test_what_is_told_of_the_error_holds() -> None:
    how, noise, runs = within(1.0, 1e-6), SeededNoise(4), 20_000
    inside = {0.5: 0, 0.95: 0, 0.99: 0}
    squares, told = 0.0, 0.0
    for _ in range(runs):
        noisy, scale = how.draw(noise, np.array([5000]), 300.0)
        law = SmoothLaplaceErrors(scale, 1.0)
        off = abs(int(noisy[0]) - 5000)
        for level in inside:
            inside[level] += off <= WIDTHS[level] * scale + 1
        squares, told = squares + off**2, told + law.deviation**2
    for level, many in inside.items():
        assert abs(many / runs - level) < 5 * math.sqrt(level * (1 - level) / runs) + 0.002
    mean_square = 2 * 600.0**2  # S/α = 600
    assert squares / runs == pytest.approx(mean_square, rel=0.1)
    assert told / runs == pytest.approx(mean_square / (1 - 4 / 16) ** 2, rel=0.3)  # E scale² is as much larger again


WIDTHS = {level: SmoothLaplaceErrors(1.0).half_width(level) for level in (0.5, 0.95, 0.99)}


def test_the_law_of_both_noises() -> None:
    """By quadrature over the noise of ln b."""
    w = (np.arange(400_000) + 0.5) / 400_000
    noise = 0.25 * np.sign(w - 0.5) * np.log(1 - 2 * np.abs(w - 0.5)) * -1
    law = SmoothLaplaceErrors(10.0)
    for level in (0.5, 0.95, 0.99):
        wide = law.half_width(level) / 10
        assert float(np.exp(-wide * np.exp(noise)).mean()) == pytest.approx(1 - level, rel=1e-3)
        assert quantiles(law, np.array([0.5 + level / 2]))[0] == pytest.approx(10 * wide, rel=1e-3)
    assert law.half_width() > 1.1 * Laplace(10.0).half_width()
    assert SmoothLaplaceErrors(10.0, 1.0).half_width() == math.ceil(law.half_width())
    assert law_named(*facts_of(law)) == law and law.times(3).scale == 30


def test_a_scale_is_never_below_one_nor_endless() -> None:
    how, noise = within(20.0, 0.01), SeededNoise(1)
    for smooth in (1e-3, 1e300):
        noisy, told = how.draw(noise, np.array([2**62, -(2**62)]), smooth)
        assert noisy.dtype == np.int64 and 1 <= told <= WIDEST


def test_what_is_refused() -> None:
    with pytest.raises(Refusal, match="needs a delta"):
        within(1.0, 0.0)
    with pytest.raises(Refusal, match="too little epsilon"):
        within(LEAST, 1e-6)
    with pytest.raises(Refusal, match="needs a delta"):
        Smooth.within(Amount("rho", quanta(1.0, "rho")), [Measure("zcdp", Amount("rho", 10**12))], 1)
