"""How often 95 % intervals hold the exact answer: `python -m tests.experiments.intervals [--runs N] [--write]`.

A synthetic table of 4,000 rows of 2,000 persons is measured N times with simulated noise, under several budgets. What
is told of every aggregate, and of stock calculations with them, by `band(x)`, is held against the same program's answer
on the same table as a public one. Quantiles are measured as often on columns with heaps and gaps, and with and without
an interval, to see what it costs. `--write` puts the tables into docs/experiments/coverage.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jostle.accounting.amounts import QUANTA, Amount
from jostle.formulas import Noised, calculated
from jostle.plan.kinds import is_integral
from jostle.plan.plan import Column
from jostle.privacy.measurements.aggregates.quantile import Quantile, intervals
from jostle.run.propagation import uncertainties
from jostle.simulate import SeededNoise
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.joint_errors import write

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
DESCRIBED = """described by {person: integer, age: 16..79, income: 0.0..200000.0, hours: 0..63, sex: {"F", "M"},
    city: {"a", "b", "c", "d"}}"""
PROGRAM = """
def numbers(t):
    r = {{ select count(*) as n, sum(income) as total, avg(age) as mean, var(age) as variance, stddev(age) as deviation,
                  covariance(age, hours) as both from t AMOUNT }}
    g = {{ select count(*) as n, avg(income) as income from t groupby city AMOUNT }}
    women = {{ select count(*) from t where sex == "F" AMOUNT }}
    return {count: r.n, sum: r.total, avg: r.mean, var: r.variance, stddev: r.deviation, covariance: r.both,
            "ratio of a sum and a count": r.total / r.n, "share of two counts": women / r.n,
            "difference of groups": g.n[0] - g.n[1], "sum of groups": sum(g.n), "largest of groups": max(g.n),
            "share of a group": (g.n / sum(g.n))[3], "ratio of small groups": g.n[3] / g.n[2],
            "avg of a large group": g.income[0], "avg of a small group": g.income[3],
            "mean of group averages": avg(g.income), "log of a count": log(max(1, r.n)),
            "difference of averages": g.income[0] - g.income[1]}
"""


@dataclass(frozen=True)
class Setting:
    """A budget, and what each select spends."""

    title: str
    clauses: str
    amount: str


SETTINGS = (
    Setting("ε 1", "protecting rows budget epsilon 1000000000", "with epsilon 1"),
    Setting("ε 0.1", "protecting rows budget epsilon 1000000000", "with epsilon 0.1"),
    Setting("ρ 0.05", "protecting rows budget rho 1000000000", "with rho 0.05"),
    Setting("persons, ε 1", "protecting person up to 2 rows weighted budget epsilon 1000000000", "with epsilon 1"),
)


def frame() -> pd.DataFrame:
    """4,000 rows, two a person."""
    import pandas as pd

    rng, rows = np.random.default_rng(3), 4000
    age = np.clip(rng.normal(40, 14, rows).round(), 16, 79)
    return pd.DataFrame(
        {
            "person": np.arange(rows) // 2, "age": age.astype(int),
            "income": np.clip(rng.lognormal(10, 0.6, rows), 0, 200_000),
            "hours": np.clip(rng.integers(0, 64, rows) * 0.5 + age * 0.3, 0, 63).round().astype(int),
            "sex": rng.choice(["F", "M"], rows, p=[0.6, 0.4]),
            "city": rng.choice(["a", "b", "c", "d"], rows, p=[0.5, 0.3, 0.15, 0.05]),
        }
    )  # fmt: skip


def exact(table: pd.DataFrame, setting: Setting) -> dict[str, float]:
    """The program's numbers on the same table as a public one; of persons with two rows, half of counts and sums."""
    session = Session()
    session.bind("t", table)
    text = f't = bound("t") {DESCRIBED}\n' + PROGRAM.replace("AMOUNT", "") + "x = numbers(t)\n"
    session.execute(Source("exact", text))
    numbers: dict[str, float] = dict(session.names()["x"])
    if "weighted" in setting.clauses:
        halved = ("count", "sum", "difference of groups", "sum of groups", "largest of groups")
        numbers |= {name: numbers[name] / 2 for name in halved}
        numbers["log of a count"] = float(np.log(numbers["count"]))
        rows = {"var": 1, "stddev": 0.5, "covariance": 1}  # of a sample of half the size
        for name, power in rows.items():
            numbers[name] *= ((len(table) - 1) / len(table) * (len(table) / 2) / (len(table) / 2 - 1)) ** power
    return numbers


def coverage(setting: Setting, runs: int, seed: int = 5) -> dict[str, float]:
    """The share of runs whose 95 % interval holds the exact answer, by calculation."""
    table = frame()
    truth, inside = exact(table, setting), Counter[str]()
    session = Session(simulate=seed)
    session.bind("t", table)
    text = f'private t = bound("t") {DESCRIBED} {setting.clauses}\n' + PROGRAM.replace("AMOUNT", setting.amount)
    session.execute(Source("coverage", text))
    once = Source("coverage", "b = band(numbers(t))\n")
    for _ in range(runs):
        session.execute(once)
        band: Any = session.names()["b"]
        inside.update(n for n, value in truth.items() if band["low"][n] - 1e-9 <= value <= band["high"][n] + 1e-9)
    return {name: inside[name] / runs for name in truth}


@dataclass(frozen=True)
class Asked:
    """A quantile of a column of 2,000 rows, at an amount of ε."""

    column: str
    q: float
    epsilon: float


