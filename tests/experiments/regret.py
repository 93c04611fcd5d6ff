"""The choice among histogram options on DPBench's data: mean regret by leave-one-data-set-out.

    python -m tests.experiments.regret [--dimension 1] [--among dawa,mwem] [--features rows] [--runs FOLDER]

The table of runs is filled by the training that a program's MkChoiceMaker has (`jostle.choice.training`), on public
data with the noise that options and features would have; features are paid out of the call's ε. For each data set,
policies are fitted, cross-validated and decided on the others only. Regret is error ÷ the least error of any option
with all of ε: 1 is the virtual best, and what a policy spends on features counts against it.

`--runs`: a folder in which tables of runs are kept, so that models can be compared on the same runs.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from jostle.choice.evaluation import evaluate
from jostle.choice.models import Model, forest, regret_tree, tree
from jostle.choice.policies import decide
from jostle.choice.store import digest
from jostle.choice.table import Setting, Table
from jostle.choice.training import train
from tests.experiments import dpbench, shapes
from tests.experiments.program_bench import OPTIONS, ScaledBench, bench

MODELS = {"tree": tree, "regret_tree": regret_tree, "forest": forest}


def table_of(
    made: ScaledBench, epsilon: float, share: float | None, repeats: int, draws: int, folder: Path | None
) -> Table:
    """The table of runs, from `folder` where it was filled before."""
    name = digest(made.key, made.rows, epsilon, share, repeats, draws, list(made.database_names))
    path = folder / f"{name}.json" if folder is not None else None
    if path is not None and path.exists():
        return Table.from_json(json.loads(path.read_text()))
    table = train(made, epsilon, share, repeats=repeats, draws=draws, workers=1)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(table.as_json()))
    return table


def choice_errors(made: ScaledBench, table: Table, model: Model, dimension: int) -> dict[float, float]:
    """By number of rows, the choice's error: the geometric mean over data sets, each left out of its training."""
    found: dict[float, list[float]] = {}
    predicts = (None,) * len(table.options)
    for database in range(len(dpbench.names(dimension))):
        policy = decide(table.without(database), model, predicts)
        setting = next(k for k, s in enumerate(table.settings) if s.share == policy.share or not policy.share)
        if policy.share:
            paid = tuple(name for name in policy.needs if not table.public[table.features.index(name)])
            setting = table.settings.index(Setting(policy.share, paid))
        for run in (r for r in table.runs if r.database == database):
            scores = table.scores(run, policy.share, table.scale)
            for values in run.features[setting]:
                features = dict(zip(table.features, values, strict=True))
                taken = policy.choose({name: features[name] for name in policy.needs}, run.epsilon).index
                found.setdefault(made.rows_at(database, run.scale), []).append(-table.scale.utility(scores[taken]))
    return {rows: dpbench.geometric_mean(errors) for rows, errors in sorted(found.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimension", type=int, choices=(1, 2), default=1)
    parser.add_argument("--among", default=",".join(OPTIONS))
    parser.add_argument("--features", default="strength", help="of stdlib/features.jst; uniformity, sparsity")
    parser.add_argument("--made", action="store_true", help="train on the shapes of tests/experiments/shapes.py too")
    parser.add_argument("--models", default="tree,regret_tree")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--share", type=float, default=None, help="left out, cross-validation finds it")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--scales", default="1e3,1e4,1e5,1e6")
    parser.add_argument("--runs", default="")
    chosen = parser.parse_args()
    if not dpbench.DATA.is_dir():
        print("the public vectors are not here: there is nothing to run on")
        return
    rows = [float(scale) for scale in chosen.scales.split(",")]
    began = time.process_time()
    made = bench(chosen.dimension, chosen.among.split(","), chosen.features.split(","), rows=rows,
                 made_up=shapes.made(chosen.dimension) if chosen.made else None)  # fmt: skip
    folder = Path(chosen.runs) if chosen.runs else None
    table = table_of(made, chosen.epsilon, chosen.share, chosen.repeats, chosen.draws, folder)
    print(f"{len(table.databases)} data sets × {len(rows)} scales × {chosen.repeats} runs of {len(table.options)}")
    print(f"options at ε = {chosen.epsilon:g}: {time.process_time() - began:.0f} s of CPU; features: {chosen.features}")
    for name in chosen.models.split(","):
        model = MODELS[name]()
        print(f"\n{model}: ", end="")
        print(evaluate(table, model, group=made.rows_at, only=dpbench.names(chosen.dimension)).text(), end="")
        errors = choice_errors(made, table, model, chosen.dimension)
        print("scaled error of the choice × 1e6:", ", ".join(f"{r:g}: {e:.4g}" for r, e in errors.items()), flush=True)


if __name__ == "__main__":
    main()
