"""Average treatment effects from noisy sums by stratum and arm, with what noise and sampling add to them.

An outcome y within public bounds stands as x = (y − low)/(high − low), and a row gives the shares of x to the sums of
its stratum and arm (`kernels.rowprograms.shares`), of which the number of rows, Σx and Σx² are combinations.

What is calculated here is post-processing of these sums. To first order an effect moves by Σ g·δ for the noise δ of
each sum, whose variance is known. Sampling takes rows to be independent draws of a larger population, whose effect is
the one that intervals are for; its variance is estimated from the same noisy sums, less what noise adds to it. The
effect is one of treatment where, within each stratum, who is treated has nothing to do with what would become of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Floats
from jostle.kernels.statistics.moments import CLEAR, SAMPLING
from jostle.kernels.statistics.report import Report

LEAST_SHARE = 0.1
"""Propensities are taken to be at least this, and at most 1 less it, so that no row weighs more than ten."""

_PARTS = {2: (np.array([1.0, 0.0]), np.array([1.0, 0.0])), 3: (np.array([1.0, 0.5, 0.0]), np.array([1.0, 0.0, 0.0]))}
"""What each of the numbers that a row gives says of x, and of x²."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Of each cell (…,) the noisy number of rows and mean of x, and the variance of a row and of the mean's noise.

    `sums` (…, 2 or 3) are the noisy sums, each with noise of deviation `noise`.
    """

    sums: Floats
    noise: float

    @property
    def value(self) -> Floats:
        return _PARTS[self.sums.shape[-1]][0]

    @property
    def rows(self) -> Floats:
        return np.asarray(self.sums.sum(axis=-1))

    @property
    def unsure(self) -> float:
        """The deviation of the noise of a number of rows."""
        return self.noise * math.sqrt(self.sums.shape[-1])

    @property
    def clear(self) -> NDArray[np.bool_]:
        """Whether a cell has more rows than its noise could be."""
        return np.asarray(self.rows > max(CLEAR * self.unsure, 2.0))

    @property
    def held(self) -> Floats:
        """The number of rows, at least as large as its noise."""
        return np.maximum(self.rows, max(2 * self.unsure, 1.0))

    @property
    def mean(self) -> Floats:
        return np.asarray(self.sums @ self.value) / self.held

    @property
    def slopes(self) -> Floats:
        """By how much a cell's mean moves with each of its sums, (…, 2 or 3)."""
        return (self.value - self.mean[..., None]) / self.held[..., None]

    @property
    def mean_noise(self) -> Floats:
        """The variance of the noise of a mean."""
        return self.noise**2 * np.asarray((self.slopes**2).sum(axis=-1))

    @property
    def spread(self) -> Floats:
        """The variance of x within a cell, less what noise takes from it; between 0 and 1/4."""
        squares = np.asarray(self.sums @ _PARTS[self.sums.shape[-1]][1]) / self.held
        return np.clip(squares - self.mean**2 + self.mean_noise, 0.0, 0.25)


def effect_of_strata(
    sums: Any, cells: int, noise: float, mechanism: str, low: float, high: float, what: str, matched: bool = False
) -> Report:
    """The effect by strata: that of each, weighed by its rows.

    `sums`: the noisy sums of each of the `cells`, a stratum's untreated and treated rows in turn. With `matched` the
    strata where both arms are clear of noise alone, and the interval is infinite where they hold less than half of the
    rows; else all strata whose rows are clear, and it is infinite where an arm of one is not.
    """
    seen = Cells(_shaped(sums, cells), noise)
    together = seen.rows.sum(axis=1)
    both = np.asarray(seen.clear.all(axis=1))
    some = together > max(CLEAR * seen.unsure * math.sqrt(2), 2.0)
    kept = np.asarray(both if matched else some)
    if not kept.any():
        return _report(what, 0.0, math.inf, math.inf, high - low, 0.0, 0, float(together.sum()))
    part = Cells(seen.sums[kept], noise)
    share = part.rows.sum(axis=1) / part.rows.sum()
    by_stratum = part.mean[:, 1] - part.mean[:, 0]
    effect = float(share @ by_stratum)
    pull = (by_stratum - effect) / part.rows.sum()
    signs = np.array([-1.0, 1.0])
    moved = pull[:, None, None] + share[:, None, None] * signs[:, None] * part.slopes
    within = (part.spread / part.held).sum(axis=1)
    unsure = within + part.mean_noise.sum(axis=1)
    between = max(float(share @ ((by_stratum - effect) ** 2 - unsure * (1 - share))), 0.0)
    sampling = float(share**2 @ within) + between / float(part.rows.sum())
    lost = float(together[kept].sum()) < float(together.sum()) / 2 if matched else not bool(both[some].all())
    wide = _widths(moved, noise, mechanism, 0.0, sampling)
    error, both_wide = (math.inf, math.inf) if lost else wide
    left = float(together[~kept].sum())
    return _report(what, effect, error, both_wide, high - low, float(part.rows.sum()), int(kept.sum()), left)


