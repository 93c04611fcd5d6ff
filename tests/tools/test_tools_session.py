"""The Python face: data handed over by name, results as NumPy, pandas and plain numbers."""

from datetime import date
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jostle
from jostle.formulas import Noised
from jostle.noise_laws import Laplace, Selected
from jostle.run.values import Record
from jostle.source import Source

PROGRAM = """
private people = bound("people") described by {age: 0..99, sex: {"F", "M"}} protecting rows budget epsilon 2000
private cells = bound("cells") protecting rows budget epsilon 2000
param eps = 500
n = {{ select count(*) from people with epsilon eps }}
by_sex = {{ select count(*) as n, avg(age) as age from people groupby sex with epsilon 1000 }}
h = laplace(cells) with epsilon 1000
both = [n, 1]
release n
release by_sex
release h
release both
"""


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"age": [30, 40, 50, 60], "sex": ["F", "F", "M", None]})


def test_results_are_arrays_frames_and_numbers(frame: pd.DataFrame, tmp_path: Path) -> None:
    session = jostle.Session()
    session.bind("people", frame)
    session.bind("cells", np.array([3, 0, 5]))
    program = tmp_path / "program.jst"
    program.write_text(PROGRAM)
    result = session.run(program, eps=400)
    assert abs(result["n"] - 4) < 1 and isinstance(result["n"], float)
    grouped = result.released["by_sex"]
    assert list(grouped.columns) == ["sex", "n", "n_low", "n_high", "age", "age_low", "age_high"]
    assert (grouped["age_low"] < grouped["age"]).all() and (grouped["n"] <= grouped["n_high"]).all()
    margin = result.margins()["n"]
    assert margin["low"] == pytest.approx(result["n"] - margin["error"]) and len(result.margins()["h"]) == 3
    assert list(grouped["sex"]) == ["F", "M"]
    assert abs(grouped["n"][0] - 2) < 1
    assert isinstance(result["h"], np.ndarray) and np.abs(result["h"] - [3, 0, 5]).max() < 1
    assert isinstance(result["both"], np.ndarray)
    assert result.budget["people"]["epsilon"] == {"total": "2000", "spent": "1400"}
    assert any(event.kind == "measure" for event in result.trace)


def test_a_program_may_be_a_text_and_counts_are_ints_in_frames(frame: pd.DataFrame) -> None:
    session = jostle.Session()
    session.bind("people", frame)
    text = 't = bound("people")\ng = {{ select count(*) as n from t groupby sex over {"F", "M"} }}\nrelease g\n'
    grouped = session.run_text(text).released["g"]
    assert grouped["n"].tolist() == [2, 1] and grouped["n"].dtype.kind == "i"
    assert {"Session", "Refusal", "describe"} <= set(dir(jostle)) and "Any" not in dir(jostle)
    with pytest.raises(jostle.Refusal):
        session.run_text("print(nothing)")


def test_a_refusal_is_raised_from_run_and_returned_by_attempt() -> None:
    session = jostle.Session()
    with pytest.raises(jostle.Refusal) as refused:
        session.run(Source("p.jst", "print(nothing)\n"))
    assert refused.value.first.kind == "NameError"
    assert not session.attempt(Source("p.jst", "print(nothing)\n")).ok


def test_a_value_is_shown_with_its_error() -> None:
    """As a session at the terminal and a notebook echo it."""
    count, chosen = Noised(1730.0, Laplace(10.0, step=1.0)), Noised(35.0, Selected(2.0, 64))
    session = jostle.Session()
    assert session.show(count) == "1730 ± 30" and session.show(chosen) == "35 ± 15 ranks"
    assert session.show(Record(n=count, k=5.0)) == "{n: 1730 ± 30, k: 5}" and session.show(5.0) == "5"


def test_programs_of_one_session_share_a_budget(frame: pd.DataFrame) -> None:
    session = jostle.Session()
    session.bind("people", frame)
    text = (
        'private p = bound("people") described by {age: 0..99} protecting rows budget epsilon 1\n'
        "n = {{ select count(*) from p with epsilon 0.6 }}\n"
    )
    assert session.attempt(Source("a.jst", text)).ok
    second = session.attempt(Source("b.jst", text))
    assert [d.kind for d in second.diagnostics] == ["BudgetExceeded"]


