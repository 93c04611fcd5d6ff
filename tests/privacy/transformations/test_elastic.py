"""Joins without a bound: what one row changes, over every small database and as far from it as those are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
from changed_rows import Row, Schema, Tables, neighbours, sizes

from jostle.diagnostics import Refusal
from jostle.plan.plan import Apply, Categories, Column, Constant, Derive, Filter, Integer, Open
from jostle.privacy.kernel.handles import Table
from jostle.privacy.measurements.smooth import _most, smoothed
from jostle.privacy.transformations.joins import FreeJoin, Frequency, Product, free_join, join
from jostle.records import replace

KEYS = Categories(("a", "b"))
T: Schema = (("k", KEYS), ("v", Integer(0, 9)))
U: Schema = (("k", KEYS), ("w", Integer(0, 9)))
V: Schema = (("w", Integer(0, 9)), ("z", Integer(0, 9)))
ROWS = [("a", "0"), ("a", "1"), ("", "1")]
BETAS = (0.05, 0.4, 1.5)


def named(table: Table, **columns: str) -> Table:
    """The table with columns of it under other names."""
    schema = tuple((name, table.domains[own]) for name, own in columns.items())
    return replace(table, plan=Derive(table.plan, tuple((n, Column(own)) for n, own in columns.items())), schema=schema)


def above(table: Table, least: float) -> Table:
    return replace(table, plan=Filter(table.plan, Apply(">=", (Column("v"), Constant(least)))))


def at_distance(products: Sequence[Product], found: Sequence[int], frequencies: Sequence[Frequency], k: int) -> int:
    """ES⁽ᵏ⁾: the products where every frequency has grown k times by what one unit may raise it."""
    grown = [m + max(f.grows) * k for m, f in zip(found, frequencies, strict=True)]
    return sum(p.times * math.prod(grown[i] for i in p.factors) for p in products)


def check(
    tables: Tables, kinds: Sequence[tuple[Schema, Sequence[Row], int]], make: Callable[..., FreeJoin], tight: bool
) -> None:
    """Over all databases of so many rows of these kinds in each private table, named t0, t1, …"""
    contents = [sizes(rows, most) for _, rows, most in kinds]
    made = [[tables.table(rows, kind[0], f"t{at}") for rows in contents[at]] for at, kind in enumerate(kinds)]
    databases = list(itertools.product(*(range(len(some)) for some in contents)))
    joins = {d: make(*(some[i] for some, i in zip(made, d, strict=True))) for d in databases}
    edges = [
        (d, (*d[:side], j, *d[side + 1 :]), side)
        for side, some in enumerate(contents)
        for i, j in neighbours(some)
        for d in databases if d[side] == i
    ]  # fmt: skip
    facts, smooth = {}, {}
    for d in databases:
        frequencies, moves = joins[d].moves()
        found = [_most(tables.kernel._reader, frequency) for frequency in frequencies]
        facts[d] = frequencies, moves, found
        grows = [frequency.grows for frequency in frequencies]
        smooth[d] = [smoothed(moves, found, grows, beta) for beta in BETAS]
    local, met = dict.fromkeys(databases, 0), False
    for one, other, side in edges:
        moved = tables.changed(joins[one], joins[other])
        for d in (one, other):
            frequencies, moves, found = facts[d]
            source = [e.source.name for e in joins[d].paid].index(f"t{side}")
            bound = at_distance(moves[source], found, frequencies, 0)
            assert moved <= bound, (one, other, moved, bound)
            met = met or moved == bound > 1
            local[d] = max(local[d], moved)
        for beta, a, b in zip(BETAS, smooth[one], smooth[other], strict=True):
            assert abs(math.log(a / b)) <= beta * (1 + 1e-9)
    assert met or not tight
    near = local
    for k in range(4):
        for d in databases:
            frequencies, moves, found = facts[d]
            assert near[d] <= max(at_distance(some, found, frequencies, k) for some in moves)
            for beta, a in zip(BETAS, smooth[d], strict=True):
                assert math.exp(-beta * k) * near[d] <= a * (1 + 1e-9)
        farther = dict(near)
        for one, other, _ in edges:
            farther[one], farther[other] = max(farther[one], near[other]), max(farther[other], near[one])
        near = farther


ON = [("k", "k")]


@pytest.mark.slow
def test_two_tables(tables: Tables) -> None:
    check(tables, [(T, ROWS, 3), (U, ROWS, 2)], lambda t, u: free_join(t, u, ON), True)


@pytest.mark.slow
def test_by_two_columns(tables: Tables) -> None:
    on = [("k", "k"), ("v", "w")]
    check(tables, [(T, ROWS, 2), (U, ROWS, 2)], lambda t, u: free_join(t, u, on), True)


def test_a_table_with_itself(tables: Tables) -> None:
    check(
        tables, [(T, [*ROWS, ("b", "0")], 4)],
        lambda t: free_join(t, named(t, k="k", v2="v"), ON), True,
    )  # fmt: skip


def test_a_table_with_a_part_of_itself(tables: Tables) -> None:
    check(
        tables, [(T, [*ROWS, ("a", "2")], 3)],
        lambda t: free_join(above(t, 1), named(above(t, 2), k="k", v2="v"), ON), False,
    )  # fmt: skip


@pytest.mark.slow
def test_a_table_with_itself_by_other_columns(tables: Tables) -> None:
    schema = (("x", KEYS), ("y", KEYS))
    rows = [("a", "a"), ("b", "b"), ("a", "b"), ("b", "a"), ("", "a")]
    check(tables, [(schema, rows, 3)], lambda t: free_join(t, named(t, p="x", q="y"), [("x", "q")]), True)


@pytest.mark.slow
def test_a_chain(tables: Tables) -> None:
    def make(t: Table, u: Table, v: Table) -> FreeJoin:
        return free_join(free_join(t, u, ON), v, [("w", "w")])

    kinds = [("a", "0"), ("a", "1")]
    check(tables, [(T, kinds, 2), (U, kinds, 2), (V, [("0", "0"), ("1", "1")], 1)], make, True)


@pytest.mark.slow
def test_a_chain_by_columns_of_both(tables: Tables) -> None:
    def make(t: Table, u: Table, v: Table) -> FreeJoin:
        return free_join(free_join(t, u, ON), v, [("w", "w"), ("v", "z")])

    kinds = [("a", "0"), ("a", "1")]
    check(tables, [(T, kinds, 2), (U, kinds, 2), (V, [("1", "0"), ("0", "1")], 1)], make, False)


@pytest.mark.slow
def test_a_chain_by_columns_of_the_second(tables: Tables) -> None:
    """A column of the second table alone: what meets it is counted from there."""

    def make(t: Table, u: Table) -> FreeJoin:
        chain = free_join(t, u, ON)
        return free_join(chain, named(u, w="w", k3="k"), [("w", "w")])

    check(tables, [(T, ROWS, 2), (U, ROWS, 2)], make, False)


def test_a_table_three_times(tables: Tables) -> None:
    def make(t: Table) -> FreeJoin:
        twice = free_join(t, named(t, k="k", v2="v"), ON)
        return free_join(twice, named(t, k="k", v3="v"), ON)

    check(tables, [(T, [("a", "0"), ("b", "0"), ("a", "1")], 4)], make, True)


@pytest.mark.slow
def test_with_public_tables(tables: Tables) -> None:
    """One that comes first makes two rows of one; one that comes last, two of each pair."""
    public = tables.table([("a", "7"), ("a", "8")], (("k", KEYS), ("p", Integer(0, 9))))

    def first(t: Table, u: Table) -> FreeJoin:
        return free_join(join(tables.data, t, public, ON, None), u, ON)

    def last(t: Table, u: Table) -> FreeJoin:
        return free_join(free_join(t, u, ON), public, ON)

    for make in (first, last):
        check(tables, [(T, ROWS, 2), (U, ROWS, 2)], make, True)
    frequencies, moves = first(*(tables.table([], schema, name) for schema, name in ((T, "t0"), (U, "t1")))).moves()
    assert sorted(f.grows for f in frequencies) == [(0, 1), (2, 0)] and {p.times for some in moves for p in some} == {
        1,
        2,
    }


@pytest.mark.slow
def test_after_a_join_with_a_bound(tables: Tables) -> None:
    """One row changes 2m rows of it."""

    def make(t: Table, u: Table, v: Table) -> FreeJoin:
        return free_join(join(tables.data, t, u, ON, 1), v, [("v", "w")])

    check(tables, [(T, [("a", "0"), ("a", "1")], 2), (U, [("a", "0")], 2), (V, [("1", "0")], 2)], make, False)


@pytest.mark.parametrize(
    ("left", "right"),
    [(Integer(-9, 9), Open("real")), (Open("real"), Open("real")), (Open("integer"), Open("real"))],
)
def test_numbers_that_meet_are_counted_together(tables: Tables, left: Integer | Open, right: Open) -> None:
    """0 and -0, whole numbers too large for a double, and what is no number: no more rows meet than are counted."""
    cells = [0.0, -0.0, 2**53, 2**53 + 1, 2**53 + 2, float("nan"), float("inf"), float("nan"), "x", "1e300", 1e300]
    t = tables.table([(c, 1) for c in cells], (("k", left), ("v", Integer(0, 9))), "t")
    for cell in (0.0, -0.0, 2**53, 2**53 + 1, float("nan"), float("inf"), 1e300):
        u = tables.table([(cell, 1)], (("k", right), ("w", Integer(0, 9))), "u")
        joined = free_join(t, u, ON)
        frequencies, _ = joined.moves()
        of_t = next(f for f in frequencies if f.plan == t.plan)
        assert tables.rows(joined).total() <= _most(tables.kernel._reader, of_t)


def test_what_is_no_such_join(tables: Tables) -> None:
    t, u = tables.table(ROWS, T, "t"), tables.table(ROWS, U, "u")
    with pytest.raises(Refusal, match="6 tables"):
        chain: Table = t
        for at in range(6):
            chain = free_join(chain, named(u, k="k", **{f"w{at}": "w"}), ON)
    endless = replace(u, exposures=tuple(replace(e, rows=None) for e in u.exposures))
    with pytest.raises(Refusal, match="any number of rows"):
        free_join(t, endless, ON)
    with pytest.raises(Refusal, match="any number of rows"):  # what is made is measured by nothing else
        tables.kernel.need_open(free_join(t, u, ON).exposures)
