"""Synthetic data of the kinds that the ported programs were written for, small and the same every time.

`python tests/language/ports/generated.py FOLDER` writes them as CSV files, to run the programs by hand there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

GENRES = ["Biography", "Children", "Fantasy", "History", "Romance", "Science"]
EDUCATION = ["up-to-high-school", "high-school-diploma", "bachelors-associate", "masters-degree", "doctorate"]
FRUITS = ["apple", "banana", "cherry", "date", "elderberry", "fig"]
ITEMS = ["microscope", "pen", "pencil", "scissors", "telescope"]
CITIES = ["Ames", "Bergen", "Cork", "Delft", "Evora"]


def _rng(name: str) -> np.random.Generator:
    return np.random.default_rng([2026, *name.encode()])


def _owners(rng: np.random.Generator, persons: int, most: int) -> np.ndarray:
    """A person for each row: everybody has 1 to `most` rows, few have many."""
    many = 1 + np.minimum(rng.geometric(2.0 / most, persons) - 1, most - 1)
    return np.repeat(np.arange(1, persons + 1), many)


def _days(rng: np.random.Generator, years: np.ndarray, months: np.ndarray) -> list[str]:
    days = rng.integers(1, 29, len(years))
    return [f"{year}-{month:02d}-{day:02d}" for year, month, day in zip(years, months, days, strict=True)]


def visits() -> pd.DataFrame:
    """A restaurant's week: who came in when, on which day, for how long, and what they paid."""
    rng = _rng("visits")
    visitor = _owners(rng, 1500, 6)
    n = len(visitor)
    hour = np.clip(rng.normal(13, 3, n), 9, 20).astype(int)
    clock = [
        f"{(h - 1) % 12 + 1}:{m:02d}:00 {'AM' if h < 12 else 'PM'}"
        for h, m in zip(hour, rng.integers(0, 60, n), strict=True)
    ]
    return pd.DataFrame(
        {
            "visitor": visitor,
            "day": rng.integers(1, 8, n),
            "entered": clock,
            "minutes": rng.integers(5, 90, n),
            "euros": np.round(rng.gamma(3, 6, n) + 1, 2),
        }
    )


def views() -> pd.DataFrame:
    """Who gave which film how many stars, and when."""
    rng = _rng("views")
    viewer = _owners(rng, 2000, 8)
    n = len(viewer)
    return pd.DataFrame(
        {
            "viewer": viewer,
            "film": np.minimum(rng.geometric(0.12, n), 40),
            "stars": rng.integers(1, 6, n),
            "seen": _days(rng, rng.integers(2003, 2006, n), rng.integers(1, 13, n)),
        }
    )


def eaten() -> pd.DataFrame:
    rng = _rng("eaten")
    uid = _owners(rng, 1200, 6)
    chance = [0.4, 0.25, 0.2, 0.1, 0.04, 0.01]
    return pd.DataFrame(
        {"uid": uid, "fruit": rng.choice(FRUITS, len(uid), p=chance), "grams": rng.integers(20, 400, len(uid))}
    )


