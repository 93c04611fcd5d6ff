"""The advisors of `stdlib/best.jst`, judged on data that they were not trained on.

    python -m tests.experiments.advisors histograms [--data generated|development|judged|new] [--runs 10] [--every 4]
    python -m tests.experiments.advisors histograms --tables DIR [--half judged|development] [--sets 24] [--runs 10]
    python -m tests.experiments.advisors clusters|mixtures [--data generated|development|judged] [--runs 4]
    python -m tests.experiments.advisors clusters|mixtures --tables DIR [--skip 16] [--sets 16] [--runs 4]

Data are public: `generated` are simulated with another seed than the training's, `development` every second one of the
public sets by name, by which options and constants were settled, `judged` the others and sets that packages bring,
`new` further sets that packages bring, which nothing had used when they were judged by. `--tables`: numeric columns of
public tables of R's packages, of one half (`tests/experiments/real_tables.py`).
Every option runs on every set at every ε, with the noise of a release but seeded. What the advisor would run is read
off its shipped policy: its features are measured with what it pays for them, and its option is charged for that. Beside
it stand the option that is best on the training data (what it falls back on), the one that is best on these data
with hindsight (*), and the oracle, the best of each. The least of several noisy means is below any option's true mean,
so every ratio to it is too large; the line `halves` takes the best option by half of the runs and compares by the other
half, which is too small by as little. The truth lies between the two. The line `geometric` has geometric means, which
no single set makes.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.choice.advisors import Advisor
from jostle.choice.learning import single_best, within
from jostle.choice.policy import Policy
from jostle.choice.program import ProgramBench
from jostle.choice.training import seed, with_the_leader
from jostle.records import replace
from jostle.run.externals import to_jostle
from jostle.run.values import Record
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import dpbench, histogram_data, point_data, real_tables

Array = NDArray[np.float64]
EPSILONS = (0.05, 0.1, 0.5, 1.0, 4.0)
ADVISORS = {
    "histograms": "best_histogram", "clusters": "best_clusters",
    "mixtures": "best_mixture",
}  # fmt: skip
SEED = 3
DRAWS = 5
FIRST = 4


@dataclass
class Cell:
    """One data set at one ε: the utilities of every option's runs, and what the advisor took in each draw of features.

    `spent` is the share that its features cost.
    """

    name: str
    epsilon: float
    runs: list[Array]
    taken: list[int] = field(default_factory=list)
    spent: float = 0.0

    @property
    def options(self) -> Array:
        """The mean utility of every option."""
        return np.array([runs.mean() for runs in self.runs])

    def halves(self) -> Array:
        """Error of every option ÷ that of the one which the other half of the runs calls best, both ways."""
        parts = [np.array([runs[start::2].mean() for runs in self.runs]) for start in (0, 1)]
        ratios = [here / here[there.argmax()] for here, there in (parts, parts[::-1])]
        return np.asarray(np.mean(ratios, axis=0))


def cells(
    bench: ProgramBench, policy: Policy, scales: list[list[float]], epsilons: tuple[float, ...], runs: int, every: int
) -> Iterator[Cell]:
    """Every data set at every scale and ε, or one of `every` so many.

    An option that is far behind the best one after a few runs is not run again, as in training.
    """
    places = [(d, scale, e) for d in range(len(bench.database_names)) for scale in scales[d] for e in epsilons]
    for d, scale, epsilon in places[::every]:
        name, options = bench.database_names[d], range(len(bench.option_names))

        def instance(run: int, d: int = d, name: str = name, scale: float = scale) -> Any:
            return bench.instance(d, scale, seed("instance", name, scale, run))

        def utilities(option: int, runs: range, place: Any = (name, scale, epsilon)) -> list[float]:
            at = [(instance(run), seed(bench.option_names[option], *place, run)) for run in runs]
            return [bench.utility(data, bench.answer(option, data, place[2], noise)) for data, noise in at]

        found = [utilities(option, range(min(FIRST, runs))) for option in options]
        for option in with_the_leader(found) if runs > FIRST else []:
            found[option] += utilities(option, range(FIRST, runs))
        cell = Cell(f"{name} {scale * bench.database_rows[d]:.0f}", epsilon, [np.array(values) for values in found])
        for draw in range(DRAWS):
            at = seed("features", name, scale, epsilon, draw)
            index, cell.spent = chosen(bench, policy, instance(draw), epsilon, at)
            cell.taken.append(index)
        yield cell


def chosen(bench: ProgramBench, policy: Policy, instance: Any, epsilon: float, at: int) -> tuple[int, float]:
    """The option that a call would run, and the share of ε that looking took."""
    table = policy.table
    free = [n for n, public in zip(table.features, table.public, strict=True) if public]
    values = bench.features(instance, epsilon, at, free)
    used = within(policy, values, epsilon)
    paid = [n for n in used.needs if n not in free]
    if paid:
        values |= bench.features(instance, epsilon * policy.share, at, paid)
        used = within(used, values, epsilon)
    return used.choose(values, epsilon).index, policy.share if paid else 0.0


# Histograms ------------------------------------------------------------------------------------------


WORKLOADS = {"identity": "identity(c)", "prefixes": "prefixes(c)", "ranges": "ranges(c, 1000)"}


def histograms(data: str, many: int) -> dict[str, NDArray[np.int64]]:
    """Cubes by name."""
    if data == "generated":
        from jostle.kernels.simulated_points import simulated_cells

        shapes: list[tuple[int, ...]] = [(128,), (512,), (1024,), (20, 20), (48, 48), (10, 8, 6)]
        return {f"simulated {i}": simulated_cells(shapes[i % 6], SEED, i) for i in range(many)}
    if data == "new":
        return histogram_data.further()
    cubes = {}
    for dimension in (1, 2):
        for i, name in enumerate(dpbench.names(dimension)):
            if (i % 2 == 0) == (data == "development"):
                cubes[name] = dpbench.coarse(name, dimension)
    return cubes | (histogram_data.packaged() if data == "judged" else {})


def histogram_bench(session: Session, advisor: Advisor, cubes: dict[str, Any], workload: str) -> ProgramBench:
    text = []
    for i, (name, array) in enumerate(cubes.items()):
        session.bind(name, array)
        text.append(f'c = bound("{name}")\nd{i} = {{database: c, queries: {workload}, name: "{name}"}}')
    return bench_of(session, advisor, text)


# Rows of numbers -------------------------------------------------------------------------------------

ASKED = (3, 8, 16)
POINTS = """
def as_data(points, groups, name):
    return {rows: vectors(points.rows), test: points.test, clusters: groups, name: name}
