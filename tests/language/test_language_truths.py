"""Columns of true and false: how cells of files and frames are read, and what a program can do with them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
    shares = [f"{count} ({100 * count / many:.1f} %)" for count in (1, len(NONE) - 1)]
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


def test_simulated_histograms_and_modes() -> None:
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