def members() -> pd.DataFrame:
    """The members of a library; some gave no age."""
    rng = _rng("members")
    n = 1500
    age = rng.integers(5, 95, n).astype(float)
    age[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame(
        {
            "id": np.arange(1, n + 1),
            "name": [f"{'ABCDEFG'[i % 7]}. Reader {i}" for i in range(n)],
            "age": pd.array(age, "Int64"),
            "gender": rng.choice(["female", "male", "nonbinary"], n, p=[0.5, 0.45, 0.05]),
            "education": rng.choice(EDUCATION, n, p=[0.3, 0.3, 0.2, 0.15, 0.05]),
            "zip": rng.choice([27513, 27514, 27516, 27517], n),
            "borrowed": np.minimum(rng.poisson(15, n), 60),
            "genres": [";".join(rng.choice(GENRES, rng.integers(0, 4), replace=False)) for _ in range(n)],
            "joined": _days(rng, rng.integers(2015, 2024, n), rng.integers(1, 13, n)),
        }
    )


def books() -> pd.DataFrame:
    rng = _rng("books")
    n = 60
    return pd.DataFrame(
        {
            "isbn": np.arange(1001, 1001 + n),
            "title": [f"Book {i}" for i in range(n)],
            "genre": rng.choice(GENRES, n),
            "pages": rng.integers(80, 900, n),
        }
    )


def checkouts() -> pd.DataFrame:
    """What the members took home: at most 12 books each."""
    rng = _rng("checkouts")
    member = _owners(rng, 1500, 12)
    n = len(member)
    return pd.DataFrame(
        {"member": member, "isbn": 1000 + np.minimum(rng.geometric(0.05, n), 60), "days": rng.integers(1, 40, n)}
    )


def labour() -> pd.DataFrame:
    """A labour force survey: a person is asked once a quarter, up to 4 times."""
    rng = _rng("labour")
    person = _owners(rng, 1500, 4)
    n = len(person)
    first = np.maximum.accumulate(np.where(np.r_[True, person[1:] != person[:-1]], np.arange(n), 0))
    wave = np.arange(n) - first
    start = rng.integers(0, 4, 1500)[person - 1]
    quarter = start + wave
    hours = rng.choice([0, 8, 20, 36, 40, 45, 60, 99], n, p=[0.05, 0.05, 0.15, 0.2, 0.35, 0.1, 0.05, 0.05])
    sex, age = rng.integers(1, 3, 1500)[person - 1], rng.integers(16, 80, 1500)[person - 1]
    return pd.DataFrame(
        {
            "person": [f"P{p:05d}" for p in person],
            "date": _days(rng, 2018 + quarter // 4, 3 * (quarter % 4) + 2),
            "quarter": 1 + quarter % 4,
            "year": 2018 + quarter // 4,
            "sex": sex,
            "age": age,
            "status": rng.choice(["employed", "unemployed", "inactive"], n, p=[0.65, 0.1, 0.25]),
            "hours": hours,
            "usual": pd.array(
                np.where(rng.random(n) < 0.1, np.nan, np.clip(hours + rng.integers(-4, 5, n), 0, 98)), "Int64"
            ),
            "job": rng.choice(["Nurse ", "teacher", "Clerk", " driver", "cook"], n),
        }
    )


def pums() -> pd.DataFrame:
    """A public use microdata sample: a row for each person."""
    rng = _rng("pums")
    n = 2000
    age = rng.integers(18, 93, n)
    return pd.DataFrame(
        {
            "pid": np.arange(1, n + 1),
            "age": age,
            "sex": rng.integers(0, 2, n),
            "educ": rng.integers(1, 17, n),
            "race": rng.integers(1, 7, n),
            "income": np.minimum((rng.lognormal(10, 0.9, n) // 100 * 100).astype(int), 500000),
            "married": rng.integers(0, 2, n),
            "state": rng.choice(["CA", "MA", "NY", "TX"], n, p=[0.4, 0.1, 0.2, 0.3]),
        }
    )


def reddit() -> pd.DataFrame:
    """Bigrams of posts, by user."""
    rng = _rng("reddit")
    user = _owners(rng, 1500, 10)
    words = ["the", "of", "a", "in", "to", "is", "it", "for"]
    n = len(user)
    return pd.DataFrame(
        {
            "author": [f"u{u}" for u in user],
            "ngram": [
                f"{words[a]} {words[b]}"
                for a, b in zip(
                    np.minimum(rng.geometric(0.4, n) - 1, 7), np.minimum(rng.geometric(0.5, n) - 1, 7), strict=True
                )
            ],
        }
    )


def professors() -> pd.DataFrame:
    """Who asked for which item, how many."""
    rng = _rng("professors")
    who = _owners(rng, 1200, 6)
    n = len(who)
    return pd.DataFrame(
        {
            "id": who,
            "item": rng.choice(ITEMS, n, p=[0.1, 0.3, 0.4, 0.15, 0.05]),
            "quantity": np.minimum(rng.geometric(0.03, n), 160),
        }
    )


def students() -> pd.DataFrame:
    rng = _rng("students")
    n = 2000
    return pd.DataFrame(
        {
            "id": np.arange(1, n + 1),
            "school": rng.choice(["North", "South", "West"], n),
            "score": np.clip(rng.normal(68, 14, n), 0, 100).round(1),
            "grade": rng.integers(9, 13, n),
        }
    )


def papers() -> pd.DataFrame:
    """Papers and their authors: one paper has several, one author has several."""
    rng = _rng("papers")
    author = _owners(rng, 1000, 8)
    n = len(author)
    return pd.DataFrame(
        {
            "author": author,
            "paper": rng.integers(1, 900, n),
            "field": rng.choice(["art", "law", "physics"], n),
            "year": rng.integers(2015, 2025, n),
            "citations": np.minimum(rng.geometric(0.05, n) - 1, 200),
        }
    )


def patients() -> pd.DataFrame:
    rng = _rng("patients")
    n = 1500
    return pd.DataFrame(
        {
            "patient": np.arange(1, n + 1),
            "age": rng.integers(0, 100, n),
            "sex": rng.choice(["F", "M"], n),
            "smoker": rng.choice(["no", "yes"], n, p=[0.75, 0.25]),
            "bmi": np.clip(rng.normal(26, 5, n), 14, 55).round(1),
            "state": rng.choice(CITIES, n),
        }
    )


def stays() -> pd.DataFrame:
    """Hospital visits of the patients."""
    rng = _rng("stays")
    who = _owners(rng, 1500, 6)
    n = len(who)
    return pd.DataFrame(
        {
            "pat": who,
            "diagnosis": rng.choice(["asthma", "diabetes", "flu", "fracture"], n, p=[0.2, 0.2, 0.5, 0.1]),
            "nights": np.minimum(rng.geometric(0.3, n), 30),
            "cost": np.round(rng.gamma(2, 900, n), 2),
        }
    )


def impressions() -> pd.DataFrame:
    rng = _rng("impressions")
    user = _owners(rng, 1600, 6)
    n = len(user)
    return pd.DataFrame(
        {
            "user": user,
            "campaign": rng.choice(["autumn", "spring", "summer"], n),
            "clicked": rng.choice([0, 1], n, p=[0.8, 0.2]),
        }
    )


def purchases() -> pd.DataFrame:
    rng = _rng("purchases")
    user = 800 + _owners(rng, 1500, 5)
    n = len(user)
    return pd.DataFrame(
        {
            "buyer": user,
            "product": rng.choice(["book", "game", "shoe"], n),
            "price": np.round(rng.gamma(2, 20, n) + 1, 2),
        }
    )


def searches() -> pd.DataFrame:
    """A log of searches."""
    rng = _rng("searches")
    user = _owners(rng, 1500, 8)
    n = len(user)
    words = ["cricket score", "weather today", "Cricket bat", "train times", "news", "football"]
    return pd.DataFrame(
        {
            "ip": [f"10.0.{u // 256}.{u % 256}" for u in user],
            "query": rng.choice(words, n, p=[0.3, 0.25, 0.1, 0.15, 0.15, 0.05]),
            "hour": rng.integers(0, 24, n),
            "clicks": np.minimum(rng.geometric(0.4, n) - 1, 9),
        }
    )


def packets() -> pd.DataFrame:
    """A network trace: packets between hosts; a few payloads go from many hosts to many."""
    rng = _rng("packets")
    n = 6000
    inside, outside = rng.integers(1, 301, n), rng.integers(1, 201, n)
    worm = rng.random(n) < 0.15
    payload = np.where(worm, rng.integers(0, 3, n), 3 + (inside * 7 + outside * 3) % 37)
    return pd.DataFrame(
        {
            "source": [f"10.1.{i // 100}.{i % 100}" for i in inside],
            "target": [f"172.16.{o // 100}.{o % 100}" for o in outside],
            "port": rng.choice([22, 25, 53, 80, 443, 8080], n, p=[0.05, 0.05, 0.2, 0.3, 0.35, 0.05]),
            "length": rng.choice([40, 52, 576, 1420, 1492, 1500], n, p=[0.3, 0.1, 0.1, 0.05, 0.25, 0.2]),
            "flags": rng.choice(["A", "F", "PA", "S", "SA"], n, p=[0.4, 0.1, 0.3, 0.1, 0.1]),
            "time": np.sort(np.round(rng.uniform(0, 3600, n), 3)),
            "payload": payload,
            "proto": rng.choice(["tcp", "udp"], n, p=[0.8, 0.2]),
            "sequence": _sequence(inside),
        }
    )


def _sequence(host: np.ndarray) -> np.ndarray:
    """The number of each packet of a host, in time; some arrive late, and some twice."""
    rng = _rng("sequence")
    number = pd.Series(host).groupby(host).cumcount().to_numpy() + 1
    return np.maximum(number - np.where(rng.random(len(host)) < 0.1, rng.integers(1, 4, len(host)), 0), 1)


def trial() -> pd.DataFrame:
    """A trial of a drug: how many months patients were seen, and whether they died then."""
    rng = _rng("trial")
    n = 6000
    drug, stage = rng.integers(0, 2, n), rng.integers(1, 4, n)
    until = np.ceil(rng.exponential(14 * np.exp(0.5 * drug - 0.3 * (stage - 1))))
    seen = np.minimum(rng.integers(1, 41, n), 24)
    return pd.DataFrame(
        {
            "arm": np.where(drug == 1, "drug", "placebo"),
            "stage": stage,
            "months": np.minimum(until, seen).astype(int),
            "died": (until <= seen).astype(int),
            "visits": np.minimum(rng.poisson(np.exp(0.4 + 0.3 * (stage - 1))), 15),
            "stands_for": np.round(rng.uniform(1, 5, n), 2),
        }
    )


def edges() -> pd.DataFrame:
    """Friendships, both ways round: every node has at most 12."""
    rng = _rng("edges")
    a, b = rng.integers(1, 801, 2400), rng.integers(1, 801, 2400)
    pairs = pd.DataFrame({"a": np.minimum(a, b), "b": np.maximum(a, b)}).query("a < b").drop_duplicates()
    both = pd.concat([pairs, pairs.rename(columns={"a": "b", "b": "a"})])
    both = both.rename(columns={"a": "node", "b": "friend"}).sort_values(["node", "friend"])
    many = both.groupby("node").node.transform("size")
    return both[(many <= 12) & both.friend.map(both.groupby("node").size().le(12))].reset_index(drop=True)


def drivers() -> pd.DataFrame:
    rng = _rng("drivers")
    n = 600
    return pd.DataFrame(
        {
            "driver": np.arange(1, n + 1),
            "home": rng.choice(CITIES, n),
            "vehicle": rng.choice(["bike", "car", "van"], n, p=[0.3, 0.6, 0.1]),
            "rating": np.clip(rng.normal(4.5, 0.4, n), 1, 5).round(1),
        }
    )


def trips() -> pd.DataFrame:
    rng = _rng("trips")
    rider = _owners(rng, 1500, 8)
    n = len(rider)
    return pd.DataFrame(
        {
            "trip": np.arange(1, n + 1),
            "rider": rider,
            "driver": rng.integers(1, 601, n),
            "city": rng.choice(CITIES, n, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "fare": np.round(rng.gamma(3, 4, n) + 2, 2),
            "status": rng.choice(["cancelled", "completed"], n, p=[0.15, 0.85]),
            "hour": rng.integers(0, 24, n),
        }
    )


def towns() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "city": CITIES,
            "country": ["US", "NO", "IE", "NL", "PT"],
            "region": ["west", "north", "west", "middle", "south"],
        }
    )


def orders() -> pd.DataFrame:
    rng = _rng("orders")
    customer = _owners(rng, 1500, 8)
    n = len(customer)
    return pd.DataFrame(
        {
            "order": np.arange(1, n + 1),
            "customer": customer,
            "month": rng.integers(1, 13, n),
            "amount": np.round(rng.gamma(2, 30, n) + 1, 2),
            "channel": rng.choice(["shop", "web"], n, p=[0.4, 0.6]),
        }
    )


def customers() -> pd.DataFrame:
    rng = _rng("customers")
    n = 1500
    return pd.DataFrame(
        {
            "id": np.arange(1, n + 1),
            "city": rng.choice(CITIES, n),
            "age": rng.integers(18, 90, n),
            "since": rng.integers(2010, 2025, n),
        }
    )


TABLES = (
    visits,
    views,
    eaten,
    members,
    books,
    checkouts,
    labour,
    pums,
    reddit,
    professors,
    students,
    papers,
    patients,
    stays,
    impressions,
    purchases,
    searches,
    packets,
    trial,
    edges,
    drivers,
    trips,
    towns,
    orders,
    customers,
)


def write(folder: Path) -> dict[str, pd.DataFrame]:
    """Writes all tables as CSV files into a folder, and gives them by name."""
    frames = {make.__name__: make() for make in TABLES}
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return frames


if __name__ == "__main__":
    write(Path(sys.argv[1]))
