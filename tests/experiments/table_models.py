"""Ways to learn a table's distribution, judged on public tables: `best_model` and `best_synthetic` take `learn_tree`.

    python -m tests.experiments.table_models [--runs 2] [--tables nursery,cmc,…]

Two losses of each way, on 30 % of the rows that it did not see: the perplexity of a column (the exponential of minus
the log-likelihood of a row, divided by the columns), and of as many rows drawn from the model the mean distance in
total variation over all pairs of columns. A figure is the loss over the least of the three in that cell; `halves` finds
the least by one run and compares by the other.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from jostle.choice.program import ChoiceParts, ProgramBench
from jostle.choice.training import seed
from jostle.kernels.graphical.model import encode_frame
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import classification_data as tables
from tests.experiments.advisors import EPSILONS, loaded
from tests.experiments.classification import described

WAYS = ("learn_apart", "learn_tree", "learn_pairs")
TABLES = ("nursery", "cmc", "balance", "tic_tac_toe", "wine", "affairs", "anes96", "flights")
ROWS = 10_000

Losses = NDArray[np.float64]


def losses(name: str, runs: int, number: int) -> Losses:
    """(ε, ways, runs, 2): perplexity, and the distance of pairs, on the rows that were left out."""
    import pandas as pd

    columns, domains, label = loaded(name)
    train, test = tables.split(columns, 100)
    train, test = ({c: v[:ROWS] for c, v in part.items()} for part in (train, test))
    session = Session()
    text = ["use graphical", *described(session, str(number), train, test, domains, label)]
    text += [f"way_{way} = Option (data) {{ return {way}(data.database) }}" for way in WAYS]
    session.execute(Source("experiment", "\n".join([*text, "none_yet = Utility (data, model) { return 0 }\n"])))
    known = session.names()
    bench = ProgramBench(session._interp, ChoiceParts(
        options=tuple(known[f"way_{way}"] for way in WAYS), option_names=WAYS, features=(), feature_names=(),
        utility=known["none_yet"], databases=(known[f"d_{number}"],),
    ))  # fmt: skip
    frame, found = pd.DataFrame(test), np.empty((len(EPSILONS), len(WAYS), runs, 2))
    for e, epsilon in enumerate(EPSILONS):
        for w, way in enumerate(WAYS):
            for run in range(runs):
                data = bench.instance(0, 1.0, seed("instance", name, run))
                model = bench.answer(w, data, epsilon, seed(way, name, epsilon, run))
                rows = encode_frame(model.domain, frame)
                drawn = model.sample(len(frame), run)
                far = [
                    np.abs(rows.table(*pair) / len(frame) - drawn.table(*pair) / len(frame)).sum() / 2
                    for pair in combinations(model.domain.names, 2)
                ]  # fmt: skip
                found[e, w, run] = np.exp(-model.log_likelihood(frame) / len(columns)), np.mean(far)
    return found


def report(found: Losses, names: list[str]) -> str:
    lines = []
    for kind, what in enumerate(("perplexity of a column", "distance of pairs, of rows drawn")):
        each = found[..., kind]  # (tables, ε, ways, runs)
        over = each.mean(axis=-1) / each.mean(axis=-1).min(axis=-1, keepdims=True)
        lines.append(f"{what}, over the least of the three: mean and 95th percentile, {len(names)} tables")
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
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--tables", default=",".join(TABLES))
    asked = parser.parse_args()
    names = asked.tables.split(",")
    found = []
    for number, name in enumerate(names):
        found.append(losses(name, asked.runs, number))
        print(f"{name} done", flush=True)
    print(report(np.array(found), names))


if __name__ == "__main__":
    main()