"""


def points_bench(
    session: Session, advisor: Advisor, data: str, splits: int, many: int, folder: Path | None = None, skip: int = 0
) -> ProgramBench:
    """Rows as vectors, of which several numbers of groups are asked, and others to judge by.

    Of tables in `folder` one number each, in turn.
    """
    from jostle.kernels.simulated_points import simulated_points

    session.execute(Source("experiment", POINTS))
    sets: list[tuple[str, Any, Any, float]] = []
    if folder is not None:
        for i, (name, rows) in enumerate(list(real_tables.points(folder, "judged", skip + many).items())[skip:]):
            sets.append((name, *point_data.split(point_data.scaled(rows), 100), ASKED[i % len(ASKED)]))
    elif data == "generated":
        for i in range(many):
            made = simulated_points(SEED, i)
            sets.append((f"simulated {i}", made["rows"], made["test"], made["groups"]))
    else:
        for name in point_data.NAMES[data]:
            for number in range(splits):
                pair = point_data.split(point_data.load(name), 100 + number)
                sets += [(f"{name} {number} in {k}", *pair, k) for k in ASKED]
    record = session.names()["as_data"]
    databases = [
        session._interp.call(record, [Record(rows=to_jostle(rows), test=to_jostle(test)), float(k), name])
        for name, rows, test, k in sets
    ]
    parts = replace(advisor.choice.parts, databases=tuple(databases))
    return ProgramBench(session._interp, parts)


def bench_of(session: Session, advisor: Advisor, text: list[str]) -> ProgramBench:
    """The bench of an advisor's options and features over the data sets `d0`, `d1`, … of a program."""
    session.execute(Source("experiment", "\n".join(text) + "\n"))
    known = session.names()
    many = sum(len(re.findall(r"^d\d+ = ", line, re.MULTILINE)) for line in text)
    data = [known[f"d{i}"] for i in range(many)]
    parts = replace(advisor.choice.parts, databases=tuple(data))
    return ProgramBench(session._interp, parts)


# Reports ---------------------------------------------------------------------------------------------


