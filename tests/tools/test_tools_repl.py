"""The REPL: where entries end, its commands, and that nothing that goes wrong ends it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jostle.tools import terminal
from jostle.tools.repl import prompt

Say = Callable[[str], tuple[str, str]]


@pytest.fixture
def typed(
    faked: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Feeds a text to `jostle repl` over a pipe and gives what it said; every line is an entry of its own."""
    from jostle.tools.entry import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jostle.syntax.incomplete", lambda text: text.count("(") > text.count(")"), raising=False)

    def call(text: str, *words: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        assert main(["repl", *words]) in (0, 1)
        told = capsys.readouterr()
        return told.out, told.err

    return call


def test_values_prints_and_refusals(typed: Say) -> None:
    out, err = typed("value 42\nprint hello\nrefuse BadAmount\nrelease n 7\nprint after\n")
    assert out == "42\nhello\nn = 7\nafter\n"
    assert err.startswith("BadAmount: as ordered\n  ┌─ entry 3:1:1\n1 │ refuse BadAmount\n")


def test_faults_and_interrupts_do_not_end_the_session(typed: Say) -> None:
    out, err = typed("crash\ninterrupt\nprint still here\n")
    assert out.endswith("still here\n") and "(ZeroDivisionError)" in err and "4711" not in err


def test_commands(typed: Say) -> None:
    Path("p.jst").write_text("print from a file\n")
    entries = (
        ":help\n:budget\nspend people 0.4\n:budget\nname x\n:names\nchoose\n:trace\n:load p.jst\n:load no.jst\n:lod\n"
    )
    out, err = typed(entries + ":time\nprint timed\n:quit\nprint never\n")
    assert ":load FILE" in out and "no private source was declared" in out
    assert "ε 0.4 of 1 spent, 0.6 left" in out and "\nx\n" in out and "pick chose A" in out
    assert "from a file" in out and "there is no program `no.jst`" in err and "did you mean `load`?" in out
    assert out.rstrip().endswith(" s") and "never" not in out


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("value 1\n", 0),
        ("refuse BadAmount\nvalue 1\n", 1),
        (":load no.jst\n", 1),
        ("exit\nrefuse BadAmount\n", 0),
        ("quit()\n", 0),
    ],
)
def test_over_a_pipe_the_status_says_whether_anything_was_refused(
    text: str, status: int, typed: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jostle.tools.entry import main

    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["repl"]) == status


@pytest.mark.parametrize("asked", [":help dawa", ":type dawa", "help(dawa)", "dawa?", "?dawa"])
def test_a_name_of_the_library_is_documented(asked: str, typed: Say) -> None:
    out, _ = typed(asked + "\n")
    assert out.startswith("dawa(db, queries)\n") and "a quarter of epsilon" in out and "dawa(ages" in out
    assert "of `use histograms`; costs what is left of the allotment" in " ".join(out.split())


def test_what_nobody_defined_has_a_neighbour(typed: Say) -> None:
    assert "did you mean `dawa`?" in typed(":type dava\n")[0]
    assert typed("value 7\n:names\nhelp\n")[0].startswith("7\nnothing has been defined\nAn entry is")


def test_a_file_is_run_first(typed: Callable[..., tuple[str, str]]) -> None:
    Path("p.jst").write_text("print first\n")
    assert typed("print second\n", "p.jst")[0] == "first\nsecond\n"


def test_the_prompt_shows_what_is_left() -> None:
    one = {"epsilon": {"total": "1", "spent": "0.4"}}
    assert prompt({}) == "jostle › "
    assert prompt({"adult": one}) == "adult ε 0.60/1.00 › "
    assert prompt({"a": {"rho": {"total": "2", "spent": "0.125"}}}) == "a ρ 1.875/2.00 › "
    assert prompt({"a": one, "b": one, "c": one, "d": one}) == "a ε 0.60/1.00  b ε 0.60/1.00 +2 › "


@pytest.mark.parametrize(
    ("lines", "entries"),
    [
        (["x = 1", "y = 2"], ["x = 1", "y = 2"]),
        (["def f(x):", "    return x", "y = 2"], ["def f(x):\n    return x", "y = 2"]),
        (["if a:", "    b()", "else:", "    c()", "d()"], ["if a:\n    b()\nelse:\n    c()", "d()"]),
        (["f = Option (d) {", "return 1", "}", "g()"], ["f = Option (d) {\nreturn 1\n}", "g()"]),
        (
            ['private a = table("a")', "    described by {}", "protecting rows", "budget epsilon 1", "budget = 3"],
            ['private a = table("a")\n    described by {}\nprotecting rows\nbudget epsilon 1', "budget = 3"],
        ),
        (["", "  ", "x = {", "1}", "{{ select", "a from b }}"], ["x = {\n1}", "{{ select\na from b }}"]),
        ([":load a.jst", "  x"], [":load a.jst", "  x"]),
        (["elsewhere = 1", "x.y", ".z"], ["elsewhere = 1", "x.y\n.z"]),
    ],
)
def test_entries_from_a_pipe(lines: list[str], entries: list[str]) -> None:
    assert list(terminal.over_pipe(f"{line}\n" for line in lines)) == entries


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("x = 1", False),
        ("x = {", True),
        ("def f(x):", True),
        ("def f(x):\n    return x", True),
        ("def f(x):\n    return x\n", False),
        ("def f(x):\n    return x\n    ", False),
        ('private a = table("a")', True),
        ('private a = table("a")\n    budget epsilon 1', False),
        ('private a = table("a")\n', False),
        (":load {", False),
    ],
)
def test_what_needs_another_line(text: str, more: bool) -> None:
    assert terminal.unfinished(text) is more


def test_indentation_follows_the_line_before() -> None:
    assert [terminal.indent_after(s) for s in ("x", "if a:", "  f {", "    y", "   ", "{{")] == [
        "", "    ", "      ", "    ", "", "",
    ]  # fmt: skip


def test_the_history_is_this_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    path = terminal.history_path()
    assert path == tmp_path / "cache" / "history" and path.stat().st_mode & 0o077 == 0
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "file" / "below"))
    assert terminal.history_path() is None


def keys(text: str, monkeypatch: pytest.MonkeyPatch, cache: Path) -> list[str]:
    """The entries that come of pressing these keys at a terminal."""
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    monkeypatch.setenv("JOSTLE_CACHE", str(cache))
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(text)
        return list(terminal.at_terminal(lambda: "jostle › ", lambda: ["people"]))


def test_keys_at_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctrl_c, ctrl_d, enter = "\x03", "\x04", "\r"
    typed = f"x = 1{enter}def f(x):{enter}return x{enter}{enter}half{ctrl_c}:budget{enter}{ctrl_d}"
    assert keys(typed, monkeypatch, tmp_path) == ["x = 1", "def f(x):\n    return x\n    ", ":budget"]
    assert "+x = 1" in (tmp_path / "history").read_text()
    assert keys(f"\x1b[A{enter}{ctrl_d}", monkeypatch, tmp_path) == [":budget"]
