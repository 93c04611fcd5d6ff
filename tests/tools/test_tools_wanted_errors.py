"""What a wanted error takes is known before anything runs, where it depends on nothing that is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.source import Source
from jostle.tools.session import Session

HEAD = 'private t = table("t.csv") described by {v: 0..9, c: {"a", "b"}} protecting rows budget epsilon 1\n'
BLOCK = """jointly with error e:
    n = {{ select count(*) from u }}
    g = {{ select count(*) as n from u groupby c }}
"""


def known(tmp_path: Path, before: str) -> bool:
    """Whether the cost is known, and is what a run spends."""
    (tmp_path / "t.csv").write_text("v,c\n1,a\n2,b\n", encoding="utf-8")
    source = Source(str(tmp_path / "p.jst"), HEAD + before + BLOCK)
    session = Session(cwd=tmp_path)
    (cost,) = session.costs(source)
    result = session.attempt(source)
    assert result.ok, result.diagnostics
    if cost.exact:
        assert float(result.budget["t"]["epsilon"]["spent"]) == pytest.approx(cost.bound / 1e12, rel=1e-12)
    return cost.exact


@pytest.mark.parametrize("before", [
    "e = 25\nu = derive(where(t, v > 2), w = v + 1)\n",
    "def wide(x) = 2 * x\ndef old(t) { return where(t, v > 2) }\nparam k = 10\ne = wide(k)\nu = old(t)\n",
])  # fmt: skip
def test_it_is_known_of_what_is_public(tmp_path: Path, before: str) -> None:
    assert known(tmp_path, before)


@pytest.mark.parametrize("before", [
    "u = t\nm = {{ select count(*) from t with epsilon 0.1 }}\ne = 20 + clamp(m, 1, 2)\n",
    "u = t\ndef f(t) { return {{ select count(*) from t with epsilon 0.1 }} }\ne = 20 + clamp(f(t), 1, 2)\n",
    "u = t\njointly with error 90:\n    m = {{ select count(*) from u }}\ne = 20 + clamp(m, 1, 2)\n",
])  # fmt: skip
def test_it_is_not_known_of_what_was_measured(tmp_path: Path, before: str) -> None:
    assert not known(tmp_path, before)


@pytest.mark.parametrize(("select", "exact"), [
    ("n = {{ select count(*) from t where v > 2 with error 90 }}\n", True),
    ("release n = {{ select count(*) as n from t groupby c with error 90 }}\n", True),
    ("print({{ select sum(v) from t where v > 2 with error 900 }})\n", True),
    ("x = [{{ select count(*) from t with epsilon 0.2 }}, {{ select sum(v) from t with error 900 }}]\n", True),
    ("m = {{ select count(*) from t with epsilon 0.2 }}\nk = {{ select sum(v) from t with error 90+abs(m) }}\n", False),
])  # fmt: skip
def test_it_is_known_of_a_select(tmp_path: Path, select: str, exact: bool) -> None:
    assert known(tmp_path, select + "u = t\ne = 30\n") == exact


def test_a_block_that_no_budget_pays_for_is_refused_before_the_run(tmp_path: Path) -> None:
    (fault,) = Session(cwd=tmp_path).check(Source(str(tmp_path / "p.jst"), HEAD + "u = t\ne = 2\n" + BLOCK))
    assert fault.kind == "BudgetExceeded" and "at least epsilon" in fault.message


def test_a_select_that_no_block_answers_is_refused_before_the_run(tmp_path: Path) -> None:
    block = "jointly with error 30:\n    a = {{ select avg(v) from t }}\n"
    before = "m = {{ select count(*) from t with epsilon 0.1 }}\n"
    session = Session(cwd=tmp_path)
    (fault,) = session.check(Source(str(tmp_path / "p.jst"), HEAD + before + block))
    assert fault.kind == "TypeError" and "depends on the rows" in fault.message
    (tmp_path / "t.csv").write_text("v,c\n1,a\n2,b\n", encoding="utf-8")
    result = session.attempt(Source(str(tmp_path / "p.jst"), HEAD + before + block))
    assert not result.ok and "measure" not in {event.kind for event in session.events}
