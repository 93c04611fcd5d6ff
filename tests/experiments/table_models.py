"""Ways to learn a table's distribution, judged: `best_model` and `best_synthetic` take `learn_forest`.

    python -m tests.experiments.table_models --tables DIR [--half judged|development] [--many 16] [--runs 4]
    python -m tests.experiments.table_models --made 16 [--seed 3]
    python -m tests.experiments.table_models --named nursery,cmc,…

`DIR` holds public tables of R's packages (`tests/experiments/real_tables.py` says which count); `--made` are made-up
tables, `--named` those of `tests/experiments/classification_data.py`. Two losses of each way, on 30 % of the rows (of
made-up ones 2,000 more) that it did not see: the perplexity of a column (the exponential of minus the log-likelihood
of a row, divided by the columns), and of as many rows drawn from the model the mean distance in total variation over
all pairs of columns. A figure is the loss over the least of the four in that cell; `halves` finds the least by one
half of the runs and compares by the other; the last line compares with the least of the first three alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.choice.program import ChoiceParts, ProgramBench
from jostle.choice.training import seed
from jostle.kernels.classifiers.synthetic_tables import synthetic_table
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import classification_data as classified
from tests.experiments import real_tables
from tests.experiments.advisors import EPSILONS, loaded

WAYS = ("learn_apart", "learn_tree", "learn_pairs", "learn_forest")
BEFORE = 3  # of these, ways that `learn_forest` is compared with
NAMED = ("nursery", "cmc", "balance", "tic_tac_toe", "wine", "affairs", "anes96", "flights")
ROWS = 10_000
TESTED = 2000

Losses = NDArray[np.float64]
Codes = NDArray[np.int64]
Table = tuple[str, Codes, Codes, list[int]]
"""Its name, rows to learn from and to judge by as positions of values, and how many values each column has."""


def tables(asked: argparse.Namespace) -> Iterator[Table]:
    if asked.tables:
        for name, (codes, sizes) in real_tables.tables(asked.tables, asked.half, asked.many).items():
            order = np.random.default_rng(100).permutation(len(codes))
            edge = int(classified.TRAINING_SHARE * len(codes))
            yield name, codes[order[:edge]], codes[order[edge:]], sizes
    elif asked.made:
        for number in range(asked.made):
            made = synthetic_table(number, asked.seed, 100, 20_000, TESTED)
            codes = np.column_stack([made.cells, made.labels])[:, -16:]
            yield f"made {number}", codes[:-TESTED], codes[-TESTED:], [*made.sizes, made.classes][-16:]
    else:
        for name in asked.named.split(","):
            columns, domains, _ = loaded(name)
            parts = [
                np.column_stack([np.searchsorted(domains[c], list(cells[:ROWS])) for c, cells in part.items()])
                for part in classified.split(columns, 100)
            ]
            yield name, parts[0], parts[1], [len(domains[c]) for c in columns]


def losses(table: Table, runs: int) -> Losses:
    """(ε, ways, runs, 2): perplexity, and the distance of pairs, on the rows that were left out."""
    name, train, test, sizes = table
    names = [f"c{i}" for i in range(len(sizes))]
    session = Session()
    session.bind("rows", {c: train[:, i] for i, c in enumerate(names)})
    said = ", ".join(f"{c}: 0..{size - 1}" for c, size in zip(names, sizes, strict=True))
    text = ["use graphical", f'd = {{database: bound("rows") described by {{{said}}}, name: "d"}}']
    text += [f"way_{way} = Option (data) {{ return {way}(data.database) }}" for way in WAYS]
    session.execute(Source("experiment", "\n".join([*text, "none_yet = Utility (data, model) { return 0 }\n"])))
    known = session.names()
    bench = ProgramBench(session._interp, ChoiceParts(
        options=tuple(known[f"way_{way}"] for way in WAYS), option_names=WAYS, features=(), feature_names=(),
        utility=known["none_yet"], databases=(known["d"],),
    ))  # fmt: skip
    found = np.empty((len(EPSILONS), len(WAYS), runs, 2))
    for e, epsilon in enumerate(EPSILONS):
        for w, way in enumerate(WAYS):
            for run in range(runs):
                data = bench.instance(0, 1.0, seed("instance", name, run))
                model = bench.answer(w, data, epsilon, seed(way, name, epsilon, run))
                found[e, w, run] = _losses(model, test, run)
    return found


def _losses(model: Any, test: Codes, run: int) -> tuple[float, float]:
    drawn = model.sample(len(test), run)
    rows = type(drawn)(model.domain, test)
    far = [
        np.abs(rows.table(*pair) - drawn.table(*pair)).sum() / 2 / len(test)
        for pair in combinations(model.domain.names, 2)
    ]
    return float(np.exp(-model.log_likelihood(rows) / test.shape[1])), float(np.mean(far))


def report(found: Losses, names: list[str]) -> str:
    lines = []
    for kind, what in enumerate(("perplexity of a column", "distance of pairs, of rows drawn")):
        each = found[..., kind]  # (tables, ε, ways, runs)
        over = each.mean(axis=-1) / each.mean(axis=-1).min(axis=-1, keepdims=True)
        lines.append(f"{what}, over the least of the four: mean and 95th percentile, {len(names)} tables")
        lines.append(f"{'ε':>6}" + "".join(f"{way:>20}" for way in WAYS))
        for place, epsilon in enumerate((*EPSILONS, None)):
            some = over.reshape(-1, len(WAYS)) if epsilon is None else over[:, place]
            row = "".join(f"{x.mean():>12.3f} {np.percentile(x, 95):>7.3f}" for x in some.T)
            lines.append(f"{'all' if epsilon is None else epsilon:>6}{row}")
        if each.shape[-1] > 1:
            one, other = each[..., ::2].mean(axis=-1), each[..., 1::2].mean(axis=-1)
            halves = [a / np.take_along_axis(a, b.argmin(-1)[..., None], -1) for a, b in ((one, other), (other, one))]
            means = np.mean(halves, axis=0).reshape(-1, len(WAYS)).mean(axis=0)
            lines.append(f"{'halves':>6}" + "".join(f"{x:>12.3f} {'':>7}" for x in means))
        ratio = each.mean(axis=-1)[..., -1] / each.mean(axis=-1)[..., :BEFORE].min(axis=-1)
        shown = [f"{part.mean():.3f}" for part in (*ratio.T, ratio)]
        lines.append(f"{WAYS[-1]} over the least of the others, by ε and in all: " + ", ".join(shown))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--half", choices=("development", "judged"), default="judged")
    parser.add_argument("--many", type=int, default=16)
    parser.add_argument("--made", type=int, default=0)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--named", default=",".join(NAMED))
    parser.add_argument("--runs", type=int, default=4)
    asked = parser.parse_args()
    names, found = [], []
    for table in tables(asked):
        found.append(losses(table, asked.runs))
        names.append(table[0])
        print(f"{table[0]}: {table[1].shape[0]} rows, {len(table[3])} columns", flush=True)
    print(report(np.array(found), names))


if __name__ == "__main__":
    main()
