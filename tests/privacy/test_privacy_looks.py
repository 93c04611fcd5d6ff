"""Looks: cells that do not fit are said, within the amount that a program gives, and mark what rests on them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from jostle.diagnostics import Refusal
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
    ("words for truth", "{{true, false}}", "ja", "select count(*) from t where x", "no true or false"),
    ("numbers of texts", "text", '"{k},5"', "select count(*) from t where number(x) > 3", "not read by it"),
    ("thin blanks between digits", "text", "1\u202f{k:03}",
     'select count(*) from t where number(replace(x, " ", "")) > 3', "not read by it"),
    ("dates of texts", "text", "31.12.20{k:02}", "select count(*) from t where date(x) > 2010-05-01", "not read by it"),
    ("words for what is missing", "0..3 never missing", "NA", "select count(*) from t groupby x",
     "missing, and count as 0"),
    ("missing cells", "0..3 never missing", "", "select count(*) from t groupby x", "missing, and count as 0"),
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
    assert (
        len(unfit) == 1
        and says in unfit[0].message
        and unfit[0].span is not None
        and unfit[0].span.line == (5 if "read by" in says else 2)
    )
    assert any("misfit" in cut for cut in cuts_of(*_numbers(result.values["a"])))
    assert all("± ?*" in Session().show(number) for number in _numbers(result.values["a"]))
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
    ("{{true, false}}", "Yes", "select count(*) from t where x"),
    ("text", "{k}.5", "select count(*) from t where number(x) > 3"),
    ("text", "1 {k:03}", 'select count(*) from t where number(replace(x, " ", "")) > 3'),
    ("text", "{k}", 'select count(*) from t where number(part(x, "/", 2)) > 3'),
    ("0..99", "NA", "select avg(x) from t"),
    (DATES, "-", "select avg(year(x)) from t"),
    ('{{"yes", "no"}}', "n/a", "select count(*) from t groupby x"),
    ("{{1, 2}}", "?", "select avg(x) from t"),
    ("{{true, false}}", "NULL", "select count(*) from t where x"),
    ("text", "k.A.", "select count(*) from t where number(x) > 3"),
    ("text", "{d:02}.01.2015", 'select count(*) from t where date(x, "%d.%m.%Y") > 2010-05-01'),
]


@pytest.mark.parametrize("test", [
    'coalesce(date(x), date(x, "%d.%m.%Y")) > 2010-05-01', "date(x) is missing", "x > \"2010\"",
])  # fmt: skip
def test_what_a_program_sees_to_itself_is_not_looked_at(test: str) -> None:
    written(["2015-01-01", "01.01.2015"] * 50)
    assert looks(ran(of("text", f"select count(*) from t where {test}"))) == []


@pytest.mark.parametrize(("domain", "cell", "query"), FITTING)
def test_what_fits_is_neither_warned_of_nor_marked(domain: str, cell: str, query: str) -> None:
    written([cell.format(k=k % 97, d=k % 28 + 1) for k in range(ROWS)])
    result = ran(of(domain.format(), query))
    assert len(looks(result)) == 1
    assert "unfit-cells" not in {w.kind for w in result.warnings}
    assert not any("misfit" in cut for cut in cuts_of(*_numbers(result.values["a"])))


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
    (_, first, _), (_, look, scale), (_, second, _) = charges(result)
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
    assert looks(result) == ["look at x, y"]
    assert [e for _, e, _ in charges(result)][-1] == pytest.approx(0.06)
    assert result.budget["t"]["epsilon"]["spent"] == "3"


def test_charges_follow_from_public_facts_alone() -> None:
    prices = []
    for cells in (["31.12.2014"] * ROWS, ["5"] * 10, []):
        written(cells)
        prices.append(charges(ran(of("0..99", 'select avg(x) from t where id == "a"'))))
    assert prices[0] == prices[1] == prices[2]


HEAD = of("0..99", "select count(*) from t where x > 5").partition("release")[0]
PARTS = "p = partition(t, x, over = [1, 2, 3])\n"
LINKED = """private u = table("u.csv")
    described by {y: 0..9, id: text}
    protecting t.id up to 2 rows
