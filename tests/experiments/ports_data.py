"""Tables for the ports of published analyses (`tests/experiments/ports.py`): simulated, small, the same each time.

Each function makes the tables that the program of its name binds, by name. NumPy and pandas alone, so that another
library's environment can make them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

Tables = dict[str, Any]


def own_candidates() -> Tables:
    draw = np.random.default_rng(1)
    return {"bids": pd.DataFrame({"bid": np.round(np.exp(draw.normal(3.3, 0.6, 3000))).clip(0, 100).astype(int)})}


def theil_sen() -> Tables:
    """A line of slope 3 and intercept 2; a tenth of the points lie anywhere."""
    draw, many = np.random.default_rng(2), 10_000
    x = draw.uniform(0, 10, many)
    y = np.where(draw.random(many) < 0.1, draw.uniform(-20, 60, many), 2 + 3 * x + draw.normal(0, 1, many))
    return {"points": pd.DataFrame({"id": np.arange(many), "x": x, "y": y})}


def logistic() -> Tables:
    draw, many = np.random.default_rng(3), 20_000
    income, debt = draw.normal(size=(2, many)).clip(-3, 3)
    fails = draw.random(many) < 1 / (1 + np.exp(1 + 0.8 * income - 1.1 * debt))
    return {"loans": pd.DataFrame({"income": income, "debt": debt, "fails": np.where(fails, "yes", "no")})}


sampled_gradients = dp_ftrl = logistic


def stepping_stones() -> Tables:
    """Packets of three flows in bursts over two hours; the second repeats 700 of the first's 900 within 30 ms."""
    draw, end = np.random.default_rng(4), 7_200_000
    wakes = {flow: draw.integers(0, end, 900) for flow in (1, 2, 3)}
    wakes[2] = np.concatenate([wakes[1][:700] + draw.integers(1, 30, 700), wakes[2][:200]])
    rows = [
        (flow, min(end, int(start + later)))
        for flow, starts in wakes.items() for start in starts
        for later in (0, *np.cumsum(draw.integers(20, 150, draw.integers(1, 6))))
    ]  # fmt: skip
    return {"packets": pd.DataFrame(rows, columns=["flow", "at"])}


def top_k() -> Tables:
    draw, many, pages = np.random.default_rng(5), 6000, 3000
    law = 1 / np.arange(1, pages + 1) ** 1.1
    names = ["home", "shop", "help", "news", "jobs", *(f"page{i}" for i in range(5, pages))]
    rows = [
        (person, names[page])
        for person in range(many) for page in draw.choice(pages, draw.integers(1, 12), p=law / law.sum())
    ]  # fmt: skip
    return {"visits": pd.DataFrame(rows, columns=["person", "page"])}


def contingency() -> Tables:
    draw, many = np.random.default_rng(6), 6000
    return {
        "people": pd.DataFrame({
            "city": draw.choice(["Ames", "Bergen", "Cork", "Delft"], many, p=[0.4, 0.3, 0.2, 0.1]),
            "sex": draw.choice(["Female", "Male"], many),
            "age": draw.choice(["young", "middle", "old"], many),
        })
    }  # fmt: skip


def combiners() -> Tables:
    draw = np.random.default_rng(7)
    rows = [
        (person, film, int(np.clip(round(draw.normal(3.5 if film == "A" else 3, 1.2)), 1, 5)))
        for person in range(4000) for film in "ABC" if draw.random() < 0.6
    ]  # fmt: skip
    return {"ratings": pd.DataFrame(rows, columns=["person", "film", "stars"])}


def invariants() -> Tables:
    draw = np.random.default_rng(8)
    towns = enumerate([812, 1604, 391, 1193])
    block = np.concatenate([10 * town + draw.choice(10, many, p=draw.dirichlet(np.ones(10))) for town, many in towns])
    return {
        "homes": pd.DataFrame({
            "block": block, "use": draw.choice(["owned", "rented", "empty"], len(block), p=[0.6, 0.35, 0.05])
        })
    }  # fmt: skip


def gan() -> Tables:
    draw = np.random.default_rng(9)
    points = draw.multivariate_normal([0.3, -0.2], [[0.06, 0.03], [0.03, 0.04]], 10_000).clip(-1, 1)
    return {"points": pd.DataFrame(points, columns=["x", "y"])}


def tuned_bounds() -> Tables:
    draw = np.random.default_rng(10)
    customer = np.repeat(np.arange(6000), np.minimum(40, draw.geometric(0.2, 6000)))
    amount = np.round(draw.lognormal(2.5, 0.8, len(customer)).clip(0, 200), 2)
    return {"orders": pd.DataFrame({"customer": customer, "amount": amount})}


