"""What a kind of work takes for so many rows: CPU seconds and memory, fitted, and checked at a size left out.

    python -m tests.bench.capacity [--sizes 1e5,1e6,1e7,1e8] [--left-out 3e7] [--kinds count,…] [--turns 3] [--folder F]

Each measurement is a fresh process, from the program's text to its answer, over Parquet of 12 columns that is made once
for each size (in F, where it stays, or a folder that goes). CPU time is fitted by a start and an amount for each
row, both at least 0, so that the squares of the relative errors are least; what that says of the size left out stands
beside what was measured there. Of several turns the median time is taken, and the largest peak of memory.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIDES = [4, 3, 5, 4, 6, 3, 8]  # of a0 to a6
SOURCE = """
private t = table("{path}") described by {{{columns}}}
    protecting {unit} budget {budget}
"""
DOMAIN = ", ".join(f"a{i}: 0..{side - 1}" for i, side in enumerate(SIDES[:6]))
CLIQUES = '[["a0", "a1", "a2"], ["a2", "a3"], ["a3", "a4"], ["a4", "a5"]]'
WORK = {
    "count": "r = {{ select count(*) from t groupby k with epsilon 1 }}",
    "sum": "r = {{ select sum(v) from t groupby k with epsilon 1 }}",
    "median": "r = {{ select median(v) from t with epsilon 1 }}",
    "persons": "r = {{ select count(*) from t groupby k with epsilon 1 }}",
    "tree": 'use trees\nr = friedman_schuster(t, "a6", 5) with epsilon 1',
    "mle": f"use graphical\nr = naive_mle(t, model({{{DOMAIN}}}, {CLIQUES})) with epsilon 1",
    "mixture": "use mixtures\nr = dpem(vectors(t, radius = 3), 3, 5) with epsilon 1 delta 0.000001",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.capacity")
    parser.add_argument("--sizes", default="1e5,1e6,1e7,1e8")
    parser.add_argument("--left-out", default="3e7")
    parser.add_argument("--kinds", default=",".join(WORK))
    parser.add_argument("--turns", type=int, default=3, help="of which the median is taken")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--one", action="store_true", help="one kind and size, in this process")
    asked = parser.parse_args()
    sizes = [int(float(size)) for size in asked.sizes.split(",")]
    with tempfile.TemporaryDirectory() as made:
        folder = asked.folder or Path(made)
        if asked.one:
            _run(asked.kinds, sizes[0], folder)
            return
        left_out = int(float(asked.left_out))
        for rows in [*sizes, left_out]:
            _write(folder / f"{rows}.parquet", rows)
        shown = " | ".join(f"{rows:,}" for rows in [*sizes, left_out])
        print(f"| work | {shown} | start + s a 10⁶ rows | foretold |")
        print("|---" * (len(sizes) + 4) + "|")
        for kind in asked.kinds.split(","):
            _row(kind, sizes, left_out, folder, asked.turns)


def _row(kind: str, sizes: list[int], left_out: int, folder: Path, turns: int) -> None:
    taken = [_median([_measured(kind, rows, folder) for _ in range(turns)]) for rows in [*sizes, left_out]]
    start, each = fitted(sizes, [cpu for cpu, _ in taken[: len(sizes)]])
    cells = [f"{cpu:.2f} s, {peak:,.0f} MB" for cpu, peak in taken]
    foretold = start + each * left_out
    off = foretold / taken[-1][0] - 1
    line = f"{start:.2f} + {each * 1e6:.3f} | {foretold:.1f} s ({off:+.0%})"
    print(f"| {kind} | {' | '.join(cells)} | {line} |", flush=True)


def fitted(sizes: list[int], times: list[float]) -> tuple[float, float]:
    """The start and the time of a row, at least 0, of which the squares of the relative errors are least."""
    from scipy.optimize import nnls

    weights = 1 / np.asarray(times)
    (start, each), _ = nnls(np.stack([weights, np.asarray(sizes) * weights], axis=1), np.ones(len(times)))
    return float(start), float(each)


def _median(turns: list[tuple[float, float]]) -> tuple[float, float]:
    cpu, peak = zip(*turns, strict=True)
    return statistics.median(cpu), max(peak)


def _measured(kind: str, rows: int, folder: Path) -> tuple[float, float]:
    """CPU seconds and MB of a process of its own."""
    words = ["--one", "--kinds", kind, "--sizes", str(rows), "--folder", str(folder)]
    run = subprocess.run(
        [sys.executable, "-m", "tests.bench.capacity", *words], check=True, capture_output=True, text=True
    )
    cpu, peak = run.stdout.split()[-2:]
    return float(cpu), float(peak)


def _run(kind: str, rows: int, folder: Path) -> None:
    from jostle.source import Source
    from jostle.tools.session import Session

    attributes = ", ".join(f"a{i}: 0..{side - 1}" for i, side in enumerate(SIDES))
    columns = {"tree": attributes, "mle": attributes, "mixture": "x: -4.0..4.0, y: -4.0..4.0"}
    described = columns.get(kind, f"who: 0..{rows // 10}, k: 0..49, v: 0.0..1000.0")
    source = SOURCE.format(
        path=folder / f"{rows}.parquet", columns=described,
        unit="who up to 4 rows" if kind == "persons" else f"rows, at most {rows} rows",
        budget="epsilon 1, delta 0.00001" if kind == "mixture" else "epsilon 1",
    )  # fmt: skip
    began = time.perf_counter()
    Session().execute(Source("capacity.jst", source + WORK[kind] + "\n"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rows:,} rows, {kind}: {time.perf_counter() - began:.1f} s by the clock, of CPU and MB:")
    print(f"{time.process_time():.2f} {peak:.0f}")


def _write(path: Path, rows: int) -> None:
    """Small whole numbers that depend on each other, persons of ten rows in the mean, points about three centres."""
    import duckdb

    if path.exists():
        return
    attributes = ", ".join(
        f"CAST(least({side - 1}, floor((r{i} + u) / 2 * {side})) AS TINYINT) AS a{i}" for i, side in enumerate(SIDES)
    )
    points = ", ".join(
        f"CAST(CASE WHEN u < 0.3 THEN {a} WHEN u < 0.6 THEN {b} ELSE {c} END + {noise} - 0.5 AS FLOAT) AS {name}"
        for name, noise, a, b, c in (("x", "s", -1, 0, 1.5), ("y", "w", 1, -1, 0.5))
    )
    who = f"CAST(floor(random() * {max(1, rows // 10)}) AS INTEGER) AS who, CAST(floor(random() * 50) AS TINYINT) AS k"
    value = "CAST(floor(random() * 1000000) / 1000 AS FLOAT) AS v"
    drawn = ", ".join(f"random() AS {name}" for name in ["u", "s", "w", *(f"r{i}" for i in range(len(SIDES)))])
    with duckdb.connect(config={"preserve_insertion_order": "false", "memory_limit": "2GB"}) as connection:
        query = f"SELECT {who}, {value}, {attributes}, {points} FROM (SELECT {drawn} FROM range({rows}))"
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


if __name__ == "__main__":
    main()
