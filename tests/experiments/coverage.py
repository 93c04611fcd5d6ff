"""How often 95 % bands hold the truth: `python -m tests.experiments.coverage [--runs N] [--epsilon E]`.

On DPBench's vectors of 1024 cells at 10,000 rows, 200 random ranges, simulated noise. For options that measure a
fixed strategy the bands are `band(answers)`; for the others, `bootstrap` with 50 runs on the released cells. Printed:
the share of answers inside, the root mean square error, and the standard error that was told. Vectors: `../shared`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jostle.simulate import resample
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.dpbench import coarse

NAMES = ("ADULT", "INCOME", "NETTRACE")
CLOSED = ("flat", "hb", "hdmm", "greedy_h")
REHEARSED = ("uniform", "dawa", "ahp", "dpcube")
USES = "use histograms\nuse hierarchies\nuse clusters\n"


def measured(option: str, name: str, epsilon: float, runs: int) -> tuple[float, float, float]:
    counts = resample(coarse(name, 1), 10_000, 1)
    session = Session(simulate=5)
    session.bind("c", counts)
    program = 'private c = bound("c") protecting rows budget epsilon 1000000\nq = ranges(c, 200)\n'
    session.execute(Source("coverage", USES + program))
    truth = session.names()["q"].answers(counts)
    text = f"x = {option}_cells(c, q) with epsilon {epsilon}\na = answer(q, x)\n"
    if option in CLOSED:
        text += "h = error(a)\ns = standard_error(a)\n"
    else:
        text += f"b = bootstrap(x, {option}, q, epsilon = {epsilon}, runs = 50)\nh = b.error\ns = b.standard_error\n"
    once = Source("coverage", text)
    inside, errors, told = [], [], []
    for _ in range(runs):
        session.execute(once)
        known = session.names()
        gap = np.asarray(known["a"]) - truth
        inside.append(np.abs(gap) <= known["h"])
        errors.append(gap**2)
        told.append(np.asarray(known["s"]) ** 2)
    return float(np.mean(inside)), float(np.sqrt(np.mean(errors))), float(np.sqrt(np.mean(told)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--options", default=",".join(CLOSED + REHEARSED))
    chosen = parser.parse_args()
    print(f"{'option':10}{'data':10}{'inside':>8}{'rmse':>9}{'told':>9}")
    for option in chosen.options.split(","):
        for name in NAMES:
            inside, error, told = measured(option, name, chosen.epsilon, chosen.runs)
            print(f"{option:10}{name:10}{inside:8.1%}{error:9.1f}{told:9.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
