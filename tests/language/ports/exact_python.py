"""The exact answers to the programs of diffprivlib, Fuzz, PINQ and wPINQ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from answers import TAIL, Groups, Moment, Near, Noisy, One, Rank, ratio
from exact_opendp import covariance

Frames = dict[str, pd.DataFrame]


def diffprivlib_tools(frames: Frames) -> dict[str, Any]:
    adult = frames["pums"]
    cells = (
        adult.groupby([adult.age // 25, adult.educ // 4]).size().unstack(fill_value=0).reindex(range(5), fill_value=0)
    )
    return {
        "ages": Groups(("key1",), {"n": Noisy((adult.age // 10).value_counts(), 1)}, range(11)),
        "both": [[Noisy(n, 1) for n in row] for row in cells.to_numpy()],
        "moments": {
            "mean": Moment("avg", adult.age, 0, 100, 1, 3),
            "variance": Moment("var", adult.age, 0, 100, 1, 3),
            "deviation": Moment("stddev", adult.age, 0, 100, 1, 3),
        },
        "income": Noisy(adult.income.clip(0, 100_000).sum(), 100_000),
        "married": Noisy((adult.married != 0).sum(), 1),
        "percentiles": {
            name: Rank(adult.age, q, 1, 1) for name, q in (("tenth", 0.1), ("half", 0.5), ("ninetieth", 0.9))
        },
        "means": [
            Moment("avg", adult[name], low, high, 1, 2)
            for name, low, high in (("age", 0, 100), ("educ", 1, 16), ("married", 0, 1))
        ],
    }


def diffprivlib_models(frames: Frames) -> dict[str, Any]:
    adult = frames["pums"]
    by_class = adult.groupby("married")
    together, spread = covariance(adult.age, adult.educ, (0, 100), (1, 16), 4), Moment("var", adult.age, 0, 100, 1, 4)
    low, _ = spread.range_of(adult.age.to_numpy(float))
    x, y = adult.age / 100, adult.educ / 16
    gram, right = np.array([[len(x), x.sum()], [x.sum(), (x * x).sum()]]), np.array([y.sum(), (x * y).sum()])
    weights = np.linalg.solve(gram, right)
    # (G + E)w' = r + e: |w' - w| <= |G^-1| (|e| + |E||w|) / (1 - |G^-1||E|) in the sup norm
    inverse, off = np.abs(np.linalg.inv(gram)).sum(1).max(), TAIL * 5 / 10
    assert inverse * 2 * off < 1
    width = inverse * (off + 2 * off * np.abs(weights).max()) / (1 - inverse * 2 * off)
    return {
        "bayes": Groups(
            ("married",),
            {
                "n": Noisy(by_class.size(), 1 / 6),
                "age": Moment("avg", by_class.age, 0, 100, 1, 6),
                "educ": Moment("var", by_class.educ, 1, 16, 1, 6),
            },
            [0, 1],
        ),
        "line": [Near(together.exact / adult.age.var(), (abs(together.exact) + together.width) / low), together],
        "scaler": {
            "centre": Moment("avg", adult.educ, 1, 16, 1, 2),
            "spread": Moment("stddev", adult.educ, 1, 16, 1, 2),
        },
        "weights": [Near(weight, width) for weight in weights],
    }


def fuzz_census(frames: Frames) -> dict[str, Any]:
    census = frames["pums"]
    old = census[census.age > 40].income.clip(0, 100_000)
    bucket = sum((census.age >= edge).astype(int) for edge in (20, 40, 60, 80))
    assert isinstance(bucket, pd.Series)
    return {
        "income": ratio(old.sum(), len(old), TAIL * 100_000 / 2, TAIL / 2),
        "cdf": Groups(("bucket",), {"n": Noisy(bucket.value_counts(), 1)}, range(5)),
        "settled_people": Noisy(((census.age >= 30) & (census.married == 1)).sum(), 1),
    }


def pinq_searches(frames: Frames) -> dict[str, Any]:
    searches = frames["searches"]
    of_cricket = searches[searches["query"].str.lower().str.contains("cricket")]
    third = searches.ip.drop_duplicates().str.split(".").str[2].astype(int)
    return {
        "cricket": Noisy(len(of_cricket), 8),
        "users": Noisy(of_cricket.ip.nunique(), 1),
        "fans": Noisy((of_cricket.groupby("ip").size() > 2).sum(), 1),
        "hours": Groups(("hour",), {"n": Noisy(searches.groupby("hour").size(), 8)}, range(24)),
        "queries": Groups(
            ("query",), {"n": Noisy(searches.groupby("query").size(), 8)}, ["news", "football", "train times"]
        ),
        "ranges": Groups(("third",), {"n": Noisy(third.value_counts(), 1)}, range(6)),
        "clicks": {"mean": Moment("avg", searches.clicks, 0, 9, 8, 4), "middle": Rank(searches.clicks, 0.5, 8, 4)},
    }


def pinq_worm(frames: Frames) -> dict[str, Any]:
    packets = frames["packets"]
    payload = packets.groupby("payload")
    wide = (payload.source.nunique() > 100) & (payload.target.nunique() > 100)
    pairs = packets.groupby(["source", "target"]).size().value_counts()
    many = payload.size()
    best = many[many >= many.max() - 2 * (TAIL + np.log(40))].index
    return {
        "worms": Noisy(wide.sum(), 2),
        "payloads": Groups(("payload",), {"n": Noisy(wide.astype(int), 2 / 4)}, range(40)),
        "packets_of": Groups(("payload",), {"n": Noisy(many, 1)}, range(40)),
        "pairs": Groups(("packets",), {"n": Noisy(pairs, 1)}, range(1, 5)),
        "commonest": One(best),
    }


def pinq_aggregates(frames: Frames) -> dict[str, Any]:
    people = frames["pums"]
    near = (people.age - 30).abs() >= (people.age - 70).abs()
    of_centre = people.groupby(near.astype(int))
    return {
        "under_agent": Noisy((people.age > 50).sum(), 1),
        "incomes": Noisy(people.income.clip(0, 100_000).sum(), 100_000),
        "medians": [Rank(part, 0.5, 1, 1) for _, part in people.groupby("state").age],
        "concat": Noisy(len(people), 2),
        "step": Groups(
            ("centre",),
            {
                "age": Moment("avg", of_centre.age, 0, 100, 1, 4),
                "educ": Moment("avg", of_centre.educ, 1, 16, 1, 4),
            },
            [0, 1],
        ),
        "cdf": [Noisy((people.age < bound).sum(), 1) for bound in (30, 50, 70)],
    }


def wpinq_degrees(frames: Frames) -> dict[str, Any]:
    degree, trips = frames["edges"].groupby("node").size(), frames["trips"]
    share = (1 / trips.groupby("rider").trip.transform("size")).groupby(trips.city).sum()
    return {
        "nodes": Noisy(len(degree), 1),
        "degrees": Groups(("degree",), {"n": Noisy(degree.value_counts(), 1)}, range(1, 13)),
        "edges_count": Noisy(degree.sum(), 12),
        "average": Moment("avg", degree, 0, 12, 1, 1),
        "wedges": Noisy((degree * (degree - 1) / 2).sum(), 66),
        "weighted": Groups(("city",), {"n": Near(share, 23 + 0.1)}, sorted(trips.city.unique())),
    }


def diffprivlib_columns(frames: Frames) -> dict[str, Any]:
    adult = frames["pums"]
    cells = np.zeros((2, 16, 2))
    np.add.at(cells, (adult.sex, adult.educ - 1, adult.married), 1)
    bins = adult.age.map(lambda age: sum(age >= edge for edge in (30, 50, 70)))
    return {
        "cells": [[[Noisy(n, 1) for n in row] for row in plane] for plane in cells],
        "medians": [Rank(adult.age, 0.5, 1, 1), Rank(adult.educ, 0.5, 1, 1)],
        "above": Groups(("age",), {"n": Noisy(bins.value_counts(), 1)}, range(4)),
    }
