"""Groups and filters over 10 million Parquet rows, against the same questions in DuckDB's own SQL.

    python -m tests.bench.groupby

Both run in one process, one after the other in turns, so that they meet the same machine; the times are of CPU. What
is added is the cleaning of what is read, bounded and exact sums, and the making of a dense result.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from jostle.plan.plan import Apply, Categories, Column, Constant, Count, Filter, FixedSum, Integer, Key, Real, Scan
from jostle.readers.duckdb import LocalDuckDb
from tests.bench.timing import timed

ROWS = 10_000_000
TURNS = 7
TEXTS = tuple(f"cat{i:02d}" for i in range(20))
COLUMNS = (("k", Integer(0, 49)), ("category", Categories(TEXTS)), ("v", Real(0.0, 100.0)))
GOALS = {"by an integer": 1.15, "by a text": 1.3, "by both": 1.3, "of a text": 1.5, "of a number": 1.5, "sum": 1.3,
         "sum by an integer": 1.3, "all rows": 1.3}  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="jostle-bench-") as folder:
        path = Path(folder) / "rows.parquet"
        raw = duckdb.connect()
        text = "'cat' || lpad(CAST(CAST(floor(random() * 20) AS INTEGER) AS VARCHAR), 2, '0')"
        columns = f"CAST(floor(random() * 50) AS INTEGER) AS k, random() * 100 AS v, {text} AS category"
        raw.execute(f"COPY (SELECT {columns} FROM range({ROWS})) TO '{path}' (FORMAT parquet)")
        engine = LocalDuckDb()
        scan = Scan(engine.open(path, public=False).key, COLUMNS)
        table = f"read_parquet('{path}')"
        for name, (ours, theirs) in _questions(engine, scan, table).items():
            query = theirs  # read now, called below
            turns = [(timed(lambda query=query: raw.execute(query).fetchall()), timed(ours)) for _ in range(TURNS)]
            pairs = [(plain.cpu, ours.cpu) for plain, ours in turns]
            other, mine = (statistics.median(side) for side in zip(*pairs, strict=True))
            times = f"{mine * 1e3:8.1f} ms, DuckDB {other * 1e3:8.1f} ms, {mine / other:6.2f} ×"
            print(f"{name:18} {times} (goal {GOALS[name]})")
        engine.close()
        raw.close()


def _questions(engine: LocalDuckDb, scan: Scan, table: str) -> dict[str, tuple[Callable[[], Any], str]]:
    whole, text = Key(Column("k"), range(50)), Key(Column("category"), TEXTS)
    total = FixedSum(Column("v"), 0.0, 100.0, 20)
    of_text = Filter(scan, Apply("==", (Column("category"), Constant("cat03"))))
    of_number = Filter(scan, Apply("<", (Column("v"), Constant(30.0))))
    asked = {
        "all rows": (scan, (), Count(), "SELECT count(*) FROM {}"),
        "by an integer": (scan, (whole,), Count(), "SELECT k, count(*) FROM {} GROUP BY k"),
        "by a text": (scan, (text,), Count(), "SELECT category, count(*) FROM {} GROUP BY category"),
        "by both": (scan, (whole, text), Count(), "SELECT k, category, count(*) FROM {} GROUP BY k, category"),
        "of a text": (of_text, (), Count(), "SELECT count(*) FROM {} WHERE category = 'cat03'"),
        "of a number": (of_number, (), Count(), "SELECT count(*) FROM {} WHERE v < 30"),
        "sum": (scan, (), total, "SELECT sum(v) FROM {}"),
        "sum by an integer": (scan, (whole,), total, "SELECT k, sum(v) FROM {} GROUP BY k"),
    }
    return {
        name: (lambda plan=plan, keys=keys, term=term: engine.group(plan, keys, (term,)), query.format(table))
        for name, (plan, keys, term, query) in asked.items()
    }


if __name__ == "__main__":
    main()
