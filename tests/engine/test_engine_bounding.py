"""The rows of a person that stay: the same in arrays and in SQL, from every sort of file, and by nobody else's rows."""

from __future__ import annotations

import csv
import inspect
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from portable_hash import row_hash

from jostle.diagnostics import refuse
from jostle.engine.duckdb.engine import DUCKDB, DuckDb
from jostle.engine.sql.persons import BITS, counted_as, hashed
from jostle.engine.sql.rows import Physical
from jostle.plan.plan import (
    Apply,
    Bound,
    Column,
    Constant,
    Count,
    Derive,
    Filter,
    Integer,
    Key,
    Open,
    Owners,
    Real,
    Scan,
)  # fmt: skip
from jostle.readers.duckdb import LocalDuckDb
from jostle.speed import bounding

NUMBERS = (("a", Integer(-4, 4)), ("b", Integer(-(2**50), 2**50)), ("who", Open("integer")))
MIXED = (("a", Integer(-4, 4)), ("t", Open("text")), ("who", Open("text")), ("x", Real(-9.0, 9.0)))


def numbers(rng: random.Random, wide: bool) -> dict[str, Any]:
    """Few values, so that many rows are equal; whole numbers of either sign, some missing, some far apart."""
    many = rng.randrange(0, 400)
    who = [0, 1, -5, 2**40, -(2**62), 2**63 - 1] if wide else [-128, 127, *range(40)]
    persons = [rng.choice(who) for _ in range(many)]
    return {
        "a": pa.array([rng.choice([None, *range(-9, 9)]) for _ in range(many)], pa.int16()),
        "b": pa.array([rng.choice([0, 7, -(2**63), 2**63 - 1]) for _ in range(many)], pa.int64()),
        "who": pa.array([None if rng.random() < 0.1 else p for p in persons], pa.int64() if wide else pa.int8()),
    }


def mixed(rng: random.Random) -> dict[str, Any]:
    many = rng.randrange(0, 400)
    texts = ["5", "05", "-3", "x", "é", "", None, "9223372036854775808", "-0", " 5", "5.0"]
    return {
        "a": pa.array([rng.choice([None, 0, -1, 10**6]) for _ in range(many)], pa.int32()),
        "t": pa.array([rng.choice(texts) for _ in range(many)], pa.string()),
        "who": pa.array([rng.choice(["Ann", "Bob", "7", "07", "", None, "Cy"]) for _ in range(many)], pa.string()),
        "x": pa.array([rng.choice([0.1, -2.5, 1e300, float("nan"), None, 3.0]) for _ in range(many)], pa.float64()),
    }


def contents(table: Any, columns: Any, by: tuple[str, ...], most: int | None) -> Counter[Any]:
    """The rows that stay, with how often each occurs."""
    engine = LocalDuckDb()
    relation = engine.base(Bound(Scan(engine.open(table, public=False).key, columns), by, most))
    rows = engine.fetch(f"SELECT {', '.join(c.alias for c in relation.columns.values())}, p FROM ({relation.sql})")
    engine.close()
    return Counter(rows)


