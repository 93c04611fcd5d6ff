"""A count by a described integer key over 10 million Parquet rows, against the same in DuckDB's own SQL.

    python tests/bench/groupby.py

Both run in one process, one after the other in turns, so that they meet the same machine. The goal is a ratio of the
medians of at most 1.5; what is added is the cleaning of the key and the making of a dense result.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import duckdb

from jostle.engine.duckdb.engine import DuckDb
from jostle.plan.domains import Integer
from jostle.plan.plan import Column, Count, Key, Scan

ROWS = 10_000_000
TURNS = 15


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="jostle-bench-") as folder:
        path = Path(folder) / "rows.parquet"
        raw = duckdb.connect()
        make = f"SELECT CAST(floor(random() * 50) AS INTEGER) AS k, random() * 100 AS v FROM range({ROWS})"
        raw.execute(f"COPY ({make}) TO '{path}' (FORMAT parquet)")
        query = f"SELECT k, count(*) FROM read_parquet('{path}') GROUP BY k"

        engine = DuckDb()
        scan = Scan(engine.open(path, public=False).key, (("k", Integer(0, 49)), ("v", Integer(0, 100))))
        keys = (Key(Column("k"), range(50)),)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(TURNS):
            theirs.append(_timed(lambda: raw.execute(query).fetchall()))
            ours.append(_timed(lambda: engine.group(scan, keys, (Count(),))))
        engine.close()
        raw.close()
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"engine.group {mine * 1e3:.1f} ms, DuckDB {other * 1e3:.1f} ms, ratio {mine / other:.2f} (goal 1.5)")


def _timed(action: object) -> float:
    started = time.perf_counter()
    action()  # type: ignore[operator]
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
