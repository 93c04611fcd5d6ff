"""Weighted records: brute force of stabilities over all small collections, and what they weigh.

What is summed are exact integers, so the tests are too: a step of one unit in one record moves what is made of it by at
most as much. The operators run as the engine runs them; nothing here reads how their stability is argued.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from jostle.engine.records import blocks, columns_of, share, sums_of
from jostle.plan.plan import Apply, Categories, Column, Constant, Derive, Filter, Integer, Key, Plan, Scan
from jostle.plan.records import (
    CELL_BITS,
    Combined,
    Joined,
    Kept,
    Mapped,
    Records,
    Reduced,
    Rows,
    Shaved,
    Sized,
    Weights,
    bits_of,
    share_bits,
)  # fmt: skip
from jostle.readers.duckdb import LocalDuckDb
from jostle.run.positions import evaluate

Weighed = dict[tuple[Any, ...], Fraction]
SCHEMA = (("x", Integer(0, 9)), ("c", Categories(("u", "v"))))
LEFT, RIGHT = (Rows(Scan(name, SCHEMA), SCHEMA) for name in "AB")
X, C = Column("x"), Column("c")


class Given:
    """An engine of two tables, of which it knows how often each row is there; expressions are worked out by NumPy."""

    here = LocalDuckDb()

    def __init__(self, **tables: dict[tuple[Any, ...], int]) -> None:
        self._tables = tables

    def tuples(self, plan: Plan, exprs: Sequence[Column]) -> tuple[list[tuple[Any, ...]], np.ndarray]:
        columns, counts = self._rows(plan)
        rows: dict[tuple[Any, ...], int] = {}
        for row, count in zip(zip(*(columns[expr.name].tolist() for expr in exprs), strict=True), counts, strict=True):
            rows[row] = rows.get(row, 0) + count
        return list(rows), np.array(list(rows.values()), dtype=np.int64)

    def _rows(self, plan: Plan) -> tuple[dict[str, np.ndarray], np.ndarray]:
        if isinstance(plan, Scan):
            rows = {row: n for row, n in self._tables[plan.data].items() if n}
            cells = list(zip(*rows, strict=True)) or [()] * len(plan.columns)
            kinds = [object if isinstance(domain, Categories) else float for _, domain in plan.columns]
            columns = [np.array(column, dtype=kind) for column, kind in zip(cells, kinds, strict=True)]
            return dict(zip(dict(plan.columns), columns, strict=True)), np.array(list(rows.values()), dtype=np.int64)
        assert isinstance(plan, Filter | Derive)
        columns, counts = self._rows(plan.source)
        if isinstance(plan, Filter):
            holds, valid = evaluate(plan.condition, columns)
            return {name: column[holds & valid] for name, column in columns.items()}, counts[holds & valid]
        made = {name: evaluate(expr, columns) for name, expr in plan.columns}
        return {name: np.where(valid, values, np.nan) if values.dtype == float else values
                for name, (values, valid) in made.items()}, counts  # fmt: skip


def weights(plan: Records, **tables: dict[tuple[Any, ...], int]) -> Weighed:
    found: Weighed = {}
    for block in blocks(Given(**tables), plan):  # type: ignore[arg-type]
        columns = [block.columns[name].tolist() for name in columns_of(plan)]
        for *row, weight in zip(*columns, block.weights, strict=True):
            assert isinstance(weight, int) and weight >= 0
            found[tuple(row)] = found.get(tuple(row), Fraction(0)) + Fraction(weight, 2 ** bits_of(plan))
    return {row: weight for row, weight in found.items() if weight}


def distance(a: Weighed, b: Weighed) -> Fraction:
    return sum((abs(a.get(row, Fraction(0)) - b.get(row, Fraction(0))) for row in a.keys() | b.keys()), Fraction(0))


ROWS = [(0.0, "u"), (1.0, "u"), (0.0, "v"), (2.0, "v")]
EVEN = Apply("if", (Apply("==", (X, Constant(2.0))), Constant(0.0), X))
FINE = Shaved(LEFT, "i", 3, 1, 5)  # steps of 1½, so that weights are finer than the rows'
OF_ONE: dict[str, Records] = {
    "where": Kept(LEFT, Apply(">", (X, Constant(0.0)))),
    "select": Mapped(LEFT, (("y", EVEN),)),
    "a column without a value": Mapped(LEFT, (("y", Apply("/", (Constant(1.0), X))),)),
    "shave": Shaved(LEFT, "i", 1, 0, 2),
    "shave by one and a half": FINE,
    "groupby": Sized(LEFT, ("c",), "n", 9),
    "groupby, sizes up to 2": Sized(LEFT, ("c",), "n", 2),
    "groupby of parts": Sized(FINE, ("c",), "n", 9),
    **{f"groupby, {how}": Reduced(LEFT, ("c",), "n", how, "x", 0, 9) for how in ("max", "min", "sum")},
    "groupby, sums up to 1": Reduced(LEFT, ("c",), "n", "sum", "x", 0, 1),
    "groupby of parts, max": Reduced(FINE, ("c",), "n", "max", "i", 0, 4),
    "groupby twice, by sums": Reduced(Sized(LEFT, ("c",), "n", 9), ("n",), "m", "sum", "n", 0, 9),
    "groupby twice": Sized(Sized(LEFT, ("c",), "n", 9), ("n",), "m", 9),
}
OTHER = Mapped(RIGHT, (("c", C), ("z", X)))
OF_TWO: dict[str, Records] = {
    **{f"join up to {2**most}": Joined(LEFT, OTHER, ("c",), most) for most in (1, 2, 20)},
    "join of parts": Joined(Shaved(LEFT, "i", 1, 1, 3), OTHER, ("c",), 2),
    "join of a join": Joined(
        Mapped(Joined(LEFT, OTHER, ("c",), 1), (("z", Column("z")),)), Mapped(RIGHT, (("z", X),)), ("z",), 1
    ),
    **{how: Combined(how, LEFT, RIGHT) for how in ("union", "intersect", "concat", "without")},
    "intersect of parts": Combined("intersect", Mapped(FINE, (("x", X), ("c", C))), RIGHT),
}


def collections(rows: Sequence[tuple[Any, ...]], most: int) -> list[dict[tuple[Any, ...], int]]:
    """Every collection of these records with whole weights up to `most`."""
    return [dict(zip(rows, some, strict=True)) for some in itertools.product(range(most + 1), repeat=len(rows))]


def steps(of: Sequence[dict[tuple[Any, ...], int]]) -> Iterator[tuple[int, int]]:
    """Places of two collections of which the second has one record heavier by 1."""
    places = {tuple(one.values()): i for i, one in enumerate(of)}
    for values, i in places.items():
        for at in range(len(values)):
            j = places.get((*values[:at], values[at] + 1, *values[at + 1 :]))
            if j is not None:
                yield i, j


Make = Callable[[dict[tuple[Any, ...], int]], Weighed]


def farthest(make: Make, most: int = 3) -> Fraction:
    """How far one unit moves what is made of the collections of four records."""
    every = collections(ROWS, most)
    made = [make(one) for one in every]
    return max(distance(made[i], made[j]) for i, j in steps(every))


@pytest.mark.parametrize("name", OF_ONE)
def test_one_collection(name: str) -> None:
    """No unit moves more than a unit, and some unit nearly as much: nothing is scaled down without need."""
    assert Fraction(1, 2) <= farthest(lambda one: weights(OF_ONE[name], A=one)) <= 1


@pytest.mark.parametrize("name", OF_TWO)
def test_two_collections(name: str) -> None:
    """Each of them moves what is made of both by no more than it moves, whatever the other is."""
    rows, most = ROWS[:3], 2
    every = collections(rows, most)
    made = [[weights(OF_TWO[name], A=a, B=b) for b in every] for a in every]
    moved = [distance(made[i][k], made[j][k]) for i, j in steps(every) for k in range(len(every))]
    moved += [distance(made[k][i], made[k][j]) for i, j in steps(every) for k in range(len(every))]
    assert 0 < max(moved) <= 1


def test_heavier_sides_of_a_join() -> None:
    """One record a side, of all weights to beyond where nothing is joined; and a heavy one beside a light one."""
    for height in (1, 2, 3):
        plan = Joined(LEFT, OTHER, ("c",), height)
        made = {
            (a, b, d): weights(plan, A={(0.0, "u"): a, (1.0, "u"): d}, B={(0.0, "u"): b})
            for a in range(2 ** (height + 1) + 2) for b in range(2 ** (height + 1) + 2) for d in (0, 3)
        }  # fmt: skip
        for (a, b, d), one in made.items():
            for other in ((a + 1, b, d), (a, b + 1, d)):
                assert other not in made or distance(one, made[other]) <= 1


@pytest.mark.parametrize("height", range(9))
def test_every_share_of_a_join(height: int) -> None:
    """T·(G(s + 1) + S·D) ≤ 2^c for all S and T: no step of a unit moves all pairs by more, whatever they are."""
    most = 1 << share_bits(height)
    shares = [share(s, height) for s in range((4 << height) + 2)]
    assert share_bits(height) >= 2 * height and shares[0] == shares[-1] == 0
    for total in range(1, len(shares) - 1):
        drop = shares[total] - shares[total + 1]
        assert drop >= 0
        sides = range(total + 1)
        assert max((total - s) * (shares[total + 1] + s * drop) for s in sides if 0 < s < total or drop == 0) <= most \
            if total > 1 else True  # fmt: skip
        assert total * shares[total + 1] <= most
    assert all(shares[s] == most // s for s in range(1, (1 << height) + 1))


def test_shares_of_heavy_keys() -> None:
    """The same where keys have many units, at the ends of both pieces and at sides of all orders."""
    for height in (20, 33, 100):
        most, full = 1 << share_bits(height), 1 << height
        totals = {2, 3, 5, full // 3, full - 1, full, full + 1, full + full // 3, 2 * full - 2, 2 * full - 1}
        totals |= {1 << i for i in range(1, height)} | {(1 << i) - 1 for i in range(2, height)}
        for total in totals:
            later = share(total + 1, height)
            drop = share(total, height) - later
            root = int(total**0.5)
            for side in {1, 2, root - 1, root, root + 1, total // 3, total // 2, total - 1} & set(range(1, total)) \
                    if total < 10**6 else (1, 2, root, total // 3, total // 2, total - 1):  # fmt: skip
                assert (total - side) * (later + side * drop) <= most


def test_fewer_bits_would_not_do() -> None:
    """Shares on a grid of as many bits as a key has units, rounded down, move more than a unit: what 5/2 is for."""
    height, coarse = 6, 1 << 6
    shares = [0, *(coarse // s for s in range(1, (1 << height) + 1))]
    moved = [
        (total - side) * (shares[total + 1] + side * (shares[total] - shares[total + 1]))
        for total in range(2, 1 << height) for side in range(1, total)
    ]  # fmt: skip
    assert max(moved) > 2 * coarse


# Ways that are wrong ----------------------------------------------------------------------------------


def by_key(one: dict[tuple[Any, ...], int]) -> dict[Any, list[tuple[tuple[Any, ...], int]]]:
    groups: dict[Any, list[tuple[tuple[Any, ...], int]]] = {}
    for row, weight in one.items():
        if weight:
            groups.setdefault(row[1], []).append((row, weight))
    return groups


def whole_groups(one: dict[tuple[Any, ...], int]) -> Weighed:
    """Only the whole group with half of its weight, and no prefixes: it goes when one comes."""
    return {(key, len(rows)): Fraction(sum(w for _, w in rows), 2) for key, rows in by_key(one).items()}


def prefixes_in_full(one: dict[tuple[Any, ...], int]) -> Weighed:
    """The prefixes without the half: what one loses another gains."""
    return {row: 2 * weight for row, weight in weights(OF_ONE["groupby"], A=one).items()}


def largest_at_its_weight(one: dict[tuple[Any, ...], int]) -> Weighed:
    """The largest number of the whole group with half of the group's weight, and no prefixes."""
    return {
        (key, max(row[0] for row, _ in rows)): Fraction(sum(w for _, w in rows), 2) for key, rows in by_key(one).items()
    }


