"""How often intervals of `hazard_ratios` hold what is true of the law: `python -m tests.experiments.hazard_coverage`.

Programs on fresh tables of 3,000 rows: an exponential time of 8 months on average, log hazard ratios of 0.4 for an arm
and 0.1 a class, and leaving evenly within 24 months. Months are described too narrowly, rightly and five times too
wide, real times in 64 steps, and in coarse times that are listed. No look says that a range is too narrow.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import pandas as pd

from jostle.source import Source
from jostle.tools.session import Session

WAYS = {
    "months, 1..6": ("month: 1..6", "none"), "months, 1..24": ("month: 1..24", "none"),
    "months, 1..120": ("month: 1..120", "none"), "real, 0..24": ("month: 0.0..24.0", "none"),
    "listed 6, 12, 24": ("month: 0.0..24.0", "[6, 12, 24]"),
}  # fmt: skip


def trial(rng: np.random.Generator, whole: bool, rows: int = 3000) -> pd.DataFrame:
    old, age = rng.integers(0, 2, rows), rng.integers(0, 4, rows)
    until, seen = rng.exponential(8 * np.exp(-0.4 * old - 0.1 * age)), rng.uniform(0, 24, rows)
    month = np.minimum(until, seen)
    return pd.DataFrame({"month": np.ceil(month).astype(int) if whole else month, "event": 1 * (until <= seen),
                         "arm": np.array(["new", "old"])[old], "age": age})  # fmt: skip


def held(way: str, epsilon: float, runs: int, seed: int = 1) -> tuple[int, int, int, float]:
    """Intervals that hold, those that are finite, all, and the mean of what is said of the arm."""
    month, times = WAYS[way]
    rng, session, lines = np.random.default_rng(seed), Session(look=False), ["use statistics"]
    for i in range(runs):
        session.bind(f"t{i}", trial(rng, way.startswith("months")))
        described = f'described by {{{month}, event: 0..1, arm: {{"new", "old"}}, age: 0..3}}'
        lines.append(f'private t{i} = bound("t{i}") {described} protecting rows budget epsilon {epsilon}')
        call = f'hazard_ratios(t{i}, "month", "event", ["arm", "age"], times = {times}) with epsilon {epsilon}'
        lines.append(f"release r{i} = {call}")
    result = session.attempt(Source("hazards.jst", "\n".join(lines)))
    if not result.ok:
        raise RuntimeError(str(result.diagnostics[0]))
    says = [r.rows for r in (result[f"r{i}"] for i in range(runs)) if r.rows[0]["high"] not in (None, math.inf)]
    inside = sum(row["low"] <= true <= row["high"] for rows in says for row, true in zip(rows, (0.4, 0.1), strict=True))
    return inside, 2 * len(says), 2 * runs, float(np.mean([rows[0]["value"] for rows in says]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=150)
    options = parser.parse_args()
    for way in WAYS:
        for epsilon in (1.0, 20.0):
            inside, finite, asked, mean = held(way, epsilon, options.runs)
            line = f"| {way} | {epsilon:g} | {inside} of {finite}, {100 * inside / finite:.1f} % | {asked - finite} | "
            print(f"{line}{mean:.3f} |", flush=True)


if __name__ == "__main__":
    main()
