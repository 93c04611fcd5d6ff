"""How often the ± of a select holds the truth, by what the program cuts: `python -m tests.experiments.select_coverage`.

A synthetic table of 3,000 rows of 1,000 persons is measured `--runs` times with simulated noise. The truth is that of
the rows themselves, worked out with NumPy: nothing is clamped there, and no row is left out. `--write` puts the table
into its part of docs/experiments/coverage.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.joint_errors import write

if TYPE_CHECKING:
    import pandas as pd

PAGE = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "coverage.md"
SELECT = """{{ select count(X) as count, sum(X) as sum, avg(X) as avg, var(X) as var, stddev(X) as stddev,
    covariance(X, y) as covariance, median(X) as median, quantile(X, 0.9) as "quantile 0.9" from t LIMIT
    with epsilon EPSILON }}""".replace('as "quantile 0.9"', "as upper")
NAMES = ("count", "sum", "avg", "var", "stddev", "covariance", "median", "upper")


@dataclass(frozen=True)
class Setting:
    """A description of x, whose values lie between 0 and 100, what is protected, and what the program cuts."""

    title: str
    described: str = "0.0..100.0"
    protecting: str = "rows"
    expression: str = "x"
    limit: str = ""


SETTINGS = (
    Setting("right: `0.0..100.0`"),
    Setting("four times too wide: `-150.0..250.0`", "-150.0..250.0"),
    Setting("persons, `at most 3 rows` stated", protecting="person, at most 3 rows"),
    Setting("persons, `per person` first", protecting="person", limit="PER"),
    Setting("too narrow: `0.0..40.0`", "0.0..40.0"),
    Setting("persons, `up to 2 rows`", protecting="person", limit="up to 2 rows"),
    Setting("`clamp(x, 0, 40)`", expression="clamp(x, 0, 40)"),
)
AMOUNTS = (0.1, 1.0, 10.0)


def frame() -> pd.DataFrame:
    """3,000 rows, three a person, of which the third is the largest; half of them are above 40."""
    import pandas as pd

    rng, rows = np.random.default_rng(7), 3000
    x = np.clip(rng.gamma(4, 11, rows), 0, 100).round(2)
    y = np.clip(0.5 * x + rng.normal(20, 10, rows), 0, 100).round(2)
    return pd.DataFrame({"person": np.arange(rows) // 3, "x": x, "y": y})


def truth(table: pd.DataFrame, setting: Setting) -> dict[str, float]:
    """The answers on all rows, as they are; of one row a person its mean."""
    if setting.limit == "PER":
        table = table.groupby("person").mean()
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    upper, middle = (float(np.quantile(x, q, method="inverted_cdf")) for q in (0.9, 0.5))
    numbers = (len(x), x.sum(), x.mean(), x.var(ddof=1), x.std(ddof=1), np.cov(x, y)[0, 1], middle, upper)
    return dict(zip(NAMES, map(float, numbers), strict=True))


def coverage(case: tuple[Setting, float], runs: int) -> dict[str, tuple[float, bool]]:
    """By aggregate the share of runs whose interval at 95 % holds the truth, and whether it has the mark."""
    setting, epsilon = case
    table, inside = frame(), Counter[str]()
    right, session = truth(table, setting), Session(simulate=5)
    session.bind("t", table)
    session.execute(Source("coverage", f"""private t = bound("t") protecting {setting.protecting} budget epsilon 1e9
    described by {{person: integer, x: {setting.described}, y: 0.0..100.0}}
"""))  # fmt: skip
    of = "(select avg(x) as x, avg(y) as y from t per person)" if setting.limit == "PER" else "t"
    select = SELECT.replace("X", setting.expression).replace("from t", f"from {of}").replace("EPSILON", str(epsilon))
    once = Source("coverage", f"r = {select.replace('LIMIT', setting.limit.replace('PER', ''))}\nb = band(r)\n")
    for _ in range(runs):
        session.execute(once)
        band: Any = session.names()["b"]
        inside.update(n for n, value in right.items() if band["low"][n] - 1e-9 <= value <= band["high"][n] + 1e-9)
    marked: Any = session.names()["r"]
    return {name: (inside[name] / runs, bool(marked[name].cut)) for name in NAMES}


def section(runs: int, found: dict[tuple[Setting, float], dict[str, tuple[float, bool]]]) -> str:
    """The part of the page that this writes."""
    heads = " | ".join(name.replace("upper", "quantile 0.9") for name in NAMES)
    rows = [
        f"| {setting.title} | {epsilon:g} | "
        f"{' | '.join(f'{share:.1%}' + '`*`' * marked for share, marked in shares.values())} |"
        for (setting, epsilon), shares in found.items()
    ]
    least = min(
        share for (setting, _), shares in found.items() if "narrow" not in setting.title
        for share, marked in shares.values() if not marked
    )  # fmt: skip
    lines = [
        f"{runs:,} runs, {date.today().isoformat()}; one standard error of 95 % is {np.sqrt(0.0475 / runs):.1%}.\n",
        f"| x | ε | {heads} |\n|---|---|{'---|' * len(NAMES)}",
        *rows,
        f"\nNumbers without a mark, but for a description that is too narrow, hold with at least {least:.1%}.",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(AMOUNTS))
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    cases = [(setting, epsilon) for setting in SETTINGS for epsilon in asked.epsilon]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(cases, pool.map(partial(coverage, runs=asked.runs), cases), strict=True))
    text = section(asked.runs, found)
    if asked.write:
        write("cuts", text, PAGE)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