QUANTILES = tuple(
    Asked(column, q, epsilon)
    for column, qs in (("ages", (0.5, 0.9)), ("incomes", (0.5, 0.9, 0.0, 1.0)), ("incomes in thousands", (0.5,)),
                       ("two heaps", (0.5,)), ("half are 0", (0.5, 0.9)))
    for q in qs for epsilon in (1.0, 0.1)
)  # fmt: skip


DIFFERENCES = 5  # of so many runs in one, the difference of two answers is looked at


def columns() -> dict[str, tuple[Any, str]]:
    """Columns with their described ranges."""
    rng, rows = np.random.default_rng(4), 2000
    incomes, ages = np.clip(rng.lognormal(10, 0.6, rows), 0, 200_000), np.clip(rng.normal(40, 14, rows).round(), 16, 79)
    heaps = np.clip(np.where(rng.random(rows) < 0.5, rng.normal(20, 2, rows), rng.normal(80, 2, rows)), 0, 100)
    zeros = np.where(rng.random(rows) < 0.5, 0, np.clip(rng.lognormal(3, 1, rows), 0, 1000))
    return {
        "ages": (ages, "16..79"), "incomes": (incomes, "0.0..200000.0"), "two heaps": (heaps, "0.0..100.0"),
        "incomes in thousands": (np.round(incomes, -3), "0.0..200000.0"), "half are 0": (zeros, "0.0..1000.0"),
    }  # fmt: skip


def bracketed(asked: Asked, runs: int, seed: int = 6) -> dict[str, float]:
    """How often intervals hold a quantile, and the difference of it and another draw; what they cost and tell.

    `whole`, `part`: the mean distance of the answer from the quantile where all of the amount chooses it, and where
    a quarter of it buys the interval. `width`: the mean error that is told.
    """
    values, described = columns()[asked.column]
    session = Session()
    session.bind("t", {"x": values})
    text = f'private t = bound("t") described by {{x: {described}}} protecting rows budget epsilon 1\n'
    session.execute(Source("quantiles", text))
    table, aggregate, noise = session.names()["t"], Quantile((Column("x"),), (asked.q,)), SeededNoise(seed)
    amount = Amount("epsilon", round(asked.epsilon * QUANTA))
    starts = intervals(*aggregate.candidates(table), is_integral(Column("x"), table.domains)).starts
    exact = np.bincount(starts.searchsorted(values, side="right") - 1, minlength=len(starts))
    truth, sums = float(np.quantile(values, asked.q, method="inverted_cdf")), Counter[str]()

    def answers(via: str | None) -> list[Noised]:
        drawn, _ = aggregate.release(aggregate.mechanism(amount, via, table), [exact, exact], noise, table, False)
        return [Noised(value, law) for value, law in drawn]

    for run in range(runs):
        one, other = answers(None if 0 < asked.q < 1 else "interval")
        (told,) = uncertainties([one])
        if run % DIFFERENCES == 0:
            (both,) = uncertainties([calculated(one - other, "-", (one, other))])  # type: ignore[list-item]
            sums["difference"] += DIFFERENCES * (both.low <= 0 <= both.high)
        plain = answers("selection")[0]
        sums += Counter(inside=told.low <= truth <= told.high, whole=abs(plain - truth), part=abs(one - truth))
        sums["width"] += told.error
    return {name: sums[name] / runs for name in ("inside", "difference", "whole", "part", "width")}


def of_selects(runs: int, shares: list[dict[str, float]]) -> str:
    """The table of aggregates and calculations."""
    head = [
        f"{runs:,} runs, {date.today().isoformat()}; one standard error of a share is {np.sqrt(0.0475 / runs):.2%}.\n",
        f"| | {' | '.join(s.title for s in SETTINGS)} |\n|---|{'---|' * len(SETTINGS)}",
    ]
    rows = [f"| {name} | {' | '.join(f'{share[name]:.1%}' for share in shares)} |" for name in shares[0]]
    return "\n".join(head + rows)


def of_quantiles(runs: int, quantiles: list[dict[str, float]]) -> str:
    """The table of quantiles."""
    head = f"""{runs:,} runs, {date.today().isoformat()}.

| column | q | ε | holds | difference | off, without | off, with | told |
|---|---|---|---|---|---|---|---|"""
    rows = [
        f"| {a.column} | {a.q:g} | {a.epsilon:g} | {n['inside']:.1%} | {n['difference']:.1%} | {n['whole']:.4g} "
        f"| {n['part']:.4g} | {n['width']:.4g} |"
        for a, n in zip(QUANTILES, quantiles, strict=True)
    ]
    return "\n".join([head, *rows])


def main() -> int:
    """Prints the table, or writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    with ProcessPoolExecutor(chosen.jobs) as pool:
        settings = pool.map(partial(coverage, runs=chosen.runs), SETTINGS)
        quantiles = pool.map(partial(bracketed, runs=chosen.runs // 5), QUANTILES)
        results = []
        for what, numbers in zip((*SETTINGS, *QUANTILES), chain(settings, quantiles), strict=True):
            print(what, {name: round(float(share), 4) for name, share in numbers.items()}, flush=True)
            results.append(numbers)
    if chosen.write:
        page = ROOT / "docs" / "experiments" / "coverage.md"
        write("selects", of_selects(chosen.runs, results[: len(SETTINGS)]), page)
        write("quantiles", of_quantiles(chosen.runs // 5, results[len(SETTINGS) :]), page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
