"""Time and memory of the histogram options on a million cells: `python -m tests.bench.scale [--shape 1024,1024]`.

Each option runs once in a process of its own, on a private source with the noise of releases, 2000 random ranges,
ε = 0.1, a million rows; printed are CPU and wall seconds of the call and the largest memory of the process.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

OPTIONS = (
    "flat", "uniform", "hb", "hdmm", "dawa", "mwem", "privelet", "greedy_h", "quadtree", "ugrid", "agrid", "mwem_star",
    "ahp", "dpcube", "privtree", "dawa_boxes",
)  # fmt: skip


def run_one(option: str, shape: tuple[int, ...], workload: str) -> None:
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
    import numpy as np

    from jostle.source import Source
    from jostle.tools.session import Session

    rng = np.random.default_rng(5)
    cells = int(np.prod(shape))
    place = np.abs(rng.normal(0.3, 0.1, 800_000)) % 1 * cells
    spikes = rng.choice(rng.integers(0, cells, 200), 200_000)
    x = np.bincount(np.concatenate([place.astype(np.int64), spikes]), minlength=cells).reshape(shape)
    session = Session()
    session.bind("cells", x)
    uses = "".join(f"use {name}\n" for name in ("histograms", "hierarchies", "grids", "clusters", "cuts"))
    declared = f'{uses}private db = bound("cells") protecting rows budget epsilon 1\nqueries = {workload}(db)\n'
    session.execute(Source("bench", declared))
    began, wall = time.process_time(), time.perf_counter()
    session.execute(Source("bench", f"answers = {option}(db, queries) with epsilon 0.1\n"))
    used, passed = time.process_time() - began, time.perf_counter() - wall
    known = session.names()
    error = np.sqrt(np.mean((np.asarray(known["answers"]) - known["queries"].answers(x)) ** 2))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{option:12}{used:9.1f}{passed:9.1f}{most:9.2f}{error:12.1f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--options", default=",".join(OPTIONS))
    parser.add_argument("--shape", default="1000000")
    parser.add_argument("--workload", default="ranges")
    parser.add_argument("--one", action="store_true", help="in this process")
    parser.add_argument("--seconds", type=float, default=600, help="after which an option is stopped")
    chosen = parser.parse_args()
    shape = tuple(int(side) for side in chosen.shape.split(","))
    names = chosen.options.split(",")
    if chosen.one:
        run_one(names[0], shape, chosen.workload)
        return 0
    failed = 0
    print(
        f"{'option':12}{'CPU s':>9}{'wall s':>9}{'GB':>9}{'rmse':>12}   {chosen.workload} on {chosen.shape}", flush=True
    )
    for name in names:
        command = [sys.executable, "-m", "tests.bench.scale", "--one", "--options", name, "--shape", chosen.shape]
        try:
            done = subprocess.run(
                [*command, "--workload", chosen.workload], capture_output=True, text=True, timeout=chosen.seconds
            )
            print(
                done.stdout or f"{name:12} failed: {done.stderr.strip().splitlines()[-1][:120]}",
                end="\n" * (not done.stdout),
            )
            failed += done.returncode != 0
        except subprocess.TimeoutExpired:
            print(f"{name:12} took longer than {chosen.seconds:g} s", flush=True)
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
