"""How far off the estimators of `effects` are, and how often their intervals hold the truth.

    python -m tests.experiments.effects [--runs 2000] [--through 100] [--adult FILE]

Populations have confounding: who is treated and the outcome both depend on the covariates, and so does the effect. Each
run draws a fresh sample and fresh noise; the truth is the population's effect, and for matching also that in the strata
that it keeps. The noise is drawn here, with the law
that the language's has, and handed to the same functions; `--through` runs ask the language itself. `--adult` is UCI
Adult.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.kernels.statistics.effects import Cells, effect_of_scores, effect_of_strata, effect_scores
from jostle.source import Source
from jostle.tools.session import Session


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


def estimates(p: Population, epsilon: float, rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """One sample, asked by every estimator; `unadjusted` compares treated and untreated as they are."""
    stratum, arm, y = p.sample(rng)
    cell, cells, b = 2 * stratum + arm, 2 * p.strata, 1 / epsilon
    deviation = math.sqrt(2)
    sums = noisy(y, cell, cells, b, rng, p.binary)
    found = {
        name: effect_of_strata(sums, cells, b * deviation, "laplace", 0, 1, "", matched)
        for name, matched in (("stratified", False), ("matched", True))
    }
    scores = effect_scores(noisy(y, cell, cells, 2 * b, rng, p.binary), cells, 2 * b * deviation, p.sizes)
    u = np.clip(np.asarray(scores["shift"])[cell] + np.asarray(scores["slope"])[cell] * y, 0, 1)
    whole = noisy(u, np.zeros_like(cell), 1, 2 * b, rng, False)[0]
    found["weighted"] = effect_of_scores(whole, 2 * b * deviation, "laplace", scores, 0, 1, "")
    plain = Cells(noisy(y, arm, 2, b, rng, p.binary), b * deviation).mean
    facts = {k: dict(v.facts) for k, v in found.items()} | {"unadjusted": {"effect": float(plain[1] - plain[0])}}
    kept = Cells(sums.reshape(p.strata, 2, -1), b * deviation).clear.all(axis=1)
    facts["matched"]["own"] = float(p.effects[kept].mean()) if kept.any() else math.nan
    return facts


def summary(runs: Sequence[dict[str, float]], truth: float) -> str:
    """Root mean squared error, the share of finite intervals that hold the truth, and how many are finite."""
    error = math.sqrt(np.mean([(r["effect"] - truth) ** 2 for r in runs]))
    finite = [r for r in runs if math.isfinite(r.get("low", math.inf))]
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
        for name in ("stratified", "matched", "weighted"):
            said = summary([asked(f"ate_{name}", p, 1.0, 100 + i) for i in range(runs)], p.truth)
            print(f"through the language: {p.rows:6} {p.strata:4} {name:11} {said}", flush=True)


def adult(path: str, runs: int) -> None:
    """UCI Adult: income over 50K by a bachelor's degree, within strata of sex, age and hours, beside the rows' own."""
    text = f"""use effects
private people = table("{path}") described by {{age: 17..90, sex: {{"Female", "Male"}}, hours_per_week: 1..99,
    education_num: 1..16, income: {{"<=50K", ">50K"}}}} protecting rows budget epsilon 1e9
rows = derive(people, degree = 1 if education_num >= 13 else 0, decade = clamp(floor((age - 17) / 10), 0, 4),
    long = clamp(floor(hours_per_week / 20), 0, 2))
by = ["sex", "decade", "long"]
"""
    for epsilon in (1e6, *EPSILONS):
        for name in ("stratified", "matched", "weighted"):
            call = f'release r = [ate_{name}(rows, "degree", "income", by) with epsilon {epsilon} for i in 1..{runs}]'
            result = Session().attempt(Source("adult.jst", text + call))
            if not result.ok:
                raise RuntimeError(str(result.diagnostics[0]))
            facts = [report.facts for report in result["r"]]
            effects = np.array([f["effect"] for f in facts])
            print(f"adult {epsilon:8} {name:11} mean {effects.mean():.4f} deviation {effects.std():.4f} "
                  f"error {np.median([f['error'] for f in facts]):.4f} low {np.median([f['low'] for f in facts]):.4f} "
                  f"high {np.median([f['high'] for f in facts]):.4f}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--through", type=int, default=100)
    parser.add_argument("--adult", default="")
    options = parser.parse_args()
    if options.runs:
        simulated(options.runs)
    if options.through:
        through(options.through)
    if options.adult:
        adult(options.adult, 20)


if __name__ == "__main__":
    main()
