"""Keys of groups that are rounded to fractions are by their value: no row falls beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from jostle.source import Source
from jostle.tools.session import Session

KEYS: dict[str, Callable[[Any], Any]] = {
    "floor(score * 10) / 10": lambda x: np.floor(x * 10) / 10,
    "floor(score / 0.1) * 0.1": lambda x: np.floor(x / 0.1) * 0.1,
    "ceil(score * 3) / 3": lambda x: np.ceil(x * 3) / 3,
    "1 - floor(score * 7) / 7": lambda x: 1 - np.floor(x * 7) / 7,
    "round(score, 1)": lambda x: np.rint(x * 10.0) / 10.0,
    "round(score, 2)": lambda x: np.rint(x * 100.0) / 100.0,
    "0.5 if score > 0.4 else 1.5": lambda x: np.where(x > 0.4, 0.5, 1.5),
    "floor(score)": np.floor,
    "score / 0.4": lambda x: np.floor(x / 0.4),
}
DECLARED = "private t = table({}) described by {{score: 0.0..1.0}} protecting rows budget epsilon 1e9\n"


@pytest.mark.parametrize("key", KEYS)
def test_no_row_falls_beside_its_group(key: str, tmp_path: Path) -> None:
    """Of numbers beside the bounds between groups, as NumPy groups them."""
    edges = np.arange(101) / 100
    score = np.concatenate([edges, np.nextafter(edges, 2), np.nextafter(edges, -1)]).clip(0, 1)
    pd.DataFrame({"score": score}).to_parquet(tmp_path / "t.parquet")
    query = f"g = {{{{ select count(*) as n from t groupby {key} as k with epsilon 1e7 }}}}\n"
    text = DECLARED.format('"t.parquet"') + query + "release k = g.k\nrelease n = g.n\n"
    released = Session(cwd=tmp_path).run_text(text).released
    values, counts = np.unique(KEYS[key](score), return_counts=True)
    seen = {k: round(n) for k, n in zip(released["k"], released["n"], strict=True) if round(n)}
    assert seen == dict(zip(values.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize("digits", ["1e999 - 1e999", "1e999", "0.5", "16", "none", '"1"', "score"])
def test_digits_that_are_no_small_whole_number_are_refused(digits: str, tmp_path: Path) -> None:
    pd.DataFrame({"score": [0.5]}).to_parquet(tmp_path / "t.parquet")
    text = DECLARED.format('"t.parquet"') + f"n = {{{{ select avg(round(score, {digits})) from t with epsilon 1 }}}}\n"
    session = Session(cwd=tmp_path)
    (one,) = session.attempt(Source("text", text)).diagnostics
    spent = [budget["epsilon"]["spent"] for budget in session.budget().values()]
    assert one.kind == "ValueError" and set(spent) <= {"0"}
