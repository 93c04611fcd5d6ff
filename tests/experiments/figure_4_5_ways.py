"""Which places of Figure 4.5 are worth a choice for a whole table: ways to grow a tree in NumPy, on synthetic tables.

    python -m tests.experiments.figure_4_5_ways [--tables 120] [--rows 20..50000] [--runs 3]

Each way grows a tree on every table at ε = 0.1 and 1, several times. For each set of ways the best one is taken by all
runs, and that of each table by all runs of it but one, by which both are judged: the largest of noisy means flatters
nobody. Printed: the accuracy of the best way in %, what taking each table's own would gain in points with the 95 %
interval over tables, and that as a share of the wrong rows. Last, the points lost by each way to the best of all by
`signal`, the logarithm of ε · rows / (cells of the attributes' tables × attributes).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from jostle.kernels.classifiers.shrink import shrunk_bayes_model
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.kernels.simulated_tables import synthetic_table
from jostle.noise_laws import Laplace
from tests.experiments.figure_4_5_nodes import Array, Growth, Table, _say, utility

EPSILONS, TESTED, SEED = (0.1, 1.0), 2000, 46
EDGES = (-9, -5, -4, -3, -2, -1, 0, 1, 2, 9)
Way = Callable[[Table, float, np.random.Generator], Array]
"""From a table, ε and what draws to the votes for each class of the rows to be right on."""
Votes = Callable[[Array], Array]
"""From rows to the votes for each class."""


def made(number: int, least: int, most: int) -> Table:
    t = synthetic_table(number, SEED, least, most, TESTED)
    cut = len(t.labels) - TESTED
    return Table(t.cells[:cut], t.labels[:cut], t.cells[cut:], t.labels[cut:], np.array(t.sizes), t.classes)


def counting(stop: str, split: str, levels: int, trees: int = 1) -> Way:
    """Trees whose leaves count the classes, as in the figure's five algorithms; several add up their counts."""

    def votes(t: Table, epsilon: float, r: np.random.Generator) -> Array:
        many = max(2.0, len(t.y) + r.laplace(0, 50 / epsilon))
        each = epsilon * 0.98 / trees
        total = np.zeros((len(t.test_y), t.classes))
        for _ in range(trees):
            deep = min(levels, len(t.values))
            growth = Growth(t, lambda signal: (stop, split), each / (3 * max(1, deep)), many, r)
            root = growth.node(t.x, t.y, list(range(len(t.values))), deep, each, many)
            if trees == 1:
                said = np.zeros(len(t.test_y), int)
                _say(root, t.test_x, np.arange(len(said)), None, 1.5 / each, said)
                total[np.arange(len(said)), said] = 1
            else:
                _add(root, t.test_x, np.arange(len(total)), total)
        return total

    return votes


def _add(root: Any, x: Array, rows: Array, total: Array) -> None:
    if not isinstance(root, tuple):
        total[rows] += np.maximum(root, 0)
        return
    for value, part in enumerate(root[1]):
        _add(part, x, rows[x[rows, root[0]] == value], total)


def with_bayes(levels: int) -> Way:
    """A tree of so many tests by Gini's index, a fifth of ε in all, whose leaves count each attribute by itself."""

    def votes(t: Table, epsilon: float, r: np.random.Generator) -> Array:
        deep = min(levels, len(t.values) - 1, max(1, int(np.log(64) / np.log(max(2, t.values.mean())))))
        share = epsilon / 5 / max(1, deep)
        grown = _grown(t, t.x, t.y, list(range(len(t.values))), deep, share, epsilon, r)
        return grown(t.test_x)

    return votes


def _grown(
    t: Table, x: Array, y: Array, atts: list[int], levels: int, share: float, left: float, r: np.random.Generator
) -> Votes:
    if levels == 0:
        return _bayes(t, x, y, atts, left, r)
    scores = []
    for a in atts:
        counts = np.bincount(x[:, a] * t.classes + y, minlength=t.values[a] * t.classes).reshape(-1, t.classes)
        score, sensitivity = utility("gini", counts, 2)
        scores.append(share * score / sensitivity)
    best = atts[int(np.argmax(np.array(scores) + r.gumbel(size=len(scores))))]
    rest, places = [a for a in atts if a != best], [x[:, best] == v for v in range(t.values[best])]
    parts = [_grown(t, x[m], y[m], rest, levels - 1, share, left - share, r) for m in places]

    def votes(rows: Array) -> Array:
        out = np.zeros((len(rows), t.classes))
        for value, part in enumerate(parts):
            mine = rows[:, best] == value
            out[mine] = part(rows[mine])
        return out

    return votes