def prefixes_in_any_order(one: dict[tuple[Any, ...], int]) -> Weighed:
    """Sums of prefixes in the order in which records are met, each with the weight of its last record."""
    made: Weighed = {}
    for key, rows in by_key(one).items():
        for i, (_, weight) in enumerate(rows):
            at = (key, sum(1 + row[0] for row, _ in rows[: i + 1]))
            made[at] = made.get(at, Fraction(0)) + weight
    return made


def largest_of_equal(one: dict[tuple[Any, ...], int]) -> Weighed:
    """A unit for each record that becomes one, if any is there, and none of its own weight."""
    return {(key,): Fraction(len(rows) ** 2) for key, rows in by_key(one).items()}


def scaled_by_one_side(one: dict[tuple[Any, ...], int]) -> Weighed:
    """A join with three records a key on the other side, each of weight 1, by what the left side weighs alone."""
    return {
        (row, i): Fraction(weight, sum(w for _, w in rows))
        for rows in by_key(one).values() for row, weight in rows for i in range(3)
    }  # fmt: skip


def unscaled_pairs(one: dict[tuple[Any, ...], int]) -> Weighed:
    return {(row, i): Fraction(weight) for row, weight in one.items() for i in range(3)}


def parts_for_each(one: dict[tuple[Any, ...], int]) -> Weighed:
    """Shaving that gives every part the whole weight."""
    return {(row, i): Fraction(weight) for row, weight in one.items() for i in range(weight)}


