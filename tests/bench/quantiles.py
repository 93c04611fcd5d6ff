"""Quantiles, sums and parts of 10 million Parquet rows, against the same exact questions in DuckDB's own SQL.

    python -m tests.bench.quantiles

A session answers each with its noise; both run in one process, one after the other in turns, so that they meet the same
machine. The times are of CPU, the medians of `TURNS` after a first one, and the ratio is the median of the ratios.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import duckdb

from jostle.source import Source
from jostle.tools.session import Session
from tests.bench.timing import timed

ROWS = 10_000_000
TURNS = 5
TEXTS = ", ".join(f'"cat{i:02d}"' for i in range(20))
DECLARED = (
    'private t = table("{}") described by {{{{k: 0..49, v: 0.0..100.0, age: 0..79, category: {{{{{}}}}}}}}}'
    " protecting rows budget epsilon 1000000\n"
)
QUESTIONS = {
    "median of a float": ("{{ select median(v) from t with epsilon 1 }}", "SELECT median(v) FROM {}"),
    "three quantiles": (
        "{{ select quantile(v, 0.25) as a, median(v) as b, quantile(v, 0.75) as c from t with epsilon 1 }}",
        "SELECT quantile_cont(v, [0.25, 0.5, 0.75]) FROM {}",
    ),
    "median by 50 keys": (
        "{{ select median(v) as m from t groupby k with epsilon 1 }}", "SELECT k, median(v) FROM {} GROUP BY k",
    ),
    "median by 20 texts": (
        "{{ select median(age) as m from t groupby category with epsilon 1 }}",
        "SELECT category, median(age) FROM {} GROUP BY category",
    ),
    "sum": ("{{ select sum(v) from t with epsilon 1 }}", "SELECT sum(v) FROM {}"),
    "sum and mean by key": (
        "{{ select sum(v) as s, avg(v) as a from t groupby k with epsilon 1 }}",
        "SELECT k, sum(v), avg(v) FROM {} GROUP BY k",
    ),
    "sum of each part": (
        "[({{ select sum(v) from p with epsilon 1 }}) for _, p in partition(t, k)]",
        "SELECT k, sum(v) FROM {} GROUP BY k",
    ),
    "median of each part": (
        "[({{ select median(v) from p with epsilon 1 }}) for _, p in partition(t, k)]",
        "SELECT k, median(v) FROM {} GROUP BY k",
    ),
}  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="jostle-bench-") as folder:
        path, raw = Path(folder) / "rows.parquet", duckdb.connect()
        text = "'cat' || lpad(CAST(CAST(floor(random() * 20) AS INTEGER) AS VARCHAR), 2, '0')"
        columns = f"CAST(floor(random() * 50) AS INTEGER) AS k, random() * 100 AS v, {text} AS category"
        columns += ", CAST(floor(random() * 80) AS INTEGER) AS age"
        raw.execute(f"COPY (SELECT {columns} FROM range({ROWS})) TO '{path}' (FORMAT parquet)")
        for name, (ours, theirs) in QUESTIONS.items():
            session, query = Session(), theirs.format(f"read_parquet('{path}')")
            session.execute(Source("bench", DECLARED.format(path, TEXTS).format()))
            pairs = []
            for turn in range(TURNS + 1):
                asked = Source("bench", f"answer{turn} = {ours}\n")
                other = timed(lambda query=query: raw.execute(query).fetchall())
                mine = timed(lambda session=session, asked=asked: session.execute(asked))
                pairs.append((other.cpu, mine.cpu))
            first = pairs[0][1] / pairs[0][0]
            other, mine = (statistics.median(side) for side in zip(*pairs[1:], strict=True))
            ratio = statistics.median(ours / theirs for theirs, ours in pairs[1:])
            times = f"{mine * 1e3:7.1f} ms, DuckDB {other * 1e3:7.1f} ms"
            print(f"{name:20} {times}, {ratio:5.2f} ×, the first {first:.2f} ×")
        raw.close()


if __name__ == "__main__":
    main()
