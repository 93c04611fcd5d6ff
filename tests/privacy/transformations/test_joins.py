"""Joins that keep rows without a partner: which rows they give, and how many change when one row of a side does."""

from __future__ import annotations

from collections import Counter

import pytest
from changed_rows import Tables, sizes, worst

from jostle.diagnostics import Refusal
from jostle.plan.plan import Apply, Categories, Column, Constant, Derive, Filter, Integer, Join, Known, Open, Real
from jostle.privacy.kernel.handles import Table
from jostle.privacy.transformations.joins import join
from jostle.records import replace
from jostle.run.publictables import known_sides

T = (("k", Categories(("a", "b"))), ("v", Integer(0, 9)))
U = (("k", Categories(("b", "a"))), ("w", Integer(0, 9)))
OTHER = (("city", Categories(("b", "a"))), ("w", Integer(0, 9)))
KINDS = ["inner", "left", "right", "full"]
ROWS = [("a", "0"), ("a", "1"), ("", "2")]
ON = [("k", "k")]
SPAN = {"inner": (), "left": ("left",), "right": ("right",), "full": ("left", "right")}


def derive(table: Table, columns: dict[str, str]) -> Table:
    """The table with columns of it, by their names, under other names."""
    schema = tuple((name, table.domains[own]) for name, own in columns.items())
    plan = Derive(table.plan, tuple((name, Column(own)) for name, own in columns.items()))
    return replace(table, plan=plan, schema=schema)


def renamed(table: Table) -> Table:
    """The table under other names, but for its keys, so that a join with it keeps both."""
    return derive(table, {name + "2" * (name == "v"): name for name in table.domains})


def above(table: Table, least: float) -> Table:
    return replace(table, plan=Filter(table.plan, Apply(">=", (Column("v"), Constant(least)))))


