"""`best_regression` as a program calls it, beside every fixed option and diffprivlib's, on rows that were left out.

    python -m tests.experiments.regressions [--tables FOLDER] [--half judged] [--many 20] [--runs 2] [--write FILE]

Without FOLDER the eight public tables of `regression_data`. FOLDER holds the CSV files of Rdatasets, PACKAGE/NAME.csv:
of those whose md5 of PACKAGE/NAME begins with 8 or more (the others, `--half development`, settled constants) the first
`--many` in the order of another md5 are taken that fit, two of a package at most: 500 rows and more, of which 20,000
are drawn, without a missing cell in the columns kept. Kept are the first 20 numbers and texts of 2 to 20 values with at
most a fifth missing; numbers that are all different and whole are names of rows. The target is one of the numbers of
ten values and more, by the same md5. Bounds are rounded outwards.

Seven tenths of a table are a private table, and each option answers by a call of its own with all of the amount.
Printed is the geometric mean of the root mean square error on the other rows (mean over runs) over the least of the
fixed options, with the standard error of its logarithm over tables. The least of noisy means is below any true mean,
so that ratios are too large. diffprivlib, where it is installed, gets numbers and texts as indicators within the same
bounds.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import regression_data
from tests.experiments.real_tables import half_of

FIXED = {
    "mean": "mean_only(t, y)", "1 round": "stagewise(t, y, 1)", "2 rounds": "stagewise(t, y, 2)",
    "4 rounds": "stagewise(t, y, 4)", "ridge": "ridge(t, y)",
}  # fmt: skip
AMOUNTS = (
    *(("epsilon", e, "") for e in (0.01, 0.1, 0.5, 1, 4)), *(("rho", r, "") for r in (0.001, 0.05, 1)),
    *(("epsilon", e, " delta 1e-6") for e in (0.1, 1)),
)  # fmt: skip
Table = tuple[str, regression_data.Columns, dict[str, regression_data.Domain], str]
LEAST, MOST, COLUMNS, VALUES = 500, 20_000, 20, 20
SIZES = (15_000, 3_000_000)
"""Bytes of the files that are looked at."""


def number_of(text: str) -> int:
    return int(hashlib.md5(text.encode()).hexdigest(), 16)


def of_folder(folder: Path, half: str) -> Iterator[Table]:
    """The tables of a half that fit, by name, in an order by chance; of variants one, and of a package two."""
    files = {f"{file.parent.name}/{file.stem}": file for file in folder.glob("*/*.csv")}
    known = set()
    packages: Counter[str] = Counter()
    for name in sorted(files, key=lambda n: number_of(f"regression {n}")):
        if (
            half_of(name) != half
            or packages[name.split("/")[0]] == 2
            or not SIZES[0] < files[name].stat().st_size < SIZES[1]
        ):
            continue
        kept = fitting(pd.read_csv(files[name], low_memory=False, encoding_errors="replace"), name)
        if kept is None or tuple(sorted(kept[0].columns)) in known:
            continue
        known.add(tuple(sorted(kept[0].columns)))
        packages[name.split("/")[0]] += 1
        yield (name, *described(*kept))


def fitting(table: pd.DataFrame, name: str) -> tuple[pd.DataFrame, str] | None:
    """The columns kept and the target; none where the table does not fit."""
    kept = []
    for column in table.columns:
        known = table[column].dropna()
        if str(column).lower() in ("rownames", "id") or len(known) < 0.8 * len(table):
            continue
        if known.dtype.kind in "iuf":
            whole = bool((known == known.round()).all())
            if known.nunique() > 1 and not (whole and known.nunique() > 0.95 * len(known)):
                kept.append(column)
        elif known.dtype.kind == "b" or 2 <= known.nunique() <= VALUES:
            kept.append(column)
    table = table[kept].dropna()
    numbers = [c for c in kept if table[c].dtype.kind in "iuf" and table[c].nunique() >= 10]
    if len(table) < LEAST or len(kept) < 3 or not numbers:
        return None
    target = numbers[number_of(f"{name}target") % len(numbers)]
    others = [c for c in kept if c != target][:COLUMNS]
    low, high = bounds(table[target].to_numpy(float))
    if table[target].std() < 0.01 * (high - low):
        return None
    return table[[*others, target]].sample(min(len(table), MOST), random_state=1), str(target)


def described(
    table: pd.DataFrame, target: str
) -> tuple[regression_data.Columns, dict[str, regression_data.Domain], str]:
    columns: regression_data.Columns = {}
    domains: dict[str, regression_data.Domain] = {}
    for i, column in enumerate(table.columns):
        name = "y" if column == target else f"x{i}"
        if table[column].dtype.kind in "iuf":
            numbers = table[column].to_numpy(float)
            whole = bool((numbers == np.rint(numbers)).all())
            columns[name], domains[name] = numbers, (*bounds(numbers), whole)
        else:
            columns[name] = table[column].astype(str).to_numpy(object)
            domains[name] = tuple(sorted(set(columns[name])))
    return columns, domains, "y"


def bounds(numbers: np.ndarray) -> tuple[float, float]:
    """Round numbers about these, not below 0 where none is."""
    low, high = float(numbers.min()), float(numbers.max())
    step = 10.0 ** math.floor(math.log10((high - low or 1.0) / 2))
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    return (0.0 if numbers.min() >= 0 else low), high


def errors(table: Table, amount: tuple[str, float, str], number: int, runs: int) -> dict[str, float]:
    """The root mean square error of each option on rows left out, over runs."""
    _, columns, domains, target = table
    train, test = regression_data.split(columns, 100 + number)
    unit, size, delta = amount
    said = ", ".join(f'"{c}": {_domain(known)}' for c, known in domains.items())
    calls = {"best_regression": "best_regression(t, y)"} | FIXED
    found: dict[str, list[float]] = {}
    for run in range(runs):
        session = Session()
        session.bind("held", train)
        budget = f"{unit} {2 * len(calls) * size}" + (", delta 1e-3 counted by basic" if delta else "")
        session.execute(Source("experiment", f"""use best