@pytest.mark.parametrize(
    "make", [
        whole_groups, prefixes_in_full, largest_at_its_weight, prefixes_in_any_order, largest_of_equal,
        scaled_by_one_side, unscaled_pairs, parts_for_each,
    ],
    ids=lambda make: make.__name__,
)  # fmt: skip
def test_wrong_ways_are_found(make: Make) -> None:
    assert farthest(make) > 1


# What they weigh ---------------------------------------------------------------------------------------


def test_as_the_paper_defines_them() -> None:
    """Against fractions, on random collections: exact, but for the share of a join, which is rounded down."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        a, b = ({(float(x), c): int(rng.integers(0, 5)) for x in range(4) for c in "uv"} for _ in range(2))
        assert weights(LEFT, A=a) == {row: Fraction(w) for row, w in a.items() if w}
        sizes: Weighed = {}
        for key, rows in by_key(a).items():
            heights = sorted((w for _, w in rows), reverse=True)
            for i, (one, after) in enumerate(zip(heights, [*heights[1:], 0], strict=True)):
                sizes[key, i + 1.0] = sizes.get((key, i + 1.0), Fraction(0)) + Fraction(one - after, 2)
        assert weights(OF_ONE["groupby"], A=a) == {row: w for row, w in sizes.items() if w}
        for how, meant in (("max", max), ("min", min), ("sum", sum)):
            made: Weighed = {}
            for key, rows in by_key(a).items():
                for level in range(1, 5):  # the records of at least this weight
                    if some := [row[0] for row, w in rows if w >= level]:
                        made[key, meant(some)] = made.get((key, meant(some)), Fraction(0)) + Fraction(1, 2)
            assert weights(Reduced(LEFT, ("c",), "n", how, "x", 0, 9), A=a) == made
        plan, pairs = Joined(LEFT, OTHER, ("c",), 6), weights(Joined(LEFT, OTHER, ("c",), 6), A=a, B=b)
        for (x, c), mine in a.items():
            for (z, other), theirs in b.items():
                if c == other and mine and theirs:
                    total = sum(w for (_, key), w in [*a.items(), *b.items()] if key == c)
                    exact, step = Fraction(mine * theirs, total), Fraction(mine * theirs, 2 ** bits_of(plan))
                    assert 0 <= exact - pairs[x, c, z] < step
        for how, meant in (("union", max), ("intersect", min), ("concat", lambda v, w: v + w)):
            assert weights(OF_TWO[how], A=a, B=b) == {r: Fraction(meant(a[r], b[r])) for r in a if meant(a[r], b[r])}
        assert weights(OF_TWO["without"], A=a, B=b) == {r: Fraction(a[r] - b[r]) for r in a if a[r] > b[r]}
        half = weights(FINE, A=a)
        assert {row: sum(w for (*r, _), w in half.items() if tuple(r) == row) for row in a} == a
        assert max(half.values(), default=0) <= Fraction(3, 2)


def test_a_join_gives_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    a = {(float(x), c): 1 + x % 3 for x in range(40) for c in "uv"}
    plan = Mapped(Joined(LEFT, OTHER, ("c",), 9), (("x", X), ("z", Column("z"))))
    whole = weights(plan, A=a, B=a)
    monkeypatch.setattr("jostle.engine.records.PAIRS", 7)
    monkeypatch.setattr("jostle.engine.records.HELD", 50)
    assert weights(plan, A=a, B=a) == whole
    again = Combined("union", plan, plan)
    assert weights(again, A=a, B=a) == whole


# What is released --------------------------------------------------------------------------------------


def test_sums_lose_to_their_factor_what_rounding_gains() -> None:
    """Sums by two keys of weights finer than the units that are released: never further apart than what was moved."""
    plan = Joined(LEFT, OTHER, ("c",), 12)
    assert bits_of(plan) > CELL_BITS
    asked = Weights(plan, (Key(X, range(3)), Key(C, ("u", "v"))))
    rng, unit = np.random.default_rng(2), 1 << CELL_BITS
    for _ in range(100):
        a, b = ({row: int(rng.integers(0, 4)) for row in ROWS} for _ in range(2))
        row = ROWS[rng.integers(len(ROWS))]
        more = {**a, row: a[row] + 1}
        one, other = (sums_of(Given(A=left, B=b), asked) for left in (a, more))  # type: ignore[arg-type]
        assert len(one) == 6 and sum(abs(p - q) for p, q in zip(one, other, strict=True)) <= unit
        exact = weights(plan, A=a, B=b)
        for place, total in enumerate(one):
            meant = sum(w for (x, c, _), w in exact.items() if (x, c) == (place // 2, "uv"[place % 2]))
            assert 0 <= meant * unit - total < 1 + 6 * meant


def test_sums_of_coarse_weights_are_exact() -> None:
    asked = Weights(Sized(LEFT, ("c",), "n", 9), (Key(Column("n"), range(1, 4)),))
    (one, two, three) = sums_of(Given(A={(0.0, "u"): 3, (1.0, "u"): 1, (2.0, "v"): 1}), asked)  # type: ignore[arg-type]
    assert (one, two, three) == (3 << (CELL_BITS - 1), 1 << (CELL_BITS - 1), 0)
