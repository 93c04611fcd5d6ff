"""`python -m tests.experiments.ways`: choices by features, by validation and by margin, side by side, all paid for.

Mean regret over data sets left out, at ε = 0.1, 1 and 3.16 and δ = 10⁻⁶: over histograms (shapes that are synthetic,
error ÷ the least error of an option that has all of ε), classifiers (tables that are synthetic, the share of their rows
that is lost to the best option, in percent) and mixtures (points that are synthetic, nats a row). By features a policy
learns from the other data sets; the others learn nothing.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from jostle.choice.evaluation import Line, evaluate, utilities_by_score
from jostle.choice.models import regret_tree
from jostle.kernels.simulated_points import simulated_points
from jostle.records import replace
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.shapes import made

EPSILONS, DELTA = (0.1, 1.0, 10**0.5), 1e-6
SHAPES = ("bell", "two", "tail", "even", "comb", "step", "zipf", "permuted", "points", "blocks", "rough", "walk")
CELLS, ROWS = 256, (1000, 10_000, 100_000)

HISTOGRAMS = """
use histograms
use features
Each = Option (data) { return flat(data.database, data.queries) }
Even = Option (data) { return uniform(data.database, data.queries) }
Tree = Option (data) { return hb(data.database, data.queries) }
Parts = Option (data) { return dawa(data.database, data.queries) }
rows_in = Feature (data) { return log(max(1, laplace(size(data.database)))) }
evenness = Feature (data) {
    away = laplace(l1_to_uniform(data.database)) with epsilon epsilon / 2
    return clamp(away / max(1, laplace(size(data.database))), 0, 1)
}
near = Utility (data, answers) { return closeness(data.database, data.queries, answers) }
choose = MkChoiceMaker among {Each, Even, Tree, Parts} by validation informed by {rows_in, evenness}
    trained on [ {name: s.name, database: s.cells, queries: ranges(s.cells, 200), sizes: SIZES} for s in shapes ]
    using regret_tree(depth = 3) wrt near
"""
CLASSIFIERS = """
use classify
learnt = simulated_tables(TABLES, seed = 5, rows = 500..20000)
units = [100 / len(t.database) for t in learnt]
right = Utility (data, model) { return correct_count(data.database, model, data.class) }
choose = MkChoiceMaker among {Majority, NaiveBayes, ShrunkBayes, OneAttribute} by validation
    informed by {many_attributes, many_cells, signal}
    trained on [t for t in learnt]
    using regret_tree(depth = 3) wrt right
"""
MIXTURES = """
OneGaussian = Option (data) { return single_gaussian(data.rows) }
RoundOnes = Option (data) { return spherical_mixture(data.rows, data.clusters, 1, background = 0.1) }
FewSteps = Option (data) { return mixture(data.rows, data.clusters, 4, background = 0.1) }
ManySteps = Option (data) { return mixture(data.rows, data.clusters, 8, background = 0.02) }
columns_of = Feature (data) { return data.rows.size }
clusters_of = Feature (data) { return log(data.clusters) }
rows_in = Feature (data) { return log(max(1, laplace(size(data.rows)))) }
fits = Utility (data, model) { return likelihood(data.rows, model) }
choose = MkChoiceMaker among {OneGaussian, RoundOnes, FewSteps, ManySteps} by validation
    informed by {columns_of, clusters_of, rows_in}
    trained on [t for t in learnt]
    using regret_tree(depth = 3) spending 0.02 wrt fits
