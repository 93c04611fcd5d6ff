"""Writes karate.csv, friendships in a karate club, and authors.csv, a synthetic graph of who wrote with whom.

Run it in this folder: `python make_graphs.py`. The standard library alone, so that anybody gets the same bytes. The
club is public: Zachary, "An information flow model for conflict and fission in small groups" (1977), 34 members and the
78 pairs of them who met outside. The authors are nobody: they write papers in small groups, mostly with whom they know.
"""

from __future__ import annotations

import csv
import random
from itertools import combinations
from pathlib import Path

KARATE = {
    1: (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32), 2: (3, 4, 8, 14, 18, 20, 22, 31),
    3: (4, 8, 9, 10, 14, 28, 29, 33), 4: (8, 13, 14), 5: (7, 11), 6: (7, 11, 17), 7: (17,), 9: (31, 33, 34), 10: (34,),
    14: (34,), 15: (33, 34), 16: (33, 34), 19: (33, 34), 20: (34,), 21: (33, 34), 23: (33, 34),
    24: (26, 28, 30, 33, 34), 25: (26, 28, 32), 26: (32,), 27: (30, 34), 28: (34,), 29: (32, 34), 30: (33, 34),
    31: (33, 34), 32: (33, 34), 33: (34,),
}  # fmt: skip
AUTHORS, PAPERS = 600, 900

Edges = list[tuple[int, int]]


def karate() -> Edges:
    return [(a, b) for a, others in KARATE.items() for b in others]


def authors(seed: int = 5) -> Edges:
    """Pairs of people who wrote a paper together: groups of two to six; most have written with the first one."""
    draw = random.Random(seed)
    known: dict[int, list[int]] = {a: [] for a in range(1, AUTHORS + 1)}
    active = [draw.paretovariate(2.0) for _ in known]
    pairs: set[tuple[int, int]] = set()
    for _ in range(PAPERS):
        first = draw.choices(list(known), active)[0]
        group = {first}
        for _ in range(draw.choices((1, 2, 3, 4, 5), (40, 30, 16, 9, 5))[0]):
            near = known[first] and draw.random() < 0.6
            group.add(draw.choice(known[first]) if near else draw.choices(list(known), active)[0])
        for a, b in combinations(sorted(group), 2):
            if (a, b) not in pairs:
                pairs.add((a, b))
                known[a].append(b)
                known[b].append(a)
    return sorted(pairs)


def write(name: str, edges: Edges) -> None:
    with (Path(__file__).parent / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["a", "b"])
        writer.writerows(edges)


if __name__ == "__main__":
    write("karate.csv", karate())
    write("authors.csv", authors())
