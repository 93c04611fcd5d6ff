"""What must hold of every crossed program, on neighbouring tables.

Noise answers without looking at what it is given, so all that can be seen of both runs must be equal, byte for byte;
what the noise was given tells what the draws really lost, which is at most what was charged. Nothing fails after a
charge, and nothing but a refusal is raised. The same rows in another file type give the same exact integers.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from arena import Arena, Seen
from cross_programs import Maker, Program
from cross_worlds import WRITERS, World, drawn

from jostle.diagnostics import KINDS
from jostle.privacy.kernel.faults import Counter

CITIES = b"c,region\nAmes,north\nCork,south\nAmes,west\n"
# Noise of these is added by the mechanism itself to what it compares: what they answer is no function of blind noise.
ADDED_LATER = {"largest", "margin_max", "watch", "steps"}


@dataclass(frozen=True)
class Break:
    """Something that must not happen: what it is, the program, and the two tables."""

    what: str
    detail: str
    program: Program
    seed: int


@dataclass(frozen=True)
class Run:
    """A program of a seed: whether it ran to its end, was refused before it paid or after; and what broke."""

    program: Program
    how: str
    breaks: tuple[Break, ...]


class Crosses:
    """Runs crossed programs in a folder of its own."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    def run(self, seed: int) -> Run:
        """The program of a seed on its two neighbours, and on the first of them in another file type."""
        rng = random.Random(seed)
        program = Maker(rng).program()
        world = drawn(rng, program.unit)
        faults, breaks = Counter.faults, []
        seen = []
        for which in (0, 1):
            try:
                seen.append(self._see(program.text, program.file, world, which))
            except Exception as fault:
                last = traceback.extract_tb(fault.__traceback__)[-1]
                what = f"{type(fault).__name__} at {Path(last.filename).name}:{last.lineno}"
                return Run(program, "raised", (Break(f"raised {what}", str(fault)[:300], program, seed),))
        if Counter.faults != faults:
            said = [d.message for one in seen for d in one.result.diagnostics]
            breaks.append(Break("a fault after a charge", str(said), program, seed))
        internal = {d.message for one in seen for d in one.result.diagnostics if d.kind not in KINDS}
        breaks += [Break(message, "no refusal of the closed list", program, seed) for message in sorted(internal)]
        breaks += [Break(what, detail, program, seed) for what, detail in _compared(program, *seen)]
        if not breaks and seen[0].result.ok and program.unit == "rows" and rng.random() < 0.25:
            breaks += [Break(*one, program, seed) for one in self._in_another_file(program, world, seen[0], rng)]
        paid = any(float(amount["spent"]) > 0 for amount in seen[0].result.budget.get("t", {}).values())
        how = "ran" if seen[0].result.ok else "refused after it paid" if paid else "refused"
        return Run(program, how, tuple(breaks))

    def _see(self, text: str, file: str, world: World, which: int) -> Seen:
        self._arena.write({f"t.{file}": world.content(file, which), "cities.csv": CITIES})
        return self._arena.see('cities = table("cities.csv")\n' + text)

    def _in_another_file(
        self, program: Program, world: World, first: Seen, rng: random.Random
    ) -> Iterator[tuple[str, str]]:
        file = rng.choice([name for name in WRITERS if name != program.file])
        if any(cell == "" for row in world.rows for cell in row):  # no text, in files of texts
            return
        other = self._see(program.text.replace(f'"t.{program.file}"', f'"t.{file}"'), file, world, 0)
        mine, theirs = ([draw.values.tolist() for draw in one.draws] for one in (first, other))
        if mine != theirs:
            yield f"other integers in {file} than in {program.file}", f"{mine} {theirs}"[:600]


def _compared(program: Program, one: Seen, other: Seen) -> Iterator[tuple[str, str]]:
    later = ADDED_LATER & set(program.features)
    if not later and one.text != other.text:
        pairs = zip(one.text.split("\n"), other.text.split("\n"), strict=False)
        yield "neighbours look different", str(next(((a, b) for a, b in pairs if a != b), "one is longer"))[:600]
    if later and [d.as_json() for d in one.result.diagnostics] != [d.as_json() for d in other.result.diagnostics]:
        yield "neighbours are refused otherwise", str([d.message for d in one.result.diagnostics])
    if program.budget == "delta" or later:
        return
    if len(one.draws) != len(other.draws):
        yield "neighbours draw noise another number of times", f"{len(one.draws)} {len(other.draws)}"
        return
    spent = one.spent(unit=program.budget) if one.result.budget.get("t") else 0.0
    loss = 0.0
    for mine, theirs in zip(one.draws, other.draws, strict=True):
        if mine.kind == "walk":
            continue
        if mine.values.shape != theirs.values.shape:
            yield "neighbours draw noise for another number of things", f"{mine.values.shape} {theirs.values.shape}"
            return
        lost = mine.loss(theirs)
        pure = mine.kind in ("laplace", "selection")
        if program.budget == "rho":
            loss += lost**2 / 2 if pure else lost
        elif pure:
            loss += lost
        elif lost:
            yield "noise without a pure epsilon", mine.kind
    if loss > spent * (1 + 1e-9) + 1e-12:
        biggest = max((float(np.abs(draw.values.astype(float)).max(initial=0)) for draw in one.draws), default=0.0)
        yield "more is lost than is charged", f"{loss} of {spent}; largest number {biggest:g}"


@contextmanager
def opened() -> Iterator[Crosses]:
    """Crosses in a fresh folder, under blind noise."""
    folder = Path(tempfile.mkdtemp(prefix="jostle-crosses-"))
    patch = pytest.MonkeyPatch()
    try:
        yield Crosses(Arena(folder, patch))
    finally:
        patch.undo()
        shutil.rmtree(folder, ignore_errors=True)
