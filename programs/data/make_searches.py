"""Writes searches.csv: the synthetic log of a search engine, one search a line. Nobody exists.

Run it in this folder: `python make_searches.py`. The standard library alone, so that anybody gets the same bytes.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

PEOPLE = 1500
NETS = {"10": (60, 25), "11": (48, 2), "12": (52, 5)}  # how many people of each, in hundreds, and how they like cricket
WORDS = ["weather", "news", "cricket", "football", "tickets", "recipes"]


def searches(seed: int = 9) -> list[list[object]]:
    """The searches: an address, a word, and the hour of the day."""
    draw = random.Random(seed)
    rows: list[list[object]] = []
    for i in range(PEOPLE):
        net = draw.choices(list(NETS), [size for size, _ in NETS.values()])[0]
        address = f"{net}.{i // 250}.{i % 250}"
        likes = [30, 20, NETS[net][1], 12, 4, 10]
        fan = draw.random() < likes[2] / 40
        if fan:
            likes[2], likes[4] = 60, 30
        for _ in range(min(60, int(draw.lognormvariate(1.3, 0.9)) + 1)):
            hour = min(23, max(0, round(draw.gauss(20 if fan else 13, 4))))
            rows.append([address, draw.choices(WORDS, likes)[0], hour])
    draw.shuffle(rows)
    return rows


def write(folder: Path) -> None:
    """Writes the file: a header, then one search a line."""
    with (folder / "searches.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["ip", "query", "hour"])
        out.writerows(searches())


if __name__ == "__main__":
    write(Path(__file__).parent)
