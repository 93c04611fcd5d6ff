"""`python -m tests.experiments.refining`: what it costs to ask until an answer is good enough, refined or asked anew.

Two settings: counts that are to be known to a tenth of themselves, and ridge regression whose excess risk is to be
small (Ligett and others 2017, with simulated rows). Amounts are divided by the least that is enough on the same data.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jostle.noise_laws import Laplace
from jostle.privacy.measurements.gradual import Sealed
from jostle.privacy.measurements.gradual import refined as one_step
from jostle.simulate import SeededNoise

QUANTA = 10**12
RUNS, SEED = 20_000, 11
SHARE, FIRST = 0.1, 0.001
"""The error that is good enough, as a share of the answer; and the ε of every first answer."""

Answers = Iterator[tuple[np.ndarray, float, float]]
"""Numbers, the ε paid for all answers up to them, and the scale of their noise."""


def refined(exact: np.ndarray, reach: float, growth: float, noise: SeededNoise) -> Answers:
    """Steps of one answer, each `growth` times as expensive in all as the one before."""
    sealed: Sealed | None = None
    paid = 0.0
    while True:
        more = FIRST if not paid else paid * (growth - 1)
        paid += more
        sealed = one_step(sealed, exact, noise, reach / more, round(more * QUANTA))
        yield sealed.noisy, paid, reach / paid


def anew(exact: np.ndarray, reach: float, noise: SeededNoise, mean: bool) -> Answers:
    """Answers with noise of their own, each for twice the ε of the one before; or the mean of all, by precision."""
    epsilon, paid, weighted, weights = FIRST, 0.0, np.zeros(exact.shape), 0.0
    while True:
        answer, paid = noise.laplace(exact, reach / epsilon), paid + epsilon
        weighted, weights = weighted + answer * epsilon**2, weights + epsilon**2
        yield (weighted / weights, paid, reach / weights**0.5) if mean else (answer, paid, reach / epsilon)
        epsilon *= 2


def ways(exact: np.ndarray, reach: float, seed: int) -> dict[str, Answers]:
    noises = [SeededNoise(seed + i) for i in range(5)]
    return {
        "asked anew for twice as much": anew(exact, reach, noises[0], False),
        "the same, all answers averaged": anew(exact, reach, noises[1], True),
        "refined, growth 2": refined(exact, reach, 2.0, noises[2]),
        "refined, growth 1.25": refined(exact, reach, 1.25, noises[3]),
        "refined, growth 1.05": refined(exact, reach, 1.05, noises[4]),
    }


# Counts ------------------------------------------------------------------------------------------


def counts() -> None:
    rng = np.random.default_rng(SEED)
    exact = np.rint(np.exp(rng.uniform(np.log(30), np.log(10_000), RUNS))).astype(np.int64)
    least = np.array([_least(float(n)) for n in exact])
    print("| counts | mean of ε / least ε | largest 1 % | answer is off by | ± holds |\n|---|---|---|---|---|")
    for name, answers in ways(exact, 1.0, SEED).items():
        paid, final, wide = np.zeros(RUNS), np.zeros(RUNS), np.zeros(RUNS)
        waiting = np.ones(RUNS, dtype=bool)
        while waiting.any():
            numbers, spent, scale = next(answers)
            half = Laplace(scale, 0.0 if "averaged" in name else 1.0).half_width()
            stops = waiting & (half < SHARE * numbers)
            paid[stops], final[stops], wide[stops] = spent, numbers[stops], half
            waiting &= ~stops
        ratio, off = paid / least, np.abs(final - exact)
        print(f"| {name} | {ratio.mean():.2f} | {np.quantile(ratio, 0.99):.2f} | {(off / exact).mean():.1%} "
              f"| {(off <= wide).mean():.1%} |")  # fmt: skip


def _least(count: float) -> float:
    """The smallest ε whose noise has a half-width below a tenth of the count."""
    low, high = 1e-6, 100.0
    while high / low > 1 + 1e-9:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if Laplace(1 / middle, 1.0).half_width() < SHARE * count else (middle, high)
    return high


# Ridge regression --------------------------------------------------------------------------------

ROWS, WIDTH, RIDGE, GRID, TRIALS = 100_000, 20, 0.001, 2.0**20, 100
RISKS = (0.002, 0.005, 0.01)
"""Excess risks that are good enough, of squared errors of about 0.05 of a label within ±1."""


def ridge() -> None:
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(ROWS, WIDTH))
    x /= np.maximum(1, np.abs(x).sum(axis=1))[:, None]
    y = np.clip(x @ rng.normal(scale=3, size=WIDTH) + rng.normal(scale=0.2, size=ROWS), -1, 1)
    corner = np.triu_indices(WIDTH)
    moments = np.concatenate([(x.T @ x)[corner], x.T @ y])
    exact = np.rint(moments * GRID).astype(np.int64)
    best = _fit(moments, corner)
    gram, cross = x.T @ x / ROWS, x.T @ y / ROWS

    def risk(theta: np.ndarray) -> float:
        return float(theta @ gram @ theta - 2 * cross @ theta + RIDGE * theta @ theta)

    print("| ridge regression, excess risk | " + " | ".join(map(str, RISKS)) + " |\n|---|---|---|---|")
    stopped: dict[str, list[list[float]]] = {}
    for trial in range(TRIALS):
        for name, answers in ways(exact, 2 * GRID, SEED + 10 * trial).items():
            ends: list[float] = []
            for numbers, spent, _ in answers:
                excess = risk(_fit(numbers / GRID, corner)) - risk(best)
                while len(ends) < len(RISKS) and excess <= RISKS[-1 - len(ends)]:
                    ends.append(spent)
                if len(ends) == len(RISKS):
                    break
            stopped.setdefault(name, []).append(ends[::-1])
    for name, ends in stopped.items():
        print(f"| {name} | " + " | ".join(f"ε {mean:.3f}" for mean in np.mean(ends, axis=0)) + " |")


def _fit(moments: np.ndarray, corner: tuple[np.ndarray, ...]) -> np.ndarray:
    """The minimum of the risk of these moments, made positive definite where noise left it otherwise."""
    gram = np.zeros((WIDTH, WIDTH))
    gram[corner] = moments[: len(corner[0])] / ROWS
    gram = gram + np.triu(gram, 1).T
    values, vectors = np.linalg.eigh(gram)
    inverse = (vectors / (np.maximum(values, 0) + RIDGE)) @ vectors.T
    return np.asarray(inverse @ moments[len(corner[0]) :] / ROWS)


if __name__ == "__main__":
    counts()
    print()
    ridge()
