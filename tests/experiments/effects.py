"""How far off the estimators of `effects` are, and how often their intervals hold the truth.

    python -m tests.experiments.effects [--runs 200] [--through 100] [--studies 200] [--public]

Populations have confounding: who is treated and the outcome both depend on the covariates, and so does the effect. Each
run draws a fresh sample and fresh noise; the truth is the population's effect, and for matching also that in the strata
that it keeps. The noise is drawn here, with the law that the language's has, and handed to the same functions;
`--through` asks the language itself. `sure` is what `best_effect` runs. `--studies` are simulated ones; `--public`
tables are treated as populations, whose effect is that of their rows without noise.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.kernels.statistics.effects import Cells, Study, effect_of_strata, simulated_study
from jostle.kernels.statistics.weighting import effect_of_model, effect_of_scores, effect_scores
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.effect_data import PUBLIC, load


@dataclass(frozen=True)
class Population:
    """Rows, the number of values of each covariate, whether the outcome is 0 or 1, and how steep propensities are."""

    rows: int
    sizes: tuple[int, ...]
    binary: bool
    steep: float = 1.0

    @property
    def strata(self) -> int:
        return math.prod(self.sizes)

    def propensity(self, z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-self.steep * z))

    def expected(self, z: np.ndarray, treated: Any) -> np.ndarray:
        """The expected outcome; the effect grows with z, and is not linear in the covariates at the ends."""
        return np.clip(0.4 + 0.12 * z + treated * (0.1 + 0.08 * z), 0.02, 0.98)

    def score(self, stratum: np.ndarray) -> np.ndarray:
        places = np.unravel_index(stratum, self.sizes)
        sides = [place / (size - 1) - 0.5 for place, size in zip(places, self.sizes, strict=True)]
        return 2 * sum(sides) / math.sqrt(len(self.sizes))

    @property
    def effects(self) -> np.ndarray:
        """The effect in each stratum."""
        z = self.score(np.arange(self.strata))
        return self.expected(z, 1) - self.expected(z, 0)

    @property
    def truth(self) -> float:
        """The mean effect: strata are equally frequent."""
        return float(self.effects.mean())

    def sample(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Stratum, arm and outcome of each row."""
        stratum = rng.integers(0, self.strata, self.rows)
        z = self.score(stratum)
        arm = (rng.random(self.rows) < self.propensity(z)).astype(int)
        p = self.expected(z, arm)
        y = (rng.random(self.rows) < p) if self.binary else np.clip(p + rng.normal(0, 0.1, self.rows), 0, 1)
        return stratum, arm, np.asarray(y, dtype=float)


POPULATIONS = (
    Population(5_000, (2, 2), True), Population(5_000, (2, 2), False), Population(40_000, (4, 4, 2), True),
    Population(40_000, (4, 4, 2), False, 1.5), Population(20_000, (4, 4, 4), True),
    Population(20_000, (4, 4, 4), False), Population(40_000, (4, 4, 4, 4), True),
    Population(40_000, (4, 4, 4, 4), False),
)  # fmt: skip
EPSILONS = (0.1, 1.0, 4.0)


def noisy(x: np.ndarray, cell: np.ndarray, cells: int, scale: float, rng: Any, binary: bool) -> np.ndarray:
    """The sums that the language measures: shares of rows by cell, with Laplace noise."""
    shares = (x, 1 - x) if binary else (x * x, 2 * x * (1 - x), (1 - x) ** 2)
    sums = np.stack([np.bincount(cell, share, minlength=cells) for share in shares], axis=1)
    return np.asarray(sums + rng.laplace(0, scale, sums.shape))


FIRST = {"weighted": 0.5, "sure": 0.7}
"""The share of the amount that each weighted option has on its first measurement."""


