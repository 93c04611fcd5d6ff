"""Rows made up by `best_synthetic`, as a user calls it: how far from the private rows, and what is learned from them.

    python -m tests.experiments.synthetic [--half settled|judged] [--unit rho|epsilon|delta] [--epsilon 1] [--trials 1]
        [--only nltcs,cmc] [--tables DIR --many 8] [--with best,class,apart,tree,aim,real]

Tables of UCI and other public ones, beside the repository: SETTLED, by which constants were settled, or JUDGED, which
were looked at once; with `--tables` those of R's packages of that half (`real_tables.py`). Three quarters of the rows
are private, a quarter is held out. `--unit rho` spends the most ρ that implies (ε, 10⁻⁹), `delta` asks for ε and 10⁻⁹
as such. As many rows are made up as are private; a line has the mean distance in total variation over all (at most
1,500) pairs and triples of columns, the AUC of gradient boosting on the last column, trained on the synthetic rows
(`real`: on the private ones) and tested on those held out, and seconds of the processor. `class` has the last column
as `predict`. `aim` is OpenDP's, with its `mbi` extra, where that is installed; its workload is all triples, or pairs
with `--degree 2`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Table = tuple[str, Codes, list[int]]
"""Its name, rows as positions of values, and how many values each column has."""

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "tables"
SETTLED = ("adult", "cmc", "mushroom", "nltcs", "nursery", "tic_tac_toe")
JUDGED = ("balance", "car", "hiv_1625", "kr_vs_kp", "letters")
BINS, DELTA, MOST_SETS = 16, 1e-9, 1500


def adult() -> Any:
    import pandas as pd

    return pd.read_csv(DATA / "adult.csv", skipinitialspace=True).drop(columns="fnlwgt")


def coded(frame: Any) -> tuple[Codes, list[int]]:
    """Numbers of more than BINS values in so many equal bins, every other column by its values in order."""
    columns, sizes = [], []
    for name in frame.columns:
        column = frame[name].to_numpy()
        values, places = np.unique(column.astype(str) if column.dtype == object else column, return_inverse=True)
        if column.dtype != object and len(values) > BINS:
            unit = (column - values[0]) / (values[-1] - values[0])
            places = np.clip((unit * BINS).astype(int), 0, BINS - 1)
        columns.append(places)
        sizes.append(BINS if column.dtype != object and len(values) > BINS else len(values))
    return np.stack(columns, axis=1).astype(np.int64), sizes


def tables(asked: argparse.Namespace) -> Iterator[Table]:
    import pandas as pd

    if asked.tables:
        from tests.experiments import real_tables

        half = "development" if asked.half == "settled" else "judged"
        for name, (codes, sizes) in real_tables.tables(asked.tables, half, asked.many).items():
            yield name, codes, sizes
        return
    for name in asked.only.split(",") if asked.only else SETTLED if asked.half == "settled" else JUDGED:
        if (DATA / f"{name}.csv").exists():
            yield name, *coded(adult() if name == "adult" else pd.read_csv(DATA / f"{name}.csv", keep_default_na=False))


def ours(rows: Codes, sizes: list[int], way: str, unit: str, epsilon: float, seed: int) -> Codes:
    from jostle.accounting.definitions import rho_of
    from jostle.source import Source
    from jostle.tools.session import Session

    session = Session()
    names = [f"c{i}" for i in range(len(sizes))]
    session.bind("rows", {n: np.char.add("v", rows[:, i].astype(str)) for i, n in enumerate(names)})
    said = ", ".join(
        f"{n}: {{" + ", ".join(f'"v{v}"' for v in range(k)) + "}" for n, k in zip(names, sizes, strict=True)
    )
    amount = {"epsilon": f"epsilon {epsilon}", "rho": f"rho {rho_of(epsilon, DELTA):.12f}"}.get(
        unit, f"epsilon {epsilon} delta {DELTA}"
    )
    call = f"learn_{way}(t)"
    if way in ("best", "class"):
        call = f"best_synthetic(t, {len(rows)}" + (")" if way == "best" else f', predict = "{names[-1]}")')
    program = f"""use best
