"""The progress bar: counts only, drawn late, wiped at the end, and absent where there is no terminal."""

from __future__ import annotations

import io

import pytest

from jostle.tools import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_bar_without_a_terminal() -> None:
    with progress.progress_on(io.StringIO()) as none, progress.progress_on(Terminal()) as bar:
        assert none is None and bar is not None


def test_short_work_leaves_no_trace_and_long_work_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    stream = Terminal()
    bar = progress.Bar(stream)
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