def _of_days(seed: int, many: int, users: int, begin: str, days: int, **values: list[str]) -> pd.DataFrame:
    """Rows of users on days, with one of three values."""
    draw = np.random.default_rng(seed)
    rows = {"user": draw.integers(0, users, many)}
    rows["day"] = pd.Timestamp(begin) + pd.to_timedelta(draw.integers(0, days, many), unit="D")
    return pd.DataFrame(rows | {name: draw.choice(some, many, p=[0.5, 0.3, 0.2]) for name, some in values.items()})


def weekly_budget() -> Tables:
    """No user has more than three visits in a week."""
    visits = _of_days(11, 9000, 3000, "2026-01-05", 84, page=["home", "shop", "help"])
    return {"visits": visits[visits.groupby(["user", visits["day"].dt.to_period("W")]).cumcount() < 3]}


def packet_order() -> Tables:
    """Flows of up to 40 packets; one number in 25 is sent again, and one packet in 33 overtakes the one before."""
    draw, rows = np.random.default_rng(12), []
    for flow in range(1500):
        sent = [number for number in range(draw.integers(5, 31)) for _ in range(1 + (draw.random() < 0.04))]
        for place in range(len(sent) - 1):
            if draw.random() < 0.03:
                sent[place : place + 2] = sent[place + 1], sent[place]
        at = np.cumsum(draw.integers(1, 2000, len(sent)))
        rows += [(flow, int(moment), number) for moment, number in zip(at, sent, strict=True)][:40]
    return {"packets": pd.DataFrame(rows, columns=["flow", "at", "number"])}


def census() -> Tables:
    draw, many = np.random.default_rng(13), 6000
    return {
        "people": pd.DataFrame({
            "block": draw.choice(80, many, p=draw.dirichlet(np.full(80, 0.5))),
            "sex": draw.choice(["Female", "Male"], many),
            "age": draw.choice(5, many, p=[0.3, 0.3, 0.2, 0.15, 0.05]),
        })
    }  # fmt: skip


def own_sigma() -> Tables:
    draw, tables = np.random.default_rng(14), []
    for action, mean in (("view", 30), ("click", 6), ("share", 1)):
        user = np.repeat(np.arange(5000), draw.negative_binomial(1, 1 / (1 + mean), 5000))
        tables.append(pd.DataFrame({"user": user, "action": action}))
    return {"acts": pd.concat(tables)}


def analysts() -> Tables:
    draw, law = np.random.default_rng(15), 1 / np.arange(1, 401) ** 1.2
    rows = [
        (member, f"title {title}", ("EMEA", "APAC", "NA")[member % 3])
        for member in range(9000) for title in draw.choice(400, draw.integers(1, 4), p=law / law.sum())
    ]  # fmt: skip
    return {"members": pd.DataFrame(rows, columns=["member", "title", "region"])}


def births() -> Tables:
    draw, many = np.random.default_rng(16), 5000
    month, parity = draw.integers(1, 13, many), np.minimum(4, draw.geometric(0.45, many))
    weight = np.round(draw.normal(4 + 0.4 * (parity > 1) - 0.3 * (month < 3), 1.2)).clip(0, 7).astype(int)
    return {"births": pd.DataFrame({"month": month, "parity": parity, "weight": weight})}


def tpch() -> Tables:
    draw, many = np.random.default_rng(17), 5000
    customer = np.repeat(np.arange(many), draw.integers(0, 5, many))
    order = np.repeat(np.arange(len(customer)), draw.integers(1, 8, len(customer)))
    quantity = draw.integers(1, 51, len(order))
    orders = pd.DataFrame({
        "orderkey": np.arange(len(customer)), "customer": customer,
        "priority": draw.choice(["high", "low"], len(customer), p=[0.4, 0.6]),
    })  # fmt: skip
    lines = pd.DataFrame({
        "orderkey": order, "flag": draw.choice(["A", "N", "R"], len(order), p=[0.25, 0.5, 0.25]),
        "mode": draw.choice(["MAIL", "SHIP", "RAIL"], len(order)), "quantity": quantity,
        "price": np.round(quantity * draw.uniform(900, 1200, len(order)), 2),
        "discount": draw.integers(0, 11, len(order)) / 100, "late": draw.random(len(order)) < 0.1,
    })  # fmt: skip
    return {"orders": orders, "lines": lines}