def _bayes(t: Table, x: Array, y: Array, atts: list[int], epsilon: float, r: np.random.Generator) -> Votes:
    """Naive Bayes of one noisy table an attribute, drawn towards independence as `shrunk_bayes` does."""
    noise, tables = NoiseModel(Laplace(len(atts) / epsilon)), []
    for a in atts:
        shape = (t.classes, int(t.values[a]))
        counts = np.bincount(y * shape[1] + x[:, a], minlength=shape[0] * shape[1]).reshape(shape)
        tables.append(with_noise(counts + r.laplace(0, noise.law.scale, shape), noise))
    attributes = [{"name": str(a), "values": list(range(t.values[a]))} for a in atts]
    model = shrunk_bayes_model(list(range(t.classes)), attributes, tables)
    weights = [(int(name), w.T) for name, (_, w) in model.weights.items()]
    return lambda rows: np.asarray(model.base + sum(w[rows[:, a]] for a, w in weights))


WAYS = {
    "no test": counting("thin below", "max", 0), "1 test": counting("thin below", "max", 1),
    "2 tests": counting("thin below", "max", 2), "4 tests": counting("thin below", "max", 4),
    "4, never soon": counting("never soon", "max", 4), "4, too small": counting("too small", "max", 4),
    "4, by Gini": counting("thin below", "gini", 4), "4, 3 trees": counting("thin below", "max", 4, 3),
    "4, 10 trees": counting("thin below", "chance", 4, 10),
    "Bayes": with_bayes(0), "1 test, Bayes": with_bayes(1), "2 tests, Bayes": with_bayes(2),
}  # fmt: skip
SETS = {
    "when to stop": ("4 tests", "4, never soon", "4, too small"), "how to split": ("4 tests", "4, by Gini"),
    "how many trees": ("4 tests", "4, 3 trees", "4, 10 trees"),
    "how deep": ("no test", "1 test", "2 tests", "4 tests"),
    "tests before Bayes": ("Bayes", "1 test, Bayes", "2 tests, Bayes"),
    "what a leaf says": ("2 tests", "Bayes", "1 test, Bayes"), "any": tuple(WAYS),
}  # fmt: skip


def gain(right: Array) -> str:
    """Of `right` (tables, ways, runs), in %: the best way's accuracy, and what each table's own way gains over it."""
    best, runs = int(right.mean(axis=(0, 2)).argmax()), range(right.shape[2])
    gains = []
    for run in runs:
        own = right[:, :, [other for other in runs if other != run]].mean(axis=2).argmax(axis=1)
        gains.append(right[np.arange(len(right)), own, run] - right[:, best, run])
    each, top = np.mean(gains, axis=0), right[:, best].mean()
    error = 1.96 * each.std(ddof=1) / np.sqrt(len(each))
    return f"{top:.1f} {each.mean():+.2f} ± {error:.2f} ({100 * each.mean() / (100 - top):.0f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=120)
    parser.add_argument("--rows", default="20..50000")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    least, most = (int(part) for part in asked.rows.split(".."))
    right = np.zeros((len(EPSILONS), asked.tables, len(WAYS), asked.runs))
    signal = np.zeros((len(EPSILONS), asked.tables))
    for number in range(asked.tables):
        t = made(number, least, most)
        for e, epsilon in enumerate(EPSILONS):
            signal[e, number] = np.log(epsilon * len(t.y) / (t.values.sum() * t.classes * len(t.values)))
            for w, way in enumerate(WAYS.values()):
                for run in range(asked.runs):
                    votes = way(t, epsilon, np.random.default_rng([SEED, number, e, w, run]))
                    right[e, number, w, run] = 100 * (votes.argmax(axis=1) == t.test_y).mean()
    names = list(WAYS)
    print(f"{'the choice':20}" + "".join(f"ε = {epsilon:<32g}" for epsilon in EPSILONS))
    for said, ways in SETS.items():
        places = [names.index(way) for way in ways]
        print(f"{said:20}" + "".join(f"{gain(right[e][:, places]):36}" for e in range(len(EPSILONS))))
    means, where = right.mean(axis=3).reshape(-1, len(WAYS)), signal.ravel()
    print("\nsignal     places  " + "  ".join(names))
    for low, high in pairwise(EDGES):
        here = means[(where >= low) & (where < high)]
        if len(here):
            lost = (here.max(axis=1, keepdims=True) - here).mean(axis=0)
            each = (f"{points:{len(name)}.1f}" for name, points in zip(names, lost, strict=True))
            print(f"{low:3d} to {high:3d} {len(here):6d}  " + "  ".join(each))


if __name__ == "__main__":
    main()
