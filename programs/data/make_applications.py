"""Writes applications.csv, applications_island.csv and applications_held_out.csv: synthetic requests for a place, of a
city, of an island and of others, ranked by one synthetic rule.

Run it in this folder: `python make_applications.py`. The standard library alone, so that anybody gets the same bytes.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

FILES = {"applications": (3000, 44), "applications_held_out": (1000, 45), "applications_island": (150, 46)}
"""Of each file the rows and the seed."""
VALUES = {
    "household": ("one parent", "two parents", "guardians"),
    "children": ("1", "2", "3", "more"),
    "housing": ("good", "cramped", "none"),
    "work": ("both", "one", "neither"),
    "health": ("well", "delicate", "ill"),
    "distance": ("near", "far"),
}
RANKS = ("no", "later", "soon", "at once")


def applications(rows: int, seed: int) -> list[list[str]]:
    draw = random.Random(seed)
    made = []
    for _ in range(rows):
        cells = {name: draw.choice(values) for name, values in VALUES.items()}
        points = {name: VALUES[name].index(cell) for name, cell in cells.items()}
        need = points["housing"] + points["work"] / 2 + points["children"] / 2 + (cells["household"] == "one parent")
        rank = 0 if cells["distance"] == "far" and points["health"] == 0 else 1 + (need > 2) + (need > 4)
        if points["health"] == 2:
            rank = min(3, rank + 1)
        if draw.random() < 0.05:
            rank = draw.randrange(4)
        made.append([*cells.values(), RANKS[rank]])
    return made


def write(path: Path, rows: int, seed: int) -> None:
    """Writes a file: a header, then one record a line."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*VALUES, "class"])
        out.writerows(applications(rows, seed))


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    for name, (rows, seed) in FILES.items():
        write(here / f"{name}.csv", rows, seed)
