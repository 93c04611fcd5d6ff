"""CPU time of the histogram options on 4096 private counts: `python -m tests.bench.options [--profile OPTION]`.

Each option runs through the language on a private source with the noise of releases, 2000 random ranges, ε = 0.1;
printed are the median and the least of several calls after one that loads what is imported late. The counts are
generated: a few broad modes with spikes. `--profile` prints where one option spends its time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402

GOALS = {"dawa": 0.08, "mwem": 0.15, "hb": 0.02, "hdmm": None, "privtree": None, "flat": None, "uniform": None}
CALLS = {"mwem": "mwem(db, queries, rounds = 10)"}
"""How an option is called where it is not `NAME(db, queries)`."""
PROGRAM = """\
use histograms
use cuts
private db = bound("cells") protecting rows budget epsilon 1000
"""


def cells(n: int, rows: int) -> np.ndarray:
    """Counts of `rows` people over `n` cells: three modes, a hundred spikes, and much that is empty."""
    rng = np.random.default_rng(5)
    place = np.arange(n) / n
    shape = sum(w * np.exp(-(((place - at) / width) ** 2)) for w, at, width in ((1, 0.2, 0.05), (2, 0.5, 0.1)))
    shape[rng.integers(0, n, 100)] += rng.exponential(3, 100)
    return rng.multinomial(rows, shape / shape.sum())


def calls(names: list[str], n: int, rows: int) -> dict[str, Callable[[], object]]:
    """Each option as a call without arguments, on a private source of its own session."""
    from jostle.source import Source
    from jostle.tools.session import Session

    session = Session()
    session.bind("cells", cells(n, rows))
    session.execute(Source("bench", PROGRAM + "queries = ranges(db)\n"))

    def call(name: str) -> Callable[[], object]:
        program = Source("bench", f"answers = {CALLS.get(name, f'{name}(db, queries)')} with epsilon 0.1\n")
        return lambda: session.execute(program)

    return {name: call(name) for name in names}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--options", default=",".join(GOALS))
    parser.add_argument("--cells", type=int, default=4096)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--profile", default="")
    chosen = parser.parse_args()
    made = calls(chosen.options.split(","), chosen.cells, chosen.rows)
    if chosen.profile:
        import cProfile

        made[chosen.profile]()
        cProfile.runctx("made[chosen.profile]()", globals(), locals(), sort="cumulative")
        return 0
    missed = False
    print(f"{'option':10}{'CPU s':>9}{'least':>9}{'wall s':>9}{'first':>9}{'goal':>7}")
    for name, call in made.items():
        began = time.process_time()
        call()
        first, times, walls = time.process_time() - began, [], []
        for _ in range(chosen.runs):
            at, wall = time.process_time(), time.perf_counter()
            call()
            times.append(time.process_time() - at)
            walls.append(time.perf_counter() - wall)
        middle, goal = statistics.median(times), GOALS.get(name)
        over = goal is not None and middle > goal
        missed = missed or over
        print(f"{name:10}{middle:9.4f}{min(times):9.4f}{statistics.median(walls):9.4f}{first:9.4f}"
              f"{'' if goal is None else goal:>7}{'  over' if over else ''}", flush=True)  # fmt: skip
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
