"""Classification tables and the classifiers of `stdlib/` on them, run by the interpreter as training runs them.

Tables are public (`../shared/data/tables`, scikit-learn's bundled sets), given to the options as if private, with a
budget of the amount at hand and seeded noise of the same law. Domains are public: the values of each column as they
are listed with the set, numeric columns in equal bins between public bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jostle.choice.program import Parts, ProgramBench
from jostle.source import Source
from jostle.tools.session import Session

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"
NAMES = ("nursery", "cmc", "hiv_1625", "adult", "balance", "tic_tac_toe")
EPSILONS = (0.05, 0.1, 0.5, 1.0, 4.0)
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


def _bins(cells: np.ndarray[Any, Any], low: float, high: float, bins: int) -> np.ndarray[Any, Any]:
    return np.minimum((cells - low) / (high - low) * bins, bins - 1).astype(int).astype(str).astype(object)


def split(columns: Columns, seed: int) -> tuple[Columns, Columns]:
    """A random 70 % of the rows, and the others."""
    size = len(next(iter(columns.values())))
    order = np.random.default_rng(seed).permutation(size)
    edge = int(TRAINING_SHARE * size)
    return tuple({c: v[part] for c, v in columns.items()} for part in (order[:edge], order[edge:]))  # type: ignore[return-value]


class Tables(ProgramBench):
    """Several (training, test) pairs, an instance each; options, features and utility are those of `classify`."""


def bench(
    pairs: Sequence[tuple[Columns, Columns, dict[str, list[str]], str]],
    options: Sequence[str],
    features: Sequence[str] = (),
    made_up: str = "",
) -> Tables:
    """`pairs`: (training, test, domains, class). `options`, `features`: names of `stdlib/classify.jst`.

    `made_up`: an expression of the language for more databases, such as `simulated_tables(40)`.
    """
    session = Session()
    text = ["use classifiers", "use classify"]
    for i, (train, test, domains, label) in enumerate(pairs):
        said = ", ".join(f"{_name(c)}: {{{', '.join(map(_quoted, v))}}}" for c, v in domains.items())
        for what, rows in (("train", train), ("test", test)):
            session.bind(f"{what}{i}", rows)
            text.append(f'{what}{i} = bound("{what}{i}") described by {{{said}}}')
        text.append(f"d{i} = {{database: train{i}, test: test{i}, class: {_quoted(label)}}}")
    text.append(f"more = {made_up or '[]'}")
    session.execute(Source("experiment", "\n".join(text) + "\n"))
    known: dict[str, Any] = session.names()
    parts = Parts(
        options=tuple(known[name] for name in options),
        option_names=tuple(options),
        features=tuple(known[name] for name in features),
        feature_names=tuple(features),
        utility=known["right_on_test"],
        databases=(*(known[f"d{i}"] for i in range(len(pairs))), *known["more"]),
    )
    return Tables(session._interp, parts)


def _name(column: str) -> str:
    return column if column.isidentifier() else _quoted(column)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
