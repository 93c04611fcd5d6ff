"""The choice among classifiers: trained on made-up tables, judged on real ones that it has not seen.

    python -m tests.experiments.classify_choice fill FOLDER [--many 108]    the runs of both, which take minutes
    python -m tests.experiments.classify_choice judge FOLDER [--model forest]

`fill` runs the options of `programs/classify.jst` on `simulated_tables` at half-decades of ε, as often as training
would, and every option of `stdlib/classify.jst` four times on each of ten splits of every real table, at ε = 0.05, 0.1,
0.5, 1, 4. `judge` fits policies on the made-up runs alone, at the bracket that a call's ε falls in, and reads off what
they would have chosen on the real ones, with what is left of ε after the features are paid, beside the best of all
options.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jostle.choice.models import Model, forest, regret_tree, tree
from jostle.choice.policies import decide
from jostle.choice.table import RunTable
from jostle.choice.training import REPEATS, _runs, epsilon_grid, settings_of
from jostle.choice.workers import run_all
from tests.experiments.classification import Tables, bench
from tests.experiments.classification_data import BUNDLED, EPSILONS, NAMES, bundled, load, split

Array = NDArray[np.float64]
CHOSEN = ("Majority", "BestAttribute", "FewAttributes", "TunedBayes", "TunedTree")
OPTIONS = (*CHOSEN, "BayesTree", "BayesTree2", "TemperedBayes", "ShrunkBayes", "GreedyTree", "NaiveBayes", "Linear")
FEATURES = ("many_classes", "signal")
SPLITS, FITS = 10, 4
MODELS = {"tree": tree(), "regret_tree": regret_tree(), "forest": forest(depth=6, trees=30)}
GRID = tuple(sorted({e for epsilon in EPSILONS for e in epsilon_grid(epsilon)}))


def fill(made: Tables, epsilons: Sequence[float], repeats: int, path: Path) -> None:
    settings = settings_of(made, None, False)
    table = RunTable(
        made.option_names, made.feature_names, made.feature_is_public, made.database_names, tuple(epsilons),
        (1.0, 1 - max(s.share for s in settings)), settings, repeats, 3, "experiment", (),
    )  # fmt: skip
    pieces = run_all(lambda d: _runs(made, table, d, 1.0), len(made.database_names), _told, None)
    path.write_text(json.dumps(replace(table, runs=tuple(run for piece in pieces for run in piece)).as_json()))


def _told(done: int, total: int) -> None:
    print(f"{done} of {total}", end="\r" if done < total else "\n", flush=True)


def read(path: Path) -> RunTable:
    return RunTable.from_json(json.loads(path.read_text()))


@dataclass(frozen=True)
class Cell:
    """A table at an ε: accuracies in % on its splits, of every option (splits, options) and of what was chosen."""

    name: str
    options: Array
    got: Array

    @property
    def lost(self) -> Array:
        """To the option that is the best on average, on each split."""
        lost: Array = self.options[:, self.options.mean(axis=0).argmax()] - self.got
        return lost

    @property
    def lost_to_the_others_best(self) -> float:
        """To the option that is the best on the other half of the splits: the largest of means flatters nobody."""
        odd = np.arange(len(self.got)) % 2 == 1
        halves = ((odd, ~odd), (~odd, odd))
        return float(np.mean([(self.options[h, self.options[o].mean(axis=0).argmax()] - self.got[h]).mean()
                              for h, o in halves]))  # fmt: skip


def judge(known: RunTable, real: RunTable, model: Model) -> None:
    predicts = (None,) * len(known.options)
    cells = []
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
            got, taken = [], []
            for run in mine:
                scores = real.scores(run, policy.share, real.scale)
                some_draws = []
                for values in run.features[setting]:
                    features = dict(zip(real.features, values, strict=True))
                    chosen = policy.choose({n: features[n] for n in policy.needs}, run.epsilon).chosen
                    some_draws.append(scores[real.options.index(chosen)])
                    taken.append(chosen)
                got.append(np.mean(some_draws))
            cells.append(Cell(name, 100 * np.array([r.utilities[0] for r in mine]), 100 * np.array(got)))
            most = max(set(taken), key=taken.count)
            line.append(f"{name} {cells[-1].lost.mean():.1f} ({most} {taken.count(most) / len(taken):.0%})")
        print(f"ε = {epsilon:g}: {policy.name}; lost: " + ", ".join(line))
    for said, listed in (("all", names), ("the six", NAMES)):
        report(f"{said}, {model}", [c for c in cells if c.name in listed], real.options)


def report(said: str, cells: Sequence[Cell], options: Sequence[str]) -> None:
    lost = np.array([c.lost.mean() for c in cells])
    error = np.sqrt(sum(c.lost.var(ddof=1) / len(c.got) for c in cells)) / len(cells)
    under = np.array([(c.options[:, 0] - c.got).mean() for c in cells])
    fixed = np.array([c.options.mean(axis=0).max() - c.options.mean(axis=0) for c in cells])
    print(f"{said}: loses {lost.mean():.2f} ± {error:.2f} points to the best of each cell, {lost.max():.1f} at worst;")
    print(
        f"  {np.mean([c.lost_to_the_others_best for c in cells]):.2f} to the option that is best on the other splits;"
    )
    print(f"  at worst {under.max():.1f} points under the majority, {np.sort(under)[-2]:.1f} the next")
    for place in np.argsort(fixed.mean(axis=0))[:5]:
        low = max(float((c.options[:, 0] - c.options[:, place]).mean()) for c in cells)
        mean, worst = fixed[:, place].mean(), fixed[:, place].max()
        print(f"  {options[place]} always: {mean:.2f}, {worst:.1f} at worst, {low:.1f} under the majority")


def _setting(real: RunTable, policy: object) -> int:
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
        for seed in range(SPLITS):
            pairs.append((*split(columns, 100 + seed), domains, label))
            names.append(f"{name} {seed}")
    tables = bench(pairs, OPTIONS, FEATURES)
    tables.database_names = tuple(names)
    fill(tables, EPSILONS, FITS, real)
    made = bench([], CHOSEN, FEATURES, f"simulated_tables({chosen.many}, rows = {chosen.rows})")
    fill(made, GRID, REPEATS, made_up)


if __name__ == "__main__":
    main()
