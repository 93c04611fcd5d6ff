"""Answers of `jointly nonnegative` blocks: how often what is told of them holds, and how far off they are.

    python -m tests.experiments.joint_nonnegative --blocks 1000 --write

Blocks of the selects of `joint_errors`, with an amount instead of errors, run on tables of 60 and of 2,000 synthetic
rows, and their answers are compared with the exact ones. Last comes a hard case for one answer: a total beside 1,000
groups, of which 990 are empty.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.formulas import Projected
from jostle.run.propagation import uncertainties
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.joint_errors import BUDGETS, SCHEMA, SESSION, block, write

AMOUNTS = {
    "epsilon": ["epsilon 0.01", "epsilon 0.05", "epsilon 0.2", "epsilon 1"],
    "rho": ["rho 0.0001", "rho 0.001", "rho 0.02", "rho 0.5"],
    "delta": [f"epsilon {e} delta 1e-6" for e in (0.05, 0.2, 1, 4)],
}
ROWS = (60, 2000)


def asked(rng: random.Random, unit: str) -> str:
    """A block and what it releases."""
    selects, releases = [], []
    for line in block(rng, unit).split("\n"):
        if "select" in line:
            selects.append(line.split(" with error")[0].removesuffix(" }}") + " }}")
        elif line.startswith("release"):
            releases.append(line)
    least = rng.choice(["", " for the least total"])
    return "\n".join([f"jointly nonnegative{least} with {rng.choice(AMOUNTS[unit])} {{", *selects, "}", *releases])


@dataclass
class Tally:
    """Answers within what is told of them, and within the half-width of what was measured.

    What is told, and squared errors, are in units of that half-width; those of what was measured stand beside.
    """

    blocks: int = 0
    answers: int = 0
    inside: int = 0
    inside_measured: int = 0
    negative: int = 0
    told: float = 0.0
    squares: float = 0.0
    measured_squares: float = 0.0

    def add(self, told: Any, exact: float) -> None:
        """An answer, which is not below 0."""
        origin = told.origin
        if not isinstance(origin, Projected):
            raise TypeError("an answer of another block")
        wide, error = origin.law.half_width(), uncertainties([told])[0].error
        if told < 0:
            raise ValueError("an answer is negative")
        if not wide:  # of no rows
            return
        self.answers += 1
        self.inside += abs(told - exact) <= error + 1e-9 * wide
        self.inside_measured += abs(told - exact) <= wide * (1 + 1e-9)
        self.negative += origin.measured < 0
        self.told += error / wide
        self.squares += ((told - exact) / wide) ** 2
        self.measured_squares += ((origin.measured - exact) / wide) ** 2


def flat(value: Any) -> list[Any]:
    return list(value.columns["n"]) if hasattr(value, "columns") else [value]


def run(blocks: int) -> dict[tuple[str, int], Tally]:
    rng = random.Random(21)
    tallies = {(unit, rows): Tally() for rows in ROWS for unit in BUDGETS}
    derived = 'known = derive(t, town = coalesce(town, "A1"), sex = coalesce(sex, "F"))\n'
    sessions: dict[tuple[str, int], Session] = {}
    with tempfile.TemporaryDirectory() as folder:
        for many in ROWS:
            towns = ["A1", "A2", "A3", "B1", "B2", "C1"]
            rows = [f"{rng.randrange(20)},{rng.choice(towns)},{rng.choice('FM')}" for _ in range(many)]
            (Path(folder) / f"{many}.csv").write_text("\n".join(["v,town,sex", *rows]) + "\n", encoding="utf-8")
        for at in range(blocks):
            unit, rows = list(tallies)[at % len(tallies)]
            text, tally = asked(rng, unit), tallies[unit, rows]
            base = f'table("{Path(folder) / f"{rows}.csv"}") described by {SCHEMA}'
            if tally.blocks % SESSION == 0:
                sessions[unit, rows] = Session()
                declared = f"private t = {base} protecting rows budget {BUDGETS[unit]}\n{derived}"
                sessions[unit, rows].execute(Source("private", declared))
            if ("truth", rows) not in sessions:
                sessions["truth", rows] = Session()
                sessions["truth", rows].execute(Source("public", f"t = {base}\n{derived}"))
            for name in (unit, "truth"):
                sessions[name, rows].execute(Source("block", text))
            tally.blocks += 1
            for name in (line.split()[1] for line in text.split("\n") if line.startswith("release ")):
                told, exact = (flat(sessions[one, rows].names()[name]) for one in (unit, "truth"))
                for pair in zip(told, exact, strict=True):
                    tally.add(*pair)
    return tallies


def total_beside_empty_groups(blocks: int) -> Tally:
    """Of a total of 500 rows, beside the groups of a column with 1,000 values."""
    text, tally = "\n".join([
        "jointly nonnegative with epsilon 0.2 {", "    n = {{ select count(*) from t }}",
        "    by = {{ select count(*) as n from t groupby v }}", "}", "release n",
    ]), Tally(blocks)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text("\n".join(["v", *(str(i % 10) for i in range(500))]) + "\n", encoding="utf-8")
        session = Session()
        declared = f'private t = table("{path}") described by {{v: 0..999}} protecting rows budget epsilon 1e5'
        session.execute(Source("private", declared))
        for _ in range(blocks):
            session.execute(Source("block", text))
            tally.add(session.names()["n"], 500)
    return tally


def page(tallies: dict[tuple[str, int], Tally]) -> str:
    """The part of the page that this writes."""
    names = {"epsilon": "ε (Laplace)", "rho": "ρ (Gaussian)", "delta": "ε and δ (Gaussian)"}
    lines = ["| budget | rows | blocks | answers within what is told | within the half-width of what was measured "
             "| told, over that | squared error, over that of what was measured | measured below 0 |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    lines += [
        f"| {names[unit]} | {rows:,} | {t.blocks} | {t.inside / t.answers:.2%} of {t.answers:,} "
        f"| {t.inside_measured / t.answers:.2%} | {t.told / t.answers:.3f} | {t.squares / t.measured_squares:.3f} "
        f"| {t.negative / t.answers:.0%} |"
        for (unit, rows), t in tallies.items()
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    hardest = {("epsilon", 500): total_beside_empty_groups(max(20, options.blocks // 2))}
    told = "\n".join([page(run(options.blocks)), page(hardest).split("\n")[-1]])
    print(told)
    if options.write:
        write("nonnegative", told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
