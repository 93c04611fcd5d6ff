"""Unions of tables: columns by name, domains joined, and a stability that is the sum of theirs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from changed_rows import Tables, sizes, worst

from jostle.diagnostics import Refusal
from jostle.plan.facts import schema_of, united_domain
from jostle.plan.plan import Apply, Categories, Column, Constant, Domain, Integer, Moments, Open, Real, Union
from jostle.privacy.transformations.joins import union
from jostle.privacy.transformations.transform import derive, where
from jostle.source import Source
from jostle.tools.session import Session

SCHEMA = (("v", Integer(0, 2)), ("c", Categories(("x", "y"))))
KINDS = [("0", "x"), ("2", "y"), ("", "z")]


def test_every_small_pair_of_neighbours(tables: Tables) -> None:
    contents = sizes(KINDS, 3)
    t = [tables.table(rows, SCHEMA, "t") for rows in contents]
    u = [tables.table(rows, SCHEMA, "u") for rows in contents[:4]]
    most, claimed = worst(tables, [t, u], [contents, contents[:4]], 0, lambda a, b: union([a, b]))
    assert (most, claimed) == (1, 1)
    over = Apply(">", (Column("v"), Constant(0.0)))
    for make, tight in (
        (lambda a: union([a, a]), 2),
        (lambda a: union([a, where(a, over), derive(a, [("v", Constant(1.0))])]), 3),
        (lambda a: union([union([a, a]), a]), 3),
    ):
        assert worst(tables, [t], [contents], 0, make) == (tight, tight)


def test_rows_keep_their_columns_by_name(tables: Tables) -> None:
    turned = (("c", Categories(("y", "q"))), ("v", Real(-1.5, 1.0)))
    both = union([tables.table([("2", "x"), ("1", "y")], SCHEMA, "t"), tables.table([("q", "0.5")], turned, "u")])
    assert tables.rows(both) == Counter({(2.0, "x"): 1, (1.0, "y"): 1, (0.5, "q"): 1})
    assert both.domains == schema_of(both.plan) == {"v": Real(-1.5, 2.0), "c": Categories(("x", "y", "q"))}
    assert {e.source.name: e.stability for e in both.exposures} == {"t": 1, "u": 1}
    assert isinstance(both.plan, Union) and both.origin is None


@pytest.mark.parametrize(("domains", "expected"), [
    ([Integer(0, 3), Integer(2, 9)], Integer(0, 9)),
    ([Integer(0, 3), Real(0.5, 2.5)], Real(0.0, 3.0)),
    ([Categories((1.0, 2.0)), Categories((2.0, 5.0))], Categories((1.0, 2.0, 5.0))),
    ([Categories((1.0, 2.0)), Integer(0, 1)], Integer(0, 2)),
    ([Categories(("a",)), Open("text")], Open("text")),
    ([Integer(0, 3), Open("integer")], Open("integer")),
    ([Integer(0, 3), Open("real")], Open("real")),
    ([Moments("date", 10, 20), Moments("date", 0, 15)], Moments("date", 0, 20)),
    ([Moments("date", 0, 31, "month"), Moments("date", 59, 90, "month")], Moments("date", 0, 90, "month")),
    ([Moments("date", 0, 31, "month"), Moments("date", 40, 45)], Moments("date", 0, 45)),
    ([Moments("time", -5, 9), Moments("time", 0, 7)], Moments("time", -5, 9)),
    ([Moments("date", 0, 9), Open("date")], Open("date")),
])  # fmt: skip
def test_domains_of_a_union(domains: list[Domain], expected: Domain) -> None:
    assert united_domain("v", domains) == expected


def test_what_cannot_be_united(tables: Tables) -> None:
    t = tables.table([("0", "x")], SCHEMA, "t")
    text = tables.table([("0", "x")], (("v", Open("text")), ("c", Categories(("x",)))), "u")
    more = tables.table([("0", "x", "1")], (*SCHEMA, ("w", Integer(0, 1))), "u")
    for some, kind in (([t, text], "TypeError"), ([t, more], "NameError"), ([more, t], "NameError")):
        with pytest.raises(Refusal) as refusal:
            union(some)
        assert refusal.value.first.kind == kind


PEOPLE = """private a = table("a.csv") described by {who: text, v: 0..9}
    protecting who up to 3 rows weighted budget epsilon 9
private b = table("b.csv") described by {who: text, v: 0..9} protecting rows budget epsilon 9
"""


def test_weights_add_up(tmp_path: Path) -> None:
    """A row without a weight weighs 1 beside rows that have one; each source is priced by the weight it can change."""
    (tmp_path / "a.csv").write_text("who,v\nann,1\nann,2\nbob,9\n")
    (tmp_path / "b.csv").write_text("who,v\ncem,5\n")
    session = Session(cwd=tmp_path)
    result = session.attempt(Source("p.jst", PEOPLE + """
n = {{ select count(*) as n, sum(v) as s from union(a, b) with epsilon 4 }}
m = {{ select count(*) as n from union(a, a) with epsilon 4 }}
release n
release m
"""))  # fmt: skip
    assert result.ok, result.diagnostics
    scales = [event.fields["scale"] for event in result.events if event.kind == "measure"]
    assert scales == pytest.approx([0.5, 4.5, 0.5], rel=1e-3)


def test_dates_of_two_tables_have_public_groups(tmp_path: Path) -> None:
    """The months of either, without a list and without a delta."""
    (tmp_path / "a.csv").write_text("day\n2024-01-05\n2024-02-07\n2031-01-01\n")
    (tmp_path / "b.csv").write_text("day\n2024-02-01\n2024-03-09\n\n")
    result = Session(cwd=tmp_path).attempt(Source("p.jst", """
private a = table("a.csv") described by {day: from 2024-01-01 to 2024-02-29 by day} protecting rows budget epsilon 1e9
private b = table("b.csv") described by {day: from 2024-02-01 to 2024-03-31 by day} protecting rows budget epsilon 1e9
n = {{ select count(*) from union(a, b) groupby trunc(day, "month") as month with epsilon 1e9 }}
release n = [round(many) for many in n.count]
release months = [month(m) for m in n.month]
"""))  # fmt: skip
    assert result.ok, result.diagnostics
    assert result.values == {"n": [1, 3, 1], "months": [1, 2, 3]}
