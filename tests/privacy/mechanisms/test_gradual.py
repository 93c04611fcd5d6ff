"""Noise in steps: its whole law on small numbers, by running it on every draw that matters, and in closed form."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from test_one_sided import TAIL, Law, Prescribed, law_of, loss

from jostle.error_laws import Widening, quantiles
from jostle.noise_laws import Laplace
from jostle.privacy.measurements.gradual import refined
from jostle.privacy.mechanisms.noise import SecureNoise
from jostle.simulate import SeededNoise


def laplace(k: int, scale: float) -> float:
    """The probability of k under discrete Laplace noise."""
    return math.tanh(1 / (2 * scale)) * math.exp(-abs(k) / scale)


def widening(k: int, wide: float, fine: float) -> float:
    """The law that is claimed of what noise of scale `fine` lacks to noise of scale `wide`."""
    atom = Widening(wide, 1.0, fine).atom
    return atom * (k == 0) + (1 - atom) * laplace(k, wide)


def shown(scales: list[float], exact: int) -> Law:
    """The law of the answers of all steps, over every draw."""

    def answers(draws: tuple[int, ...]) -> tuple[int, ...]:
        noise, sealed, told = Prescribed(draws), None, []
        for scale in scales:
            sealed = refined(sealed, np.array([exact]), noise, scale, 1)
            told.append(int(sealed.noisy[0]))
        return tuple(told)

    return law_of(answers, [scale for scale in scales for _ in range(2)])


SCALES = [0.6, 0.5]
FINE = 1 / (1 / 0.6 + 1 / 0.5)


def test_every_step_has_the_law_of_one_measurement_and_the_chain_is_a_function_of_the_last() -> None:
    """P(coarse, fine) is Laplace(fine)·W(coarse − fine), for every pair of answers: W knows nothing of the data."""
    law = shown(SCALES, 0)
    checked = 0
    for (coarse, fine), chance in law.items():
        expected = laplace(fine, FINE) * widening(coarse - fine, SCALES[0], FINE)
        assert chance == pytest.approx(expected, abs=3 * TAIL)
        checked += expected > 10 * TAIL
    assert checked > 20
    assert sum(chance for (coarse, fine), chance in law.items() if coarse == fine) > 0.2  # there is an atom


def test_all_steps_lose_what_the_last_answer_costs() -> None:
    """The largest log-ratio over all outcomes of two steps, and of one that is taken only after a low answer."""
    here, there = shown(SCALES, 0), shown(SCALES, 1)
    worst = max(loss(here, there), loss(there, here))
    assert 1 / FINE - 0.05 < worst <= 1 / FINE + 1e-2

    def stopped(law: Law) -> Law:
        some: Law = defaultdict(float)
        for (coarse, fine), chance in law.items():
            some[(coarse, fine if coarse <= 0 else None)] += chance
        return some

    one, other = stopped(here), stopped(there)
    assert max(loss(one, other), loss(other, one)) <= 1 / FINE + 1e-2
    early = [{o: p for o, p in law.items() if o[1] is None} for law in (one, other)]
    assert loss(early[0], defaultdict(float, early[1])) <= 1 / SCALES[0] + 1e-2


@pytest.mark.parametrize(("wide", "fine"), [(Fraction(4, 5), Fraction(1, 2)), (Fraction(9, 10), Fraction(1, 10))])
def test_the_convolution_of_fine_noise_and_its_widening_is_the_coarse_law(wide: Fraction, fine: Fraction) -> None:
    """In exact fractions of α = e^(−1/b), each sum over all whole numbers by its geometric series."""

    def weight(alpha: Fraction) -> Fraction:
        return (1 - alpha) / (1 + alpha)

    def convolved(k: int) -> Fraction:
        """Σ_j wide^|j|·fine^|k − j|: what is left of 0, right of k, and between."""
        both = wide * fine
        return (fine**k + wide**k) * both / (1 - both) + sum(wide**j * fine ** (k - j) for j in range(k + 1))

    atom = ((1 - wide) / (1 - fine)) ** 2 * fine / wide
    scales = [-1 / math.log(alpha) for alpha in (wide, fine)]
    assert Widening(scales[0], 1.0, scales[1]).atom == pytest.approx(float(atom))
    for k in range(40):
        mixed = atom * weight(fine) * fine**k + (1 - atom) * weight(wide) * weight(fine) * convolved(k)
        assert mixed == weight(wide) * wide**k


def test_several_numbers_and_secure_noise_have_the_law_of_one_measurement() -> None:
    """40,000 numbers at once, three steps; each frequency within six standard errors."""
    for noise in (SecureNoise(), SeededNoise(3)):
        sealed, many = None, 40_000
        for scale in (4.0, 4.0, 2.0):
            sealed = refined(sealed, np.full(many, 7), noise, scale, 5)
        assert sealed is not None and sealed.paid == 15 and sealed.noisy.shape == (many,)
        for k in range(-3, 4):
            expected = laplace(k, 1.0)
            assert abs(float((sealed.noisy == 7 + k).mean()) - expected) < 6 * math.sqrt(expected / many)


@pytest.mark.parametrize("step", [0.0, 1.0, 0.25])
def test_the_widening_knows_its_deviation_quantiles_and_half_width(step: float) -> None:
    law, rng, many = Widening(3.0, step, 1.5), np.random.default_rng(7), 400_000
    assert law.times(2.0).atom == pytest.approx(law.atom)
    wide = quantiles(Laplace(3.0, step), rng.random(many))
    noise = np.where(rng.random(many) < law.atom, 0.0, wide)
    assert law.deviation == pytest.approx(float(noise.std()), rel=0.02)
    for level in (law.atom / 2, 0.6, 0.95):
        half = law.half_width(level)
        assert float((np.abs(noise) <= half + 1e-9).mean()) > level - 0.005
        assert not half or float((np.abs(noise) < half - step / 2 - 1e-9).mean()) < level + 0.005
    places = (np.arange(1000) + 0.5) / 1000
    assert quantiles(law, places).std() == pytest.approx(law.deviation, rel=0.02)
    assert float((quantiles(law, places) == 0).mean()) >= law.atom - 0.002


def test_what_is_drawn_at_each_step_has_the_scale_of_the_step_alone() -> None:
    """Two draws a number, and the numbers are read once."""
    noise = Prescribed((3, 1, 2, 5))
    coarse = refined(None, np.array([10]), noise, 4.0, 1)
    fine = refined(coarse, np.array([99]), noise, 2.0, 1)
    assert (coarse.noisy[0], fine.noisy[0], coarse.paid, fine.paid) == (10 + 3 - 1, 10 + 2 - 1, 1, 2)
    assert noise.scales == [4.0, 4.0, 2.0, 2.0]
