"""Parts counted by row numbers: the same as the engine's groups, without its queries."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.diagnostics import Refusal
from jostle.engine.base import LruCache
from jostle.engine.sql.engine import SqlEngine
from jostle.plan.facts import key_values, schema_of
from jostle.plan.plan import (
    Apply,
    Bound,
    Categories,
    Column,
    Constant,
    Count,
    Derive,
    Domain,
    Filter,
    FixedSum,
    Integer,
    Key,
    Moments,
    Open,
    Plan,
    Real,
    RowExpr,
    Scan,
)  # fmt: skip
from jostle.plan.schemas import holds
from jostle.readers import duckdb as duckdb_reader
from jostle.readers.duckdb import LocalDuckDb
from jostle.speed import parts
from jostle.speed.fast import FastAnswers

DOMAINS: tuple[tuple[str, Domain], ...] = (
    ("c", Categories(("red", "green", "it's"))), ("i", Integer(-2, 3)), ("n", Categories((0.5, 2.0, 7.0))),
    ("w", Categories((1.0, 2.0, 4.0))), ("r", Real(-1.5, 2.5)), ("t", Open("text")),
)  # fmt: skip


def table(rows: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)

    def some(values: list[Any]) -> np.ndarray[Any, Any]:
        return np.array([values[k] for k in rng.integers(0, len(values), rows)], dtype=object)

    return {
        "c": some(["red", "green", "it's", "blue", None]), "i": some([-3.0, -2.0, -1.0, 0.0, 1.0, 3.0, 9.0, None]),
        "n": some([0.5, 2.0, 7.0, 1.0, None]), "w": some([1.0, 2.0, 4.0]), "r": rng.uniform(-2, 3, rows),
        "t": some(["red", "a", None]),
    }  # fmt: skip


TENS: RowExpr = Apply("/", (Column("i"), Constant(2.0)))
KEYED: list[RowExpr] = [Column("c"), Column("i"), Column("n"), Column("w"), Column("r"), TENS]
CONDITIONS: list[RowExpr] = [
    Apply("==", (Column("c"), Constant("green"))), Apply("==", (Column("c"), Constant("blue"))),
    Apply("==", (Column("c"), Column("t"))), Apply(">", (Column("r"), Constant(0.0))),
    Apply("==", (Column("r"), Constant(2.5))), Apply("==", (Column("i"), Constant(1.5))),
    Apply("==", (Column("n"), Constant(2.0))), Apply("not", (Apply("==", (Column("i"), Constant(3.0))),)),
    Apply("in", (Column("w"), Constant(1.0), Constant(4.0))),
    Apply("==", (Apply("floor", (TENS,)), Constant(-1.0))),
]  # fmt: skip


def key_of(expr: RowExpr, plan: Plan, rng: random.Random) -> Key:
    values = key_values(expr, schema_of(plan), 1000)
    assert values is not None
    if rng.random() < 0.2 and not isinstance(values, range):
        return Key(expr, tuple(reversed(values[:2])))
    return Key(expr, values)


def grown(plan: Plan, depth: int, rng: random.Random) -> Plan:
    """A part of a part, by keys and by conditions."""
    for _ in range(depth):
        if rng.random() < 0.5:
            key = key_of(rng.choice(KEYED), plan, rng)
            plan = Filter(plan, holds(key, rng.choice(list(key.values))))
        else:
            plan = Filter(plan, rng.choice(CONDITIONS))
    return plan


@pytest.mark.parametrize("seed", range(4))
def test_parts_count_as_the_engine_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    if seed > 1:  # codes and splits on the disk
        monkeypatch.setattr(parts, "MOST_ROWS", 60)
        monkeypatch.setattr(parts, "SPAN", 70)
        monkeypatch.setattr(parts, "BLOCK", 35)
    engine = LocalDuckDb()
    rows = table(300, seed)  # the engine knows it by the object that it is
    scan = Scan(engine.open(rows, public=False).key, DOMAINS)
    base: Plan = scan
    if seed % 2:
        columns = [(name, Column(name)) for name, _ in DOMAINS]
        base = Derive(scan, (*columns[:4], ("r", Apply("*", (Column("r"), Constant(0.5)))), columns[5]))
    fast, used, crossed = FastAnswers(engine), 0, 0
    for _ in range(60):
        plan = grown(base, rng.randrange(5), rng)
        keys = tuple(key_of(rng.choice(KEYED), plan, rng) for _ in range(rng.randrange(3)))
        (expected,) = engine.group(plan, keys, (Count(),))
        (found,) = fast.group(plan, keys, (Count(),))
        assert np.array_equal(found, expected)
        used += fast.parts.counts(plan, keys) is not None
        by = key_of(Column("c"), plan, rng)
        tables = fast.crossed(plan, keys, by) if keys else []
        for key, counted in zip(keys, tables, strict=True):
            assert np.array_equal(counted, engine.group(plan, (key, by), (Count(),))[0])
            crossed += int(counted.sum()) > 0
        codes, blocks = fast.parts.codes(plan, (*keys, by)), fast.parts.folded(plan, (*keys, by), list)
        assert codes is not None and blocks is not None
        assert np.array_equal(np.stack(codes, axis=1), np.concatenate(blocks)) if len(codes[0]) else blocks == []
        together = fast.parts.several(plan, [keys, (by,), ()])
        assert together is not None and np.array_equal(together[0], expected) and together[1].sum() <= together[2]
        for one, other in zip(
            fast.counts(plan, [keys, (by,), ()]), engine.counts(plan, [keys, (by,), ()]), strict=True
        ):
            assert np.array_equal(one, other)
    assert used > 25 and crossed > 10, "the comparison compared the engine with itself"


@pytest.mark.parametrize("kind", ["memory", "parquet", "csv"])
def test_rows_keep_their_order_from_query_to_query(kind: str, tmp_path: Path) -> None:
    """Columns that are read apart stand side by side, over many row groups and several threads."""
    engine = LocalDuckDb()
    n = 300_000
    rows = {"a": np.arange(n) % 251, "b": np.arange(n) % 7}
    origin: Any = rows
    if kind == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        origin = str(tmp_path / "t.parquet")
        parquet.write_table(pa.table(rows), origin, row_group_size=10_000)
    elif kind == "csv":
        origin = str(tmp_path / "t.csv")
        Path(origin).write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in zip(*rows.values(), strict=True)))
    scan = Scan(engine.open(origin, public=False).key, (("a", Integer(0, 250)), ("b", Integer(0, 6))))
    for _ in range(2):
        (a,) = engine.codes(scan, (Key(Column("a"), range(251)),))
        (b,) = engine.codes(scan, (Key(Column("b"), range(7)),))
        assert a.dtype == np.int16 and b.dtype == np.int8
        assert np.array_equal(a, rows["a"]) and np.array_equal(b, rows["b"])


@pytest.mark.parametrize("kind", ["csv", "parquet", "times", "frame", "bounded", "named"])
def test_nothing_rests_on_the_order_of_rows(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come in another order in every query, and columns that were read apart still belong together."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng, engine = np.random.default_rng(3), LocalDuckDb()
    columns = {"a": rng.integers(0, 9, 500), "b": rng.integers(0, 7, 500)}
    columns["b"] = np.where(columns["a"] > 4, columns["a"] % 7, columns["b"])
    path = tmp_path / ("t.csv" if kind in ("csv", "bounded") else "t.parquet")
    more = {"times": {"t": pa.array(range(500), pa.timestamp("us"))}, "named": {"File_Row_Number": pa.array([7] * 500)}}
    if path.suffix == ".csv":
        path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in zip(*columns.values(), strict=True)))
    else:
        parquet.write_table(pa.table(columns | more.get(kind, {})), path, row_group_size=64)
    described = (("a", Integer(0, 8)), ("b", Integer(0, 6)), *((("t", Open("text")),) if kind == "times" else ()))
    plan: Plan = Scan(engine.open(columns if kind == "frame" else path, public=False).key, described)
    plan = Bound(plan, ("a", "b"), 20) if kind == "bounded" and isinstance(plan, Scan) else plan
    plan = Derive(Filter(plan, Apply("<", (Column("b"), Constant(6)))), (("a", Column("a")), ("b", Column("b"))))
    read = LocalDuckDb.columns

    def shuffled(self: LocalDuckDb, query: str) -> list[np.ndarray]:
        found = [np.asarray(column) for column in read(self, query)]
        order = rng.permutation(len(found[0]))
        return [column[order] for column in found]

    monkeypatch.setattr(LocalDuckDb, "columns", shuffled)
    fast, keys = FastAnswers(engine), (Key(Column("a"), range(9)), Key(Column("b"), range(7)))
    for key in keys:
        fast.parts.codes(plan, (key,))  # a query each
    part = Filter(plan, Apply("==", (Column("a"), Constant(5))))
    for asked in (plan, part):
        counted = fast.parts.counts(asked, keys)
        assert counted is not None and np.array_equal(counted, engine.group(asked, keys, (Count(),))[0])


def test_what_is_kept_is_bounded() -> None:
    kept: LruCache[str] = LruCache(100, 3)
    kept.put("a", "x", 60)
    kept.put("b", "y", 60)
    assert kept.get("a") is None and kept.get("b") == "y"
    for name in "cdef":
        kept.put(name, name, 0)
    assert kept.get("b") is None and kept.get("f") == "f"
    kept.put("g", "big", 1000)
    assert kept.get("g") == "big" and kept.get("f") is None


def test_forgotten_splits_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LocalDuckDb()
    rows = table(200, 9)
    scan = Scan(engine.open(rows, public=False).key, DOMAINS)
    small = FastAnswers(engine)
    monkeypatch.setattr(small.parts, "_splits", LruCache(1))
    monkeypatch.setattr(small.parts, "_codes", LruCache(1))
    rng = random.Random(1)
    made = [grown(scan, 3, rng) for _ in range(10)]
    for plan in made + made[::-1]:
        assert np.array_equal(small.group(plan, (), (Count(),))[0], engine.group(plan, (), (Count(),))[0])


def test_rows_that_come_in_another_order_are_not_put_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that were read apart would not belong together: the engine counts."""
    engine = LocalDuckDb()
    scan = Scan(engine.open(table(200, 9), public=False).key, DOMAINS)
    key, read = key_of(Column("c"), scan, random.Random(1)), LocalDuckDb.code_blocks
    monkeypatch.setattr(parts, "MOST_ROWS", 60)
    monkeypatch.setattr(
        LocalDuckDb, "code_blocks", lambda *asked: ([column[::-1] for column in block] for block in read(*asked))
    )
    assert FastAnswers(engine).parts.folded(scan, [key], list) is None
    monkeypatch.setattr(LocalDuckDb, "code_blocks", read)
    monkeypatch.setattr(parts, "on_disk", lambda size, kind: None)  # no room
    fast, part = FastAnswers(engine), Filter(scan, holds(key, key.values[0]))
    assert fast.parts.folded(scan, [key], list) is None and fast.parts.counts(part, ()) is None
    assert fast.group(part, (), (Count(),))[0] == engine.group(part, (), (Count(),))[0] > 0