"""


def histograms(epsilon: float, shapes: Sequence[str]) -> list[Line]:
    """The ways on histograms of these shapes."""
    session, cells = Session(), made(1, (CELLS,))
    for name in shapes:
        session.bind(name, cells[f"made {name}"])
    listed = ", ".join(f'{{name: "{name}", cells: bound("{name}")}}' for name in shapes)
    program = f"shapes = [{listed}]\n{HISTOGRAMS.replace('SIZES', str(list(ROWS)))}"
    return lines(session, program, epsilon)


def classifiers(epsilon: float, tables: int) -> list[Line]:
    """The ways on so many tables; utilities are shares of the rows of each, in percent."""
    return lines(Session(), CLASSIFIERS.replace("TABLES", str(tables)), epsilon)


def mixtures(epsilon: float, sets: int) -> list[Line]:
    """The ways on so many sets of points; utilities are nats a row, by the score's likeliest component."""
    session, declared, listed, units = Session(), [], [], []
    for number in range(1, sets + 1):
        points = simulated_points(29, number)
        rows = np.asarray(points["rows"])
        columns = {f"x{i + 1}": np.ascontiguousarray(rows[:, i]) for i in range(rows.shape[1])}
        session.bind(f"points {number}", columns)
        described = ", ".join(f"{name}: -1.0..1.0" for name in columns)
        declared.append(f'p{number} = bound("points {number}") described by {{{described}}}')
        listed.append(f'{{rows: vectors(p{number}), clusters: {points["groups"]}, name: "points {number}"}}')
        units.append(repr(3 * len(columns) / len(rows)))
    learnt = f"learnt = [{', '.join(listed)}]\nunits = [{', '.join(units)}]\n"
    return lines(session, "use mixtures\n" + "\n".join(declared) + "\n" + learnt + MIXTURES, epsilon)


def lines(session: Session, program: str, epsilon: float) -> list[Line]:
    """What `choose.evaluate` gives of each data set at each size, in the program's `units`, where there are."""
    session.execute(Source("ways.jst", program))
    names, interp = session.names(), session._interp
    choose = names["choose"]
    table, predicts = choose.training(interp, "epsilon", epsilon)
    ways = utilities_by_score(choose.bench(interp), table, "epsilon", DELTA, None, 1)
    if "units" in names:
        shares = [float(unit) for unit in names["units"]]
        ways = {
            way: [u * shares[run.database] for u, run in zip(some, table.runs, strict=True)]
            for way, some in ways.items()
        }
        runs = tuple(
            replace(r, utilities=tuple(tuple(u * shares[r.database] for u in level) for level in r.utilities))
            for r in table.runs
        )
        table = replace(table, runs=runs)
    each = [evaluate(table, regret_tree(depth=3), predicts, only=[name], ways=ways) for name in table.databases]
    return [line for one in each for line in one.lines[1:]]


def row(what: str, epsilon: float, found: list[Line], ratios: bool) -> str:
    """A row of the page's table: the mean of each way, of the single best option, and of the best and the worst one; of
    ratios also the geometric mean."""

    def mean(values: list[float]) -> str:
        alone = f"{sum(values) / len(values):.2f}"
        return f"{alone} ({math.exp(sum(map(math.log, values)) / len(values)):.2f})" if ratios else alone

    ways = [mean([line.ways[way] for line in found]) for way in ("features", "validation", "margin")]
    options = {name: [line.options[name] for line in found] for name in found[0].options}
    order = sorted(options, key=lambda name: sum(options[name]))
    ends = [f"{mean(options[name])} {name}" for name in (order[0], order[-1])]
    return " | ".join([f"| {what} | {epsilon:.3g}", *ways, mean([line.single for line in found]), *ends]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.experiments.ways")
    parser.add_argument("--shapes", type=int, default=len(SHAPES))
    parser.add_argument("--tables", type=int, default=16)
    parser.add_argument("--only", default="", help="histograms, classifiers or mixtures")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    asked = parser.parse_args()
    print("| data | ε | by features | by validation | by margin | single best | best option | worst option |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for epsilon in asked.epsilons:
        if asked.only in "histograms":
            print(row("histograms", epsilon, histograms(epsilon, SHAPES[: asked.shapes]), True), flush=True)
    for epsilon in asked.epsilons:
        if asked.only in "classifiers":
            print(row("classifiers", epsilon, classifiers(epsilon, asked.tables), False), flush=True)
    for epsilon in asked.epsilons:
        if asked.only in "mixtures":
            print(row("mixtures", epsilon, mixtures(epsilon, asked.tables), False), flush=True)


if __name__ == "__main__":
    main()
