"""The exact answers to the programs after published releases."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
from answers import TAIL, Groups, Kept, Moment, Near, Noisy, One, Rank, gaussian, kept, ratio

Frames = dict[str, pd.DataFrame]
STATES = ["CA", "MA", "NY", "TX"]


def wikimedia_pageviews(frames: Frames) -> dict[str, Any]:
    views = frames["views"]
    pages = kept(views, "viewer", ["film"], 5, 1, 5 / math.sqrt(2 * 2))
    readers = views.groupby("viewer").film.nunique().value_counts()
    yearly = views.groupby(["film", views.seen.str[:4].astype(int)]).size()
    return {
        "pages": Groups(("film",), {"n": pages}, range(1, 41)),
        "readers": Groups(("pages",), {"n": gaussian(readers, 1 / math.sqrt(2))}, range(1, 9)),
        "yearly": Groups(
            ("film", "year"), {"n": gaussian(yearly, 8 / 2)}, list(itertools.product(range(1, 6), (2003, 2004, 2005)))
        ),
    }


def mobility_reports(frames: Frames) -> dict[str, Any]:
    trips = frames["trips"]
    trips = trips.assign(half=trips.hour // 12, fare=trips.fare.clip(0, 60))
    first, second = trips.groupby("half").size()
    best = trips[trips.fare == trips.groupby("rider").fare.transform("max")]
    sure = best.groupby("rider").city.transform("nunique") == 1
    home = Kept(
        best[sure].drop_duplicates("rider").groupby("city").size(),
        best.groupby("city").rider.nunique(),
        trips.rider.nunique(),
        1,
    )
    cities = sorted(trips.city.unique())
    change = ratio(second, first, TAIL * 4, TAIL * 4)
    return {
        "places": Groups(
            ("city", "half"),
            {"n": kept(trips, "rider", ["city", "half"], 4, 1, 4)},
            list(itertools.product(cities, [0, 1])),
        ),
        "change": type(change)(change.exact - 1, change.width),
        "home": Groups(("city",), {"n": home}, cities),
        "fares": Groups(
            ("city",), {"fare": Rank(trips.groupby("city").fare, 0.5, 8, 6, 60 / 4096)}, ["Ames", "Bergen"]
        ),
    }


def census_hierarchy(frames: Frames) -> dict[str, Any]:
    people = frames["pums"]
    cells = people.groupby(["state", "sex", people.age // 25]).size()
    race, state = people.groupby("race"), people.groupby("state").size()
    assert all(abs(n - 300) > 2 * TAIL for n in state), "a state could be split or not"
    return {
        "total": Noisy(len(people), 0),
        "states": Groups(("state",), {"n": Noisy(state, 2)}, STATES),
        "cells": Groups(
            ("state", "sex", "quarters"), {"n": Noisy(cells, 2)}, list(itertools.product(STATES, [0, 1], range(5)))
        ),
        "adults": Groups(
            ("race",),
            {"n": Noisy(race.size(), 2), "adults": Noisy((people.age >= 21).groupby(people.race).sum(), 2)},
            range(1, 7),
        ),
        "details": [Noisy(n, 2 * 6 if n > 300 else 2) for n in state.sort_index()],
    }


def linkedin_top(frames: Frames) -> dict[str, Any]:
    views = frames["views"]
    many = views.groupby("film").size().sort_values(ascending=False)
    near = many[many >= many.max() - 2 * 8 / 4 * (TAIL + np.log(40))]
    return {
        "top": One(near.index),
        "five": Groups(
            ("film",), {"n": Noisy(many, 4)}, surely=many[many > many.iloc[5] + 2 * TAIL * 4].index, order="n"
        ),
        "of_top": Noisy((views.film == 1).sum(), 8),
        "reached": Noisy(views[views.film <= 5].viewer.nunique(), 1),
    }


def college_scorecard(frames: Frames) -> dict[str, Any]:
    people = frames["pums"]
    of_state, of_sex = people.groupby("state"), people.groupby("sex").income
    above = (people.income > 30_000).groupby(people.state).sum()
    shares = {state: ratio(above[state], n, TAIL / 2, TAIL / 2) for state, n in of_state.size().items()}
    width = 500_000 / 4096
    return {
        "medians": Groups(("state",), {"income": Rank(of_state.income, 0.5, 1, 2, width)}, STATES),
        "quartiles": Groups(
            ("sex",), {"low": Rank(of_sex, 0.25, 1, 2, width), "high": Rank(of_sex, 0.75, 1, 2, width)}, [0, 1]
        ),
        "shares": Groups(
            ("state",),
            {
                "share": type(shares["CA"])(
                    pd.Series({state: one.exact for state, one in shares.items()}),
                    pd.Series({state: one.width for state, one in shares.items()}),
                )
            },
            STATES,
        ),
        "logs": Moment("avg", np.log(people.income + 1).clip(6, 14), 6, 14, 1, 2),
    }


def _optimum(x: np.ndarray, y: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Log rates of events y with exposures e."""
    beta = np.zeros(x.shape[1])
    for _ in range(100):
        beta = beta + np.linalg.solve((x.T * (e * np.exp(x @ beta))) @ x, x.T @ (y - e * np.exp(x @ beta)))
    return beta


def survival_trial(frames: Frames) -> dict[str, Any]:
    """Curves are off by less than 23 scales of 1/4 on about 2,000 at risk and fewer; models by as much as they say."""
    trial = frames["trial"]
    months = np.arange(1, 25)
    curves = []
    for arm in ("placebo", "drug"):
        part = trial[trial.arm == arm]
        risk = np.array([(part.months >= m).sum() for m in months])
        died = np.array([((part.months == m) & (part.died == 1)).sum() for m in months])
        curves.append(np.cumprod(1 - died / risk)[[5, 11, 17]])
    drug, stage = (trial.arm == "drug").to_numpy(float), trial.stage.to_numpy(float)
    long = trial.loc[trial.index.repeat(trial.months)]
    month = (long.groupby(level=0).cumcount() + 1).to_numpy()
    died = ((month == long.months) & (long.died == 1)).to_numpy(float)
    levels = np.column_stack([month == m for m in months]).astype(float)
    hazards = _optimum(np.column_stack([levels, long.arm == "drug", long.stage]).astype(float), died, 1 - died / 2)
    visits = _optimum(
        np.column_stack([np.ones(len(trial)), stage, drug]), trial.visits.to_numpy(float), np.ones(len(trial))
    )
    ordered = trial.sort_values("months")
    shares = ordered.stands_for.cumsum() / ordered.stands_for.sum()
    middle = float(ordered.months[shares >= 0.5].iloc[0])
    return {
        "beyond": [[Near(s, 0.04) for s in curve] for curve in curves],
        "differ": One([1]),
        "hazards": [Near(b, 0.15) for b in hazards[-2:]],
        "visits": [Near(b, 0.15) for b in visits],
        "means": [Near(m, TAIL * 15 / 4 / 1500) for m in trial.groupby("stage").visits.mean()],
        "weighted": [Near(middle, 1.0)],
        "among": One([next(c for c in (3, 6, 9, 12, 24) if c >= trial.months.median())]),
    }
