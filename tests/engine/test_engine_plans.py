"""Bounding, joins, groups, tallies and exact aggregates."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from portable_hash import row_hash

from jostle.diagnostics import Refusal
from jostle.engine.sql import relations
from jostle.engine.sql.engine import SqlEngine
from jostle.engine.sql.persons import narrowed
from jostle.plan.facts import schema_of
from jostle.plan.plan import (
    Apply,
    Bound,
    Categories,
    Column,
    Constant,
    Count,
    Derive,
    Exact,
    Filter,
    FixedSum,
    Integer,
    Join,
    Key,
    Open,
    Plan,
    Real,
    RowExpr,
    Scan,
    Truncate,
    Union,
)  # fmt: skip
from jostle.readers.duckdb import LocalDuckDb
from jostle.records import replace


@pytest.fixture
def engine() -> Iterator[LocalDuckDb]:
    engine = LocalDuckDb()
    yield engine
    engine.close()


def call(op: str, *args: Any) -> RowExpr:
    return Apply(op, tuple(arg if isinstance(arg, Column | Apply | Constant) else Constant(arg) for arg in args))


Row = tuple[Any, ...]
PEOPLE: list[Row] = [(f"p{i % 37}" if i % 11 else "", f"{i * 7 % 130}", f"{i % 5}") for i in range(300)]
DOMAINS = (("who", Open("text")), ("age", Integer(0, 99)), ("n", Integer(0, 9)))


def scan_of(engine: LocalDuckDb, rows: list[Row], domains: Any = DOMAINS) -> Scan:
    columns = {name: np.array([row[i] for row in rows], dtype=object) for i, (name, _) in enumerate(domains)}
    return Scan(engine.open(columns, public=False).key, domains)


def contents(engine: LocalDuckDb, plan: Plan, names: list[str]) -> Counter[Row]:
    """The rows of a plan with how often each occurs."""
    keys, (counts,) = engine.exact(plan, tuple(Column(name) for name in names), (Exact("count"),))
    return Counter({row: int(n) for *row, n in zip(*keys, counts, strict=True) for row in [tuple(row)]})


# Bounding ------------------------------------------------------------------------------------------


def portable(rows: list[Row], most: int) -> Counter[Row]:
    """The rule as its documentation states it, in plain Python."""

    kept: Counter[Row] = Counter()
    for who in {row[0] for row in rows if row[0]}:
        mine = sorted((r for r in rows if r[0] == who), key=lambda r: row_hash((r[1], r[2], r[0])))
        kept.update((row[0], float(min(99, int(row[1]))), float(row[2])) for row in mine[:most])
    return kept


@pytest.mark.parametrize("most", [1, 3])
def test_bounding_is_the_portable_hash_whatever_the_order_of_rows(engine: LocalDuckDb, most: int) -> None:
    wanted = portable(PEOPLE, most)
    for seed in range(3):
        rows = PEOPLE[:]
        random.Random(seed).shuffle(rows)
        bound = Bound(scan_of(engine, rows), ("who",), most)
        assert contents(engine, bound, ["who", "age", "n"]) == wanted


def test_bounding_does_not_look_at_other_people(engine: LocalDuckDb) -> None:
    everyone = contents(engine, Bound(scan_of(engine, PEOPLE), ("who",), 2), ["who", "age", "n"])
    without = contents(
        engine, Bound(scan_of(engine, [row for row in PEOPLE if row[0] != "p3"]), ("who",), 2), ["who", "age", "n"]
    )
    gone = everyone - without
    assert without - everyone == Counter()
    assert sum(gone.values()) == 2 and {row[0] for row in gone} == {"p3"}


def test_bounding_compares_the_raw_value(engine: LocalDuckDb) -> None:
    rows: list[Row] = [("x", str(age), "1") for age in (150, 150, 150, 200, 200, 99)]
    bound = Bound(scan_of(engine, rows), ("age",), 1)
    assert engine.rows(bound) == 3  # all three are clamped to 99, and are three different people
    assert engine.group(bound, (Key(Column("age"), range(99, 100)),), (Count(),))[0].tolist() == [3]


def test_bounding_by_two_columns_drops_missing_ones(engine: LocalDuckDb) -> None:
    bound = Bound(scan_of(engine, PEOPLE), ("who", "n"), 1)
    assert engine.rows(bound) == len({(row[0], row[2]) for row in PEOPLE if row[0]})


def truncated(rows: list[Row], plan: Truncate) -> Counter[Row]:
    """The rule as its documentation states it, in plain Python, of rows of a person, an age and a number or none."""

    def place(row: Row) -> tuple[Any, ...]:
        texts = (row[0], str(row[1]), "" if row[2] is None else str(row[2]))
        if plan.order is None:
            return (row_hash(texts),)
        return row[2] is None, (row[2] or 0) * (-1 if plan.descending else 1), row_hash(texts)

    def group_place(group: list[Row]) -> tuple[Any, ...]:
        key = str(group[0][1] % 4)
        return (*place(group[0])[:-1], row_hash((group[0][0], key)), key)

    kept: Counter[Row] = Counter()
    for who in {row[0] for row in rows if row[0]}:
        mine = sorted((row for row in rows if row[0] == who), key=place)
        groups = [[row for row in mine if row[1] % 4 == key or not plan.keys] for key in range(4 if plan.keys else 1)]
        groups = sorted(filter(None, groups), key=group_place) if plan.keys else groups
        for group in groups[: plan.groups if plan.keys else None]:
            kept.update((row[0], float(row[1]), row[2] and float(row[2])) for row in group[: plan.rows])
    return kept


@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize("most", [None, 1, 3])
@pytest.mark.parametrize("order", [None, False, True])
def test_bounds_of_a_query_are_the_portable_hash_or_an_order(
    engine: LocalDuckDb, groups: int | None, most: int | None, order: bool | None
) -> None:
    rng = random.Random(5)
    people = [(rng.choice(["Ann", "Bob", "7", ""]), rng.randrange(40), rng.choice([None, 1, 2, 3])) for _ in range(90)]
    texts = [(who, str(age), "" if number is None else str(number)) for who, age, number in people]
    bound = Bound(scan_of(engine, texts), ("who",), None)
    for keys in ((call("%", Column("age"), 4.0),), ()):
        by = None if order is None else Column("n")
        plan = Truncate(bound, keys, groups, most, by, bool(order))
        assert Counter(engine.records(plan)) == truncated(people, plan)


# Joins ---------------------------------------------------------------------------------------------


def test_join_keeps_the_left_columns_and_skips_missing_keys(engine: LocalDuckDb) -> None:
    left = scan_of(engine, [("a", "1", "1"), ("a", "2", "1"), ("b", "3", "1"), ("", "4", "1")])
    domains = (("who", Open("text")), ("age", Integer(0, 99)), ("m", Integer(0, 9)))
    right = scan_of(engine, [("a", "50", "7"), ("", "60", "7"), ("c", "70", "7")], domains)
    joined = Join(left, right, ("who",))
    assert contents(engine, joined, ["who", "age", "m"]) == Counter({("a", 1.0, 7.0): 1, ("a", 2.0, 7.0): 1})


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full"])
def test_a_join_reads_what_is_asked_of_its_left_side(engine: LocalDuckDb, kind: str) -> None:
    """Each column, and each pair, is what it is beside all others, also where both sides have a name."""
    left, ages = scan_of(engine, PEOPLE), (("m", Integer(0, 9)), ("age", Integer(0, 99)), ("who", Open("text")))
    right = scan_of(engine, [(f"{i % 9}", f"{i}", f"p{i % 3}" if i % 7 else "") for i in range(20)], ages)
    both: list[tuple[str, RowExpr]] = [("age", Column("age")), ("n", Column("n"))]
    older = Derive(Filter(left, call(">", both[0][1], 20.0)), (("k", call("+", both[1][1], 1.0)), *both))
    for join in (Join(left, right, ("who",), kind=kind), Join(older, right, ("k",), theirs=("m",), kind=kind)):
        names = [name for name in ("who", "age", "n", "m", "k") if name in dict(schema_of(join))]
        whole = different(engine, join, names)
        for some in itertools.combinations(range(len(names)), 2):
            wanted = Counter[Row]()
            for row, many in whole.items():
                wanted[tuple(row[at] for at in some)] += many
            assert different(engine, join, [names[at] for at in some]) == wanted
    narrow = narrowed(join, [Column("m")])
    assert isinstance(narrow, Join) and list(schema_of(narrow.left)) == ["k"] and narrow.right is right
    assert narrowed(replace(join, most=2), [Column("m")]) == replace(join, most=2)


def different(engine: LocalDuckDb, plan: Plan, names: list[str]) -> Counter[Row]:
    """The rows with how often each occurs, also where cells are missing."""
    columns, counts = engine.different(plan, names)
    return Counter({row: int(n) for *row, n in zip(*columns, counts, strict=True) for row in [tuple(row)]})


def test_bounded_joins_bound_both_sides_and_one_row_displaces_few(engine: LocalDuckDb) -> None:
    left, right = scan_of(engine, PEOPLE), scan_of(engine, PEOPLE[::2])
    joined = Join(left, Filter(right, call("<", Column("age"), 90.0)), ("who",), 2)
    counts = engine.tally(joined, Column("who"))[1]
    assert counts.max() <= 4
    before = contents(engine, joined, ["who", "age", "n"])
    less = Join(scan_of(engine, PEOPLE[1:]), joined.right, ("who",), 2)
    after = contents(engine, less, ["who", "age", "n"])
    assert sum((before - after).values()) <= 2 and sum((after - before).values()) <= 2


def test_joins_that_do_not_fit_are_refused(engine: LocalDuckDb) -> None:
    scan = scan_of(engine, PEOPLE)
    for on in (("age", "nobody"), ()):
        with pytest.raises(Refusal):
            engine.rows(Join(scan, scan, on))
    other = Scan(scan.data, (("who", Open("real")),))
    with pytest.raises(Refusal) as refusal:
        engine.rows(Join(scan, other, ("who",)))
    assert refusal.value.first.kind == "TypeError"


# Groups --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [5, 400])
def test_codes_are_places_in_a_list_of_any_length(engine: LocalDuckDb, many: int) -> None:
    rows = [(f"p{i}", str(i % 90), "1") for i in range(0, 900, 2)] + [("", "", "2"), ("nobody", "0", "3")]
    names, ages = tuple(f"p{i * 3}" for i in range(many)), tuple(float(i % 300) for i in range(many, 0, -1))
    codes = engine.codes(scan_of(engine, rows), (Key(Column("who"), names), Key(Column("age"), ages)))
    wanted = [[names.index(who) if who in names else -1 for who, _, _ in rows],
              [ages.index(float(age)) if age and float(age) in ages else -1 for _, age, _ in rows]]  # fmt: skip
    assert [column.tolist() for column in codes] == wanted


def test_groups_are_dense_and_in_the_order_of_the_keys(engine: LocalDuckDb) -> None:
    scan = scan_of(engine, [("a", "10", "1"), ("b", "25", "2"), ("a", "", "3"), ("c", "31", "4"), ("a", "10", "")])
    decade = Key(call("/", Column("age"), 10.0), range(5))
    who = Key(Column("who"), ("b", "a", "nobody"))
    count, known, different, total = engine.group(
        scan, (decade, who), (Count(), Count(Column("n")), Count(Column("age"), True), FixedSum(Column("n"), 0, 9, 0))
    )
    assert count.shape == (5, 3) and count.dtype == np.int64
    assert count.tolist() == [[0, 0, 0], [0, 2, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert known.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert different.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert total.tolist() == [[0, 0, 0], [0, 1, 0], [2, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_kinds_of_keys(engine: LocalDuckDb) -> None:
    scan = scan_of(engine, [("a", "10", "1"), ("b", "25", "2"), ("a", "", "3")])
    old = Key(call(">", Column("age"), 18.0), (False, True))
    assert engine.group(scan, (old,), (Count(),))[0].tolist() == [1, 1]
    listed = Key(call("/", Column("age"), 2.0), (12.0, 5.0, 99.0))  # 12.5 is taken down to 12
    assert engine.group(scan, (listed,), (Count(),))[0].tolist() == [1, 1, 0]
    halves = Key(call("/", Column("age"), 2.0), (12.0, 12.5))  # listed with a fraction: matched as they are
    assert engine.group(scan, (halves,), (Count(),))[0].tolist() == [0, 1]
    far = Key(call("*", Column("age"), 1e300), range(-3, 3))
    assert engine.group(scan, (far,), (Count(),))[0].tolist() == [0] * 6
    assert engine.group(scan, (Key(Column("age"), range(0)),), (Count(),))[0].tolist() == []


def test_fixed_sums_are_exact_beyond_doubles(engine: LocalDuckDb) -> None:
    values = np.array([2.0**52 + 0.5, 1 / 3, -1e300, np.nan, 7.125] * 100)
    scan = Scan(engine.open({"x": values}, public=False).key, (("x", Open("real")),))
    low, high = -(2.0**50), 2.0**52
    (total,) = engine.group(scan, (), (FixedSum(Column("x"), low, high, 20),))
    each = [2**72, round(2**20 / 3), -(2**70), int(7.125 * 2**20)]
    assert total.dtype == object and total[()] == 100 * sum(each)
    (squares,) = engine.group(scan, (), (FixedSum(Column("x"), -2.0, 2.0, 10, square=True),))
    assert squares.dtype == np.int64 and squares[()] == 100 * (4 + round(2**10 / 9) / 2**10 + 4 + 4) * 2**10
    assert engine.group(Filter(scan, Constant(False)), (), (Count(), FixedSum(Column("x"), 0, 1, 0)))[1][()] == 0


def test_sums_that_could_overflow_are_refused(engine: LocalDuckDb) -> None:
    scan = scan_of(engine, PEOPLE)
    for bounds in ((0.0, 1e300), (0.0, float("inf")), (1.0, 0.0), (0.0, float("nan"))):
        with pytest.raises(Refusal):
            engine.group(scan, (), (FixedSum(Column("age"), *bounds, bits=30),))


def test_sums_do_not_depend_on_threads(engine: LocalDuckDb) -> None:
    values = np.random.default_rng(1).normal(size=300_000)
    scan = Scan(engine.open({"x": values}, public=False).key, (("x", Real(-3.0, 3.0)),))
    for bits in (20, 40):  # added up as doubles, and as integers
        term = FixedSum(Column("x"), -3.0, 3.0, bits)
        engine.fetch("RESET threads")
        found = {int(engine.group(scan, (), (term,))[0]) for _ in range(3)}
        engine.fetch("SET threads = 1")
        found.add(int(engine.group(scan, (), (term,))[0]))
        clipped = np.clip(values, -3, 3) * 2.0**bits
        assert found == {sum(map(int, np.rint(clipped)))}


def test_sums_are_the_same_however_many_rows_there_might_be(engine: LocalDuckDb) -> None:
    """As doubles, as integers of 64 bits and as wider ones, also of halves and of the last place of a double."""
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 2.0**30 + 0.5, -(2.0**30), np.nan, np.inf, 1e300]
    scan = Scan(engine.open({"x": np.array(values)}, public=False).key, (("x", Real(-(2.0**31), 2.0**31)),))
    terms = tuple(FixedSum(call("-", Column("x"), c), -(2.0**31), 2.0**30, bits) for c in (0.0, 0.5) for bits in (0, 9))
    relation = engine.relation(scan)
    queries = [relations.group(replace(relation, most_rows=most), (), terms) for most in (11, 2**22, 2**50)]
    sums = [[int(value) for value in engine.fetch(query.sql)[0]] for query in queries]
    assert [query.as_text for query in queries] == [(False,) * 4, (False,) * 4, (True,) * 4]
    assert sums[0] == sums[1] == sums[2]


@pytest.mark.parametrize("sizes", [(10**12,), (2**13, 2**14), (10**400,)])
def test_too_many_groups_are_refused_before_memory_is_taken(engine: LocalDuckDb, sizes: tuple[int, ...]) -> None:
    keys = tuple(Key(Column("age"), range(size)) for size in sizes)
    scan = scan_of(engine, PEOPLE)
    with pytest.raises(Refusal) as refusal:
        engine.group(scan, keys, (Count(),))
    assert refusal.value.first.kind == "ValueError"
    with pytest.raises(Refusal):
        engine.exact(scan, keys, (Exact("count"),))


def test_filters_and_derived_columns_stack(engine: LocalDuckDb) -> None:
    scan = scan_of(engine, PEOPLE)
    plan: Plan = scan
    for limit in range(150):
        plan = Filter(plan, call("<", Column("age"), float(200 - limit)))
    expected = sum(min(99, int(row[1])) < 51 for row in PEOPLE)
    assert engine.rows(plan) == expected
    made = Derive(plan, (("age", call("-", 99.0, Column("age"))), ("young", call("<", Column("age"), 18.0))))
    assert engine.rows(Filter(made, call("and", Column("young"), call(">", Column("age"), 90.0)))) == sum(
        min(99, int(row[1])) < 9 for row in PEOPLE
    )
    with pytest.raises(Refusal) as refusal:
        engine.rows(Filter(scan, Column("age")))
    assert refusal.value.first.kind == "TypeError"
    for _ in range(250):
        plan = Derive(plan, (("age", Column("age")),))
    with pytest.raises(Refusal) as refusal:
        engine.rows(plan)
    assert refusal.value.first.kind == "RecursionLimit"


@pytest.mark.parametrize("op", ["trunc", "shift", "clamp date", "min date"])
def test_expressions_are_as_deep_as_is_allowed(engine: LocalDuckDb, op: str) -> None:
    """Each operation is several levels of SQL: none is beyond what the database reads."""
    scan = scan_of(engine, PEOPLE)
    expr: RowExpr = call("date of text", "2020-02-29")
    rest = {"trunc": ("month",), "shift": (1.0,), "clamp date": (date(2020, 1, 1), date(2020, 12, 1))}
    for _ in range(198 if op != "clamp date" else 90):
        expr = call(op, expr, *rest.get(op, (date(2020, 1, 31),)))
    assert engine.rows(Filter(scan, call("missing", expr))) == 0


# Tallies and exact aggregates ----------------------------------------------------------------------


def test_a_union_reads_what_its_tables_share_once(engine: LocalDuckDb) -> None:
    scan = scan_of(engine, PEOPLE)
    adults = Filter(scan, call(">=", Column("age"), 40.0))
    twice = Derive(adults, (("n", call("+", Column("n"), 1.0)), ("who", Column("who"))))
    items = [Derive(twice, (("item", call("*", Column("n"), float(i))), ("who", Column("who")))) for i in (1, 2, 3)]
    within = Union((Filter(items[0], call(">", Column("item"), 2.0)), *items[1:]))
    nested = Union((within, Filter(within, call("==", Column("item"), 6.0))))
    made = engine.relation(nested).sql
    assert made.count(engine.base(scan).sql) == 1 and made.count("MATERIALIZED") == 2
    numbers = [int(n) + 1 for _, age, n in PEOPLE if min(int(age), 99) >= 40]
    rows = Counter(n * i for n in numbers for i in (1, 2, 3) if i > 1 or n > 2)
    rows[6] *= 2
    assert contents(engine, nested, ["item"]) == Counter({(item,): many for item, many in rows.items()})
    apart = Union((adults, scan))
    assert "MATERIALIZED" not in engine.relation(apart).sql
    assert engine.rows(apart) == len(numbers) + len(PEOPLE)


@pytest.mark.parametrize("many", [32, 33, 1500])
def test_long_lists_are_looked_up_as_short_ones_are_compared(engine: LocalDuckDb, many: int) -> None:
    listed = tuple(f"p{i}" for i in range(0, 2 * many, 2))
    rows: list[Row] = [(f"p{i}" if i % 7 else "", f"{i}", "1") for i in range(100)]
    there = [int(who[1:]) % 2 == 0 and int(who[1:]) < 2 * many if who else None for who, _, _ in rows]
    scan = scan_of(engine, rows)
    among = call("in", Column("who"), *listed)
    tests = [(among, there.count(True)), (call("not", among), there.count(False)),
             (call("in", Column("who"), None, *listed), there.count(True) + there.count(None)),
             (call("in", Column("age"), *map(float, range(5, 5 + many))), min(many, 95))]  # fmt: skip
    assert [engine.rows(Filter(scan, test)) for test, _ in tests] == [number for _, number in tests]
    chosen = Derive(scan, (("x", call("if", among, 1.0, 2.0)), ("unknown", call("missing", among))))
    assert contents(engine, chosen, ["x", "unknown"]) == Counter(
        {(1.0, False): there.count(True), (2.0, False): there.count(False), (2.0, True): there.count(None)}
    )
    described = replace(scan, columns=(("who", Categories(listed)), *scan.columns[1:]))
    for source in (scan, described):
        (counts,) = engine.group(source, (Key(Column("who"), listed),), (Count(),))
        assert counts.tolist() == [int((name, name[1:], "1") in rows) for name in listed]
    assert engine.rows(Filter(described, call("missing", Column("who")))) == 100 - there.count(True)
    odd = ("it's", "a\x1fb", "a\0b", "a,b", "p2", *(f"q{i}" for i in range(many)))
    cells = [(one, str(-i)) for i, one in enumerate(("it's", "a\x1fb", "a", "b", "a,b", "p2", "its", "''"))]
    numbers = tuple(-0.25 * i for i in range(1, many))
    typed = scan_of(engine, cells, (("c", Categories(odd)), ("x", Categories(numbers))))
    assert engine.rows(Filter(typed, call("not", call("missing", Column("c"))))) == 4
    assert engine.rows(Filter(typed, call("not", call("missing", Column("x"))))) == 7
    assert engine.rows(Filter(typed, call("in", Column("x"), float("inf"), *numbers))) == 7


@pytest.mark.parametrize("many", [1, 128, 129])
def test_categories_are_the_described_ones_however_many(engine: LocalDuckDb, many: int) -> None:
    listed = tuple(f"v{i}" for i in range(many))
    cells = [*listed, "v0", "other", "V0", "v0 ", "", None] * 3
    scan = scan_of(engine, [(cell,) for cell in cells], (("c", Categories(listed)),))
    for asked in (listed, (*listed, "other"), listed[:-1] or listed, ("absent", "v0", "other")):
        (counts,) = engine.group(scan, (Key(Column("c"), asked),), (Count(),))
        assert list(counts) == [cells.count(value) if value in listed else 0 for value in asked]
    assert engine.rows(Filter(scan, call("==", Column("c"), "v0"))) == 6
    assert engine.rows(Filter(scan, call("!=", Column("c"), "v0"))) == 3 * (many - 1)
    assert engine.rows(Filter(scan, call("missing", Column("c")))) == 15


def test_real_numbers_are_brought_between_their_ends(engine: LocalDuckDb) -> None:
    cells = np.array([-2.0, -0.0, 0.0, 0.25, 1.0, 1.5, np.nan, np.inf, -np.inf, 1e300])
    scan = Scan(engine.open({"x": cells}, public=False).key, (("x", Real(-1.0, 1.0)),))
    kept = np.clip(cells[np.isfinite(cells)], -1.0, 1.0)
    ends = ((-1.0, 1.0), (-5.0, 5.0), (0.1, 0.5), (-9.0, -3.0), (-1.3, 0.7), (-1.2, 0.7))
    for (low, high), shift in itertools.product(ends, (0.0, 0.3)):
        x = call("-", Column("x"), shift) if shift else Column("x")
        sums = [FixedSum(x, low, high, 8, square=square) for square in (False, True)]
        totals = [int(total) for total in engine.group(scan, (), tuple(sums))]
        clipped = np.clip(kept - shift, low, high)
        assert totals == [int(np.round(256 * clipped).sum()), int(np.round(256 * clipped**2).sum())]


def test_tallies(engine: LocalDuckDb) -> None:
    scan = scan_of(engine, [("b", "10", "1"), ("a", "25", "2"), ("b", "", "3"), ("", "10", "4")])
    for expr, values, counts in (
        (Column("age"), [10, 25], [2, 1]),
        (Column("who"), ["a", "b"], [1, 2]),
        (call(">", Column("age"), 18.0), [False, True], [2, 1]),
    ):
        found = engine.tally(scan, expr)
        assert (found[0].tolist(), found[1].tolist()) == (values, counts)


def test_exact_aggregates(engine: LocalDuckDb) -> None:
    rows: list[Row] = [("a", "10", "1"), ("a", "20", "1"), ("b", "30", "2"), ("a", "20", ""), ("", "10", "4")]
    scan = scan_of(engine, rows)
    age = Column("age")
    functions = ["count", "sum", "avg", "var", "min", "max", "mode", "count_distinct"]
    terms = (
        *(Exact(function, age) for function in functions),
        Exact("quantile", age, 0.5),
        Exact("quantile", age, 0.25),
        Exact("mode", Column("who")),
    )
    keys, found = engine.exact(scan, (), terms)
    assert keys == []
    values = [column[0] for column in found]
    assert values[:10] == pytest.approx([5, 90, 18, 70, 10, 30, 10, 3, 20, 10]) and values[10] == "a"
    terms = (Exact("count"), Exact("sum", age), Exact("avg", age), Exact("mode", age))
    keys, found = engine.exact(scan, (Key(Column("who"), ("b", "none", "a")),), terms)
    assert keys == [["b", "none", "a"]]
    assert found == [[1, 0, 3], [30, 0, 50], [30, None, 50 / 3], [30, None, 20]]
    keys, found = engine.exact(scan, (call("/", age, 15.0), Key(Column("who"), ("b", "a"))), (Exact("count"),))
    assert keys == [[0, 0, 1, 1, 2, 2], ["b", "a"] * 3] and found == [[0, 1, 0, 2, 1, 0]]
    ties = scan_of(engine, [("a", str(i * 37 % 100), "1") for i in range(100)])
    assert engine.exact(ties, (Column("who"),), (Exact("mode", age),))[1] == [[0]]
    keys, found = engine.exact(Filter(scan, Constant(False)), (Column("who"),), (Exact("count"),))
    assert keys == [[]] and found == [[]]


def test_exact_aggregates_of_what_they_do_not_fit_are_refused(engine: LocalDuckDb) -> None:
    scan = scan_of(engine, PEOPLE)
    for term in (
        Exact("sum", Column("who")),
        Exact("sum"),
        Exact("quantile", Column("age"), 1.5),
        Exact("shape", Column("age")),
    ):
        with pytest.raises(Refusal):
            engine.exact(scan, (), (term,))


def test_exact_aggregates_that_overflow_are_missing(engine: LocalDuckDb) -> None:
    scan = Scan(engine.open({"x": np.array([1e308, 1e308, -1e308])}, public=True).key, (("x", Open("real")),))
    assert engine.exact(scan, (), (Exact("max", Column("x")),))[1] == [[1e308]]
    try:
        _, found = engine.exact(scan, (), (Exact("var", Column("x")),))
    except Refusal as refusal:  # older versions of DuckDB
        assert refusal.first.kind == "DataError"
    else:
        assert found == [[None]]


def test_number_categories_group_by_value(engine: LocalDuckDb) -> None:
    scan = scan_of(engine, [("0.5",), ("1",), ("1.0",), ("x",)], (("x", Categories((0.5, 1.0, 2.0))),))
    assert engine.group(scan, (Key(Column("x"), (0.5, 1.0, 2.0)),), (Count(),))[0].tolist() == [1, 2, 0]


@pytest.mark.parametrize("values", [range(200), range(-5, 195), range(150, 350)])
def test_counts_of_many_groups_are_those_that_the_database_groups_by(values: range) -> None:
    """Rows below and beyond the keys, none, and numbers between whole ones."""
    rng = np.random.default_rng(4)
    data = pd.DataFrame({"x": rng.normal(100, 90, 5000), "k": rng.integers(-20, 300, 5000).astype(float)})
    data.loc[::7, "x"], data.loc[::11, "k"] = np.nan, np.nan
    engine = LocalDuckDb()
    scan = Scan(engine.open(data, public=False).key, (("x", Real(-400.0, 400.0)), ("k", Integer(-20, 300))))
    keys = (Key(Column("k"), range(250)), Key(Column("x"), values))
    (counts,) = engine.group(scan, keys, (Count(),))
    (same,) = SqlEngine.group(engine, scan, keys, (Count(),))
    assert counts.shape == (250, 200) and counts.sum() > 500 and np.array_equal(counts, same)
    engine.close()