private t = bound("rows") described by {{{said}}} protecting rows budget {amount.replace(" delta", ", delta")}
made = {call} with {amount}
release made
"""
    result = session.attempt(Source("synthetic.jst", program))
    if not result.ok:
        raise RuntimeError(result.diagnostics)
    made = result["made"]
    return np.asarray((made if way in ("best", "class") else made.sample(len(rows), seed)).codes)


def of_aim(rows: Codes, sizes: list[int], unit: str, epsilon: float, degree: int, size: float) -> Codes:
    """A row that AIM leaves without a value of a column has the value beyond its last one."""
    import opendp.prelude as dp
    import polars as pl

    from jostle.accounting.definitions import rho_of

    dp.enable_features("contrib", "honest-but-curious")
    names = [f"c{i}" for i in range(len(sizes))]
    amount = {"epsilon": epsilon} if unit == "epsilon" else {"rho": rho_of(epsilon, DELTA)}
    context = dp.Context.compositor(
        data=pl.LazyFrame({n: rows[:, i] for i, n in enumerate(names)}), privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**amount),
    )  # fmt: skip
    table = context.query(**amount).select(*names).contingency_table(
        keys={n: list(range(k)) for n, k in zip(names, sizes, strict=True)},
        algorithm=dp.mbi.AIM(queries=degree, max_size=size),
    ).release()  # fmt: skip
    made = table.synthesize()
    return np.stack([made[n].cast(pl.Int64).fill_null(k).to_numpy() for n, k in zip(names, sizes, strict=True)], axis=1)


def distance(a: Codes, b: Codes, sizes: list[int], of: int) -> float:
    """The mean total variation distance over sets of so many columns."""
    sets = list(combinations(range(len(sizes)), of))
    if len(sets) > MOST_SETS:
        sets = [sets[i] for i in np.random.default_rng(0).choice(len(sets), MOST_SETS, replace=False)]
    found = []
    for some in sets:
        shape = [sizes[v] + 1 for v in some]
        p, q = (
            np.bincount(np.ravel_multi_index(tuple(x[:, v] for v in some), shape), minlength=prod(shape)) / len(x)
            for x in (a, b)
        )
        found.append(0.5 * np.abs(p - q).sum())
    return float(np.mean(found))


def auc(train: Codes, test: Codes) -> float:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    if len(np.unique(train[:, -1])) < 2:
        return 0.5
    model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(train[:12_000, :-1], train[:12_000, -1])
    scores, truth, known = model.predict_proba(test[:, :-1]), test[:, -1], list(model.classes_)
    classes = [c for c in np.unique(truth) if 0 < (truth == c).mean() < 1]
    each = [roc_auc_score(truth == c, scores[:, known.index(c)] if c in known else 0 * truth) for c in classes]
    return float(np.mean(each))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=("settled", "judged"), default="settled")
    parser.add_argument("--unit", choices=("rho", "epsilon", "delta"), default="rho")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--many", type=int, default=8)
    parser.add_argument("--with", dest="ways", default="best")
    parser.add_argument("--degree", type=int, default=3)
    parser.add_argument("--size", type=float, default=80, help="the most megabytes of AIM's model")
    asked = parser.parse_args()
    for (name, codes, sizes), way in ((t, w) for t in tables(asked) for w in asked.ways.split(",")):
        for epsilon in map(float, asked.epsilon.split(",")):
            runs = []
            for seed in range(asked.trials):
                order = np.random.default_rng(seed).permutation(len(codes))
                held, kept = codes[order[: len(order) // 4]], codes[order[len(order) // 4 :]]
                start = time.process_time()
                if way == "real":
                    made = kept
                elif way == "aim":
                    made = of_aim(kept, sizes, asked.unit, epsilon, asked.degree, asked.size)
                else:
                    made = ours(kept, sizes, way, asked.unit, epsilon, seed)
                seconds = time.process_time() - start
                runs.append([distance(kept, made, sizes, 2), distance(kept, made, sizes, 3), auc(made, held), seconds])
            two, three, area, seconds = np.mean(runs, axis=0)
            print(
                f"{name:>14} {asked.unit} {epsilon:<4g} {way:>5}  two-way {two:.4f}  three-way {three:.4f}  "
                f"AUC {area:.4f}  {seconds:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