def _shaped(sums: Any, cells: int) -> Floats:
    """(strata, 2, numbers of a row)."""
    return np.asarray(sums, dtype=float).reshape(int(cells) // 2, 2, -1)


def _widths(moved: Floats, noise: float, mechanism: str, second: float, sampling: float) -> tuple[float, float]:
    """Half-widths at 95 % of noise alone, and of noise and sampling together.

    `moved`: the effect's slope in each noisy sum. `second`: a variance of noise that is counted as normal. The tail of
    a sum of Laplace noises lies between one Laplace noise's and a normal one's: its fourth cumulant says where
    (Cornish and Fisher 1938).
    """
    variance = noise**2 * float((moved**2).sum())
    fourth = 3 * noise**4 * float((moved**4).sum()) if mechanism != "gaussian" else 0.0
    return _half_width(variance + second, fourth), _half_width(variance + second + sampling, fourth)


def _half_width(variance: float, fourth: float) -> float:
    if variance <= 0 or math.isinf(variance):
        return variance
    z = SAMPLING
    return math.sqrt(variance) * (z + fourth / variance**2 * (z**3 - 3 * z) / 24)


def _report(
    what: str, effect: float, error: float, wide: float, unit: float, rows: float, strata: int, left: float
) -> Report:
    """Of an effect, and half-widths, in x; `unit` is the range of y."""
    value = min(max(effect, -1.0), 1.0) * unit
    facts = {"effect": value, "error": error * unit, "low": value - wide * unit, "high": value + wide * unit}
    counted = {"rows": round(rows), "strata": strata, "left_out": max(round(left), 0)}
    notes = []
    if math.isinf(wide):
        notes.append("the noise hides an arm of a stratum: the interval is infinite; spend more, or use fewer strata")
    return Report(what, [{"": "effect", "value": value, **{k: facts[k] for k in ("error", "low", "high")}, **counted}],
                  notes, facts | counted)  # fmt: skip


# Weighting ---------------------------------------------------------------------------------------


def effect_scores(sums: Any, cells: int, noise: float, sizes: Sequence[float]) -> dict[str, Any]:
    """What each row is to give to a weighted effect: x times `slope` plus `shift` of its cell, between 0 and 1.

    The score of augmented inverse propensity weighting (Robins, Rotnitzky, Zhao 1994),
    m₁ − m₀ + t(x − m₁)/e − (1 − t)(x − m₀)/(1 − e), with means m and propensities e of a row's stratum, estimated from
    `sums` by main effects of the covariates, with so many values each, and what a stratum says of itself beyond
    them, as far as noise lets it. Its mean is the effect where one of both is right: an error of the one counts times
    an error of the other. `second`: the variance of that product. `low` and `high`: what 0 and 1 stand for.
    """
    seen = Cells(_shaped(sums, cells), noise)
    design = _main_effects([int(size) for size in sizes])
    rows, together = seen.rows, seen.rows.sum(axis=1)
    part = float(np.clip(rows[:, 1].sum() / max(together.sum(), 1.0), LEAST_SHARE, 1 - LEAST_SHARE))
    of_treated = seen.unsure**2 * (part**2 + (1 - part) ** 2)
    share, share_doubt = smoothed(rows[:, 1], together, of_treated, part * (1 - part), seen.unsure * 2**0.5, design)
    share = np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE)
    fits = [_means_of_arm(seen, a, design) for a in (0, 1)]
    means = np.clip(np.stack([fit[0] for fit in fits], axis=1), 0.0, 1.0)
    weights = np.maximum(together, 0.0)
    slope = np.stack([-1 / (1 - share), 1 / share], axis=1)
    shift = (means[:, 1] - means[:, 0])[:, None] - slope * means
    low, high = float(np.minimum(shift, shift + slope).min()), float(np.maximum(shift, shift + slope).max())
    parts = weights / max(weights.sum(), 1e-300)
    pulls = [parts * slope[:, arm] for arm in (0, 1)]
    second = sum(float(pull @ (share_doubt * fit[1]) @ pull) for pull, fit in zip(pulls, fits, strict=True))
    if any(_hidden(rows[:, arm], seen.unsure, design) for arm in (0, 1)):
        second = math.inf
    width = high - low
    return {"shift": ((shift - low) / width).ravel(), "slope": (slope / width).ravel(), "low": low, "high": high,
            "second": second}  # fmt: skip


