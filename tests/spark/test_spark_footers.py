"""What the statistics in a Parquet file's footer say is not relied on by a cluster either: they may be wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines_spark import sail_process

from jostle.backends.remote import RemoteData
from jostle.backends.spark.engine import Spark
from jostle.diagnostics import Refusal
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
    Moments,
    Open,
    Plan,
    Real,
    Scan,
)

ROWS = 100
X = Column("x")
DAY, TIME = date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)
KINDS: dict[str, tuple[pa.DataType, list[Any], Any, Domain]] = {
    "int8": (pa.int8(), [i % 9 for i in range(ROWS)], 99, Integer(0, 127)),
    "int32": (pa.int32(), [i % 9 for i in range(ROWS)], 99, Integer(0, 127)),
    "int64": (pa.int64(), [i % 9 for i in range(ROWS)], 99, Integer(0, 127)),
    "int64 as real": (pa.int64(), [i % 9 for i in range(ROWS)], 99, Real(0.0, 127.0)),
    "int64 as text": (pa.int64(), [10 + i % 9 for i in range(ROWS)], 99, Open("text")),
    "double": (pa.float64(), [float(i % 9) for i in range(ROWS)], 99.0, Real(0.0, 127.0)),
    "float as integer": (pa.float32(), [float(i % 9) for i in range(ROWS)], 99.0, Integer(0, 127)),
    "text": (pa.string(), [f"a{i % 9}" for i in range(ROWS)], "zz", Open("text")),
    "category": (pa.string(), [f"a{i % 9}" for i in range(ROWS)], "zz", Categories(("a1", "zz"))),
    "boolean": (pa.bool_(), [False] * ROWS, True, Open("boolean")),
    "decimal": (pa.decimal128(9, 2), [Decimal(i % 9) for i in range(ROWS)], Decimal(99), Real(0.0, 127.0)),
    "decimal as text": (pa.decimal128(9, 0), [Decimal(10 + i % 9) for i in range(ROWS)], Decimal(99), Open("text")),
    "date": (pa.date32(), [DAY + timedelta(i % 9) for i in range(ROWS)], date(2023, 1, 1), Moments("date", 0, 30_000)),
    "time": (pa.timestamp("us", "UTC"), [TIME + timedelta(i % 9) for i in range(ROWS)],
             datetime(2023, 1, 1, tzinfo=UTC), Moments("time", 0, 2**51)),
    "time without a zone": (pa.timestamp("us"), [TIME.replace(tzinfo=None) + timedelta(i % 9) for i in range(ROWS)],
                            datetime(2023, 1, 1), Moments("time", 0, 2**51)),
}  # fmt: skip


@pytest.fixture(scope="module")
def spark(url: str) -> Iterator[Spark]:
    engine = Spark(url)
    yield engine
    engine.close()


def lying(folder: Path, kind: pa.DataType, said: list[Any], at: int, cell: Any) -> Path:
    """A file whose pages have `cell` in the row `at`, and whose footer and index were written of a file without it."""
    sides = []
    for cells in (said, [*said[:at], cell, *said[at + 1 :]]):
        path = folder / "side.parquet"
        pq.write_table(pa.table({"x": pa.array(cells, kind)}), path, compression="none", use_dictionary=False,
                       write_page_index=True, store_schema=False)  # fmt: skip
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        sides.append((path.read_bytes(), column.data_page_offset + column.total_compressed_size))
    (before, end), (pages, same) = sides
    assert end == same and len(before) == len(pages) and (before[end:] != pages[end:] or math.isnan(cell))
    place = folder / "rows.parquet"
    place.write_bytes(pages[:end] + before[end:])
    assert pq.ParquetFile(place).metadata.row_group(0).column(0).statistics.max == max(said)
    (folder / "side.parquet").unlink()
    return place


@pytest.mark.parametrize("name", KINDS)
def test_a_row_that_is_asked_for_is_there_whatever_a_footer_says(spark: Spark, tmp_path: Path, name: str) -> None:
    kind, cells, cell, domain = KINDS[name]
    path = lying(tmp_path, kind, cells, 50, cell)
    scan = Scan(spark.open(RemoteData("spark", (str(path),)), public=False).key, (("x", domain),))
    texts = isinstance(domain, Open) and domain.kind == "text"
    value = str(cell) if texts else float(cell) if isinstance(cell, int | Decimal) and cell is not True else cell
    value = value.replace(tzinfo=None) if isinstance(value, datetime) else value
    listed = Scan(spark.open({"x": pa.array([value])}, public=True).key, (("x", domain),))
    same = Apply("==", (X, Constant(value)))
    plans: list[Plan] = [
        Filter(scan, same),
        Filter(scan, Apply("in", (X, Constant(value)))),
        Join(scan, listed, ("x",), None),
    ]
    if name != "boolean":
        low = str(cells[-1]) if texts else float(cells[-1]) if isinstance(cells[-1], int | Decimal) else cells[-1]
        low = low.replace(tzinfo=None) if isinstance(low, datetime) else low
        plans.append(Filter(scan, Apply(">=", (X, Constant(max(low, value))))))
    assert [spark.rows(plan) for plan in plans] == [1] * len(plans)
    values = range(20, 128) if isinstance(value, float) else (value,)
    assert int(sum(spark.group(scan, (Key(X, values),), (Count(),))[0])) == 1
    assert spark.tally(scan, X)[1].tolist().count(1) >= 1


@pytest.mark.parametrize("cell", [math.nan, math.inf, 1e300, -1e300])
@pytest.mark.parametrize("bits", [32, 64])
def test_a_row_is_what_it_is_whatever_a_footer_says(spark: Spark, tmp_path: Path, cell: float, bits: int) -> None:
    if bits == 32 and math.isfinite(cell):
        cell = math.copysign(1e38, cell)
    kind, cells = (pa.float32(), np.float32) if bits == 32 else (pa.float64(), np.float64)
    numbers = [float(cells(i * 100.0 / (ROWS - 1))) for i in range(ROWS)]
    path = lying(tmp_path, kind, numbers, 50, cell)
    scan = Scan(spark.open(RemoteData("spark", (str(path),)), public=False).key, (("x", Real(0.0, 100.0)),))
    rest = numbers[:50] + numbers[51:]
    known = [*rest, min(max(cell, 0.0), 100.0)] if math.isfinite(cell) else rest
    total, many = spark.group(scan, (), (FixedSum(X, 0.0, 100.0, 20), Count(X)))
    assert (int(total), int(many)) == (sum(round(value * 2**20) for value in known), len(known))
    for op, holds in (("<=", [v for v in known if v <= 90]), (">", [v for v in known if v > 10])):
        some = Filter(scan, Apply(op, (X, Constant(90.0 if op == "<=" else 10.0))))
        assert int(spark.group(some, (), (Count(),))[0]) == len(holds)
    wide = Scan(scan.data, (("x", Open("real")),))
    beyond = Filter(wide, Apply("or", (Apply(">", (X, Constant(200.0))), Apply("<", (X, Constant(-5.0))))))
    assert spark.rows(beyond) == math.isfinite(cell)


@pytest.mark.parametrize("rest", [[5.0], [5.0, 6.0]])
def test_a_row_with_nan_is_none_whatever_the_others_are(spark: Spark, tmp_path: Path, rest: list[float]) -> None:
    """A true footer says of the first file that all is from 5 to 5."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": [5.0] * 50 + [math.nan] * 50 + rest}), path)
    scan = Scan(spark.open(RemoteData("spark", (str(path),)), public=False).key, (("x", Integer(0, 9)),))
    counts = spark.group(scan, (Key(X, range(10)),), (Count(),))[0]
    assert counts.tolist() == [0, 0, 0, 0, 0, 50 + rest.count(5.0), rest.count(6.0), 0, 0, 0]


def test_a_sail_that_goes_by_statistics_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pysail.spark", reason="pysail, a server of Spark Connect, is not installed")
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": [5.0, math.nan]}), path)
    process, url = sail_process({"SAIL_EXECUTION__COLLECT_STATISTICS": "true"})
    engine = Spark(url)
    with pytest.raises(Refusal, match="what the footers of files say") as refused:
        engine.open(RemoteData("spark", (str(path),)), public=False)
    assert "COLLECT_STATISTICS=false" in (refused.value.first.help or "")
    engine.close()
    process.kill()
