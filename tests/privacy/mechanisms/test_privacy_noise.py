"""The noise itself: OpenDP's own maps agree with ours, its laws are the ones argued from, and nothing wraps."""

from __future__ import annotations

import math
import sys
from itertools import product

import numpy as np
import pytest
from recording import Bench

from jostle.privacy.mechanisms import least_cost
from jostle.privacy.mechanisms.least_cost import DECAY, GRID, constants, halving_tree, walk_tree
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


class Recorded:
    """Noise that splits every block, and remembers the scores that it is added to."""

    __array_ufunc__ = None

    def __init__(self, scores: list[np.ndarray]) -> None:
        self._scores = scores

    def __radd__(self, scores: np.ndarray) -> np.ndarray:
        self._scores.append(scores)
        return np.full(len(scores), 2**60)


def chances(counts: tuple[int, ...], cell: int, epsilon: float, decay: float, by: str) -> np.ndarray:
    """How likely the blocks of a cell are split, and how likely they are not, level by level: logarithms."""
    scores: list[np.ndarray] = []
    order, levels = halving_tree((len(counts),))
    walk_tree(np.array(counts), epsilon, lambda scale, size: Recorded(scores), order, levels, 0.0, decay, by)  # type: ignore[arg-type, return-value]
    over = np.array([level[cell * len(level) // len(counts)] for level in scores], dtype=float)
    scale = constants(epsilon, decay).scale
    tail = np.exp(-np.where(over > 0, over, 1 - over) / scale) / (1 + math.exp(-1 / scale))  # of discrete Laplace noise
    split = np.where(over > 0, np.log1p(-tail), np.log(tail))
    return np.array([split, np.where(over > 0, np.log(tail), np.log1p(-tail))])


def lost(counts: tuple[int, ...], cell: int, epsilon: float, decay: float, by: str) -> float:
    """The most that an outcome of a walk tells of one row more in a cell: where the splits of its blocks end."""
    more = (*counts[:cell], counts[cell] + 1, *counts[cell + 1 :])
    split, whole = chances(counts, cell, epsilon, decay, by) - chances(more, cell, epsilon, decay, by)
    after = np.concatenate([[0.0], np.cumsum(split)])
    return float(max(np.abs(after[:-1] + whole).max(), abs(after[-1])))


@pytest.mark.parametrize("by", ["deviation", "count"])
@pytest.mark.parametrize("decay", [0.3, DECAY, 2.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_no_outcome_of_a_walk_loses_more_than_is_charged(epsilon: float, decay: float, by: str) -> None:
    """Exactly: of all tables of four cells, and of rows in one of many cells, where every level may lose."""
    small = max(lost(x, i, epsilon, decay, by) for x in product(range(4), repeat=4) for i in range(4))
    step = constants(epsilon, decay).decay * GRID
    rows = {round(step * k / 4) for k in range(40)}
    deep = max(lost((n, *[0] * 511), cell, epsilon, decay, by) for n in rows for cell in (0, 1))
    assert small <= epsilon and deep <= epsilon
    assert epsilon > 1 or deep > 0.6 * epsilon  # the noise is no larger than it must be by much


def test_a_walk_without_its_decay_would_lose_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing bounds how many levels lose: the specimen has the scale of ours."""
    scale = constants(0.1).scale
    monkeypatch.setattr(least_cost, "constants", lambda epsilon, decay: least_cost.Constants(scale, 1))
    monkeypatch.setattr(sys.modules[__name__], "constants", lambda epsilon, decay: least_cost.Constants(scale, 1))
    assert max(lost((n, *[0] * 511), 0, 0.1, DECAY, "count") for n in range(20)) > 0.2
