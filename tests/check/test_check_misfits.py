"""Descriptions that do not fit their cells: each is warned of, and no ± beside its answer leaves the truth out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.accounting.amounts import QUANTA
from jostle.source import Source
from jostle.tools.session import Session

SHARES = [k % 100 / 150 for k in range(3000)]
ROWS = {
    "share": [f"{share:.4f}" for share in SHARES],
    "percent": [f"{100 * share:.2f}" for share in SHARES],
    "day": [f"{k % 28 + 1:02}.{k % 12 + 1:02}.2014" for k in range(3000)],
    "births": [f"{k % 61},{k % 9}" for k in range(3000)],
    "kind": ["one " if k % 3 else "two" for k in range(3000)],
    "said": ["yes" if k % 4 else "no" for k in range(3000)],
}
TOLD = {
    "a share as integers": ("share: 0..3", "avg(share)", [np.mean(SHARES)], "unfit-cells"),
    "percent for a share": ("percent: 0.0..1.0", "avg(percent)", [100 * np.mean(SHARES)], "unfit-cells"),
    "dates of another form": ("day: date", "count(day)", [3000], "unfit-cells"),
    "a condition on such dates": (
        "day: date", "sum(1 if day >= 2014-07-01 else 0)", [sum(k % 12 >= 6 for k in range(3000))], "unfit-cells"
    ),
    "decimal commas": ("births: 0.0..60.9", "avg(births)", [np.mean([k % 61 + k % 9 / 10 for k in range(3000)])],
                       "csv-decimal"),
    "a histogram of decimal commas": (
        "births: 0.0..60.9", "", [sum(k % 61 == at for k in range(3000)) for at in range(61)], "csv-decimal"
    ),
    "a category with a blank": ('kind: {"one", "two"}', 'sum(1 if kind == "one" else 0)', [2000], "unfit-cells"),
    "a pattern in other letters": ('said: {"yes", "no"}', 'sum(1 if said like "Y%" else 0)', [0], "unmatched-pattern"),
}  # fmt: skip


@pytest.mark.parametrize(("described", "asked", "true", "warning"), TOLD.values(), ids=TOLD)
def test_what_does_not_fit_is_warned_of_and_no_error_excludes_the_truth(
    described: str, asked: str, true: list[float], warning: str, tmp_path: Path
) -> None:
    name = described.partition(":")[0]
    lines = [f"{cell};{k}" for k, cell in enumerate(ROWS[name])]
    (tmp_path / "t.csv").write_text("\n".join([f"{name};k", *lines]) + "\n")
    separator = "" if name == "births" else ', separator = ";"'
    select, cells = f"{{{{ select {asked} from t with epsilon 3 }}}}", f"laplace(histogram(t, {name})) with epsilon 3"
    text = f"""private t = table("t.csv"{separator}) described by {{{described}}} protecting rows budget epsilon 9
release a = {select if asked else cells}
"""
    result = Session(cwd=tmp_path, look=True).attempt(Source("p.jst", text))
    assert result.ok, result.diagnostics
    assert warning in {one.kind for one in result.warnings}
    margins = result.margins()["a"]
    for number, margin, right in zip(
        np.ravel(result.values["a"]), margins if isinstance(margins, list) else [margins], true, strict=True
    ):
        assert not margin or margin["error"] is None or abs(float(number) - right) <= margin["error"], margin
        assert warning == "unmatched-pattern" or margin["error"] is None


@pytest.mark.looks
def test_a_check_names_the_columns_of_linked_tables_that_a_run_looks_at(tmp_path: Path) -> None:
    """Of several tables under one budget a check knew the last alone."""
    (tmp_path / "a.csv").write_text("id,x\n1,2\n")
    (tmp_path / "b.csv").write_text("who,y\n1,2\n")
    (tmp_path / "c.csv").write_text("who,z\n1,2\n")
    source = Source("p.jst", """
private a = table("a.csv") described by {id: text, x: 0..99} protecting id up to 1 row budget epsilon 9
private b = table("b.csv") described by {who: text, y: 0..99} protecting a.id on who up to 2 rows
private c = table("c.csv") described by {who: text, z: 0..99} protecting a.id on who up to 2 rows
print({{ select avg(x) as m from a with epsilon 1 }})
print({{ select avg(y) as m from b with epsilon 2 }})
print({{ select avg(z) as m from c with epsilon 1 }})
""")  # fmt: skip
    session = Session(cwd=tmp_path, look=True)
    faults, costs = session.checked(source, {})
    assert not faults and costs[0].looks == (4 * QUANTA // 50, ("x", "y", "z"))
    result = session.attempt(source)
    looks = {e.name: e.fields["epsilon"] for e in result.events if e.kind == "query" and "look" in e.fields}
    assert looks == {"look at x": 0.02, "look at y": 0.04, "look at z": 0.02}