@pytest.mark.parametrize("seed", range(5))
def test_arrays_and_sql_keep_the_same_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    cases = [(numbers(rng, seed % 2 == 0), NUMBERS, ("who",)), (mixed(rng), MIXED, ("who",)),
             (mixed(rng), MIXED, ("a", "who"))]  # fmt: skip
    dated = mixed(rng)
    many = len(dated["a"])
    days = [rng.choice([None, 0, -719_162, -719_163, 2_932_897, 19_000]) for _ in range(many)]
    dated["d"] = pa.array(days, pa.int32()).cast(pa.date32())
    dated["f"] = pa.array(
        [rng.choice([0.1, -0.0, 0.0, float("inf"), -float("inf"), float("nan"), None]) for _ in range(many)],
        pa.float32(),
    )
    dated["b"] = pa.array([rng.choice([True, False, None]) for _ in range(many)])
    dated["z"] = pa.nulls(many)
    more = (("d", Open("date")), ("f", Real(-9.0, 9.0)), ("b", Open("boolean")), ("z", Open("text")))
    cases.append((dated, (*MIXED, *more), ("who",)))
    for columns, domains, by in cases:
        for most in (1, 3, 40):
            table = pa.table(columns)
            arrays = contents(table, domains, by, most)
            with monkeypatch.context() as patch:
                for rows in (1, 10**9):  # texts are hashed once each, or row by row
                    patch.setattr(bounding, "FEW_OF", rows)
                    assert contents(table, domains, by, most) == arrays
                patch.setattr(LocalDuckDb, "hold", lambda *rest: None)  # so that they are copied to a table
                assert contents(table, domains, by, most) == arrays
                patch.setattr(bounding, "MOST_ROWS", 150)
                assert contents(table, domains, by, most) == arrays
                patch.setattr(bounding, "MOST_BYTES", 1000)  # so that rows go to a file
                assert contents(table, domains, by, most) == arrays
                patch.setattr(bounding, "MOST_ON_DISK", -1)
                patch.setattr(bounding, "HALVINGS", 0)
                assert contents(table, domains, by, most) == arrays
            with monkeypatch.context() as patch:
                patch.setattr(LocalDuckDb, "at_most", DuckDb.at_most)  # the plain engine
                assert contents(table, domains, by, most) == arrays
            keys = zip(*(columns[name].to_pylist() for name in by), strict=True)
            persons = Counter(key for key in keys if None not in key and "" not in key)
            assert arrays.total() == sum(min(most, many) for many in persons.values())


@pytest.mark.parametrize("seed", range(4))
def test_files_of_the_same_values_keep_the_same_rows(seed: int, tmp_path: Path) -> None:
    table = pa.table(numbers(random.Random(seed), wide=False))
    pq.write_table(table, tmp_path / "t.parquet")
    with open(tmp_path / "t.csv", "w", encoding="utf-8") as file:
        csv.writer(file).writerows([table.column_names, *zip(*table.to_pydict().values(), strict=True)])
    stays = [contents(tmp_path / name, NUMBERS, ("who",), 3) for name in ("t.parquet", "t.csv")]
    assert stays[0] == stays[1]


def test_the_hash_is_the_one_that_is_written_down() -> None:
    engine = LocalDuckDb()
    cells = [None, "0", "-1", "07", "x", str(2**63 - 1), str(-(2**63)), str(2**63), "-0", "1.0", "é"]
    rows = [(a, b) for a in cells for b in cells]
    values = ", ".join("(" + ", ".join("NULL" if c is None else f"'{c}'" for c in row) + ")" for row in rows)
    query = hashed(f"SELECT * FROM (VALUES {values}) t(a, b)", [Physical("a"), Physical("b")], DUCKDB)
    assert [h for (h,) in engine.fetch(f"SELECT h FROM ({query})")] == [row_hash(row) for row in rows]
    whole = hashed("SELECT * FROM (VALUES (-1), (NULL), (50)) t(a)", [Physical("a", True)], DUCKDB)
    assert [h for (h,) in engine.fetch(f"SELECT h FROM ({whole})")] == [row_hash((a,)) for a in ("-1", None, "50")]
    numbers = engine.fetch(f"SELECT {counted_as(Physical('a'), DUCKDB)} FROM (VALUES {values}) t(a, b)")
    other = engine.fetch(f"SELECT {counted_as(Physical('b'), DUCKDB)} FROM (VALUES {values}) t(a, b)")
    columns = [np.array(column, np.int64)[:, 0] for column in (numbers, other)]
    assert bounding.hashes_of(columns, len(rows)).tolist() == [row_hash(row) for row in rows]
    narrow = bounding.numbers_of(pa.array([-1, None, 50], pa.int8()))
    assert bounding.hashes_of([narrow], 3).tolist() == [row_hash((a,)) for a in ("-1", None, "50")]
    assert bounding.hashes_of([np.array([2**32 - 1], np.uint32)], 1).tolist() == [row_hash((str(2**32 - 1),))]
    engine.close()


def test_a_person_with_more_rows_than_a_byte_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    who = np.concatenate([np.zeros(4000, np.int64), np.arange(1, 1500)])
    table = pa.table({"a": rng.integers(-4, 5, len(who)), "b": rng.integers(0, 10**6, len(who)), "who": who})
    arrays = contents(table, NUMBERS, ("who",), 700)
    monkeypatch.setattr(bounding, "MOST_ON_DISK", 2**15)  # which the parts without that person fit in
    assert contents(table, NUMBERS, ("who",), 700) == arrays and arrays.total() == 700 + 1499


