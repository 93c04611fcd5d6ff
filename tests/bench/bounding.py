"""Bounding 10 million Parquet rows of a million persons, against a plain grouped count in DuckDB's own SQL.

    python -m tests.bench.bounding [--turns 3]

Both run in one process. Printed are the least wall and CPU seconds of the plain count, of the first count of
`protecting who up to 4 rows`, which chooses the rows, and of those after it; and their ratios. The goals are 20 and
1.5.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb

from jostle.plan.plan import Bound, Column, Count, Integer, Key, Scan
from jostle.readers.duckdb import LocalDuckDb
from tests.bench.timing import Seconds, timed

ROWS, PERSONS, KEYS, MOST = 10_000_000, 1_000_000, 50, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory(prefix="jostle-bench-") as folder:
        path = Path(folder) / "rows.parquet"
        raw = duckdb.connect()
        columns = {"who": PERSONS, "k": KEYS, "v": 1000}
        items = ", ".join(f"CAST(floor(random() * {size}) AS INTEGER) AS {name}" for name, size in columns.items())
        raw.execute(f"COPY (SELECT {items} FROM range({ROWS})) TO '{path}' (FORMAT parquet)")
        query = f"SELECT k, count(*) FROM read_parquet('{path}') GROUP BY k"
        domains = tuple((name, Integer(0, size - 1)) for name, size in columns.items())
        times: dict[str, list[Seconds]] = {"plain": [], "first": [], "later": []}
        for _ in range(turns):
            engine = LocalDuckDb()
            plan = Bound(Scan(engine.open(path, public=False).key, domains), ("who",), MOST)

            def count(engine: LocalDuckDb = engine, plan: Bound = plan) -> object:
                return engine.group(plan, (Key(Column("k"), range(KEYS)),), (Count(),))

            times["first"].append(timed(count))
            for _ in range(5):
                times["plain"].append(timed(lambda: raw.execute(query).fetchall()))
                times["later"].append(timed(count))
            engine.close()
        raw.close()
    least = {name: [min(part) for part in zip(*taken, strict=True)] for name, taken in times.items()}
    for name, (wall, used) in least.items():
        over = f"{wall / least['plain'][0]:.2f} and {used / least['plain'][1]:.2f} of the plain count"
        print(f"{name}: {wall:.3f} s, {used:.3f} s of CPU, {over}")


if __name__ == "__main__":
    main()
