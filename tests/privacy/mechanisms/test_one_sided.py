"""Rankings and watches: their whole law on small numbers, by running them on every draw that matters."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from jostle.accounting.amounts import Amount
from jostle.diagnostics import Refusal
from jostle.privacy.measurements.watch import Threshold, Watch, _State
from jostle.privacy.mechanisms.margin import WIDEST, Compared, WatchScales, check_scale, geometric, ranked
from jostle.privacy.mechanisms.noise import SecureNoise

Law = dict[Any, float]
TAIL = 1e-5
"""That a draw is beyond those that are tried, in all."""


class Prescribed:
    """Noise whose draws are prescribed, none negative, so that folding leaves them."""

    def __init__(self, draws: tuple[int, ...]) -> None:
        self.draws, self.scales = iter(draws), []

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        self.scales.append(scale)
        return np.array([next(self.draws) for _ in range(values.size)])


def chances(scales: list[float]) -> Iterator[tuple[tuple[int, ...], float]]:
    """All draws of one-sided noise of these scales but for a `TAIL`, and how likely each is."""
    longest = [math.ceil(scale * math.log(len(scales) / TAIL)) for scale in scales]
    for draws in product(*map(range, longest)):
        yield draws, math.prod(-math.expm1(-1 / b) * math.exp(-k / b) for k, b in zip(draws, scales, strict=True))


def law_of(outcome: Callable[[tuple[int, ...]], Any], scales: list[float]) -> Law:
    law: Law = defaultdict(float)
    for draws, chance in chances(scales):
        law[outcome(draws)] += chance
    return law


def loss(one: Law, other: Law) -> float:
    """The least ε with P(o) ≤ e^ε·P′(o) for every outcome that is not of the tail."""
    return max(math.log((p - 2 * TAIL) / (other[o] + TAIL)) for o, p in one.items() if p > 1e3 * TAIL)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("one_way", [True, False])
def test_a_ranking_with_its_leads_loses_count_times_how_far_scores_part(count: int, one_way: bool) -> None:
    """Every pair of neighbouring scores among three, every outcome: places and leads together."""
    scale, apart = 0.5, 1 if one_way else 2
    steps = [np.array(step) for step in product(range(0 if one_way else -1, 2), repeat=3)]
    laws: dict[tuple[int, ...], Law] = {}

    def law(scores: tuple[int, ...]) -> Law:
        if scores not in laws:
            laws[scores] = law_of(
                lambda draws: tuple(map(tuple, ranked(np.array(scores) + np.array(draws), count))), [scale] * 3
            )
        return laws[scores]

    starts = [(0, 0, 0), (2, 1, 0)]
    worst = max(
        loss(a, b) for start in starts for step in steps
        for one in [law(start)] for other in [law(tuple(int(v) for v in start + step))]
        for a, b in ((one, other), (other, one))
    )  # fmt: skip
    charged = count * apart / scale
    assert worst <= charged + 1e-2
    if count < 3:
        assert worst > charged - 0.1  # and not a price too high: leads show all of it


def watched(scales: WatchScales, most: int, overs: tuple[int, ...], gaps: bool) -> Law:
    """The law of a watch's answers to questions that are so much over its threshold."""

    def answers(draws: tuple[int, ...]) -> tuple[Any, ...]:
        noise, told, kept = Prescribed(draws), [], Threshold()
        watch = Watch((), Amount("epsilon", 1), None, 0.0, most, "gap", None, scales, _State(most))  # type: ignore[arg-type]
        for over in overs:
            if watch.left:
                gap = watch.compared(over, noise, kept)
                told.append(gap if gaps or gap is None else "above")
        return tuple(told)

    questions = [scales.question] * len(overs)
    thresholds = [scales.threshold] * (1 if scales.each >= most else most)
    if len(thresholds) == 1:
        return law_of(answers, [*thresholds, *questions])
    return law_of(answers, [thresholds[0], questions[0], thresholds[1], *questions[1:]])


@pytest.mark.parametrize(("most", "one_way", "least"), [(1, True, 3.5), (2, True, 2.5), (1, False, 3.5)])
def test_a_watch_loses_what_it_is_charged_whatever_it_is_asked(most: int, one_way: bool, least: float) -> None:
    """Every pair of neighbours for two questions, with the gaps of answers above; two are too few to lose all of 2."""
    epsilon, apart = 4.0, 1 if one_way else 2
    scales = WatchScales.of(epsilon, 1, apart, most, False)
    spent = 1 / scales.threshold + most * apart / scales.question
    assert spent == pytest.approx(epsilon)
    steps = list(product(range(0 if one_way else -1, 2), repeat=2))
    worst = 0.0
    for start in ((0, 0), (1, 0)):
        one = watched(scales, most, start, True)
        for step in steps:
            other = watched(scales, most, (start[0] + step[0], start[1] + step[1]), True)
            worst = max(worst, loss(one, other), loss(other, one))
    assert least < worst <= epsilon + 1e-2


def test_a_threshold_that_is_drawn_anew_is_paid_for_anew() -> None:
    """Two answers above, a threshold each: what the two lose adds up."""
    scales = WatchScales.of(4.0, 1, 1, 1, False)
    one, other = (watched(scales, 2, overs, False) for overs in ((0, 0), (1, 1)))
    assert max(loss(one, other), loss(other, one)) <= 8 + 1e-2


def test_folded_laplace_noise_is_geometric() -> None:
    many, scale = 40_000, 3.0
    drawn = geometric(SecureNoise(), many, scale)
    p = math.exp(-1 / scale)
    for k in range(6):
        expected = (1 - p) * p**k
        assert abs(float((drawn == k).mean()) - expected) < 6 * math.sqrt(expected / many)
    assert drawn.min() >= 0


def test_too_wide_noise_is_refused() -> None:
    with pytest.raises(Refusal, match="too little epsilon"):
        check_scale(2 * WIDEST)


@pytest.mark.parametrize(("scale", "threshold"), [(1.0, 1.0), (8.0, 2.0), (2.0, 8.0)])
def test_the_half_width_of_a_comparison_is_that_of_its_noise(scale: float, threshold: float) -> None:
    rng, law = np.random.default_rng(5), Compared(scale, threshold)
    noise = rng.exponential(scale, 400_000) - rng.exponential(threshold, 400_000) - (scale - threshold)
    for level in (0.5, 0.95):
        assert float((np.abs(noise) <= law.half_width(level)).mean()) == pytest.approx(level, abs=0.004)
