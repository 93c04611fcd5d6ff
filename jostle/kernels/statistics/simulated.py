"""Simulated studies of a treatment whose effect is known, to train choices on: seeded draws of many kinds.

Real studies differ in their rows and strata, in how unevenly rows lie in them, in who is treated and how much that has
to do with the outcome, in whether covariates act alone or together, and in how much of its described range an outcome
uses. A draw takes each of these at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Floats

Rng = np.random.Generator
MOST_STRATA = 512


@dataclass(frozen=True, eq=False)
class Study:
    """A population by stratum: `shares` of it, `propensity` of treatment, `means` (strata, 2) of the outcome untreated
    and treated, all of [0, 1]. `sizes`: how many values each covariate has, of which the first changes slowest.

    `concentration`: how near its mean an outcome lies (that of a beta law), 0 where it is 0 or 1. `used`: the part of
    its described range, from 0 on, that the outcome can take.
    """

    rows: int
    sizes: tuple[int, ...]
    shares: Floats
    propensity: Floats
    means: Floats
    concentration: float
    used: float

    @property
    def binary(self) -> bool:
        return self.concentration == 0

    @property
    def effects(self) -> Floats:
        """The effect in each stratum, of an outcome whose range is 1."""
        return np.asarray((self.means[:, 1] - self.means[:, 0]) * self.used)

    @property
    def truth(self) -> float:
        """The mean effect in the population."""
        return float(self.shares @ self.effects)

    def sample(self, rng: Rng) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Stratum, arm and outcome of each of the rows."""
        stratum = rng.choice(len(self.shares), self.rows, p=self.shares)
        arm = (rng.random(self.rows) < self.propensity[stratum]).astype(np.int64)
        mean = self.means[stratum, arm]
        if self.binary:
            return stratum, arm, (rng.random(self.rows) < mean).astype(float)
        outcome = rng.beta(mean * self.concentration, (1 - mean) * self.concentration)
        return stratum, arm, np.asarray(outcome * self.used)

    def columns(self, rng: Rng) -> dict[str, NDArray[np.int64] | Floats]:
        """The rows of a sample as a table: covariates `x1`, …, `treated` and `outcome`."""
        stratum, arm, outcome = self.sample(rng)
        places = np.unravel_index(stratum, self.sizes)
        covariates = {f"x{i + 1}": np.asarray(place, dtype=np.int64) for i, place in enumerate(places)}
        last = outcome.astype(np.int64) if self.binary else outcome
        return {**covariates, "treated": arm, "outcome": last}

    def drawn(self, seed: int, number: int) -> dict[str, NDArray[np.int64] | Floats]:
        """The same of the sample that belongs to study `number` of a seed."""
        return self.columns(np.random.default_rng([seed, number, 1]))


def simulated_study(number: int, seed: int, least: int, most: int) -> Study:
    """Study `number` of a seed, with `least` to `most` rows and 2 to 512 strata, both evenly on the log scale."""
    rng = np.random.default_rng([seed, number])
    rows = round(math.exp(rng.uniform(math.log(least), math.log(most))))
    sizes = _sizes(math.exp(rng.uniform(math.log(2), math.log(MOST_STRATA))), rng)
    shares = _shares(sizes, rng)
    together = rng.uniform(0, 1) ** 2  # how much covariates act together, beside each alone
    who, other, differs = (_score(sizes, shares, together, rng) for _ in range(3))
    confounded = rng.uniform(-1, 1)
    outlook = confounded * who + math.sqrt(1 - confounded**2) * other
    propensity = np.clip(_logistic(rng.normal(0, 0.7) + rng.uniform(0, 1.2) * who), 0.04, 0.96)
    binary = rng.random() < 0.4
    start = rng.normal(-1, 1) + rng.uniform(0, 1) * outlook
    effect = rng.normal(0, 0.6) + rng.uniform(0, 0.5) * differs
    means = np.clip(_logistic(np.stack([start, start + effect], axis=1)), 0.01, 0.99)
    spread = math.exp(rng.uniform(math.log(1.5), math.log(80)))
    used = 1.0 if binary or rng.random() < 0.5 else math.exp(rng.uniform(math.log(0.1), 0))
    return Study(rows, sizes, shares, propensity, means, 0.0 if binary else spread, used)


def _sizes(strata: float, rng: Rng) -> tuple[int, ...]:
    """Covariates of 2 to 8 values, about so many strata in all."""
    sizes: list[int] = []
    while not sizes or (math.prod(sizes) * 1.4 < strata and math.prod(sizes) * 2 <= MOST_STRATA):
        left = strata / math.prod(sizes)
        most = min(max(2, round(left)), MOST_STRATA // math.prod(sizes))
        sizes.append(min(int(rng.integers(2, 9)), most))
    return tuple(sizes)


def _shares(sizes: tuple[int, ...], rng: Rng) -> Floats:
    """How often each stratum is: two kinds of rows, within each of which covariates are independent."""
    even = math.exp(rng.uniform(math.log(1), math.log(20)))
    kinds = [_product([rng.dirichlet(np.full(size, even)) for size in sizes]) for _ in range(2)]
    part = rng.random()
    shares = part * kinds[0] + (1 - part) * kinds[1]
    return np.asarray(shares / shares.sum())


def _product(parts: list[Floats]) -> Floats:
    whole = np.ones(1)
    for part in parts:
        whole = np.outer(whole, part).ravel()
    return whole


def _score(sizes: tuple[int, ...], shares: Floats, together: float, rng: Rng) -> Floats:
    """A number of each stratum, with mean 0 and variance 1 over the population."""
    places = np.indices(sizes).reshape(len(sizes), -1)
    alone = sum(rng.normal(size=size)[place] for size, place in zip(sizes, places, strict=True))
    both = [np.asarray(x - shares @ x) for x in (np.asarray(alone), rng.normal(size=len(shares)))]
    units = [x / max(math.sqrt(float(shares @ x**2)), 1e-9) for x in both]
    score = math.sqrt(1 - together) * units[0] + math.sqrt(together) * units[1]
    return np.asarray(score / max(math.sqrt(float(shares @ score**2)), 1e-9))


def _logistic(x: Floats | float) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.asarray(x))))
