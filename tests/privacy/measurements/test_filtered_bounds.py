"""Sums, means and quantiles where a condition leaves a column narrower than it is described."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from recording import Bench, worst_losses

from jostle.source import Source
from jostle.tools.session import Session

SCHEMA = 'described by {who: text, n: 0..99, x: -5.0..50.0, d: 2020-01-01..2024-12-31, c: {"a", "b"}}'
CONDITIONS = [
    "n between 30 and 40", "n > 30 and n < 40", "n == 7", "not n > 50", "n in [3, 4, 9]", "n < 40 or n > 90",
    "x >= 49.5", "-1 < x and x <= 0.5", "x == 3", "d >= 2024-06-01", "n > 30 and n < 20", "n > 98 and x > 49.999",
    'n > 10 and c == "a" and x < 1e-300',
]  # fmt: skip
ASKED = [
    "sum(n)", "avg(n)", "var(n)", "stddev(x)", "sum(x * n)", "avg(clamp(x, 0, 100))", "median(n)", "covariance(n, x)",
    "quantile(x, 0.9)", "avg(d)", "sum(1 if n > 35 else 0)", "count(distinct n)", "max(d)",
]  # fmt: skip
ROWS = [
    ("p", "35", "0.25", "2024-07-01", "a"), ("q", "7", "50", "2021-01-01", "b"), ("r", "99", "-5", "2024-12-31", "a"),
    ("s", "30", "3", "2020-01-01", "a"), ("t", "", "nan", "", ""), ("u", "1000", "1e300", "2030-01-01", "a"),
]  # fmt: skip


def program(condition: str, unit: str) -> str:
    """All that is asked, of a select's own condition and of rows that were filtered before, with groups and without."""
    lines = [
        f'private t = table("t.csv") {SCHEMA} protecting {unit} budget epsilon 1000',
        f"few = where(t, {condition})",
    ]
    for place, one in enumerate(ASKED):
        grouped = "" if "distinct" in one else " groupby c"
        lines.append(f"a{place} = {{{{ select {one} as r from t where {condition}{grouped} with epsilon 1 }}}}")
        lines.append(f"b{place} = {{{{ select {one} as r from few with epsilon 1 }}}}")
    return "\n".join([*lines, ""])


@pytest.mark.slow
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_row_moves_no_answer_further_than_it_is_charged_for(bench: Bench, condition: str) -> None:
    for unit in ("rows", "who up to 2 rows"):
        text = program(condition, unit)
        some = [ROWS[:3], ROWS[3:]]
        for rows, more in itertools.product(some, ROWS[::2]):
            records = []
            for content in (rows, [*rows, more]):
                bench.table(content, ("who", "n", "x", "d", "c"))
                records.append(bench.run(text))
            for title, lost, charged in worst_losses(*records):
                assert lost <= charged * (1 + 1e-9), title


FRAME = pd.DataFrame({"n": np.arange(-20, 120) % 140 - 20, "x": np.linspace(-9, 60, 140).round(2)})


@pytest.mark.parametrize("condition", ["n between 30 and 40", "x < 7.5", "n > 30 and x >= 2", "n == 7", "x > 49"])
def test_the_answers_are_those_of_the_rows(tmp_path: Path, condition: str) -> None:
    """Cells are clamped to the description before they are compared, and to what the condition leaves after."""
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    text = f"""private t = table("t.csv") described by {{n: 0..99, x: -5.0..50.0}} protecting rows budget epsilon 1e9
few = where(t, {condition})
release a = {{{{ select sum(n) as s, avg(x) as m, var(n) as v from t where {condition} with epsilon 1e8 }}}}
release b = {{{{ select sum(n) as s, avg(x) as m, var(n) as v from few with epsilon 1e8 }}}}
"""
    result = Session(cwd=tmp_path).run(Source("p.jst", text))
    rows = FRAME.assign(n=FRAME.n.clip(0, 99), x=FRAME.x.clip(-5, 50))
    rows = rows.query(condition.replace("between 30 and 40", ">= 30 and n <= 40"))
    for name in ("a", "b"):
        found = result.released[name]
        assert found["s"] == rows.n.sum() and found["m"] == pytest.approx(rows.x.mean(), abs=1e-5)
        assert found["v"] == pytest.approx(rows.n.var(ddof=min(1, len(rows) - 1)), abs=1e-4)


@pytest.mark.parametrize(("condition", "as_if"), [
    ("n between 30 and 40", "n: 30..40"), ("x < 7.5", "x: -5.0..7.5"),
    ("n < 20 and x >= 40", "n: 0..19, x: 40.0..50.0"), ("n < 20 or x > 40", "n: 0..99"), ("n != 3", "n: 0..99"),
])  # fmt: skip
def test_noise_is_that_of_a_description_that_fits(condition: str, as_if: str) -> None:
    frame = pd.DataFrame({"n": [35, 5], "x": [3.0, 45.0]})
    fitting = {"n": "n: 0..99", "x": "x: -5.0..50.0"} | {one.partition(":")[0]: one for one in as_if.split(", ")}
    errors = []
    for described, of in (("n: 0..99, x: -5.0..50.0", f"t where {condition}"), (", ".join(fitting.values()), "t")):
        session = Session()
        session.bind("t", frame)
        text = f'private t = bound("t") described by {{{described}}} protecting rows budget epsilon 9\n'
        text += f"release e = [error({{{{ select sum(n) as r from {of} with epsilon 1 }}}}), "
        text += f"error({{{{ select sum(x) as r from {of} with epsilon 1 }}}})]\n"
        errors.append(session.run(Source("p.jst", text)).released["e"].tolist())
    assert errors[0] == errors[1]
