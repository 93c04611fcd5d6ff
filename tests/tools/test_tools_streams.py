"""Every command with standard files that are closed, full or broken: one clear line, its own status, no lost answer.

What matters happens at Python's own end, so each case is a process: a fork of one that has imported the package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """private people = counts([300, 4000]) protecting rows budget epsilon 4
first = laplace(size(people)) with epsilon 1
print("first:", first)
release first
"""
SCHEMA = "{age: 0..99}"
COMMANDS: dict[str, list[str]] = {
    "--version": ["--version"],
    "--help": ["--help"],
    "run": ["run", "p.jst"],
    "run json": ["run", "p.jst", "--format", "json"],
    "run dry": ["run", "p.jst", "--dry"],
    "run simulate": ["run", "p.jst", "--simulate"],
    "run refused": ["run", "wrong.jst"],
    "run trace": ["run", "p.jst", "--trace", "new.jsonl"],
    "run -": ["run", "-"],
    "init": ["init", "people.csv", "--describe", SCHEMA, "--out", "new.jst"],
    "init asks": ["init", "people.csv", "--out", "new.jst"],
    "again": ["again"],
    "ask": ["ask", "select count(*) from t", "people.csv"],
    "find": ["find", "count"],
    "check": ["check", "p.jst"],
    "check json": ["check", "p.jst", "--format", "json"],
    "check refused": ["check", "wrong.jst"],
    "plan": ["plan", "p.jst"],
    "evaluate": ["evaluate", "p.jst"],
    "improve": ["improve", "p.jst"],
    "repl": ["repl"],
    "trace": ["trace", "t.jsonl"],
    "trace html": ["trace", "t.jsonl", "--html", "page.html"],
    "fmt": ["fmt", "-"],
    "fmt check": ["fmt", "--check", "p.jst"],
    "lsp": ["lsp"],
    "completion": ["completion", "bash"],
    "textmate": ["textmate"],
    "data check": ["data", "check", "people.csv", "--schema", SCHEMA],
    "data draft": ["data", "draft", "people.csv"],
    "data list": ["data", "list"],
    "data register": ["data", "register", "p", "people.csv", "--schema", SCHEMA, "--protecting", "rows",
                      "--budget", "epsilon 1"],
    "serve": ["serve", "--verify", "log.json"],
    "serve without a home": ["serve"],
    "login": ["login", "127.0.0.1:1", "--token"],
    "run elsewhere": ["run", "p.jst", "--server", "127.0.0.1:1"],
    "explain": ["explain"],
    "explain unknown": ["explain", "NoSuchKind"],
    "misuse": ["chekc"],
    "nothing": [],
}  # fmt: skip

# Reads cases as JSON and runs each in a fork, whose standard files are what the case says before `main` is called.
SERVER = """
import json, os, shutil, sys
import opendp.prelude, jostle.tools.arguments, jostle.tools.repl, jostle.tools.show
from jostle.source import Source
from jostle.tools.entry import main
from jostle.tools.session import Session
Session(cwd=sys.argv[1] + "/files").check(Source("p.jst", open(sys.argv[1] + "/files/p.jst").read()))
folder, cases = sys.argv[1], json.load(sys.stdin)
def put(number, how, path):
    if how == "closed":
        os.close(number)
        for name in {0: ["stdin", "__stdin__"], 1: ["stdout", "__stdout__"], 2: ["stderr", "__stderr__"]}[number]:
            setattr(sys, name, None)
        return
    if how == "broken":
        ours, theirs = os.pipe()
        os.close(ours)
    else:
        theirs = os.open("/dev/full" if how == "full" else path, os.O_RDWR | os.O_CREAT)
    os.dup2(theirs, number)
    os.close(theirs)
ended = []
for number, (words, how) in enumerate(cases):
    place = f"{folder}/{number}"
    shutil.copytree(f"{folder}/files", place)
    child = os.fork()
    if not child:
        os.chdir(place)
        os.environ |= {"XDG_STATE_HOME": place, "XDG_CONFIG_HOME": place, "JOSTLE_LEDGER": place + "/ledger.db"}
        for k in range(3):
            put(k, how[k], f"{folder}/files/in" if k == 0 else f"{place}/{k}")
        sys.exit(main(words))
    ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(ended))
"""
TROUBLES = [
    ("", "full", ""), ("", "closed", ""), ("", "broken", ""), ("", "", "full"), ("", "", "closed"), ("", "", "broken"),
    ("closed", "", ""), ("", "full", "full"), ("", "closed", "closed"), ("closed", "closed", "closed"),
]  # fmt: skip


FEW = [*TROUBLES[:2], *TROUBLES[3:4], *TROUBLES[6:8]]
QUICK = ["--version", "--help", "run", "run refused", "check json", "check refused", "explain", "fmt", "misuse"]


@pytest.mark.parametrize(("names", "troubles", "buffered"), [
    (QUICK, FEW, True), pytest.param([*COMMANDS], TROUBLES, True, marks=pytest.mark.slow),
    pytest.param([*COMMANDS], TROUBLES, False, marks=pytest.mark.slow),
], ids=["some", "all", "all-unbuffered"])  # fmt: skip
def test_every_command_with_every_standard_file_that_fails(
    tmp_path: Path, names: list[str], troubles: list[tuple[str, str, str]], buffered: bool
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "p.jst").write_text(PROGRAM)
    (files / "in").write_text("1 + 1\nrelease n = 2\n")
    (files / "wrong.jst").write_text("prnt(1)\n")
    (files / "log.json").write_text('{"audit": []}')
    (files / "people.csv").write_text("age\n" + "40\n" * 30)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {"PYTHONPATH": str(ROOT)}
    environment |= {} if buffered else {"PYTHONUNBUFFERED": "1"}

    def run(*words: str, **more: Any) -> str:
        done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-m", "jostle", "run", "p.jst", "--trace", "t.jsonl", cwd=files)
    cases = [(name, how) for name in names for how in [("", "", ""), *troubles]]
    ended = json.loads(
        run("-c", SERVER, str(tmp_path), input=json.dumps([(COMMANDS[name], how) for name, how in cases]))
    )
    wrong = []
    for k, ((name, how), status) in enumerate(zip(cases, ended, strict=True)):
        out, err = (file.read_text() if (file := tmp_path / f"{k}/{n}").exists() else "" for n in (1, 2))
        if not any(how):
            usual, writes = status, bool(out)
            assert status in (0, 1, 2), (name, status, err)
            continue
        served = name == "lsp" and how[1] == "closed"  # it cannot begin
        expected = {1} if served or (how[1] and writes) else {usual}
        if how[0] == "closed" and name in ("run -", "fmt", "repl"):  # an empty program is none of what stood there
            expected |= {0, 1}
        told = how[1] in ("", "broken") or how[2] or not (served or writes) or "output cannot be written" in err
        quiet = not any(word in err for word in ("Traceback", "Exception ignored", "internal error"))
        if status not in expected or not told or not quiet:
            wrong.append((name, how, status, expected, err))
    assert not wrong, "\n".join(map(str, wrong))


def test_every_command_is_in_the_table() -> None:
    from jostle.tools.arguments import command_parser

    (commands,) = [action.choices for action in command_parser()._actions if action.dest == "command"]
    assert set(commands or {}) <= {words[0] for words in COMMANDS.values() if words}