def nist() -> Tables:
    draw, many = np.random.default_rng(18), 8000
    age = draw.integers(0, 10, many)
    income = np.round(draw.normal(0.6 * age + 2, 2)).clip(0, 11).astype(int)
    return {
        "survey": pd.DataFrame({
            "age": age, "sex": draw.choice(["F", "M"], many), "income": income,
            "race": draw.choice(5, many, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
            "owner": np.where(draw.random(many) < income / 14, "yes", "no"),
            "county": draw.choice(8, many, p=draw.dirichlet(np.ones(8))),
        })
    }  # fmt: skip


def heavy_hitters() -> Tables:
    """Notes of two to six words of 400, with blanks that are doubled here and there."""
    draw, law = np.random.default_rng(19), 1 / np.arange(1, 401) ** 1.1
    words = ["".join(draw.choice(list("etaoinshrdlu"), draw.integers(3, 8))) for _ in law]
    texts = [" ".join(draw.choice(words, draw.integers(2, 6), p=law / law.sum())) for _ in range(6000)]
    texts = [text.replace(" ", "  ", 1) if draw.random() < 0.1 else text for text in texts]
    return {"notes": pd.DataFrame({"person": np.arange(len(texts)), "text": texts})}


def set_union() -> Tables:
    from tests.experiments.keys import pairs

    persons, words = pairs(np.random.default_rng(1))
    return {"known": pd.DataFrame({"person": persons, "word": [f"w{word}" for word in words]})}


def survival() -> Tables:
    """Hazards of 0.07 and 0.04 a month; observed for six to 24 months."""
    draw, many = np.random.default_rng(21), 6000
    arm = draw.choice(["control", "drug"], many)
    until, ends = draw.integers(6, 25, many), np.ceil(draw.exponential(np.where(arm == "drug", 25, 14.3)))
    died = np.where(ends <= until, "yes", "no")
    return {"patients": pd.DataFrame({"arm": arm, "months": np.minimum(ends, until).astype(int), "died": died})}


def pca() -> Tables:
    draw = np.random.default_rng(22)
    turn = np.linalg.qr(draw.normal(size=(6, 6)))[0]
    rows = (draw.normal(size=(20_000, 6)) * np.sqrt([1, 0.5, 0.1, 0.05, 0.03, 0.02])) @ turn.T
    return {"body": pd.DataFrame(rows.clip(-4, 4), columns=list("abcdef"))}


def running() -> Tables:
    draw, law = np.random.default_rng(23), 1 + 0.5 * np.sin(np.arange(182) / 9)
    return {"logins": pd.DataFrame({"day": draw.choice(182, 20_000, p=law / law.sum())})}


def tuning() -> Tables:
    draw, many = np.random.default_rng(24), 8000
    income, debt = draw.normal(size=(2, many)).clip(-3, 3)
    fails = draw.random(many) < 1 / (1 + np.exp(3 * (0.3 + 0.8 * income - 1.4 * debt * (income > 0))))
    ages = draw.integers(0, 8, many)
    return {"loans": pd.DataFrame({"income": income, "debt": debt, "age": ages, "fails": np.where(fails, "yes", "no")})}


def recommender() -> Tables:
    draw, users = np.random.default_rng(25), 4000
    films = np.array([[1, 0.2], [0.9, 0.1], [0.2, 1], [0, 0.9], [-0.8, 0.3], [0.5, -0.5]])
    liked = 1.2 * draw.normal(size=(users, 2)) @ films.T + draw.normal(0, 0.5, (users, 6))
    stars = np.round(3 + liked).clip(1, 5).astype(int)
    user, film = np.nonzero(draw.random((users, 6)) < 0.7)
    return {"ratings": pd.DataFrame({"user": user, "film": np.array(list("ABCDEF"))[film], "stars": stars[user, film]})}


def weighted_medians() -> Tables:
    draw = np.random.default_rng(26)
    incomes, weights = draw.lognormal(10.5, 0.6, 6000), draw.gamma(3, 2, 6000)
    return {"survey": pd.DataFrame({"income": incomes.clip(0, 200_000).astype(int), "weight": weights.clip(0, 20)})}


def medians() -> Tables:
    draw, many = np.random.default_rng(27), 20_000
    college, pell = draw.integers(0, 30, many), draw.choice(["no", "yes"], many, p=[0.7, 0.3])
    earnings = np.exp(draw.normal(10.2 + college / 60 - 0.1 * (pell == "yes"), 0.5)).clip(0, 200_000).astype(int)
    return {"students": pd.DataFrame({"college": college, "pell": pell, "earnings": earnings})}


def dated_budget() -> Tables:
    """No user has more than four moves on a day."""
    moves = _of_days(28, 40_000, 2000, "2026-02-02", 28, place=["work", "shop", "park"])
    return {"moves": moves[moves.groupby(["user", "day"]).cumcount() < 4]}
