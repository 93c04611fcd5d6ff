"""The exact answers to the programs of the systems that speak SQL."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
from answers import Groups, Moment, Near, Noisy, Rank

Frames = dict[str, pd.DataFrame]
STATES = ["CA", "MA", "NY", "TX"]


def smartnoise_pums(frames: Frames) -> dict[str, Any]:
    pums = frames["pums"]
    states = pums.groupby("state").size()
    middle = pums[pums.age.between(30, 60)].groupby("married").income.sum()
    some = pums[pums.state.isin(["CA", "NY"])]
    classes = pd.cut(some.educ, [0, 8, 12, 16], labels=["low", "middle", "high"]).astype(str)
    assert sorted(states)[-4] > 150 and all(abs(n - 300) > 30 for n in states)
    return {
        "ages": Groups(("sex",), {"age": Moment("avg", pums.groupby("sex").age, 0, 100, 1, 2)}, [0, 1]),
        "forty": Noisy((pums.age == 40).sum(), 1),
        "states": Groups(("state",), {"n": Noisy(states, 1)}, STATES, order="n"),
        "large": Groups(("state",), {"n": Noisy(states, 1)}, states[states > 300].index),
        "middle": Groups(("married",), {"income": Noisy(middle, 500_000)}, [0, 1]),
        "classes": Groups(("class",), {"n": Noisy(classes.value_counts(), 1)}, ["low", "middle", "high"]),
        "spread": {
            "variance": Moment("var", pums.age, 0, 100, 1, 3),
            "deviation": Moment("stddev", pums.age, 0, 100, 1, 3),
        },
        "top": Groups(("state",), {"n": Noisy(states, 1)}, states.sort_values().index[-3:], order="n"),
    }


def smartnoise_reddit(frames: Frames) -> dict[str, Any]:
    posts = frames["reddit"]
    by_ngram = posts.groupby("ngram")
    first = posts.ngram.str.split(" ").str[0]
    authors = by_ngram.author.nunique()
    three = ["the the", "of the", "the of"]
    return {
        "ngrams": Groups(("ngram",), {"n": Noisy(by_ngram.size(), 10 / 2)}, surely=authors[authors > 400].index),
        "frequent": Groups(("ngram",), {"n": Noisy(authors, 3 / 4)}, surely=authors.nlargest(3).index),
        "authors": Groups(("ngram",), {"n": Noisy(authors, 3)}, three),
        "the": Noisy((first == "the").sum(), 10),
        "first_words": Groups(("word",), {"n": Noisy(first.value_counts(), 10)}, ["the", "of", "a"]),
        "habit": Moment("avg", posts.groupby("author").size(), 0, 10, 1, 1),
    }


def bigquery_professors(frames: Frames) -> dict[str, Any]:
    asked = frames["professors"]
    by_item = asked.groupby("item")
    each = asked.groupby(["id", "item"]).quantity.sum().clip(0, 300).groupby("item").sum()
    items = ["pen", "pencil", "scissors"]
    many = asked.groupby("item").id.nunique()
    best = asked.groupby("id").quantity.max()
    # a row of each professor and item is kept, whichever: its mean is within 15 of all rows' (8 standard errors of it)
    mean = by_item.quantity.mean()
    of_some = 15 + many.map(lambda n: 2 * 23 * 3 * 2 / 6 * 50 / max(n / 2 - 46, 23))
    return {
        "found": Groups(("item",), {"mean": Near(mean, of_some)}, surely=["pen", "pencil"]),
        "listed": Groups(("item",), {"mean": Near(mean, of_some)}, items),
        "people": Groups(("item",), {"n": Noisy(many, 3)}, items),
        "quantity": Groups(("item",), {"quantity": Noisy(each, 900)}, items),
        "variance": Moment("var", asked.quantity, 0, 200, 6, 8),
        "middle": Rank(asked.quantity, 0.5, 6, 2),
        "unbounded": Near(best.clip(0, 100).mean(), 15),
    }


def bigquery_papers(frames: Frames) -> dict[str, Any]:
    papers, students = frames["papers"], frames["students"]
    best = papers.groupby("author").citations.nlargest(3).sum()
    score = students.groupby(["school", "grade"]).score
    return {
        "fields": Groups(("field",), {"n": Noisy(papers.groupby("field").size(), 8)}, ["art", "law", "physics"]),
        "authors": Groups(
            ("field",), {"n": Noisy(papers.groupby("field").author.nunique(), 3)}, ["art", "law", "physics"]
        ),
        "best": Noisy(best, 600),
        "broad": Noisy((papers.groupby("author").field.nunique() > 1).sum(), 1),
        "scores": Groups(
            ("school", "grade"),
            {"mean": Moment("avg", score, 0, 100, 1, 4)},
            list(itertools.product(["North", "South", "West"], range(9, 13))),
        ),
        "high": {"middle": Rank(students.score, 0.5, 1, 1, 0.05), "ninth": Rank(students.score, 0.9, 1, 1, 0.05)},
    }


def snowflake_patients(frames: Frames) -> dict[str, Any]:
    patients, stays = frames["patients"], frames["stays"].assign(cost=frames["stays"].cost.clip(0, 10_000))
    both = stays.merge(patients, left_on="pat", right_on="patient")
    old = patients[patients.age > 60]
    clear = patients[patients.smoker == "no"].groupby("state").size()
    assert (clear > 60 + 23).all()
    return {
        "ages": Groups(("twenties",), {"n": Noisy((patients.age // 20).value_counts(), 1)}, range(5)),
        "bmi": Groups(
            ("smoker",), {"mean": Moment("avg", patients.groupby("smoker").bmi, 10, 60, 1, 2)}, ["no", "yes"]
        ),
        "old_flu": Noisy(((both.age > 65) & (both.diagnosis == "flu")).sum(), 6),
        "smokers_between": [Near((patients.smoker == "yes").sum() + side * 3.0, 24) for side in (-1, 1)],
        "bmi_between": [Near(35 + (old.bmi - 35).sum() / len(old), 2 * 27 * 25 / 2 / len(old) * 1.2) for _ in range(2)],
        "diagnoses": Groups(
            ("diagnosis",),
            {"n": Noisy(stays.groupby("diagnosis").pat.nunique(), 4)},
            ["asthma", "diabetes", "flu", "fracture"],
        ),
        "cost": Moment("avg", stays.groupby("pat").cost.sum(), 0, 20_000, 1, 2),
        "nights": Groups(("sex",), {"nights": Noisy(both.groupby("sex").nights.sum(), 6 * 30)}, ["F", "M"]),
        "clear": [Noisy(n, 1) for n in clear.sort_index()],
    }


def aws_clean_rooms(frames: Frames) -> dict[str, Any]:
    shown, bought = frames["impressions"], frames["purchases"].assign(price=frames["purchases"].price.clip(0, 200))
    clicked = shown.groupby("user").clicked.max()
    spent = bought.groupby("buyer").price.sum()
    of_clickers = spent[spent.index.isin(clicked[clicked == 1].index)].clip(0, 500)
    strangers = bought[~bought.buyer.isin(shown.user)]
    three = ["autumn", "spring", "summer"]
    goods = ["book", "game", "shoe"]
    return {
        "overlap": Noisy(len(set(shown.user) & set(bought.buyer)), 1),
        "reach": Groups(("campaign",), {"n": Noisy(shown.groupby("campaign").user.nunique(), 3)}, three),
        "clicks": Groups(("campaign",), {"n": Noisy(shown.groupby("campaign").clicked.sum(), 6)}, three),
        "bought": Noisy(of_clickers.sum(), 500),
        "strangers": Groups(("product",), {"n": Noisy(strangers.groupby("product").buyer.nunique(), 3)}, goods),
        "prices": Groups(("product",), {"mean": Moment("avg", bought.groupby("product").price, 0, 200, 5, 6)}, goods),
    }


def qrlew_orders(frames: Frames) -> dict[str, Any]:
    orders, customers = frames["orders"].assign(amount=frames["orders"].amount.clip(0, 400)), frames["customers"]
    both = orders.merge(customers, left_on="customer", right_on="id")
    months = orders.groupby(["customer", "month"]).amount.sum()
    winter = orders[orders.month.isin([1, 2, 12])].customer
    ages = (both.drop_duplicates("customer").age // 20).value_counts()
    return {
        "channels": Groups(
            ("channel",), {"amount": Noisy(orders.groupby("channel").amount.sum(), 3200)}, ["shop", "web"]
        ),
        "cities": Groups(
            ("city",), {"amount": Noisy(both.groupby("city").amount.sum(), 3200)}, sorted(customers.city.unique())
        ),
        "months": Moment("avg", months, 0, 400, 8, 8),
        "customers_spend": Moment("avg", orders.groupby("customer").amount.sum(), 0, 1000, 1, 2),
        "ages": Groups(("twenties",), {"n": Noisy(ages, 1)}, range(5)),
        "none_in_winter": Noisy((~customers.id.isin(winter)).sum(), 1),
    }


def postgres_reports(frames: Frames) -> dict[str, Any]:
    pums, old = frames["pums"], frames["pums"].age >= 65
    coast = pums.state.map({"CA": "west", "MA": "east", "NY": "east", "TX": "gulf"})
    incomes = pums.income.groupby(coast).sum()
    quarters = (pd.to_datetime(frames["members"].joined).dt.quarter).value_counts()
    return {
        "over_65": {"old": Noisy(old.sum(), 1), "married": Noisy((old & (pums.married == 1)).sum(), 1)},
        "combinations": Noisy(len(pums[["age", "educ"]].drop_duplicates()), 1),
        "incomes": Groups(("coast",), {"income": Noisy(incomes, 500_000)}, ["east", "gulf", "west"]),
        "quarters": Groups(("quarter",), {"n": Noisy(quarters, 1)}, [1, 2, 3, 4]),
    }