def by_hand(left: list[tuple[str, ...]], right: list[tuple[str, ...]], kind: str) -> Counter[tuple[object, ...]]:
    """The rows (k, v, w) of a join, by its definition."""
    pairs = [(a[0], a[1], b[1]) for a in left for b in right if a[0] and a[0] == b[0]]
    alone = [(a[0], a[1], None) for a in left if not any(a[0] and a[0] == b[0] for b in right)]
    other = [(b[0], None, b[1]) for b in right if not any(b[0] and a[0] == b[0] for a in left)]
    kept = pairs + (alone if "left" in SPAN[kind] else []) + (other if "right" in SPAN[kind] else [])
    return Counter((k or None, None if v is None else float(v), None if w is None else float(w)) for k, v, w in kept)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_join(tables: Tables, kind: str) -> None:
    left, right = [("a", "1"), ("a", "2"), ("b", "3"), ("", "4")], [("a", "5"), ("a", "5"), ("", "6")]
    for one, other in ((left, right), (left[2:], right), (left, right[2:]), ([], right), (left, [])):
        t, u = tables.table(one, T, "t"), tables.table(other, U, "u")
        assert tables.rows(join(tables.data, t, u, ON, 9, kind)) == by_hand(one, other, kind)
        public = tables.table(other, U)
        assert tables.rows(join(tables.data, t, public, ON, None, kind)) == by_hand(one, other, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_small_pair_with_a_public_table(tables: Tables, kind: str) -> None:
    """On either side: f where its own rows or none are kept, 2f where the public ones are, and no less."""
    contents = sizes(ROWS, 2)
    private, twice = [tables.table(rows, T, "t") for rows in contents], [("a", "7"), ("a", "8"), ("b", "9"), ("", "9")]
    for public in ([("b", "9")], twice):
        other = tables.table(public, U)
        left = worst(tables, [private], [contents], 0, lambda t, o=other: join(tables.data, t, o, ON, None, kind))
        right = worst(tables, [private], [contents], 0, lambda t, o=other: join(tables.data, o, t, ON, None, kind))
        f = len(public) // 2 or 1
        assert (left[1], right[1]) == (f * (2 if "right" in SPAN[kind] else 1), f * (2 if "left" in SPAN[kind] else 1))
        if public is twice:
            assert (left[0], right[0]) == (left[1], right[1])


@pytest.mark.slow(but=["inner-1"])
@pytest.mark.parametrize(("kind", "most"), [*((kind, 1) for kind in KINDS), ("full", 2)])
def test_every_small_pair_of_private_tables(tables: Tables, kind: str, most: int) -> None:
    """A row more on either side changes at most 2m rows of the join, and somewhere exactly so many."""
    rows = ROWS[:2] if most == 2 else ROWS
    contents, others = sizes(rows, most + 1), sizes(rows, most + 1)
    t, u = [tables.table(some, T, "t") for some in contents], [tables.table(some, U, "u") for some in others]
    changed = [
        worst(tables, [t, u], [contents, others], side, lambda a, b: join(tables.data, a, b, ON, most, kind))
        for side in (0, 1)
    ]
    assert changed == [(2 * most, 2 * most)] * 2


@pytest.mark.parametrize(("kind", "most"), [*((kind, 1) for kind in KINDS), ("inner", 2), ("full", 2)])
def test_a_table_with_itself(tables: Tables, kind: str, most: int) -> None:
    """One row more is one pair less than of two tables, as it and what it pushes out meet themselves."""
    contents = sizes(ROWS if most == 1 else [("a", "0"), ("a", "1"), ("a", "2")], most + 2)
    t = [tables.table(some, T, "t") for some in contents]
    changed = worst(tables, [t], [contents], 0, lambda a: join(tables.data, a, renamed(a), ON, most, kind))
    assert changed == (4 * most - 2, 4 * most - 2)


@pytest.mark.parametrize(("low", "high", "kind"), [(1.0, 0.0, "left"), (0.0, 1.0, "left"), (0.0, 2.0, "full")])
def test_parts_of_a_table_with_itself(tables: Tables, low: float, high: float, kind: str) -> None:
    """Where some rows are on one side alone."""
    contents = sizes([*ROWS, ("b", "0")], 3)
    t = [tables.table(some, T, "t") for some in contents]
    changed = worst(
        tables, [t], [contents], 0,
        lambda a: join(tables.data, above(a, low), renamed(above(a, high)), ON, 1, kind),
    )  # fmt: skip
    assert changed[0] <= changed[1] == 2


def test_a_table_with_itself_by_other_columns(tables: Tables) -> None:
    """There a row is at two keys, and no less than 4m will do."""
    schema = (("x", Categories(("a", "b"))), ("y", Categories(("a", "b"))), ("v", Integer(0, 9)))
    contents = sizes([("a", "a", "0"), ("b", "b", "1"), ("a", "b", "2"), ("b", "a", "3"), ("a", "b", "4")], 3)
    t = [tables.table(some, schema, "t") for some in contents]
    assert worst(tables, [t], [contents], 0, lambda a: join(tables.data, a, renamed(a), [("x", "y")], 1)) == (4, 4)
    turned = derive(t[0], {"x": "y", "v2": "v"})
    assert join(tables.data, t[0], turned, [("x", "x")], 1).exposures[0].rows == 4


def test_keys_of_two_names_both_stay(tables: Tables) -> None:
    t, u = tables.table([("a", "1"), ("b", "2")], T, "t"), tables.table([("a", "5"), ("", "6")], OTHER)
    joined = join(tables.data, t, u, [("k", "city")], None, "full")
    assert list(joined.domains) == ["k", "v", "city", "w"]
    assert tables.rows(joined) == Counter({
        ("a", 1.0, "a", 5.0): 1, ("b", 2.0, None, None): 1, (None, None, None, 6.0): 1,
    })  # fmt: skip


def test_a_key_of_one_name_has_the_values_of_both(tables: Tables) -> None:
    left = tables.table([("1", "1"), ("2", "2")], (("k", Integer(0, 3)), ("v", Integer(0, 9))), "t")
    right = tables.table([("2.0", "5"), ("2.5", "6")], (("k", Real(0.0, 9.0)), ("w", Integer(0, 9))))
    joined = join(tables.data, left, right, ON, None, "full")
    assert joined.domains["k"] == Real(0.0, 9.0)
    assert tables.rows(joined) == Counter({(1.0, 1, None): 1, (2.0, 2, 5): 1, (2.5, None, 6): 1})
    assert join(tables.data, left, right, ON, None, "left").domains["k"] == Integer(0, 3)


def test_a_public_side_is_known_by_its_values(tables: Tables) -> None:
    """What a public file was not described by is read from it, once a private table is joined with it."""
    schema = (("k", Open("text")), ("name", Open("text")), ("low", Open("real")), ("size", Open("real")),
              ("nothing", Open("text")))  # fmt: skip
    public = tables.table([("a", "Ames", "0.5", "30", ""), ("b", "Cork", "-2", "7", "")], schema)
    t = tables.table([("a", "1")], T, "t")
    joined = join(tables.data, *known_sides(tables.data, t, public), ON, None, "left")
    assert joined.domains == dict(T) | {
        "name": Categories(("Ames", "Cork")), "low": Real(-2.0, 0.5), "size": Integer(7, 30), "nothing": Open("text"),
    }  # fmt: skip
    assert isinstance(joined.plan, Join) and isinstance(joined.plan.right, Known)
    assert join(tables.data, *known_sides(tables.data, public, public), ON, None).domains["name"] == Open("text")


def test_what_is_refused(tables: Tables) -> None:
    t, u, p = tables.table([], T, "t"), tables.table([], U, "u"), tables.table([], OTHER)
    for sides, on in (((t, u), ON), ((t, p), [("v", "city")]), ((t, p), [("k", "nobody")])):
        for kind in KINDS:
            with pytest.raises(Refusal):
                join(tables.data, *sides, on, None, kind)
