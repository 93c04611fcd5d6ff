"""The large margin mechanism: its whole law on three small scores over all neighbours, and what the code does of it."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest

from jostle.privacy.mechanisms.margin import MarginScales, clear

EPSILON, DELTA = 4.0, 0.2
TAIL = 1e-9


class Prescribed:
    """Noise whose draws are prescribed, none negative, so that folding leaves them."""

    def __init__(self, draws: list[int]) -> None:
        self.draws = iter(draws)

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        return np.array([next(self.draws) for _ in range(values.size)])


def law(scores: tuple[int, ...], scales: MarginScales, thresholds: tuple[int, ...]) -> dict[tuple[int, int], float]:
    """The probability of every outcome: how many stand clear, and which of them is selected."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    margins = [scores[order[0]] - scores[i] for i in order[1:]]
    taus = np.arange(math.ceil(scales.threshold * math.log(1 / TAIL)))
    weights = -math.expm1(-1 / scales.threshold) * np.exp(-taus / scales.threshold)
    outcomes: dict[tuple[int, int], float] = {}
    for among in range(1, len(scores) + 1):
        if among <= len(margins):
            needed = thresholds[among - 1] - margins[among - 1] + taus
            passing = np.exp(-np.maximum(needed, 0) / scales.question)
            chance, weights = float((weights * passing).sum()), weights * (1 - passing)
        else:
            chance = float(weights.sum())
        largest = [math.exp((scores[i] - scores[order[0]]) / scales.selection) for i in order[:among]]
        for place, size in zip(order, largest, strict=False):
            outcomes[among, place] = chance * size / sum(largest)
    return outcomes


def worst_delta(scales: MarginScales, thresholds: tuple[int, ...], one_way: bool) -> float:
    """The least δ for ε over all pairs of neighbours of three scores: what P exceeds e^ε·P′ by, at most."""
    cached = cache(lambda scores: law(scores, scales, thresholds))
    steps = list(product((0, 1) if one_way else (-1, 0, 1), repeat=3))
    high = max(thresholds) + 6
    worst = 0.0
    for scores in product(range(high), range(high), (0,)):
        for step in steps:
            other = tuple(a + b for a, b in zip(scores, step, strict=True))
            for p, q in ((cached(scores), cached(other)), (cached(other), cached(scores))):
                worst = max(worst, sum(max(0.0, chance - math.exp(EPSILON) * q.get(o, 0.0)) for o, chance in p.items()))
    return worst


@pytest.mark.parametrize("one_way", [True, False])
def test_a_selection_by_margin_loses_no_more_than_epsilon_and_delta(one_way: bool) -> None:
    scales = MarginScales.of(1 if one_way else 2, EPSILON, DELTA)
    spent = scales.reach / scales.threshold + 2 * scales.reach / scales.question + scales.reach / scales.selection
    assert spent == pytest.approx(EPSILON)
    assert worst_delta(scales, tuple(scales.thresholds(2).tolist()), one_way) <= DELTA


@pytest.mark.parametrize("one_way", [True, False])
def test_without_its_thresholds_it_would_lose_more(one_way: bool) -> None:
    """The same noise, and margins that need not be larger than what a row moves: the second half of ε is not enough."""
    scales = MarginScales.of(1 if one_way else 2, EPSILON, DELTA)
    assert worst_delta(scales, (0, 0), one_way) > DELTA


def test_what_stands_clear_is_the_first_margin_above_its_threshold() -> None:
    rng, scales = np.random.default_rng(3), MarginScales.of(2, EPSILON, DELTA)
    thresholds, sizes = scales.thresholds(4).tolist(), set()
    for _ in range(2000):
        scores = rng.integers(0, 4 * thresholds[0], 5)
        tau, *nus = rng.geometric(0.2, 5) - 1
        order = sorted(range(5), key=lambda i: (-scores[i], i))
        margins = [scores[order[0]] - scores[i] for i in order[1:]]
        passing = [k for k in range(4) if margins[k] + nus[k] >= thresholds[k] + tau]
        expected = order[: passing[0] + 1] if passing else sorted(order)
        assert clear(scores, scales, Prescribed([int(tau), *map(int, nus)])).tolist() == expected
        sizes.add(len(expected))
    assert sizes == {1, 2, 3, 4, 5}


def test_the_thresholds_do_not_grow_with_the_number_of_scores() -> None:
    scales = MarginScales.of(2, 1.0, 1e-6)
    few, many = scales.thresholds(3), scales.thresholds(10**5)
    assert (few == many[:3]).all() and (np.diff(many) >= 0).all()
