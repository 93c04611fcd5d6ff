"""What questions cost on Spark beside the same without protection, in CPU of the client and of its server.

`python -m tests.bench.spark` starts Sail in this process, with `--server apache` Apache Spark beside it (`SPARK_HOME`),
makes a Parquet file, and asks in turn; the medians of five are printed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "engines"))

import engines_spark

from jostle.source import Source
from jostle.tools.session import Session
from tests.bench.postgres import seconds

REPEATS = 5
DECLARED = """private bench = spark("{file}") described by
  {{k: 0..49, x: 0.0..100.5, age: 0..99, c: {{{texts}}}}} protecting rows budget epsilon 1000000
"""
TEXTS = ", ".join(f'"category {i}"' for i in range(20))
QUESTIONS = {
    "count by 50 whole numbers": ("count(*) from bench group by k", "SELECT k, count(*) FROM {0} GROUP BY k"),
    "count by 20 texts": ("count(*) from bench group by c", "SELECT c, count(*) FROM {0} GROUP BY c"),
    "filter on two columns": ("count(*) from bench where x > 50 and age < 40",
                              "SELECT count(*) FROM {0} WHERE x > 50 AND age < 40"),
    "sum of a double": ("sum(x) from bench", "SELECT sum(x) FROM {0}"),
    "mean of a double by 50 whole numbers": ("avg(x) from bench group by k", "SELECT k, avg(x) FROM {0} GROUP BY k"),
    "median of a whole number": ("median(age) from bench", "SELECT percentile(age, 0.5) FROM {0}"),
    "median of a double": ("median(x) from bench", "SELECT percentile(x, 0.5) FROM {0}"),
}  # fmt: skip


def table(file: Path, rows: int) -> None:
    """Rows in a Parquet file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    at = np.arange(rows, dtype=np.int64)
    x, texts = (at * 7919 % 100000) / 997.0, pa.array([f"category {i}" for i in range(20)])
    pq.write_table(pa.table({"k": at % 50, "x": x, "age": at * 31 % 90, "c": texts.take(pa.array(at % 20))}), file)


def spent(pid: int | None, work: Callable[[], Any]) -> float:
    """Seconds of CPU of this process, and of the server's where it has one of its own, that `work` takes."""

    def so_far() -> float:
        return time.process_time() + (seconds(pid) if pid else 0)

    before = so_far()
    work()
    return so_far() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=("sail", "apache"), default="sail")
    parser.add_argument("--rows", type=int, default=1_000_000)
    chosen = parser.parse_args()
    started, url = (engines_spark.started_sail if chosen.server == "sail" else engines_spark.started_apache)()
    pid = started.pid if chosen.server == "apache" else None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "bench.parquet")
        table(file, chosen.rows)
        session = Session(engine=url)
        session.execute(Source("bench", DECLARED.format(file=file, texts=TEXTS)))
        connection = session._interp.data._engine.connection
        for name, (asked, sql) in QUESTIONS.items():
            raw = sql.format(f"parquet.`{file}`")
            pairs = []
            for turn in range(REPEATS + 1):
                text = f"release r = {{{{ select {asked} with epsilon {1 + turn / 8} }}}}"
                ours = spent(pid, lambda text=text: session.execute(Source("bench", text)))
                pairs.append((ours, spent(pid, lambda raw=raw: connection.ask(lambda s: s.sql(raw).toArrow()))))
            a, b = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
            print(f"| {name} | {a:.3f} | {b:.3f} | {a / b:.2f} |", flush=True)
        session._interp.data._engine.close()


if __name__ == "__main__":
    main()
