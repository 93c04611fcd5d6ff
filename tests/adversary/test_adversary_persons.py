"""Attacks through persons, limits and links: numbers at their ends, keys that leave rows out, looked up owners."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.source import Source
from jostle.tools.session import Result, Session

PEOPLE = 'private t = table("t.csv") described by {who: text, v: -1..2} protecting who'
HUGE = f"{PEOPLE} up to 1e300 rows budget epsilon 9\n"
TABLES = f"""{PEOPLE} budget epsilon 9
private orders = table("o.csv") described by {{number: text, kind: {{"x", "y"}}}} protecting t.who on customer
private items = table("i.csv") described by {{order: text, v: 0..9}} protecting orders.number on order
"""
DELTA = TABLES.replace("epsilon 9", "epsilon 9, delta 1e-5")


def run(folder: Path, program: str) -> Result:
    (folder / "t.csv").write_text("who,v\n" + "".join(f"p{i},{i % 3}\n" for i in range(137)))
    (folder / "o.csv").write_text("number,customer,kind\n" + "".join(f"{i % 7},p{i},x\n" for i in range(60)))
    (folder / "i.csv").write_text("order,v\n" + "".join(f"{i % 9},{i % 9}\n" for i in range(200)))
    return Session(cwd=folder).attempt(Source("p.jst", program + "\n"))


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (HUGE + "a = {{ select count(*) from t with epsilon 1 }}", "UnboundedSum"),
        (HUGE + "a = {{ select sum(v) as s, median(v) as m from t groupby v with epsilon 1 }}", "UnboundedSum"),
        (HUGE + "a = {{ select count(*) from t join t on person join t on person with epsilon 1 }}", "UnboundedSum"),
        (HUGE + "a = {{ select count(*) from t join t on v up to 1e300 with epsilon 1 }}", "UnboundedSum"),
        (TABLES + "a = {{ select count(*) from t up to 1e300 rows with epsilon 1 }}", "UnboundedSum"),
        (TABLES + "a = {{ select count(*) from t groupby v up to 9e9 groups, 9e9 rows each with epsilon 1 }}", None),
        (TABLES + "a = {{ select count(*) from items with epsilon 1 }}", "UnboundedSum"),
        (TABLES + "a = {{ select count(distinct order) from items with epsilon 1 }}", "UnboundedSum"),
        (TABLES + "for p in split_rows(items, 2) { a = {{ select count(*) from p with epsilon 1 }} }", "UnboundedSum"),
        (TABLES + 'x = table("o.csv")', "PrivateValue"),
        (TABLES + 'private x = table("i.csv") described by {v: 0..9} protecting orders.kind on order', "DataError"),
        (TABLES + 'private x = table("i.csv") described by {v: 0..9} protecting rows budget epsilon 9', "DataError"),
        (TABLES + "a = {{ select count(*) from items join items on v with epsilon 1 }}", "TypeError"),
        (TABLES + "a = {{ select count(*) from t up to 1 row by person with epsilon 1 }}", "NameError"),
        (DELTA + "a = {{ select count(*) from items groupby order with epsilon 1 delta 1e-6 }}", "UnboundedSum"),
    ],
)
def test_what_has_no_bound_is_refused_before_a_charge(tmp_path: Path, program: str, kind: str | None) -> None:
    result = run(tmp_path, program)
    assert [d.kind for d in result.diagnostics[:1]] == ([kind] if kind else []), result.diagnostics
    assert all(float(budget["epsilon"]["spent"]) == (0 if kind else 1) for budget in result.budget.values())


@pytest.mark.parametrize(
    "select",
    [
        "select count(*) from {{ select count(*) as n from t per person groupby v over 5..4 }}",
        "select count(*) from {{ select v as v from items per person, v over [] }}",
        "select sum(clamp(v, 0, 1e-310)) from t up to 1 row",
        "select avg(clamp(v, 0, 1e-310)) as m, var(clamp(v, 0, 1e-140)) as s from t up to 1 row",
        "select sum(clamp(s, 0, 1)) from (select sum(clamp(v, 0, 1e-320)) as s from t per person)",
        "select sum(clamp(m, 0, 1e-300)) from (select avg(clamp(v, 0, 1e-300)) as m from items per person)",
    ],
)
def test_noise_has_a_scale_and_grids_an_end(tmp_path: Path, select: str) -> None:
    """Rows of no groups had a stability of 0 and were counted exactly; tiny bounds were refused after the charge."""
    result = run(tmp_path, f"{TABLES}a = {{{{ {select} with epsilon 1 }}}}")
    assert result.ok and result.budget["t"]["epsilon"]["spent"] == "1", result.diagnostics
    laws = [event.fields["scale"] for event in result.events if event.kind == "measure"]
    assert laws and all(scale > 0 for scale in laws)


def test_a_row_of_very_many_owners_is_added_as_often(tmp_path: Path) -> None:
    """There are more rows than the file has, and sums of them leave 64 bits: they saturate at 2^62."""
    session = Session(cwd=tmp_path)
    session.bind("t", {"who": np.arange(2000)})
    session.bind("orders", {"number": np.zeros(2000), "customer": np.arange(2000.0)})
    session.bind("items", {"order": np.zeros(1), "v": np.array([2.0**59])})
    result = session.attempt(Source("p.jst", """
private t = bound("t") described by {who: text} protecting who budget epsilon 1e9
private orders = bound("orders") described by {number: real} protecting t.who on customer
private items = bound("items") described by {v: 0..576460752303423488} protecting orders.number on order
release s = {{ select sum(v) from items up to 1 row with epsilon 1e9 }} / 2^59
"""))  # fmt: skip
    assert result.ok and abs(result.values["s"] - 8) < 0.1, result.diagnostics
