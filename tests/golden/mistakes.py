"""Typical mistakes of people who come from SQL, Python, pandas or R, and what Jostle says of each, graded.

`mistakes/` holds a file a language or theme. An entry is a title, the program (or a line `$ jostle …`), a rule with
what is to be said, and the program as it should be:

    ======== a chained comparison
    if 5 < n < 9: print("some")
    -------- 1:10 | comparisons do not chain
    if 5 < n and n < 9: print("some")

The rule has the place (line and column), words of the reason and, where it is no line to write, words of the way out. A
program without a source of its own follows `BEFORE`, whose lines do not count. A message is graded by three questions:

- **place**: does it stand where the mistake is?
- **reason**: are the words of the reason in it?
- **way out**: does its help name something, in backquotes, that stands in the program as it should be (a function
  with its parameters, for one that is called there)? That program passes `jostle check`.

A is yes to all three, B to two, C to fewer; F is a mistake of which nothing is said before something is spent. To see
the grades:

    python -m tests.golden.mistakes
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from diagnostics import place as place_of_diagnostics

HERE = Path(__file__).resolve().parent / "mistakes"
BEFORE = (
    'private people = table("people.csv") described by {age: 0..99, sex: {"Female", "Male"}, '
    'city: {"Ames", "Bergen", "Cork"}, hours: 0..99, person: text} protecting rows budget epsilon 1\n'
    'private visits = table("visits.csv") described by {city: text, day: date} protecting rows budget epsilon 1\n'
    'towns = table("towns.csv")\n'
    "n = {{ select count(*) from people with epsilon 0.1 }}\n"
    "g = {{ select count(*) as n, avg(hours) as hours from people groupby city with epsilon 0.1 }}\n"
    "xs = [3, 1, 2]\n"
)
OWN = re.compile(r"^(privat\w* [pc] =|[pt] = table)", re.MULTILINE)
FILES = {
    "semicolons.csv": "age;city\n3;Ames\n",
    "people.xlsx": "PK",
    "folder/part.csv": "age\n3\n",
    "count.jst": 'param share = 0.1\nprivate people = bound("people") described by {age: 0..99} protecting rows '
    "budget epsilon 1\nm = [{{ select count(*) from people with epsilon share }}]\nrelease m\n",
}


@dataclass(frozen=True)
class Mistake:
    """An entry; `way` is empty where the way out is held against `right`, the program as it should be."""

    title: str
    program: str
    place: str
    reason: str
    way: str
    right: str

    @property
    def before(self) -> str:
        return "" if OWN.search(self.program) else BEFORE


@dataclass(frozen=True)
class Said:
    """What Jostle said of a mistake: how many things, where, what; and what a run had spent by then."""

    status: int
    many: int
    place: str
    message: str
    help: str
    spent: float
    text: str

    def grade(self, mistake: Mistake) -> str:
        """A, B, C or F."""
        if self.many == 0 or self.status == 0 or self.spent:
            return "F"
        reason = mistake.reason in self.message
        yes = [self.place == mistake.place, reason, self._leads_to(mistake)]
        return "CCBA"[sum(yes)]

    def _leads_to(self, mistake: Mistake) -> bool:
        if mistake.way:
            return mistake.way in self.help
        right, wrong = _plain(mistake.right), _plain(mistake.program)
        pieces = re.findall(r"`([^`]+)`|(\{\{ .*? \}\})", self.help)
        for piece in (_plain(one or other) for one, other in pieces):
            called = re.fullmatch(r"(\w+\()\w+[ ,)].*", piece)
            if (piece in right and piece not in wrong) or (called and "write" in self.help and called[1] in right):
                return True
            if "did you mean" in self.help and re.search(rf"(?<!\w){re.escape(piece)}(?!\w)", right):
                return True
        return False


def _plain(text: str) -> str:
    return " ".join(text.split())


def mistakes() -> dict[str, list[Mistake]]:
    """By file (without its ending), in order."""
    return {path.stem: list(_entries(path)) for path in sorted(HERE.glob("*.txt"))}


def _entries(path: Path) -> Iterator[Mistake]:
    for block in ("\n" + path.read_text(encoding="utf-8")).split("\n======== ")[1:]:
        title, _, rest = block.partition("\n")
        program, _, rest = rest.partition("\n-------- ")
        rule, _, right = rest.partition("\n")
        place, reason, way, *_ = [*([""] * program.startswith("$")), *rule.split(" | "), ""]
        yield Mistake(title, program.rstrip("\n") + "\n", place, reason, way, right.rstrip("\n") + "\n")


@contextlib.contextmanager
def place() -> Iterator[Path]:
    """A folder with the files that the programs name, as the working directory."""
    with place_of_diagnostics() as folder:
        (folder / "folder").mkdir()
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        with contextlib.closing(sqlite3.connect(folder / "shop.db")) as shop:
            shop.executescript("create table orders (age integer); create table customers (age integer)")
        yield folder


def said_of(mistake: Mistake, folder: Path) -> Said:
    """What `jostle check` says, and, where it finds nothing, `jostle run`; of a command line what that says."""
    if mistake.program.startswith("$ jostle "):
        status, _, err = command(shlex.split(mistake.program)[2:])
        message, _, help = err.partition("= help: ")
        both = (message, help or message)
        return Said(status, 1 if err.strip() else 0, "", *both, 0.0, err)
    (folder / "program.jst").write_text(mistake.before + mistake.program, encoding="utf-8")
    status, out, err = command(["check", "program.jst", "--format", "json"])
    if status == 0:
        status, out, err = command(["run", "program.jst", "--format", "json"])
    told = json.loads(out) if out.strip() else {}
    spent = sum(float(unit["spent"]) for source in told.get("budget", {}).values() for unit in source.values())
    errors = told.get("errors") or [told["error"]] if told.get("error") else []
    first = errors[0] if errors else {}
    at = f"{first.get('line', 0) - mistake.before.count(chr(10))}:{first.get('column', 0)}"
    return Said(status, len(errors), at, first.get("message", ""), first.get("help", ""), spent, out + err)


def command(words: list[str]) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command line."""
    from jostle.tools.entry import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    return status, out.getvalue(), err.getvalue()


def faults_of(mistake: Mistake, folder: Path) -> list[str]:
    """What `check` says of the program as it should be."""
    from jostle.source import Source
    from jostle.tools.session import Session

    return [fault.message for fault in Session(cwd=folder).check(Source("right.jst", mistake.before + mistake.right))]


def table() -> None:
    """Prints the grades of each file, and each message that is not of the best."""
    totals: Counter[str] = Counter()
    with place() as folder:
        for name, entries in mistakes().items():
            grades = [(said_of(mistake, folder), mistake) for mistake in entries]
            counts = Counter(said.grade(mistake) for said, mistake in grades)
            totals += counts
            print(f"{name}: " + ", ".join(f"{counts[grade]} {grade}" for grade in "ABCF"))
            for said, mistake in grades:
                if said.grade(mistake) != "A":
                    print(f"  {said.grade(mistake)} {mistake.title}: {said.place} {said.message} | {said.help}")
    print(f"all {sum(totals.values())}: " + ", ".join(f"{totals[grade]} {grade}" for grade in "ABCF"))


if __name__ == "__main__":
    table()