private t = bound("held") described by {{{said}}} protecting rows budget {budget}
y = "{target}"
"""))  # fmt: skip
        for call, text in calls.items():
            session.execute(Source("experiment", f"m = {text} with {unit} {size}{delta}\n"))
            off = session.names()["m"].predict(test, len(test[target])) - test[target]
            found.setdefault(call, []).append(float(np.sqrt((off**2).mean())))
        if unit == "epsilon":
            for call, off in _peers(train, test, domains, target, size, run).items():
                found.setdefault(call, []).append(off)
    return {call: float(np.mean(each)) for call, each in found.items()}


def _domain(known: regression_data.Domain) -> str:
    if isinstance(known[0], str):
        return "{" + ", ".join(f'"{value}"' for value in known) + "}"
    low, high = (f"{x:.0f}" if known[2] else f"{x:.9f}" for x in known[:2])
    return f"{low}..{high}"


def _peers(
    train: regression_data.Columns, test: regression_data.Columns, domains: dict[str, regression_data.Domain],
    target: str, epsilon: float, run: int,
) -> dict[str, float]:  # fmt: skip
    try:
        from diffprivlib.models import LinearRegression
    except ImportError:
        return {}

    def design(columns: regression_data.Columns) -> tuple[Any, list[float], list[float]]:
        parts, low, high = [], [], []
        for name, known in domains.items():
            if name == target:
                continue
            if isinstance(known[0], str):
                parts += [(columns[name] == value).astype(float) for value in known[1:]]
                low, high = low + [0.0] * (len(known) - 1), high + [1.0] * (len(known) - 1)
            else:
                parts.append(columns[name].astype(float))
                low, high = [*low, float(known[0])], [*high, float(known[1])]
        return np.stack(parts, axis=1), low, high

    x, low, high = design(train)
    ends = (float(domains[target][0]), float(domains[target][1]))
    model = LinearRegression(epsilon=epsilon, bounds_X=(low, high), bounds_y=ends, random_state=run)
    model.fit(x, train[target])
    off = np.clip(model.predict(design(test)[0]), *ends) - test[target]
    return {"diffprivlib": float(np.sqrt((off**2).mean()))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path, help="without: eight public tables")
    parser.add_argument("--half", choices=("judged", "development"), default="judged")
    parser.add_argument("--many", type=int, default=20)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--write", type=Path, help="all errors, as CSV")
    asked = parser.parse_args()
    tables: list[Table] = []
    for table in of_folder(asked.tables, asked.half) if asked.tables else ():
        if len(tables) < asked.many:
            tables.append(table)
        else:
            break
    if not asked.tables:
        tables = [(name, *regression_data.load(name)) for name in regression_data.NAMES]
    print(f"{len(tables)} tables: {', '.join(table[0] for table in tables)}")
    rows = []
    for number, table in enumerate(tables):
        for amount in AMOUNTS:
            unit = f"{amount[0]}{amount[2]}"
            rows.append(
                {"table": table[0], "unit": unit, "amount": amount[1]} | errors(table, amount, number, asked.runs)
            )
    frame = pd.DataFrame(rows)
    if asked.write:
        frame.to_csv(asked.write, index=False)
    print(report(frame))


def report(frame: pd.DataFrame) -> str:
    options = [column for column in frame.columns if column not in ("table", "unit", "amount")]
    logs = np.log(frame[options].div(frame[list(FIXED)].min(axis=1), axis=0))
    lines = [f"{'':>26}" + "".join(f"{option:>18}" for option in options)]
    places = [*frame.groupby(["unit", "amount"], sort=False).groups.items()]
    places += [((unit, "all"), some) for unit, some in frame.groupby("unit", sort=False).groups.items()]
    for (unit, amount), some in [*places, (("all", ""), frame.index)]:
        each = logs.loc[some].groupby(frame.loc[some, "table"]).mean()
        mean, error = each.mean(), each.std() / math.sqrt(len(each))
        shown = "".join(f"{math.exp(mean[o]):>10.3f} ± {error[o]:.3f}" for o in options)
        lines.append(f"{unit + ' ' + str(amount):>26}{shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
