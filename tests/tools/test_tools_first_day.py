"""The first minutes with nothing but the package: an example, a query without a program, a search."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jostle import Refusal, Session, diagnostics
from jostle.documentation import entries_for
from jostle.source import Source
from jostle.tools import result, show
from jostle.tools.entry import main
from jostle.tools.export import Sheet

PEOPLE = "name,age,sex\n" + "".join(f"p{k},{20 + k % 50},{'FM'[k % 2]}\n" for k in range(400))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(list(words))
    out, err = capsys.readouterr()
    return status, out, err


def test_the_example_is_written_once_and_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "init", "--example")[0] == 0
    status, out, _ = said(capsys, "run", "first.jst")
    assert status == 0 and "ε 0.8 of 1 spent" in out
    (here / "first.jst").unlink()
    status, _, err = said(capsys, "init", "--example")
    assert status == 1 and "`choose.jst` is there already" in err and not (here / "first.jst").exists()


def test_init_takes_a_file_or_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["init"], ["init", "--example", "x.csv"]):
        status, _, err = said(capsys, *words)
        assert status == 2 and "a FILE of data, or --example" in err


def test_a_query_of_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "-c", "select count(*) from t", "people.csv", "--epsilon", "60")
    assert (status, out.splitlines()[0]) == (0, "400 ± 0")
    cut = ["select avg(clamp(age, 30, 40)) from t", "people.csv", "--describe", "age: 20..69", "--epsilon", "60"]
    status, out, _ = said(capsys, "-c", *cut)
    assert status == 0 and re.match(r"[\d.]+ ± [\d.e-]+\*\n\*: ± covers the noise only, not values clamped", out)
    described = ["--describe", '{age: 20..69, sex: {"F", "M"}}', "--epsilon", "60", "--format", "json"]
    status, out, _ = said(capsys, "ask", "{{ select count(*) as n from t groupby sex; }}", "people.csv", *described)
    document = json.loads(out)
    assert status == 0 and document["budget"] == {"t": {"epsilon": {"total": "60", "spent": "60"}}}
    status, out, _ = said(capsys, "ask", "select count(*) from t with epsilon 40", "people.csv", *described)
    assert json.loads(out)["budget"] == {"t": {"epsilon": {"total": "60", "spent": "40"}}}
    status, out, _ = said(capsys, "ask", "select count(*) from t", "people.csv", *described, "--simulate")
    assert status == 0 and json.loads(out)["simulated"]


def test_a_column_that_nobody_described_is_named_with_the_way_out(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = said(capsys, "-c", "select avg(age) from t", "people.csv")
    assert (status, out) == (1, "") and "`age` of `people.csv` is not described" in err
    assert "--describe '{age: …}'" in err
    assert "read from a file, and not from a pipe" in said(capsys, "-c", "select count(*) from t", "-")[2]
    status, _, err = said(capsys, "-c", "select count(*) from t", "peple.csv")
    assert status == 1 and "`peple.csv`" in err


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("compare two groups", "compare"), ("ttest", "compare"), ("how many rows", "count"), ("histogram", "histogram"),
        ("average", "avg"), ("typical income", "median"), ("value_counts", "groupby"), ("merge tables", "join"),
        ("synthetic rows", "synthetic"), ("percentile", "quantile"), ("what is left", "left"), ("nunique", "distinct"),
        ("most frequent values", "top_k"), ("by month", "month"), ("uncertainty", "error"), ("draw a chart", "plot"),
        ("missing values", "missing"), ("corr", "correlation_matrix"), ("kmeans", "kmeans"),
        ("chi squared", "crosstab"), ("difference in means", "compare"), ("survival", "kaplan_meier"),
        ("time to event", "kaplan_meier"), ("age groups", "floor"), ("buckets of age", "histogram"),
        ("quartiles", "quantiles"),
        ("keep some columns", "pick"), ("percentage", "avg"), ("moving average", "running"),
        ("top 10 products", "top_k"),
        ("lookup table", "join"), ("append tables", "union"), ("train test split", "sample"), ("export csv", "release"),
        ("random forest", "best_classifier"), ("segments of customers", "best_clusters"), ("ab test", "compare"),
        ("how accurate", "error"), ("users with many rows", "up"), ("word counts in text", "ngrams"),
        ("age from birth date", "days_between"), ("contingency table", "crosstab"), ("maximum", "max"),
    ],
)  # fmt: skip
def test_a_question_finds_its_function_among_the_first_five(question: str, name: str) -> None:
    assert name in [entry.name for entry in entries_for(question.split())][:5]


def test_find_says_what_another_language_calls_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "find", "n_distinct")
    assert "`n_distinct` of another language: write `count(distinct x)`" in out
    status, out, _ = said(capsys, "find", "zzzz")
    assert status == 1 and "nothing has these words" in out


@pytest.mark.parametrize(
    ("name", "home"),
    [("StandardScaler", "derive("), ("t.test", "compare("), ("qcut", "quantiles("), ("lpad", "substring")],
)
def test_find_and_messages_read_one_table_of_names(name: str, home: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "find", name)
    assert home in out.splitlines()[0]
    (fault,) = Session().check(f"x = {name}(3)\n")
    assert home in fault.help


def test_a_refusal_as_text_has_its_place_and_its_help() -> None:
    with pytest.raises(Refusal) as caught:
        Session().run(Source("count.jst", "x = 1\ny = lenght([1])\n"))
    assert str(caught.value) == "count.jst:2:5: NameError: `lenght` is not defined\n  help: did you mean `length`?"


def test_init_finds_the_names_below_a_title(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "t.csv").write_text("Survey,,\nprinted,by us,\nage,sex,sex,town\n3,F,M,Ames\n", encoding="utf-8")
    assert said(capsys, "init", "t.csv", "--describe", "age: 0..99")[0] == 0
    text = (here / "t.jst").read_text(encoding="utf-8")
    assert 'table("t.csv", header = 3)' in text and "#   town\n" in text
    assert said(capsys, "init", "t.csv", "--out", "u.jst")[2].endswith("the columns are age, town\n")
    assert said(capsys, "-c", "select count(*) from t", "t.csv", "--header", "3")[0] == 0
    assert "is no line" in said(capsys, "-c", "select count(*) from t", "t.csv", "--header", "0")[2]


def test_init_reads_the_names_of_json_lines(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(json.dumps({"age": k % 90, "at": f"{k % 28 + 1:02}.12.2024"}) + "\n" for k in range(300))
    (here / "x.jsonl").write_text(lines, encoding="utf-8")
    assert said(capsys, "init", "x.jsonl", "--describe", "at: date")[0] == 0
    text = (here / "x.jst").read_text(encoding="utf-8")
    assert "#   age\n" in text and 'at: date("%d.%m.%Y")' in text


def test_a_registered_dataset_keeps_the_line_of_its_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "t.csv").write_text("Survey,\nage,sex\n3,F\n4,M\n", encoding="utf-8")
    terms = ["--schema", "{age: 0..99}", "--protecting", "rows", "--budget", "epsilon 9", "--ledger", "l.db"]
    assert said(capsys, "data", "register", "t", "t.csv", "--header", "2", *terms)[0] == 0
    assert "line 2" in said(capsys, "data", "show", "t", "--ledger", "l.db")[1]
    program = 'private t = dataset("t")\nprint({{ select sum(age) from t with epsilon 8 }})'
    result = Session(cwd=here, ledger="l.db").attempt(Source("p.jst", program))
    assert result.ok, result.diagnostics


def test_a_text_that_a_spreadsheet_would_run_is_marked(tmp_path: Path) -> None:
    values = {"=1+1": ["=cmd|' /C calc'!A0", "+1", "@SUM(A1)", "-x", "\tx", "plain", "a=b"], "n": [-1.5] * 7}
    sheet = Sheet(values)
    assert next(iter(sheet.lines())) == ["'=1+1", "n"]
    assert [row[0] for row in sheet.lines()][1:-2] == [f"'{text}" for text in values["=1+1"][:5]]
    assert [row[0] for row in sheet.lines()][-2:] == ["plain", "a=b"] and [*sheet.lines()][1][1] == "-1.5"


COUNT = """private t = table("people.csv") described by {age: 0..99, sex: {"F", "M"}} protecting rows budget epsilon 1
g = {{ select count(*) as n from t groupby sex, age / 50 with epsilon 0.5 }}
release g
"""


def test_a_service_hears_of_programs_and_of_simulations_nothing(here: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="jostle")
    session = Session(cwd=here)
    assert session.attempt(Source("p", COUNT)).ok
    assert not session.attempt(Source("q", COUNT.replace("0.5", "0.6"))).ok
    Session(cwd=here, simulate=1).attempt(Source("s", COUNT))
    said = [(record.levelname, record.jostle["event"], record.jostle["program"]) for record in caplog.records]  # type: ignore[attr-defined]
    assert said == [
        ("INFO", "begin", "p"), ("INFO", "charge", "p"), ("INFO", "end", "p"),
        ("INFO", "begin", "q"), ("WARNING", "refusal", "q"), ("INFO", "charge", "q"), ("INFO", "end", "q"),
    ]  # fmt: skip
    charges = [record.jostle["charged"] for record in caplog.records if record.jostle["event"] == "charge"]  # type: ignore[attr-defined]
    assert [float(one) for one in charges] == [0.5, 0] and "p: t is charged epsilon 0.5" in caplog.text


def test_a_handler_that_fails_loses_no_answer(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("the log is full")

    monkeypatch.setattr(result.LOG, "log", fail)
    assert Session(cwd=here).attempt(Source("p", COUNT)).released["g"].shape == (4, 5)


def test_frames_have_names_and_ends(here: Path) -> None:
    text = COUNT + "release one = g.n[0]\nrelease days = [{day: 2024-02-29, n: g.n[1]}]\nrelease odd = [1, [2]]\n"
    ran = Session(cwd=here).run_text(text)
    names = ["sex", "key2", "n", "n_low", "n_high"]
    assert list(ran.frame("g").columns) == names == ran.frame("g", "arrow").column_names
    for name, library, said in (("g", "R", "no frames of `R`"), ("odd", "pandas", "`odd` is no table")):
        with pytest.raises(Refusal, match=said):
            ran.frame(name, library)
    assert list(ran.frame("one").columns) == ["one", "one_low", "one_high"] and len(ran.frame("one", "arrow")) == 1
    assert list(ran.frame("days").columns) == ["day", "n", "n_low", "n_high"] and ran.frame("days").day.dt.month[0] == 2
    assert str(ran.frame("days", "arrow").schema.field("day").type) == "date32[day]"
    pytest.importorskip("polars")
    assert str(ran.frame("days", "polars").schema["day"]) == "Date" and len(ran.frame("one", "polars")) == 1


def test_packages_of_extras_are_missed_before_anything_is_spent(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "find_spec", lambda name: None)
    (here / "p.jst").write_text(COUNT, encoding="utf-8")
    extras = {"g.xlsx": "excel", "g.parquet": "arrow", "g.feather": "arrow"}
    saved = ((["--save", f"g={file}"], extra) for file, extra in extras.items())
    for words, extra in ((["--pictures", "."], "plots"), *saved):
        status, out, err = said(capsys, "run", "p.jst", *words)
        assert status == 1 and f'pip install "jostle[{extra}]"' in err and "spent" not in out
    assert said(capsys, "run", "p.jst")[0] == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    script = said(capsys, "completion", shell)[1]
    assert all(word in script for word in ("evaluate", "completion", "rows"))
    if shell == "bash" and (bash := shutil.which("bash")):
        words = f'{script}\nCOMP_WORDS=(jostle plan --ro); COMP_CWORD=2; _jostle; echo "${{COMPREPLY[@]}}"'
        assert subprocess.run([bash, "-c", words], capture_output=True, text=True, check=True).stdout == "--rows\n"


def test_check_says_what_is_left_of_a_registered_dataset(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    terms = ["--schema", "{age: 0..99}", "--protecting", "rows", "--budget", "epsilon 1", "--ledger", "l.db"]
    assert said(capsys, "data", "register", "t", "people.csv", *terms)[0] == 0
    program = 'private t = dataset("t")\nprint({{ select count(*) from t where age > %d with epsilon 0.7 }})'
    (here / "p.jst").write_text(program % 30, encoding="utf-8")
    assert "epsilon 1 of epsilon 1 is left\n" in said(capsys, "check", "p.jst", "--ledger", "l.db")[1]
    assert said(capsys, "run", "p.jst", "--ledger", "l.db")[0] == 0
    (here / "p.jst").write_text(program % 40, encoding="utf-8")
    out = said(capsys, "check", "p.jst", "--ledger", "l.db")[1]
    assert "epsilon 0.3 of epsilon 1 is left: " in out and "ask its owner" in out
    status, _, err = said(capsys, "run", "p.jst", "--ledger", "l.db")
    assert status == 1 and "ask its owner" in err and "declare" not in err
    assert "left" not in said(capsys, "check", "p.jst", "--ledger", "none.db")[1] and not (here / "none.db").exists()


@pytest.mark.parametrize(("question", "entry"), [
    ("ttest", "compare"), ("t.test", "compare"), ("t_test", "compare"),
    ("chi_squared", "crosstab"), ("wilcox.test", "compare"), ("anova", "anova"),
    ("chisq.test", "crosstab"), ("pivot_table", "crosstab"), ("corr", "correlation_matrix"), ("lm", "regression"),
    ("LinearRegression", "regression"), ("RandomForestClassifier", "classifiers"), ("nunique", "count_distinct"),
    ("top 10", "top_k"), ("outliers", "clamp"), ("cumsum", "prefixes"), ("how many", "count"), ("share of", "avg"),
    ("roc_auc_score", "right_on_test"), ("time series", "month"), ("KMeans", "kmeans"), ("sdv", "synthetic"),
])  # fmt: skip
def test_names_of_other_languages_lead_home(question: str, entry: str) -> None:
    assert entry in [one.name for one in entries_for(question.split())][:4]


def test_a_released_report_is_read_by_its_fields_and_shown_as_its_table(here: Path) -> None:
    text = """use statistics
