"""Ising models and pairwise fields under zCDP: the largest error of a coupling, against the design page's marks.

    python -m tests.experiments.ising [--p 5,10,20] [--n 1e4,1e5,1e6] [--rho 0.1,1,10] [--trials 3]
        [--with exact,moments,fw,pairwise-exact,pairwise-moments,pairwise] [--most 1000] [--out FILE]

Truths are rings with chords, |A| = 0.25 with random signs, of width 0.75 (given to Frank–Wolfe as the public bound);
independent rows; secure noise, one row more or less. `exact` is maximum likelihood on the same rows without noise.
For `pairwise…` truths are rings with chords of random centred 4 × 4 tables, max |W| = 0.25, over 8 variables. With
`--out` each fit is a line of JSON in a file, and fits that are there already are not made again. Figures:
docs/experiments/ising.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from jostle.kernels.graphical.ising import IsingModel, ising_fit, ring_with_chords
from jostle.kernels.graphical.pairwise import PairwiseModel, pairwise_fit, pairwise_ring
from jostle.kernels.rowprograms import CONTRIBUTIONS
from jostle.privacy.rows.norms import GRID
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
    given = CONTRIBUTIONS["pair_products"](rows.shape[1])
    for part in np.array_split(rows, max(1, len(rows) // 10_000)):
        sums += given.program(part.T * GRID)[0].sum(axis=1) * 2.0**-given.bits
    return ising_fit({"columns": [f"x{i + 1}" for i in range(rows.shape[1])]}, sums, 0.0)


Fit = dict[str, Any]


class Fits:
    """The fits made so far: what was fitted and how far off it was."""

    def __init__(self, out: Path | None) -> None:
        self._out = out
        lines = out.read_text().splitlines() if out is not None and out.exists() else []
        self._kept = {self._name(fit): fit for fit in map(json.loads, lines)}

    def _name(self, fit: Fit) -> str:
        return json.dumps({k: v for k, v in sorted(fit.items()) if k not in ("error", "seconds")})

    def of(self, facts: Fit, model: Callable[[], Any], truth: Any) -> Fit:
        name = self._name(facts)
        if name not in self._kept:
            start = time.process_time()
            error = float(model().error(truth))
            fit = facts | {"error": error, "seconds": round(time.process_time() - start, 1)}
            self._kept[name] = fit
            if self._out is not None:
                with self._out.open("a") as file:
                    file.write(json.dumps(fit) + "\n")
        return self._kept[name]


def tables_without_noise(rows: np.ndarray, k: int) -> PairwiseModel:
    p = rows.shape[1]
    units = np.trunc((2 * rows / (k - 1) - 1) * GRID).T
    parts = np.array_split(units, max(1, len(rows) // 2_000), axis=1)
    indicators = CONTRIBUTIONS["indicators"](p, values=[k] * p).program
    sums = np.sum([indicators(part)[0].sum(axis=1) for part in parts], axis=0)
    facts = {"columns": [f"x{i + 1}" for i in range(p)], "norm": "sup", "radius": 1, "scales": [(k - 1) / 2] * p}
    return pairwise_fit(facts, sums, 0.0)


def ising_fits(fits: Fits, p: int, n: int, rhos: list[float], trial: int, ways: list[str], most: int) -> Iterable[Fit]:
    truth = ring_with_chords(p, STRENGTH, trial)
    rows = truth.sample_array(n, 100 + trial)
    same = {"p": p, "k": 2, "n": n, "trial": trial}
    if "exact" in ways:
        yield fits.of(same | {"way": "exact", "rho": 0.0}, lambda: without_noise(rows), truth)
    calls = {"moments": "ising_moments(rows)", "fw": f"ising_fw(rows, {WIDTH}, {n}, most = {most})"}
    for way in ways:
        for rho in rhos if way in calls else []:
            facts = same | {"way": way, "rho": rho} | ({"most": most} if way == "fw" else {})
            yield fits.of(facts, lambda way=way, rho=rho: learned(rows, calls[way], rho, "-1..1"), truth)  # type: ignore[misc]


def pairwise_fits(
    fits: Fits, p: int, k: int, n: int, rhos: list[float], trial: int, ways: list[str], most: int
) -> Iterable[Fit]:
    truth: PairwiseModel = pairwise_ring(p, k, STRENGTH, trial)
    rows = np.array(truth.sample(n, 100 + trial))
    same = {"p": p, "k": k, "n": n, "trial": trial}
    if "pairwise-exact" in ways:
        yield fits.of(same | {"way": "exact", "rho": 0.0}, lambda: tables_without_noise(rows, k), truth)
    calls = {
        "pairwise-moments": "pairwise_moments(rows)",
        "pairwise": f"pairwise_fw(rows, {truth.width}, {n}, most = {most})",
    }
    for way in ways:
        for rho in rhos if way in calls else []:
            facts = same | {"way": way, "rho": rho} | ({"most": most} if way == "pairwise" else {})
            yield fits.of(facts, lambda way=way, rho=rho: learned(rows, calls[way], rho, f"0..{k - 1}"), truth)  # type: ignore[misc]


def tell(found: list[Fit]) -> None:
    """Mean errors by way and ρ, and the processor's seconds of a fit."""
    first = found[0]
    print(f"p={first['p']} k={first['k']} n={first['n']:g}", end="")
    for way, rho in dict.fromkeys((fit["way"], fit["rho"]) for fit in found):
        here = [fit for fit in found if (fit["way"], fit["rho"]) == (way, rho)]
        errors = [fit["error"] for fit in here]
        print(f"; {way} {rho:g}: {np.mean(errors):.4f} ({len(here)} trials, {here[-1]['seconds']} s)", end="")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p", default="5,10,20")
    parser.add_argument("--n", default="1e4,1e5,1e6")
    parser.add_argument("--rho", default="0.1,1,10")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--with", dest="ways", default="exact,moments,fw,pairwise-exact,pairwise-moments,pairwise")
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    sizes = [int(float(n)) for n in given.n.split(",")]
    rhos = [float(r) for r in given.rho.split(",")]
    ways = given.ways.split(",")
    fits = Fits(given.out)
    for n in sizes:
        for p in (int(p) for p in given.p.split(",")):
            if plain := [way for way in ways if not way.startswith("pairwise")]:
                tell([f for t in range(given.trials) for f in ising_fits(fits, p, n, rhos, t, plain, given.most)])
        if tables := [way for way in ways if way.startswith("pairwise")]:
            tell([f for t in range(given.trials) for f in pairwise_fits(fits, 8, 4, n, rhos, t, tables, given.most)])


if __name__ == "__main__":
    main()
