"""Time and memory of workloads over a million cells: `python -m tests.bench.workloads [--options flat,hb] [--cells N]`.

Each pair of an option and a workload runs in a process of its own, through the language, on a private source with
simulated noise at ε = 0.1; printed are CPU seconds and the peak of memory in MB, of which the goal is 2000.
Workloads: in one dimension `identity`, `prefixes`, 2000 ranges, 20 predicates, and a union of ranges (weight 2) and
prefixes; in two the same with rectangles, and the marginals of both axes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

GOAL = 2000
LINE = {
    "identity": "identity(c)",
    "prefixes": "prefixes(c)",
    "ranges": "ranges(c)",
    "predicates": "predicates(c, [x >= v * 50000 and x % (v + 2) == 0 for v in 0..19])",
    "union": "union([ranges(c), prefixes(c)], [2, 1])",
}
PLANE = LINE | {
    "predicates": "predicates(c, [x >= v * 50 and y % (v + 2) == 0 for v in 0..19])",
    "marginals": "marginals(c, 1)",
    "union": "union([rectangles(c), marginals(c, 1)], [2, 1])",
}


def run(option: str, asked: str, shape: tuple[int, ...], told: Any) -> None:
    """One call of one option, in a process whose memory nothing else has touched."""
    import numpy as np

    from jostle.diagnostics import Refusal
    from jostle.source import Source
    from jostle.tools.session import Session

    rng = np.random.default_rng(0)
    session = Session(simulate=1)
    session.bind("c", rng.poisson(rng.gamma(0.2, 5.0, shape)))
    session.execute(Source("bench", 'use histograms\nuse hierarchies\nuse grids\nuse clusters\n'
                           'private c = bound("c") protecting rows budget epsilon 100\n'))  # fmt: skip
    began = time.process_time()
    try:
        session.execute(Source("bench", f"q = {asked}\na = {option}(c, q) with epsilon 0.1\n"))
        said = ""
    except Refusal as refusal:
        said = refusal.diagnostics[0].message
    told.send((time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, said))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--options", default="flat,hb,hdmm,quadtree,dawa")
    parser.add_argument("--workloads", default="")
    parser.add_argument("--side", type=int, default=1024, help="cells along each of two axes; their square in one")
    parser.add_argument("--dimensions", default="1,2")
    chosen = parser.parse_args()
    over = False
    print(f"{'option':10}{'cells':>12} {'workload':12}{'CPU s':>8}{'MB':>7}")
    for dimensions in chosen.dimensions.split(","):
        shape = (chosen.side**2,) if dimensions == "1" else (chosen.side, chosen.side)
        for option in chosen.options.split(","):
            for name, asked in (LINE if dimensions == "1" else PLANE).items():
                if chosen.workloads and name not in chosen.workloads.split(","):
                    continue
                ours, theirs = multiprocessing.Pipe()
                made = multiprocessing.get_context("spawn").Process(target=run, args=(option, asked, shape, theirs))
                made.start()
                theirs.close()
                try:
                    seconds, memory, said = ours.recv()
                except EOFError:
                    seconds, memory, said = float("nan"), float("nan"), "ended without an answer"
                made.join()
                over = over or not memory <= GOAL or bool(said)
                cells = "×".join(map(str, shape))
                print(f"{option:10}{cells:>12} {name:12}{seconds:8.1f}{memory:7.0f}  {said}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
