"""Writes clouds.csv and clouds_held_out.csv: synthetic points in four columns, and places.csv, synthetic check-ins.

Run it in this folder: `python make_clouds.py`. The standard library alone, so that anybody gets the same bytes.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

ROWS, HELD_OUT, PLACES = 5000, 500, 6000
CLOUDS = 6


def clouds(rows: int, seed: int) -> list[list[object]]:
    """Points of six Gaussian clouds in [−1, 1] in four columns; the clouds are the same for every seed."""
    shape = random.Random(7)
    middles = [[shape.uniform(-0.6, 0.6) for _ in range(4)] for _ in range(CLOUDS)]
    widths = [[shape.uniform(0.03, 0.15) for _ in range(4)] for _ in range(CLOUDS)]
    slants = [shape.uniform(-1, 1) for _ in range(CLOUDS)]
    draw = random.Random(seed)
    made: list[list[object]] = []
    for _ in range(rows):
        k = draw.choices(range(CLOUDS), [3, 2, 2, 1, 1, 1])[0]
        first, *others = [draw.gauss(0, 1) for _ in range(4)]
        point = [middles[k][0] + widths[k][0] * first]
        for axis, free in enumerate(others, 1):
            along = slants[k] if axis == 1 else 0.0
            point.append(middles[k][axis] + widths[k][axis] * (along * first + (1 - along * along) ** 0.5 * free))
        made.append([f"{min(1.0, max(-1.0, v)):.4f}" for v in point])
    return made


def places(rows: int = PLACES, seed: int = 11) -> list[list[object]]:
    """Check-ins (longitude, latitude): towns of very different sizes, each a round crowd."""
    shape, draw = random.Random(3), random.Random(seed)
    towns = [(shape.uniform(-160, 160), shape.uniform(-60, 70), 2 + 10 * shape.random() ** 2) for _ in range(12)]
    sizes = [1 / (1 + i) for i in range(len(towns))]
    made: list[list[object]] = []
    for _ in range(rows):
        east, north, wide = draw.choices(towns, sizes)[0]
        x, y = draw.gauss(east, wide), draw.gauss(north, wide / 2)
        made.append([f"{min(180.0, max(-180.0, x)):.3f}", f"{min(90.0, max(-90.0, y)):.3f}"])
    return made


def write(name: str, header: list[str], rows: list[list[object]]) -> None:
    with (Path(__file__).parent / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    write("clouds.csv", ["x1", "x2", "x3", "x4"], clouds(ROWS, 1))
    write("clouds_held_out.csv", ["x1", "x2", "x3", "x4"], clouds(HELD_OUT, 2))
    write("places.csv", ["longitude", "latitude"], places())
