"""The choice of `programs/figure_1_2.jst` on public tables, which it was not trained on.

    python -m tests.experiments.figure_1_2_choice [--data apart] [--trials 4] [--rows 30,140,500,4000,20000]

The program trains on its made shapes as it stands; then its choice, with the look that it pays for, and each of its
options with all of ε = 0.1 run on public tables of 16 × 16 cells, a new draw of the rows and new noise each time:
DPBench's five, or pairs of columns that stood apart until the program was settled (`apart`).
Prints the regret, mean error ÷ the least mean error of the options.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jostle.choice.table import ChoiceParts
from jostle.choice.training import seed
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import dpbench
from tests.experiments.program_bench import ScaledBench

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "figure_1_2.jst"
OPTIONS = ("DAWA", "MWEM", "HDMM", "Even")
CHOICE = "noisyHistChoice"
EPSILON = 0.1


PAIRS = (
    ("tables/adult.csv", "age", "hours_per_week"), ("tables/adult.csv", "age", "education_num"),
    ("tables/adult.csv", "education_num", "hours_per_week"),
    ("tables/cmc.csv", "Wifes_age", "Number_of_children_ever_born"), ("lifesci.csv", 0, 1), ("lifesci.csv", 2, 3),
)  # fmt: skip
"""Files beside the repository and two columns of each, cut into sixteen equal bins between their least and largest."""


def tables_of(data: str) -> dict[str, NDArray[np.int64]]:
    """The tables by name, (16, 16) counts."""
    if data == "dpbench":
        return {name: dpbench.coarse(name, 2, (16, 16)) for name in dpbench.names(2)}
    cubes = {}
    for file, first, second in PAIRS:
        path = dpbench.DATA.parent / file
        frame = pd.read_csv(path, header=0 if isinstance(first, str) else None)
        cells, _, _ = np.histogram2d(frame[first], frame[second], bins=16)
        cubes[f"{path.stem}_{first}_{second}"] = cells.astype(np.int64)
    return cubes


def judged(rows: list[float], tables: dict[str, NDArray[np.int64]]) -> ScaledBench:
    """A bench whose options are the program's choice and its options, over the tables."""
    session = Session(cwd=PROGRAM.parent)
    text = [PROGRAM.read_text(encoding="utf-8")]
    for i, (name, cells) in enumerate(tables.items()):
        session.bind(name, cells)
        text.append(f'judged{i} = bound("{name}")')
        text.append(f"judged{i} = {{database: judged{i}, queries: rectangles(judged{i}, 500)}}")
    session.execute(Source(str(PROGRAM), "\n".join(text) + "\n"))
    known = session.names()
    names = (CHOICE, *OPTIONS)
    data = tuple(known[f"judged{i}"] for i in range(len(tables)))
    parts = ChoiceParts(tuple(known[name] for name in names), names, (), (), known["scoreFunc"], data)
    made = ScaledBench(session._interp, parts)
    made.rows, made.sizes = tuple(rows), tuple(float(cells.sum()) for cells in tables.values())
    made.database_names = tuple(tables)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=("dpbench", "apart"), default="apart")
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--rows", default="30,140,500,4000,20000")
    asked = parser.parse_args()
    if not dpbench.DATA.is_dir():
        print("the public tables are not here: there is nothing to run on")
        return
    rows = [float(row) for row in asked.rows.split(",")]
    made = judged(rows, tables_of(asked.data))
    print(f"{'rows':>8}", *(f"{name:>16}" for name in made.option_names))
    everything = []
    for s, size in enumerate(rows):
        regrets = []
        for d, name in enumerate(made.database_names):
            errors = np.zeros((len(made.option_names), asked.trials))
            for trial in range(asked.trials):
                instance = made.instance(d, made.scales(d)[s], seed("instance", name, size, trial))
                for k, option in enumerate(made.option_names):
                    answers = made.answer(k, instance, EPSILON, seed(option, name, size, trial))
                    errors[k, trial] = -made.utility(instance, answers)
            means = errors.mean(axis=1)
            regrets.append(means / means[1:].min())
        everything += regrets
        print(f"{size:>8.0f}", *(f"{r:>16.3f}" for r in np.mean(regrets, axis=0)), flush=True)
    print(f"{'all':>8}", *(f"{r:>16.3f}" for r in np.mean(everything, axis=0)))


if __name__ == "__main__":
    main()
