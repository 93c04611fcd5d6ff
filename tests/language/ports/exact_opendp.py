"""The exact answers to the programs of OpenDP."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from answers import TAIL, Groups, Moment, Near, Noisy, One, Rank, kept, kept_in_all

Frames = dict[str, pd.DataFrame]
SIXES = [(2018, q) for q in range(1, 5)] + [(2019, q) for q in range(1, 5)]


def opendp_pums(frames: Frames) -> dict[str, Any]:
    pums = frames["pums"]
    income = pums.income.clip(0, 100_000)
    educ = pums.groupby("educ").size()
    return {
        "rows": Noisy(len(pums), 1),
        "income": Noisy(income.sum(), 100_000),
        "age": Moment("avg", pums.age, 0, 100, 1, 2),
        "variance": Moment("var", pums.age, 0, 100, 1, 3),
        "educ": Groups(("educ",), {"n": Noisy(educ, 1)}, range(1, 17)),
        "median_income": Rank(pums.income, 0.5, 1, 1, 500_000 / 4096),
        "married": Groups(
            ("race", "sex"),
            {"n": Noisy(pums[pums.married == 1].groupby(["race", "sex"]).size(), 1)},
            list(itertools.product(range(1, 7), range(2))),
        ),
        "commonest": One([key for key, n in educ.items() if n >= educ.max() - 2 * (TAIL + np.log(16))]),
        "together": covariance(pums.age, income, (0, 100), (0, 100_000), 8),
        "ages": Noisy(pums.age.nunique(), 1),
        "slope": Rank(slopes_of_pairs(pums).clip(-50_000, 50_000), 0.5, 2, 4, 100_000 / 4096),
    }


def slopes_of_pairs(pums: pd.DataFrame) -> pd.Series:
    """Of income by education, of two people each; none where both have the same."""
    pairs = pums.groupby(pums.pid // 2).filter(lambda pair: len(pair) == 2).groupby(pums.pid // 2)
    return ((pairs.income.last() - pairs.income.first()) / (pairs.educ.last() - pairs.educ.first())).replace(
        [np.inf, -np.inf], np.nan
    )


def covariance(
    x: pd.Series, y: pd.Series, of_x: tuple[float, float], of_y: tuple[float, float], epsilon: float
) -> Near:
    """The sample's covariance from four noisy sums around the middles of the bounds, each on a quarter of epsilon."""
    halves = [(high - low) / 2 for low, high in (of_x, of_y)]
    p, q = x - sum(of_x) / 2, y - sum(of_y) / 2
    off, n = TAIL * 4 / epsilon, len(x)
    values = [
        (
            (p * q).sum()
            + d * off * halves[0] * halves[1]
            - (p.sum() + b * off * halves[0]) * (q.sum() + c * off * halves[1]) / (n + a * off)
        )
        / (n + a * off - 1)
        for a, b, c, d in itertools.product((-1, 0, 1), repeat=4)
    ]
    exact = float(np.cov(x, y)[0, 1])
    return Near(exact, max(abs(value - exact) for value in values))


def opendp_essential(frames: Frames) -> dict[str, Any]:
    survey = frames["labour"]
    hours, usual = survey.hours.clip(0, 98), survey.usual.astype("float")
    return {
        "responses": Noisy(len(survey), 4),
        "hours": Noisy(hours.clip(0, 80).sum(), 4 * 80),
        "mean_hours": Moment("avg", hours.clip(0, 80), 0, 80, 4, 4),
        "usual": Noisy(usual.fillna(40).clip(0, 80).sum(), 4 * 80),
        "unsaid": Noisy(usual.isna().sum(), 4),
        "median_hours": Rank(hours, 0.5, 4, 4),
        "persons": Noisy(survey.person.nunique(), 1),
        "deciles": [Rank(survey.age, q, 4, 4) for q in (0.1, 0.5, 0.9)],
    }


