"""`best_classifier` on public tables that nothing was trained on, chosen by a rule (`class_tables`).

    python -m tests.experiments.class_advisor --tables DIR [--data development|judged] [--every 3] [--runs 8]

DIR holds PACKAGE/NAME.csv. 70 % of a table's rows are for training; numbers are cut into ten equal bins between the
least and the largest, as `best_classifier` cuts them between public bounds. Beside the report of `advisors` stand the
points that the advisor, and each of its options always, lose to the best of these and of the older options together.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jostle.choice.advisors import Advisor
from jostle.choice.program import ProgramBench
from jostle.choice.training import seed
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments import advisors
from tests.experiments.class_tables import ClassTable, class_tables
from tests.experiments.classification_data import split

OLDER = ("BestAttribute", "FewAttributes", "ShrunkBayes", "TunedTree")
OTHERS = f"""
older = MkChoiceMaker among {{{", ".join(OLDER)}}} informed by {{many_classes}} trained on simulated_tables(2)
    wrt right_on_test
"""


def data_sets(session: Session, tables: list[ClassTable]) -> list[Any]:
    """A record {database, test, class, name} of each table, its columns called c0, c1, … and its texts v0, v1, …"""
    text = []
    for number, table in enumerate(tables):
        columns: dict[str, np.ndarray[Any, Any]] = {}
        domains = []
        for place, name in enumerate(table.rows.columns):
            own = "class" if name == table.label else f"c{place}"
            columns[own], domain = _column(table.rows[name], own == "class")
            domains.append(f'"{own}": {domain}')
        for what, rows in zip(("train", "test"), split(columns, 100 + number), strict=True):
            session.bind(f"{what}_{number}", rows)
            text.append(f'{what}_{number} = bound("{what}_{number}") described by {{{", ".join(domains)}}}')
        text.append(f'cuts_{number} = equal_cuts(train_{number}, "class")')
        text.append(
            f"d{number} = {{database: in_bins(train_{number}, cuts_{number}), test: in_bins(test_{number}, "
            f'cuts_{number}), class: "class", name: "{table.name}"}}'
        )
    session.execute(Source("experiment", "\n".join(text) + "\n"))
    known = session.names()
    return [known[f"d{number}"] for number in range(len(tables))]


def _column(column: pd.Series, listed: bool) -> tuple[np.ndarray[Any, Any], str]:
    if listed or not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        codes, values = pd.factorize(column.astype(str), sort=True)
        cells = np.array([f"v{code}" for code in codes], dtype=object)
        return cells, "{" + ", ".join(f'"v{i}"' for i in range(len(values))) + "}"
    numbers = column.to_numpy(dtype=float)
    low, high = float(numbers.min()), float(numbers.max())
    if (numbers == np.rint(numbers)).all():
        return numbers.astype(np.int64), f"{low:.0f}..{high:.0f}"
    return numbers, f"{low:.12f}..{high:.12f}"


def beside(bench: ProgramBench, found: list[advisors.Cell], names: tuple[str, ...], runs: int) -> str:
    """What is lost to the best of the advisor's and the older options, of so many runs each."""
    lost: list[list[float]] = []
    places = [(d, e) for d in range(len(bench.database_names)) for e in advisors.EPSILONS]
    for (d, epsilon), cell in zip(places, found, strict=True):
        name, means = bench.database_names[d], []
        for option, said in enumerate(bench.option_names):
            right = []
            for run in range(runs):
                data = bench.instance(d, 1.0, seed("instance", name, 1.0, run))
                answer = bench.answer(option, data, epsilon, seed(said, name, epsilon, run))
                right.append(bench.utility(data, answer))
            means.append(float(np.mean(right)))
        best = max(*means, *cell.options)
        lost.append([100 * (best - u) for u in (cell.options[cell.taken].mean(), *cell.options, *means)])
    each = np.array(lost)
    heads = ("the advisor", *names, *bench.option_names)
    told = ", ".join(
        f"{h} {m:.2f} ({np.percentile(c, 95):.1f})" for h, m, c in zip(heads, each.mean(0), each.T, strict=True)
    )
    return f"points lost to the best of all: {told}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path, required=True, help="a directory of PACKAGE/NAME.csv")
    parser.add_argument("--data", choices=("development", "judged"), default="development")
    parser.add_argument("--every", type=int, default=3, help="one table of so many, in the order of their names")
    parser.add_argument("--first", type=int, default=0, help="the place of the first of these")
    parser.add_argument("--runs", type=int, default=8, help="of every option in every cell")
    parser.add_argument("--older", type=int, default=4, help="runs of the older options; 0 leaves them out")
    asked = parser.parse_args()
    tables = list(class_tables(asked.tables, asked.data))[asked.first :: asked.every]
    session = Session()
    session.execute(Source("experiment", "use best\nuse classify\n" + OTHERS))
    advisor: Advisor = session.names()["best_classifier"]
    policy = advisor.policy()
    if policy is None:
        raise SystemExit("no policy ships: python -m jostle.train")
    data = data_sets(session, tables)
    sizes = [table.rows.shape for table in tables]
    print(f"{len(tables)} tables, {min(n for n, _ in sizes)} to {max(n for n, _ in sizes)} rows, "
          f"{min(k for _, k in sizes) - 1} to {max(k for _, k in sizes) - 1} attributes")  # fmt: skip
    bench = ProgramBench(session._interp, advisor.choice.parts_on(data))
    found = list(advisors.cells(bench, policy, [[1.0]] * len(data), advisors.EPSILONS, asked.runs, 1))
    print(advisors.report(f"classifiers, {asked.data}", found, policy, errors=False), flush=True)
    print(halves(found))
    print(by_chance(bench, found, asked.runs), flush=True)
    if asked.older:
        older = ProgramBench(session._interp, session.names()["older"].parts_on(data))
        print(beside(older, found, policy.table.options, asked.older))