@pytest.mark.parametrize("first", [-(2**63), 2**63 - 40])
def test_persons_of_whole_numbers_at_the_ends_are_told_apart(first: int) -> None:
    who = np.arange(first, first + 40).repeat(3)
    table = pa.table({"a": np.arange(120) % 9 - 4, "b": np.arange(120), "who": who})
    rows = contents(table, NUMBERS, ("who",), 2)
    assert Counter(row[3] for row in rows.elements()) == {str(person): 2 for person in who.tolist()}


def test_counts_of_one_column_are_of_the_rows_that_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    table = pa.table({"a": rng.integers(-4, 5, 3000), "b": rng.integers(0, 9, 3000), "who": rng.integers(0, 200, 3000)})
    pq.write_table(table, path := tmp_path / "t.parquet")
    a = Column("a")
    positive = Apply(">", (a, Constant(0)))

    def counts() -> list[list[int]]:
        engine = LocalDuckDb()
        scan = Scan(engine.open(path, public=False).key, NUMBERS)
        asked = []
        for plan in (scan, Bound(scan, ("who",), 3), Bound(scan, ("who",), 5), Bound(scan, ("who",), 3, weighted=True)):
            for rows in (plan, Filter(plan, positive), Derive(plan, (("a", Apply("+", (a, Constant(1)))),))):
                asked.append(engine.group(rows, (Key(a, range(-4, 6)),), (Count(),))[0].tolist())
        engine.close()
        return asked

    once = counts()
    monkeypatch.setattr(LocalDuckDb, "_tallied", lambda *rest: None)
    assert counts() == once and len({sum(some) for some in once[::3]}) == 3


def test_rows_of_which_nothing_is_described_are_bounded_too() -> None:
    engine = LocalDuckDb()
    scan = Scan(engine.open({"who": np.arange(100) % 9}, public=False).key, ())
    assert engine.rows(Bound(scan, ("who",), 4)) == 36
    engine.close()


def test_any_place_among_a_persons_rows_is_as_likely() -> None:
    rows = np.arange(40_000).reshape(-1, 8)
    ranks = np.array([[row_hash((str(i % 7), str(i))) for i in person] for person in rows]).argsort(1).argsort(1)
    assert np.abs((ranks == 0).mean(0) - 1 / 8).max() < 6 * (7 / 64 / len(rows)) ** 0.5
    assert np.abs(ranks.mean(0) - 3.5).max() < 6 * (5.25 / len(rows)) ** 0.5


def staying(persons: list[int], hashes: list[int], cells: list[int | None], most: int) -> list[Any] | None:
    """The cells of the rows that stay of a table whose hashes are given."""
    whose, missing = pa.chunked_array([pa.array(persons, pa.int64())]), [cell is None for cell in cells]
    values = np.array([cell or 0 for cell in cells])

    def alike(rows: np.ndarray) -> np.ndarray:
        same = np.diff(values[rows], prepend=-9) == 0
        return same & (np.diff(np.array(missing, dtype=int)[rows], prepend=-9) == 0)

    stays = bounding.staying(whose, np.array(hashes) << (BITS - 8), most, alike)
    return None if stays is None else [cell for cell, stay in zip(cells, stays, strict=True) if stay]


def test_rows_that_stay_are_numbered_alike_in_every_query_and_held_while_there_is_room() -> None:
    rng = np.random.default_rng(4)
    table = pa.table({"a": rng.integers(-4, 5, 9000), "b": rng.integers(0, 9, 9000), "who": rng.integers(0, 700, 9000)})
    engine = LocalDuckDb()
    scan = Scan(engine.open(table, public=False).key, NUMBERS)
    asked, room = [], []
    for most in (3, 5):
        relation = engine.base(Bound(scan, ("who",), most))
        columns = ", ".join(column.alias for column in relation.columns.values())
        asked.append([sorted(engine.fetch(f"SELECT n, {columns} FROM ({relation.sql})")) for _ in range(3)])
        room.append(engine._room)
        engine._room = min(engine._room, 1000)
    engine.close()
    for first, *others in asked:
        assert [row[0] for row in first] == list(range(len(first))) and others == [first, first]
    assert room[0] < 3 * 2**27 and room[1] == 1000 and len(asked[1][0]) > len(asked[0][0])


