"""Columns of types that no query reads are refused where they are described, in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle import Session
from jostle.source import Source

UNREAD: dict[str, pa.Array] = {
    "list": pa.array([[1], None]), "large list": pa.array([[1], None], pa.large_list(pa.int64())),
    "fixed list": pa.array([[1], None], pa.list_(pa.int64(), 1)), "texts": pa.array([["a"], None]),
    "struct": pa.array([{"a": 1}, None]), "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "struct of struct": pa.array([{"a": {"b": 1}}, None]),
}  # fmt: skip
IN_MEMORY: dict[str, Any] = {
    "interval": pa.array([pa.MonthDayNano([1, 2, 3]), None]), "complex": np.array([1j, 2]), "void": np.zeros(2, "V3"),
    "no unit": np.zeros(2, "M8"),
    "period": pd.Series(pd.period_range("2020", periods=2, freq="M")), "range": pd.Series(pd.interval_range(0, 2)),
}  # fmt: skip
READ: dict[str, pa.Array] = {
    "int8": pa.array([1, None], pa.int8()), "uint64": pa.array([1, None], pa.uint64()), "nothing": pa.nulls(2),
    "float": pa.array([1.0, None], pa.float32()), "half": pa.array([1.0, None]).cast(pa.float16()),
    "bool": pa.array([True, None]), "decimal": pa.array([1, None]).cast(pa.decimal128(20, 1)),
    "text": pa.array(["1", None]), "large text": pa.array(["1", None], pa.large_string()),
    "bytes": pa.array([b"1", None]), "fixed bytes": pa.array([b"1", None], pa.binary(1)),
    "coded": pa.array(["1", None]).dictionary_encode(), "date": pa.array([1, None], pa.date32()),
    "time": pa.array([1, None], pa.time64("us")), "stamp": pa.array([1, None], pa.timestamp("ns")),
    "zoned": pa.array([1, None], pa.timestamp("us", "UTC")), "duration": pa.array([1, None], pa.duration("s")),
}  # fmt: skip
PROGRAM = """
private t = {source} described by {{{described}}} protecting {unit} budget epsilon 1000
release n = {{{{ select count(*) from t with epsilon 900 }}}}
"""


def asked(columns: Any, source: str, folder: Path, described: str, unit: str = "rows") -> Any:
    session = Session(cwd=folder)
    if source.startswith("bound"):
        session.bind("t", columns)
    return session.attempt(Source("p", PROGRAM.format(source=source, described=described, unit=unit)))


def check_refused(columns: Any, source: str, folder: Path) -> None:
    for described, unit in (("x: text", "rows"), ("x: 0..9, y: 0..9", "rows"), ("y: 0..9", "x up to 2 rows")):
        result = asked(columns, source, folder, described, unit)
        assert not result.ok, described
        (fault,) = result.diagnostics
        assert fault.message.startswith("the column `x` is of the type `") and "describe that one" in (fault.help or "")
        assert all(one["epsilon"]["spent"] == "0" for one in result.budget.values())
    assert round(asked(columns, source, folder, "y: 0..9").released["n"]) == 2


@pytest.mark.parametrize("name", [*UNREAD, *IN_MEMORY])
def test_a_table_in_memory(name: str, tmp_path: Path) -> None:
    column = UNREAD.get(name, IN_MEMORY.get(name))
    check_refused({"x": column, "y": np.array([1, 2])}, 'bound("t")', tmp_path)


@pytest.mark.parametrize("name", UNREAD)
def test_a_parquet_file(name: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": UNREAD[name], "y": [1, 2]}), tmp_path / "t.parquet")
    check_refused(None, 'table("t.parquet")', tmp_path)


IN_DUCKDB = ["INTEGER[]", "TIMESTAMP[]", "DECIMAL(3,1)[]", "UUID[]", "STRUCT(a INTEGER)", "BLOB", "INTERVAL", "BIT",
             "MAP(VARCHAR, INTEGER)", "TIMETZ", "UNION(a INTEGER, b VARCHAR)"]  # fmt: skip


@pytest.mark.parametrize("kind", IN_DUCKDB)
def test_a_duckdb_file(kind: str, tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t (x {kind}, y INTEGER); INSERT INTO t VALUES (NULL, 1), (NULL, 2)")
    check_refused(None, 'table("t.duckdb", "t")', tmp_path)


@pytest.mark.parametrize("source", ["parquet", "frame"])
def test_what_is_read_is_not_refused(source: str, tmp_path: Path) -> None:
    for name, column in READ.items():
        table = pa.table({"x": column, "y": [1, 2]})
        if source == "parquet":
            if name in ("half", "duration"):
                continue
            pq.write_table(table, tmp_path / "t.parquet")
        result = asked(table, 'table("t.parquet")' if source == "parquet" else 'bound("t")', tmp_path, "x: text")
        assert result.ok, (name, result.diagnostics)


def test_a_public_table_has_no_such_columns_where_it_is_not_described(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": UNREAD["list"], "y": [1, 2]}), tmp_path / "t.parquet")
    for asked_for, ok in (("y", True), ("x", False)):
        program = f'print({{{{ select sum(y) from table("t.parquet") where {asked_for} != none }}}})'
        assert Session(cwd=tmp_path).attempt(Source("p", program)).ok == ok


def test_a_time_with_a_zone_fits_and_what_is_not_there_is_said_by_the_types(tmp_path: Path) -> None:
    times = pa.array([1_700_000_000_000_000 + i for i in range(3000)], pa.timestamp("us", "America/New_York"))
    pq.write_table(pa.table({"x": times}), tmp_path / "zones.parquet")
    text = (
        'private t = table("zones.parquet") described by {x: time} protecting rows budget epsilon 9\n'
        "release a = {{ select count(*) from t where x > 2020-01-01 with epsilon 3 }}\n"
    )
    session = Session(cwd=tmp_path, look=True)
    refused = session.attempt(Source("p.jst", text.replace("x: time", "x: time, id: text"))).diagnostics[0]
    assert refused.message == "there is no column `id`" and refused.help == "the columns are x"
    result = session.attempt(Source("p.jst", text))
    assert result.ok and abs(result["a"] - 3000) < 30 and "unfit-cells" not in {w.kind for w in result.warnings}
