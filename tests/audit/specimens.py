"""Broken mechanisms, most of them published or shipped by somebody. The harness must convict every one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from elastic import broken_elastic
from harness import Case, Pair
from holes import holes
from refinements import broken_refinements
from sparse import broken_sparse_vectors
from weights import broken_weights

Sampler = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def _case(name: str, epsilon: float, sample: Sampler, x: list[float], y: list[float], runs: int = 400_000) -> Case:
    def draw(runs: int, rng: np.random.Generator) -> Pair:
        return sample(np.array(x, float), runs, rng), sample(np.array(y, float), runs, rng)

    return Case(name, epsilon, draw, runs, broken=True)


def half_scale(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A count with Laplace noise of scale 1/(2ε), ε = 1."""
    return np.round(x.sum() + rng.laplace(0, 0.5, runs), 3)


def exact_phases(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """EFPA as published: noise on the amplitudes of the kept Fourier coefficients, none on their phases."""
    second = np.fft.fft(x)[1]
    amplitude = np.abs(second) + rng.laplace(0, np.sqrt(2), runs)
    return np.round(np.angle(second) + np.where(amplitude < 0, np.pi, 0), 6)


def max_at_half_scale(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Report noisy max of scores that may move either way, with the scale for monotone ones, ε = 1."""
    scores = np.array([x[0], 2 - x[0]])  # one row raises the first and lowers the second
    return np.argmax(scores + rng.exponential(1.0, (runs, 2)), axis=1)


def prices_by_rows(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A split that costs two rows for each row there is, which nobody was told, beside no split; scale 1, ε = 1."""
    scores = np.array([x.max() - 2 * x.sum(), x.max()])
    return np.argmax(scores + rng.exponential(1.0, (runs, 2)), axis=1)


def public_dawa(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """The first stage of DAWA in its public codes, n = 4, ε = 2, half of it here; 1 where all cells stay alone.

    Cost of an interval of 2 or 4 cells: the deviation from its mean plus Lap((2 − 1/len − 1/n)/ε₁),
    not below 0, plus 1/ε₂; a single cell costs 1/ε₂ without noise.
    """
    first, second = 1.0, 1.0

    def cost(start: int, length: int) -> np.ndarray:
        part = x[start : start + length]
        noise = rng.laplace(0, (2 - 1 / length - 1 / len(x)) / first, runs)
        return np.maximum(0, np.abs(part - part.mean()).sum() + noise) + 1 / second

    pairs = [cost(i, 2) for i in range(3)]
    alone = 1 / second
    partitions = [
        np.full(runs, 4 * alone), pairs[0] + 2 * alone, pairs[1] + 2 * alone, pairs[2] + 2 * alone, pairs[0] + pairs[2],
        cost(0, 4),
    ]  # fmt: skip
    return (np.argmin(partitions, axis=0) == 0).astype(float)


def refunded(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Twenty tries at a count above 2 with ε = 1, of which all that fail are given back; 1 where none succeeded."""
    tries = x.sum() + rng.laplace(0, 1.0, (runs, 20))
    return (tries <= 2).all(axis=1).astype(float)


def forgotten_stopping(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """The best of runs that are hidden, ε = 1 each, at 3 in all as for a geometric number; here always twenty."""
    return np.round(x.sum() + rng.laplace(0, 1.0, (runs, 20)).max(axis=1), 1)


def a_rule_that_looks(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Runs to one above 2, ε = 1 each, at the 2 of a geometric number; they stop after 20. 1 where none was."""
    return (x.sum() + rng.laplace(0, 1.0, (runs, 20)).max(axis=1) <= 2).astype(float)


def all_runs_in_a_trace(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """The best of a geometric number of runs, 8 in the mean, ε = 1 each, at 3 in all; a trace shows them all."""
    many = np.minimum(rng.geometric(1 / 8, runs), 100)
    above = np.where(rng.laplace(0, 1.0, (runs, 100)) + x.sum() > 0.5, 1, -1)
    return np.where(np.arange(100) < many[:, None], above, 0).sum(axis=1).clip(-12, 12).astype(float)


def a_tree_that_forgets_a_level(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Running counts of 8 steps by a tree, ε = 1: a step is in four stretches, and the noise is that of three."""
    stretches = np.array([x[:many].sum() for many in (1, 2, 4, 8)]) + rng.laplace(0, 3.0, (runs, 4))
    return np.round((np.abs(stretches) - np.abs(stretches - 1)).sum(axis=1), 6)


def passes_counted_as_one(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of a batch in each of ten passes, ρ = ½ for all: a row is in ten steps, and the noise is that of one."""
    return np.round((x.sum() + rng.normal(0, 1.0, (runs, 10))).sum(axis=1), 2)


def noise_that_is_taken_back(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Ten steps of one batch, ρ = ½ for all: each takes the noise of the one before back, whose deviation is that of
    independent noise."""
    noise = rng.normal(0, math.sqrt(10), (runs, 10))
    return np.round((x.sum() + np.diff(noise, axis=1, prepend=0)).sum(axis=1), 2)


def a_step_drawn_again(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A running count of one step, ε = 1, which a second run draws anew since nothing kept what was released."""
    return np.round(np.clip(x.sum() + rng.laplace(0, 1.0, (runs, 2)), -0.25, 1.25).sum(axis=1), 6)


def periods_by_order(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of the rows of eight periods, ε = 1 each and one charge for all: which period a row is in follows from its
    place in the file, so that one row more at the front moves every other."""
    signs = np.array([1, -1] * 4)
    return np.round((np.clip(x[:8] + rng.laplace(0, 1.0, (runs, 8)), 0, 1) * signs).sum(axis=1), 1)


def a_late_row_for_free(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """The count of a week that is over, ε = 1, drawn anew without a charge each time that a row of it arrives late."""
    return np.round(np.clip(x.sum() + rng.laplace(0, 1.0, (runs, 4)), -0.25, 1.25).sum(axis=1), 1)


def rows_that_move_on(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """The last row of a person, at each of 8 steps measured by itself, ε = 1: later rows push it on, and it counts at
    every step as if it were new."""
    return np.round(np.clip(x.sum() + rng.laplace(0, 1.0, (runs, 8)), 0, 1).sum(axis=1), 1)


def scored_without_noise(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Two options at ε = ½, the whole and nothing; shown is the one whose answer is nearer to the rows, exactly."""
    answers = np.stack([x.sum() + rng.laplace(0, 2.0, runs), np.zeros(runs)])
    return np.abs(answers - x.sum()).argmin(axis=0).astype(float)


def charged_for_the_last(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Four options that run at ε = 1 each, all of which a trace shows, at the price of the last."""
    return np.round(x.sum() * 4 + rng.laplace(0, 1.0, (runs, 4)).sum(axis=1), 1)


def stale_bounds(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """sum(age) after age = age · 100, with the noise for the old bounds 0..99, ε = 1."""
    return np.round(x.sum() * 100 + rng.laplace(0, 99.0, runs))


def no_decay(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A walk without decay and with scale 1/ε, ε = 1: every level of the path pays the whole amount again."""
    alive, depth = np.ones(runs, dtype=bool), np.zeros(runs)
    cells = x
    while len(cells) > 1:
        score = np.abs(cells - np.median(cells)).sum()
        alive &= score + rng.laplace(0, 1.0, runs) > 6
        depth += alive
        cells = cells[: len(cells) // 2]
    return depth


def bounds_of_rows(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A sum between bounds that are the power of ten above the largest row, ε = 1: their noise tells the power."""
    bound = 10.0 ** np.ceil(np.log10(x.max()))
    return np.round(x.sum() + rng.laplace(0, bound, runs)) + bound * 1e6


def orders_that_are_there(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Bounds from noisy counts of the orders of magnitude that rows have, ε = 1, without the empty ones."""
    orders, counts = np.unique(np.floor(np.log10(x)), return_counts=True)
    noisy = counts + rng.laplace(0, 1.0, (runs, len(counts)))
    return orders[len(orders) - 1 - (noisy[:, ::-1] > 1).argmax(axis=1)]


ROUNDS = 40


def half_price_selection(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Noisy maxima with exponential noise, 1-zCDP in all if each were ε²/8-zCDP as the exponential mechanism is."""
    scores, scale = np.array([x[0], 1 - x[0]]), 2 / np.sqrt(8 / ROUNDS)
    wins = np.zeros(runs)
    for _ in range(ROUNDS):
        wins += np.argmax(scores + rng.exponential(scale, (runs, 2)), axis=1)
    return wins


def shares_of_densities(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Three Gaussians upon each other, each of which counts a row as a whole one: the noise is that of one, ε = 1."""
    counts = len(x) + rng.laplace(0, 1, (runs, 3))
    return np.round((np.abs(counts - 1) - np.abs(counts - 2)).sum(axis=1), 6)


def specimens() -> list[Case]:
    from graphs import one_sample_for_all

    from jostle.accounting.definitions import epsilon_of

    delta = 1e-3
    name = f"noisy max priced at ε²/8 ({ROUNDS} of them, ρ = 1)"
    reused = _case("a secret sample kept for all steps", 1, one_sample_for_all, [0], [1])
    zcdp = _case(name, epsilon_of(1.0, delta), half_price_selection, [0], [1])
    half = epsilon_of(0.5, delta)
    passes = _case("passes over a batch that are counted as one", half, passes_counted_as_one, [0], [1])
    taken = _case("noise that the next step takes back", half, noise_that_is_taken_back, [0], [1])
    return [
        _case("laplace at half the scale", 1, half_scale, [0, 0], [0, 1]),
        _case("EFPA with exact phases", 1, exact_phases, [1, 0, 0, 0], [1, 1, 0, 0]),
        _case("noisy max at half the scale", 1, max_at_half_scale, [0], [1]),
        _case("prices by the rows themselves", 1, prices_by_rows, [0, 0], [1, 0]),
        _case("DAWA's public first stage", 1, public_dawa, [0, 0, 0, 0], [0, 1, 0, 0], 4_000_000),
        _case("refund on failure", 1, refunded, [0], [1]),
        _case("a selection that forgets its stopping law", 3, forgotten_stopping, [0], [1]),
        _case("runs to a good one whose stopping rule looks", 2, a_rule_that_looks, [0], [1]),
        _case("a best run whose trace shows them all", 3, all_runs_in_a_trace, [0], [1]),
        _case("a tree that forgets a level", 1, a_tree_that_forgets_a_level, [0] * 8, [1, *[0] * 7]),
        _case("a step of a stream that is drawn again", 1, a_step_drawn_again, [0], [1]),
        _case("periods by the order of rows", 1, periods_by_order, [0, 1] * 4, [1, *[0, 1] * 4]),
        _case("a late row that opens a week again for free", 1, a_late_row_for_free, [0], [1]),
        _case("rows of a person that move on with the steps", 1, rows_that_move_on, [0], [1]),
        _case("a selection by scores without noise", 1, scored_without_noise, [0], [1]),
        _case("options that run, and only the last is charged", 1, charged_for_the_last, [0], [1]),
        _case("bounds kept after a column is redefined", 1, stale_bounds, [0], [99]),
        _case("shares of a mixture that add up to more than one", 1, shares_of_densities, [5], [5, 5]),
        _case("bounds that are those of the rows", 1, bounds_of_rows, [7, 5], [7, 5, 12]),
        _case("bounds among the orders that rows have", 1, orders_that_are_there, [7, 5], [7, 5, 12]),
        _case("a walk without decay", 1, no_decay, [6, 0, 0, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0, 0, 0]),
        Case(reused.name, reused.epsilon, reused.draw, reused.runs, delta, broken=True),
        Case(zcdp.name, zcdp.epsilon, zcdp.draw, zcdp.runs, delta, broken=True),
        Case(passes.name, passes.epsilon, passes.draw, passes.runs, delta, broken=True),
        Case(taken.name, taken.epsilon, taken.draw, taken.runs, delta, broken=True),
        *broken_elastic(),
        *broken_sparse_vectors(),
        *broken_refinements(),
        *broken_weights(),
        *holes(),
    ]