def report(what: str, found: list[Cell], policy: Policy, errors: bool) -> str:
    """A line for each ε and one for all: the advisor, its fallback, the best fixed option; means, 95th percentiles."""
    names = policy.table.options
    fallback = single_best(policy, "").choose({}, None).index
    lines = [f"{what}: {policy.name} by {policy.model}; falls back on {names[fallback]}"]
    fixed = int(np.argmin(np.mean([_regret(cell, errors) for cell in found], axis=0)))
    heads = ("advisor", f"{names[fallback]} always", f"{names[fixed]} *")
    lines.append(f"{'ε':>6} {'cells':>6}" + "".join(f"{head:>22}" for head in heads) + " closed")
    for epsilon in (*sorted({cell.epsilon for cell in found}), None):
        some = [cell for cell in found if epsilon is None or cell.epsilon == epsilon]
        each = np.array([_regret(cell, errors) for cell in some])
        mine = np.array([_paid(cell, errors) for cell in some])
        best = 1.0 if errors else 0.0
        room = each[:, fallback].mean() - best
        gap = f"{(each[:, fallback].mean() - mine.mean()) / room:.0%}" if room > 1e-3 else "–"
        three = (mine, each[:, fallback], each[:, fixed])
        row = "".join(f"{x.mean():>14.3f} {np.percentile(x, 95):>7.3f}" for x in three)
        lines.append(f"{'all' if epsilon is None else epsilon:>6} {len(some):>6}{row} {gap:>6}")
    if errors:
        every = np.log([[_paid(cell, errors), *_regret(cell, errors)[[fallback, fixed]]] for cell in found])
        lines.append(f"{'geometric':>13}" + "".join(f"{x:>14.3f} {'':>7}" for x in np.exp(every.mean(axis=0))))
    if errors and min(len(runs) for cell in found for runs in cell.runs) > 1:
        ratios = np.array([
            (each[cell.taken].mean() / (1 - cell.spent), each[fallback], each[fixed])
            for cell in found for each in (cell.halves(),)
        ])  # fmt: skip
        lines.append(f"{'halves':>13}" + "".join(f"{x:>14.3f} {'':>7}" for x in ratios.mean(axis=0)))
    taken = [index for cell in found for index in cell.taken]
    lines.append("ran " + ", ".join(f"{n} {taken.count(k) / len(taken):.0%}" for k, n in enumerate(names)))
    lines.append("mean of each always: " + ", ".join(
        f"{n} {np.mean([_regret(cell, errors)[k] for cell in found]):.3f}" for k, n in enumerate(names)
    ))  # fmt: skip
    return "\n".join(lines)


def _regret(cell: Cell, errors: bool) -> Array:
    """Error ÷ the least error, or points in 100 below the best."""
    if errors:
        return np.asarray(cell.options / cell.options.max())
    return np.asarray(100 * (cell.options.max() - cell.options))


def _paid(cell: Cell, errors: bool) -> float:
    """The mean regret of what was taken; an error with a little less of ε is larger by as much."""
    regret = float(np.mean(_regret(cell, errors)[cell.taken]))
    return regret / (1 - cell.spent) if errors else regret


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=tuple(ADVISORS))
    parser.add_argument("--data", choices=("generated", "development", "judged", "new"), default="generated")
    parser.add_argument("--tables", type=Path, help="a directory of tables, of histograms, points and clusters")
    parser.add_argument("--half", choices=("judged", "development"), default="judged", help="of histograms' tables")
    parser.add_argument("--skip", type=int, default=0, help="so many tables of the directory")
    parser.add_argument("--runs", type=int, default=10, help="of every option in every cell")
    parser.add_argument("--every", type=int, default=1, help="one of so many cells, in turn")
    parser.add_argument("--rows", default="1e3,1e5", help="of histograms")
    parser.add_argument("--workloads", default="identity,ranges", help="of histograms")
    parser.add_argument("--sets", type=int, default=30, help="how many are generated")
    parser.add_argument("--splits", type=int, default=3, help="of every table into training and test")
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    asked = parser.parse_args()
    if asked.data != "generated" and not asked.tables and not dpbench.DATA.is_dir():
        print("the public data are not here: there is nothing to judge by")
        return
    epsilons = tuple(map(float, asked.epsilons.split(",")))
    session = Session(cwd=Path.cwd())
    session.execute(Source("experiment", "use best\n"))
    advisor: Advisor = session.names()[ADVISORS[asked.family]]
    policy = advisor.policy()
    if policy is None:
        raise SystemExit("no policy ships: python -m jostle.train")
    if asked.family != "histograms":
        bench = points_bench(session, advisor, asked.data, asked.splits, asked.sets, asked.tables, asked.skip)
        found = list(cells(bench, policy, [[1.0]] * len(bench.database_names), epsilons, asked.runs, asked.every))
        print(report(f"{asked.family}, {'tables' if asked.tables else asked.data}", found, policy, errors=True))
        return
    what = f"tables, {asked.half}" if asked.tables else asked.data
    cubes = (
        histogram_data.of_tables(asked.tables, asked.half, asked.sets) if asked.tables
        else histograms(asked.data, asked.sets)
    )  # fmt: skip
    rows = [float(row) for row in asked.rows.split(",")]
    for dimensions in ("1 dimension", "2 or 3 dimensions"):
        found = []
        mine = {n: c for n, c in cubes.items() if (c.ndim == 1) == (dimensions == "1 dimension")}
        for workload in asked.workloads.split(","):
            bench = histogram_bench(session, advisor, mine, WORKLOADS[workload])
            found += cells(bench, policy, [[r / c.sum() for r in rows] for c in mine.values()], epsilons, asked.runs,
                           asked.every)  # fmt: skip
        print(report(f"{dimensions}, {what}", found, policy, errors=True), flush=True)


if __name__ == "__main__":
    main()