def effect_of_scores(
    sums: Any, noise: float, mechanism: str, scores: Mapping[str, Any], low: float, high: float, what: str
) -> Report:
    """The mean of such scores u, from the noisy sums of (u², 2u(1−u), (1−u)²) over all rows."""
    all_rows = Cells(np.asarray(sums, dtype=float), noise)
    width = float(scores["high"]) - float(scores["low"])
    effect = float(scores["low"]) + width * float(all_rows.mean)
    sampling = width**2 * float(all_rows.spread / all_rows.held)
    error, wide = _widths(width * all_rows.slopes, noise, mechanism, float(scores["second"]), sampling)
    if not all_rows.clear:
        error = wide = math.inf
    strata = len(np.asarray(scores["slope"])) // 2
    return _report(what, effect, error, wide, high - low, float(all_rows.rows), strata, 0.0)


def _hidden(rows: Floats, unsure: float, design: Floats) -> bool:
    """Whether noise hides how the rows lie in some direction of the design."""
    values, vectors = np.linalg.eigh((design.T * rows) @ design)
    deviations = unsure * np.sqrt(((design @ vectors) ** 4).sum(axis=0))
    return bool((values <= np.maximum(CLEAR * deviations, 1e-9)).any())


def _main_effects(sizes: Sequence[int]) -> Floats:
    """(strata, 1 + Σ(size − 1)): a constant, and an indicator of each value of a covariate but its first."""
    places = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=int)
    columns = [np.ones(places.shape[1])]
    columns += [(place == v).astype(float) for place, size in zip(places, sizes, strict=True) for v in range(1, size)]
    return np.stack(columns, axis=1)


def _means_of_arm(cells: Cells, arm: int, design: Floats) -> tuple[Floats, Floats]:
    whole = Cells(cells.sums[:, arm].sum(axis=0), cells.noise * math.sqrt(len(design)))
    of_total = cells.noise**2 * float(((cells.value - float(whole.mean)) ** 2).sum())
    totals = np.asarray(cells.sums[:, arm] @ cells.value)
    return smoothed(totals, cells.rows[:, arm], of_total, float(whole.spread), cells.unsure, design)


def smoothed(
    totals: Floats, rows: Floats, noise: float, spread: float, unsure: float, design: Floats
) -> tuple[Floats, Floats]:
    """The mean of each stratum, totals / rows (S,), drawn towards a linear model of its `design` (S, d), and the
    covariance that is left in them (S, S).

    `noise`: the variance of the noise of totals − mean · rows; `spread`: that of a row; `unsure`: the deviation of the
    noise of rows. The model's equations are linear in what was measured, so that noise does not bend it. A stratum
    departs from it by as much as the squares of departures show beyond what noise and rows explain.
    """
    inverse = np.linalg.pinv((design.T * rows) @ design, hermitian=True)
    line = design @ (inverse @ (design.T @ totals))
    unexplained = noise + spread * np.maximum(rows, 0.0)
    to_line = design @ inverse @ design.T
    held = np.maximum(rows, max(2 * unsure, 1.0))
    departure = (totals - line * rows) / held
    doubt = unexplained / held**2
    weights = 1 / doubt**2
    own = max(float(weights @ (departure**2 - doubt)) / float(weights.sum()), 0.0)
    kept = own / (doubt + own)
    drawn = (1 - kept)[:, None] * to_line
    return line + kept * departure, np.diag(kept * doubt) + (drawn * unexplained) @ drawn.T