def test_persons_are_bounded_without_pandas() -> None:
    """Which takes longer to load than two million rows take."""
    code = """if True:
        import sys, tempfile, duckdb
        from jostle.plan.plan import Bound, Column, Count, Key, Open, Scan
        from jostle.readers.duckdb import LocalDuckDb

        path = tempfile.mkdtemp() + "/t.parquet"
        columns = "i % 150 AS who, nullif(i % 7, 3) AS a, 'c' || i % 5 AS t, i % 9 < 2 AS b, i / 8 AS x"
        day = "DATE '2020-01-01' + CAST(i % 90 AS INT) AS d"
        duckdb.execute(f"COPY (SELECT {columns}, {day} FROM range(2000) r(i)) TO '{path}' (FORMAT parquet)")
        engine = LocalDuckDb()
        described = tuple((name, Open("text")) for name in "abdtx")
        plan = Bound(Scan(engine.open(path, public=False).key, described), ("who",), 4)
        print(engine.group(plan, (), (Count(),))[0], "pandas" in sys.modules)
        engine.close()
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["600", "False"]


def test_equal_rows_that_tie_fill_the_bound_and_no_more() -> None:
    assert sorted(staying([4, 4, 4, 9, 4], [7, 7, 7, 1, 3], [5, 5, 5, 0, 6], 2) or []) == [0, 5, 6]


def test_different_rows_with_one_hash_are_left_to_the_cells() -> None:
    assert staying([4, 4, 4], [7, 7, 3], [5, None, 6], 2) is None
    assert staying([4, 4, 4], [7, 7, 9], [5, None, 6], 2) == [5, None]  # both stay: nothing to decide
    assert staying([4, 5, 6], [7, 7, 7], [1, 2, 3], 1) == [1, 2, 3]


@pytest.mark.parametrize("spread", [1, 3, 40, 10**6, 2**32])
def test_the_smallest_hashes_of_each_person_stay(spread: int) -> None:
    """Whoever has how many rows, in chunks of any size, also where all hashes begin alike."""
    rng = np.random.default_rng(spread)
    for most in (1, 2, 5, 30):
        for persons in (rng.integers(0, 60, 700), rng.zipf(1.5, 700) % 500, rng.permutation(700), np.full(700, 5)):
            hashes = rng.integers(0, spread, 700)
            chunks = pa.chunked_array(np.split(persons, np.sort(rng.integers(0, 700, 4))))
            stays = bounding.staying(chunks, hashes << 30, most, lambda rows: np.ones(len(rows), dtype=bool))
            assert stays is not None
            for person in set(persons.tolist()):
                mine = persons == person
                assert sorted(hashes[mine & stays]) == sorted(hashes[mine])[:most]


def test_hashes_that_all_tie_change_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hash of one value the cells decide, of each person alone, whatever order the rows stand in."""
    monkeypatch.setattr("jostle.speed.bounding.hashes_of", lambda cells, rows: np.ones(rows, np.int64))
    monkeypatch.setattr(
        "jostle.engine.sql.persons.hashed", lambda source, cells, dialect: f"SELECT *, 1 AS h FROM ({source})"
    )
    rng = random.Random(3)
    rows = [(rng.randrange(-4, 5), rng.randrange(3), rng.randrange(12)) for _ in range(200)]
    domains = (("a", Integer(-4, 4)), ("b", Integer(0, 9)), ("who", Integer(0, 99)))

    def stay(rows: list[tuple[int, int, int]]) -> Counter[Any]:
        columns = {n: np.array([row[i] for row in rows], np.int64) for i, n in enumerate(("a", "b", "who"))}
        return contents(columns, domains, ("who",), 3)

    everyone = stay(rows)
    assert stay(rng.sample(rows, len(rows))) == everyone
    for person in range(12):
        others = stay([row for row in rows if row[2] != person])
        assert others - everyone == Counter()
        assert {row[2] for row in everyone - others} == {person}


