"""A first choice of one's own, as the manual would have it written, trained many times and judged on other data.

    python -m tests.experiments.newcomer [--texts 4] [--models tree,regret,losses] [--numbered] [--shapes 12] [--runs 3]
        [--wide | --sums] [--columns FOLDER] [--trained made|example|both]

Its own moving average beside Flat, Even and Dawa on 32 cells, 200 ranges, a noisy number of rows and a noisy roughness
to look at, twelve made-up shapes at 300, 3,000 and 30,000 rows, ε = 0.3. Texts differ in their shapes, which also seed
training. With `--numbered` the shapes are given by a function of their number, so that training makes as many as it
needs. With `--wide` there are 64 cells, 100, 1,000 and 10,000 rows, and ε = 0.1: rows decide there. With `--sums` there
are 48 cells, those rows, ε = 0.2, sums up to each cell, and `hb` in the place of `dawa`. `--trained`: on the twelve
shapes, on as many of `example_histogram`, or on both.

Each choice, and each option with all of ε, then answers on private counts of other shapes and of DPBench's vectors, at
the same numbers of rows; with `--columns`, of numeric columns of the tables there (`real_tables.columns`, eight of a
package) instead. Printed for each training: the mean of the logarithm of the error over the least mean error of the
options, of the choice and of the best fixed option there, the part of that gap which is closed, with its standard error
over data sets, and in how many cells, a data set at a number of rows, the choice is behind that option beyond two
standard errors of the runs.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import dpbench
from tests.experiments.real_tables import columns

OPTIONS = ("Flat", "Even", "Dawa", "Moving")
ROWS, CELLS, EPSILON = (300, 3000, 30000), 32, 0.3
QUERIES = "ranges(CELLS, 200)"
MODELS = {
    "tree": "using tree(depth = 3)", "regret": "using regret_tree(depth = 3)", "losses": 'using forest(by = "losses")',
    "forest": "using forest()",
}  # fmt: skip
TRAINED = {
    "made": "[lesson(i) for i in 1..MANY]", "example": "[example(i) for i in 1..MANY]",
    "both": "[lesson(i) for i in 1..MANY] + [example(i) for i in 1..MANY]",
}  # fmt: skip
PROGRAM = """
use histograms
Flat = Option (data) { return flat(data.database, data.queries) }
Even = Option (data) { return uniform(data.database, data.queries) }
Dawa = Option (data) { return dawa(data.database, data.queries) }
Moving = Option (data) {
    noisy = laplace(data.database)
    many  = len(noisy)
    return answer(data.queries, [avg([noisy[j] for j in max(0, i - 2)..min(many - 1, i + 2)]) for i in 0..(many - 1)])
}
people = Feature (data) { return log(max(1, laplace(size(data.database)))) }
rough  = Feature (data) {
    noisy = laplace(data.database)
    return sum([abs(noisy[i + 1] - noisy[i]) for i in 0..(len(noisy) - 2)]) / max(1, sum(noisy))
}
near = Utility (data, answers) { return -rmse(answers, exact(data.queries, data.database)) }
shapes = SHAPES
def record(cells): return {database: cells, queries: QUERIES, sizes: SIZES}
def lesson(number): return record(counts(shapes[number - 1]))
def example(number): return record(example_histogram([WIDE], number))
choose = MkChoiceMaker among {Flat, Even, Dawa, Moving}
    informed by {people, rough}
    trained on TRAINED
    MODEL
    wrt near
"""

Counts = NDArray[np.int64]


def shape(rng: np.random.Generator) -> Counts:
    """A hill or two, a tail, steps, jumps, or a ramp, with a peak on three in ten: 10,000 rows in all."""
    x = (np.arange(CELLS) + 0.5) / CELLS

    def hill(low: float, high: float) -> NDArray[np.float64]:
        return np.asarray(np.exp(-(((x - rng.uniform(low, high)) / rng.uniform(0.03, 0.25)) ** 2)))

    cuts = np.sort(rng.integers(1, CELLS, 3))
    kinds = (
        lambda: hill(0.1, 0.9), lambda: hill(0, 0.5) + rng.uniform(0.2, 1) * hill(0.5, 1),
        lambda: np.exp(-x * rng.uniform(1, 12)),
        lambda: rng.uniform(0.2, 4, 4)[np.searchsorted(cuts, np.arange(CELLS), side="right")],
        lambda: rng.gamma(rng.uniform(0.3, 2), size=CELLS), lambda: x * rng.uniform(0, 3) + 0.3,
    )  # fmt: skip
    density = kinds[rng.integers(len(kinds))]()
    density = density / density.sum()
    if rng.random() < 0.3:
        density[rng.integers(CELLS)] += rng.uniform(0.05, 0.3)
    return np.asarray(np.round(10000 * density / density.sum()).astype(np.int64))


def judged(many: int, rng: np.random.Generator, folder: Path | None) -> list[Counts]:
    """Columns of a folder, or other shapes, and DPBench's vectors where they are, at each number of rows: (data sets ×
    rows, cells)."""
    apart = list(columns(folder, CELLS, 8).values()) if folder else [shape(rng) for _ in range(many)]
    if not folder and dpbench.DATA.is_dir():
        apart += [dpbench.coarse(name, 1).reshape(CELLS, -1).sum(axis=1) for name in dpbench.names(1)]
    return [rng.multinomial(rows, cells / cells.sum()) for cells in apart for rows in ROWS]


def errors(session: Session, algorithm: str, data: list[Counts], runs: int) -> NDArray[np.float64]:
    """The logarithm of the mean over runs of the root mean square error on each data set, as private counts, and the
    standard error of that logarithm: (2, data sets)."""
    found = []
    for cells in data:
        budget = 2 * runs * EPSILON
        session.execute(Source("newcomer", f"""
