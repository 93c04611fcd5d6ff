"""`best_clusters` as a program calls it, beside fixed options, diffprivlib's k-means and k-means without privacy.

    python -m tests.experiments.clusters [--tables FOLDER] [--half judged] [--sets 24] [--runs 2] [--write FILE]

Columns of numbers within [−1, 1] of the public sets of `point_data`, of ten synthetic sets of a seed that nothing was
settled on, and, with FOLDER, of Rdatasets (`real_tables`), in 3, 8 or 16 clusters by turns. Most of the rows are a
private table; each option answers by a call of its own with all of the amount. Printed is the geometric mean of the
mean squared distance of the other rows to the nearest centre (mean over runs) over that of scikit-learn's k-means on
the exact rows, with the standard error of its logarithm over sets.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jostle.kernels.simulated_points import simulated_points
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import point_data, real_tables

FIXED = {"1 round": "kmeans(v, k, 1)", "3 rounds": "kmeans(v, k, 3)", "6 rounds": "kmeans(v, k, 6)"}
AMOUNTS = (
    *(("epsilon", e, "") for e in (0.1, 0.5, 2)), *(("rho", r, "") for r in (0.005, 0.1)),
    ("epsilon", 0.5, " delta 1e-6"),
)  # fmt: skip
ASKED, SEEDS = (3, 8, 16), {"development": 77, "judged": 78}
Points = point_data.Points


def sets(folder: Path | None, half: str, many: int) -> list[tuple[str, Points, Points, int]]:
    """A name, rows to learn from, rows to judge by, and a number of clusters."""
    named = list(real_tables.points(folder, half, many).items()) if folder else []
    named += [(name, point_data.load(name)) for name in point_data.NAMES[half]]
    found = [(name, *point_data.split(point_data.scaled(x), 100), ASKED[i % 3]) for i, (name, x) in enumerate(named)]
    for i in range(10):
        made = simulated_points(SEEDS[half], i)
        found.append((f"made up {i}", made["rows"], made["test"], made["groups"]))
    return found


def losses(rows: Points, test: Points, clusters: int, amount: tuple[str, float, str], runs: int) -> dict[str, float]:
    unit, size, delta = amount
    calls = {"best_clusters": "best_clusters(v, k)"} | FIXED
    names = [f"x{i + 1}" for i in range(rows.shape[1])]
    said = ", ".join(f"{name}: -1.0..1.0" for name in names)
    found: dict[str, list[float]] = {}
    for run in range(runs):
        session = Session()
        session.bind("held", {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(names)})
        budget = f"{unit} {2 * len(calls) * size}" + (", delta 1e-3 counted by basic" if delta else "")
        session.execute(Source("experiment", f"""use best
private t = bound("held") described by {{{said}}} protecting rows budget {budget}
v = vectors(t)
k = {clusters}
"""))  # fmt: skip
        for call, text in calls.items():
            session.execute(Source("experiment", f"m = {text} with {unit} {size}{delta}\n"))
            found.setdefault(call, []).append(float(session.names()["m"].nicv(test)))
        if unit == "epsilon" and not delta:
            found.setdefault("diffprivlib", []).append(_peer(rows, test, clusters, size, run))
    return {call: float(np.mean(each)) for call, each in found.items()}


def _peer(rows: Points, test: Points, clusters: int, epsilon: float, run: int) -> float:
    try:
        from diffprivlib.models import KMeans
    except ImportError:
        return math.nan
    ends = (-np.ones(rows.shape[1]), np.ones(rows.shape[1]))
    model: Any = KMeans(clusters, epsilon=epsilon, bounds=ends, random_state=run).fit(rows)
    return _loss(np.asarray(model.cluster_centers_), test)


def _loss(centres: Points, test: Points) -> float:
    return float(((test[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1).mean())


def exact(rows: Points, test: Points, clusters: int) -> float:
    from sklearn.cluster import KMeans

    return _loss(KMeans(min(clusters, len(rows)), n_init=3, random_state=0).fit(rows).cluster_centers_, test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--half", choices=("judged", "development"), default="judged")
    parser.add_argument("--sets", type=int, default=24, help="of the folder")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--write", type=Path, help="all losses, as CSV")
    asked = parser.parse_args()
    found = []
    for name, rows, test, clusters in sets(asked.tables, asked.half, asked.sets):
        least = exact(rows, test, clusters)
        for amount in AMOUNTS:
            told = {"set": name, "unit": f"{amount[0]}{amount[2]} {amount[1]:g}", "exact": least}
            found.append(told | losses(rows, test, clusters, amount, asked.runs))
    frame = pd.DataFrame(found)
    if asked.write:
        frame.to_csv(asked.write, index=False)
    options = [column for column in frame.columns if column not in ("set", "unit", "exact")]
    logs = np.log(frame[options].div(frame["exact"], axis=0))
    print(f"{frame['set'].nunique()} sets ({asked.half})\n{'':>26}" + "".join(f"{option:>18}" for option in options))
    for unit, some in [*frame.groupby("unit", sort=False).groups.items(), ("all", frame.index)]:
        each = logs.loc[some].groupby(frame.loc[some, "set"]).mean()
        mean, error = each.mean(), each.std() / math.sqrt(len(each))
        print(f"{unit:>26}" + "".join(f"{math.exp(mean[o]):>10.3f} ± {error[o]:.3f}" for o in options))


if __name__ == "__main__":
    main()