"""
FORMS = {
    "parts": PARTS + "release a = [{{ select sum(x) from q with epsilon 1 }} for k, q in p]\n",
    "jointly": "jointly with epsilon 1 {\n    a = {{ select count(*) from t groupby x }}\n}\nrelease a\n",
    "bare": "with epsilon 1 {\n    a = {{ select sum(x) from t }}\n}\nrelease a\n",
    "histogram": "release a = laplace(histogram(t, x)) with epsilon 1\n",
    "histograms": "release a = laplace([histogram(t, x), histogram(t, x)]) with epsilon 1\n",
    "library": "use histograms\nrelease a = dawa(histogram(t, x), prefixes(histogram(t, x))) with epsilon 1\n",
    "vectors": "release a = noisy_moments(vectors(t, x)).count with epsilon 1\n",
    "score": "release a = laplace(sum_of(t, x)) with epsilon 1\n",
    "selection": "h = histogram(t, x)\nrelease a = noisy_max([size(where(t, x > 3)), size(t)]) with epsilon 1\n",
    "refined": "r = refinable(sum_of(t, x))\nrelease a = refine(r) with epsilon 1\n",
    "watch": "w = above_threshold(sum_of(t, x), 5) with epsilon 1\nrelease a = above(sum_of(t, x), w)\n",
    "agent": "u = limited(t, 1)\nrelease a = {{ select sum(x) from u with epsilon 1 }}\n",
    "public join": 'v = table("u.csv") described by {x: 0..99}\n'
    "release a = {{ select count(*) from t join v on x up to 1 with epsilon 1 }}\n",
    "stage": "p = {{ select sum(x) as s from t per id, x }}\nrelease a = {{ select count(*) from p with epsilon 1 }}\n",
    "union": "release a = {{ select sum(x) from union(t, t) with epsilon 1 }}\n",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("protecting", ["rows", "id up to 2 rows"])
def test_every_form_looks_and_spends_what_is_written(
    form: str, protecting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jostle.run.misfits.CERTAIN", 8)  # noise alone is three errors once in 8,000 times
    if form == "stage" and protecting == "rows":
        pytest.skip("rows have no persons to group by")
    Path("t.csv").write_text("x,id\n" + "".join(f"{k % 3 + 1},p{k}\n" for k in range(60)))
    Path("u.csv").write_text("x\n1\n")
    text = HEAD.replace("protecting rows", f"protecting {protecting}") + FORMS[form]
    with_looks, without = ran(text), ran(text, look=False)
    assert looks(with_looks) == ["look at x"]
    assert with_looks.budget == without.budget == {"t": {"epsilon": {"total": "9", "spent": "1"}}}
    (look,) = (e.fields["epsilon"] for e in with_looks.events if "look" in e.fields)
    assert look == 0.02  # of the first charge, or of the amount of the call
    assert "unfit-cells" not in {w.kind for w in with_looks.warnings}


@pytest.mark.parametrize("amounts", ["[1, 1, 1]", "[1, 0.1, 0.1]", "[0.1, 1, 0.5]", "[0.3, 0.1, 1]"])
def test_looks_at_parts_cost_no_more_than_the_most_expensive_part(amounts: str) -> None:
    written(["1"] * 50)
    body = PARTS + (
        f"e = {amounts}\nfor k, q in p {{\n    a = {{{{ select sum(x) from q with epsilon e[k - 1] }}}}\n"
        f"    b = {{{{ select sum(x) from q with epsilon e[k - 1] * 2 }}}}\n}}\n"
        "c = {{ select sum(x) from t with epsilon 1 }}\n"
    )
    with_looks, without = ran(HEAD + body), ran(HEAD + body, look=False)
    assert set(looks(with_looks)) == {"look at x"}  # again at a charge of four times the amount
    spent = [float(one.budget["t"]["epsilon"]["spent"]) for one in (with_looks, without)]
    assert spent[1] - 0.021 <= spent[0] <= spent[1] == 4


@pytest.mark.parametrize("columns", [("x", "x", "x"), ("x", "y", "x"), ("x", "y", "z")])
def test_parts_may_take_the_whole_budget(columns: tuple[str, ...]) -> None:
    Path("t.csv").write_text("k,x,y,z\n" + "".join(f"{k % 3 + 1},1,2,3\n" for k in range(60)))
    text = 'private t = table("t.csv") described by {k: {1, 2, 3}, x: 0..9, y: 0..9, z: 0..9}\n'
    text += "    protecting rows\n    budget epsilon 1\np = partition(t, k)\n"
    text += "parts = [q for k, q in p]\n"
    for place, column in enumerate(columns):
        text += f"q{place} = parts[{place}]\na = {{{{ select sum({column}) from q{place} with epsilon 0.5 }}}}\n"
    text += "".join(f"b = {{{{ select sum(y) from q{k} with epsilon 0.5 }}}}\n" for k in range(3))
    result = ran(text)
    assert result.budget["t"]["epsilon"]["spent"] == "1"
    assert looks(result)[:1] == ["look at k, x"]


@pytest.mark.parametrize(("unit", "amounts", "many"), [
    ("epsilon", (0.01, 0.039, 0.04), 2), ("epsilon", (1, 1, 3.9), 1), ("rho", (0.01, 0.15, 0.16), 2),
])  # fmt: skip
def test_a_much_larger_charge_looks_again(unit: str, amounts: tuple[float, ...], many: int) -> None:
    written(["1"] * 50)
    body = "".join(f"a = {{{{ select sum(x) from t with {unit} {amount} }}}}\n" for amount in amounts)
    result = ran(HEAD.replace("epsilon", unit) + body)
    assert looks(result) == ["look at x"] * many
    assert float(result.budget["t"][unit]["spent"]) == pytest.approx(sum(amounts), abs=1e-9)


def test_what_a_small_charge_did_not_see_a_larger_one_does() -> None:
    written(["many"] * 4000)
    body = "a = {{ select sum(x) from t with epsilon 0.01 }}\n"
    assert not ran(HEAD + body).warnings
    result = ran(HEAD + body + "b = {{ select sum(x) from t with epsilon 4 }}\n" * 2)
    assert [w.kind for w in result.warnings] == ["unfit-cells"]


def test_another_partition_owes_nothing() -> None:
    written(["1"] * 50)
    loop = "for k, q in partition(t, x{}, over = [0, 1]) {{ a = {{{{ select sum(x) from q with epsilon 0.5 }}}} }}\n"
    result = ran(HEAD + loop.format("") + loop.format(" / 2") + loop.format(" / 2"))
    assert looks(result) == ["look at x"] and result.budget["t"]["epsilon"]["spent"] == "1.5"


def test_two_tables_of_the_same_persons_share_a_fiftieth() -> None:
    Path("t.csv").write_text("x,id\n" + "".join(f"{k % 5},p{k}\n" for k in range(2000)))
    Path("u.csv").write_text("y,id\n" + "".join(f"{k % 5 + 50},p{k}\n" for k in range(2000)))
    text = HEAD.replace("protecting rows", "protecting id up to 2 rows") + LINKED
    result = ran(text + "release a = {{ select sum(y) from t join u on person where x > 2 with epsilon 3 }}\n")
    assert looks(result) == ["look at x", "look at y"] and result.budget["t"]["epsilon"]["spent"] == "3"
    assert [w.message for w in result.warnings if w.kind == "unfit-cells"] != []
    assert cuts_of(result.values["a"])


def test_persons_of_any_number_of_rows_are_looked_at_by_a_row_of_each() -> None:
    written(["31.12.2014"] * ROWS)
    text = of("date", "select count(*) from t where x > 2010-05-01 up to 2 rows", "id")
    result = ran(text)
    assert looks(result) == ["look at x"] and charges(result)[-1][2] == pytest.approx(1 / 0.06)
    assert [w.kind for w in result.warnings] == ["unfit-cells"] and result.budget["t"]["epsilon"]["spent"] == "3"


def test_the_mark_of_a_misfit_goes_along() -> None:
    written([f"{k % 97 + 2}.5" for k in range(ROWS)])
    forms = [one for one in FORMS if one not in ("library", "vectors", "selection", "watch", "stage", "public join")]
    for form in forms:
        head = HEAD.replace("0..99", "0..3").replace("epsilon 9", "epsilon 99")
        value = ran(
            head + FORMS[form].replace("epsilon 1", "epsilon 9").replace("limited(t, 1)", "limited(t, 9)")
        ).values["a"]
        first = value[0] if isinstance(value, list) and form != "parts" else value
        numbers = _numbers(first) if not isinstance(first, list) else first
        assert any("`x`" in cut for cut in cuts_of(*numbers)), form


@pytest.mark.looks
def test_sessions_look_unless_they_are_told_not_to() -> None:
    written(["5"] * 50)
    text = of("0..99", "select avg(x) from t")
    assert looks(Session().attempt(Source("p.jst", text))) == ["look at x"]
    assert looks(Session(look=False).attempt(Source("p.jst", text))) == []


def test_a_column_that_is_described_anew_is_looked_at_anew() -> None:
    written(["5"] * ROWS)
    text = of("text", "select count(*) from t where number(x) > 3", amount="epsilon 1")
    session = Session(look=True)
    assert [looks(session.attempt(Source("p.jst", text))) for _ in range(2)] == [["look at x"], []]
    session = Session(look=True)
    for domain, again in (("0..99", True), ("0..99", False), ("0..3", True), ("0..3", False)):
        result = session.attempt(Source("p.jst", of(domain, "select avg(x) from t", amount="epsilon 1")))
        assert looks(result) == ["look at x"] * again
    assert session.budget()["t"]["epsilon"]["spent"] == "4"


@pytest.mark.parametrize("body", [
    "release a = {{ select sum(x) from t with error 500 }}\n",
    "release a = {{ select count(*) from t with epsilon 1 }}\n",
    'release a = {{ select count(*) from t where id == "a" with epsilon 1 }}\n',
    "release a = {{ select sum(x) from t with epsilon 1e-11 }}\n",
])  # fmt: skip
def test_what_reads_no_cells_or_has_no_amount_looks_at_nothing(body: str) -> None:
    written(["1"] * 50)
    with_looks, without = ran(HEAD + body), ran(HEAD + body, look=False)
    assert looks(with_looks) == [] and charges(with_looks) == charges(without)


@pytest.mark.parametrize("body", [
    "a = {{ select sum(x) from t with epsilon 10 }}\n",
    "a = laplace(histogram(t, x)) with epsilon 10\n",
    "a = laplace(histogram(t, x), 5) with epsilon 1\n",
    "a = {{ select sum(x) from t with epsilon 1 via gaussian }}\n",
])  # fmt: skip
def test_what_is_refused_has_looked_at_nothing(body: str) -> None:
    written(["1"] * 50)
    session = Session(look=True)
    session.execute(Source("entry", HEAD))
    with pytest.raises(Refusal) as refused:
        session.execute(Source("entry", body))
    assert "9.8" not in str(refused.value)  # the amount that is written is the one that is named
    assert session.budget()["t"]["epsilon"]["spent"] == "0"
    session.execute(Source("entry", "b = {{ select sum(x) from t with epsilon 1 }}\n"))
    assert [e.name for e in session.events if e.kind == "query" and "look" in e.fields] == ["look at x"]


def test_simulations_and_registered_datasets_are_not_looked_at() -> None:
    written(["1.5"] * ROWS)
    assert looks(ran(of("0..99", "select avg(x) from t"), simulate=1)) == []
    words = ["data", "register", "t", "t.csv", "--schema", "{x: 0..99}", "--protecting", "rows"]
    assert main([*words, "--budget", "epsilon 9", "--ledger", "ledger.db"]) == 0
    text = 'private t = dataset("t")\nrelease a = {{ select avg(x) from t with epsilon 3 }}\n'
    assert looks(ran(text, ledger="ledger.db")) == []


def test_files_of_all_kinds_are_looked_at_alike() -> None:
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


def test_of_a_run_that_fails_each_part_explains_its_own_marks(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("x,y,id\n" + "7,5,a\n" * ROWS)
    text = of("0..3", "select sum(x) from t", budget="epsilon 30").replace("id: text", "y: 0..9, id: text")
    Path("p.jst").write_text(text + "m = {{ select sum(y) from t with epsilon 3 }}\nassert m < 0\n")
    assert main(["run", "p.jst"]) == 1
    released, _, measured = capsys.readouterr().out.partition("measured, not released")
    assert "m = " in measured and "misfit of `x`" in released and "misfit" not in measured


@pytest.mark.parametrize("block", ["", "jointly with epsilon 3:\n    "])
def test_a_count_beside_a_mean_of_what_does_not_fit_keeps_its_error(block: str) -> None:
    written(["7"] * ROWS)
    text = of("0..3", "select count(*) as n, avg(x) as x, count(x) as m from t", budget="epsilon 6")
    text = text.replace(" with epsilon 3" * bool(block), "").replace("release a", f"{block}a", 1)
    margins = ran(text + "release a\n").margins()["a"]
    assert [name for name, one in margins.items() if one["error"] is None] == ["x", "m"]


def test_the_command_looks_and_no_look_switches_it_off(capsys: pytest.CaptureFixture[str]) -> None:
    written([f"31.12.20{k % 97:02}" for k in range(ROWS)])
    Path("p.jst").write_text(of("date", "select count(*) from t where x > 2010-05-01"))
    assert main(["run", "p.jst", "--trace", "run.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"warning \(unfit-cells\): `x`: \d+ % ± \d+ of its cells are no date", err)
    assert out.count("*: how far it is off is not known, because of the misfit of `x`") == 1
    assert main(["trace", "run.jsonl"]) == 0 and "look at x" in capsys.readouterr().out
    assert main(["run", "p.jst", "--no-look"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "*" not in out


@pytest.mark.parametrize("amount", ["1", "0.3", "0.1", "0.000001"])
def test_looks_at_three_columns_leave_nothing_of_an_amount(amount: str) -> None:
    """A fiftieth of it does not divide by three; what is over stays with the measurement."""
    session = Session()
    session.bind("t", {"a": [1, 2], "b": [0.5, 1.5], "c": ["x", "y"]})
    described = '{a: 0..9, b: 0.0..10.0, c: {"x", "y"}}'
    declared = f'private t = bound("t") described by {described} protecting rows budget epsilon {amount}\n'
    query = f"n = {{{{ select sum(b) as s from t where a > 3 groupby c with epsilon {amount} }}}}\n"
    session.run(Source("p.jst", declared + query))
    assert session.budget()["t"]["epsilon"] == {"total": amount, "spent": amount}


CALLS = (
    'describe_numeric(t, "x")',
    'linear_regression(t, "x", ["y"])',
    'compare(t, "x", "g")',
    'correlation(t, "x", "y")',
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fits", [True, False])
def test_reports_of_the_library_have_no_interval_where_cells_do_not_fit(call: str, fits: bool, tmp_path: Path) -> None:
    rows = "".join(f"{k % 100},{k % 7},{'ab'[k % 2]}\n" for k in range(ROWS))
    (tmp_path / "t.csv").write_text("x,y,g\n" + rows)
    result = ran(
        f'use statistics\nprivate t = table("t.csv") described by {{x: 0.0..{100 if fits else 1}.0, y: 0.0..7.0, '
        f'g: {{"a", "b"}}}}\n    protecting rows budget epsilon 90, delta 0.01\nr = {call} with epsilon 80\nprint(r)\n'
        f"print(len([1 for row in r.rows if row.low != none]) > 0)\n",
        cwd=tmp_path,
    )
    printed, known = result.output[0], result.output[1]
    assert known == ("true" if fits else "false") and ("?*" in printed) == (not fits)
    said = re.search("because of the misfit of `x`, (at least )?9", printed) is not None  # 98 % and noise
    assert said == (not fits)


def test_a_dry_run_shows_the_error_that_a_run_has_beside_its_looks() -> None:
    written([str(k % 100) for k in range(ROWS)])
    text = of("0.0..100.0", "select sum(x) from t", amount="epsilon 0.1")
    errors = {look: Session(look=look).dry_run(Source("p.jst", text)).errors.values() for look in (True, False)}
    (((error,),), ((plain,),)) = errors[True], errors[False]
    assert error.error == pytest.approx(ran(text).margins()["a"]["error"], rel=1e-3)
    assert error.error == pytest.approx(plain.error * 50 / 49, rel=1e-3)


def test_infinite_numbers_of_a_float_column_are_seen() -> None:
    """Of frames and files with columns of floats as of texts: what is no finite number is none, and said."""
    x = np.random.default_rng(0).normal(50, 10, ROWS)
    x[:600], x[600:900], x[900:1000] = np.inf, -np.inf, np.nan
    frame = pd.DataFrame({"x": x, "mixed": pd.Series([*x[:-1], "a"], dtype=object)})
    frame[["x"]].to_parquet("t.parquet")
    text = "private t = {} described by {{{}: 0.0..100.0}} protecting rows budget epsilon 9\n"
    query = "release a = {{{{ select count({}) from t with epsilon 9 }}}}\n"
    for source, name in (('bound("t")', "x"), ('bound("t")', "mixed"), ('table("t.parquet")', "x")):
        session = Session(look=True)
        session.bind("t", frame)
        result = session.attempt(Source("p.jst", text.format(source, name) + query.format(name)))
        assert result.ok and abs(result["a"] - (ROWS - 1000)) < 40
        said = [one.message for one in result.warnings if "no number" in one.message]
        assert len(said) == 1 and said[0].startswith(f"`{name}`: ") and 25 < int(said[0].split()[1]) < 35


def test_a_sparse_column_behind_others_is_looked_at_by_itself_by_the_next_charge() -> None:
    """All of its few cells are unreadable, in 0.5 % of the rows: less than is said of a share of all of them."""
    lines = [f"{k % 9},{'31.12.2000' if k % 200 == 0 else ''},{'q' if k % 200 == 1 else 5}" for k in range(40_000)]
    Path("t.csv").write_text("\n".join(["x,d,z", *lines, ""]))
    text = 'private t = table("t.csv") described by {x: 0..9, d: date, z: 0..9} protecting rows budget epsilon 99\n'
    asked = "{{ select count(d) as n, sum(x) as s, sum(z) as z from t where x > %s with epsilon 9 }}\n"
    once, often = (ran(text + "".join(asked % k for k in range(many))) for many in (1, 4))

    def said(result: Result) -> list[str]:
        return [str(one) for one in result.warnings if one.kind == "unfit-cells"]

    assert len(looks(once)) == 1 and not said(once)
    assert sorted(len(name.split(", ")) for name in looks(often)) == [1, 1, 3]
    (warned,) = said(often)
    share = re.search(r"`d`: (\d+) %", warned)
    assert share is not None and int(share[1]) > 60 and often.budget["t"]["epsilon"]["spent"] == "36"
