"""DPBench's scaled error of every histogram option, as the language runs it.

    python -m tests.experiments.figure_1_2 [--trials 10] [--scales 1e3,1e4,1e5,1e6] [--dimension 1] [--options …]
        [--shape 4096] [--workload prefixes]

Prints ‖Wx − Wx̂‖₂/(|W|·‖x‖₁)·10⁶ at ε = 0.1, everything paid for: the mean over trials (a new draw of the data and
of the noise each), then the geometric mean over the data sets: in one dimension the six that the anchor numbers are
given for, in two all five. Noise is seeded, which public data allow and only they.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tests.experiments import dpbench
from tests.experiments.program_bench import CUTS, MORE, OPTIONS, bench


def errors(
    options: list[str], dimension: int, rows: list[float], trials: int, epsilon: float, data: list[str],
    shape: tuple[int, ...] | None = None, workload: str = "",
) -> dict[str, tuple[np.ndarray, float]]:  # fmt: skip
    """For each option its errors, (data sets, scales, trials), and its mean CPU seconds."""
    made = bench(dimension, options, data=data, rows=rows, shape=shape, workload=workload)
    found = {}
    for k, option in enumerate(options):
        values, used = np.zeros((len(data), len(rows), trials)), 0.0
        for d in range(len(data)):
            for s, scale in enumerate(made.scales(d)):
                for trial in range(trials):
                    instance = made.instance(d, scale, 1000 * trial + 10 * d + s)
                    began = time.process_time()
                    answers = made.answer(k, instance, epsilon, 77 + 1000 * trial + 10 * d + s)
                    used += time.process_time() - began
                    values[d, s, trial] = -made.utility(instance, answers)
        found[option] = (values, used / values.size)
        row = [dpbench.geometric_mean(values[:, s].mean(axis=1)) for s in range(len(rows))]
        print(f"{option:>12}", *(f"{value:>10.4g}" for value in row), f"{found[option][1]:>10.4f}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--scales", default="1e3,1e4,1e5,1e6")
    parser.add_argument("--dimension", type=int, choices=(1, 2), default=1)
    parser.add_argument("--options", default=",".join(OPTIONS))
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--data", default="", help="names of data sets; left out, the usual ones")
    parser.add_argument("--shape", default="", help="cells along every axis; left out, 1024 or 64,64")
    parser.add_argument("--workload", default="", help="identity, prefixes, ranges; left out, 2000 random ranges")
    chosen = parser.parse_args()
    if not dpbench.DATA.is_dir():
        print("the public vectors are not here: there is nothing to run on")
        return
    rows = [float(scale) for scale in chosen.scales.split(",")]
    data = chosen.data.split(",") if chosen.data else list(dpbench.SIX if chosen.dimension == 1 else dpbench.names(2))
    print(f"scaled error × 1e6, ε = {chosen.epsilon:g}, {chosen.trials} trials, data sets: {', '.join(data)}")
    print(f"{'option':>12}", *(f"{scale:>10.0e}" for scale in rows), f"{'CPU s':>10}")
    groups = {"more": MORE, "cuts": CUTS, "all": (*OPTIONS, *MORE, *CUTS)}
    options = list(groups[chosen.options]) if chosen.options in groups else chosen.options.split(",")
    shape = tuple(int(side) for side in chosen.shape.split(",")) if chosen.shape else None
    errors(options, chosen.dimension, rows, chosen.trials, chosen.epsilon, data, shape, chosen.workload)


if __name__ == "__main__":
    main()
