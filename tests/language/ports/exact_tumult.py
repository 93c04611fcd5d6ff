"""The exact answers to the programs of Tumult Analytics."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from answers import Groups, Moment, Near, Noisy, Rank, gaussian, kept, ratio

Frames = dict[str, pd.DataFrame]
LEVELS = ["up-to-high-school", "high-school-diploma", "bachelors-associate", "masters-degree", "doctorate"]


def _members(frames: Frames) -> pd.DataFrame:
    return frames["members"].assign(age=frames["members"].age.astype("float"))


def tumult_first_steps(frames: Frames) -> dict[str, Any]:
    members = _members(frames)
    age = members.age
    return {
        "members_count": Noisy(len(members), 1),
        "minors": Noisy((age < 18).sum(), 1),
        "youths": Noisy(((age >= 18) & (age < 25)).sum(), 1),
        "unknown": Noisy(age.isna().sum(), 1),
        "idle": Noisy((members.borrowed == 0).sum(), 1 / 2),
    }


def tumult_aggregates(frames: Frames) -> dict[str, Any]:
    members = _members(frames)
    known = members[members.age.notna()]
    by_age = known.assign(twenties=known.age // 20, decade=known.age // 10 * 10)
    pairs = [("doctorate", "female"), ("doctorate", "male"), ("masters-degree", "nonbinary")]
    education = members.groupby("education").borrowed
    books = members.borrowed
    return {
        "age": Moment("avg", members.age, 0, 120, 1, 2),
        "borrowed": Noisy(books.clip(0, 30).sum(), 30),
        "by_education": Groups(("education",), {"mean": Moment("avg", education, 0, 60, 1, 4)}, LEVELS),
        "groups": Groups(
            ("twenties", "education"),
            {"n": Noisy(by_age.groupby(["twenties", "education"]).size(), 1)},
            [(i, level) for i in range(6) for level in LEVELS],
        ),
        "quartiles": {name: Rank(books, q, 1, 1) for name, q in (("low", 0.25), ("middle", 0.5), ("high", 0.75))},
        "spread": {
            "deviation": Moment("stddev", members.age, 0, 120, 1, 3),
            "variance": Moment("var", members.age, 0, 120, 1, 3),
        },
        "ends": {"low": Rank(books, 0.0, 1, 1), "high": Rank(books, 1.0, 1, 1)},
        "zips": Noisy(members.zip.nunique(), 1),
        "bins": Groups(("decade",), {"n": Noisy(by_age.groupby("decade").size(), 1)}, range(0, 120, 10)),
        "pairs": Groups(
            ("education", "gender"), {"n": Noisy(members.groupby(["education", "gender"]).size(), 1)}, pairs
        ),
    }


def tumult_checkouts(frames: Frames) -> dict[str, Any]:
    checkouts, members = frames["checkouts"], _members(frames)
    read = checkouts.merge(frames["books"], on="isbn")
    both = checkouts.merge(members, left_on="member", right_on="id")
    genres = sorted(frames["books"].genre.unique())
    three = ["doctorate", "masters-degree", "up-to-high-school"]
    return {
        "all_checkouts": Noisy(len(checkouts), 20),
        "by_genre": Groups(("genre",), {"n": Noisy(read.groupby("genre").size(), 20)}, genres),
        "by_book": Groups(("isbn",), {"n": kept(checkouts, "member", ["isbn"], 5, 1, 5)}, range(1001, 1061)),
        "readers": Groups(("genre",), {"n": Noisy(read.groupby("genre").member.nunique(), 6)}, genres),
        "by_education": Groups(("education",), {"n": Noisy(both.groupby("education").size(), 12)}, three),
        "active": Noisy(checkouts.member.nunique(), 1),
        "per_member": Moment("avg", checkouts.groupby("member").size(), 0, 20, 1, 1),
        "longest": Rank(checkouts.groupby("member").days.max(), 0.5, 1, 1),
        "variety": Groups(
            ("genres",), {"n": Noisy(read.groupby("member").genre.nunique().value_counts(), 1)}, range(1, 7)
        ),
    }


def tumult_transformations(frames: Frames) -> dict[str, Any]:
    members = _members(frames)
    favourites = members.genres.fillna("").str.split(";").explode()
    stage = members.age.map(lambda age: "young" if age < 25 else "grown" if age < 65 else "old")
    town = members.zip.map(lambda code: "Cary" if code == 27513 else "Chapel Hill")
    old = members[members.age >= 10]
    books = members.groupby(members.joined.str[:4].astype(int)).borrowed.sum()
    return {
        "genres": Groups(("genre",), {"n": Noisy(favourites.value_counts(), 3)}, ["Fantasy", "History", "Science"]),
        "ages": Moment("avg", members.age.fillna(18), 0, 120, 1, 2),
        "known": Moment("avg", members.age, 0, 120, 1, 2),
        "stages": Groups(("stage",), {"n": Noisy(stage.value_counts(), 1)}, ["young", "grown", "old"]),
        "towns": Groups(("town",), {"n": Noisy(town.value_counts(), 1)}, ["Cary", "Chapel Hill"]),
        "initials": Groups(("initial",), {"n": Noisy(members.name.str[0].value_counts(), 1)}, ["A", "B", "C"]),
        "years": Groups(("year",), {"books": Noisy(books, 60)}, range(2015, 2024)),
        "ratio": Moment("avg", (old.borrowed / old.age).clip(0, 6), 0, 6, 1, 2),
    }


def tumult_budgets(frames: Frames) -> dict[str, Any]:
    members = _members(frames)
    cells = members.groupby(["zip", "gender"]).size()
    ages = (members.age[members.age.notna()] // 15).value_counts()
    surely = sorted(n for n in cells if n >= 80 + 23)
    assert all(n >= 103 or n <= 57 for n in cells), "a count near the threshold can be either way"
    return {
        "tenth": Noisy((members.age > 60).sum(), 1),
        "medians": [Rank(part, 0.5, 1, 1) for _, part in members.groupby("zip").borrowed],
        "enough": [Noisy(n, 1) for n in cells if n in surely],
        "share": ratio(members.age.notna().sum(), len(members), 23, 23),
        "ages": Groups(("key1",), {"n": Noisy(ages, 4 / 5)}, range(6)),
    }


def tumult_bounds(frames: Frames) -> dict[str, Any]:
    checkouts, members = frames["checkouts"], _members(frames)
    by_isbn = checkouts.groupby("isbn")
    many = by_isbn.member.nunique()
    # the bounds that are found are round ones around nearly all of 1..39: the average is that between them
    means = [checkouts.days.clip(low, high).mean() for low in (0, 1, 2, 5) for high in (20, 50, 100)]
    middle = (max(means) + min(means)) / 2
    return {
        "loan": Near(middle, max(means) - middle + 23 * 12 / 4 * 100 / len(checkouts) * 1.2),
        "books": Groups(("isbn",), {"n": Noisy(by_isbn.size(), 12 / 3)}, surely=many[many > 250].index),
        "education": Groups(("education",), {"n": gaussian(members.groupby("education").size(), 1)}, LEVELS),
        "borrowed": gaussian(members.borrowed.sum(), 60 / math.sqrt(2 * 0.5)),
    }
