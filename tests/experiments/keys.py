"""`python -m tests.experiments.keys [FOLDER]`: how many keys of an open domain are shown at ε 1, δ 10⁻⁶, by three ways.

7,000 persons have some 22 different words each, of 20,000 whose frequencies fall as i^−1.2; or persons are paragraphs
of the pages of a folder, and keys their words. The mean of five draws; of the policy Gaussian (Gopi and others 2020) of
one, and with all of δ for its two parts.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.accounting.definitions import Measure, rho_of
from jostle.privacy.mechanisms.stability import BUCKETS, key_mechanism, key_rounds, select_keys
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


def paragraphs(folder: Path) -> Pairs:
    """The words of each paragraph of the pages, from 40 characters on."""
    texts = [text for path in sorted(folder.rglob("*.md")) for text in re.split(r"\n\s*\n|\n- |\n\|", path.read_text())]
    words = [sorted(set(re.findall(r"[a-z_]{2,}", text.lower()))) for text in texts if len(text) > 40]
    places = {word: at for at, word in enumerate(sorted(set().union(*words)))}
    persons = np.repeat(np.arange(len(words)), [len(some) for some in words])
    return persons, np.array([places[word] for some in words for word in some])


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
    look, rounds, _ = key_rounds(BUDGET.limit, [BUDGET], most)
    buckets = rng.integers(0, BUCKETS, int(of[1].max()) + 1)
    own = np.divmod(np.unique(of[0] * BUCKETS + buckets[of[1]]), BUCKETS)
    scores, known = look.scores(tally(*own), noise)[buckets], list[tuple[int]]()
    for one in rounds:
        left = ~np.isin(of[1], [word for (word,) in known]) & (scores[of[1]] > one.level)
        known += one.select(tally(*of_each((of[0][left], of[1][left]), most, rng)), noise, known)
    return len(known)


def tally(persons: np.ndarray, words: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Each word with how many words a person has, and how many persons have both."""
    rows, counts = np.unique(np.stack([words, np.bincount(persons)[persons]]), axis=1, return_counts=True)
    return list(map(tuple, rows.T.tolist())), counts


def by_policy(of: Pairs, most: int, rng: np.random.Generator) -> int:
    """Each person, in a random order, moves weights towards a cutoff, by 1 in all in ℓ₂."""
    persons, words = of_each(of, most, rng)
    sigma = 1 / math.sqrt(2 * rho_of(1.0, DELTA / 2))
    least = max(1 / math.sqrt(t) - sigma * NormalDist().inv_cdf(DELTA / 2 / t) for t in range(1, most + 1))
    many, keys = int(persons.max()) + 1, int(of[1].max()) + 1
    weights, starts = np.zeros(keys), np.searchsorted(persons, np.arange(many + 1))
    for person in rng.permutation(many):
        own = words[starts[person] : starts[person + 1]]
        gaps = np.maximum(least + 3 * sigma - weights[own], 0)
        weights[own] += gaps / max(1.0, math.sqrt(float(gaps @ gaps)))
    return int(((weights > 0) & (weights + rng.normal(0, sigma, keys) > least)).sum())


def main() -> None:
    of = paragraphs(Path(sys.argv[1])) if len(sys.argv) > 1 else pairs(np.random.default_rng(1))
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
