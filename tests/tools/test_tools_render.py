"""Diagnostics as a person sees them, word for word."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from jostle.diagnostics import Diagnostic, Note
from jostle.source import Source, Span
from jostle.tools import render as render_
from jostle.tools.render import render, render_all, wants_colour
from jostle.trace.text import clean


def span(text: str, line: int, column: int, end: int, end_line: int | None = None, name: str = "a.jst") -> Span:
    return Span(Source(name, text), line, column, end_line or line, end)


def test_the_page_of_the_design() -> None:
    source = Source("programs/first.jst", "\n\nprivate adult = table()\n\n\n\nprint(adult)\n")
    said = render(
        Diagnostic(
            "PrivateValue",
            "`adult` is private and cannot be printed",
            Span(source, 7, 7, 7, 12),
            "private since line 3",
            "measure it: {{ select count(*) from adult with epsilon 0.1 }}",
        )
    )
    assert said == (
        "PrivateValue: `adult` is private and cannot be printed\n"
        "  ┌─ programs/first.jst:7:7\n"
        "7 │ print(adult)\n"
        "  │       ^^^^^ private since line 3\n"
        "  = help: measure it: {{ select count(*) from adult with epsilon 0.1 }}\n"
    )


def test_notes_here_and_in_another_file() -> None:
    text = "\n".join(f"line{n}" for n in range(1, 12))
    notes = (Note(span(text, 3, 1, 6), "began here"), Note(span("use x", 1, 5, 6, name="b.jst"), "called from here"))
    assert render(Diagnostic("TypeError", "odd", span(text, 11, 5, 7), notes=notes)) == (
        "TypeError: odd\n   ┌─ a.jst:11:5\n11 │ line11\n   │     ^^\n   ·\n 3 │ line3\n   │ ----- began here\n"
        "   ├─ b.jst:1:5\n 1 │ use x\n   │     - called from here\n"
    )


def test_equal_notes_are_one_and_many_are_cut() -> None:
    text = "\n".join(f"line{n}" for n in range(1, 30))
    same = Note(span(text, 2, 1, 6), "charged here")
    said = render(Diagnostic("BudgetExceeded", "m", span(text, 1, 1, 6), notes=(same,) * 10))
    assert said.count("charged here") == 1 and "----- charged here ×10" in said
    notes = tuple(Note(span(text, n, 1, 6), "charged here") for n in range(2, 22))
    said = render(Diagnostic("BudgetExceeded", "m", span(text, 1, 1, 6), notes=notes))
    assert said.count("charged here") == 8 and "and 12 other places" in said


def test_wide_characters_and_tabs_keep_the_caret_under_the_word() -> None:
    assert "\n1 │ 名前 = 価値\n  │        ^^^^\n" in render(Diagnostic("NameError", "m", span("名前 = 価値", 1, 6, 8)))
    assert "\n1 │     x\n  │     ^\n" in render(Diagnostic("NameError", "m", span("\tx", 1, 2, 3)))


@pytest.mark.parametrize("at", [1, 30, 240, 395])
def test_long_lines_are_cut_around_the_caret(at: int) -> None:
    text = ("abcd " * 80)[:400]
    lines = render(Diagnostic("NameError", "m", span(text, 1, at, at + 4)), width=60).split("\n")
    shown, carets = lines[2], lines[3]
    assert len(shown) <= 60 and "…" in shown
    first = carets.index("^")
    assert shown[first : first + 4] == text[at - 1 : at + 3]


@pytest.mark.parametrize("at, end", [(1, 2), (8_000, 8_001), (4_000, 12_000), (15_999, 16_000)])
def test_the_work_for_a_line_grows_as_the_line(monkeypatch: pytest.MonkeyPatch, at: int, end: int) -> None:
    """A mistake in a line of 100,000 characters kept a terminal, a notebook or a log busy for minutes."""
    counted, cells, text = render_.__dict__["_columns"], 0, "x" * 16_000

    def counting(some: Sequence[str]) -> int:
        nonlocal cells
        cells += len(some)
        return int(counted(some))

    monkeypatch.setattr(render_, "_columns", counting)
    said = render(Diagnostic("NameError", "no", span(text, 1, at, end)), width=80)
    assert max(map(len, said.split("\n"))) <= 80 and cells < 20 * len(text)


def test_a_mark_longer_than_the_line_is_cut() -> None:
    lines = render(Diagnostic("NameError", "m", span("x" * 300, 1, 1, 301)), width=60).split("\n")
    assert len(lines[2]) <= 60 and lines[2].endswith("…") and len(lines[3]) <= 60


def test_places_over_several_lines_at_the_end_and_none_at_all() -> None:
    text = "x = (1 +\n  2\n"
    assert "1 │ x = (1 +\n  │     ^^^^ to line 2\n" in render(Diagnostic("TypeError", "m", span(text, 1, 5, 4, 2)))
    assert render(Diagnostic("SyntaxError", "m", span(text, 3, 1, 1), "the end")).endswith("a.jst:3:1\n  │ the end\n")
    assert "x = (1 +\n  │         ^\n" in render(Diagnostic("SyntaxError", "m", span(text, 1, 99, 99)))
    assert render(Diagnostic("DataError", "no file", help="one\ntwo")) == (
        "DataError: no file\n  = help: one\n          two\n"
    )


def test_several_are_counted() -> None:
    one = Diagnostic("DataError", "m")
    assert render_all([one]) == "DataError: m\n" and render_all([one, one]).endswith("\n\n2 errors\n")


def test_control_characters_never_reach_the_terminal() -> None:
    text = "print('\x1b[31m\x9b')"
    said = render(Diagnostic("NameError", "no \x1b]0;x\x07", span(text, 1, 7, 9), "\x1b[1m", "\x7f\x08"))
    assert not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 for c in said)
    assert clean("a\tb\nc") == "a\tb\nc"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal()) and not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())


def test_colour_changes_nothing_but_colour() -> None:
    import re

    found = Diagnostic("NameError", "m", span("abc", 1, 1, 4), "label", "do", (Note(span("abc", 1, 2, 3), "n"),))
    painted = render(found, colour=True)
    assert "\x1b[" in painted and re.sub(r"\x1b\[[\d;]*m", "", painted) == render(found)


def test_what_is_said_a_hundred_times_is_shown_once() -> None:
    source = Source("p.jst", "print(a)\n" * 100 + "print(b)\n")
    same = [Diagnostic("NameError", "`a` is not defined", Span(source, i, 7, i, 8)) for i in range(1, 101)]
    text = render_all([*same, Diagnostic("NameError", "`b` is not defined", Span(source, 101, 7, 101, 8))])
    assert text.count("`a` is not defined") == 1 and "in 99 other places, on lines 2, 3, 4, 5, 6 and so on" in text
    assert "`b` is not defined" in text and text.endswith("101 errors\n")
    other = Diagnostic("NameError", "`c` is not defined", Span(source, 2, 1, 2, 2))
    text = render_all([same[0], other, *same[2:7]])
    assert [line.split("`")[1] for line in text.splitlines() if "is not defined" in line] == ["a", "c", *"aaaaa"]
    assert "in 6 other places, on lines 2, 3, 4, 5, 6 and so on\n" in render_all(same[:7])
