"""Progress of long training on standard error: a bar where that is a terminal, else a line every few seconds.

Counts steps and nothing else: no names of data, no values, no estimates that private work could move.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TextIO

from jostle.trace.text import bar

Progress = Callable[[str, int, int], None]
_EVERY = 0.1  # seconds between two drawings
_SILENT = 0.4  # seconds before the first one, so that short work leaves no trace
_LINES = 3.0  # seconds to the first line of a log, and between two


class Bar:
    """Called with (label, done, total); draws on one line and wipes it at the end (`close`, or done = total)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._width = stream, 0
        self._began: dict[str, float] = {}  # by label: a loop may hold a training
        self._last = time.monotonic()

    def __call__(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        began = self._began.setdefault(label, now)
        if done >= total:
            del self._began[label]
            self.close()
        elif now - began >= _SILENT and now - self._last >= _EVERY:
            self._last = now
            text = f"{label}  {bar(done / total, 30)}  {done} of {total}{_left(now - began, done, total)}"
            text = text[: get_terminal_size().columns - 1]  # one line, which can be wiped
            self._stream.write("\r" + text + " " * max(0, self._width - len(text)))
            self._stream.flush()
            self._width = len(text)

    def close(self) -> None:
        """Wipes the line."""
        if self._width:
            self._stream.write("\r" + " " * (self._width + 2) + "\r")  # 2: the terminal's own `^C`
            self._stream.flush()
            self._width = 0


class Log:
    """Called as a `Bar` is; writes whole lines, for a file or a pipe, and a last one where there was a first."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began: dict[str, float] = {}
        self._lines: dict[str, float] = {}  # by label: when the last line was written

    def __call__(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        began = self._began.setdefault(label, now)
        if done >= total:
            del self._began[label]
            if self._lines.pop(label, None) is not None:
                self._say(f"{label}: {total} of {total}, {now - began:.0f} s in all")
        elif now - self._lines.get(label, began) >= _LINES:
            self._lines[label] = now
            self._say(f"{label}: {done} of {total}{_left(now - began, done, total)}")

    def close(self) -> None:
        """Leaves what was written as it is."""

    def _say(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


def _left(passed: float, done: int, total: int) -> str:
    """`, about 2 min left`, if it goes on as it did."""
    if not done:
        return ""
    seconds = passed / done * (total - done)
    return f", about {seconds:.0f} s left" if seconds < 90 else f", about {seconds / 60:.0f} min left"


@contextmanager
def progress_on(stream: TextIO) -> Iterator[Bar | Log]:
    """Gives a bar for a terminal, which is wiped at the end, and a log for anything else."""
    progress = Bar(stream) if stream.isatty() else Log(stream)
    try:
        yield progress
    finally:
        progress.close()
