"""Ising models and pairwise fields under zCDP: the largest error of a coupling, against the design page's marks.

    python -m tests.experiments.ising [--p 5,10,20] [--n 1e4,1e5,1e6] [--rho 0.1,1,10] [--trials 3]
        [--with moments,fw,pairwise] [--most 1000]

Truths are rings with chords, |A| = 0.25 with random signs, of width 0.75 (given to Frank–Wolfe as the public bound);
independent rows; secure noise, one row more or less. `exact` is maximum likelihood on the same rows without noise. For
`pairwise` truths are rings with chords of random centred 4 × 4 tables, max |W| = 0.25, over 8 variables, and `exact`
is the library's own Frank–Wolfe with next to no noise. Figures: docs/experiments/ising.md.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from jostle.kernels.ising.models import IsingModel, ising_fit, ring_with_chords
from jostle.kernels.ising.pairwise import PairwiseModel, pairwise_ring
from jostle.kernels.rowkernels import GRID, pair_products
from jostle.source import Source
from jostle.tools.session import Session

STRENGTH = 0.25
WIDTH = 0.75


def learned(rows: np.ndarray, call: str, rho: float, described: str) -> Any:
    """What `call` over `rows` gives within `rho`."""
    names = [f"x{i + 1}" for i in range(rows.shape[1])]
    session = Session()
    session.bind("d", {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(names)})
    domains = ", ".join(f"{name}: {described}" for name in names)
    text = (
        f'use ising\nprivate d = bound("d") described by {{{domains}}} protecting rows budget rho {rho!r}\n'
        f'rows = vectors(d, norm = "sup")\nrelease model = {call} with rho {rho!r}\n'
    )
    return session.run(Source("experiment.jst", text))["model"]


def without_noise(rows: np.ndarray) -> IsingModel:
    sums = np.zeros(1 + rows.shape[1] * (rows.shape[1] + 1) // 2)
    for part in np.array_split(rows, max(1, len(rows) // 10_000)):
        sums += pair_products(part.T * GRID).sum(axis=1)
    return ising_fit({"columns": [f"x{i + 1}" for i in range(rows.shape[1])]}, sums, 0.0)


def ising_cell(p: int, n: int, rhos: list[float], trials: int, ways: list[str], most: int) -> None:
    found: dict[tuple[str, float], list[float]] = {}
    seconds: dict[str, float] = {}
    for trial in range(trials):
        truth = ring_with_chords(p, STRENGTH, trial)
        rows = truth.drawn(n, 100 + trial)
        found.setdefault(("exact", 0.0), []).append(without_noise(rows).error(truth))
        calls = {"moments": "ising_moments(rows)", "fw": f"ising_fw(rows, {WIDTH}, {n}, most = {most})"}
        for way in ways:
            for rho in rhos:
                start = time.perf_counter()
                model = learned(rows, calls[way], rho, "-1..1")
                seconds[way] = time.perf_counter() - start
                found.setdefault((way, rho), []).append(model.error(truth))
    told = [f"{way} " + "/".join(f"{np.mean(found[way, rho]):.4f}" for rho in rhos) for way in ways]
    times = ", ".join(f"{way} {s:.1f} s" for way, s in seconds.items())
    print(
        f"p={p} n={n:g}: exact {np.mean(found['exact', 0.0]):.4f}, {', '.join(told)} ({trials} trials; {times})",
        flush=True,
    )


def pairwise_cell(n: int, rhos: list[float], trials: int, most: int, p: int = 8, k: int = 4) -> None:
    found: dict[float, list[float]] = {}
    start = time.perf_counter()
    for trial in range(trials):
        truth: PairwiseModel = pairwise_ring(p, k, STRENGTH, trial)
        rows = np.array(truth.sample(n, 100 + trial))
        for rho in [*rhos, 1e6]:
            call = f"pairwise_fw(rows, {truth.width}, {n}, most = {most})"
            found.setdefault(rho, []).append(learned(rows, call, rho, f"0..{k - 1}").error(truth))
    told = "/".join(f"{np.mean(found[rho]):.4f}" for rho in rhos)
    spent = time.perf_counter() - start
    print(f"pairwise n={n:g}: exact {np.mean(found[1e6]):.4f}, fw {told} ({trials} trials; {spent:.0f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p", default="5,10,20")
    parser.add_argument("--n", default="1e4,1e5,1e6")
    parser.add_argument("--rho", default="0.1,1,10")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--with", dest="ways", default="moments,fw,pairwise")
    parser.add_argument("--most", type=int, default=1000)
    given = parser.parse_args()
    sizes = [int(float(n)) for n in given.n.split(",")]
    rhos = [float(r) for r in given.rho.split(",")]
    ways = given.ways.split(",")
    for p in (int(p) for p in given.p.split(",")):
        for n in sizes:
            if plain := [way for way in ways if way != "pairwise"]:
                ising_cell(p, n, rhos, given.trials, plain, given.most)
    if "pairwise" in ways:
        for n in sizes:
            pairwise_cell(n, rhos, given.trials, min(200, given.most))


if __name__ == "__main__":
    main()
