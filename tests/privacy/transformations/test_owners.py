"""Rows whose person is looked up in another table: brute force over small databases.

Cem comes with orders of his own, with numbers that others have or that nobody had, and with the items of those orders
that are his alone. Items of an order that several have are theirs together: they stay while one of them is there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from recording import Bench, Record, worst_losses

from jostle.plan.plan import Owners
from jostle.readers.duckdb import LocalDuckDb
from jostle.source import Source
from jostle.tools.session import Session

TABLES = """
private t = table("t.csv") described by {who: text, c: {"x", "y"}} protecting who budget epsilon 1000
private orders = table("o.csv") described by {number: 0..9, kind: {"x", "y"}} protecting t.who on customer
private items = table("i.csv") described by {order: 0..3, v: -1..2, c: {"x", "y"}} protecting orders.number on order
private few = table("f.csv") described by {order: text, v: -1..2, c: {"x", "y"}}
    protecting items.order on order up to 2 rows
"""
PROGRAM = (
    TABLES
    + """
a = {{ select count(*) as n, sum(v) as s from items up to 2 rows with epsilon 2 }}
b = {{ select count(*) from items groupby c up to 1 group, 2 rows each with epsilon 1 }}
c = {{ select count(distinct person) from items groupby c with epsilon 1 }}
d = {{ select count(distinct order) from items up to 2 rows with epsilon 1 }}
e = {{ select sum(clamp(n, 0, 3)) from (select count(*) as n from items per person) with epsilon 1 }}
f = {{ select count(*) from orders join items on person, number = order up to 2 rows with epsilon 1 }}
g = {{ select count(*) as n, sum(v) as s from few with epsilon 2 }}
for k, p in partition(items, c) { h = {{ select count(*) from p up to 1 row with epsilon 1 }} }
for p in split_rows(few, 2) { i = {{ select count(*) from p with epsilon 1 }} }
"""
)
ORDERS = [("1", "Ann", "x"), ("2", "Bob", "y"), ("3", "Bob", "x"), ("", "Bob", "x"), ("4", "", "x")]
ITEMS = [(n, v, c) for n in ("1", "2", "3") for v, c in (("2", "x"), ("-1", "y"), ("", "x"))]
NOBODYS = [("4", "2", "x"), ("9", "2", "x"), ("", "1", "y")]  # of an order without a customer, of none, of no order
CLAIMS = ("", "2", "12", "8", "19", "28", "1289")  # whose numbers Cem's orders have
OWN = (("2", "x"), ("-1", "y"))


def written(bench: Bench, orders: list[tuple[str, ...]], items: list[tuple[str, ...]], program: str) -> Record:
    bench.table([("Ann", "x"), ("Bob", "y")], ("who", "c"))
    tables = (("o", "number,customer,kind", orders), ("i", "order,v,c", items), ("f", "order,v,c", items))
    for name, header, rows in tables:
        (bench.folder / f"{name}.csv").write_text("\n".join([header, *map(",".join, rows), ""]))
    return bench.run(program)


def pairs(bench: Bench, program: str) -> Iterator[tuple[object, list[tuple[str, float, float]], float]]:
    """What each charge loses where Cem comes, and what all were charged."""
    there = written(bench, ORDERS, ITEMS + NOBODYS, program)
    for claims in CLAIMS:
        alone = [number for number in claims if number in "89"]
        for own in (list(itertools.product(alone, OWN)), [(n, OWN[0]) for n in alone for _ in range(3)]):
            mine = [(number, *cells) for number, cells in own]
            orders = [(number, "Cem", "y") for number in (*claims, *claims[:1])]  # the first one twice
            more = written(bench, ORDERS + orders, ITEMS + NOBODYS + mine, program)
            yield (claims, mine), worst_losses(there, more), more.spent


READ = PROGRAM.replace('who: text, c: {"x", "y"}', "who: upper(who), c: lower(c)").replace(
    'number: 0..9, kind: {"x", "y"}', "number: number(number), kind: lower(kind)"
)
"""The tables that others are of have columns that their descriptions say how to read."""


@pytest.mark.parametrize("program", [PROGRAM, READ], ids=["described", "read"])
def test_a_person_changes_no_rows_of_others(bench: Bench, program: str) -> None:
    tight = 0.0
    for where, losses, spent in pairs(bench, program):
        for title, lost, charged in losses:
            assert lost <= charged * (1 + 1e-9), (title, where)
            tight = max(tight, lost / charged)
        assert sum(lost for _, lost, _ in losses) <= spent * (1 + 1e-9), where
    assert tight > 0.99


@pytest.mark.parametrize(
    "rule",
    [
        "SELECT max(q) AS q, k FROM ({}) WHERE q IS NOT NULL GROUP BY k",  # some one of them
        "SELECT max(q) AS q, k FROM ({}) WHERE q IS NOT NULL GROUP BY k HAVING count(*) = 1",  # nobody
    ],
)
def test_one_owner_for_an_order_of_several_is_convicted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    claims: Callable[[LocalDuckDb, Owners], str] = LocalDuckDb._claims
    monkeypatch.setattr(LocalDuckDb, "_claims", lambda engine, owners: rule.format(claims(engine, owners)))
    program = TABLES + "a = {{ select count(*) from items groupby order up to 2 rows with epsilon 1 }}"
    assert any(lost > charged for _, losses, _ in pairs(bench, program) for _, lost, charged in losses)


def test_items_of_several_are_protected_as_theirs_together(bench: Bench) -> None:
    shared = [("2", "Cem", "y")]
    there = written(bench, ORDERS + shared, ITEMS, PROGRAM)
    gone = written(bench, [o for o in ORDERS if o[0] != "2"], [i for i in ITEMS if i[0] != "2"], PROGRAM)
    assert all(lost <= 2 * charged * (1 + 1e-9) for _, lost, charged in worst_losses(there, gone))


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ('private x = table("x.csv") described by {v: 0..9} protecting orders.nothing on n', "no column of persons"),
        ('private x = table("x.csv") described by {v: 0..9} protecting orders.customer on nothing', "no column"),
        ('private x = table("i.csv") described by {v: 0..9} protecting t.who on v', "one file"),
        ('one = orders[kind="x"]\nprivate x = table("x.csv") described by {v: 0..9} protecting one.number on n',
         "no column of persons"),
        ('private r = table("t.csv") described by {c: {"x"}} protecting rows budget epsilon 1\n'
         'private x = table("x.csv") described by {v: 0..9} protecting r.c on n', "no column of persons"),
        ("a = {{ select count(*) from items with epsilon 1 }}", "any number of rows"),
        ("a = {{ select count(distinct order) from items with epsilon 1 }}", "any number of rows"),
        ("a = {{ select count(*) from items join orders on order = number with epsilon 1 }}", "needs a bound"),
    ],
)  # fmt: skip
def test_what_is_refused(bench: Bench, declaration: str, message: str) -> None:
    for name, header in (("o", "number,customer,kind"), ("i", "order,v,c"), ("f", "order,v,c"), ("x", "n,v")):
        (bench.folder / f"{name}.csv").write_text(f"{header}\n")
    bench.table([], ("who", "c"))
    tables = "" if "private r" in declaration else TABLES
    result = bench.attempt(f"{tables}{declaration}\n")
    assert not result.ok and message in result.diagnostics[0].message, result.diagnostics


def test_a_join_along_a_foreign_key_is_refused_with_the_way_out() -> None:
    session = Session()
    session.bind("orders", {"number": np.arange(40.0), "of": np.arange(40.0) % 8})
    session.bind("items", {"order": np.arange(120.0) % 40, "v": np.arange(120.0) % 9})
    text = """
