"""Sparse vectors and rankings: those of the language, and the published ones that are broken.

The language's run from the text of a program: its measurements are caught at the door with the exact numbers that they
read, and released again and again. Five of the broken ones are in Lyu, Su and Li, "Understanding the sparse vector
technique for differential privacy" (2017): of six published variants four are not what they claim to be (their
Algorithms 3 to 6), nor is one that generalises the last. The sixth is right but for its price.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from batched import BUDGETS
from harness import Case, Pair

from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.measurements.watch import Threshold
from jostle.records import replace
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session

# Of the language -------------------------------------------------------------------------------------


class Ready:
    """Seeded noise for one number at a time, drawn many at once."""

    def __init__(self, seed: int) -> None:
        self._noise, self._rows = SeededNoise(seed), {}

    def sample(self, size: int, share: int) -> np.ndarray:
        return self._noise.sample(size, share)

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        return self._noise.gumbel_max(scores, scale)

    def laplace(self, values: np.ndarray, scale: float) -> np.ndarray:
        waiting = self._rows.setdefault((values.size, scale), [])
        if not waiting:
            drawn = self._noise.laplace(np.zeros((4096, values.size), dtype=np.int64), scale)
            waiting.extend(drawn)
        return values + waiting.pop()


def caught(program: str, counts: list[int], unit: str = "epsilon") -> list[tuple[Any, Any]]:
    """The measurements that a program makes of counts `c`, and what each reads."""
    found: list[tuple[Any, Any]] = []
    measure = Kernel.measure

    def catching(kernel: Kernel, measurement: Any, span: Any = None) -> Any:
        found.append((measurement, None if measurement.each else measurement.read(kernel._reader)))
        return measure(kernel, measurement, span)

    session = Session()
    session.bind("c", np.array(counts))
    counted = "counted by basic" if unit == "delta" else ""
    declared = f'use selection\nprivate c = bound("c") protecting rows budget {BUDGETS[unit]} {counted}\n'
    with patch.object(Kernel, "measure", catching):
        session.execute(Source("audit.jst", declared + program))
    return found


QUESTIONS = "asked = [above(where(c, x >= @i), w) for i in [0, 0, 0, 0, 1] if w.left > 0]\n"


def watched(program: str, counts: list[int], runs: int, seed: int) -> np.ndarray:
    """A label for the answers of each run: a digit a question, 0 for below, else 1, or 1 and the gap up to 6."""
    (opening, _), *_ = caught(program, counts)
    questions = caught("w = above_threshold(c, -1000, most = 9, epsilon = 100)\n" + QUESTIONS, counts)[1:]
    noise, labels = Ready(seed), np.zeros(runs)
    for run in range(runs):
        watch, label, kept = opening.release(None, noise).value, 0, Threshold()
        for question, (exact, _) in questions:
            answer = replace(question, watch=watch).release((exact, kept), noise).value if watch.left else None
            digit = 0 if answer is None or answer is False else 1 if answer is True else 1 + min(6, int(answer))
            label = label * 8 + digit
        labels[run] = label
    return labels


def ranking(program: str, counts: list[int], runs: int, seed: int) -> np.ndarray:
    """A label for places and leads, up to 3, of each run."""
    ((measurement, exact),) = caught(program, counts)
    noise, labels = Ready(seed), np.zeros(runs)
    for run in range(runs):
        value = measurement.release(exact, noise).value
        digits = [*value.places, *(min(3, int(lead)) for lead in value.leads)]
        labels[run] = sum(int(digit) * 4**i for i, digit in enumerate(digits))
    return labels


def by_margin(program: str, counts: list[int], runs: int, seed: int) -> np.ndarray:
    """A label for the place of each run, and among how many it was selected."""
    ((measurement, exact),) = caught(program, counts, "delta")
    noise = Ready(seed)
    picked = (measurement.release(exact, noise).value for _ in range(runs))
    return np.array([4.0 * one.place + one.among for one in picked])


def best_of_runs(program: str, counts: list[int], runs: int, seed: int) -> np.ndarray:
    """The score of the best run, a count with noise, up to 12 on either side; 99 where none was good."""
    (best, _), (count, exact), *_ = caught(COUNT + program, counts)
    noise, labels = Ready(seed), np.zeros(runs)
    again = replace(best, run=lambda _: (float(count.finish(count.release(exact, noise).value)), 0))
    for run in range(runs):
        value = again.release(nullcontext, noise).value
        labels[run] = 99 if value is None else max(-12, min(12, value[0]))
    return labels


def counted_in_rho(program: str, counts: list[int], runs: int, seed: int) -> np.ndarray:
    """The sum of the numbers of each run."""
    _, *inside = caught(program, counts, "delta")
    noise = SeededNoise(seed)
    return np.sum([m.linear[0].release(np.full(runs, np.sum(exact)), noise) for m, exact in inside], axis=0)


def never_charged(program: str, counts: list[int], runs: int, seed: int) -> np.ndarray:
    """Broken: the allotment that was paid for ahead forgets what it was charged."""
    with patch.object(Kernel, "_charge_allotments", lambda *_: None):
        return counted_in_rho(program, counts, runs, seed)


EIGHT = "def f(d): return [laplace(size(d)){} for i in 1..8]\nn = in_rho(c, f) with epsilon 1 delta 0.01"
COUNT = "def n(d, k): return laplace(size(d))\n"


def _of_program(
    label: Callable[[str, list[int], int, int], np.ndarray], name: str, program: str, x: list[int], y: list[int],
    delta: float = 0.0, runs: int = 200_000,
) -> Case:  # fmt: skip
    def draw(runs: int, rng: np.random.Generator) -> Pair:
        one, other = (label(program, counts, runs, int(rng.integers(2**31))) for counts in (x, y))
        return one, other

    return Case(name, 1, draw, runs, delta)


def selections() -> list[Case]:
    """Watches and rankings of programs that spend ε = 1."""
    pair, gap = ([0, 4], [1, 4]), 'tells = "gap"'  # of five questions a row is in the first four
    scores = "[size(where(c, x == 0)), size(where(c, x == 1)), size(where(c, x <= 2))]"
    return [
        _of_program(watched, "above_threshold, one answer above", "w = above_threshold(c, 4, epsilon = 1)", *pair),
        _of_program(watched, "above_threshold with its gap", f"w = above_threshold(c, 4, {gap}, epsilon = 1)", *pair),
        _of_program(
            watched, "above_threshold, two answers above", "w = above_threshold(c, 4, most = 2, epsilon = 1)", *pair
        ),
        _of_program(ranking, "largest, with its lead", f"n = largest({scores}, leads = true, epsilon = 1)",
                    [1, 1, 0, 0], [2, 1, 0, 0]),
        _of_program(ranking, "the two largest, with leads", f"n = largest({scores}, 2, leads = true, epsilon = 1)",
                    [1, 1, 0, 0], [2, 1, 0, 0]),
        *(
            _of_program(by_margin, f"margin_max, {where}",
                        "n = margin_max([size(c[x = i]) for i in 0..2], epsilon = 1, delta = 0.01)",
                        [lead, 1, 0, 0], [lead + 1, 1, 0, 0], 0.01)
            for where, lead in (("scores that are near", 1), ("a score at the threshold", 44))
        ),
        _of_program(
            counted_in_rho, "eight counts in rho, paid for at once", EIGHT.format(" with 1/8"), [0], [1], 0.01
        ),
        *(
            _of_program(best_of_runs, f"best_run, {what}", f"b = best_run(c, n, [0], {many}, epsilon = 1)",
                        [0], [1], runs=60_000)
            for what, many in (
                ("a geometric number", "4"), ("a logarithmic number", '4, law = "logarithmic"'),
                ("to a good one", "4, good = 4"),
            )
        ),
    ]  # fmt: skip


# Broken ones -----------------------------------------------------------------------------------------


def _sparse(
    answers: np.ndarray, runs: int, rng: np.random.Generator, threshold: float, question: float, most: int | None
) -> np.ndarray:
    """Which questions are above 0 with Laplace noise, none after `most`."""
    noisy = answers + (rng.laplace(0, question, (runs, len(answers))) if question else 0.0)
    above = noisy >= rng.laplace(0, threshold, runs)[:, None]
    if most is not None:
        above &= np.cumsum(above, axis=1) - above < most
    return above


Sampler = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]
HALF = 8
"""Questions that one row raises, and as many that it lowers."""


def told_numbers(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 3 (lecture notes 2011), ε = 1: an answer above is told with the noise that it was compared with.

    A thousand questions of the same answer, and one more. 99 where it is not that one alone that is above: else the
    number told is not below the noisy threshold, which a thousand noises were.
    """
    threshold, number = rng.laplace(0, 2.0, runs), x[1] + rng.laplace(0, 2.0, runs)
    largest = -2.0 * np.log(2 * -np.expm1(np.log(rng.random(runs)) / 1000))  # of a thousand, by their common law
    return np.where((x[0] + largest < threshold) & (number >= threshold), np.round(number, 1), 99.0)


