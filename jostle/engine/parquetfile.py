"""Parquet files: how DuckDB is told to read one, and what is done when a text in it is no UTF-8.

DuckDB refuses a whole file for one such cell, so that one row would decide whether a program runs. The file is then
read again by Arrow, which does not look, and the cell's bad bytes become U+FFFD as in a CSV file.
"""

from __future__ import annotations

from typing import Any

from jostle.engine.frames import as_utf8
from jostle.engine.rowsql import text_literal


def reader(path: str) -> str:
    """A table function of the file at this very path: no pattern, no columns made of folder names."""
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in path)
    return f"read_parquet({text_literal(escaped)}, hive_partitioning = false, filename = false)"


def repaired(path: str) -> Any | None:
    """The file as a `pyarrow.Table` with columns `c0`, `c1`, …, or None where its text needed no repair."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = pq.ParquetFile(path).read().columns
    readable = [as_utf8(column) for column in columns]
    if all(new is old for new, old in zip(readable, columns, strict=True)):
        return None
    return pa.table(readable, names=[f"c{i}" for i in range(len(columns))])
