"""Quick fixes: what the help of a fault says to write, offered where it mends the program.

A help has its replacements in backquotes: "did you mean `age`?", "write `people.city` for the column", "`use trees`".
Each is tried, in place of what is underlined, of its line, after it, or as a first line, and is offered where a check
then finds fewer faults. So what is offered is known to help, and words that only name something are offered nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from jostle.diagnostics import Diagnostic

_QUOTED = re.compile(r"`([^`]+)`")
_MOST = 4  # replacements of one help that are tried


class Fix(Struct, frozen=True):
    """A change: what stands between two places (line and column, from 0) becomes `new`; `title` is for people."""

    title: str
    start: tuple[int, int]
    end: tuple[int, int]
    new: str


def fixes(text: str, fault: Diagnostic, faults: Sequence[Diagnostic], check: Callable[[str], int]) -> Iterator[Fix]:
    """The changes that a fault's help proposes and that leave fewer than `faults`; `check` counts those of a text."""
    if fault.span is None:
        return
    start = (fault.span.line - 1, fault.span.column - 1)
    end = (fault.span.end_line - 1, fault.span.end_column - 1)
    line = fault.span.source.line(fault.span.line)
    indented, ends = len(line) - len(line.lstrip()), len(line)
    for new in dict.fromkeys(_QUOTED.findall(fault.help)[:_MOST]):
        whole = Fix(f"change to `{new}`", (start[0], indented), (start[0], ends), new)
        tries = [Fix(f"change to `{new}`", start, end, new), whole, Fix(f"add `{new}`", end, end, f" {new}")]
        if new.startswith("use "):
            tries = [Fix(f"add `{new}`", (0, 0), (0, 0), f"{new}\n")]
        for fix in tries:
            if check(changed(text, fix)) < len(faults):
                yield fix
                break


def changed(text: str, fix: Fix) -> str:
    """A text with a change made."""
    lines = text.split("\n")
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    start, end = (offsets[line] + column for line, column in (fix.start, fix.end))
    return text[:start] + fix.new + text[end:]
