"""Columns of true and false: how cells of files and frames are read, and what a program can do with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.language.facts import MISSING_WORDS
from jostle.source import Source
from jostle.tools import datacheck
from jostle.tools.session import Session

TRUE = ["true", "True", "TRUE", "t", "T", "yes", "y", "1", " true ", "1.0"]
FALSE = ["false", "FALSE", "f", "no", "N", "0", "-0", "0.0"]
NONE = ["", "truth", "2", "on", "nan", "none", "0.5", "-1", "10"]
PROGRAM = """
private t = table(path) described by {ok: {true, false}, n: 0..9} protecting rows budget epsilon 1e9
by = {{ select count(*) as n from t groupby ok with epsilon 1e7 }}
yes = {{ select count(*) from t where ok with epsilon 1e7 }}
same = {{ select count(*) from t where ok == true with epsilon 1e7 }}
no = {{ select count(*) from t where not ok with epsilon 1e7 }}
neither = {{ select count(*) from t where ok == none with epsilon 1e7 }}
part = {{ select count(*) from t[ok = false] with epsilon 1e7 }}
both = {{ select count(*) as n from t groupby ok, n > 3 as large with epsilon 1e7 }}
"""


def answers(data: Path | pd.DataFrame) -> dict[str, object]:
    session = Session()
    if isinstance(data, pd.DataFrame):
        session.bind("t", data)
    source = 'bound("t")' if isinstance(data, pd.DataFrame) else f'table("{data}")'
    session.execute(Source("p.jst", PROGRAM.replace("table(path)", source)))
    return dict(session.names())


def check(made: dict[str, object], yes: int, no: int, neither: int) -> None:
    by = made["by"]
    assert by.columns == {"ok": [False, True], "n": [no, yes]}  # type: ignore[attr-defined]
    assert (made["yes"], made["same"], made["no"], made["neither"], made["part"]) == (yes, yes, no, neither, no)
    assert made["both"].columns["ok"] == [False, False, True, True]  # type: ignore[attr-defined]


def test_texts_of_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ok,n\n" + "".join(f"{cell},1\n" for cell in [*TRUE, *FALSE, *NONE]))
    check(answers(path), len(TRUE), len(FALSE), len(NONE))
    lines = datacheck.report(path, "{ok: {true, false}}").splitlines()
    many = len(TRUE) + len(FALSE) + len(NONE)
    words = sum(cell in ("", *MISSING_WORDS) for cell in NONE)
    shares = [f"{count} ({100 * count / many:.1f} %)" for count in (words, len(NONE) - words)]
    assert lines[2:4] == ["ok: {true, false}", "  empty " + ", unreadable ".join(shares)]


@pytest.mark.parametrize("cells", [
    pa.array([True, None, False, True]), pa.array([1, None, 0, 1]), pa.array([1.0, 2.0, 0.0, 1.0]),
    pa.array(["yes", None, "no", "TRUE"]), pa.array([1, 7, 0, 1], pa.uint8()),
])  # fmt: skip
def test_columns_of_parquet(cells: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"ok": cells, "n": [1, 2, 3, 4]}), tmp_path / "a.parquet")
    check(answers(tmp_path / "a.parquet"), 2, 1, 1)


@pytest.mark.parametrize("cells", [
    pd.Series([True, True, False, None]), pd.Series([True, True, False, None], dtype="boolean"),
    pd.Series([1, 1, 0, 5]),
])  # fmt: skip
def test_columns_of_frames(cells: pd.Series) -> None:
    check(answers(pd.DataFrame({"ok": cells, "n": 1})), 2, 1, 1)


def test_a_frame_of_truths() -> None:
    check(answers(pd.DataFrame({"ok": [True, False], "n": 1})), 1, 1, 0)


def test_example_histograms_and_modes() -> None:
    session = Session(simulate=1)
    text = (
        PROGRAM.replace("path", '"a.csv"')
        + """
h = laplace(histogram(t, ok)) with epsilon 1e7
most = {{ select mode(ok) from t[ok = true] with epsilon 1e7 }}
share = {{ select avg(yes) from derive(t, yes = ok) with epsilon 1e7 }}
"""
    )
    session.execute(Source("p.jst", text))
    names = session.names()
    assert names["yes"] + names["no"] == 1000 and list(names["h"]) == [names["no"], names["yes"]]
    assert names["most"] is True and abs(names["share"] - names["yes"] / 1000) < 1e-3


@pytest.mark.parametrize("domain", ["{true}", '{true, "no"}', "{false, 1}"])
def test_other_sets_are_no_domain(domain: str) -> None:
    text = f'private t = table("a.csv") described by {{ok: {domain}}} protecting rows budget epsilon 1\n'
    made = Session(simulate=1).attempt(Source("p.jst", text), {})
    assert [d.kind for d in made.diagnostics] == ["DataError"] and "{true, false}" in made.diagnostics[0].help


def test_a_join_with_a_public_table_on_dates(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("day,n\n2024-03-01,1\n2024-03-02,2\n2025-01-01,2\n")
    (tmp_path / "u.csv").write_text("day,off\n2024-03-01,yes\n2024-03-02,no\n2024-03-03,yes\n")
    text = f"""