def halves(found: list[advisors.Cell]) -> str:
    """Points lost to the option that the other half of the runs calls best, which flatters nobody."""
    lost = []
    for cell in found:
        parts = [np.array([runs[start::2].mean() for runs in cell.runs]) for start in (0, 1)]
        lost.append(np.mean([here[there.argmax()] - here[cell.taken].mean() for here, there in (parts, parts[::-1])]))
    return f"halves: the advisor {100 * np.mean(lost):.3f}"


def by_chance(bench: ProgramBench, found: list[advisors.Cell], runs: int) -> str:
    """Cells that are more than a point under the majority, and how many of them are so for sure or by chance.

    Not by chance: by more than a point and two standard errors of what so few runs say. By chance alone: the majority
    itself, run as often once more, under its own first runs.
    """
    places = [(d, e) for d in range(len(bench.database_names)) for e in advisors.EPSILONS]
    told = []
    for (d, epsilon), cell in zip(places, found, strict=True):
        name, majority, taken = bench.database_names[d], cell.runs[0], cell.runs[cell.taken[0]]
        again = []
        for run in range(runs):
            data = bench.instance(d, 1.0, seed("instance", name, 1.0, run))
            again.append(bench.utility(data, bench.answer(0, data, epsilon, seed("once more", name, epsilon, run))))
        variance = sum(float(np.var(part, ddof=1)) / len(part) for part in (majority, taken))
        under = 100 * (majority.mean() - cell.options[cell.taken].mean())
        told.append([epsilon, under, under > 1 + 200 * variance**0.5, 100 * (majority.mean() - np.mean(again))])
    lines = ["under the majority: more than a point, that and two standard errors, points on average; by chance alone"]
    each = np.array(told)
    for epsilon in (*advisors.EPSILONS, None):
        some = each if epsilon is None else each[each[:, 0] == epsilon]
        under, sure, again = some[:, 1], some[:, 2], some[:, 3]
        lines.append(
            f"{'all' if epsilon is None else epsilon:>6} {(under > 1).mean():10.1%} {sure.mean():8.1%} "
            f"{np.maximum(under, 0).mean():8.2f} {(again > 1).mean():14.1%} {np.maximum(again, 0).mean():8.2f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
