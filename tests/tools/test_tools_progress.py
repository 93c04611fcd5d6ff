"""Progress: counts only; a bar that is drawn late and wiped on a terminal, lines every few seconds elsewhere."""

from __future__ import annotations

import io

import pytest

from jostle.tools import render


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_has_lines_where_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(render.time, "monotonic", lambda: now)
    stream = io.StringIO()
    with render.progress_on(stream) as log, render.progress_on(Terminal()) as bar:
        assert isinstance(bar, render.Bar)
        log("short", 1, 2)
        now = 2.0
        log("short", 2, 2)
        assert stream.getvalue() == ""
        for done in range(1, 11):
            log("training", done, 10)
            now += 1.0
    assert stream.getvalue().splitlines() == [
        "training: 4 of 10, about 4 s left", "training: 7 of 10, about 3 s left", "training: 10 of 10, 9 s in all",
    ]  # fmt: skip


def test_short_work_leaves_no_trace_and_long_work_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(render.time, "monotonic", lambda: now)
    stream = Terminal()
    bar = render.Bar(stream)
    bar("training", 1, 4)
    bar("training", 4, 4)
    assert stream.getvalue() == ""
    bar("again", 1, 4)
    now = 1.0
    bar("again", 2, 4)
    assert "again" in stream.getvalue() and "2 of 4, about 1 s left" in stream.getvalue()
    bar("again", 4, 4)
    last = stream.getvalue().split("\r")[-2]
    assert last.strip() == "" and stream.getvalue().endswith("\r")