private seen = counts({cells.tolist()}) protecting rows budget epsilon {budget}
asked = {QUERIES.replace("CELLS", "seen")}
answers = []
for i in 1..{runs}:
    one = {algorithm}({{database: seen, queries: asked}}) with epsilon {EPSILON}
    answers = append(answers, one)
"""))  # fmt: skip
        truth = session.names()["asked"].answers(cells.astype(float))
        away = np.array([np.asarray(one, dtype=float) for one in session.names()["answers"]]) - truth
        each = np.sqrt((away**2).mean(axis=1))
        found.append((np.log(each.mean()), each.std(ddof=1) / each.mean() / np.sqrt(runs)))
    return np.array(found).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--models", default="tree,regret,losses")
    parser.add_argument("--numbered", action="store_true")
    parser.add_argument("--shapes", type=int, default=12)
    parser.add_argument("--apart", type=int, default=12)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--sums", action="store_true")
    parser.add_argument("--columns", type=Path)
    parser.add_argument("--trained", default="made", choices=TRAINED)
    asked = parser.parse_args()
    global ROWS, CELLS, EPSILON, QUERIES, PROGRAM
    if asked.wide:
        ROWS, CELLS, EPSILON = (100, 1000, 10000), 64, 0.1
    if asked.sums:
        ROWS, CELLS, EPSILON = (100, 1000, 10000), 48, 0.2
        QUERIES = "prefixes(CELLS)"
        PROGRAM = PROGRAM.replace("dawa(", "hb(").replace("use histo", "use hierarchies\nuse histo")
    data = judged(asked.apart, np.random.default_rng(99), asked.columns)
    owner = np.repeat(np.arange(len(data) // len(ROWS)), len(ROWS))
    least: NDArray[np.float64] | None = None
    closed = []
    for number in range(asked.texts):
        rng = np.random.default_rng(number)
        shapes = [shape(rng).tolist() for _ in range(96 if asked.numbered else asked.shapes)]
        trained = "lesson" if asked.numbered else TRAINED[asked.trained].replace("MANY", str(asked.shapes))
        for model in asked.models.split(","):
            text = PROGRAM.replace("SHAPES", str(shapes)).replace("SIZES", str(list(ROWS))).replace("WIDE", str(CELLS))
            text = text.replace("QUERIES", QUERIES.replace("CELLS", "cells"))
            text = text.replace("TRAINED", trained).replace("MODEL", MODELS[model])
            session = Session()
            session.execute(Source("newcomer", text))
            if least is None:
                fixed = np.array([errors(session, option, data, 4 * asked.runs) for option in OPTIONS])
                least = fixed[:, 0].min(axis=0)
                lost = fixed[:, 0] - least
                print("lost by each option:", dict(zip(OPTIONS, lost.mean(axis=1).round(3).tolist(), strict=True)))
                by_rows = [lost[:, k :: len(ROWS)].mean(axis=1).min() for k in range(len(ROWS))]
                print(f"by the best option at each number of rows: {np.mean(by_rows):.3f}", flush=True)
                best = lost.mean(axis=1).argmin()
                single, chance = lost[best], fixed[best, 1]
            began = time.process_time()
            choice, error = errors(session, "choose", data, asked.runs)
            choice = choice - least
            behind = np.sum(choice - single > 2 * np.hypot(error, chance))
            [policy] = session.names()["choose"]._policies
            gap = 1 - choice.mean() / single.mean()
            saved = single - choice - gap * single
            apart = np.std([saved[owner == d].mean() for d in set(owner)], ddof=1) / np.sqrt(owner[-1] + 1)
            closed.append(gap)
            print(
                f"text {number} {model:>7}: {choice.mean():.3f}, best fixed {single.mean():.3f}, closed {gap:6.1%}"
                f" ± {apart / single.mean():.1%}, behind in {behind} of {len(single)} cells;"
                f" {len(policy.table.databases)} data sets, {policy.name}; {time.process_time() - began:.0f} s",
                flush=True,
            )
    print(f"closed: median {np.median(closed):.1%}, least {min(closed):.1%}, mean {np.mean(closed):.1%}")


if __name__ == "__main__":
    main()
