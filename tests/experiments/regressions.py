"""`best_regression`, judged on tables of Rdatasets that nothing was settled on.

    python -m tests.experiments.regressions --tables FOLDER [--many 20] [--runs 4]

FOLDER holds that collection's CSV files, PACKAGE/NAME.csv. Of those whose md5 of PACKAGE/NAME begins with 8 or more
(the others settled constants) the first `--many` in the order of another md5 are taken that fit: 500 rows and more, of
which 20,000 are drawn, without a missing cell in the columns kept. Kept are the first 20 numbers and texts of 2 to 20
values with at most a fifth missing; numbers that are all different and whole are names of rows. The target is one of
the numbers of ten values and more, by the same md5. Bounds are rounded outwards.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from jostle.choice.advisors import Advisor
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import regression_data
from tests.experiments.advisors import EPSILONS, bench_of, cells, regression_text, report
from tests.experiments.real_tables import half_of

LEAST, MOST, COLUMNS, VALUES = 500, 20_000, 20, 20
SIZES = (15_000, 3_000_000)
"""Bytes of the files that are looked at."""


def number_of(text: str) -> int:
    return int(hashlib.md5(text.encode()).hexdigest(), 16)


def judged(folder: Path) -> Iterator[tuple[str, regression_data.Columns, dict[str, regression_data.Domain], str]]:
    """The tables of the second half that fit, by name, in an order by chance; of variants one."""
    files = {f"{file.parent.name}/{file.stem}": file for file in folder.glob("*/*.csv")}
    known = set()
    for name in sorted(files, key=lambda n: number_of(f"regression {n}")):
        if half_of(name) != "judged" or not SIZES[0] < files[name].stat().st_size < SIZES[1]:
            continue
        kept = fitting(pd.read_csv(files[name], low_memory=False, encoding_errors="replace"), name)
        if kept is None or tuple(sorted(kept[0].columns)) in known:
            continue
        known.add(tuple(sorted(kept[0].columns)))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--many", type=int, default=20)
    parser.add_argument("--runs", type=int, default=4)
    asked = parser.parse_args()
    session = Session(cwd=Path.cwd())
    session.execute(Source("experiment", "use best\n"))
    advisor: Advisor = session.names()["best_regression"]
    policy = advisor.policy()
    if policy is None:
        raise SystemExit("no policy ships: python -m jostle.train")
    text: list[str] = []
    names = []
    for number, (name, columns, domains, target) in enumerate(judged(asked.tables)):
        if number == asked.many:
            break
        names.append(name)
        text += regression_text(session, number, regression_data.split(columns, 100 + number), domains, target, name)
    bench = bench_of(session, advisor, text)
    found = list(cells(bench, policy, [[1.0]] * len(bench.database_names), EPSILONS, asked.runs, 1))
    print(f"{len(names)} tables: {', '.join(names)}")
    print(report("regressions, Rdatasets", found, policy, errors=True))


if __name__ == "__main__":
    main()
