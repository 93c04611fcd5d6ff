"""Writes `trips.csv` and `trips_held_out.csv`: people who are nobody, seen moving between the places of a building.

    python programs/data/make_trips.py

A row is one step: who, where, where next ten minutes later. Most people are seen a few times, some all day, as in
Bernstein et al. (ICML 2017, section 4.2), whose data are not public.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

PLACES = 12
HERE = Path(__file__).parent


def chain(rng: random.Random) -> list[list[float]]:
    """Staying is likeliest, then the next doors, then the entrance (place 0)."""
    made = []
    for place in range(PLACES):
        row = [0.02 * rng.random() for _ in range(PLACES)]
        row[place] += 0.6 + 0.2 * rng.random()
        row[(place + 1) % PLACES] += 0.08
        row[(place - 1) % PLACES] += 0.06
        row[0] += 0.1
        made.append([share / sum(row) for share in row])
    return made


def write(path: Path, people: int, seed: int) -> None:
    steps, rng = chain(random.Random(5)), random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["person", "place", "next"])
        for person in range(people):
            place = rng.choices(range(PLACES), [4] + [1] * (PLACES - 1))[0]
            for _ in range(min(60, 1 + int(rng.expovariate(1 / 7)))):
                following = rng.choices(range(PLACES), steps[place])[0]
                table.writerow([f"p{seed}-{person}", place, following])
                place = following


if __name__ == "__main__":
    write(HERE / "trips.csv", 2000, 1)
    write(HERE / "trips_held_out.csv", 600, 2)