private p = table("people.csv") described by {age: 20..69, sex: {"F", "M"}} protecting rows budget epsilon 100
release compared = compare(p, "age", "sex") with epsilon 50
release ages = describe_numeric(p, "age") with epsilon 50
"""
    ran = Session(cwd=here).run(Source("p.jst", text))
    report = ran.released["compared"]
    assert report.difference == report.rows[-1]["value"] and list(ran.frame("compared").columns)[:2] == [
        "group",
        "rows",
    ]
    with pytest.raises(AttributeError, match="`differnce`: difference, chance"):
        _ = report.differnce
    document = ran.released_json()["ages"]
    assert [row["value"] for row in document["rows"] if row[""] == "median"] == [document["median"]]
    lines = show.released("ages", document).splitlines()
    assert lines[1].strip() == "age" and lines[2].split() == ["value", "low", "high"]


@pytest.mark.parametrize("rows", [0, 1, 400])
def test_library_functions_answer_on_public_tables_of_any_length(here: Path, rows: int) -> None:
    text = """use classifiers
use regressions
use statistics
use synthetic
t = table("few.csv") described by {age: 20..69, sex: {"F", "M"}}
model = majority(in_bins(t, equal_cuts(t, "sex")), "sex")
right = noisy_accuracy(t, model, "sex")
assert right.error == 0 and right.accuracy >= 0
assert error(laplace(size(t))) == 0 and error({{ select count(*) as n, avg(age) as a from t }}).n == 0
assert band({{ select count(*) from t }}).high == len(t)
assert sum(error({{ select count(*) as n from t groupby sex }}).n) == 0
assert len(quantiles(t, "age", [0.1, 0.5, 0.9]) with epsilon 1) == 3
assert ridge(t, "age").predict({sex: "F"}) >= 20
means = bin_means(t, {age: [30, 50]})
assert means.age.error == 0 and len(means.age.bins) == 3
"""
    (here / "few.csv").write_text("".join(PEOPLE.splitlines(keepends=True)[: rows + 1]), encoding="utf-8")
    ran = Session(cwd=here).attempt(Source("few.jst", text))
    assert ran.ok, [str(one) for one in ran.diagnostics]


def test_a_text_is_no_path_of_a_program() -> None:
    with pytest.raises(Refusal, match="run_text"):
        Session().run("x = 1\nprint(x)")


def test_names_with_blanks_stand_wherever_names_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("birds.csv").write_text("Individual ID,Body Mass\nN1,3000\nN1,3100\nN2,4000\n")
    text = """private birds = table("birds.csv") described by {`Individual ID`: text, `Body Mass`: 2000..6000}
    protecting `Individual ID` up to 2 rows
    budget epsilon 200