def unscaled(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 4 (Lee and Clifton 2014), ε = 1: noise of 4/ε and 4/3ε, however many answers above there are."""
    above = _sparse(x, runs, rng, 4.0, 4 / 3, HALF)
    return above[:, HALF:].sum(axis=1) - above[:, :HALF].sum(axis=1).astype(float)


def no_noise_on_questions(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 5 (Stoddard and others 2014), ε = 1: noise on the threshold alone, and no end."""
    above = _sparse(x, runs, rng, 2.0, 0.0, None)
    return above @ 2.0 ** np.arange(len(x))


def without_end(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 6 (Chen and others 2015), ε = 1: any number of answers above, with noise for one."""
    above = _sparse(x, runs, rng, 2.0, 2.0, None)
    return above[:, HALF:].sum(axis=1) - above[:, :HALF].sum(axis=1).astype(float)


def private_threshold_testing(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """The same with shares of ε as one likes (Chen and Machanavajjhala 2015), here a tenth for the threshold."""
    above = _sparse(x, runs, rng, 10.0, 1 / 0.9, None)
    return above[:, HALF:].sum(axis=1) - above[:, :HALF].sum(axis=1).astype(float)


def both_ways_for_one(x: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """A right one but for its price, ε = 1: the noise that is for counts, for questions that a row moves either way."""
    above = _sparse(x, runs, rng, 4.0, 4 / 3, 1)
    return np.where(above.any(axis=1), above.argmax(axis=1), -1.0)


def _case(name: str, sample: Sampler, x: Sequence[float], y: Sequence[float], runs: int = 400_000) -> Case:
    def draw(runs: int, rng: np.random.Generator) -> Pair:
        return sample(np.array(x, float), runs, rng), sample(np.array(y, float), runs, rng)

    return Case(name, 1, draw, runs, broken=True)


def broken_sparse_vectors() -> list[Case]:
    level, parted = [0.0] * 2 * HALF, [1.0] * HALF + [-1.0] * HALF
    return [
        _case("sparse vector that tells the compared number", told_numbers, [-9.5, 1], [-8.5, 1], 3_000_000),
        _case("sparse vector with noise for one of many answers", unscaled, level, parted),
        _case("sparse vector without noise on questions", no_noise_on_questions, [0, 1], [1, 0]),
        _case("sparse vector without an end", without_end, level, parted),
        _case("private threshold testing", private_threshold_testing, level, parted),
        _case("sparse vector for counts, asked both ways", both_ways_for_one, [1.0] * 6 + [-1.0], [0.0] * 6 + [0.0]),
        replace(
            _of_program(never_charged, "counts in rho that are never charged", EIGHT.format(""), [0], [1], 0.01),
            broken=True,
        ),
    ]
