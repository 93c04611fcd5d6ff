"""What questions cost on PostgreSQL beside the same without protection, in CPU of the client and of its server process.

`python -m tests.bench.postgres` starts a server, makes a table, and asks in turn; the medians of five are printed. One
process of the server answers each side, without parallel workers.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "engines"))

from engines_postgres import server

from jostle.source import Source
from jostle.tools.session import Session

ROWS, REPEATS = 1_000_000, 5
TABLE = f"""CREATE TABLE bench AS SELECT i % 50 AS k, ((i::bigint * 7919) % 100000) / 997.0::float8 AS x,
(i::bigint * 31) % 90 AS age, 'category ' || i % 20 AS c FROM generate_series(1, {ROWS}) i"""
DECLARED = f"""private bench = postgres("bench") described by
  {{k: 0..49, x: 0.0..100.5, age: 0..99, c: {{{", ".join(f'"category {i}"' for i in range(20))}}}}}
  protecting rows budget epsilon 1000000
"""
QUESTIONS = {
    "count by key": ("count(*) from bench group by k", "SELECT k, count(*) FROM bench GROUP BY k"),
    "count by text": ("count(*) from bench group by c", "SELECT c, count(*) FROM bench GROUP BY c"),
    "filter": ("count(*) from bench where x > 50 and age < 40", "SELECT count(*) FROM bench WHERE x > 50 AND age < 40"),
    "sum": ("sum(x) from bench", "SELECT sum(x) FROM bench"),
    "mean by key": ("avg(x) from bench group by k", "SELECT k, avg(x) FROM bench GROUP BY k"),
    "median": ("median(age) from bench", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM bench"),
}


def spent(pid: int, work: Callable[[], Any]) -> float:
    """Seconds of CPU of this process and of the server's that `work` takes."""

    def so_far() -> float:  # the server's process has one thread, of which the system counts nanoseconds
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9 + time.process_time()

    before = so_far()
    work()
    return so_far() - before


def seconds(pid: int) -> float:
    """Seconds of CPU that a process and its threads have had, to a hundredth."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    import psycopg

    url = server() + "&options=-c%20max_parallel_workers_per_gather%3D0%20-c%20jit%3Doff"
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(TABLE)
        raw.execute("VACUUM ANALYZE bench")
        session = Session(engine=url)
        session.execute(Source("bench", DECLARED))
        ((theirs,),) = raw.execute("SELECT pg_backend_pid()").fetchall()
        ((ours,),) = session._interp.data._engine.connection.catalog("SELECT pg_backend_pid()", "the server")
        for name, (asked, sql) in QUESTIONS.items():
            pairs = []
            for turn in range(REPEATS + 1):
                text = f"release r = {{{{ select {asked} with epsilon {1 + turn / 8} }}}}"
                one = spent(ours, lambda text=text: session.execute(Source("bench", text)))
                other = spent(theirs, lambda sql=sql: raw.execute(sql).fetchall())
                pairs.append((one, other))
            a, b = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
            print(f"| {name} | {a:.3f} | {b:.3f} | {a / b:.2f} |", flush=True)
        session._interp.data._engine.close()


if __name__ == "__main__":
    main()
