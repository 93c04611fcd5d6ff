"""Looks: cells that do not fit are said, within the amount that a program gives, and mark what rests on them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jostle.formulas import cuts_of
from jostle.source import Source
from jostle.tools.entry import main
from jostle.tools.result import Result
from jostle.tools.session import Session

ROWS = 3000


def written(cells: list[str], name: str = "x") -> None:
    Path("t.csv").write_text(f"{name},id\n" + "".join(f"{cell},p{k // 2}\n" for k, cell in enumerate(cells)))


def of(domain: str, query: str, protecting: str = "rows", budget: str = "epsilon 9", amount: str = "epsilon 3") -> str:
    return (
        f'private t = table("t.csv")\n    described by {{x: {domain}, id: text}}\n    protecting {protecting}\n'
        f"    budget {budget}\nrelease a = {{{{ {query} with {amount} }}}}\n"
    )


def ran(text: str, **keywords: object) -> Result:
    session = Session(**({"look": True} | keywords))  # type: ignore[arg-type]
    result = session.attempt(Source("p.jst", text))
    assert result.ok, result.diagnostics
    return result


def looks(result: Result) -> list[str]:
    return [event.name for event in result.events if event.kind == "query" and "look" in event.fields]


def charges(result: Result) -> list[tuple[str, float, float]]:
    return [
        (e.name, e.fields.get("epsilon", e.fields.get("rho")), e.fields["scale"])
        for e in result.events if e.kind == "measure"
    ]  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


DATES = "2000-01-01..2020-12-31"
MISFITS = [
    ("share as integers", "0..3", "0.{k:02}1", "select avg(x) from t", "fractions"),
    ("German dates", "date", "31.12.20{k:02}", "select count(*) from t where x > 2010-05-01", "no date"),
    ("German dates of a range", DATES, "31.12.20{k:02}", "select avg(year(x)) from t", "no date"),
    ("decimal commas", "0.0..99.0", '"{k},5"', "select avg(x) from t", "no number"),
    ("percent for share", "0.0..1.0", "{k}.5", "select avg(x) from t", "outside"),
    ("a category with a blank", '{{"yes", "no"}}', "yes ", "select count(*) from t groupby x", "not among"),
    ("a category in other case", '{{"yes", "no"}}', "Yes", 'select count(*) from t where x == "yes"', "not among"),
    ("numbers that are not listed", "{{1, 2}}", "{k}.25", "select avg(x) from t", "not among"),
    ("an open integer", "integer", "{k}.25", "select count(*) from t where x > 3", "fractions"),
    ("times", "time", "12:30 31.12.20{k:02}", "select count(*) from t where hour(x) > 3", "no time"),
]  # fmt: skip


@pytest.mark.parametrize("protecting", ["rows", "id up to 2 rows"])
@pytest.mark.parametrize(("domain", "cell", "query", "says"), [m[1:] for m in MISFITS], ids=[m[0] for m in MISFITS])
def test_a_misfit_is_warned_of_and_marks_every_answer(
    domain: str, cell: str, query: str, says: str, protecting: str
) -> None:
    written([cell.format(k=k % 97 + 2 if "20{k" not in cell else k % 97) for k in range(ROWS)])
    result = ran(of(domain.format(), query, protecting))
    unfit = [w for w in result.warnings if w.kind == "unfit-cells"]
    assert len(unfit) == 1 and says in unfit[0].message and unfit[0].span is not None and unfit[0].span.line == 2
    assert any("`x`" in cut for cut in cuts_of(*_numbers(result.values["a"])))
    assert all("*" in Session().show(number) for number in _numbers(result.values["a"]))
    assert result.budget["t"]["epsilon"]["spent"] == "3"
    plain = ran(of(domain.format(), query, protecting), look=False)
    assert looks(plain) == [] and "unfit-cells" not in {w.kind for w in plain.warnings}


FITTING = [
    ("0..99", "{k}", "select avg(x) from t"),
    ("0.0..99.0", "{k}.5", "select avg(x) from t"),
    ("0.0..99.0", "", "select avg(x) from t"),
    (DATES, "2015-01-{d:02}", "select avg(year(x)) from t"),
    ("date", "2015-01-{d:02}", "select count(*) from t where x > 2010-05-01"),
    ('{{"yes", "no"}}', "yes", "select count(*) from t groupby x"),
    ("{{1, 2}}", "1.0", "select avg(x) from t"),
]


@pytest.mark.parametrize(("domain", "cell", "query"), FITTING)
def test_what_fits_is_neither_warned_of_nor_marked(domain: str, cell: str, query: str) -> None:
    written([cell.format(k=k % 97, d=k % 28 + 1) for k in range(ROWS)])
    result = ran(of(domain.format(), query))
    assert looks(result) == ["look at x"]
    assert "unfit-cells" not in {w.kind for w in result.warnings}
    assert not any("`x`" in cut for cut in cuts_of(*_numbers(result.values["a"])))


def _numbers(value: object) -> list[object]:
    from jostle.run.values import Grouped

    return [*list(value.columns.values())[-1]] if isinstance(value, Grouped) else [value]


@pytest.mark.parametrize(("budget", "amount", "unit"), [
    ("epsilon 9", "epsilon 3", "epsilon"),
    ("epsilon 9, delta 1e-5", "epsilon 3 delta 1e-6", "epsilon"),
    ("rho 9", "rho 3", "rho"),
    ("epsilon 9", "1/3", "epsilon"),
])  # fmt: skip
@pytest.mark.parametrize(("protecting", "stability"), [("rows", 1), ("id up to 2 rows", 2)])
def test_a_look_is_a_fiftieth_of_the_amount_and_the_first_select_of_a_column_pays_it(
    budget: str, amount: str, unit: str, protecting: str, stability: int
) -> None:
    written(["1"] * 50)
    text = of("0..99", "select count(*) from t where x > 5", protecting, budget, amount)
    text += f"release b = {{{{ select sum(x) from t with {amount} }}}}\n"
    result = ran(text)
    (_, look, scale), (_, first, _), (_, second, _) = charges(result)
    assert (look, first, second) == pytest.approx((0.06, 2.94, 3))
    if "delta" not in budget:  # which are added up by advanced composition
        assert result.budget["t"][unit]["spent"] == "6"
    if unit == "epsilon":
        assert scale == pytest.approx(stability / look)


def test_two_columns_share_a_look() -> None:
    written(["1"] * 50)
    text = of("0..99", "select avg(x) from t where y == 0").replace("id: text", "y: 0..1, id: text")
    Path("t.csv").write_text("x,y,id\n" + "1,0,a\n" * 50)
    result = ran(text)
    assert looks(result) == ["look at x", "look at y"]
    assert [e for _, e, _ in charges(result)][:2] == pytest.approx([0.03, 0.03])
    assert result.budget["t"]["epsilon"]["spent"] == "3"


def test_charges_follow_from_public_facts_alone() -> None:
    prices = []
    for cells in (["31.12.2014"] * ROWS, ["5"] * 10, []):
        written(cells)
        prices.append(charges(ran(of("0..99", 'select avg(x) from t where id == "a"'))))
    assert prices[0] == prices[1] == prices[2]


HEAD = of("0..99", "select count(*) from t where x > 5").partition("release")[0]


@pytest.mark.parametrize("body", [
    "p = partition(t, x, over = [1, 2])\nrelease a = [{{ select sum(x) from q with epsilon 1 }} for k, q in p]\n",
    "jointly with epsilon 1 {\n    a = {{ select count(*) from t groupby x }}\n}\n",
    "release a = {{ select sum(x) from t with error 500 }}\n",
    "a = laplace(histogram(t, x)) with epsilon 1\n",
    "u = limited(t, 1)\nrelease a = {{ select sum(x) from u with epsilon 1 }}\n",
    "release a = {{ select count(*) from t with epsilon 1 }}\n",
    'release a = {{ select count(*) from t where id == "a" with epsilon 1 }}\n',
    "release a = {{ select sum(x) from t with epsilon 1e-11 }}\n",
    "v = table(\"u.csv\") described by {x: 0..99}\n"
    "release a = {{ select count(*) from t join v on x up to 1 with epsilon 1 }}\n",
])  # fmt: skip
def test_other_forms_are_not_looked_at_and_pay_what_they_paid(body: str) -> None:
    written(["1"] * 50)
    Path("u.csv").write_text("x\n1\n")
    with_looks, without = ran(HEAD + body), ran(HEAD + body, look=False)
    assert looks(with_looks) == [] and charges(with_looks) == charges(without)


def test_simulations_and_registered_datasets_are_not_looked_at() -> None:
    written(["1.5"] * ROWS)
    assert looks(ran(of("0..99", "select avg(x) from t"), simulate=1)) == []
    words = ["data", "register", "t", "t.csv", "--schema", "{x: 0..99}", "--protecting", "rows"]
    assert main([*words, "--budget", "epsilon 9", "--ledger", "ledger.db"]) == 0
    text = 'private t = dataset("t")\nrelease a = {{ select avg(x) from t with epsilon 3 }}\n'
    assert looks(ran(text, ledger="ledger.db")) == []


def test_files_of_all_kinds_are_looked_at_alike() -> None:
    import pandas as pd

    frame = pd.DataFrame({"x": [0.5, 7.0, 1000.0, None] * 750, "id": "a"})
    frame.to_parquet("t.parquet")
    frame.to_csv("t.csv", index=False)
    text = of("0..99", "select sum(x) from t", budget="epsilon 90", amount="epsilon 90")
    found = []
    for source in ('table("t.csv")', 'table("t.parquet")', 'bound("frame")'):
        session = Session(look=True)
        session.bind("frame", frame)
        result = session.attempt(Source("p.jst", text.replace('table("t.csv")', source)))
        assert result.ok, result.diagnostics
        found.append([w.message for w in result.warnings if w.kind == "unfit-cells"])
    assert found[0] == found[1] == found[2] and len(found[0]) == 2
    assert "33 % ± 1" in found[0][0] and "33 % ± 1" in found[0][1]


def test_the_command_looks_and_no_look_switches_it_off(capsys: pytest.CaptureFixture[str]) -> None:
    written([f"31.12.20{k % 97:02}" for k in range(ROWS)])
    Path("p.jst").write_text(of("date", "select count(*) from t where x > 2010-05-01"))
    assert main(["run", "p.jst", "--trace", "run.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"warning \(unfit-cells\): `x`: \d+ % ± \d+ of its cells are no date", err)
    assert "*: ± covers the noise only, not the cells of `x`" in out
    assert main(["trace", "run.jsonl"]) == 0 and "look at x" in capsys.readouterr().out
    assert main(["run", "p.jst", "--no-look"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "*" not in out