@pytest.mark.parametrize("looked_up", [True, False])
def test_arrays_hold_only_texts_that_fit_those_of_persons_too(monkeypatch: pytest.MonkeyPatch, looked_up: bool) -> None:
    """Whose a row is may be a longer text than all its cells: of an owner elsewhere, or of several whole numbers."""
    chosen, choose = [], bounding.staying

    def small(persons: pa.ChunkedArray, *rest: Any) -> Any:
        chosen.append(len(persons))
        assert persons.nbytes <= 2000
        return choose(persons, *rest)

    monkeypatch.setattr(bounding, "MOST_ON_DISK", 2000)
    monkeypatch.setattr(bounding, "staying", small)
    engine, numbers = LocalDuckDb(), np.arange(100)
    owners = engine.open({"who": np.array([f"{i:030}" for i in numbers]), "number": numbers}, public=False)
    items = engine.open({"order": numbers, "shop": numbers + 10**18, "v": numbers % 7}, public=False)
    scan, owner = Scan(items.key, (("v", Integer(0, 9)),)), Scan(owners.key, (("number", Integer(0, 99)),))
    looked = Owners(Bound(owner, ("who",), None), "number", "order") if looked_up else None
    relation = engine.base(Bound(scan, () if looked_up else ("order", "shop"), 1, owners=looked))
    assert engine.fetch(f"SELECT count(*) FROM ({relation.sql})") == [(100,)]
    assert len(chosen) > 1 and sum(chosen) == 100
    engine.close()


def test_of_a_part_that_fails_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, parts = LocalDuckDb(), []

    def failing(engine: LocalDuckDb, query: str, *rest: Any) -> Any:
        parts.append(query)
        if len(parts) > 2:
            raise KeyboardInterrupt
        return batches(engine, query, *rest)

    batches = LocalDuckDb.record_batches
    monkeypatch.setattr(LocalDuckDb, "record_batches", failing)
    monkeypatch.setattr(bounding, "MOST_ROWS", 30)
    plan = Bound(Scan(engine.open({"who": np.arange(100) % 9}, public=False).key, ()), ("who",), 4)
    with pytest.raises(KeyboardInterrupt):
        engine.rows(plan)
    assert engine.fetch("SELECT * FROM duckdb_tables()") == []
    monkeypatch.undo()
    assert engine.rows(plan) == 36
    engine.close()


def test_rows_that_arrow_does_not_hand_over_are_chosen_by_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of more than 2 GB in a batch: one person's rows made the question fail that all others' were answered."""

    def limited(engine: LocalDuckDb, *query: Any) -> Any:
        for batch in batches(engine, *query):
            if batch.nbytes > 2**16:
                raise refuse("DataError", "the table cannot be read, or there is not enough memory for it")
            yield batch

    batches = LocalDuckDb.record_batches
    monkeypatch.setattr(LocalDuckDb, "record_batches", limited)
    answers = []
    for text in ("x", "x" * 2**16):
        engine = LocalDuckDb()
        who, texts = [*[n % 9 for n in range(50)], 100], [*map(str, range(50)), text]
        plan = Bound(Scan(engine.open({"who": who, "t": texts}, public=False).key, (("t", Open("text")),)), ("who",), 4)
        answers.append(sorted(engine.tuples(plan, (Column("t"),))[0]))
        engine.close()
    assert answers[0][:-1] == answers[1][:-1] and len(answers[0]) == len(answers[1]) == 37


def test_columns_of_many_texts_are_read_anew_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was by itself, within the reading of the one before: how deep that went was up to rows, and at some 900
    columns a fault. Two hundred columns of twenty rows took minutes."""
    asked, depth = [], []
    batches = DuckDb.record_batches

    def noted(self: DuckDb, query: str, *given: Any) -> Any:
        asked.append(query)
        depth.append(len(inspect.stack()))
        return batches(self, query, *given)

    monkeypatch.setattr(DuckDb, "record_batches", noted)
    texts = {f"t{i}": pa.array([f"x{row % (1 + i % 7)}" for row in range(20)]) for i in range(40)}
    columns = (*((name, Open("text")) for name in texts), ("who", Open("text")))
    rows = contents(pa.table(texts | {"who": [f"p{row % 7}" for row in range(20)]}), columns, ("who",), 2)
    assert rows.total() == 14 and 1 < len(asked) <= 3 and max(depth) - min(depth) <= 2
