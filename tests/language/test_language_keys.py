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


STEPPED = [key for key in KEYS if "floor(score)" not in key and key != "score / 0.4"]
COUNTED = {
    "listed": "select count(*) as n from t groupby {key} as k over keys",
    "parts": "",
    "in a table of persons": "select sum(rows) as n from "
    "(select count(*) as rows from t per person groupby {key} as k) groupby k over keys",
    "listed in a table of persons": "select sum(rows) as n from "
    "(select count(*) as rows from t per person groupby {key} as k over keys) groupby k",
    "persons": "select count(distinct person) as n from t groupby {key} as k over keys up to 9 groups",
    "after a limit": "select count(*) as n from derive(t, k = {key}) groupby k over keys up to 9 groups, 9 rows each",
    "joined": "select count(*) as n from derive(t, k = {key}) join u on one groupby k",
    "together": "select count(*) as n from derive(t, k = {key}) groupby (k, one) over [[k, 1] for k in keys]",
}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("way", COUNTED)
@pytest.mark.parametrize("key", STEPPED)
def test_listed_keys_and_those_of_persons_are_by_value(key: str, way: str, whole: bool, tmp_path: Path) -> None:
    """Each row is of a person of its own, so that rows and persons are as many; whole keys are some of the steps."""
    score = np.random.default_rng(5).uniform(0, 1, 400).round(3)
    frame = pd.DataFrame({"score": score, "who": [f"p{i}" for i in range(400)], "one": 1})
    frame.to_parquet(tmp_path / "t.parquet")
    values, counts = np.unique(KEYS[key](score), return_counts=True)
    asked = [0.0, 1.0] if whole and way != "joined" and "of persons" not in way[:12] else values.tolist()
    declared = DECLARED.format('"t.parquet"').replace("score:", "one: {1}, score:").replace("rows", "who up to 1 row")
    text = f"{declared}keys = {asked}\nu = table([{{one: 1}}])\n"
    if way == "parts":
        text += f"parts = partition(t, {key}, over = keys)\nrelease k = [part[0] for part in parts]\n"
        text += "release n = [{{ select count(*) from part[1] with epsilon 1e7 }} for part in parts]\n"
    else:
        text += f"g = {{{{ {COUNTED[way].format(key=key)} with epsilon 1e7 }}}}\nrelease k = g.k\nrelease n = g.n\n"
    released = Session(cwd=tmp_path).run_text(text).released
    seen = {k: round(n) for k, n in zip(released["k"], released["n"], strict=True) if round(n)}
    assert seen == {k: n for k, n in zip(values.tolist(), counts.tolist(), strict=True) if k in asked}


@pytest.mark.parametrize("digits", ["1e999 - 1e999", "1e999", "0.5", "16", "none", '"1"', "score"])
def test_digits_that_are_no_small_whole_number_are_refused(digits: str, tmp_path: Path) -> None:
    pd.DataFrame({"score": [0.5]}).to_parquet(tmp_path / "t.parquet")
    text = DECLARED.format('"t.parquet"') + f"n = {{{{ select avg(round(score, {digits})) from t with epsilon 1 }}}}\n"
    session = Session(cwd=tmp_path)
    (one,) = session.attempt(Source("text", text)).diagnostics
    spent = [budget["epsilon"]["spent"] for budget in session.budget().values()]
    assert one.kind == "ValueError" and set(spent) <= {"0"}


def test_where_no_group_is_listed_or_shown_nothing_is_charged(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("score,one\n0.5,1\n")
    queries = (
        "select count(*) as n from t groupby score over []", "select median(score) as n from t groupby score over []",
        "select count(*) as n from t groupby (score, one) over []", "select sum(values) from h groupby x over []",
        "select count(*) as n from t groupby floor(score) as k limit 0",
    )  # fmt: skip
    text = DECLARED.format('"t.csv"').replace("1.0}", "1.0, one: 0..1}") + "h = histogram(t, x = one)\n"
    text += "".join(f"assert len({{{{ {query} with epsilon 1 }}}}) == 0\n" for query in queries)
    text += f"jointly with epsilon 1:\n    j = {{{{ {queries[0]} }}}}\n    n = {{{{ select count(*) from t }}}}\n"
    assert Session(cwd=tmp_path).run_text(text).budget["t"]["epsilon"]["spent"] == "1"


@pytest.mark.parametrize("key", ["50 * floor(age / 50)", "floor(age / 50) / 2", "floor(age / 50)"])
@pytest.mark.parametrize("where", ["", "where age > 20"])
def test_keys_in_steps_are_combined_with_open_ones(key: str, where: str, tmp_path: Path) -> None:
    """Nobody listed the steps, so that which combinations there are is measured, as of any keys."""
    rows = pd.DataFrame({"age": np.arange(400) % 100, "city": np.array(["A", "B"])[np.arange(400) // 7 % 2]})
    rows.to_csv(tmp_path / "t.csv", index=False)
    declared = 'private t = table("t.csv") described by {age: 0..99, city: text} protecting rows budget epsilon 1e4'
    query = f"select count(*) as n from t {where} groupby {key} as k, city with epsilon 1000 delta 1e-4"
    program = f"{declared}, delta 0.01\nrelease g = {{{{ {query} }}}}\n"
    columns = Session(cwd=tmp_path).run_text(program).released["g"]
    steps = {"50 * floor(age / 50)": 50, "floor(age / 50) / 2": 0.5}.get(key, 1)
    rows = rows[rows.age > 20] if where else rows
    counts = rows.groupby([rows.age // 50 * steps, rows.city]).size()
    assert [*zip(columns["k"], columns["city"], strict=True)] == counts.index.tolist()
    assert np.abs(columns["n"] - counts.to_numpy()).max() < 1


def test_what_is_listed_beside_an_open_key_is_said_to_be(tmp_path: Path) -> None:
    declared = 'private t = table("t.csv") described by {age: 0..99, city: text} protecting rows budget epsilon 9'
    (tmp_path / "t.csv").write_text("age,city\n1,A\n")
    query = "select count(*) as n from t groupby age over {1, 2}, city with epsilon 1 delta 1e-4"
    result = Session(cwd=tmp_path).attempt(Source("p.jst", f"{declared}, delta 0.01\nn = {{{{ {query} }}}}\n"))
    (refused,) = result.diagnostics
    assert refused.message == "the key `age` is listed and another is not: their combinations are not public"