@pytest.mark.parametrize("by", [Column("c"), Column("i"), Column("w"), Apply("floor", (TENS,))])
def test_sums_of_parts_are_the_engines_in_two_statements(by: RowExpr, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LocalDuckDb()
    base = Filter(Scan(engine.open(table(600, 3), public=False).key, DOMAINS), CONDITIONS[3])
    key, keys = key_of(by, base, random.Random(1)), (Key(Column("w"), (1.0, 2.0)),)
    terms = (FixedSum(Column("r"), -1.5, 2.5, 20), FixedSum(Column("r"), 0.0, 2.0**45, 30), Count(Column("t")))
    plans = [Filter(base, holds(key, value)) for value in key.values]
    expected = {(plan, some): engine.group(plan, some, terms) for plan in plans for some in (keys, ())}
    fast, asked = FastAnswers(engine), []
    read = engine.group
    monkeypatch.setattr(engine, "group", lambda *question: asked.append(question[0]) or read(*question))
    for some in (keys, ()):
        for plan in [*plans, *plans]:
            for sums, same in zip(fast.group(plan, some, terms), expected[plan, some], strict=True):
                assert sums.shape == same.shape and sums.dtype == same.dtype and sums.tolist() == same.tolist()
    assert asked == [plans[0], base] * 2
    assert fast.group(Filter(base, CONDITIONS[1]), (), terms)[2] == 0  # of a value that is not listed
    engine.close()


def test_a_count_of_a_part_is_a_where_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes its plan anew is answered from what was read before; rows of a part are coded when they pay."""
    engine = LocalDuckDb()
    name = engine.open(table(300, 4), public=False).key
    key = key_of(Column("c"), Scan(name, DOMAINS), random.Random(1))

    def part(value: Any, *more: RowExpr) -> Plan:
        plan: Plan = Filter(Scan(name, DOMAINS), holds(key, value))
        for condition in more:
            plan = Filter(plan, condition)
        return plan

    plain = LocalDuckDb.group
    asked: list[Plan] = []
    monkeypatch.setattr(engine, "group", lambda *question: asked.append(question[0]) or plain(engine, *question))
    fast = FastAnswers(engine)
    for value in (*key.values, *key.values):
        assert fast.group(part(value), (), (Count(),))[0] == plain(engine, part(value), (), (Count(),))[0]
    assert asked == [part(key.values[0]), Scan(name, DOMAINS)]
    asked.clear()
    for value in (*key.values, *key.values):
        some = part(value, CONDITIONS[3])
        assert fast.group(some, (), (Count(),))[0] == plain(engine, some, (), (Count(),))[0]
    assert asked == [part(key.values[0], CONDITIONS[3]), Scan(name, DOMAINS)]  # the second for the number of rows
    engine.close()


def test_many_parts_are_not_read_for_two_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MANY_TOGETHER", 2)
    engine = LocalDuckDb()
    scan = Scan(engine.open(table(300, 4), public=False).key, DOMAINS)
    key = key_of(Column("i"), scan, random.Random(1))
    plain = LocalDuckDb.group
    asked: list[Plan] = []
    monkeypatch.setattr(engine, "group", lambda *question: asked.append(question[0]) or plain(engine, *question))
    fast, plans = FastAnswers(engine), [Filter(scan, holds(key, value)) for value in key.values]
    for plan in plans:
        assert fast.group(plan, (), (Count(),))[0] == plain(engine, plan, (), (Count(),))[0]
    assert asked == [*plans[:4], scan] and len(plans) == 6
    engine.close()


def test_what_is_rounded_before_it_is_bounded_is_what_was_bounded_before() -> None:
    """Sums of doubles, row by row: at the ends, beside them, between two places of the grid, and of no number."""
    least, most = np.nextafter(0, 1), np.finfo(float).max
    ends = (-1.5, 0.1, 2.5, 2.0**-22, 2.0**-23)
    beside = [float(np.nextafter(end, to)) for end in ends for to in (-np.inf, np.inf)]
    cells = [*ends, *beside, 0.0, -0.0, least, -least, most, -most, np.nan, np.inf, -np.inf, 1e16, 3 * 2.0**-23]
    engine = LocalDuckDb()
    with np.errstate(over="ignore"):
        floats = np.array(cells, dtype=np.float32)
    columns = {"n": np.arange(len(cells), dtype=float), "x": np.array(cells), "f": floats}
    for domain in (Real(-1.5, 2.5), Real(0.1, 0.1), Real(-1e6, 1e6)):
        described = (("n", Integer(0, len(cells) - 1)), ("x", domain), ("f", domain))
        scan = Scan(engine.open(columns, public=False).key, described)
        key = Key(Column("n"), range(len(cells)))
        for name, shift, low, high in (("x", 0.0, -9.0, 9.0), ("x", 0.3, -0.1, 2.0), ("f", -0.3, 0.0, 1.0)):
            expr = Apply("-", (Column(name), Constant(shift))) if shift else Column(name)
            terms = (FixedSum(expr, low, high, 22), Count(Column(name)), Count(expr))
            sums, *counts = engine.group(scan, (key,), terms)
            for at, cell in enumerate(columns[name].tolist()):
                bounded = min(max(min(max(cell, domain.low), domain.high) - shift, low), high)
                expected = round(bounded * 2**22) if np.isfinite(cell) else 0  # halves to the even one
                assert sums[at] == expected and all(count[at] == np.isfinite(cell) for count in counts)
    engine.close()


CELLS: dict[str, pa.Array] = {
    "i": pa.array([None if n % 17 == 0 else n % 40 - 15 for n in range(2000)], pa.int16()),
    "c": pa.array([(None, "red", "it's", "", "Red", "x" * 70_000)[n % 6] for n in range(2000)]),
    "b": pa.array([(True, False, None)[n % 3] for n in range(2000)]),
    "d": pa.array([None if n % 11 == 0 else n * 37 % 3000 + 17_000 for n in range(2000)], pa.int32()).cast(pa.date32()),
    "r": pa.array([n / 7 for n in range(2000)]),
}  # fmt: skip
DESCRIBED: tuple[tuple[str, Domain], ...] = (
    ("i", Integer(-10, 12)), ("c", Categories(("red", "it's", "never"))), ("b", Open("boolean")),
    ("d", Moments("date", 17_500, 19_000)), ("r", Real(0.0, 100.0)),
)  # fmt: skip
LOOKED: tuple[tuple[str, Domain], ...] = tuple((name, Open("text")) for name, _ in DESCRIBED)
ASKED: dict[str, list[Key]] = {
    "i": [Key(Column("i"), range(-10, 13)), Key(Apply("<", (Column("i"), Constant(3.0))), (False, True)),
          Key(Apply("/", (Column("i"), Constant(4.0))), (0.0, 1.0, 2.0, 2.5))],
    "c": [Key(Column("c"), ("red", "it's")), Key(Apply("length", (Column("c"),)), range(5))],
    "b": [Key(Column("b"), (False, True)), Key(Apply("not", (Column("b"),)), (True,))],
    "d": [Key(Apply("year", (Column("d"),)), range(2017, 2023)), Key(Apply("month", (Column("d"),)), range(1, 13))],
}  # fmt: skip
TESTS: dict[str, list[RowExpr]] = {
    "i": [Apply("==", (Column("i"), Constant(7.0))), Apply("==", (Column("i"), Constant(12.0)))],
    "c": [Apply("==", (Column("c"), Constant("red"))), Apply("missing", (Column("c"),))],
    "b": [Column("b")], "d": [Apply(">", (Column("d"), Constant(date(2019, 1, 1))))],
}  # fmt: skip


def test_counts_by_one_column_are_those_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file the different cells of such a column are counted once; also how they fit is told of these."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(CELLS), path, row_group_size=300)
    engine, statements = LocalDuckDb(), list[str]()
    data = engine.open(path, public=False).key
    scan, looked = Scan(data, DESCRIBED), Scan(data, LOOKED)
    fetched = engine._run
    monkeypatch.setattr(engine, "_run", lambda query, *rest: (statements.append(query), fetched(query, *rest))[1])
    for name, keys in ASKED.items():
        plans: list[Plan] = [scan, *(Filter(scan, test) for test in TESTS[name])]
        plans.append(Filter(Derive(scan, ((name, Column(name)), ("r", Column("r")))), TESTS[name][0]))
        asked = [(plan, some) for plan in plans for some in [(), *((key,) for key in keys), tuple(keys[:2])]]
        text: RowExpr = Apply("missing", (Column(name),))
        asked += [(looked, (Key(Apply("if", (text, Constant(None), Constant("there"))), ("there",)),))]
        for plan, some in asked:
            expected = SqlEngine.group(engine, plan, some, (Count(), Count()))
            for result, rows in zip(engine.group(plan, some, (Count(), Count())), expected, strict=True):
                assert result.tolist() == rows.tolist(), (plan, some)
                assert result.dtype == rows.dtype and result.shape == rows.shape
    assert len(engine._tallies) == 4 and all(engine._tallies.values())
    assert sum("CREATE TABLE" in statement for statement in statements) == 4
    path.write_bytes(path.read_bytes()[:-1] + b"1")
    with pytest.raises(Refusal, match="changed while this program ran"):
        engine.group(scan, (ASKED["i"][0],), (Count(),))
    engine.close()


def test_a_column_of_many_different_cells_has_no_tally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_reader, "FEW", 20)
    pq.write_table(pa.table({"i": list(range(100))}), tmp_path / "x.parquet")
    engine = LocalDuckDb()
    scan = Scan(engine.open(tmp_path / "x.parquet", public=False).key, (("i", Integer(0, 9)),))
    for _ in range(2):
        assert engine.group(scan, (Key(Column("i"), range(10)),), (Count(),))[0].tolist() == [1] * 9 + [91]
    assert [*engine._tallies.values()] == [""]
    assert engine.fetch("SELECT count(*) FROM duckdb_tables()") == [(0,)]
    engine.close()


def test_a_wide_file_is_asked_by_the_names_of_the_columns(tmp_path: Path) -> None:
    path, names = tmp_path / "x.parquet", ["a", 'x"y', "a b", "c0", "n", "file", "é", *(f"z{i}" for i in range(60))]
    cells = pa.table({name: [float((7 * i + j) % 10) for i in range(100)] for j, name in enumerate(names)})
    pq.write_table(cells, path)
    engine = LocalDuckDb()
    key = engine.open(path, public=False).key
    for j, name in enumerate(names):
        scan = Scan(key, ((name, Real(0.0, 9.0)),))
        wanted = [sum((7 * i + j) % 10 == cell for i in range(100)) for cell in range(10)]
        assert engine.group(scan, (Key(Column(name), range(10)),), (Count(),))[0].tolist() == wanted
        total = engine.group(scan, (), (FixedSum(Column(name), 0.0, 9.0, 20),))[0]
        assert int(total) == sum(cells[name].to_pylist()) * 2**20
    path.write_bytes(path.read_bytes()[:-1] + b"1")
    with pytest.raises(Refusal, match="changed while this program ran"):
        engine.group(Scan(key, (("n", Real(0.0, 8.0)),)), (), (FixedSum(Column("n"), 0.0, 8.0, 20),))
    engine.close()
