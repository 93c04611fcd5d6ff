"""A person of a table of Spark has one value of the column that tells persons apart, as in files."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_value import ROWS, check_one_value_each

from jostle.source import Source
from jostle.tools.session import Session

DAYS = [datetime.date(2024, 3, 1), datetime.date(1, 1, 1), None]
MOMENTS = [datetime.datetime(2024, 3, 1), datetime.datetime(2024, 3, 1, 12, 30, 0, 1), None]
KINDS = {
    "int64": pa.array([0, 7, 2**53, 2**53 + 1, None]), "int8": pa.array([0, 7, -1, None], pa.int8()),
    "bool": pa.array([True, False, None]), "date": pa.array(DAYS), "moment": pa.array(MOMENTS, pa.timestamp("us")),
    "text": pa.array(["7", "07", " 7", "7.0", "-0", "", "é", "e\u0301", "true", "2024-03-01", None]),
    "decimal": pa.array([Decimal("7.00"), Decimal("1.50"), None], pa.decimal128(9, 2)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_person_has_one_value_on_spark(tmp_path: Path, url: str, kind: str) -> None:
    cells = pa.chunked_array([KINDS[kind]] * ROWS)
    pq.write_table(pa.table({"id": cells, "v": [1] * len(cells)}), tmp_path / "t.parquet")
    check_one_value_each(Session(engine=url, cwd=tmp_path), f'spark("{tmp_path}/t.parquet")')


@pytest.mark.slow
def test_a_float_tells_no_persons_on_spark(tmp_path: Path, url: str) -> None:
    """It has no text there, so it is refused, whatever it is described as."""
    pq.write_table(pa.table({"id": [0.0, -0.0], "v": [1, 1]}), tmp_path / "t.parquet")
    for described in ("text", "0..9", '{"7"}'):
        program = f"""private t = spark("{tmp_path}/t.parquet") described by {{id: {described}}}
    protecting id up to 2 rows budget epsilon 1
n = {{{{ select count(distinct id) from t with epsilon 1 }}}}
"""
        result = Session(engine=url, cwd=tmp_path).attempt(Source("p.jst", program))
        assert "cannot write a number" in result.diagnostics[0].message and not result.released
