"""What small tables in memory are counted by without the database is what the database says of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from jostle.engine.sql.engine import SqlEngine
from jostle.plan.plan import (
    Categories,
    Column,
    Count,
    Domain,
    Integer,
    Key,
    Open,
    Real,
    Scan,
)
from jostle.readers.arrays import Arrays
from jostle.readers.duckdb import LocalDuckDb

TEXTS = ["a", "", "é", "e\u0301", "A", " a", "a\x00", "none", "\U0001f600", "z", "x" * 300]
COLUMNS: dict[str, Any] = {
    "whole": np.array([0, -5, 3, 99, 2**62, -(2**62), 7, 1, 3, 3, 2]),
    "small": np.array([0, 255, 3, 9, 1, 2, 7, 1, 3, 3, 2], dtype=np.uint8),
    "text": np.array(TEXTS, dtype=object),
    "strings": np.array(TEXTS, dtype=getattr(np.dtypes, "StringDType", lambda: "O")()),
    "holes": pa.array(["a", None, "é", None, "b", "b", "b", "", "z", "z", "z"]),
    "coded": pd.Series(["u", "v", "u", None, "w", "u", "u", "v", "w", "w", "w"], dtype="category"),
    "chunks": pa.chunked_array([["a", "b", "c"], ["b", "d", None, "a"], ["é", "a", "b", "c"]]),
    "float": np.array([0.0, 1.5, math.nan, math.inf, -1.0, 3.0, 3.0, 2.0, 1.0, 0.5, 7.0]),
    "holed": pa.array([1, None, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    "truth": np.array([True, False] * 5 + [True]),
}
LISTS = Categories(("z", "a", "é", "b", "x" * 300)), Categories(("none",)), Categories(("u", "w"))
DOMAINS: list[tuple[str, Domain]] = [
    *((name, domain) for name in ("text", "strings", "holes", "coded", "chunks", "whole") for domain in LISTS),
    *((name, Integer(low, high)) for name in ("whole", "small", "float", "holed", "truth", "text")
      for low, high in ((0, 5), (3, 3), (-(2**53), 2**53), (200, 300))),
    ("whole", Real(0.0, 2.0)), ("small", Categories((3.0, 1.0))),
]  # fmt: skip


def of_database(engine: LocalDuckDb, key: str) -> LocalDuckDb:
    """The engine, which does not see the arrays any more."""
    engine._raw[key].arrays = None
    return engine


@pytest.mark.parametrize(("name", "domain"), DOMAINS)
def test_places_and_counts_are_the_databases(name: str, domain: Domain) -> None:
    engine = LocalDuckDb()
    key = engine.open(COLUMNS, public=True).key
    scan = Scan(key, ((name, domain),))
    ranges: tuple[Any, ...] = (range(6), range(-7, 4), range(2, 2), range(100, 400))
    lists: tuple[Any, ...] = (("a", "b", "é", "a"), ("z", "", "q"), ("w",))
    found, asked = [], []
    for values in (*ranges, *lists):
        if isinstance(domain, Categories) and isinstance(values, range) == isinstance(domain.values[0], str):
            continue
        if not isinstance(domain, Categories) and not isinstance(values, range):
            continue
        asked.append((Key(Column(name), values),))
        found.append((engine.codes(scan, asked[-1]), engine.group(scan, asked[-1], (Count(), Count()))))
    rows, size = engine.different(scan, [name]), engine.rows(scan)
    database = of_database(engine, key)
    for keys, (codes, counts) in zip(asked, found, strict=True):
        for mine, other in zip(codes, database.codes(scan, keys), strict=True):
            assert mine.dtype == other.dtype and mine.tolist() == other.tolist()
        for mine, other in zip(counts, database.group(scan, keys, (Count(), Count())), strict=True):
            assert mine.dtype == other.dtype and mine.shape == other.shape and mine.tolist() == other.tolist()
    assert repr(rows) == repr(database.different(scan, [name]))
    assert size == database.rows(scan) == 11


def test_several_columns_are_counted_together() -> None:
    rng = np.random.default_rng(5)
    columns = {"x": rng.integers(-3, 9, 5000), "y": rng.integers(0, 4, 5000).astype(np.int16),
               "c": np.array(["p", "q", "r"])[rng.integers(0, 3, 5000)]}  # fmt: skip
    engine = LocalDuckDb()
    key = engine.open(columns, public=True).key
    scan = Scan(key, (("x", Integer(0, 6)), ("y", Integer(0, 3)), ("c", Categories(("r", "p", "other")))))
    keys = (Key(Column("x"), range(7)), Key(Column("c"), ("p", "other", "r")), Key(Column("y"), range(1, 3)))
    names = ["c", "x", "y"]
    mine = engine.codes(scan, keys), engine.group(scan, keys, (Count(),)), engine.different(scan, names)
    database = of_database(engine, key)
    assert [a.tolist() for a in mine[0]] == [a.tolist() for a in SqlEngine.codes(database, scan, keys)]
    assert mine[1][0].tolist() == database.group(scan, keys, (Count(),))[0].tolist()
    assert repr(mine[2]) == repr(database.different(scan, names))


def test_plain_arrays_are_counted_before_the_database_has_them() -> None:
    texts = np.array([*TEXTS, "\ud800", "A\ud800"])
    plain = {"w": np.arange(13, dtype=np.int16) - 4, "u": np.arange(13, dtype=np.uint64), "t": texts}
    arrow = {name: np.array(column.tolist(), dtype=object) if name == "t" else pa.array(column)
             for name, column in plain.items()}  # fmt: skip
    lists = (Categories(("z", "?", "a", "A?")), Key(Column("t"), ("a", "?", "z", "A?")))
    for some in (13, 11):  # with and without halves of surrogate pairs
        engine = LocalDuckDb()
        opened = [engine.open({n: c[:some] for n, c in of.items()}, public=True) for of in (plain, arrow)]
        scans = [Scan(o.key, (("w", Integer(0, 5)), ("u", Integer(2, 9)), ("t", lists[0]))) for o in opened]
        keys = (Key(Column("w"), range(6)), Key(Column("u"), range(12)), lists[1])
        for key in keys:
            (codes,), (others,) = (engine.codes(scan, (key,)) for scan in scans)
            assert codes.tolist() == others.tolist() and codes.dtype == others.dtype
        assert engine.guess(opened[0].key) == engine.guess(opened[1].key)
        plain["w"][0] += 1  # a table is as it was when it was opened
        assert engine.codes(scans[0], keys[:1])[0].tolist() == engine.codes(scans[1], keys[:1])[0].tolist()
        plain["w"][0] -= 1


def test_arrays_leave_what_they_do_not_read_to_the_database() -> None:
    arrays = Arrays(["x"], ["DOUBLE"], [pa.chunked_array([[1.0, 2.0]])], 2)
    key = Key(Column("x"), range(2))
    assert arrays.codes(Scan("d0", (("x", Integer(0, 1)),)), (key,)) is None
    assert arrays.different(Scan("d0", (("x", Integer(0, 1)),)), ["x"]) is None
    assert arrays.stamp() is None


def test_a_stamp_tells_cells_apart_and_no_orders_of_rows() -> None:
    def stamp(**columns: Any) -> str:
        engine = LocalDuckDb()
        return engine.stamp(engine.open(columns, public=True).key)

    x, y = np.array([1, 2, 3]), np.array(["a", "b", "a"])
    assert stamp(x=x, y=y) == stamp(x=x[::-1].copy(), y=y[::-1].copy()) != stamp(x=x, y=y[::-1].copy()[[1, 0, 2]])
    assert len({stamp(x=x), stamp(x=x + 1), stamp(x=x[:2]), stamp(x=x - 3), stamp(y=x), stamp(x=y)}) == 6


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_dates_of_numpy_are_read_in_every_unit(unit: str) -> None:
    """Of years, months and hours no cell was one."""
    engine, cells = LocalDuckDb(), np.array(["1970-01-01", "NaT", 2**62], dtype=f"M8[{unit}]")
    key = engine.open({"x": cells}, public=False).key
    for kind in ("date", "time"):
        values, counts = engine.tally(Scan(key, (("x", Open(kind)),)), Column("x"))
        assert counts[[str(value)[:10] for value in values.tolist()].index("1970-01-01")] == 1
    engine.close()
