"""What reading a CSV file takes, against DuckDB's own reader: CPU seconds and memory.

    python -m tests.bench.csv [--rows 1e6] [--turns 3]

Two files of eight columns: one without a quote, and one whose texts hold a separator and doubled quotes. Each turn is
a process of its own. `cells` is the time until all cells are a table of texts, `question` the time of a first grouped
count after that, for which all columns are read as what describes them; DuckDB is asked the same of its own reader.
Printed are the medians, and the largest peak of memory.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

from jostle.plan.plan import Column, Count, Domain, Integer, Key, Open, Real, Scan
from jostle.readers.duckdb import LocalDuckDb
from tests.bench.timing import timed

COLUMNS: tuple[tuple[str, Domain], ...] = (
    ("k", Integer(0, 49)), ("who", Integer(0, 99_999)), ("amount", Real(0.0, 1000.0)), ("age", Integer(0, 79)),
    ("category", Open("text")), ("day", Open("date")), ("x", Real(0.0, 1.0)), ("flag", Open("boolean")),
)  # fmt: skip
ITEMS = (
    "CAST(floor(random() * 50) AS INTEGER) AS k, CAST(floor(random() * 100000) AS INTEGER) AS who, "
    "round(random() * 1000, 3) AS amount, CAST(floor(random() * 80) AS INTEGER) AS age, {} AS category, "
    "DATE '2020-01-01' + CAST(floor(random() * 1000) AS INTEGER) AS day, random() AS x, random() < 0.5 AS flag"
)
TEXT = "'cat' || CAST(floor(random() * 20) AS INTEGER)"
TEXTS = {"plain": TEXT, "quoted": f"{TEXT} || ', \"' || CAST(floor(random() * 50) AS INTEGER) || '\"'"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.csv")
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--one", type=Path, help="one file, in this process")
    asked = parser.parse_args()
    if asked.one:
        print(*_taken(asked.one))
        return
    with tempfile.TemporaryDirectory(prefix="jostle-bench-") as folder:
        for name, text in TEXTS.items():
            path = Path(folder) / f"{name}.csv"
            query = f"COPY (SELECT {ITEMS.format(text)} FROM range({int(asked.rows)})) TO '{path}' (HEADER)"
            duckdb.connect().execute(query)
            command = [sys.executable, "-m", "tests.bench.csv", "--one", str(path)]
            turns = [
                subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
                for _ in range(asked.turns)
            ]
            cells, question, other, peak = ([float(value) for value in column] for column in zip(*turns, strict=True))
            times = ", ".join(f"{what} {statistics.median(taken):.2f} s" for what, taken in
                              (("cells", cells), ("question", question), ("DuckDB", other)))  # fmt: skip
            print(f"{name:8} {times}, {max(peak):.0f} MB")


def _taken(path: Path) -> tuple[float, float, float, float]:
    """CPU seconds for the cells, for a question and for DuckDB's own answer, and MB before the last."""
    engine = LocalDuckDb()
    scan = Scan(engine.open(path, public=False).key, COLUMNS)
    engine.fetch("SELECT 1")
    cells = timed(lambda: engine.raw(scan.data)).cpu
    question = timed(lambda: engine.group(scan, (Key(Column("k"), range(50)),), (Count(),))).cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    engine.close()
    largest = ", ".join(f"max({name})" for name, _ in COLUMNS[1:])
    query = f"SELECT k, count(*), {largest} FROM read_csv('{path}') GROUP BY k"
    return cells, question, timed(lambda: duckdb.connect().execute(query).fetchall()).cpu, peak


if __name__ == "__main__":
    main()
