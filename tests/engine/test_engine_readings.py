"""What operations on the text of a cell come to without writing the text: the same, cell by cell."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from jostle.engine.duckdb.engine import DUCKDB
from jostle.engine.sql import cells, functions
from jostle.engine.sql.rows import Physical, Raw
from jostle.plan.plan import Apply, Column, Constant, Open
from jostle.speed.quicksql import QuickRows, readings

BITS = np.random.default_rng(7).integers(0, 2**63, 20_000, dtype=np.int64).view(np.float64)
DOUBLES = np.concatenate([
    BITS, -BITS, np.round(np.random.default_rng(8).normal(0, 100, 2000), 2),
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-300, 5e-324, 1.7976931348623157e308, 2.0**53, 2.0**53 + 2, 0.1, 1e21, 1e22],
])  # fmt: skip
WHOLES = np.concatenate([
    np.random.default_rng(9).integers(-(2**63), 2**63 - 1, 5000), [0, -(2**63), 2**63 - 1, 2**53, 2**53 + 1, -1]
])  # fmt: skip
SECONDS = np.concatenate([
    np.random.default_rng(10).integers(-62_135_596_900, 253_402_300_900, 3000),
    [0, -1, -62_135_596_800, -62_135_596_801, 253_402_300_799, 253_402_300_800, 1_709_292_600],
])  # fmt: skip
MOMENTS = np.concatenate([
    *((SECONDS * many + more) for many in (1, 10**3, 10**6) for more in (0, 1, many // 2 + 7)), WHOLES,
    np.random.default_rng(11).integers(-(10**18), 10**18, 3000),
])  # fmt: skip
DAYS = "SELECT unnest([DATE '2020-01-01', '0001-01-01', '9999-12-31', '10000-01-01', '-0001-01-01', 'infinity']) AS x"
OVER_TEXT = {
    "number": functions.decimal(DUCKDB).format("t"), "missing": "(t IS NULL)",
    "trim": functions.template(DUCKDB, "trim", ()).format("t"),
    **{f"{kind} of text": functions.of_text(kind)(DUCKDB).format("t") for kind in ("date", "time")},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("DOUBLE", "SELECT x FROM doubles"), ("BIGINT", "SELECT x FROM wholes"), ("DATE", DAYS),
        ("INTEGER", "SELECT CAST(x % 2000000000 AS INTEGER) AS x FROM wholes"),
        ("BOOLEAN", "SELECT x > 0 AS x FROM wholes"),
        *((f"TIMESTAMP {unit}", "SELECT x FROM moments") for unit in ("s", "ms", "us", "ns")),
        *((f"TIMESTAMP {unit} UTC", "SELECT x FROM moments") for unit in ("s", "ms", "us", "ns")),
    ],
)  # fmt: skip
def test_an_operation_on_the_text_of_a_cell_is_found_without_it(kind: str, rows: str) -> None:
    known = duckdb.connect()
    known.register("doubles", pa.table({"x": DOUBLES}))
    known.register("wholes", pa.table({"x": WHOLES}))
    known.register("moments", pa.table({"x": MOMENTS}))
    raw = Raw("x", kind, Open("text"))
    known_of = readings(DUCKDB, raw)
    assert known_of
    for name, direct in known_of:
        source = f"SELECT x, {cells.text(DUCKDB, 'x', kind)} AS t FROM ({rows} UNION ALL SELECT NULL)"
        same = f"({OVER_TEXT[name]}) IS NOT DISTINCT FROM ({direct})"
        assert known.execute(f"SELECT count(*) FROM ({source}) WHERE NOT ({same})").fetchall() == [(0,)], name
    for words in (("NA", "-", "nan", ""), ("inf", "NA"), ("-inf",), ("true",), ("false", "-"), ("0", "NA"), ("-1",)):
        rows = QuickRows({"t": Physical("t", raw=raw)}, {"t": Open("text")}, DUCKDB)
        value = rows.value(Apply("in", (Column("t"), *map(Constant, words))))
        same = f"(t IN ({', '.join(map(DUCKDB.literal, words))})) IS NOT DISTINCT FROM ({value})"
        query = f"SELECT count(*) FROM ({rows.over(source)}) WHERE NOT ({same})"
        assert known.execute(query).fetchall() == [(0,)], words
        assert words[0] != "NA" or "'NA'" not in value


def test_of_other_kinds_the_text_is_read() -> None:
    kinds = ("VARCHAR", "FLOAT", "UBIGINT", "TIME us", "DATE ns")
    assert all(readings(DUCKDB, Raw("x", kind, Open("text"))) == () for kind in kinds)
