"""The exact answers to the programs of PipelineDP and of Google's libraries."""

from __future__ import annotations

from typing import Any

import pandas as pd
from answers import Groups, Moment, Noisy, Rank, Upto, kept, kept_in_all

Frames = dict[str, pd.DataFrame]
FRUITS = ["apple", "banana", "cherry", "date"]


def pipelinedp_restaurant(frames: Frames) -> dict[str, Any]:
    visits = frames["visits"].assign(euros=frames["visits"].euros.clip(0, 60))
    sums = visits.groupby(["visitor", "day"]).euros.sum().clip(0, 100).groupby("day").sum()
    day = visits.groupby("day")
    return {
        "by_day": Groups(("day",), {"visits": kept(visits, "visitor", ["day"], 3, 1, 3)}, range(1, 8)),
        "visitors": Groups(("day",), {"n": Noisy(day.visitor.nunique(), 6)}, range(1, 8)),
        "spent_by_day": Groups(("day",), {"euros": Noisy(day.euros.sum(), 360)}, range(1, 8)),
        "sums": Groups(("day",), {"euros": Noisy(sums, 600)}, range(1, 8)),
        "moments": {
            "mean": Moment("avg", visits.euros, 0, 60, 6, 3),
            "variance": Moment("var", visits.euros, 0, 60, 6, 3),
        },
        "quartiles": {
            name: Rank(visits.minutes, q, 6, 2) for name, q in (("low", 0.25), ("middle", 0.5), ("high", 0.75))
        },
    }


def google_hours(frames: Frames) -> dict[str, Any]:
    visits = frames["visits"]
    visits = visits.assign(hour=pd.to_datetime(visits.entered, format="%I:%M:%S %p").dt.hour)
    first = visits[visits.day == 1]
    days = kept(visits, "visitor", ["day"], 3, 1, 3)
    least, most = visits.groupby("visitor").euros.min().sum(), visits.euros.clip(0, 60).groupby(visits.day).sum()
    assert least > 0
    return {
        "monday_hours": Groups(("hour",), {"n": kept_in_all(first, "visitor", "hour", 1, 1)}, range(9, 21)),
        "hours": Groups(("hour",), {"n": Noisy(visits.groupby("hour").size(), 6)}, range(9, 21)),
        "days": Groups(("day",), {"n": days}, range(1, 8)),
        "revenue": Groups(("day",), {"euros": Upto(0 * most, most, 240)}, range(1, 8)),
        "stay": Moment("avg", visits.minutes[visits.hour < 14], 0, 120, 6, 4),
        "people": Noisy(visits.visitor.nunique(), 1),
    }


def pipelinedp_movies(frames: Frames) -> dict[str, Any]:
    views = frames["views"]
    film, viewer = views.groupby("film"), views.groupby("viewer")
    chosen = views[views.film <= 3].groupby("film").stars
    large = film.viewer.nunique()
    return {
        "chosen": Groups(("film",), {"n": Noisy(film.size(), 4)}, range(1, 11)),
        "films": Groups(("film",), {"n": Noisy(film.size(), 8)}, surely=large[large > 600].index),
        "viewers": Groups(("film",), {"n": Noisy(large, 4)}, range(1, 11)),
        "stars": Groups(
            ("film",), {"total": Noisy(chosen.sum(), 8 * 5 / 3), "mean": Moment("avg", chosen, 1, 5, 8, 3)}, range(1, 4)
        ),
        "habit": Moment("avg", viewer.film.nunique(), 1, 8, 1, 1),
        "histogram_of_counts": Groups(("films",), {"n": Noisy(viewer.size().value_counts(), 1)}, range(1, 9)),
    }


def google_sql_fruit(frames: Frames) -> dict[str, Any]:
    eaten = frames["eaten"]
    fruit = eaten.groupby("fruit")
    times = eaten.groupby(["uid", "fruit"]).size().clip(upper=3).groupby("fruit").sum()
    return {
        "eaten": Groups(("fruit",), {"n": Noisy(fruit.size(), 6)}, surely=["apple", "banana"]),
        "eaters": Groups(("fruit",), {"n": Noisy(fruit.uid.nunique(), 4)}, FRUITS),
        "capped": Groups(("fruit",), {"n": Noisy(times, 12)}, FRUITS),
        "grams": Groups(("fruit",), {"grams": Noisy(fruit.grams.sum(), 6 * 500)}, surely=["apple", "banana"]),
        "portion": Moment("avg", eaten.grams, 0, 500, 6, 2),
        "hungry": Noisy((eaten.groupby("uid").grams.sum() > 1000).sum(), 1),
    }
