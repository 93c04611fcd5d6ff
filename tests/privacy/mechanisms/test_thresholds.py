"""Thresholds that hold back a δ, against the scale that noise is drawn with: it is rounded up to a fraction, so that a
tail is a little heavier than that of the scale that was asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jostle.accounting.amounts import QUANTA, Amount
from jostle.accounting.definitions import Measure
from jostle.privacy.mechanisms import noise
from jostle.privacy.mechanisms.additive import Additive
from jostle.privacy.mechanisms.margin import MarginScales, largest_scale
from jostle.privacy.mechanisms.stability import threshold

SCALES = [2.0**-20, 2.0**-16, 0.0371, 0.99, 1.0, 3.7, 12345.678, 2.0**32, 2.0**33]


def fraction_of(scale: float) -> float:
    """The scale of the sampler of vectors, and of selections among many."""
    t, s = noise.fraction(noise._up(scale))
    return t / s


@pytest.mark.parametrize("scale", SCALES)
def test_no_sampler_draws_with_a_larger_scale(scale: float) -> None:
    several = [noise._up(scale), *([fraction_of(scale)] if noise.fits(scale) else [])]
    assert max(several) <= largest_scale(scale) <= max(several) * (1 + 2.0**-14)


@pytest.mark.parametrize("delta", [2, 3, 17, 400, 31_000])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_lone_key_is_shown_with_no_more_than_its_delta(delta: int, steps: int) -> None:
    """Of budgets by plain sums, where all of δ is for it; ε such that the threshold lies just below a whole number."""
    epsilon = math.ceil(-math.log(delta / QUANTA) / steps * (1 + 1e-13) * QUANTA)
    amount = Amount("epsilon", epsilon, delta)
    how = Additive.of(amount, "laplace", [Measure("basic", amount)])
    least, scale = math.floor(threshold(how, 1, 1) - 1) + 1, fraction_of(1 / how.strength)
    tail = -least / scale - math.log1p(math.exp(-1 / scale))  # of P(noise ≥ least)
    assert tail <= math.log(delta / QUANTA) + 1e-12


@pytest.mark.parametrize("reach", [1, 1000, 2**20])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 7.3])
def test_a_margin_holds_back_its_delta(reach: int, epsilon: float) -> None:
    """Half of δ that a score is selected which lacks G less R, and half that a smaller margin than G passes."""
    half, numbers = 5e-7, np.arange(1, 301)
    scales = MarginScales.of(reach, epsilon, 2 * half)
    threshold_scale, question, selection = map(fraction_of, (scales.threshold, scales.question, scales.selection))
    margins = np.ceil(reach + selection * np.log(numbers / half))
    luck = math.expm1(-1 / threshold_scale) / math.expm1(-1 / threshold_scale - 1 / question)
    passes = math.log(luck) - (scales.thresholds(300) - margins) / question
    assert np.all(passes <= np.log(half / (numbers * (numbers + 1))) + 1e-12)
