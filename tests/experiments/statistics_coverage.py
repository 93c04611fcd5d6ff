"""How often the intervals of `statistics` hold the truth.

    python -m tests.experiments.statistics_coverage [--runs 10000] [--only linear_regression,compare]

One table of 3,000 rows, asked `runs` times, under ε and ρ; the truth is the answer without noise, and the interval is
value ± error. Fresh rows and other descriptions: `coverage_by_description`.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from jostle.source import Source
from jostle.tools.session import Session

SCHEMA = '{x: -3.0..3.0, y: -12.0..12.0, late: 0..1, kind: {"a", "b", "c"}, arm: {"old", "new"}}'
ASKED = {
    "correlation": 'correlation(t, "x", "y")',
    "linear_regression": 'linear_regression(t, "y", ["x", "kind"])',
    "logistic_regression": 'logistic_regression(t, "late", ["x", "arm"])',
    "compare": 'compare(t, "y", "arm", between = ["old", "new"])',
    "compare_shares": 'compare(derive(t, tardy = "no" if late == 0 else "yes"), "tardy", "arm", ["old", "new"])',
    "crosstab": 'crosstab(t, "kind", "arm")', "describe_numeric": 'describe_numeric(t, "x")',
}  # fmt: skip
AMOUNTS = {
    "correlation": {"epsilon": 0.5, "rho": 0.01}, "linear_regression": {"epsilon": 2, "rho": 0.1},
    "logistic_regression": {"epsilon": 4, "rho": 0.3}, "compare": {"epsilon": 0.3, "rho": 0.005},
    "compare_shares": {"epsilon": 0.1, "rho": 0.001},
    "crosstab": {"epsilon": 0.2, "rho": 0.01}, "describe_numeric": {"epsilon": 0.5, "rho": 0.02},
}  # fmt: skip


def rows(n: int, seed: int) -> dict[str, Any]:
    """y = 1 + 2x + [kind b] − [kind c] + normal(2); log-odds of late −0.5 + x + 0.5 [arm new]; x within its bounds."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(0, 1, n), -3, 3)
    kind, arm = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]), rng.choice(["old", "new"], n)
    y = np.clip(1 + 2 * x + (kind == "b") - (kind == "c") + rng.normal(0, 2, n), -12, 12)
    late = rng.random(n) < 1 / (1 + np.exp(0.5 - x - 0.5 * (arm == "new")))
    return {"x": x, "y": y, "late": late.astype(int), "kind": kind, "arm": arm}


def reports(call: str, amount: str, data: dict[str, Any], runs: int) -> list[Any]:
    """So many answers to one call about one table."""
    import pandas as pd

    unit = amount.split()[0]
    session = Session()
    session.bind("t", pd.DataFrame(data))
    text = f"""use statistics
private t = bound("t") described by {SCHEMA} protecting rows budget {unit} 1e9
release r = [{call} with {amount} for i in 1..{runs}]
"""
    result = session.attempt(Source("coverage.jst", text))
    if not result.ok:
        raise RuntimeError(str(result.diagnostics[0]))
    return list(result["r"])


def intervals(report: Any) -> np.ndarray:
    """(numbers, 4): each number (0 where noise hides it), the half-width of its noise, the bounds of its interval."""
    if "cells" in report.facts:
        f = report.facts
        values = [*np.ravel(f["cells"]), *f["row_totals"], *f["column_totals"], f["total"]]
        wide = [*np.ravel(f["errors"]), *f["row_errors"], *f["column_errors"], f["total_error"]]
        return np.array([[v, w, v - w, v + w] for v, w in zip(values, wide, strict=True)])
    name = next(k for k in ("value", "correlation") if k in report.rows[0])
    lines = [[line[name] or 0.0, line.get("error", np.nan), line["low"], line["high"]] for line in report.rows]
    return np.array(lines, dtype=float)


def of_noise(name: str, amount: str, runs: int) -> np.ndarray:
    """The share of runs in which value ± error (low..high of a description) holds what there is without noise."""
    data = rows(3000, 1)
    unit = amount.split()[0]
    exact = intervals(reports(ASKED[name], f"{unit} 1e7", data, 1)[0])[:, 0]
    answers = np.array([intervals(r) for r in reports(ASKED[name], amount, data, runs)])
    if np.isnan(answers[..., 1]).any():
        return ((answers[..., 2] <= exact) & (exact <= answers[..., 3])).mean(axis=0)
    return (np.abs(answers[..., 0] - exact) <= answers[..., 1]).mean(axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--only", default=",".join(ASKED))
    options = parser.parse_args()
    for name in options.only.split(","):
        for unit, most in AMOUNTS[name].items():
            amount = f"{unit} {most}"
            said = " ".join(f"{100 * share:.1f}" for share in of_noise(name, amount, options.runs))
            print(f"{name:20} {amount:12} noise    {said}", flush=True)


if __name__ == "__main__":
    main()
