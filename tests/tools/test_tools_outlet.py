"""An output that is full, closed, or without ε: no fault of jostle's is told, and what was paid for is not lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jostle.tools.entry import main

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """private people = counts([300, 4000]) protecting rows budget epsilon 4
first = laplace(size(people)) with epsilon 1
release first
print("first ± line:", first)
print("a second line")
release second = laplace(size(people)) with epsilon 1
"""
WAITING = """
def wait(n):
    return 0 if n < 1 else wait(n - 1) + wait(n - 1)
print("waiting")
release never = wait(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.jst").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def shell(folder: Path, command: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"), **more}
    words = ["bash", "-o", "pipefail", "-c", re.sub(r"(?<![/\w])jostle ", f"{sys.executable} -m jostle ", command)]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False)


def total(text: str, name: str) -> int:
    (line,) = [line for line in text.splitlines() if line.startswith(f"  {name} = ")]
    return int(line.split("=")[1].split("±")[0].replace(",", ""))


@pytest.mark.parametrize(("where", "reason", "status"), [
    ("> /dev/full", "no space left on device", 1), (">&-", "it is closed", 1), ("| true", "", 1),
    ("--format json > /dev/full", "no space left on device", 1),
])  # fmt: skip
def test_answers_that_cannot_be_printed_are_kept(folder: Path, where: str, reason: str, status: int) -> None:
    """The program ends at the line that cannot be printed, before it spends more; what it released comes again."""
    done = shell(folder, f"jostle run p.jst {where}")
    assert done.returncode == status and "internal" not in done.stderr and "Traceback" not in done.stderr
    assert "`jostle again` prints it" in done.stderr and reason in done.stderr and "Exception" not in done.stderr
    (place,) = (folder / "state" / "jostle").iterdir()
    kept = json.loads(place.read_text(encoding="utf-8"))
    assert place.stat().st_mode & 0o777 == 0o600 and kept["program"] == "p.jst"
    ran_on = "json" in where
    assert (ran_on or "second" not in kept["released"]) and abs(kept["released"]["first"] - 4300) < 60
    assert shell(folder, "jostle again > /dev/full").returncode == 1 and place.exists()
    again = shell(folder, "jostle again")
    assert again.returncode == 0 and total(again.stdout, "first") == kept["released"]["first"]
    assert "first ± line:" in again.stdout and "of 4 spent" in again.stdout and not place.exists()
    assert "nothing is kept" in shell(folder, "jostle again").stdout


def test_where_nothing_can_be_kept_the_answers_go_to_standard_error(folder: Path) -> None:
    done = shell(folder, "jostle run p.jst > /dev/full", XDG_STATE_HOME="/dev/null")
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("{")]
    assert abs(json.loads(line)["released"]["first"] - 4300) < 60 and "internal" not in done.stderr


def test_a_trace_on_a_full_disk_loses_no_answer(folder: Path) -> None:
    done = shell(folder, "jostle run p.jst --trace /dev/full")
    assert done.returncode == 1 and "cannot be written: no space left on device" in done.stderr
    assert "internal" not in done.stderr and "of 4 spent" in done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_an_output_without_our_signs(folder: Path, encoding: str) -> None:
    (folder / "p.jst").write_text('print("☃ ε")\n' + PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "jostle", "run", "p.jst"], cwd=folder, capture_output=True, timeout=240, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding, "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == b"" and b"2 of 4 spent" in done.stdout
    assert done.stdout.decode(encoding).splitlines()[0] == ("? ε" if encoding == "cp437" else "? e")
    checked = shell(folder, "echo 'print(β)' > q.jst; jostle check q.jst", PYTHONIOENCODING="ascii")
    assert checked.returncode == 1 and checked.stderr.isascii() and "cannot be part of a name" in checked.stderr


