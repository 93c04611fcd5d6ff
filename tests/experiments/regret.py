"""The choice among histogram options on DPBench's data: mean regret by leave-one-data-set-out.

    python -m tests.experiments.regret --errors FILE [--dimension 1] [--made] [--among dawa,hdmm] [--fill] [--cells N]

Errors of single runs are kept in FILE, a line of JSON each, so that filling can be stopped and gone on with (`--fill`
runs what is missing) and choices among fewer options or by other models be compared on the same runs. A run of an
instance is a new draw of the data, the same for all options, and new noise. Of them the table is made that a program's
MkChoiceMaker would fill, features being drawn by the bench of such a program and paid for; an option's error with a
little less of ε is taken to be larger by as much. For each data set, policies are fitted, cross-validated and decided
on the others only. Regret is error ÷ the least mean error of any option with all of ε: 1 is the virtual best.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from jostle.choice.evaluation import evaluate
from jostle.choice.models import forest, regret_tree, tree
from jostle.choice.table import Run, RunTable
from jostle.choice.training import seed, settings_of, tenth_of_a_decade
from jostle.records import replace
from tests.experiments import dpbench, shapes
from tests.experiments.program_bench import OPTIONS, ScaledBench, bench

MODELS = {"tree": tree, "regret_tree": regret_tree, "forest": forest}
LESS = 0.9
Errors = dict[tuple[str, str, float], dict[int, float]]
"""By option, data set and rows: the error of every run."""


def known(path: Path) -> Errors:
    """What is in a file of errors."""
    found: Errors = defaultdict(dict)
    for line in path.read_text().splitlines() if path.exists() else ():
        one = json.loads(line)
        found[one["option"], one["data"], one["rows"]][one["run"]] = one["error"]
    return found


def fill(made: ScaledBench, epsilon: float, runs: int, path: Path, only: set[str]) -> None:
    """Runs every option `runs` times on the data sets of `only`, but for what `path` holds already."""
    have = known(path)
    with path.open("a") as out:
        for run in range(runs):
            for d, name in enumerate(made.database_names):
                for scale in made.scales(d) if name in only else ():
                    rows = made.rows_at(d, scale)
                    missing = [o for o in made.option_names if run not in have[o, name, rows]]
                    if not missing:
                        continue
                    instance = made.instance(d, scale, seed("instance", name, rows, run))
                    for option in missing:
                        began = time.process_time()
                        k = made.option_names.index(option)
                        answers = made.answer(k, instance, epsilon, seed(option, name, rows, run))
                        error = -float(made.utility(instance, answers))
                        line = {"option": option, "data": name, "rows": rows, "run": run, "error": error,
                                "cpu": round(time.process_time() - began, 4)}  # fmt: skip
                        out.write(json.dumps(line) + "\n")
                    out.flush()


def table_of(made: ScaledBench, epsilon: float, errors: Errors, draws: int) -> RunTable:
    """The table of runs: mean errors, and features drawn as training draws them."""
    settings = settings_of(made, None, False)
    table = RunTable(made.option_names, made.feature_names, made.feature_is_public, made.database_names,
                  (tenth_of_a_decade(epsilon),), (1.0, LESS), settings, 1, draws, "errors", (),
                  made.database_rows)  # fmt: skip
    runs = []
    for d, name in enumerate(made.database_names):
        for scale in made.scales(d):
            rows = made.rows_at(d, scale)
            each = [list(errors[o, name, rows].values()) for o in made.option_names]
            if not all(each):
                continue
            full = tuple(-float(np.mean(values)) for values in each)
            instance = made.instance(d, scale, seed("instance", name, rows, 0))
            features = []
            for s in settings:
                given, read = epsilon * s.share, table.read(s)
                drawn = [made.features(instance, given, seed("features", name, rows, s.share, s.paid, k), read)
                         for k in range(draws)]  # fmt: skip
                features.append(tuple(tuple(v.get(f, 0.0) for f in made.feature_names) for v in drawn))
            runs.append(Run(d, scale, epsilon, (full, tuple(u / LESS for u in full)), tuple(features)))
    return replace(table, runs=tuple(runs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--errors", required=True, help="the file of single runs")
    parser.add_argument("--dimension", type=int, choices=(1, 2), default=1)
    parser.add_argument("--cells", type=int, default=0, help="along every axis; left out, 1024 or 64")
    parser.add_argument("--among", default=",".join(OPTIONS))
    parser.add_argument("--features", default="strength", help="of stdlib/features.jst; uniformity, sparsity")
    parser.add_argument("--made", action="store_true", help="train on the shapes of tests/experiments/shapes.py too")
    parser.add_argument("--models", default="regret_tree")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=12, help="of every option on every judged instance")
    parser.add_argument("--made-runs", type=int, default=3, help="the same on made shapes")
    parser.add_argument("--draws", type=int, default=5, help="of the features, an instance and share")
    parser.add_argument("--scales", default="1e3,1e4,1e5,1e6")
    parser.add_argument("--fill", action="store_true", help="run what is missing")
    chosen = parser.parse_args()
    if not dpbench.DATA.is_dir():
        print("the public vectors are not here: there is nothing to run on")
        return
    judged, rows = dpbench.names(chosen.dimension), [float(scale) for scale in chosen.scales.split(",")]
    shape = (chosen.cells,) * chosen.dimension if chosen.cells else None
    made = bench(chosen.dimension, chosen.among.split(","), chosen.features.split(","), rows=rows, shape=shape,
                 made_up=shapes.made(chosen.dimension, shape) if chosen.made else None)  # fmt: skip
    path = Path(chosen.errors)
    if chosen.fill:
        fill(made, chosen.epsilon, chosen.runs, path, set(judged))
        fill(made, chosen.epsilon, chosen.made_runs, path, set(made.database_names) - set(judged))
    table = table_of(made, chosen.epsilon, known(path), chosen.draws)
    print(f"{len(table.databases)} data sets, {len(rows)} scales, ε = {chosen.epsilon:g}; features: {chosen.features}")
    print(own_best(table, len(judged)))
    for name in chosen.models.split(","):
        report = evaluate(table, MODELS[name](), group=made.rows_at, only=judged)
        print(f"\n{MODELS[name]()}: {report.text()}", end="")
        ratios = [f"{line.choice / line.single:.3f}" for line in report.lines]
        print("choice ÷ single best, in all and by rows:", *ratios, flush=True)


def own_best(table: RunTable, judged: int) -> str:
    """How often each option is the best on the judged instances, and its error, the geometric mean over their sets."""
    lines = []
    runs = [run for run in table.runs if run.database < judged]
    best = [int(np.argmax(run.utilities[0])) for run in runs]
    for k, option in enumerate(table.options):
        errors: dict[float, list[float]] = defaultdict(list)
        for run in runs:
            errors[round(table.rows_of(run) or 0)].append(-run.utilities[0][k])
        row = "".join(f"{dpbench.geometric_mean(values):>10.4g}" for _, values in sorted(errors.items()))
        lines.append(f"{option:>12}{row}   best on {best.count(k)}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