def estimates(p: Population | Study, epsilon: float, rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """One sample, asked by every estimator; `unadjusted` compares treated and untreated as they are."""
    stratum, arm, y = p.sample(rng)
    return answers(stratum, arm, y, p.sizes, p.binary, p.effects, epsilon, rng)


def answers(
    stratum: np.ndarray, arm: np.ndarray, y: np.ndarray, sizes: tuple[int, ...], binary: bool, effects: np.ndarray,
    epsilon: float, rng: np.random.Generator,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """What every estimator answers of these rows; `effects`: that of each stratum."""
    strata = math.prod(sizes)
    cell, cells, b = 2 * stratum + arm, 2 * strata, 1 / epsilon
    deviation = math.sqrt(2)
    sums = noisy(y, cell, cells, b, rng, binary)
    about: Any = (0, 1, "")
    found = {
        name: effect_of_strata(sums, cells, b * deviation, "laplace", *about, matched)
        for name, matched in (("stratified", False), ("matched", True))
    }
    found["smoothed"] = effect_of_model(sums, cells, b * deviation, "laplace", *about, sizes)
    for name, share in FIRST.items():
        one, other = b / share, b / (1 - share)
        first = noisy(y, cell, cells, one, rng, binary)
        scores = effect_scores(first, cells, one * deviation, sizes)
        u = np.clip(np.asarray(scores["shift"])[cell] + np.asarray(scores["slope"])[cell] * y, 0, 1)
        whole = noisy(u, np.zeros_like(cell), 1, other, rng, False)[0]
        noise = (other * deviation, first, one * deviation, cells)
        found[name] = effect_of_scores(whole, *noise, "laplace", *about, sizes)
    facts = {k: dict(v.facts) for k, v in found.items()}
    plain = Cells(noisy(y, arm, 2, b, rng, binary), b * deviation).mean
    facts["unadjusted"] = {"effect": float(plain[1] - plain[0])}
    kept = Cells(sums.reshape(strata, 2, -1), b * deviation).clear.all(axis=1)
    facts["matched"]["own"] = float(effects[kept].mean()) if kept.any() else math.nan
    return facts


OPTIONS = ("stratified", "matched", "smoothed", "weighted", "sure")


def summary(runs: Sequence[dict[str, float]], truth: float) -> str:
    """Root mean squared error, the share of finite intervals that hold the truth, and how many are finite."""
    error = math.sqrt(np.mean([(r["effect"] - truth) ** 2 for r in runs]))
    finite = [r for r in runs if r.get("high", math.inf) - r.get("low", -math.inf) < 1.9]
    if len(finite) < 20:
        return f"{error:.4f}     –    {100 * len(finite) / len(runs):3.0f} %"
    held = np.mean([r["low"] <= truth <= r["high"] for r in finite])
    said = f"{error:.4f} {100 * held:5.1f} %  {100 * len(finite) / len(runs):3.0f} %"
    if "own" not in finite[0]:
        return said
    own = np.mean([r["low"] <= r["own"] <= r["high"] for r in finite])
    return f"{said}  of the strata that are kept {100 * own:5.1f} %"


def simulated(runs: int) -> None:
    for p in POPULATIONS:
        for epsilon in EPSILONS:
            rng = np.random.default_rng(1)
            asked = [estimates(p, epsilon, rng) for _ in range(runs)]
            kind = "share" if p.binary else "mean "
            for name in asked[0]:
                said = summary([a[name] for a in asked], p.truth)
                print(f"{p.rows:6} {p.strata:4} {kind} {epsilon:4} {name:11} {said}", flush=True)


# Through the language ----------------------------------------------------------------------------


def asked(estimator: str, p: Population, epsilon: float, seed: int) -> dict[str, float]:
    """The report of one sample."""
    import pandas as pd

    stratum, arm, y = p.sample(np.random.default_rng(seed))
    places = np.unravel_index(stratum, p.sizes)
    names = [f"x{i}" for i in range(len(p.sizes))]
    frame = pd.DataFrame(dict(zip(names, places, strict=True)) | {"drug": arm, "well": y})
    columns = [f"{name}: 0..{size - 1}" for name, size in zip(names, p.sizes, strict=True)]
    outcome = "0..1" if p.binary else "0.0..1.0"
    session = Session()
    session.bind("t", frame)
    listed = ", ".join(f'"{name}"' for name in names)
    text = f"""use effects
private t = bound("t") described by {{{", ".join(columns)}, drug: 0..1, well: {outcome}}}
    protecting rows budget epsilon 100
release r = {estimator}(t, "drug", "well", [{listed}]) with epsilon {epsilon}
"""
    result = session.attempt(Source("effect.jst", text))
    if not result.ok:
        raise RuntimeError(str(result.diagnostics[0]))
    return dict(result["r"].facts)


def through(runs: int) -> None:
    for p in (POPULATIONS[1], POPULATIONS[2]):
        for name in ("stratified", "matched", "smoothed", "weighted"):
            said = summary([asked(f"ate_{name}", p, 1.0, 100 + i) for i in range(runs)], p.truth)
            print(f"through the language: {p.rows:6} {p.strata:4} {name:11} {said}", flush=True)


# Many populations ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Judged:
    """A population at an amount: root mean squared error, mean interval score and coverage of each estimator."""

    name: str
    epsilon: float
    errors: dict[str, float]
    scores: dict[str, float]
    held: dict[str, float]
    said: dict[str, float]


def judged(name: str, p: Any, epsilon: float, runs: int, rng: np.random.Generator) -> Judged:
    asked = [estimates(p, epsilon, rng) for _ in range(runs)]
    errors, scores, held, said = {}, {}, {}, {}
    for option in OPTIONS:
        found = np.array([[a[option][part] for part in ("effect", "low", "high")] for a in asked])
        errors[option] = float(np.sqrt(np.mean((found[:, 0] - p.truth) ** 2)))
        missed = np.maximum(found[:, 1] - p.truth, 0) + np.maximum(p.truth - found[:, 2], 0)
        scores[option] = float(np.mean(found[:, 2] - found[:, 1] + 40 * missed))
        some = found[:, 2] - found[:, 1] < 1.9
        held[option] = float(np.mean(missed[some] == 0)) if some.any() else math.nan
        said[option] = float(some.mean())
    return Judged(name, epsilon, errors, scores, held, said)


def compared(found: Sequence[Judged], title: str) -> None:
    """Each option over the best one of each population; coverage where an interval says something."""
    print(f"{title}: {len(found)}")
    for option in OPTIONS:
        off = [j.errors[option] / min(j.errors.values()) for j in found]
        score = [j.scores[option] / min(j.scores.values()) for j in found]
        weight = np.array([j.said[option] for j in found])
        held = np.array([j.held[option] for j in found])
        covered = float(np.nansum(held * weight) / max(weight.sum(), 1e-9))
        print(f"  {option:11} score {np.mean(score):7.3f} (95th percentile {np.percentile(score, 95):7.3f})  error "
              f"{np.mean(off):6.3f} (median {np.median(off):.3f})  holds {100 * covered:5.1f} %  "
              f"says something {100 * weight.mean():3.0f} %", flush=True)  # fmt: skip


def studies(many: int, runs: int, seed: int = 3) -> None:
    """Simulated studies, at amounts in turn."""
    amounts = (0.05, 0.1, 0.5, 1.0, 4.0)
    found = []
    for number in range(many):
        rng = np.random.default_rng([seed, number, 2])
        study = simulated_study(number, seed, 500, 20000)
        found.append(judged(f"simulated {number}", study, amounts[number % len(amounts)], runs, rng))
    for epsilon in amounts:
        compared([j for j in found if j.epsilon == epsilon], f"studies, epsilon {epsilon:g}")
    compared(found, "studies, all")


def other_shapes(runs: int) -> None:
    """The eight populations of the table above, which come of another rule than the training's studies."""
    found = []
    for number, p in enumerate(POPULATIONS):
        for epsilon in (0.03, *EPSILONS):
            found.append(judged(f"{p.rows} {p.strata}", p, epsilon, runs, np.random.default_rng([number, 4])))
    compared(found, "the eight populations")


@dataclass(frozen=True, eq=False)
class Rows:
    """A public table as a population: rows are drawn from it with replacement."""

    stratum: np.ndarray
    arm: np.ndarray
    y: np.ndarray
    sizes: tuple[int, ...]
    binary: bool
    truth: float
    effects: np.ndarray

    def sample(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = rng.integers(0, len(self.y), len(self.y))
        return self.stratum[rows], self.arm[rows], self.y[rows]


def public(runs: int, folder: str = "", known: Sequence[str] = PUBLIC) -> None:
    found = []
    for name in known:
        table = Rows(**load(name, folder))
        here = [judged(name, table, e, runs, np.random.default_rng(5)) for e in (0.03, 0.1, 0.3, 1.0, 4.0)]
        print(f"{name}: {len(table.y)} rows, {math.prod(table.sizes)} strata, effect {table.truth:.4f} of the range")
        for j in here:
            errors = ", ".join(f"{k} {v:.4f}" for k, v in j.errors.items())
            print(f"  epsilon {j.epsilon:4}: errors {errors}; sure holds {100 * j.held['sure']:.1f} %", flush=True)
        found += here
    compared(found, "public tables")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=0, help="of each of the eight populations, in a table")
    parser.add_argument("--through", type=int, default=0, help="through the language")
    parser.add_argument("--studies", type=int, default=0, help="simulated ones")
    parser.add_argument("--shapes", action="store_true", help="the eight populations, compared")
    parser.add_argument("--public", nargs="?", const="", default=None, metavar="DIR", help="public tables")
    parser.add_argument("--repeats", type=int, default=40, help="runs of each study, shape and table")
    options = parser.parse_args()
    if options.runs:
        simulated(options.runs)
    if options.through:
        through(options.through)
    if options.studies:
        studies(options.studies, options.repeats)
    if options.shapes:
        other_shapes(options.repeats)
    if options.public is not None:
        public(options.repeats, options.public)


if __name__ == "__main__":
    main()
