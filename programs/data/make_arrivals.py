"""Writes arrivals.csv: a synthetic year of visits to a web site, one visit a line, in the order in which they came.

Run it in this folder: `python make_arrivals.py`. The standard library alone, so that anybody gets the same bytes.
"""

from __future__ import annotations

import csv
import math
import random
from datetime import date, timedelta
from pathlib import Path

USERS = 900
PAGES = ["home", "shop", "news", "help"]


def arrivals(seed: int = 37) -> list[list[object]]:
    """The visits: a day of 2018, a user and a page. More come on weekdays, and to the shop before the year ends."""
    draw = random.Random(seed)
    rows: list[list[object]] = []
    for day in range(1, 366):
        weekend, today = day % 7 in (6, 0), date(2017, 12, 31) + timedelta(day)
        many = round((14 if weekend else 25) * (1 + 0.3 * math.sin(2 * math.pi * day / 365)) + draw.gauss(0, 3))
        shop = 25 + 60 * math.exp(-(((day - 345) / 12) ** 2))
        for _ in range(many):
            user = int(USERS * draw.random() ** 2)
            for _ in range(draw.choice([1, 1, 1, 2, 2, 4])):
                rows.append([today, f"u{user}", draw.choices(PAGES, [40, shop, 22, 8])[0]])
    return rows


def write(folder: Path) -> None:
    """Writes the file: a header, then one visit a line."""
    with (folder / "arrivals.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["day", "user", "page"])
        out.writerows(arrivals())


if __name__ == "__main__":
    write(Path(__file__).parent)
