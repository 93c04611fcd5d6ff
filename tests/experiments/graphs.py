"""`python -m tests.experiments.graphs`: triangles of graphs that are fitted to measurements of weighted records.

`--file PATH` adds a graph of pairs of numbers, a line each (the paper's, ca-GrQc of the SNAP collection, is not part of
jostle), with `--epsilon` for both measurements and `--steps` of the walk.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from jostle.kernels.graphs import graph_facts
from jostle.source import Source
from jostle.tools.session import Session

DATA = Path(__file__).resolve().parents[2] / "programs" / "data"
PROGRAM = """use graphs
private t = bound("pairs") described by {{a: 0..{last}, b: 0..{last}}} protecting rows budget epsilon 1000
made = synthetic_graph(t, most = {most}, joint = {joint}, steps = {steps}, seed = {seed},
    by_degree = {wide}) with epsilon {epsilon}
release random = graph_facts(made.seed_graph)
release fitted = graph_facts(made.edges)
release weight = made.triangle_weight
"""
HEAD = (
    "| graph | ε | measured | triangles of the random graph | fitted | truth | weight: measured, truth "
    "| correlation: random, fitted, truth | s |"
)


def row(
    name: str, pairs: np.ndarray, epsilon: float, steps: int, joint: bool, seed: int, wide: int | None = None
) -> str:  # fmt: skip
    """A line of the table: one run, with secure noise."""
    names, places = np.unique(pairs, return_inverse=True)
    places = np.unique(np.sort(places.reshape(-1, 2), axis=1), axis=0)
    truth = graph_facts(places)
    session = Session()
    session.bind("pairs", {"a": places[:, 0], "b": places[:, 1]})
    most = int(1.5 * truth["largest_degree"]) // 10 * 10 + 10
    program = PROGRAM.format(
        last=len(names),
        most=most,
        joint=str(joint).lower(),
        steps=steps,
        seed=seed,
        epsilon=epsilon,
        wide="none" if wide is None else wide,
    )
    began = time.perf_counter()
    result = session.attempt(Source("graphs.jst", program))
    if not result.ok:
        raise RuntimeError(result.diagnostics)
    took, random, fitted = time.perf_counter() - began, result.values["random"], result.values["fitted"]
    what = "degrees, triangles, joint degrees" if joint else "degrees, triangles"
    what += "" if wide is None else f", triangles by {wide} degrees"
    correlation = ", ".join(f"{facts['assortativity']:.2f}" for facts in (random, fitted, truth))
    counts = " | ".join(f"{facts['triangles']:,.0f}" for facts in (random, fitted, truth))
    weights = f"{float(result.values['weight']):,.0f}, {truth['weight']:,.0f}"
    return f"| {name} | {epsilon:g} | {what} | {counts} | {weights} | {correlation} | {took:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path)
    parser.add_argument("--epsilon", type=float, default=0.7)
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--joint", action="store_true")
    parser.add_argument("--by-degree", type=int, help="triangles by degree too, in bins of so many degrees")
    asked = parser.parse_args()
    print(HEAD)
    if asked.file is not None:
        lines = [line.split() for line in asked.file.read_text().splitlines()[1:] if line[:1] != "#"]
        pairs = np.array([line for line in lines if len(line) == 2], dtype=float)
        print(row(asked.file.stem, pairs[pairs[:, 0] != pairs[:, 1]], asked.epsilon, asked.steps, asked.joint, 1,
                  asked.by_degree))  # fmt: skip
        return
    for name, epsilons, steps in (("karate", (1, 10, 100), 10_000), ("authors", (0.2, 1, 5), 60_000)):
        pairs = np.loadtxt(DATA / f"{name}.csv", delimiter=",", skiprows=1)
        for epsilon in epsilons:
            for joint, wide in ((False, None), (True, None), (False, 5)):
                print(row(name, pairs, epsilon, steps, joint, 1, wide), flush=True)


if __name__ == "__main__":
    main()
