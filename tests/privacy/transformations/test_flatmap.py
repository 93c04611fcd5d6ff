"""A row for each item of a list: which rows there are, and how many change when one does."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest
from changed_rows import Tables, sizes, worst
from recording import Bench, worst_losses

from jostle.diagnostics import Refusal
from jostle.plan.plan import Apply, Categories, Column, Constant, Integer, Open
from jostle.run.publictables import explode
from jostle.tools.session import Result

SCHEMA = (("a", Integer(0, 3)), ("b", Integer(2, 9)), ("c", Categories(("x", "y"))))
ROWS = [("1", "2", "x"), ("", "9", "y"), ("", "", "z")]
A, B, C = Column("a"), Column("b"), Column("c")


def test_rows_for_items(tables: Tables) -> None:
    t = tables.table(ROWS, SCHEMA, "t")
    made = explode(t, [("item", [A, B, Apply("+", (A, Constant(1.0)))])])
    assert tables.rows(made) == Counter({(1, 2, "x", 1.0): 1, (1, 2, "x", 2.0): 2, (None, 9, "y", 9.0): 1})
    assert made.domains == dict(SCHEMA) | {"item": Integer(0, 9)}
    both = explode(t, [("name", [Constant("a"), Constant("b")]), ("item", [A, B])])
    assert tables.rows(both) == Counter({(1, 2, "x", "a", 1): 1, (1, 2, "x", "b", 2): 1, (None, 9, "y", "b", 9): 1})
    assert both.domains["name"] == Categories(("a", "b")) and both.origin is None
    assert tables.rows(explode(t, [("a", [B])])) == Counter({(2, 2, "x"): 1, (9, 9, "y"): 1})


@pytest.mark.slow(but=["1"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_every_small_pair_of_neighbours(tables: Tables, most: int) -> None:
    contents = sizes(ROWS, 3)
    t = [tables.table(rows, SCHEMA, "t") for rows in contents]
    items = [A, B, Constant(7.0)][:most]
    assert worst(tables, [t], [contents], 0, lambda a: explode(a, [("item", items)])) == (most, most)
    twice = worst(tables, [t], [contents], 0, lambda a: explode(explode(a, [("i", items)]), [("j", items)]))
    assert twice == (most**2, most**2)


def test_lists_of_no_or_two_lengths(tables: Tables) -> None:
    t = tables.table(ROWS, SCHEMA, "t")
    for columns in ([], [("i", [])], [("i", [A]), ("j", [A, B])]):
        with pytest.raises(Refusal):
            explode(t, columns)


PEOPLE = """private t = table("t.csv") described by {who: text, a: 0..9, b: 0..9}
    protecting who up to 2 rows budget epsilon 9