release x = {{ select avg(m) as mass from (select max(`Body Mass`) as m from birds per `Individual ID`)
    with epsilon 100 }}
"""
    Path("birds.jst").write_text(text)
    status, out, err = said(capsys, "run", "birds.jst", "--format", "json")
    assert status == 0, err
    assert 3300 < json.loads(out)["released"]["x"] < 3800


def test_a_select_reads_records_results_and_synthetic_rows(here: Path) -> None:
    text = """use graphical
rows = model({age: 0..9}, [["age"]]).sample(100)
some = [{age: 3, size: 2}, {age: 4, size: 5}]
release n = {{ select count(*) from rows where age >= 0 }}
release s = {{ select sum(size) from some join some as two on age }}
private p = table("people.csv") described by {age: 20..69} protecting rows budget epsilon 200
g = {{ select count(*) as n from p groupby age over [30, 40] with epsilon 100 }}
release m = {{ select max(age) from g }}
release j = {{ select sum(size) from p join some on age with epsilon 100 }}
"""
    released = Session().run_text(text).released
    assert (released["n"], released["s"], released["m"]) == (100, 7, 40) and round(released["j"]) == 0


def test_texts_that_are_made_up_are_read_by_what_the_description_says(tmp_path: Path) -> None:
    text = (
        'private t = table("none.csv") described by {day: date("%d.%m.%Y"), at: time("%H:%M"),'
        ' pay: clamp(number(replace(pay, "€", "")), 0, 50000)} protecting rows budget epsilon 90\n'
        "release a = {{ select count(day) as days, count(at) as times, avg(pay) as pay from t with epsilon 90 }}\n"
    )
    session = Session(cwd=tmp_path, simulate=1)
    result = session.attempt(text)
    assert result.ok and min(result["a"]["days"], result["a"]["times"]) > 900 and 15_000 < result["a"]["pay"] < 35_000


def test_what_is_left_after_it_was_spent_is_no_divisor() -> None:
    text = "seen = counts([4, 2])\nwith epsilon 0.1:\n    e = epsilon\n"
    private = text.replace("seen = counts([4, 2])", "private seen = counts([4, 2]) protecting rows budget epsilon 1")
    result = Session().attempt(private + "    n = laplace(seen)\n    s = 1 / epsilon\n")
    assert not result.ok and result.diagnostics[0].help.endswith("name it before it is spent, `e = epsilon`")
    assert Session().attempt(private + "    n = laplace(seen)\n    s = 1 / e\n").ok


def test_a_result_is_asked_for_its_names_as_a_dict_is() -> None:
    one = Session().run_text("release a = 3\nrelease b = 4\n")
    assert list(one) == ["a", "b"] and "a" in one and "c" not in one
    with pytest.raises(KeyError, match="nothing was released as `c`"):
        one["c"]
