"""`python -m tests.experiments.keys`: how many keys of an open domain are shown at ε 1, δ 10⁻⁶, by three ways.

7,000 persons have some 22 different words each, of 20,000 whose frequencies fall as i^−1.2. The mean of five draws; of
the policy Gaussian (Gopi and others 2020) of one, and with all of δ for its two parts.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.accounting.definitions import Measure, rho_of
from jostle.privacy.mechanisms.stability import key_mechanism, key_rounds, select_keys
from jostle.simulate import SeededNoise

WORDS, PERSONS, DELTA, DRAWS = 20_000, 7_000, 1e-6, 5
BUDGET = Measure("approximate", Amount("epsilon", quanta(1.0), quanta(DELTA)))
Pairs = tuple[np.ndarray, np.ndarray]


def pairs(rng: np.random.Generator) -> Pairs:
    """Persons and words, once each, in order."""
    law = 1 / np.arange(1, WORDS + 1) ** 1.2
    each = np.maximum(1, np.round(np.exp(rng.normal(math.log(30), 0.5, PERSONS)))).astype(int)
    persons = np.repeat(np.arange(PERSONS), each)
    words = np.searchsorted(np.cumsum(law / law.sum()), rng.random(len(persons)))
    return np.divmod(np.unique(persons.astype(np.int64) * WORDS + words), WORDS)


def of_each(of: Pairs, most: int, rng: np.random.Generator) -> Pairs:
    order = np.lexsort((rng.random(len(of[0])), of[0]))
    persons, words = of[0][order], of[1][order]
    places = np.arange(len(persons)) - np.searchsorted(persons, persons)
    return persons[places < most], words[places < most]


def by_counts(of: Pairs, most: int, rng: np.random.Generator, noise: SeededNoise) -> int:
    tally = np.unique(of_each(of, most, rng)[1], return_counts=True)
    how, _ = key_mechanism(BUDGET.limit, [BUDGET], most, 1)
    return len(select_keys(tally, how, noise, most, 1)[0])


def in_rounds(of: Pairs, most: int, rng: np.random.Generator, noise: SeededNoise) -> int:
    known: list[tuple[int]] = []
    for one in key_rounds(BUDGET.limit, [BUDGET], most)[0]:
        left = ~np.isin(of[1], [word for (word,) in known])
        persons, words = of_each((of[0][left], of[1][left]), most, rng)
        many = np.bincount(persons, minlength=PERSONS)[persons]
        rows, counts = np.unique(np.stack([words, many]), axis=1, return_counts=True)
        known += one.select((list(map(tuple, rows.T.tolist())), counts), noise, known)
    return len(known)


def by_policy(of: Pairs, most: int, rng: np.random.Generator) -> int:
    """Each person, in a random order, moves weights towards a cutoff, by 1 in all in ℓ₂."""
    persons, words = of_each(of, most, rng)
    sigma = 1 / math.sqrt(2 * rho_of(1.0, DELTA / 2))
    least = max(1 / math.sqrt(t) - sigma * NormalDist().inv_cdf(DELTA / 2 / t) for t in range(1, most + 1))
    weights, starts = np.zeros(WORDS), np.searchsorted(persons, np.arange(PERSONS + 1))
    for person in rng.permutation(PERSONS):
        own = words[starts[person] : starts[person + 1]]
        gaps = np.maximum(least + 3 * sigma - weights[own], 0)
        weights[own] += gaps / max(1.0, math.sqrt(float(gaps @ gaps)))
    return int(((weights > 0) & (weights + rng.normal(0, sigma, WORDS) > least)).sum())


def main() -> None:
    of = pairs(np.random.default_rng(1))
    print("| groups | by counts | policy Gaussian | in rounds |\n|---|---|---|---|")
    for most in (1, 3, 8, 20):
        rngs = [np.random.default_rng(seed) for seed in range(DRAWS)]
        counted, rounds = (
            sum(way(of, most, rng, SeededNoise(seed)) for seed, rng in enumerate(rngs)) / DRAWS
            for way in (by_counts, in_rounds)
        )
        print(f"| {most} | {counted:.0f} | {by_policy(of, most, rngs[0])} | {rounds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
