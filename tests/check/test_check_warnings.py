"""Warnings: what runs and does not fit its description is said, by name, place and way out; a near miss is not."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest

from jostle.diagnostics import WARNINGS, Refusal
from jostle.source import Source
from jostle.tools.entry import main
from jostle.tools.session import Session

ROOT = Path(__file__).parents[2]

OF = """private t = table("t.csv")
    described by {pirat: 0..3, one: 0..1, ten: 0..10, age: 0..99, score: 0.0..5.0, yes: {"yes", "no"},
                  city: {"Ames", "Boone"}, listed: {0, 1, 2}, name: text, day: date, at: time}
    protecting rows budget epsilon 5
"""
DAY = "2024-03-01,2024-03-01T12:30:00"
QUERY = "release x = {{{{ {} with epsilon 1 }}}}\n"
GROUPS = "select count(*) from t groupby {}"

WARNED = [
    ("narrow-range", "select avg(pirat) from t", "0.0..3.0"),
    ("narrow-range", "select avg(one) from t", "0.0..1.0"),
    ("narrow-range", "select stddev(pirat * 100) from t where age > 3", "0.0..3.0"),
    ("narrow-range", "select avg(age - pirat) from t groupby city", "{0, 1, 2, 3}"),
    ("floored-key", GROUPS.format("score"), "floor(score)"),
    ("floored-key", GROUPS.format("score over 0..5"), "floor(score)"),
    ("floored-key", GROUPS.format("score / 100"), "floor((score / 100) * 10) / 10"),
    ("unlisted-key", GROUPS.format('city over ["Amse", "Boone"]'), 'did you mean "Ames"?'),
    ("unlisted-key", GROUPS.format("age over 50..120"), "0..99"),
    ("unlisted-key", GROUPS.format("listed over [1, 7]"), "one of 0, 1, 2"),
    ("unlisted-key", GROUPS.format("floor(age / 10) over 0..12"), "0..9"),
    ("clock-of-date", GROUPS.format("hour(day)"), "day: time"),
    ("clock-of-date", "select count(*) from t where minute(day) > 3", "day: time"),
    ("unmatched-pattern", 'select count(*) from t where yes like "Y%"', 'lower(yes) like "y%"'),
    ("unmatched-pattern", 'select avg(1 if yes like "ja%" else 0) from t', 'it is one of "yes", "no"'),
    ("unmatched-pattern", 'select count(*) from t where not (city not like "%AMES")', 'lower(city) like "%ames"'),
    ("idle-clamp", "select avg(clamp(age, 0, 120)) from t", "leave the clamp out"),
    ("idle-clamp", "select sum(clamp(age * 2, 0, 198)) from t", "leave the clamp out"),
    ("cutting-clamp", "select avg(clamp(age, 18, 65)) from t", "the nearest end"),
    ("idle-clamp", "select avg(clamp(`age`, 0, 120)) from t", "leave the clamp out: `age`"),
]
NOT_WARNED = [
    GROUPS.format("hour(at)"),
    GROUPS.format('trunc(day, "month") over from 2024-01-01 to 2024-12-31 by month'),
    GROUPS.format("floor(age / 10) over 0..9"),
    "select avg(ten) from t",
    "select avg(listed) from t",
    "select sum(pirat) from t",
    "select avg(1 if pirat > 2 else 0) from t",
    "select avg(score) from t",
    "select avg(old) from derive(t, old = 1 if age > 70 else 0)",
    GROUPS.format("floor(score) as s"),
    GROUPS.format("floor(score * 4) / 4 over [0.25, 0.5]"),
    GROUPS.format("score over [0.1, 0.2]"),
    GROUPS.format("round(score, 1) over {0, 1}"),
    GROUPS.format("age over 0..99"),
    GROUPS.format('city over ["Ames"]'),
    GROUPS.format("pirat"),
    'select count(*) from t where yes like "y%"',
    'select count(*) from t where lower(yes) like "y%"',
    'select count(*) from t where name like "Y%"',
    "select avg(clamp(number(name), 0, 99)) from t",
    "select avg(clamp(age * ten, 0, 99)) from t",
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = "{0},{1},{2},{3},{4},yes,Ames,{5},n{6},{7}"
    rows = "\n".join(cells.format(k % 4, k % 2, k % 11, k % 100, k % 50 / 10, k % 3, k, DAY) for k in range(300))
    Path("t.csv").write_text(f"pirat,one,ten,age,score,yes,city,listed,name,day,at\n{rows}\n")


def warned(text: str, **keywords: object) -> list[str]:
    """The names of the warnings of a program that runs, which are those of its check."""
    session, checked = Session(**keywords), Session(**keywords)  # type: ignore[arg-type]
    result = session.attempt(Source("p.jst", text))
    assert result.ok, result.diagnostics
    assert checked.check(Source("p.jst", text)) == []
    assert tuple(checked.warnings) == result.warnings == tuple(session.warnings)
    return [warning.kind for warning in result.warnings]


@pytest.mark.parametrize(("name", "query", "way_out"), WARNED, ids=[query for _, query, _ in WARNED])
def test_what_does_not_fit_is_said_with_its_place_and_the_way_out(name: str, query: str, way_out: str) -> None:
    assert warned(OF + QUERY.format(query)) == [name]
    (warning,) = Session().run_text(OF + QUERY.format(query)).warnings
    assert way_out in warning.help and warning.span is not None and warning.span.line == 5
    assert warned(OF + QUERY.format(query) + f"# jostle: allow {name}\n") == []
    assert warned(OF + QUERY.format(query).rstrip() + f"  # jostle: allow large-epsilon, {name}\n") == []
    assert warned(f"x = 1  # jostle: allow {name}\n{OF}" + QUERY.format(query)) == [name]
    assert warned(OF + QUERY.format(query), allow=[name]) == []


@pytest.mark.parametrize("query", NOT_WARNED)
def test_a_near_miss_is_not_warned_of(query: str) -> None:
    assert warned(OF + QUERY.format(query)) == []


@pytest.mark.parametrize(("line", "name"), [
    ("h = histogram(t, score)", "floored-key"),
    ("h = histogram(t, x = score)", "floored-key"),
    ("h = histogram(t, x = floor(score))", ""),
    ("h = histogram(t, age)", ""),
    ("parts = partition(t, score)", "floored-key"),
    ('parts = partition(t, city, over = ["Amse"])', "unlisted-key"),
    ('parts = partition(t, city, over = ["Ames"])', ""),
    ('u = where(t, yes like "Y%")', "unmatched-pattern"),
    ("u = derive(t, a = clamp(age, 0, 200))", "idle-clamp"),
    ("u = derive(t, a = clamp(age, 0, 50))", "cutting-clamp"),
    ("release x = {{ select count(*) from t with epsilon 1 }}", ""),
])  # fmt: skip
def test_transformations_and_amounts_are_looked_at_too(line: str, name: str) -> None:
    large = OF.replace("epsilon 5", "epsilon 50  # jostle: allow large-epsilon") + line + "\n"
    assert warned(large) == [name] * bool(name)


@pytest.mark.parametrize(("domain", "warns"), [
    ('{"Ames ", "Boone"}', True), ('{"Ames", "ames"}', True), ('{"Ames", "\\tBoone"}', True),
    ('{"Ames", "Boone"}', False), ('{"Ames", "Ames Iowa"}', False),
])  # fmt: skip
def test_categories_with_blanks_or_of_two_cases(domain: str, warns: bool) -> None:
    assert warned(OF.replace('{"Ames", "Boone"}', domain)) == ["category-spelling"] * warns


@pytest.mark.parametrize(("header", "source", "domain", "warns"), [
    ("a;b", 'table("g.csv")', "b: 0.0..9.0", True),
    ("a\tb", 'table("g.csv")', "b: 0..9", True),
    ("a,b", 'table("g.csv")', "b: 0.0..9.0", False),
    ("a;b", 'table("g.csv")', "b: text", False),
    ("a;b", 'table("g.csv", decimal = ",")', "b: 0.0..9.0", False),
    ("a;b", 'table("g.csv", separator = ";")', "b: 0.0..9.0", False),
])  # fmt: skip
def test_a_header_with_semicolons_and_no_word_on_decimals(header: str, source: str, domain: str, warns: bool) -> None:
    Path("g.csv").write_text(f"{header}\n")
    text = f"private g = {source}\n    described by {{{domain}}}\n    protecting rows budget epsilon 1\n"
    assert warned(text) == ["csv-decimal"] * warns
    simulated = Session(simulate=1)  # which opens nothing
    assert simulated.attempt(Source("p.jst", text)).warnings == ()


@pytest.mark.parametrize(("domain", "warns"), [
    ('number(replace(b, "€", ""))', True), ('number(replace(replace(b, ".", ""), ",", "."))', False),
    ("0.0..9.0", False),
])  # fmt: skip
def test_numbers_in_texts_beside_decimal_commas(domain: str, warns: bool) -> None:
    Path("g.csv").write_text("a;b\n")
    source = 'private g = table("g.csv", decimal = ",")'
    text = f"{source}\n    described by {{b: {domain}}}\n    protecting rows budget epsilon 1\n"
    assert warned(text) == ["csv-decimal"] * warns


def test_a_name_that_is_no_warning_is_said() -> None:
    assert warned("# jostle: allow narow-range, idle-clamp\nx = 1\n") == ["unknown-warning"]
    assert warned("-- jostle: allow narow-range\nx = 1\n") == ["unknown-warning"]
    assert warned("x = 'a'\n# jostle: allow idle-clamp\n".replace("'", '"')) == []


def test_a_large_epsilon_is_said_once_at_the_budget_or_the_first_amount() -> None:
    large = OF.replace("epsilon 5", "epsilon 50") + QUERY.format("select count(*) from t").replace("1 }", "20 }")
    (warning,) = Session().run_text(large).warnings
    assert warning.kind == "large-epsilon" and warning.span is not None and warning.span.line == 4
    assert warned(OF.replace("epsilon 5", "epsilon 10") + QUERY.format("select count(*) from t")) == []
    checked = Session()
    query = QUERY.format("select count(*) from t").replace("1 }", "20 }")
    checked.check(Source("p.jst", f'private t = dataset("t")\n{query}{query.replace("x", "y", 1)}'))
    assert [(w.kind, w.span.line) for w in checked.warnings if w.span] == [("large-epsilon", 2)]


def test_a_utility_that_gives_an_error_as_it_is() -> None:
    def utility(value: str) -> list[str]:
        return warned(f"near = Utility (data, answers) {{ return {value} }}\n")

    assert utility("rmse(answers, data.truth)") == utility("scaled_error(answers, data.truth, 3)") == ["praised-error"]
    assert utility("-rmse(answers, data.truth)") == utility("1 / rmse(answers, data.truth)") == []


def test_a_name_in_braces_in_a_printed_text_is_warned_of() -> None:
    assert warned('n = 3\nprint("{n} of {n}")\n') == ["plain-braces"]
    assert warned('n = 3\nprint("{m}", n, "{}", "{n + 1}")\n') == []


def test_public_tables_are_read_as_they_are_and_not_warned_of() -> None:
    public = 'u = table("t.csv") described by {pirat: 0..3, score: 0.0..5.0}\n'
    assert warned(public + "x = {{ select avg(pirat) from u groupby score }}\n") == []


def test_check_run_and_json_show_a_warning_and_succeed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.jst").write_text(OF + QUERY.format("select avg(pirat) from t"))
    for command in ("check", "run"):
        assert main([command, "p.jst"]) == 0
        out, err = capsys.readouterr()
        assert err == (
            "warning (narrow-range): `pirat` is described by the integers 0..3, and averaged\n"
            "  ┌─ p.jst:5:29\n"
            "5 │ release x = {{ select avg(pirat) from t with epsilon 1 }}\n"
            "  │                           ^^^^^ a cell 0.7 would count as 0\n"
            "  = help: describe it as `pirat: 0.0..3.0` if cells have fractions, as `pirat: {0, 1, 2, 3}` if they have "
            "none\n"
        ).replace("5:29", "5:27")
        assert "warning" not in out
        assert main([command, "p.jst", "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["ok"] and [w["kind"] for w in document["warnings"]] == ["narrow-range"]
        assert main([command, "p.jst", "--allow", "narrow-range"]) == 0 and capsys.readouterr().err == ""
        assert main([command, "p.jst", "--allow", "narrow-range", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["warnings"] == []
    assert main(["explain", "narrow-range"]) == 0
    assert "--allow narrow-range" in capsys.readouterr().out
    assert main(["check", "p.jst", "--allow", "nothing"]) == 2


def test_the_editor_the_shell_and_the_notebook_show_it() -> None:
    from jostle.tools.editors.document import Document
    from jostle.tools.editors.notebook import Notebook

    text = OF + QUERY.format("select avg(pirat) from t")
    assert [(d.kind, d.is_warning) for d in Document("p.jst").change(text)] == [("narrow-range", True)]
    shown = Notebook({}).cell(text)
    assert any("warning (narrow-range)" in part for part in shown.texts)


def test_shipped_programs_and_the_programs_of_the_documents_are_free_of_warnings() -> None:
    programs = [(path, path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("programs/**/*.jst"))]
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        blocks = re.findall(r"```jostle\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        programs += [(page.with_suffix(f".{place}"), text) for place, text in enumerate(blocks)]
    assert len(programs) > 150
    for path, text in programs:
        session = Session(cwd=path.parent)
        with suppress(Refusal):  # blocks that show a mistake, or a part of a program
            session._checked(Source(str(path), text))
        assert session.warnings == [], path


def test_every_name_is_documented_and_is_one_word() -> None:
    page = (ROOT / "docs" / "warnings.md").read_text(encoding="utf-8")
    for name in WARNINGS:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", name) and f"`{name}`" in page