def _heard() -> None:
    """Tests that were themselves begun deaf to a terminal (`nohup`, `&`) begin none that are."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def started(folder: Path, *words: str, **files: Any) -> subprocess.Popen[str]:
    """A run that has released what it will release, and waits."""
    (folder / "p.jst").write_text(PROGRAM + WAITING, encoding="utf-8")
    running = subprocess.Popen(
        [sys.executable, "-m", "jostle", "run", "p.jst", "--trace", "t.jsonl", *words], cwd=folder, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state")}, preexec_fn=_heard,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **files},
    )  # fmt: skip
    end = time.monotonic() + 240
    while not (folder / "t.jsonl").exists() or '"second"' not in (folder / "t.jsonl").read_text(encoding="utf-8"):
        assert running.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    return running


@pytest.mark.parametrize(("number", "form"), [
    (signal.SIGINT, "text"), (signal.SIGINT, "json"), (signal.SIGTERM, "json"), (signal.SIGHUP, "text"),
])  # fmt: skip
def test_a_run_that_is_stopped_tells_what_it_released(folder: Path, number: signal.Signals, form: str) -> None:
    """By Ctrl-C, a time limit, or a terminal that goes."""
    running = started(folder, "--format", form)
    running.send_signal(number)
    out, err = running.communicate(timeout=240)
    assert running.returncode == 128 + number and "what was charged stays charged" in err and "Traceback" not in err
    if form == "json":
        document = json.loads(out)
        assert not document["ok"] and document["error"]["kind"] == "Stopped"
        assert abs(document["released"]["second"] - 4300) < 60
    else:
        assert abs(total(out, "second") - 4300) < 60 and "2 of 4 spent" in out


def test_what_a_closed_terminal_could_not_show_is_kept(folder: Path) -> None:
    """The terminal goes, with the signal that tells of it: nothing can be written, and nothing is lost."""
    ours, theirs = os.openpty()
    running = started(folder, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    os.close(ours)
    running.send_signal(signal.SIGHUP)
    running.wait(timeout=240)
    again = shell(folder, "jostle again")
    assert running.returncode == 1 and abs(total(again.stdout, "second") - 4300) < 60


def test_after_a_kill_a_registered_file_gives_the_answers_that_were_paid_for(folder: Path) -> None:
    """kill -9 between the charge and the print: the next run prints the same number and charges nothing more."""
    (folder / "people.csv").write_text("age\n" + "40\n" * 4300)
    ledger = {"JOSTLE_LEDGER": str(folder / "ledger.db")}
    register = "jostle data register people people.csv --schema '{age: 0..99}' --protecting rows --budget 'epsilon 1'"
    assert shell(folder, register, **ledger).returncode == 0
    asks = 'private people = dataset("people")\nn = {{ select count(*) from people with epsilon 0.5 }}\n'
    (folder / "q.jst").write_text(asks + "release n\n")
    killing = "import os, signal, jostle.run.answers as r\nremember = r._StoredRequest.remember\n"
    killing += "def last(*a):\n    remember(*a)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    killing += "r._StoredRequest.remember = last\nfrom jostle.tools.entry import main\nmain(['run', 'q.jst'])\n"
    (folder / "killed.py").write_text(killing)
    killed = shell(folder, f"{sys.executable} killed.py", **ledger)
    assert killed.returncode in (137, -9) and killed.stdout == ""
    first, second = (shell(folder, "jostle run q.jst", **ledger) for _ in range(2))
    assert total(first.stdout, "n") == total(second.stdout, "n") and "0.5 of 1 spent" in second.stdout


LONG = """private t = table("t.csv") described by {{a: 1..{a}, b: 1..{b}}} protecting rows budget epsilon 100
{release}g = {{{{ select count(*) as n from t groupby a, b with epsilon 40 }}}}
{more}
"""


@pytest.mark.parametrize(("form", "release", "more"), [
    ("text", "release ", ""), ("json", "release ", ""), ("text", "", "assert sum(g.n) < 5"),
    ("json", "", "assert sum(g.n) < 5"),
])  # fmt: skip
@pytest.mark.parametrize(("a", "b"), [(70, 80), pytest.param(1900, 1800, marks=pytest.mark.slow)])
def test_a_table_of_any_length_is_handed_over(folder: Path, form: str, release: str, more: str, a: int, b: int) -> None:
    """3.4 million groups of three columns were "too large to hold" after their charge. Noise moves one in 10¹⁰ runs."""
    (folder / "t.csv").write_text("a,b\n" + "1,1\n" * 7 + f"{a},{b}\n" * 3, encoding="utf-8")
    (folder / "p.jst").write_text(LONG.format(a=a, b=b, release=release, more=more), encoding="utf-8")
    done = shell(folder, f"jostle run p.jst --no-look --format {form}")
    assert done.returncode == (1 if more else 0), done.stderr
    if form == "text":
        assert f"… {a * b - 20} more rows" in done.stdout and re.search(r"^ +1 +1 +7  ± 0$", done.stdout, re.M)
    texts = [done.stdout] if form == "json" else []
    texts += [place.read_text(encoding="utf-8") for place in (folder / "state" / "jostle").glob("*")]
    assert len(texts) == (form == "json") + bool(more)
    for text in texts:
        document = json.loads(text)
        rows = document["measured" if more else "released"]["g"]
        assert len(rows) == a * b and rows[0] == {"a": 1, "b": 1, "n": 7} and rows[-1] == {"a": a, "b": b, "n": 3}
        assert [row["a"] * b + row["b"] for row in rows] == list(range(b + 1, a * b + b + 1))
        assert sum(row["n"] for row in rows) == 10 and document["budget"]["t"]["epsilon"]["spent"] == "40"


@pytest.mark.parametrize("text", ["print([1, 2]))\n", "x = {{ slect count(*) from t }}\n", "print(smu([1, 2]))\n"])
def test_all_commands_say_of_a_mistake_what_check_says(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`evaluate`, `plan`, `improve` and `fmt` had other words for it, and a place far from it."""
    program = tmp_path / "p.jst"
    program.write_text(text)
    said = {}
    for command in ("check", "run", "plan", "evaluate", "improve", "fmt"):
        main([command, str(program)])
        said[command] = capsys.readouterr().err
    if text.startswith("print(smu"):  # which is no fault of its form
        assert said.pop("fmt") == ""
    assert "help" in said["check"] and set(said.values()) == {said["check"]}


def test_faults_of_several_files_are_all_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jst").write_text("print([1, 2]))\n")
    assert main(["fmt", str(tmp_path / "a.jst"), str(tmp_path / "b.jst")]) == 1
    told = capsys.readouterr().err
    assert "a.jst:1" in told and "b.jst:1" in told
