"""What the statistics in a Parquet file's footer say is not relied on: they pass over NaN, and may be wrong."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.plan.plan import (
    Apply,
    Categories,
    Column,
    Constant,
    Count,
    Domain,
    Filter,
    FixedSum,
    Integer,
    Join,
    Key,
    Open,
    Plan,
    Real,
    Scan,
)
from jostle.readers.duckdb import LocalDuckDb

ROWS = 1000
ODD = 77.25  # stands once, and is between the least and the largest


@pytest.mark.parametrize("cell", [math.nan, math.inf, 1e300, -1e300])
@pytest.mark.parametrize("bits", [32, 64])
def test_a_row_is_what_it_is_whatever_a_footer_says(tmp_path: Path, cell: float, bits: int) -> None:
    # The footer says that all cells are from 0 to 100: the one that is not takes another's place afterwards.
    cells = np.arange(ROWS) * 100.0 / (ROWS - 1)
    cells[500] = ODD
    letter, kind = ("f", np.float32) if bits == 32 else ("d", np.float64)
    if bits == 32 and math.isfinite(cell):
        cell = math.copysign(1e38, cell)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": cells.astype(kind)}), path, compression="none", use_dictionary=False)
    old, new = (struct.pack(f"<{letter}", value) for value in (ODD, cell))
    assert path.read_bytes().count(old) == 1
    path.write_bytes(path.read_bytes().replace(old, new))
    footer = pq.ParquetFile(path).metadata.row_group(0).column(0).statistics
    assert (footer.min, footer.max) == (0.0, 100.0)

    engine, x = LocalDuckDb(), Column("x")
    scan = Scan(engine.open(str(path), public=False).key, (("x", Real(0.0, 100.0)),))
    rest = np.delete(cells.astype(kind).astype(float), 500)
    known = [*rest, min(max(cell, 0.0), 100.0)] if math.isfinite(cell) else [*rest]
    total, many = engine.group(scan, (), (FixedSum(x, 0.0, 100.0, 20), Count(x)))
    assert (int(total), int(many)) == (sum(round(value * 2**20) for value in known), len(known))
    for op, holds in (("<=", [v for v in known if v <= 90]), (">", [v for v in known if v > 10])):
        some = Filter(scan, Apply(op, (x, Constant(90.0 if op == "<=" else 10.0))))
        assert int(engine.group(some, (), (Count(),))[0]) == len(holds)
    floors = engine.group(scan, (Key(Apply("floor", (x,)), range(101)),), (Count(),))[0]
    assert floors.tolist() == np.bincount([int(v) for v in known], minlength=101).tolist()
    engine.close()


@pytest.mark.parametrize("domain", [Open("text"), Categories(("aaa1", "zzzz")), Integer(0, 10**6), Real(0.0, 1e6)])
def test_a_row_that_is_asked_for_is_there_whatever_a_footer_says(tmp_path: Path, domain: Domain) -> None:
    numbers = isinstance(domain, Integer | Real)
    cells = [i % 100 if numbers else f"aaa{i % 10}" for i in range(ROWS)]
    cells[500] = 77777 if numbers else "aaaq"
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": cells}), path, compression="none", use_dictionary=False)
    old, new = (struct.pack("<q", 77777), struct.pack("<q", 99999)) if numbers else (b"aaaq", b"zzzz")
    parts = path.read_bytes().split(old)  # as often in the page's header as in the footer, and once between them
    middle = len(parts) // 2
    path.write_bytes(old.join(parts[:middle]) + new + old.join(parts[middle:]))
    footer = pq.ParquetFile(path).metadata.row_group(0).column(0).statistics
    assert footer.max == (77777 if numbers else "aaaq")

    engine, x = LocalDuckDb(), Column("x")
    scan = Scan(engine.open(str(path), public=False).key, (("x", domain),))
    listed = Scan(engine.open({"x": [99999] if numbers else ["zzzz"]}, public=True).key, (("x", domain),))
    same = Apply("==", (x, Constant(99999.0 if numbers else "zzzz")))
    plans: list[Plan] = [Filter(scan, same), Join(scan, listed, ("x",), None)]
    if numbers:
        plans.append(Filter(scan, Apply(">", (x, Constant(80000.0)))))
    assert [engine.rows(plan) for plan in plans] == [1] * len(plans)
    engine.close()


@pytest.mark.parametrize("bits", [32, 64])
def test_numbers_that_are_stored_are_those_of_the_file(tmp_path: Path, bits: int) -> None:
    odd = [math.nan, math.inf, -math.inf, None, -0.0, 0.0, 1e300 if bits == 64 else 1e38, 5e-324, 100.0, 100.5, -1.0]
    cells = odd + [round(0.37 * i, 2) for i in range(300)]
    keys = [i % 7 for i in range(len(cells))]
    path, x, by = tmp_path / "rows.parquet", Column("x"), (Key(Column("k"), range(5)),)
    numbers = pa.array(cells, pa.float64() if bits == 64 else pa.float32())
    pq.write_table(pa.table({"x": numbers, "k": keys}), path, row_group_size=50)
    terms = (FixedSum(x, 0.0, 100.0, 20), FixedSum(Apply("-", (x, Constant(50.0))), -50.0, 50.0, 24), Count(x), Count())
    halves = Key(Apply("floor", (Apply("/", (x, Constant(5.0))),)), range(-1, 21))

    def answers(engine: LocalDuckDb) -> list[list[object]]:
        scan = Scan(engine.open(str(path), public=False).key, (("x", Real(0.0, 100.0)), ("k", Integer(0, 6))))
        some = Filter(scan, Apply(">", (x, Constant(33.3))))
        groups = [*engine.group(scan, (), terms), *engine.group(scan, by, terms), *engine.group(some, by, terms)]
        groups += engine.codes(scan, (halves, *by))
        return [np.asarray(array).tolist() for array in groups]

    stores, reads = LocalDuckDb(), LocalDuckDb()
    reads._room = 0
    assert [answers(stores) for _ in range(4)] == [answers(reads) for _ in range(4)]
    stored = "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'kept%'"
    assert stores.fetch(stored) and not reads.fetch(stored)


def test_more_numbers_than_there_is_room_for_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": np.arange(1000.0)}), path)
    engine = LocalDuckDb()
    engine._room = 8 * 1000
    scan = Scan(engine.open(str(path), public=False).key, (("x", Real(0.0, 1000.0)),))
    asked = [int(engine.group(scan, (), (FixedSum(Column("x"), 0.0, 1000.0, 0),))[0]) for _ in range(5)]
    assert asked == [499500] * 5
    assert not engine.fetch("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'kept%'")
