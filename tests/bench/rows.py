"""`python -m tests.bench.rows [--against CHECKOUT]`: CPU of one measurement of each family over private rows.

The least of several runs, of 300,000 rows that are already held. With `--against` another checkout runs the same
programs, in turn with this one in processes of their own, and the ratios are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROWS = 300_000
PROGRAM = """
use mixtures
use classifiers
use ising
private t = bound("t") described by {reals} protecting rows budget epsilon 100000, delta 0.5 counted by basic
private b = bound("b") described by {codes} protecting rows budget epsilon 100000
v = vectors(t, radius = 1)
w = vectors(b, {names}, norm = "sup")
paid = prepaid(v, epsilon = 1000, delta = 0.0001)
attributes = [{{name: "x0", values: [0, 1]}}, {{name: "x1", values: [0, 1]}}, {{name: "x2", values: [0, 1]}}]
model = naive_bayes_model(["no", "yes"], attributes, [[[5, 4], [3, 6]], [[5, 4], [3, 6]], [[5, 4], [3, 6]]], 1)
means = [[0.1 * k / 8 for i in 1..10] for k in 1..8]
factors = [[[3.0 if i == j else 0.0 for j in 1..10] for i in 1..10] for k in 1..8]
offsets = [0.0 for k in 1..8]
ones = [0.1 for i in 1..10]
twenty = [0.1 for i in 1..20]
"""
FAMILIES = {
    "E-step of 8 Gaussians": 'noisy_moments(v, "framed", {means: means, factors: factors, offsets: offsets, '
    "radius: 3.0}, paid = paid, part = 0.001)",
    "k-means step": 'noisy_moments(v, "nearest", {centres: means}, shares = [1, 1], paid = paid, part = 0.001)',
    "logistic gradient": 'noisy_sum(v, "logistic_gradient", {target: 0, weights: ones}, paid = paid, part = 0.001)',
    "rows right": 'laplace(correct_count(model, b, "c"), epsilon = 1)',
    "Frank-Wolfe step": 'noisy_max(coordinate_scores(w, "ising_gradient", {target: 0, weights: twenty}), epsilon = 1)',
    "tables of pairs": 'noisy_sum(w, "indicators", {values: [2 for i in 1..20]}, bound = 15, epsilon = 1)',
    "group by": "{{ select count(*) as n, avg(x1) as a from b groupby x0, x2 with epsilon 0.1 }}",
    "count": "{{ select count(*) from b where x3 == 1 with epsilon 0.1 }}",
}


def measured(runs: int) -> dict[str, float]:
    """Milliseconds of CPU of each family."""
    from jostle.source import Source
    from jostle.tools.session import Session

    rng = np.random.default_rng(0)
    session = Session()
    session.bind("t", {f"x{i}": rng.normal(0, 0.4, ROWS) for i in range(10)})
    codes = {f"x{i}": rng.integers(0, 2, ROWS) for i in range(20)}
    session.bind("b", {**codes, "c": np.array(["no", "yes"])[rng.integers(0, 2, ROWS)]})
    names = ", ".join(codes)
    reals = "{" + ", ".join(f"x{i}: -1.0..1.0" for i in range(10)) + "}"
    described = "{" + ", ".join(f"{name}: 0..1" for name in codes) + ', c: {"no", "yes"}}'
    session.execute(Source("rows.jst", PROGRAM.format(reals=reals, codes=described, names=names)))
    least = dict.fromkeys(FAMILIES, float("inf"))
    for turn in range(runs + 1):  # the first one reads the rows
        for family, call in FAMILIES.items():
            began = time.process_time()
            session.execute(Source("rows.jst", f"z = {call}\n"))
            if turn:
                least[family] = min(least[family], 1e3 * (time.process_time() - began))
    return least


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--against", type=Path)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    if given.json:
        print(json.dumps(measured(given.runs)))
        return
    here = Path(__file__).resolve().parents[2]
    places = [here] if given.against is None else [here, given.against.resolve()]
    least = [dict.fromkeys(FAMILIES, float("inf")) for _ in places]
    for _ in range(given.turns):
        for place, best in zip(places, least, strict=True):
            command = [sys.executable, __file__, "--json", "--runs", str(given.runs)]
            environment = {**os.environ, "PYTHONPATH": str(place), "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, env=environment, cwd=place, capture_output=True, text=True, check=True)
            for family, took in json.loads(done.stdout).items():
                best[family] = min(best[family], took)
    for family in FAMILIES:
        row = [best[family] for best in least]
        ratio = f"   ratio {row[0] / row[1]:.2f}" if len(row) > 1 else ""
        print(f"{family:24}" + "".join(f"{took:10.2f} ms" for took in row) + ratio)


if __name__ == "__main__":
    main()