n = {{ select count(*) from explode(t, item = [a, b, a + b]) with epsilon 6 }}
m = {{ select sum(item) from explode(t, item = [b + i for i in 1..5 if i % 2 == 1]) with epsilon 3 }}
release n
"""


def test_the_rows_of_a_person(attempt: Callable[..., Result]) -> None:
    """Two rows of a person are six."""
    result = attempt(PEOPLE, t="who,a,b\nann,1,2\n")
    assert result.ok, result.diagnostics
    assert [e.fields["scale"] for e in result.events if e.kind == "measure"] == pytest.approx([1.0, 28.0], rel=1e-6)


TEXTS = [("a;;b",), ("",), (" ; ;x",), ("x;\t",), (";;",)]
PARTS = [Apply("part", (Column("t"), Constant(";"), Constant(float(i)))) for i in (1, 2, 3)]


def test_empty_and_blank_parts_are_no_items(tables: Tables) -> None:
    t = tables.table(TEXTS, (("t", Open("text")),), "t")
    made = tables.rows(explode(t, [("item", PARTS)]))
    assert made == Counter({("a;;b", "a"): 1, ("a;;b", "b"): 1, (" ; ;x", "x"): 1, ("x;\t", "x"): 1})
    both = explode(t, [("place", [Constant(1.0), Constant(2.0), Constant(3.0)]), ("item", PARTS)])
    assert {row[1:] for row in tables.rows(both)} == {(1.0, "a"), (3.0, "b"), (3.0, "x"), (1.0, "x")}
    listed = tables.table([("",), ("b",)], (("t", Categories(("", "b"))),), "u")  # a value that is listed is one
    assert sum(tables.rows(explode(listed, [("item", [Column("t")])])).values()) == 1


def test_every_small_pair_of_neighbours_with_texts(tables: Tables) -> None:
    contents = sizes(TEXTS, 2)
    t = [tables.table(rows, (("t", Open("text")),), "t") for rows in contents]
    assert worst(tables, [t], [contents], 0, lambda a: explode(a, [("item", PARTS)]))[0] <= 3


COUNTED = """private t = table("t.csv") described by {%s tags: text, c: {"x", "y"}} protecting who budget epsilon 1000
e = explode(t, tag = [part(tags, ";", i) for i in 1..2])
a = {{ select count(distinct who) as n from e groupby tag over ["p", "q", "r"] up to 2 groups with epsilon 1 }}
b = {{ select count(distinct who) from t with epsilon 1 }}
d = {{ select count(distinct who) as n from t groupby c up to 1 group with epsilon 1 }}
f = {{ select 2 * count(distinct who) as n from e where tag == "p" groupby c with epsilon 1 }}
g = {{ select count(distinct who) from where(t, c == "x") up to 3 rows with epsilon 1 }}
"""


@pytest.mark.parametrize("described", ["", "who: text,", 'who: {"Ann", "Cem"},'])
def test_persons_are_counted_by_their_column(bench: Bench, described: str) -> None:
    """Also where it is not described, and of an exploded table; no person shows more than what is charged."""
    mine = [("Cem", *rest) for rest in (("p;q", "x"), ("q;p", "y"), ("p;p", "x"), ("", "y"))]
    others = [("Ann", "p;r", "x"), ("Ann", "p;r", "x"), ("", "q;q", "y")]
    records = {}
    losses: dict[int, float] = {}
    for rows in [others, *([*others, *c] for n in (1, 2, 3) for c in itertools.combinations(mine, n))]:
        bench.table(rows, ("who", "tags", "c"))
        records[len(records)] = bench.run(COUNTED % described)
    for other in list(records)[1:]:
        for place, (_, lost, charged) in enumerate(worst_losses(records[0], records[other])):
            assert lost <= charged * (1 + 1e-9)
            losses[place] = max(losses.get(place, 0.0), lost / charged)
    assert all(part > 0.99 for part in losses.values())  # the noise is for what a person can move


def test_persons_of_an_exploded_table_are_counted_once(attempt: Callable[..., Result]) -> None:
    rows = "who,tags,c\n" + "".join(f"{i // 2},{'p;q' if i % 3 else 'p;p'},x\n" for i in range(60))
    program = COUNTED.replace("epsilon 1 ", "epsilon 100 ") + "release a\nrelease b\nrelease f\n"
    result = attempt(program % "", t=rows)
    assert result.ok, result.diagnostics
    assert result.values["b"] == 30 and list(result.values["f"].columns["n"]) == [60, 0]
    persons = {"p": set(range(30)), "q": {i // 2 for i in range(60) if i % 3}, "r": set()}
    assert list(result.values["a"].columns["n"]) == [len(some) for some in persons.values()]


def test_what_is_no_column_of_persons_is_still_refused(attempt: Callable[..., Result]) -> None:
    for column in ("whoo", "other"):
        result = attempt((COUNTED % "").replace("distinct who", f"distinct {column}"), t="who,other,tags,c\n1,2,p,x\n")
        assert next(d.kind for d in result.diagnostics) == "NameError"


def test_a_union_of_tables_with_columns_of_their_own_counts_no_persons(attempt: Callable[..., Result]) -> None:
    """Each describes the column in its own way, so that a person may have two values of it."""
    program = """private t = table("t.csv") described by {who: 0..5} protecting who budget epsilon 1000
private u = table("u.csv") described by {who: 0..9} protecting t.who
n = {{ select count(distinct who) as n from union(t, u) groupby who over [5, 9] with epsilon 1 }}
"""
    result = attempt(program, t="who\n9\n", u="who\n9\n")
    assert not result.ok and result.diagnostics[0].kind == "UnboundedSum"
