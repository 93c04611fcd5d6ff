"""The command line: exit statuses, what goes to which stream, and that no fault shows a value."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jostle import __version__

Call = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[2]


def python(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env, timeout=900, check=False)


def test_version_is_answered_before_anything_is_imported() -> None:
    said = python("-X", "importtime", "-m", "jostle", "--version")
    assert said.stdout == f"jostle {__version__}\n" and said.returncode == 0
    loaded = {line.rsplit("|", 1)[1].strip() for line in said.stderr.splitlines() if "|" in line}
    ours = {n for n in loaded if n.startswith("jostle")}
    assert ours <= {"jostle", "jostle.version", "jostle.tools", "jostle.tools.entry"}
    assert not loaded & {"numpy", "lark", "argparse", "dataclasses", "json", "pathlib"}


def test_a_check_loads_no_arrays() -> None:
    """Neither NumPy nor DuckDB, which take longer to load than most programs take to check."""
    said = python("-X", "importtime", "-m", "jostle", "check", str(ROOT / "programs" / "first.jst"))
    loaded = {line.rsplit("|", 1)[1].strip() for line in said.stderr.splitlines() if "|" in line}
    assert said.returncode == 0 and not loaded & {"numpy", "duckdb", "scipy", "sklearn"}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["rum", "p.jst"],
        ["run"],
        ["run", "p.jst", "--set", "eps"],
        ["run", "p.jst", "--bind", "1x=y"],
        ["run", "p.jst", "--seed", "3"],
        ["run", "p.jst", "--simulate", "--seed", "-3"],
        ["run", "p.jst", "--format", "xml"],
        ["trace", "r.jsonl", "--choice", "c", "--budget"],
        ["explain", "Nonsense"],
        ["data", "check", "x.csv"],
    ],
)
def test_wrong_usage_is_2_and_says_so_on_standard_error(jostle: Call, words: list[str]) -> None:
    status, out, err = jostle(*words, program="print x")
    assert (status, out) == (2, "") and err


def test_help_is_0(jostle: Call) -> None:
    status, out, _ = jostle("--help")
    assert status == 0 and "explain" in out and jostle("run", "--help")[0] == 0
    assert jostle("help")[:2] == (0, out) and jostle("help", "data", "show") == jostle("data", "show", "--help")


def test_run_prints_releases_budget_and_choices(jostle: Call) -> None:
    text = 'print hello\nrelease n 12\nrelease g [{"sex":"F","n":3},{"sex":"M","n":14}]\nspend people 0.3\nchoose\n'
    status, out, err = jostle("run", "p.jst", program=text)
    assert (status, err) == (0, "")
    whole, tree = out.split("choices\n")
    assert whole == (
        "hello\n\nreleased\n  n = 12\n  g\n    sex   n\n    F     3\n    M    14\n\n"
        "budget\n  people  ██████░░░░░░░░░░░░░░  ε 0.3 of 1 spent, 0.7 left\n\n"
    )
    lines = tree.splitlines()
    assert lines[0] == "  pick chose A  p.jst:5:1" and "▶ A" in tree and lines[-1] == "  └─ spent ε 0.4 of 0.5"


def test_many_choices_are_told_in_short(jostle: Call) -> None:
    _, out, _ = jostle("run", "p.jst", program="choose\nchoose\nchoose\n")
    assert out.count("pick chose A over B\n    because: 1 more than B\n    spent ε 0.4\n") == 3


def test_a_refusal_is_1_with_its_place_and_what_was_released_before(jostle: Call) -> None:
    status, out, err = jostle("run", "p.jst", program="release n 1\nrefuse BadAmount\nrelease m 2\n")
    assert status == 1 and "n = 1" in out and "m = 2" not in out
    assert err.startswith("BadAmount: as ordered\n  ┌─ p.jst:2:1\n2 │ refuse BadAmount\n  │ ^^^^^^^^^^^^^^^^\n")


def test_json_has_the_choices(jostle: Call) -> None:
    _, out, _ = jostle("run", "p.jst", "--format", "json", program="choose\nchoose\n")
    first, second = json.loads(out)["choices"]
    assert first["name"] == "pick" and first["chosen"] == "A" and set(first["predictions"]) == {"A", "B"}
    assert {"parent", "id", "trees"}.isdisjoint(first) and first["span"] != second["span"]


def test_json_is_one_object_and_nothing_else(jostle: Call) -> None:
    text = "print hello\nrelease n 12.5\nspend people 0.3\nrefuse BudgetExceeded\n"
    status, out, _ = jostle("run", "p.jst", "--format", "json", program=text)
    said = json.loads(out)
    assert status == 1 and said["ok"] is False and said["released"] == {"n": 12.5} and said["output"] == ["hello"]
    assert said["budget"] == {"people": {"epsilon": {"total": "1", "spent": "0.3"}}}
    place = {k: said["error"][k] for k in ("kind", "file", "line", "column", "end_line", "end_column")}
    assert list(place.values()) == ["BudgetExceeded", "p.jst", 4, 1, 4, 22]
    status, out, _ = jostle("run", "p.jst", "--format=json", program="release n NaN")
    assert (status, json.loads(out)["ok"], json.loads(out)["released"]) == (0, True, {"n": "nan"})


def test_set_and_bind_reach_the_session(jostle: Call) -> None:
    _, out, _ = jostle("run", "p.jst", "--set", "eps=a=b", "--bind", "adult=x.csv", program="")
    assert out == "eps is a=b\nadult is x.csv\n"


def test_every_line_of_a_simulation_says_so(jostle: Call) -> None:
    text = "print hello\nrelease n 1\nspend people 1\nchoose\n"
    status, out, _ = jostle("run", "p.jst", "--simulate", "--seed", "7", "--trace", "t.jsonl", program=text)
    assert status == 0 and all(line.startswith("[simulated, seed 7]") for line in out.splitlines())
    assert all(json.loads(line)["simulated"] == 7 for line in Path("t.jsonl").read_text().splitlines())
    assert jostle("trace", "t.jsonl")[1].startswith("simulated: ")


def test_trace_is_written_and_shown(jostle: Call) -> None:
    assert jostle("run", "p.jst", "--trace", "t.jsonl", program="release n 3\nchoose\n")[0] == 0
    status, out, _ = jostle("trace", "t.jsonl")
    assert status == 0 and "release n = 3" in out and "pick chose A" in out
    assert "pick chose A" in jostle("trace", "t.jsonl", "--choice", "pick")[1]
    assert jostle("trace", "t.jsonl", "--budget")[1] == "no private source was declared\n"
    status, _, err = jostle("trace", "t.jsonl", "--choice", "pikc")
    assert status == 1 and "did you mean `pick`?" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "absent.jst"], "there is no program `absent.jst`"),
        (["check", "q.jst"], "did you mean `p.jst`?"),
        (["run", "."], "is a folder"),
        (["run", "p.jst", "--trace", "no/where.jsonl"], "the trace `no/where.jsonl` cannot be written"),
        (["trace", "absent.jsonl"], "there is no trace"),
        (["trace", "p.jst"], "this line is not JSON"),
    ],
)
def test_unreadable_files_are_one_diagnostic(jostle: Call, words: list[str], said: str) -> None:
    status, out, err = jostle(*words, program="print x\n")
    assert (status, out) == (1, "") and err.startswith("DataError: ") and said in err


def test_a_page_is_no_file_of_events(jostle: Call) -> None:
    status, _, err = jostle("run", "p.jst", "--trace", "page.html", program="print 1\n")
    assert status == 2 and "jostle trace RUN.jsonl --html PAGE` draws them" in err and not Path("page.html").exists()


def test_a_missing_program_is_json_too(jostle: Call) -> None:
    status, out, _ = jostle("run", "absent.jst", "--format", "json")
    assert status == 1 and json.loads(out)["error"]["kind"] == "DataError"


def test_a_program_that_is_not_text_is_refused(jostle: Call) -> None:
    Path("b.jst").write_bytes(b"x = 1\n\xff\xfe")
    status, _, err = jostle("run", "b.jst")
    assert status == 1 and "not UTF-8" in err


@pytest.mark.parametrize(
    "words", [["serve", "--home", "taken", "--check"], ["fmt", "--check", "a" * 300], ["init", "a" * 300]]
)
def test_a_path_that_the_system_refuses_is_named(jostle: Call, words: list[str]) -> None:
    Path("taken").write_bytes(b"a,b\n")
    status, out, err = jostle(*words)
    assert (status, out) == (1, "") and err.startswith("DataError: `") and "internal" not in err
    assert "cannot be used: file " in err and Path("taken").read_bytes() == b"a,b\n"


@pytest.mark.parametrize("words, said", [
    (["plan", "p.jst", "--rows", "9" * 26], "takes a positive number"),
    (["plan", "p.jst", "--rows", "9" * 400], "takes a positive number"),
    (["plan", "p.jst", "--epsilon", "nan"], "takes a positive number"),
    (["serve", "--home", "home", "--port", "99999999"], "it is no port"),
    (["login", "http://[::1"], "is no URL of a server"), (["login", "http://localhost:1"], "nobody gives a name"),
])  # fmt: skip
def test_what_no_machine_holds_or_nobody_says_is_refused(
    jostle: Call, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    status, _, err = jostle(*words, program="print(1)\n")
    assert status == 1 and said in err and "internal" not in err


def test_an_internal_error_names_its_class_and_no_value(jostle: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    status, out, err = jostle("run", "p.jst", program="crash\n")
    assert (status, out) == (1, "") and err.startswith("InternalError: internal error (ZeroDivisionError)\n")
    assert err.count("\n") == 2 and "4711" not in err and "report it" in err
    status, out, err = jostle("run", "p.jst", "--format", "json", program="crash\n")
    assert status == 1 and json.loads(out)["ok"] is False and "4711" not in out + err
    monkeypatch.setenv("JOSTLE_DEBUG", "1")
    assert "secret 4711" in jostle("run", "p.jst", program="crash\n")[2]


def test_an_interrupt_leaves_no_traceback(jostle: Call) -> None:
    status, _, err = jostle("run", "p.jst", program="interrupt\n")
    assert status == 130 and "Traceback" not in err and "stays charged" in err


def test_a_reader_that_goes_away_is_no_fault() -> None:
    command = [sys.executable, "-m", "jostle", "explain"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, env=env, timeout=900, check=False)
    os.close(write)
    assert done.returncode == 1 and done.stderr == ""


def test_check_shows_every_error(jostle: Call) -> None:
    status, out, err = jostle("check", "p.jst", program="refuse NameError\nrefuse TypeError\n")
    assert (status, out) == (1, "") and "NameError" in err and err.endswith("\n2 errors\n")
    status, out, _ = jostle("check", "p.jst", "--format", "json", program="refuse NameError\n")
    assert status == 1 and [e["kind"] for e in json.loads(out)["errors"]] == ["NameError"]
    assert jostle("check", "p.jst", program="print x\n") == (0, "p.jst: no errors\n", "")


def test_what_a_program_prints_cannot_steer_the_terminal(jostle: Call) -> None:
    assert jostle("run", "p.jst", program="print \x1b[2J\x07ok\n")[1] == "␛[2J␇ok\n"
