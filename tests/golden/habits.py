"""Habits of other languages, one or two lines each, and how well `jostle check` leads out of them.

`habits/` holds two lists, `a.txt` for mending and `b.txt` for judging alone, which a hash of each mistake's text told
apart before any message was looked at, and two of whole small programs, told apart by odd and even places: `c.txt` for
mending, `d.txt` for judging alone. All follow `before.jst`: four private tables, a public one and two answers. An
entry is the mistake, and after `> ` the program as it should be; or after `! ` words that must be said of what nothing
here does so. Entries stand under the language that they come from:

    # pandas

    r = orders["price"].max()
    > r = {{ select max(price) from orders with epsilon 0.1 }}

What is said is graded by what comes of it. What the help has in backquotes is put in the place of the line that is
named, or of what is marked there; where another line of the mistake is refused then, that is followed too.

- **top**: the program that comes of it checks, and is the one that it should be: it costs the same, measures the same
  and has the same answers on simulated rows. Of what nothing does so: the help says that plainly.
- **middle**: the line is right, and no way out is quoted, or what is quoted is no line.
- **misleads**: a line that does not check or means something else, or a place outside the mistake.
- **passes**: nothing is said.

What is right as it stands is left out. To see the grades, with each message of list A:

    python -m tests.golden.habits [a|b|c|d] [-q]
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jostle.diagnostics import Diagnostic
from jostle.source import Source
from jostle.tools.session import Session

HERE = Path(__file__).resolve().parent / "habits"
BEFORE = (HERE / "before.jst").read_text(encoding="utf-8").splitlines()
GRADES = ("top", "middle", "misleads", "passes", "right")
_PLAINLY = re.compile(r"\b(?:nothing|no|not|cannot|never|none)\b")
_LINE = re.compile(r"write|without|did you mean|leave|add|the way is")


@dataclass(frozen=True)
class Habit:
    """A mistake, its language, and the program as it should be; or `words`, a pattern, where nothing does so."""

    origin: str
    lines: tuple[str, ...]
    right: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class Told:
    """A grade, and the first message, on one line."""

    grade: str
    message: str


def habits(name: str) -> list[Habit]:
    """The entries of a list, `a` or `b`, in order."""
    return list(_entries((HERE / f"{name}.txt").read_text(encoding="utf-8")))


def _entries(text: str) -> Iterator[Habit]:
    origin = ""
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        if lines[0].startswith("# "):
            origin = lines[0][2:]
            continue
        marked = {mark: tuple(line[2:] for line in lines if line.startswith(f"{mark} ")) for mark in ">!"}
        wrong = tuple(line for line in lines if not line.startswith(("> ", "! ")))
        yield Habit(origin, wrong, marked[">"], "".join(marked["!"]))


def program(lines: tuple[str, ...]) -> str:
    return "\n".join([*BEFORE, *lines, ""])


def faults_of(lines: tuple[str, ...]) -> list[Diagnostic]:
    return Session(cwd=HERE).check(Source("program.jst", program(lines)))


@cache
def measured(text: str, folder: Path) -> tuple[object, ...]:
    """What a program costs, measures and answers on simulated rows; empty where it does not run."""
    result = Session(simulate=1, cwd=folder, look=False).attempt(Source("program.jst", text))
    if not result.ok:
        return ()
    asked = sorted(
        f"{e.name} {e.fields.get('mechanism')} {e.fields.get('epsilon')} {e.fields.get('scale')} {e.fields['sources']}"
        for e in result.events
        if e.kind == "measure"
    )
    printed = " ".join(re.sub(r"\b[A-Za-z_]\w*\d\w*", "", line) for line in result.output)
    return tuple(asked), tuple(re.findall(r"-?\d[\d.,e+-]*|true|false", printed)), str(result.budget)


def meaning(lines: tuple[str, ...]) -> tuple[object, ...]:
    """The same of lines, which print what they end with."""
    names = [m[1] for line in reversed(lines) if (m := re.match(r"(\w+) *= ", line))]
    target = next((name for name in names if f"private {name} =" not in "\n".join(BEFORE)), "")
    return measured(program((*lines, f"print({target})") if target else lines), HERE)


def told(habit: Habit) -> Told:
    """How well the mistake is told."""
    faults = faults_of(habit.lines)
    if not faults:
        same = habit.right and meaning(habit.lines) == meaning(habit.right)
        return Told("right" if same else "passes", "")
    first = faults[0]
    message = f"{first.message} | {first.help}"
    row = first.span.line - len(BEFORE) if first.span is not None else 0
    if not 0 < row <= len(habit.lines):
        return Told("misleads", f"line {row}: {message}")
    if habit.words:
        plain = _PLAINLY.search(message) and re.search(habit.words, message, re.IGNORECASE)
        misled = shows_a_line(first.help) and not (plain and _clean(habit.lines, first))
        return Told("misleads" if misled else "top" if plain else "middle", message)
    return Told(_followed(habit.lines, habit.right, first, 3), message)


def _clean(lines: tuple[str, ...], fault: Diagnostic) -> bool:
    return any(not faults_of(new) for new in _mended(lines, fault))


def _followed(lines: tuple[str, ...], right: tuple[str, ...], fault: Diagnostic, most: int) -> str:
    """The grade of what comes of following a message, and what is said then."""
    grades = []
    for new in _mended(lines, fault):
        others = faults_of(new)
        rest = len(lines) - (fault.span.line - len(BEFORE) if fault.span else 0)
        if not others:
            grades.append("top" if meaning(new) == meaning(right) else "misleads")
        elif most > 1 and others[0].span and others[0].span.line > len(BEFORE) + len(new) - rest:
            grades.append(_followed(new, right, others[0], most - 1))
        if "top" in grades:
            return "top"
    shown = shows_a_line(fault.help) and "middle" not in grades
    return "misleads" if "misleads" in grades or shown else "middle"


def quoted(help: str) -> list[str]:
    return [piece for piece in re.findall(r"`([^`]+)`", help) if "…" not in piece and not piece.startswith("jostle ")]


def shows_a_line(help: str) -> bool:
    """Whether a help says what to write, and quotes more than a word of it."""
    return _LINE.match(help) is not None and any(re.search(r"[ (\[{]", piece) for piece in quoted(help))


def _mended(lines: tuple[str, ...], fault: Diagnostic) -> Iterator[tuple[str, ...]]:
    """The lines with what a help quotes in place of the line that is refused, of what is marked there, or of all."""
    assert fault.span is not None
    at, pieces = fault.span.line - len(BEFORE) - 1, quoted(fault.help)
    if not 0 <= at < len(lines):
        return
    line = lines[at]
    start, end = fault.span.column - 1, fault.span.end_column - 1 if fault.span.end_line == fault.span.line else None
    for first in range(len(pieces)):
        for last in range(len(pieces), first, -1):
            new = tuple(part for piece in pieces[first:last] for part in piece.split("\n"))
            yield (*lines[:at], *new, *lines[at + 1 :])
            if len(lines) > 1:
                yield new
            if last == first + 1:
                yield (*lines[:at], line[:start] + new[0] + (line[end:] if end is not None else ""), *lines[at + 1 :])
                yield (*lines[:at], f"{line} {new[0]}", *lines[at + 1 :])


def table(names: str, *, shows: bool) -> None:
    """Prints how many of each grade a list has, by language, and with `shows` each message below the top."""
    for name in names:
        counts: dict[str, Counter[str]] = {}
        for habit in habits(name):
            said = told(habit)
            counts.setdefault(habit.origin, Counter())[said.grade] += 1
            if shows and said.grade not in ("top", "right"):
                print(f"{said.grade}: {' / '.join(habit.lines)}\n    {said.message}")
        whole = sum(counts.values(), Counter())
        for origin, count in [*counts.items(), ("all", whole)]:
            print(f"{name} {origin}: " + ", ".join(f"{count[grade]} {grade}" for grade in GRADES))
        many = whole.total() - whole["right"]
        wrong = whole["misleads"] + whole["passes"]
        print(f"{name}: top {whole['top'] / many:.0%}, misleads or passes {wrong / many:.1%}")


if __name__ == "__main__":
    table(sys.argv[1] if len(sys.argv) > 1 else "a", shows="-q" not in sys.argv)
