"""The choice among classifiers: trained on made-up tables, judged on real ones that it has not seen.

    python -m tests.experiments.classify_choice fill FOLDER [--many 108]    the runs of both, which take minutes
    python -m tests.experiments.classify_choice judge FOLDER [--model forest]

`fill` runs the options of `programs/classify.jst` on `simulated_tables` at half-decades of ε, and every option of
`stdlib/classify.jst` on two splits of each real table (one of those that scikit-learn brings) at ε = 0.05, 0.1, 0.5,
1, 4, as training would. `judge` fits policies on the made-up runs alone, at the bracket that a call's ε falls in, and
reads off what they would have chosen on the real ones, with what is left of ε after the features are paid, beside the
best of all options.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jostle.choice.models import Model, forest, regret_tree, tree
from jostle.choice.policies import decide
from jostle.choice.table import Setting, Table
from jostle.choice.training import _runs, epsilon_grid
from tests.experiments.classification import Tables, bench
from tests.experiments.classification_data import EPSILONS, NAMES, bundled, load, split

CHOSEN = (
    "Majority", "BestAttribute", "FewAttributes", "TemperedBayes", "ShrunkBayes", "BayesTree", "BayesTree2",
)  # fmt: skip
OPTIONS = (*CHOSEN, "GreedyTree", "NaiveBayes", "Linear")
FEATURES = ("many_attributes", "many_classes", "many_cells", "room")
SHARES = (0.02,)
PAID = (("room",),)
BUNDLED = ("iris", "wine", "breast_cancer", "digits")
MODELS = {"tree": tree(), "regret_tree": regret_tree(), "forest": forest(depth=6, trees=30)}
GRID = tuple(sorted({e for epsilon in EPSILONS for e in epsilon_grid(epsilon)}))


def fill(made: Tables, epsilons: Sequence[float], repeats: int, path: Path) -> None:
    settings = (Setting(0.0, ()), *(Setting(s, paid) for s in SHARES for paid in PAID))
    table = Table(
        made.option_names, made.feature_names, made.feature_is_public, made.database_names, tuple(epsilons),
        (1.0, 1 - max(SHARES)), settings, repeats, 3, "experiment", (),
    )  # fmt: skip
    runs = []
    for d in range(len(made.database_names)):
        runs += _runs(made, table, d, 1.0)
        print(f"{made.database_names[d]} ({d + 1} of {len(made.database_names)})", flush=True)
        path.write_text(json.dumps(replace(table, runs=tuple(runs)).as_json()))


def read(path: Path) -> Table:
    return Table.from_json(json.loads(path.read_text()))


def judge(known: Table, real: Table, model: Model) -> None:
    predicts = (None,) * len(known.options)
    lost, below, fixed, whose = [], [], [], []
    names = list(dict.fromkeys(n.rsplit(" ", 1)[0] for n in real.databases))
    for epsilon in EPSILONS:
        some = replace(
            known,
            runs=tuple(r for r in known.runs if r.epsilon in epsilon_grid(epsilon)),
            epsilons=epsilon_grid(epsilon),
        )
        policy = decide(some, model, predicts)
        setting = _setting(real, policy)
        line = []
        for name in names:
            mine = [r for r in real.runs if r.epsilon == epsilon and real.databases[r.database].startswith(name + " ")]
            best = np.mean([r.utilities[0] for r in mine], axis=0)
            got, taken = [], []
            for run in mine:
                scores = real.scores(run, policy.share, real.scale)
                for values in run.features[setting]:
                    features = dict(zip(real.features, values, strict=True))
                    chosen = policy.choose({n: features[n] for n in policy.needs}, run.epsilon).chosen
                    place = real.options.index(chosen)
                    got.append(scores[place])
                    taken.append(real.options[place])
            lost.append(100 * (best.max() - np.mean(got)))
            below.append(100 * (best[0] - np.mean(got)))
            fixed.append(100 * (best.max() - best))
            whose.append(name)
            most = max(set(taken), key=taken.count)
            line.append(f"{name} {lost[-1]:.1f} ({most} {taken.count(most) / len(taken):.0%})")
        print(f"ε = {epsilon:g}: {policy.name}; lost: " + ", ".join(line))
    for said, some in (("all", names), ("the six", NAMES)):
        mine = [i for i, name in enumerate(whose) if name in some]
        off, under, others = (np.array(x)[mine] for x in (lost, below, fixed))
        single = int(np.argmin(others.mean(axis=0)))
        print(
            f"{said}, {model}: loses to the best option of each cell {off.mean():.2f} points, {off.max():.1f} at worst,"
        )
        print(f"  at worst {under.max():.1f} points under the majority; best fixed option: {real.options[single]},")
        print(f"  which loses {others.mean(axis=0)[single]:.2f} on average, {others.max(axis=0)[single]:.1f} at worst")


def _setting(real: Table, policy: object) -> int:
    share, needs = policy.share, policy.needs  # type: ignore[attr-defined]
    paid = tuple(n for n in needs if not real.public[real.features.index(n)])
    fitting = [i for i, s in enumerate(real.settings) if s.share == share and (not share or set(paid) <= set(s.paid))]
    return min(fitting, key=lambda i: len(real.settings[i].paid))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("fill", "judge"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--many", type=int, default=108)
    parser.add_argument("--rows", default="100..50000")
    parser.add_argument("--model", default="forest")
    chosen = parser.parse_args()
    made_up, real = chosen.folder / "made_up.json", chosen.folder / "real.json"
    if chosen.what == "judge":
        judge(read(made_up), read(real), MODELS[chosen.model])
        return
    chosen.folder.mkdir(parents=True, exist_ok=True)
    pairs, names = [], []
    for name in (*NAMES, *BUNDLED):
        columns, domains, label = bundled(name) if name in BUNDLED else load(name)
        for seed in range(1 if name in BUNDLED else 2):
            pairs.append((*split(columns, 100 + seed), domains, label))
            names.append(f"{name} {seed}")
    tables = bench(pairs, OPTIONS, FEATURES)
    tables.database_names = tuple(names)
    fill(tables, EPSILONS, 4, real)
    made = bench([], CHOSEN, FEATURES, f"simulated_tables({chosen.many}, rows = {chosen.rows})")
    fill(made, GRID, 2, made_up)


if __name__ == "__main__":
    main()
