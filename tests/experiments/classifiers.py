"""Test accuracy of every classifier on six tables at five ε, beside the numbers to reach and the peers.

    python -m tests.experiments.classifiers [--tables nursery,cmc] [--options NaiveBayes] [--repeats 10] [--out FILE]

Each repeat is a random 70/30 split, public domains, pure ε, one fit. Lines give the mean test accuracy in per cent and
its standard error over repeats.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.experiments.classification import bench
from tests.experiments.classification_data import EPSILONS, FOLDER, NAMES, load, split

OPTIONS = (
    "Majority", "NaiveBayes", "TemperedBayes", "OneAttribute", "FewAttributes", "BayesTree", "BayesTree2", "Linear",
    "ShrunkTree", "AdaptiveClassifier",
)  # fmt: skip
TO_REACH = {
    "nursery": (80.5, 86.5, 90, 91.5, 93),
    "cmc": (41.5, 41.5, 46, 50, 52),
    "hiv_1625": (78, 78, 86, 91, 93),
    "adult": (80, 81.5, 82, 82.5, 83.5),
}


def runs(name: str, options: tuple[str, ...], repeats: int) -> tuple[dict[str, Any], dict[str, float]]:
    """Accuracies {option: (ε, repeats)}, and CPU seconds a fit."""
    columns, domains, label = load(name)
    made = bench([(*split(columns, r), domains, label) for r in range(repeats)], options)
    found: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for place, option in enumerate(options):
        began, each = 0.0, np.zeros((len(EPSILONS), repeats))
        for i, epsilon in enumerate(EPSILONS):
            for r in range(repeats):
                data = made.instance(r, 1.0, 0)
                start = time.process_time()
                model = made.answer(place, data, epsilon, 7919 * r + i)
                began += time.process_time() - start
                each[i, r] = 100 * made.utility(data, model)
        found[option] = each.tolist()
        seconds[option] = began / each.size
    return found, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(NAMES))
    parser.add_argument("--options", default=",".join(OPTIONS))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", default="", help="a JSON file for all accuracies")
    chosen = parser.parse_args()
    if not FOLDER.is_dir():
        print("the public tables are not here: there is nothing to run on")
        return
    options = tuple(chosen.options.split(","))
    kept = json.loads(Path(chosen.out).read_text()) if chosen.out and Path(chosen.out).exists() else {}
    for name in chosen.tables.split(","):
        found, seconds = runs(name, options, chosen.repeats)
        print(f"\n{name}, {chosen.repeats} splits: accuracy % at ε = {', '.join(f'{e:g}' for e in EPSILONS)}")
        for option, each in found.items():
            a = np.array(each)
            errors = a.std(axis=1, ddof=1) / np.sqrt(a.shape[1])
            line = "  ".join(f"{m:5.1f} ± {s:3.1f}" for m, s in zip(a.mean(axis=1), errors, strict=True))
            print(f"  {option:14} {line}   {seconds[option] * 1000:.0f} ms a fit", flush=True)
        best = np.max([np.mean(each, axis=1) for each in found.values()], axis=0)
        print(f"  {'best':14} {'  '.join(f'{b:5.1f}      ' for b in best)}")
        if name in TO_REACH:
            print(f"  {'to reach':14} {'  '.join(f'{b:5.1f}      ' for b in TO_REACH[name])}")
        kept.setdefault(name, {}).update(found)
        if chosen.out:
            Path(chosen.out).write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
