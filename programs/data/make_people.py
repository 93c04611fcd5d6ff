"""Writes people.csv and village.csv: synthetic people, drawn from a seeded generator. Nobody in the file exists.

Run it in this folder: `python make_people.py`. The standard library alone, so that anybody gets the same bytes.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

ROWS = 4000
CITIES = {"Ames": 0.45, "Bergen": 0.30, "Cork": 0.15, "Delft": 0.10}


def people(rows: int = ROWS, seed: int = 2024) -> list[list[object]]:
    """`rows` records of age, sex, city, hours worked in a week, and income in a year."""
    draw = random.Random(seed)
    made: list[list[object]] = []
    for _ in range(rows):
        age = 16 + int(63 * draw.betavariate(1.6, 2.6))
        sex = draw.choice(["Female", "Male"])
        city = draw.choices(list(CITIES), list(CITIES.values()))[0]
        works = draw.random() < (0.85 if 20 <= age < 66 else 0.25)
        usual = 40 if draw.random() < 0.55 else round(draw.gauss(32, 11))
        hours = min(63, max(1, usual)) if works else 0
        pay = (9 + 0.35 * (age - 16)) * (1.15 if city == "Ames" else 1.0) * draw.lognormvariate(0, 0.35)
        income = round(52 * hours * pay if works else draw.uniform(0, 9000))
        made.append([age, sex, city, hours, income])
    return made


def write(folder: Path) -> None:
    """Writes both files: a header, then one record a line."""
    files = {
        "people.csv": (["age", "sex", "city", "hours", "income"], people()),
        "village.csv": (["age", "hours"], [[row[0], row[3]] for row in people(140, 2025)]),
    }
    for name, (header, rows) in files.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(header)
            out.writerows(rows)


if __name__ == "__main__":
    write(Path(__file__).parent)
