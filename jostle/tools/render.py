"""A diagnostic as text for a person: the line, a caret, what is wrong, and what to write instead; and progress.

Control characters in a program's text never reach the terminal. Progress of long training goes to standard error: a bar
where that is a terminal, else a line every few seconds. It counts steps and nothing else.
"""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from shutil import get_terminal_size
from typing import TextIO

from msgspec import Struct

from jostle.diagnostics import Diagnostic
from jostle.source import Span
from jostle.trace.text import bar, clean, plural

WIDTH = 120
_TAB = 4
_NOTES = 8  # other places that are shown
_ALIKE = 6  # diagnostics that say the same, from which on one is shown
_STYLES = {"kind": "1;31", "warning": "1;33", "mark": "31", "note": "34", "frame": "34", "help": "32", "bold": "1"}


class _Paint(Struct, frozen=True):
    on: bool

    def __call__(self, style: str, text: str) -> str:
        return f"\033[{_STYLES[style]}m{text}\033[0m" if self.on and text else text


def wants_colour(stream: TextIO) -> bool:
    """Colour only on a terminal that can show it, and never where NO_COLOR is set to anything."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int:
    """The columns of a terminal, at least 40; `WIDTH` where the stream is none."""
    if not stream.isatty():
        return WIDTH
    return max(40, get_terminal_size((WIDTH, 24)).columns)


def render_all(diagnostics: Sequence[Diagnostic], *, colour: bool = False, width: int = WIDTH) -> str:
    """Several diagnostics with an empty line between them, and the number of errors where there is more than one. Of
    many that say the same the first one stands for all, with the lines of the others."""
    alike: dict[tuple[str, str, str], list[Diagnostic]] = {}
    for d in diagnostics:
        alike.setdefault((d.kind, d.message, d.help), []).append(d)
    texts = []
    for d in diagnostics:
        first, *others = alike[d.kind, d.message, d.help]
        if d is first or len(others) < _ALIKE:
            texts.append(render(d, colour=colour, width=width))
        if d is first and len(others) >= _ALIKE:
            lines = ", ".join([str(other.span.line) for other in others if other.span is not None][: _ALIKE - 1])
            texts.append(f"  the same in {len(others)} other places, on lines {lines} and so on\n")
    text = "\n".join(texts)
    errors = sum(not d.is_warning for d in diagnostics)
    return text + (f"\n{plural(errors, 'error')}\n" if errors > 1 else "")


def render(diagnostic: Diagnostic, *, colour: bool = False, width: int = WIDTH) -> str:
    """One diagnostic, each line ended; a place whose text is not known is named without its line."""
    paint = _Paint(colour)
    spans = [s for s in (diagnostic.span, *(n.span for n in diagnostic.notes)) if s is not None]
    gutter = max((len(str(s.line)) for s in spans), default=1)
    first, *more = clean(diagnostic.message).split("\n")
    kind = paint("warning", f"warning ({diagnostic.kind})") if diagnostic.is_warning else paint("kind", diagnostic.kind)
    out = [f"{kind}: {paint('bold', first)}", *(" " * (gutter + 3) + line for line in more)]
    here = diagnostic.span
    if here is not None:
        out.append(" " * gutter + paint("frame", " ┌─ ") + clean(str(here)))
        out += _marked(here, diagnostic.label, "^", gutter, width, paint)
    elif diagnostic.label:
        out.append(" " * gutter + paint("frame", " = ") + clean(diagnostic.label))
    # Equal notes are one: ten charges in a loop are made at one place.
    notes = Counter(diagnostic.notes)
    for note, times in list(notes.items())[:_NOTES]:
        near = here is not None and note.span.source.name == here.source.name
        mark, place = (" ·", "") if near else (" ├─ ", clean(str(note.span)))
        out.append(" " * gutter + paint("frame", mark) + place)
        out += _marked(note.span, f"{note.text} ×{times}" if times > 1 else note.text, "-", gutter, width, paint)
    if len(notes) > _NOTES:
        out.append(" " * gutter + paint("frame", " = ") + f"and {len(notes) - _NOTES} other places")
    if diagnostic.help:
        lead = " " * gutter + " = help: "
        first, *more = clean(diagnostic.help).split("\n")
        out.append(" " * gutter + paint("frame", " = ") + paint("help", "help: ") + first)
        out += [" " * len(lead) + line for line in more]
    return "\n".join(line.rstrip() for line in out) + "\n"


def tell(diagnostics: Sequence[Diagnostic]) -> None:
    """Diagnostics on standard error, after what went to standard output before them."""
    if not diagnostics:
        return
    sys.stdout.flush()
    sys.stderr.write(render_all(diagnostics, colour=wants_colour(sys.stderr), width=width_of(sys.stderr)))
    sys.stderr.flush()


def _marked(span: Span, label: str, mark: str, gutter: int, width: int, paint: _Paint) -> list[str]:
    """The line of a place, and the line of marks with its label under it."""
    raw = span.source.line(span.line)
    style = "mark" if mark == "^" else "note"
    label = clean(label).replace("\n", " ")
    if not raw.strip():
        # A place at an empty line, or past the end of the text, or in a text that is not known.
        return [f"{' ' * gutter} {paint('frame', '│')} {paint(style, label)}"] if label else []
    start = min(max(span.column, 1), len(raw) + 1)
    end = span.end_column if span.end_line == span.line else len(raw.rstrip()) + 1
    end = min(max(end, start + 1), len(raw) + 1 if start <= len(raw) else start + 1)
    if span.end_line > span.line:
        label = f"{label} (to line {span.end_line})" if label else f"to line {span.end_line}"
    before, marked, after = (_cells(raw[a:b]) for a, b in ((0, start - 1), (start - 1, end - 1), (end - 1, len(raw))))
    before, marked, after = _cut(before, marked, after, width - gutter - 3)
    line = "".join(before + marked + after)
    under = " " * _columns(before) + paint(style, mark * max(1, _columns(marked)))
    number = paint("frame", f"{str(span.line).rjust(gutter)} │")
    bare = f"{' ' * gutter} {paint('frame', '│')}"
    columns = _columns(before) + max(1, _columns(marked)) + 1 + _columns([label])
    if columns > width - gutter - 3:  # no room beside the marks: below them, as far right as it fits
        indent = " " * max(0, min(_columns(before), width - gutter - 3 - _columns([label])))
        return [f"{number} {line}", f"{bare} {under}", f"{bare} {indent}{paint(style, label)}"]
    return [f"{number} {line}", f"{bare} {under} {paint(style, label)}"]


def _cells(text: str) -> list[str]:
    """Characters as they are shown, tabs as blanks; one list item a character, so that a cut never splits one."""
    return [" " * _TAB if c == "\t" else clean(c) for c in text]


def _columns(cells: Sequence[str]) -> int:
    """The number of terminal columns of the cells: two for wide characters, none for combining marks."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for s in cells for c in s
    )


def _fitting(cells: Sequence[str], room: int) -> Sequence[str]:
    """As many of the first cells as have room in so many columns."""
    used = accumulate(_columns([cell]) for cell in cells)
    return cells[: next((at for at, columns in enumerate(used) if columns > room), len(cells))]


def _cut(before: list[str], marked: list[str], after: list[str], room: int) -> tuple[list[str], list[str], list[str]]:
    """Leaves out what does not fit in `room` columns, keeping the start of the marked part in sight."""
    if _columns(before) + _columns(marked) + _columns(after) <= room:
        return before, marked, after
    keep = max(room // 3, 8)
    if _columns(before) > keep:
        # The marked part may use what the start of the line leaves free.
        keep = max(keep, room - 2 - _columns(marked) - min(_columns(after), room // 3))
        before = ["…", *_fitting(before[::-1], keep - 1)[::-1]]
    for part, used in ((marked, _columns(before)), (after, _columns(before) + _columns(marked))):
        left = room - used - (part is marked and bool(after))
        if _columns(part) > left:
            part[:] = [*_fitting(part, left - 1), "…"]
            if part is marked:
                return before, marked, []
    return before, marked, after


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
