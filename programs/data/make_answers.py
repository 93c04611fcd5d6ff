"""Writes `answers.csv`: people who are nobody, and what they answer to six questions that hang together.

    python programs/data/make_answers.py

A row is one of 10,000 people: their number, and six answers of 0 or 1, drawn independently from an Ising model: a ring
with two chords, every coupling 0.25 or −0.25, as `programs/ising.jst` says it.
"""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

COUPLINGS = {(0, 1): 1, (1, 2): 1, (2, 3): -1, (3, 4): 1, (4, 5): -1, (0, 5): 1, (0, 3): -1, (2, 5): 1}
HERE = Path(__file__).parent


def write(path: Path, people: int, seed: int) -> None:
    states = list(itertools.product((0, 1), repeat=6))
    weights = [
        math.exp(0.25 * sum(sign * (2 * s[i] - 1) * (2 * s[j] - 1) for (i, j), sign in COUPLINGS.items()))
        for s in states
    ]  # fmt: skip
    drawn = random.Random(seed).choices(states, weights, k=people)
    lines = ["person,x1,x2,x3,x4,x5,x6"] + [f"{i},{','.join(map(str, s))}" for i, s in enumerate(drawn)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(HERE / "answers.csv", 10_000, 1)
