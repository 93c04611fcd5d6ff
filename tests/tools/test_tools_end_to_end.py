"""The faces in front of the real interpreter: run, check, trace, repl, data check, each as a person calls them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]

PEOPLE = ["age,sex,hours", *(f"{k % 90},{'Female' if k % 2 else 'Male'},{k % 60}" for k in range(400))]
DECLARED = """private people = table("people.csv")
    described by {age: 0..99, sex: {"Female", "Male"}, hours: 0..100}
    protecting rows
    budget epsilon 100  # jostle: allow large-epsilon
"""
PAID = DECLARED + "n = {{ select count(*) from people with epsilon 50 }}\nprint(1 + 1)\nrelease n\n"


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command line in a folder with `people.csv`; `program` is written to `p.jst`, `typed` is standard input."""
    from jostle.tools.entry import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOSTLE_DEBUG", raising=False)
    Path("people.csv").write_text("\n".join(PEOPLE) + "\n")

    def call(*words: str, program: str | None = None, typed: str = "") -> tuple[int, str, str]:
        if program is not None:
            Path("p.jst").write_text(program, encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        status = main(list(words))
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def test_a_paid_query_from_text_to_trace(real: Call) -> None:
    status, out, err = real("run", "p.jst", "--trace", "t.jsonl", program=PAID)
    assert (status, err) == (0, "") and out.startswith("2\n\nreleased\n  n = ")
    assert "people  ██████████░░░░░░░░░░  ε 50 of 100 spent, 50 left" in out
    status, out, _ = real("trace", "t.jsonl")
    assert status == 0 and "source people  protecting rows  budget ε 100" in out and "laplace  count" in out
    assert "ε 50" in real("trace", "t.jsonl", "--budget")[1]


def test_a_program_comes_from_standard_input(real: Call) -> None:
    status, out, err = real("run", "-", typed=PAID)
    assert (status, err) == (0, "") and out.startswith("2\n\nreleased\n  n = ")
    status, _, err = real("check", "-", typed="print(x)\n")
    assert status == 1 and "-:1:7" in err


def test_json_as_the_conformance_programs_want_it(real: Call) -> None:
    status, out, _ = real("run", "p.jst", "--format", "json", program=PAID)
    said = json.loads(out)
    assert (status, said["ok"], said["output"]) == (0, True, ["2"]) and abs(said["released"]["n"] - 400) < 3
    assert said["budget"] == {"people": {"epsilon": {"total": "100", "spent": "50"}}}
    status, out, _ = real("run", "p.jst", "--format", "json", program=PAID + "print(people)\n")
    error = json.loads(out)["error"]
    assert (status, error["kind"], error["line"], error["column"]) == (1, "PrivateValue", 8, 7)


def test_check_opens_nothing_and_finds_all(real: Call) -> None:
    Path("people.csv").unlink()
    status, out, _ = real("check", "p.jst", program=PAID)
    assert status == 0 and "no errors" in out
    status, _, err = real("check", "p.jst", program="a = totl\nb = othr\n")
    assert status == 1 and err.count("NameError") == 2 and err.endswith("2 errors\n")


DRY = (
    DECLARED
    + """param share = 0.5
by_sex = {{ select count(*) as n from people groupby sex with epsilon 10 * share }}
with epsilon 20:
    for i in 1..2: n = {{ select count(*) from people with epsilon epsilon / 4 }}
if by_sex.n[0] > 3 { m = {{ select sum(hours) from people with epsilon 1 }} }
"""
)

KINDS = """h = {{ select avg(hours), count(*) from people groupby sex with epsilon 0.6 }}
with epsilon 4:
    a = {{ select count(*) as n, sum(hours) as hours from people with epsilon 2 }}
    m = {{ select median(age) from people with epsilon 1 via selection }}
cells = laplace(histogram(people, x = age)) with epsilon 1
b = [{{ select count(*) from people with epsilon 1 }} for i in 1..2]
rest = {{ select count(*) from people with epsilon left(people) / 2 }}
"""


def test_a_dry_run_says_what_each_line_spends_and_what_stays(real: Call) -> None:
    status, out, err = real("run", "p.jst", "--dry", "--set", "share=0.75", program=DRY)
    assert (status, err) == (0, "")
    assert (
        out
        == """nothing is run and nothing private is opened

line                                                                source  amount       looks  left            error
   6  by_sex = {{ select count(*) as n from people groupby sex wi…  people  ε 7.5        0.15   92.5            ± 0
 7–8  with epsilon 20:                                              people  ε 8.75              83.75
   9  if by_sex.n[0] > 3 { m = {{ select sum(hours) from people w…  people  at most ε 1  0.02   at least 82.75

cost of a run that comes to its end
  people  at most epsilon 17.25 of 100, 0.17 of it counts cells of sex, hours that do not fit
"""
    )
    lines = json.loads(real("run", "p.jst", "--dry", "--format", "json")[1])["lines"]
    assert lines[0] == {"line": 6, "end_line": 6, "source": "people", "unit": "epsilon", "most": "5", "exact": True,
                        "looks": "0.1", "left": "95", "left_exact": True,
                        "errors": [{"name": "count", "error": 0}]}  # fmt: skip
    out = real("run", "p.jst", "--dry", program=DECLARED + KINDS)[1]
    for errors in ("avg ± 700 / rows, count ± 11", "count ± 3.1, sum ± 310, median ± 7.7 ranks", "cells off by 1.5"):
        assert f"{errors}\n" in out
    assert out.count("±") == 5  # none of a loop, nor of what it leaves for another line
    assert "nothing is spent" in real("run", "p.jst", "--dry", program=DECLARED)[1]


def test_a_dry_run_refuses_what_a_check_refuses_and_opens_nothing(real: Call) -> None:
    status, out, err = real("run", "p.jst", "--dry", "--set", "share=9.5", program=DRY)
    assert status == 1 and err.startswith("BudgetExceeded") and "line " not in out
    for settings, kind in ((["share=many"], "TypeError"), (["shar=1"], "NameError")):
        status, out, err = real("run", "p.jst", "--dry", *[w for s in settings for w in ("--set", s)])
        assert (status, out) == (1, "") and err.startswith(kind)
    assert real("run", "p.jst", "--dry", "--simulate")[0] == 2
    Path("people.csv").unlink()
    assert real("run", "p.jst", "--dry", program=PAID)[0] == 0


def test_what_is_bound_lies_beside_the_program_or_in_the_working_directory(real: Call) -> None:
    Path("in").mkdir()
    Path("in/p.jst").write_text(PAID.replace('table("people.csv")', 'bound("people")'))
    Path("people.csv").rename("in/mine.csv")
    for name in ("in/mine.csv", "mine.csv"):
        assert real("run", "in/p.jst", "--bind", f"people={name}")[0] == 0
    for command in (["run", "in/p.jst"], ["run", "in/p.jst", "--dry"], ["plan", "in/p.jst"], ["evaluate", "in/p.jst"]):
        status, out, err = real(*command, "--bind", "people=yours.csv")
        assert (status, out) == (1, "") and err.startswith("DataError: `people` cannot be bound: there is no file")


def test_the_repl_keeps_names_and_goes_on_after_errors(real: Call) -> None:
    typed = (
        DECLARED
        + "n = {{ select count(*) from people with epsilon 25 }}\nprint(people)\nm = 20 + 1\nprint(m * 2)\n:budget\n"
    )
    status, out, err = real("repl", typed=typed)
    assert status == 1 and "42\n" in out and "ε 25 of 100 spent, 75 left" in out
    assert err.count("PrivateValue") == 1 and "^^^^^^" in err


def test_a_program_that_the_repl_loads_finds_the_files_beside_it(real: Call) -> None:
    Path("deep").mkdir()
    Path("people.csv").rename("deep/people.csv")
    Path("deep/p.jst").write_text(PAID, encoding="utf-8")
    for words, typed in ((["repl"], ":load deep/p.jst\n"), (["repl", "deep/p.jst"], "")):
        status, out, err = real(*words, typed=typed + ":budget\n")
        assert (status, err) == (0, "") and "ε 50 of 100 spent, 50 left" in out


def test_a_simulation_does_not_depend_on_the_private_rows(real: Call) -> None:
    first = real("run", "p.jst", "--simulate", "--seed", "3", program=PAID)
    Path("people.csv").write_text("age,sex,hours\n1,Male,1\n")
    assert real("run", "p.jst", "--simulate", "--seed", "3") == first
    assert first[0] == 0 and all(line.startswith("[simulated, seed 3]") for line in first[1].splitlines())


def test_data_check_reads_the_languages_own_schema(real: Call) -> None:
    status, out, _ = real("data", "check", "people.csv", "--schema", '{age: 0..50, sex: {"Female"}}')
    assert status == 0 and out.startswith("people.csv: 400 records") and "0..50" in out
    status, _, err = real("data", "check", "people.csv", "--schema", "{age: }")
    assert status == 1 and err.startswith("SyntaxError")
    status, _, err = real("data", "check", "people.csv", "--schema", "{weight: 0..5}")
    assert status == 1 and err.startswith("DataError")
