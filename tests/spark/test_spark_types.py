"""Columns of types that no query reads are refused where they are described, with their type."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle import Session
from jostle.backends.spark.engine import cell
from jostle.engine.sql.cells import NONE
from jostle.source import Source

UNREAD = {
    "list": pa.array([[1], None]), "struct": pa.array([{"a": 1}, None]), "bytes": pa.array([b"1", None]),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
}  # fmt: skip
PROGRAM = """
private t = spark("{file}") described by {{{described}}} protecting {unit} budget epsilon 1000
release n = {{{{ select count(*) from t with epsilon 900 }}}}
"""


@pytest.mark.parametrize("name", UNREAD)
def test_a_described_column_of_a_type_that_is_not_read_is_refused(name: str, url: str, tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": UNREAD[name], "y": [1, 2]}), file)
    for described, unit in (("x: text", "rows"), ("y: 0..9", "x up to 2 rows"), ("y: 0..9", "rows")):
        with Session(engine=url, cwd=tmp_path) as session:
            result = session.attempt(Source("p", PROGRAM.format(file=file, described=described, unit=unit)))
        if "x" not in described + unit:
            assert round(result.released["n"]) == 2
            continue
        assert result.diagnostics[0].message.startswith("the column `x` is of the type `")
        assert all(one["epsilon"]["spent"] == "0" for one in result.budget.values())


def test_a_file_with_two_columns_of_one_name_is_refused(url: str, tmp_path: Path) -> None:
    """Sail shows the first of them, and a program was answered by a column that its owner may not have meant."""
    columns = [pa.array([1, 2]), pa.array([10, 20]), pa.array([3, 4])]
    pq.write_table(pa.Table.from_arrays(columns, ["x", "x", "y"]), tmp_path / "t.parquet")
    with Session(engine=url, cwd=tmp_path) as session:
        described = PROGRAM.format(file=tmp_path / "t.parquet", described="y: 0..9", unit="rows")
        result = session.attempt(Source("p", described))
    assert not result.ok and result.budget == {}


@pytest.mark.parametrize(
    "kind", ["array<int>", "map<string,int>", "struct<a:int>", "binary", "interval day to second", "interval year",
             "variant", "void", "time(6)", "timestamp_ltz", "geometry", "udt"],
)  # fmt: skip
def test_what_is_not_known_has_no_kind(kind: str) -> None:
    assert cell("c0", kind)[1] == NONE
