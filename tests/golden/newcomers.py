"""Mistakes of the first day: what an analyst, a user of pandas or R, and a student of statistics write.

They were written from the README, the first pages and the language's page alone, and frozen before any message to
them was looked at. `newcomers.txt` has right programs, each under `## NAME`. After `@ ` stands what of it is written
otherwise; each entry below is the mistake in its place, after `> ` what should stand there if that is another text,
and after `! ` words that must be said where several things may be meant. A hash of the mistake halves them. The grades
are those of `declared`; commands have words alone:

    python -m tests.golden.newcomers sealed         # `mend -v` shows each message below the top, `-a` every message
    python -m tests.golden.newcomers fresh          # 141 others, of other programs, frozen before these were mended
    python -m tests.golden.newcomers roles          # 164 of an analyst, a researcher, a data owner and an engineer
"""

from __future__ import annotations

import difflib
import hashlib
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from declared import FOLDER, Entry, told

HERE = Path(__file__).parent
TEXT, LATER, *OTHERS = (
    (HERE / f"newcomers{of}.txt").read_text(encoding="utf-8") for of in ("", "_later", "_fresh", "_roles")
)
IN_PYTHON = 'import jostle; frame = {{"age": [16, 44]}}; session = jostle.Session(cwd="."); {}'


def entries(half: str) -> list[Entry]:
    """The wrong program, the right one and the words of each of a half, of the `later` list, which was written when
    both halves had been seen, or of the `fresh` or `roles` ones, of other programs; a command has no right program."""
    bases = dict[str, str]()
    every, later = list(_entries(TEXT, bases)), list(_entries(LATER, bases))
    if half == "later":
        return later
    if half in ("fresh", "roles"):
        return list(_entries(OTHERS[half == "roles"], bases))
    own = 0 if half == "sealed" else 1
    return [one for one in every if int(hashlib.sha256(one[0].encode()).hexdigest(), 16) % 2 == own]


def _entries(text: str, bases: dict[str, str]) -> Iterator[Entry]:
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        body, *groups = re.split(r"^@ ?", part, flags=re.M)
        name, own = body.split("\n", 1)
        base = bases.setdefault(name, own.rstrip("\n") + "\n")
        for group in groups:
            anchor, rest = group.split("\n", 1)
            yield from (_entry(block.split("\n"), anchor, base) for block in rest.strip("\n").split("\n\n"))


def _entry(lines: Sequence[str], anchor: str, base: str) -> Entry:
    wrong = "\n".join(line for line in lines if not line.startswith(("> ", "! ")))
    right = "\n".join(line[2:] for line in lines if line.startswith("> ")) or anchor
    words = "".join(line[2:] for line in lines if line.startswith("! "))
    if not re.search("epsilon|rho", wrong):  # what nobody wrote is the amount of examples
        right = re.sub(r"with epsilon [\d.]+(?= \}\})", "with epsilon 0.1", right)
    if anchor in ("jostle", "python"):
        return wrong, "", words
    assert base.count(anchor) == 1, anchor
    return base.replace(anchor, wrong), base.replace(anchor, right), words


def answered(command: str) -> str:
    """What a command, or a line of Python, says, on one line."""
    own = command.startswith("jostle ")
    words = [sys.executable, *(("-m", *shlex.split(command)) if own else ("-c", IN_PYTHON.format(command)))]
    said = subprocess.run(
        words, cwd=FOLDER, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False
    )
    return " ".join(f"{said.stdout} {said.stderr}".split())


def judged(entry: Entry) -> tuple[str, str]:
    wrong, right, words = entry
    if right:
        return told(entry)
    message = answered(wrong)
    return ("top" if re.search(words, message) else "middle"), message


def table(half: str, *, shows: str) -> None:
    counts: Counter[str] = Counter()
    for entry in entries(half):
        grade, message = judged(entry)
        counts[grade] += 1
        if shows == "-a" or (shows and grade not in ("top", "right")):
            lines = difflib.ndiff(entry[1].split("\n"), entry[0].split("\n"))
            print(f"{grade}: {message}", *(line for line in lines if line[0] in "+-"), sep="\n    ", flush=True)
    many, wrong = counts.total() - counts["right"], counts["misleads"] + counts["passes"]
    print(f"{half}: {dict(counts)}; top {counts['top'] / many:.0%}, misleads or passes {wrong / many:.1%}")


if __name__ == "__main__":
    table(sys.argv[1] if len(sys.argv) > 1 else "mend", shows="".join(sys.argv[2:3]))