def test_a_program_that_is_run_again_is_not_checked_again(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But with other settings, after another program, with a module, or where it was warned of before."""
    from jostle.check.dry import interpreter

    walks: list[str] = []
    before = interpreter.foreseen
    monkeypatch.setattr(interpreter, "foreseen", lambda tree, *rest: walks.append("") or before(tree, *rest))

    def walked(text: str, name: str = "a.jst", **settings: object) -> tuple[bool, bool]:
        walks.clear()
        ok = session.attempt(Source(name, text), settings).ok
        return bool(walks), ok

    session = jostle.Session()
    session.bind("people", frame)
    count = "n = {{ select count(*) from p with epsilon eps }}\n"
    people = 'private p = bound("people") described by {age: 0..99} protecting rows budget epsilon 3\n'
    text = people + "param eps = 1\n" + count
    assert [walked(text), walked(text)] == [(True, True), (False, True)]
    assert walked(text, eps=-1) == (True, False)
    assert walked(text, "b.jst") == (True, True)
    assert walked(text, "b.jst") == (False, False)  # the budget is the kernel's
    assert walked(text + "m = n + {}\n") == (True, False) and walked(text + "m = n + {}\n") == (True, False)
    module = "use m\nk = m.k + 1\n"
    (tmp_path / "m.jst").write_text("k = 1\n")
    place = str(tmp_path / "c.jst")
    assert [walked(module, place), walked(module, place)] == [(True, True)] * 2


def test_an_unknown_parameter_is_refused_with_the_known_ones() -> None:
    result = jostle.Session().attempt(Source("p.jst", "param eps = 1\n"), {"epz": 2})
    assert result.diagnostics[0].kind == "NameError" and "eps" in result.diagnostics[0].help


def test_a_dry_run_needs_no_data_and_spends_nothing() -> None:
    session = jostle.Session()
    dry_run = session.dry_run(Source("p.jst", PROGRAM), eps=400)
    assert [(c.source, c.span.line, c.most // 10**12, c.exact) for c in dry_run.charges] == [
        ("people", 5, 400, True), ("people", 6, 1000, True), ("cells", 7, 1000, True),
    ]  # fmt: skip
    assert str(dry_run).splitlines()[1].endswith("people  ε 400   1600  ± 0") and session.budget() == {}
    with pytest.raises(jostle.Refusal) as refused:
        session.dry_run(Source("p.jst", PROGRAM), eps=1001)
    assert refused.value.first.kind == "BudgetExceeded"


@pytest.mark.parametrize(
    ("value", "message", "help"),
    [
        ([1, 2], "what is of type list is no table", "a NumPy array of counts"),
        (7, "what is of type int is no table", "a data frame"),
        ({"age": 20}, "every column of a table is an array", '{"age": [20, 30]}'),
        (pd.Series([1, 2]), "a Series is no table", "s.to_frame()"),
        ("peple.csv", "there is no file `peple.csv`", "did you mean `people.csv`?"),
        (Path("nowhere.csv"), "there is no file `nowhere.csv`", "its whole path"),
        (["people.csv", "more.csv"], "there is no file `more.csv`", "its whole path"),
        ("more*.csv", "no file matches `more*.csv`", "folder"),
    ],
    ids=str,
)
def test_what_is_no_data_is_refused_when_it_is_bound(value: object, message: str, help: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n20\n")
    session = jostle.Session(cwd=tmp_path)
    with pytest.raises(jostle.Refusal) as refused:
        session.bind("people", value)
    first = refused.value.first
    assert (first.kind, first.message) == ("DataError", f"`people` cannot be bound: {message}") and help in first.help
    session.bind("people", "p*.csv")
    with pytest.raises(jostle.Refusal, match="takes `str` as `name`") as swapped:
        session.bind(pd.DataFrame({"age": [4711]}), "people")  # type: ignore[arg-type]
    assert "4711" not in str(swapped.value)


def test_the_recursion_limit_of_python_is_restored() -> None:
    import sys

    before = sys.getrecursionlimit()
    result = jostle.Session().attempt(Source("p.jst", "def f(x): return f(x)\nf(1)\n"))
    assert result.diagnostics[0].kind == "RecursionLimit"
    assert sys.getrecursionlimit() == before


LONG = """
private t = bound("t") described by {k: 0..99, x: 0.0..10.0} protecting rows budget epsilon 100
a = {{ select count(*) as n, avg(x) as m, sum(x) as s from t groupby k with epsilon 1 }}
few = {{ select count(*) as n, avg(x) as m from t groupby k having n > 8 order by m limit 3 with epsilon 1 }}
both = a.m[7] + a.n[8]
print(a)
print(few)
print(a[5].m)
print(error(both))
print(error(a))
release a
"""


def test_answers_of_very_many_groups_are_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    frame = pd.DataFrame({"k": random.integers(0, 100, 900), "x": random.uniform(0, 10, 900)})

    def shown(at_once: int) -> tuple[str, object]:
        source = np.random.default_rng(3)
        monkeypatch.setattr("jostle.run.sequences.MOST_AT_ONCE", at_once)
        monkeypatch.setattr("jostle.privacy.mechanisms.noise.os.urandom", source.bytes)
        session = jostle.Session()
        session.bind("t", frame)
        result = session.run_text(LONG)
        assert len(result["a"]) == 100
        return "\n".join(result.output), result["a"].to_dict()

    few, many = shown(10**6), shown(2)
    assert many == few
    assert "100 rows in all" in few[0]


def test_a_whole_column_of_more_than_a_million_groups_is_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object with its error for each of 20 million counts took 16 GB."""
    monkeypatch.setattr("jostle.run.sequences.MOST_AT_ONCE", 2)
    monkeypatch.setattr("jostle.run.values.MOST_WITH_ERRORS", 50)
    session = jostle.Session()
    session.bind("t", pd.DataFrame({"k": np.arange(900) % 100}))
    program = """
private t = bound("t") described by {k: 0..99} protecting rows budget epsilon 100
a = {{ select count(*) as n from t groupby k with epsilon 1 }}
print(sum(a.n) == sum([row.n for row in a]), a.n[7] == a[7].n, len(a.n), error(a[7].n) > 0)
"""
    assert session.run_text(program).output == ["true true 100 true"]
    with pytest.raises(jostle.Refusal, match="numbers that were not measured"):
        session.run_text(program + "print(error(a.n))")


def test_what_stands_alone_in_a_program_shows_its_value(frame: pd.DataFrame) -> None:
    """Queries alone on a line paid, and their answers were lost."""
    session = jostle.Session()
    session.bind("people", frame)
    result = session.run_text("""
private people = bound("people") described by {age: 0..99, sex: {"F", "M"}} protecting rows budget epsilon 2000
def both(t):
    len([1])
    {{ select count(*) from t with epsilon 500 }}
{{ select count(*) as n, avg(age) as age from people with epsilon 200 }}
{{ select count(*) as n from people groupby sex with epsilon 200 }}
jointly with epsilon 200:
    {{ select count(*) from people where age > 45 }}
both(people)
print("end")
""")  # fmt: skip
    first, second, third, *rest = result.output
    assert first.startswith("{n: 4 ± ") and second.splitlines()[1].split()[:2] == ["F", "2"]
    assert third.startswith("2") and "±" in third and [line.split()[0] for line in rest] == ["4", "end"]


def test_tables_that_are_printed_together_stand_on_lines_of_their_own() -> None:
    """The names of the second stood on the last line of the first."""
    lines: list[str] = []
    text = 't = table([{k: 1}, {k: 2}, {k: 1}])\ng = {{ select count(*) as n from t groupby k }}\nprint("of", g, g)\n'
    jostle.Session(out=lines.append).run_text(text + 'print("in all", sum(g.n))\n')
    assert lines == ["of\nk  n\n1  2\n2  1\nk  n\n1  2\n2  1", "in all 3"]


class _Odd(int):
    """A number that Python says nothing of."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


class _OddRecord(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError


GIVEN: dict[str, tuple[object, dict[str, object]]] = {
    "a number": (0.5, {"1": 0.5}), "of NumPy": (np.int64(3), {"1": 3.0}), "a fraction": (Fraction(1, 2), {"1": 0.5}),
    "a subclass": (_Odd(3), {"1": 3.0}), "a text": ("0.5", {"1": 0.5, '"a"': "0.5"}), "true": (True, {"true": True}),
    "true of NumPy": (np.bool_(True), {"true": True}), "a text of NumPy": (np.str_("x"), {'"a"': "x"}),
    "a whole number without an end": (10**400, {}), "a large one": (10**5000, {}), "a list": ([1], {"[1]": [1.0]}),
    "an array": (np.array(5), {}), "several": (np.array([1, 2]), {"[1]": [1.0, 2.0]}),
    "a time": (np.datetime64("2020-01-01"), {}),
    "a span": (np.timedelta64(1, "D"), {}), "a record": (_OddRecord(a=1), {}), "a date": (date(1, 1, 1), {}),
    "a frame": (pd.DataFrame({"a": [1]}), {}), "none of these": (object(), {}), "nothing": (pd.NA, {}),
}  # fmt: skip


@pytest.mark.parametrize("default", ["1", '"a"', "true", "[1]"])
@pytest.mark.parametrize("name", GIVEN)
def test_a_setting_is_of_its_defaults_kind_or_refused(name: str, default: str) -> None:
    """Arrays, dates and objects went in as they were, and some of them were faults of Jostle."""
    value, right = GIVEN[name]
    result = jostle.Session().attempt(f"param v = {default}\nrelease v\nprint(v)\n", {"v": value})
    if default in right:
        of_list = default == "[1]"  # which a result has as an array
        assert result.ok and (list(result["v"]) if of_list else result["v"]) == right[default]
        assert of_list or type(result["v"]) is type(right[default])
    else:
        assert [d.kind for d in result.diagnostics] == ["TypeError"] and not result.values
    (other,) = jostle.Session().attempt("param w = 1\n", {"v": value}).diagnostics
    assert other.kind == "NameError"


WRONG = (5, -1, 10**30, 0.5, True, "x\0", "\ud800", b"x", [1], (1,), {"a": 1}, {5: 6}, object(), int, None)


@pytest.mark.parametrize("name", list(signature(jostle.Session).parameters))
def test_a_value_of_a_type_that_a_session_does_not_take_is_refused(name: str, tmp_path: Path) -> None:
    """Whatever an option is given, a session refuses it or runs; nothing comes as an error of Python."""
    refused = 0
    for value in WRONG:
        try:
            with jostle.Session(**{"ledger": tmp_path / "ledger", name: value}) as session:
                session.attempt("release n = 1")
        except jostle.Refusal as refusal:
            refused += refusal.first.kind == "TypeError" and f"as `{name}`" in refusal.first.message
    assert refused >= len(WRONG) - 7


@pytest.mark.parametrize("method", ["run", "run_text", "attempt", "check", "dry_run", "execute", "bind", "releases"])
def test_a_value_of_a_type_that_a_method_does_not_take_is_refused(method: str) -> None:
    session = jostle.Session()
    for value in (5, None, [], {}, object(), b"x", 0.5):
        with pytest.raises(jostle.Refusal) as caught:
            getattr(session, method)(*(value, "t") if method == "bind" else (value,))
        assert caught.value.first.kind == "TypeError" and "internal" not in str(caught.value)


def test_the_refusal_of_a_type_says_what_is_taken() -> None:
    with pytest.raises(jostle.Refusal, match=r"`Session` takes `int \| None` as `simulate`, not `'x'`"):
        jostle.Session(simulate="x")  # type: ignore[arg-type]
    with pytest.raises(jostle.Refusal, match=r"`Session\.run_text` takes `str` as `text`, not `5`"):
        jostle.Session().run_text(5)  # type: ignore[arg-type]
    with pytest.raises(jostle.Refusal, match=r"`evaluate` takes `str \| Path \| Source` as `program`, not `list`"):
        jostle.evaluate([])  # type: ignore[arg-type]
    with pytest.raises(jostle.Refusal, match="`Remote` takes `str` as `url`, not `5`"):
        jostle.connect(5)  # type: ignore[arg-type]
    assert jostle.Session(simulate=np.int64(3), cwd=".", allow=("misfit",)).run_text("release n = 1")["n"] == 1  # type: ignore[arg-type]
