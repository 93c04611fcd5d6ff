"""Answers of every kind, dates and truths among them: `check` refuses what the run refuses of them after a payment."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.accounting.amounts import QUANTA
from jostle.check.costs import near_text
from jostle.source import Source
from jostle.tools.session import Session

BEFORE = (
    "use statistics\nuse linear_algebra\nuse selection\nuse row_vectors\nuse classifiers\nuse histograms\n"
    'private t = table("t.csv") described by {age: 0..99, sex: {"F", "M"}, w: 0.0..1.0, f: {true, false}, '
    "d: 2020-01-01..2024-12-31} protecting rows budget epsilon 300\n"
    "h = histogram(t, x = age)\nboth = histogram(t, x = age / 50, y = sex)\n"
    "day = {{ select avg(d) from t with epsilon 1 }}\noften = {{ select mode(d) from t with epsilon 1 }}\n"
    "truth = {{ select mode(f) from t with epsilon 1 }}\nmany = {{ select (count(*) > 3) from t with epsilon 1 }}\n"
    "ends = {{ select bounds(age) from t with epsilon 1 }}\nleast = {{ select min(age) from t with epsilon 1 }}\n"
    "several = {{ select count(*) as n, max(d) as last, round(avg(age)) as a from t with epsilon 1 }}\n"
    'years = {{ select count(*) as n, max(d) as last from t groupby trunc(d, "year") as y with epsilon 1 }}\n'
    "some = {{ select count(*) as n, max(d) as last from t groupby f having n > 0 with epsilon 1 }}\n"
    'ranked = largest([size(where(t, sex == "F")), size(t)], 1, leads = true) with epsilon 1\n'
    'places = largest([size(where(t, sex == "F")), size(t)], 1) with epsilon 1\n'
    'most = top_k(t, "sex", 1) with epsilon 1\ncells = laplace(both) with epsilon 1\n'
)
REFUSED = {
    "dates": (
        "day + 1 + day", "day < 1", "day.low", "day[0]", "sum(day)", "round(day)", "often + \"x\"", "hour(several)",
        "several.last * 2", "years.last + 1", "years[0].last + 1.5 + \"x\"", "[k.last * 2 for k in years]", "day * 2",
        "sorted(day)", "not day", "day(1)", "{{ select sum(last) from years }}", "years.y * 2", "max(years.last, 1)",
    ),
    "truths": (
        "years[years.n == 3]", "truth + 1", "truth < 1", "truth.low", "many * 2", "upper(many)",
        "[k.f + 1 for k in some]", "-truth",
    ),
    "bounds": ("ends.low.x", "ends.high + \"x\"", "error(ends)", "ends + 1", "ends.low[0]"),
    "leads": ("ranked.nn", "ranked + 1", "ranked[0]", "max(ranked)", "ranked.places.x", "hour(ranked)"),
    "errors": (
        "error(often)", "standard_error(day)", "band(day)", "error(truth)", "standard_error(least)", "band(least).low",
        "error(places)", "standard_error(years)", "standard_error(some)", "error(ranked.places)",
    ),
    "groups of which not all are shown": (
        "some + 1", "some.nn", "sum(some)", "hour(some)", "some.n.x", "[k.zz for k in some]",
        "error(some.last) + \"x\"",
        "histogram(some, a = n)", "hour(most)", "most + 1",
    ),
    "tables and containers": ("table(day)", "table(least)", "values(least)", "values(day)", "zip(day, [1])",
                              "record(years)", "keys(years)", "append(years, 1)", "append(several, 1)"),
    "matrices": ("transpose(least)", "det(years)", "inverse(several)", "solve(day, [1])", "dot(years, years)",
                 "transpose(places)", "matmul(least, least)", "eigen(several)"),
    "functions that measure": (
        "noisy_max(least) with epsilon 1", "exp_mech(several, [1, 2])", "above(t, least)", "left(several)",
        "spent(day)", "marginals(both, day)", "binned(t, \"age\", several)",
        "quantiles(t, \"age\", years) with epsilon 1",
        "{{ select count(*) as c from t groupby sex over day with epsilon 1 }}", "top_k(t, cells, 1) with epsilon 1",
        "bootstrap(several, dawa, prefixes(h), epsilon = 1, runs = 2)", "answer(prefixes(h), years)",
    ),
    "ranges and folds": ("day..5", "0..years", "max over k in day of k", "max over k in years of k.last",
                         "max over k in [1, 2] of several"),
    "the class of private scores": ("size(t) in [1, 2]",),
}  # fmt: skip
LINES = {
    "with epsilon several:\n    print(1)": "an amount of epsilon is a number",
    "for a, b in least:\n    print(a)": "cannot be walked through",
    "for a, b in years:\n    print(a)": "does not unpack into 2 names",
}
FINE = (
    "print(day + 1, day < 2024-01-01, year(day), days_between(day, often), error(day), str(often), [day, often][1])",
    "print(years[2020-01-01].n, years.last[0] + 1, max(years.last), sorted(years.last), [k.y for k in years])",
    "print(1 if truth else 2, truth and many, not many, truth == true, [k for k in some if k.f or k.n > 1])",
    "print(ends.low + 1, ends.high - ends.low, error(least), band(several.n).low, standard_error(several.a))",
    "print(ranked.places[0], ranked.leads[0], ranked.within, [1, 2][ranked.places[0]], places[0] + 1, error(years.n))",
    "print(some[0].n + 1, some.n[0], max(some.last), sum(some.n), {{ select sum(n) as s from some }}, table(years))",
    "print({{ select max(last) as m from years }}, {{ select count(*) as c from t where d > day with epsilon 1 }})",
    "print(transpose(cells), [k.n for k in most], most.n[0], argmax over k in years of k.n, (argmax over k in years "
    "of k.n).last, cells[0][1])",
    "print([i for i in 0..len(years)], record([[\"a\", day]]).a, zip(years, some)[0][1].n, set(places), "
    "values(several))",
)  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Session:
    rows = (f"{20 + k % 50},{'FM'[k % 2]},{k % 10 / 10},{'true' if k % 3 else 'false'},{2020 + k % 5}-03-1{k % 10}"
            for k in range(400))  # fmt: skip
    (tmp_path / "t.csv").write_text("age,sex,w,f,d\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return Session(cwd=tmp_path, look=False)


def program(text: str) -> Source:
    return Source("p.jst", BEFORE + text + "\n")


@pytest.mark.parametrize("cause", [*REFUSED, *LINES])
def test_what_answers_of_a_kind_do_not_have_is_refused_before_the_payment(
    cause: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"x = {it}" for it in REFUSED[cause]] if cause in REFUSED else [cause]
    first = BEFORE.count("\n") + 1
    faults = {fault.span.line - first: fault for fault in session.check(program("\n".join(lines))) if fault.span}
    assert [line for place, line in enumerate(lines) if place not in faults and "\n" not in line] == []
    assert all(LINES.get(cause, "") in fault.message for fault in faults.values()) and faults
    monkeypatch.setattr("jostle.tools.session.Session._check", lambda *_: [])
    monkeypatch.setattr("jostle.tools.session.Session._ahead", lambda *_: ([], {}, [], {}))
    late = Session(cwd=session._cwd, look=False)
    late.execute(Source("before", BEFORE))
    for place, line in enumerate(lines):
        with pytest.raises(Exception) as refused:  # the run says the same, after it has paid
            late.execute(Source("line", line + "\n"))
        assert getattr(refused.value, "first", None) is not None, line
        if "\n" not in line:
            assert refused.value.first.message == faults[place].message  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", FINE)
def test_what_answers_of_a_kind_have_passes(line: str, session: Session) -> None:
    assert [fault.message for fault in session.check(program(line))] == []
    assert [fault.message for fault in session.attempt(program(line)).diagnostics] == []


def test_numbers_of_rows_that_are_public_have_an_error_of_0(session: Session) -> None:
    text = BEFORE.replace("protecting rows", "protecting rows, public size by sex") + (
        "given = {{ select count(*) as n from t groupby sex }}\n"
        "jointly with epsilon 1:\n    n = {{ select count(*) as n from t groupby sex }}\n"
        "    a = {{ select sum(age) as a from t groupby sex }}\n"
        "assert error(n.n) == [0, 0] and error(given.n) == [0, 0] and error(a.a)[0] > 0\n"
    )
    assert session.attempt(text).diagnostics == ()


def test_a_line_end_in_a_key_keeps_the_line_of_a_table(session: Session) -> None:
    key = '("a\\nb" if sex == "F" else "c") as k over ["a\\nb", "c"]'
    result = session.attempt(
        BEFORE + f"x = {{{{ select count(*) as n from t groupby {key} with epsilon 1 }}}}\nprint(x)\nprint(x[0])\n"
    )
    table, row = result.output
    assert len(table.split("\n")) == 3 and table.split("\n")[1].startswith("a␊b ") and '"a\\nb"' in row


def test_three_thirds_of_an_amount_are_said_as_it_is_meant(session: Session) -> None:
    assert near_text(5 * QUANTA - 2) == "5" and near_text(1) == "0.000000000001"
    assert near_text(QUANTA // 3) == "0.333333333333"
    thirds = "".join(f"    a{i} = {{{{ select count(*) from t with 1/3 }}}}\n" for i in range(3))
    (cost,) = session.costs(Source("p.jst", BEFORE.split("h = ")[0] + "with epsilon 5:\n" + thirds))
    assert "exactly epsilon 5 of 300" in str(cost)