def opendp_grouping(frames: Frames) -> dict[str, Any]:
    survey = frames["labour"].assign(hours=frames["labour"].hours.clip(0, 98))
    pairs = survey.groupby(["sex", "status"])
    tens = survey[survey.age.between(20, 69)].assign(ten=survey.age // 10).groupby("ten").hours
    employed = survey[survey.status == "employed"]
    return {
        "quarters": Groups(("year", "quarter"), {"n": Noisy(survey.groupby(["year", "quarter"]).size(), 4)}, SIXES),
        "status": Groups(
            ("status",), {"n": Noisy(survey.groupby("status").size(), 4)}, surely=["employed", "inactive"]
        ),
        "pairs": Groups(
            ("sex", "status"),
            {"n": Noisy(pairs.size(), 2), "hours": Noisy(pairs.hours.sum(), 2 * 98)},
            surely=[(1, "employed"), (2, "employed")],
        ),
        "by_age": Groups(("key1",), {"mean": Moment("avg", tens, 0, 98, 4, 6)}, range(2, 7)),
        "sexes": Groups(("sex",), {"n": Noisy(survey.groupby("sex").person.nunique(), 1)}, [1, 2]),
        "employed": Groups(("sex",), {"n": Noisy(employed.groupby("sex").size(), 4)}, [1, 2]),
    }


def opendp_expressions(frames: Frames) -> dict[str, Any]:
    survey = frames["labour"]
    date, hours = pd.to_datetime(survey.date), survey.hours.clip(0, 98)
    quarter = date.dt.to_period("Q").dt.start_time
    job = survey.job.str.strip().str.lower()
    classes = pd.cut(hours, [-1, 0, 34, 99], labels=["none", "part", "full"]).astype(str)
    over = (hours - survey.usual.astype("float")).clip(-20, 20)
    return {
        "years": Groups(("year",), {"n": Noisy(date.dt.year.value_counts(), 4)}, [2018, 2019]),
        "months": Groups(("month",), {"n": Noisy(date.dt.month.value_counts(), 4)}, range(1, 13)),
        "quarters": Groups(
            ("quarter",), {"n": Noisy(quarter.value_counts(), 4)}, [pd.Timestamp(y, 3 * q - 2, 1) for y, q in SIXES]
        ),
        "weekends": Noisy((date.dt.day_of_week >= 5).sum(), 4),
        "half": Noisy(((date >= "2019-01-01") & (date < "2019-07-01")).sum(), 4),
        "jobs": Groups(("job",), {"n": Noisy(job.value_counts(), 4)}, ["nurse", "teacher", "clerk"]),
        "classes": Groups(("class",), {"n": Noisy(classes.value_counts(), 4)}, ["none", "part", "full"]),
        "overtime": Noisy(over.sum(), 4 * 20),
        "long": Noisy(((hours > 40) & survey.age.between(30, 60)).sum(), 4),
        "un": Noisy(survey.status.str.startswith("un").sum(), 4),
    }


def opendp_identifiers(frames: Frames) -> dict[str, Any]:
    survey = frames["labour"].assign(hours=frames["labour"].hours.clip(0, 98))
    last = survey.sort_values("date").groupby("person").hours.last()
    mean = survey.groupby("person").hours.mean()
    return {
        "one_each": Groups(("quarter",), {"n": kept_in_all(survey, "person", "quarter", 1, 1)}, range(1, 5)),
        "last_hours": Noisy(last.sum(), 98),
        "totals": Noisy(survey.groupby("person").hours.sum().clip(0, 200).sum(), 200),
        "quartiles": {"low": Rank(mean, 0.25, 1, 1, 0.05), "high": Rank(mean, 0.75, 1, 1, 0.05)},
        "two_groups": Groups(("year", "quarter"), {"n": kept(survey, "person", ["year", "quarter"], 2, 1, 2)}, SIXES),
    }


def opendp_margins(frames: Frames) -> dict[str, Any]:
    pums = frames["pums"]
    income = pums.income.clip(0, 100_000)
    by_sex = pums.groupby("sex")
    sums = income.groupby(pums.sex).sum()
    sizes = by_sex.size()
    return {
        "sizes": Groups(("sex",), {"n": Noisy(sizes, 0)}, [0, 1]),
        "means": [Near(sums[sex] / sizes[sex], TAIL * 2 * 100_000 / sizes[sex]) for sex in (0, 1)],
        "educ": Groups(
            ("sex", "educ"),
            {"n": Noisy(pums.groupby(["sex", "educ"]).size(), 2)},
            list(itertools.product([0, 1], range(1, 17))),
        ),
    }


def opendp_selection(frames: Frames) -> dict[str, Any]:
    pums = frames["pums"]
    by_educ, states = pums.groupby("educ").size(), pums.groupby("state").size().to_dict()
    total = pums.income.clip(0, 50_000).groupby(pums.state).sum()
    near = by_educ[by_educ >= by_educ.max() - 2 * (TAIL + np.log(16))]
    return {
        "largest": One(
            [state for state, n in states.items() if n >= max(states.values()) - 2 * 2 * (TAIL + np.log(4))]
        ),
        "educ": One(near.index),
        "of_largest": Noisy(states[max(states, key=lambda state: states[state])], 1),
        "both": {
            "n": Noisy(len(pums), 1 / 2),
            "income": Noisy(total.sum(), 50_000 / 2),
        },
        "quarters": [Noisy((pums.age < age).sum(), 4 / 2) for age in (30, 40, 50, 60)],
    }