private orders = bound("orders") described by {number: 0..99, of: 0..9} protecting of up to 5 rows budget epsilon 1000
private items = bound("items") described by {order: 0..99, v: 0..9} protecting orders.number on order up to 20 rows
release n = {{ select count(*) from items join orders on %s with epsilon 100 }}
"""
    (fault,) = session.attempt(Source("p.jst", text % "order = number")).diagnostics
    assert fault.message == "a join of two private sides needs a bound"
    assert "write `join … on person, order = number`" in fault.help
    way = session.attempt(Source("p.jst", text % "person, order = number"))
    assert way.ok and abs(way["n"] - 120) < 30, way.diagnostics


def test_owners_are_told_alike_however_numbers_are_stored() -> None:
    """A column of whole numbers with a missing one is of floats, and in a file of texts."""
    session = Session()
    session.bind("people", {"id": np.array([1, 2, 3])})
    session.bind("orders", {"number": np.array([10.0, 20.0, np.nan]), "of": np.array([1.0, 2.0, 3.0])})
    session.bind("items", {"order": np.array(["10", "20", "20", "30", ""], object)})
    result = session.attempt(Source("p.jst", """
private people = bound("people") described by {id: text} protecting id budget epsilon 1e9
private orders = bound("orders") described by {number: text} protecting people.id on of
private items = bound("items") described by {order: text} protecting orders.number on order
n = {{ select count(*) from items join people on person groupby id over {"1", "2", "3"} up to 9 rows with epsilon 1e8 }}
release n = [round(many) for many in n.count]
"""))  # fmt: skip
    assert result.ok and result.values["n"] == [1, 2, 0], result.diagnostics


@pytest.mark.parametrize("number", ["number: text", "number: 0..9"])
def test_rows_that_are_made_up_have_owners(number: str) -> None:
    result = Session(simulate=1).attempt(Source("p.jst", f"""
private people = table("p.csv") described by {{age: 0..99}} protecting id budget epsilon 9e9
private orders = table("o.csv") described by {{{number}}} protecting people.id on customer
private items = table("i.csv") described by {{price: 0..9}} protecting orders.number on order
release n = {{{{ select count(*) from items up to 100 rows with epsilon 1e9 }}}}
"""))  # fmt: skip
    assert result.ok and result.values["n"] > 500, result.diagnostics


def test_parts_of_one_file_by_two_owners_are_no_partition(bench: Bench) -> None:
    """Whose a row is may be looked up in another table later: a person's one row is then in another part."""
    session = Session(cwd=bench.folder)
    for name, text in (("t", "who\na\nb\n"), ("i", "order,c\n1,x\n2,y\n")):
        (bench.folder / f"{name}.csv").write_text(text)
    spent = []
    for orders, part in (("1,a\n2,b\n", "x"), ("1,b\n2,a\n", "y")):
        name = f"orders_{part}"
        (bench.folder / f"{name}.csv").write_text(f"number,customer\n{orders}")
        result = session.attempt(Source("p.jst", f"""
private t = table("t.csv") described by {{who: text}} protecting who budget epsilon 9
private orders = table("{name}.csv") described by {{number: text}} protecting t.who on customer
private items = table("i.csv") described by {{c: {{"x", "y"}}}} protecting orders.number on order up to 1 row
a = {{{{ select count(*) from items[c = "{part}"] with epsilon 1 }}}}
"""))  # fmt: skip
        assert result.ok, result.diagnostics
        spent.append(result.budget["t"]["epsilon"]["spent"])
    assert spent == ["1", "2"]