private t = table("{tmp_path}/t.csv") described by {{day: date, n: 0..9}} protecting rows budget epsilon 1e9
public = table("{tmp_path}/u.csv") described by {{day: date, off: {{true, false}}}}
by = {{{{ select count(*) as n from t join public on day groupby off with epsilon 1e7 }}}}
"""
    session = Session()
    session.execute(Source("p.jst", text))
    names = session.names()
    assert names["by"].columns["n"] == [1, 1]


DERIVED = """
private t = table(path) described by {n: 0..9, c: {"x", "y"}} protecting rows budget epsilon 1e9
made = derive(t, high = n > 4, near = c == "x")
by = {{ select count(*) as n, avg(high) as share from made groupby near with epsilon 1e7 }}
all = {{ select sum(high) as s, avg(high) as a, var(high) as v, covariance(high, near) as c, count(high) as n from made
         with epsilon 1e8 }}
kept = {{ select count(*) from made where high and not near with epsilon 1e7 }}
parts = [[key, {{ select count(*) from part with epsilon 1e7 }}] for key, part in partition(made, high)]
listed = {{ select count(*) as n from made groupby (near, high) over [(true, false)] with epsilon 1e7 }}
each = {{ select sum(share) from (select avg(high) as share from made per c) with epsilon 1e7 }}
facts = [[c.name, c.kind, c.categories, len(c)] for c in columns(made) if c.name == "high"]
cells = laplace(histogram(made, high, near)) with epsilon 1e7
"""


def test_derived_columns(tmp_path: Path) -> None:
    """Against plain Python, with cells that are missing: what is neither true nor false is in no group and no sum."""
    rows = [(n, c) for n in ("", "0", "3", "5", "9", "9") for c in ("x", "x", "y", "")]
    (tmp_path / "a.csv").write_text("n,c\n" + "".join(f"{n},{c}\n" for n, c in rows))
    session = Session()
    session.execute(Source("p.jst", DERIVED.replace("path", f'"{tmp_path}/a.csv"')))
    names = session.names()
    truths = [(int(n) > 4 if n else None, c == "x" if c else None) for n, c in rows]
    both = [(high, near) for high, near in truths if high is not None and near is not None]
    known = [high for high, _ in truths if high is not None]
    by = names["by"].columns
    assert by["near"] == [False, True] and by["n"] == [[near for _, near in truths].count(k) for k in (False, True)]
    shares = [np.mean([high for high, near in both if near is k]) for k in (False, True)]
    assert by["share"] == pytest.approx(shares, abs=1e-4)
    assert names["all"] == pytest.approx({
        "s": sum(known), "a": np.mean(known), "v": np.var(known, ddof=1), "c": np.cov(np.array(both, float).T)[0, 1],
        "n": len(known)}, abs=1e-4)  # fmt: skip
    assert names["kept"] == both.count((True, False))
    assert names["parts"] == [[k, known.count(k)] for k in (False, True)]
    assert names["listed"].columns == {"near": [True], "high": [False], "n": [both.count((False, True))]}
    assert names["each"] == pytest.approx(sum(by["share"]), abs=1e-4)
    assert names["facts"] == [["high", "listed", [False, True], 2]]
    assert np.array(names["cells"]).tolist() == [[both.count((h, n)) for n in (False, True)] for h in (False, True)]


def test_truths_are_no_numbers(tmp_path: Path) -> None:
    text = "t = table([{n: 1}, {n: 7}])\nmade = derive(t, high = n > 4)\n"
    queries = {
        "count(*) from made where high == 1": "`c` alone",
        "sum(high + 1) from made": "`1 if c else 0`",
        "median(high) from made": "`median(1 if high else 0)`",
    }
    for query, help in queries.items():
        made = Session().attempt(Source("p.jst", f"{text}x = {{{{ select {query} }}}}"), {})
        assert [d.kind for d in made.diagnostics] == ["TypeError"] and help in made.diagnostics[0].help


CLASSIFIED = """
use trees
use classifiers
private t = table("a.csv") described by {n: 0..9, ok: {true, false}} protecting rows budget epsilon 1e6
made = derive(t, high = n > 4)
with epsilon 1000: bayes = naive_bayes(pick(made, ok, high), "high")
with epsilon 1000: tree = t_plus(pick(made, ok, high), "high")
right = [(laplace(correct_count(made, model, "high")) with epsilon 1000) for model in [bayes, tree]]
said = [model.predict({ok: truth}) for model in [bayes, tree] for truth in [true, false]]
shown = str(tree)
rows = {{ select count(*) from made where high == ok with epsilon 1000 }}
"""


def test_classes_and_attributes_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class is true or false, as it is in the table."""
    (tmp_path / "a.csv").write_text("n,ok\n" + "7,yes\n" * 40 + "2,no\n" * 30 + "8,no\n" * 5)
    monkeypatch.chdir(tmp_path)
    session = Session()
    session.execute(Source("p.jst", CLASSIFIED))
    names = session.names()
    assert names["said"] == [True, False] * 2 and names["right"] == [names["rows"]] * 2 == [70, 70]
    assert "true: true" in names["shown"]
