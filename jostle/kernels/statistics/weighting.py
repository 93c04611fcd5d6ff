"""Effects by augmented inverse propensity weighting, and rates of events, from noisy sums by stratum and arm.

The score of a row (Robins, Rotnitzky, Zhao 1994) is m₁ − m₀ + t(x − m₁)/e − (1 − t)(x − m₀)/(1 − e), with means m and
propensities e of its stratum. Its mean is the effect where one of both is right. Means of many strata are drawn towards
a model that is smooth in what the strata are made of.

Rates λ = exp(Xβ) of events y and exposures e solve X'(y − eλ) = 0, which is linear in released cells, so that noise
does not bias it (Poisson regression). Of proportional hazards with a level for each time, e rows at risk have y events
with the probability 1 − exp(−λ), however long a time is (Prentice and Gloeckler 1978): X'W(y − e(1 − exp(−λ))) = 0.
The covariance is I⁻¹(R + N)I⁻¹, R that of residuals and N that of the noise of what is to be 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from jostle.kernels.arrays import Column, Floats
from jostle.kernels.statistics import Report, text
from jostle.kernels.statistics.effects import Cells, report, risk_maps, shaped, widths
from jostle.kernels.statistics.moments import CLEAR, ROUNDED, ROWS_HIDDEN, deviation_of, quantile_of
from jostle.kernels.statistics.regression import coefficient_lines, coefficients


@dataclass(frozen=True, eq=False)
class Seen:
    """Noisy totals and numbers of rows of strata (S,). `noise`: the variance of the noise of totals − mean · rows;
    `spread`: that of a row; `unsure`: the deviation of the noise of rows."""

    totals: Floats
    rows: Floats
    noise: float
    spread: float
    unsure: float


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The estimated `mean` of each stratum (S,), and the `covariance` left in them (S, S).

    `departure` (S,): how far the stratum's own mean is from the model, over `divisors` rows, with noise and sampling of
    the variance `doubt`; the share 1 − `shrinkage` of it is kept. `most`: at most about the variance of departures.
    `line` (S,): the variance that the model leaves in the mean. `reach` (S,): by how much a mean moves with its own
    total.
    """

    mean: Floats
    covariance: Floats
    departure: Floats
    divisors: Floats
    doubt: Floats
    shrinkage: Floats
    most: float
    line: Floats
    reach: Floats


def smoothed(strata: Seen, design: Floats, apart: float, alone: Any = False) -> Smoothed:
    """The mean of each stratum, totals / rows (S,), drawn towards a linear model of its `design` (S, d), but for those
    that stand `alone`.

    The model's coefficients are normal beforehand, so that a stratum's mean has the variance `apart`: what noise hides
    is drawn to the mean of all, and left in doubt by as much. Its equations are linear in what was measured, so that
    noise does not bend it. A stratum departs from it by as much as the squares of departures show beyond what noise and
    rows explain.
    """
    of_all = 2 * strata.unsure * math.sqrt(len(design))
    centre = float(np.clip(strata.totals.sum() / max(float(strata.rows.sum()), of_all, 1.0), 0, 1))
    rows = np.maximum(strata.rows, 0.0)
    unexplained = np.maximum(strata.noise + strata.unsure**2 * apart + strata.spread * rows, 1e-9)
    gram = (design.T * strata.rows) @ design
    doubt_said = (design.T * unexplained) @ design
    solve = apart * gram @ np.linalg.pinv(apart * gram @ gram + doubt_said, hermitian=True)
    to_line = design @ solve @ design.T
    line = centre + to_line @ (strata.totals - centre * strata.rows)
    rest = np.eye(design.shape[1]) - solve @ gram
    of_line = design @ (apart * rest @ rest.T + solve @ doubt_said @ solve.T) @ design.T
    divisors = np.maximum(strata.rows, max(2 * strata.unsure, 1.0))
    departure = (strata.totals - line * strata.rows) / divisors
    doubt = unexplained / divisors**2
    precision = float((1 / doubt**2).sum())
    own = max(float((departure**2 / doubt**2 - 1 / doubt).sum()) / precision, 0.0)
    trust = np.where(alone, 1.0, own / (doubt + own))
    most = max(min(own + math.sqrt(2 / precision), apart), 1e-12)
    shrinkage = 1 - trust * np.clip(strata.rows / divisors, 0.0, 1.0)
    covariance = np.outer(shrinkage, shrinkage) * of_line + np.diag(shrinkage**2 * most + trust**2 * doubt)
    reach = shrinkage * np.diag(to_line) + trust / divisors
    left = shrinkage**2 * np.diag(of_line)
    return Smoothed(line + trust * departure, covariance, departure, divisors, doubt, shrinkage, most, left, reach)


def values_of(sizes: Sequence[int]) -> Floats:
    """A design of strata, (S, Σ size): an indicator of each value of each covariate, of which there are so many, over
    the root of the number of covariates. The first covariate changes slowest."""
    places = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=int)
    columns = [(place == v).astype(float) for place, size in zip(places, sizes, strict=True) for v in range(size)]
    return np.stack(columns, axis=1) / math.sqrt(len(sizes)) if columns else np.zeros((1, 0))


LEAST_SHARE = 0.1
"""Propensities are taken to be at least this, and at most 1 less it, so that no row weighs more than ten."""

APART = 0.25
"""The share of a row's variance that lies between strata, as far as noise hides it."""

SEEN = 3.0
"""Deviations of its noise that the number of rows of an arm has to be, for a model of it to say anything."""

FIRM = 10.0
"""Deviations of its noise that the number of all rows has to be, to be divided by as if it were known."""


# Scores ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scores:
    """What each row says of the effect: `shift` + `slope` · x, with the numbers of its cell (strata, 2).

    `second`: the variance of the product of errors. `unsure` (strata, 2): that of a cell's mean; a stratum's noisy
    number of treated rows has an error of the variance `noise`. `echo`: how far the sum of the scores over the very
    sums that they are made of is off, since the noise is in both. `clear`: whether both arms are clear of noise.
    """

    shift: Floats
    slope: Floats
    second: float
    unsure: Floats
    noise: float
    echo: float
    clear: bool

    @property
    def bounds(self) -> tuple[float, float]:
        ends = np.stack([self.shift, self.shift + self.slope])
        return float(ends.min()), float(ends.max())


def scores_of(strata: Cells, sizes: Sequence[float]) -> Scores:
    """The scores from noisy sums `strata` (strata, 2, numbers of a row).

    Means and propensities are estimated by main effects of the covariates, with so many values each. So is what a
    stratum says of itself beyond them, as far as noise lets it. How far both are drawn may go together, as where a
    stratum is treated more often and fares better: that product's mean is estimated too, and taken off. Where a
    propensity is too small to divide by, means are not drawn, and what is cut off of it may err one way in all strata.
    """
    design = values_of([int(size) for size in sizes])
    rows, together = strata.rows, strata.rows.sum(axis=1)
    part = float(np.clip(rows[:, 1].sum() / max(together.sum(), 1.0), LEAST_SHARE, 1 - LEAST_SHARE))
    of_treated = strata.unsure**2 * (part**2 + (1 - part) ** 2)
    spread = part * (1 - part)
    treated = smoothed(
        Seen(rows[:, 1], together, of_treated, spread, strata.unsure * math.sqrt(2)), design, APART * spread
    )
    share = np.clip(treated.mean, LEAST_SHARE, 1 - LEAST_SHARE)
    cut = np.abs(treated.mean - share)
    rare = (treated.mean > 1 - LEAST_SHARE, treated.mean < LEAST_SHARE)
    arms = [_means_of_arm(strata, arm, design, rare[arm]) for arm in (0, 1)]
    means = np.clip(np.stack([arm.mean for arm in arms], axis=1), 0.0, 1.0)
    slope = np.stack([-1 / (1 - share), 1 / share], axis=1)
    weights = np.maximum(together, 0.0)
    parts = weights / max(float(weights.sum()), 1e-300)
    bias = second = echo = 0.0
    for arm, sign in ((0, -1.0), (1, 1.0)):
        mean, own = arms[arm], share if arm else 1 - share
        pull, unsure = parts / own, np.diag(mean.covariance)
        shared = strata.noise**2 * (strata.value[:, None] - means[:, arm]).sum(axis=0)
        common, doubt = _together(treated, mean, sign * (1 - own) * shared)
        shrinkage = float(pull @ (treated.shrinkage * mean.shrinkage))
        bias += shrinkage * common
        second += float(pull @ (treated.covariance * mean.covariance) @ pull) + shrinkage**2 * doubt
        second += float(pull @ (cut * np.sqrt(unsure))) ** 2
        second += float(pull @ np.sqrt(treated.line * mean.line)) ** 2 / 3  # a correlation of anything from −1 to 1
        again = np.clip(1 - rows[:, arm] * mean.reach, 0.0, 1.0) * treated.reach / own
        echo -= sign * float((shared * (1 / own - 1) * (mean.reach + again)).sum())
    shift = (means[:, 1] - means[:, 0])[:, None] - slope * means - bias
    doubts = np.stack([np.diag(arm.covariance) for arm in arms], axis=1)
    both = Cells(strata.sums.sum(axis=0), strata.noise * math.sqrt(len(design)))
    return Scores(shift, slope, second, doubts, of_treated, echo, bool((both.rows > SEEN * both.unsure).all()))


def _means_of_arm(cells: Cells, arm: int, design: Floats, rare: NDArray[np.bool_]) -> Smoothed:
    whole = Cells(cells.sums[:, arm].sum(axis=0), cells.noise * math.sqrt(len(design)))
    of_total = cells.noise**2 * float(((cells.value - float(whole.mean)) ** 2).sum())
    totals = np.asarray(cells.sums[:, arm] @ cells.value)
    spread = float(whole.spread) if bool(whole.clear) else 0.25
    return smoothed(Seen(totals, cells.rows[:, arm], of_total, spread, cells.unsure), design, APART * spread, rare)


def _together(treated: Smoothed, mean: Smoothed, shared: Floats) -> tuple[float, float]:
    """The mean product over strata of how far two numbers depart from their models, and its variance.

    `shared` (S,): the covariance of the noise of the two numbers times rows. Beforehand their correlation is anything
    from −1 to 1.
    """
    product = treated.departure * mean.departure - shared / (treated.divisors * mean.divisors)
    weights = 1 / ((treated.most + treated.doubt) * (mean.most + mean.doubt))
    of_noise, before = 1 / float(weights.sum()), treated.most * mean.most / 3
    trust = before / (before + of_noise)
    return trust * of_noise * float(weights @ product), trust * of_noise


# Effects -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Part:
    """An effect (of x) that one measurement says.

    `moved`: its slopes in the noisy sums, times their noise; `sampling`, and `second` for products of errors of this
    measurement alone: what else its variance is made of. `firm`: whether there are far more rows than noise could be.
    """

    effect: float
    moved: Floats
    sampling: float
    second: float
    firm: bool

    @property
    def noise(self) -> float:
        return float((self.moved**2).sum()) + self.second


def effect_of_model(
    sums: object, cells: int, noise: float, mechanism: str, low: float, high: float, what: str, sizes: Sequence[float]
) -> Annotated[Report, "effect error low high strata left_out"]:
    """The mean of the scores over the rows that made them, from the noisy sums of each of the `cells` alone."""
    strata = Cells(shaped(sums, cells), noise)
    scores = scores_of(strata, sizes)
    return _of_parts([_of_cells(scores, strata)], scores, mechanism, high - low, what, strata)


def effect_scores(sums: object, cells: int, noise: float, sizes: Sequence[float]) -> dict[str, object]:
    """What each row is to give to a weighted effect: x times `slope` plus `shift` of its cell, between 0 and 1."""
    scores = scores_of(Cells(shaped(sums, cells), noise), sizes)
    low, high = scores.bounds
    width = high - low
    return {"shift": ((scores.shift - low) / width).ravel(), "slope": (scores.slope / width).ravel()}


def effect_of_scores(
    sums: object, noise: float, first: object, first_noise: float, cells: int, mechanism: str, low: float, high: float,
    what: str, sizes: Sequence[float],
) -> Annotated[Report, "effect error low high strata left_out"]:  # fmt: skip
    """The mean of scores u that were made of `first`, from the noisy sums of (u², 2u(1−u), (1−u)²) over all rows and
    from `first` itself, each by how little noise it has."""
    strata = Cells(shaped(first, cells), first_noise)
    scores = scores_of(strata, sizes)
    least, most = scores.bounds
    width = most - least
    all_rows = Cells(np.asarray(sums, dtype=float), noise)
    sampling = width**2 * float(all_rows.spread / all_rows.divisors)
    firm = bool(all_rows.rows > max(FIRM * all_rows.unsure, 2.0))
    whole = Part(least + width * float(all_rows.mean), noise * width * all_rows.slopes, sampling, 0.0, firm)
    return _of_parts([whole, _of_cells(scores, strata)], scores, mechanism, high - low, what, all_rows)


def _of_cells(scores: Scores, strata: Cells) -> Part:
    """The mean of scores over the rows that made them, from the same sums: linear in these, but for what is an echo."""
    rows = float(strata.rows.sum())
    if not rows > max(FIRM * strata.unsure * math.sqrt(strata.rows.size), 2.0):
        return Part(0.0, np.zeros(1), 0.0, 0.0, False)
    first, squares = strata.sums @ strata.value, strata.sums @ strata.square
    effect = (float((scores.shift * strata.rows + scores.slope * first).sum()) - scores.echo) / rows
    away, slope = scores.shift - effect, scores.slope
    sampling = float((away**2 * strata.rows + 2 * away * slope * first + slope**2 * squares).sum()) / rows**2
    slopes = (away[..., None] + slope[..., None] * strata.value) / rows
    second = scores.noise * float((slope**2 * scores.unsure).sum()) / rows**2
    return Part(effect, strata.noise * slopes, max(sampling, 0.0), second, True)


def _of_parts(parts: list[Part], scores: Scores, mechanism: str, unit: float, what: str, rows: Cells) -> Report:
    """What independent measurements say of the same effect, each weighed by the inverse of its noise's variance."""
    strata, count = len(scores.slope), float(rows.rows.sum())
    firm = [part for part in parts if part.firm and scores.clear]
    if not firm:
        return report(what, 0.0, math.inf, math.inf, unit, count, strata, 0.0)
    weights = np.array([1 / max(part.noise, 1e-30) for part in firm])
    weights /= weights.sum()
    effect = float(weights @ [part.effect for part in firm])
    slopes = np.concatenate([weight * part.moved.ravel() for weight, part in zip(weights, firm, strict=True)])
    second = scores.second + float(weights**2 @ [part.second for part in firm])
    error, wide = widths(slopes, 1.0, mechanism, second, firm[0].sampling)
    return report(what, effect, error, wide, unit, count, strata, 0.0)


# Rates -------------------------------------------------------------------------------------------

ALL_BUT = 0.95
"""The largest share of the rows at risk that may have the event at a time: where all do, nothing is compared."""


def hazard_model(
    times: Sequence[float], columns: Sequence[Column], cells: Floats, late: float
) -> Annotated[Report, "coefficients count"]:
    """Log hazard ratios of columns, from noisy counts (times + 1, 2, strata): a level for each time beside."""
    m, k = len(times), math.prod(len(c["values"]) for c in columns)
    counts = np.asarray(cells, dtype=float).reshape((m + 1) * 2, k)
    spread, quantile = deviation_of(cells)
    to_events, to_risks = risk_maps(m, late)
    names, design = _design(columns)
    x = np.concatenate([np.kron(np.eye(m), np.ones((k, 1))), np.kron(np.ones((m, 1)), design)], axis=1)
    y, e = (np.asarray(to @ counts).ravel() for to in (to_events, to_risks))
    risk = to_risks @ counts.sum(axis=1)
    unsure = CLEAR * spread * math.sqrt(k) * np.linalg.norm(to_risks, axis=1)
    events = np.asarray(to_events @ counts).sum(axis=1)
    fits = (events > 0) & (events < ALL_BUT * risk) & (risk > np.maximum(unsure, 1.0))  # others have no level
    some = np.repeat(fits, k)
    x = x[some][:, np.concatenate([fits, np.ones(design.shape[1], dtype=bool)])]

    def noise(of_y: Floats, of_e: Floats) -> Floats:
        parts = [to_events[fits].T @ of_y[i::k] - to_risks[fits].T @ of_e[i::k] for i in range(k)]
        return spread**2 * np.asarray(sum(part.T @ part for part in parts))

    fit = _log_linear(x, y[some], e[some], noise, None, _grouped)
    keep = int(fits.sum())
    lines = _rate_lines(names, fit, slice(keep, None), quantile, np.zeros(len(names)))
    whole = float(counts.sum())
    return Report(f"log hazard ratios: {max(whole, 0):.0f} rows", lines, [ROWS_HIDDEN] if fit[2] else [],
                  {"coefficients": coefficients(lines), "count": whole})  # fmt: skip


def rate_model(
    columns: Sequence[Column], shares: Mapping[str, Any], low: float, high: float, what: str
) -> Annotated[Report, "coefficients count"]:
    """Log rates of a number within public bounds, from the noisy shares of each stratum."""
    names, design = _design(columns)
    sums, spread = np.asarray(shares["sums"], dtype=float).reshape(len(design), -1), float(shares["noise"])
    one, square = (np.array(v) for v in (((1, 0.5, 0), (1, 0, 0)) if sums.shape[1] == 3 else ((1, 0), (1, 0))))
    to_y, to_squares = low + (high - low) * one, low**2 + 2 * low * (high - low) * one + (high - low) ** 2 * square
    y, e, squares = sums @ to_y, sums.sum(axis=1), sums @ to_squares
    x = np.concatenate([np.ones((len(design), 1)), design], axis=1)

    def noise(of_y: Floats, of_e: Floats) -> Floats:
        parts = [of_y * value - of_e for value in to_y]
        return spread**2 * np.asarray(sum(part.T @ part for part in parts))

    fit = _log_linear(x, y, e, noise, lambda rates: squares - 2 * rates * y + rates**2 * e)
    information = (x.T * (e * np.exp(np.clip(x @ fit[0], -40, 40)))) @ x
    off = (high - low) / 2 * ROUNDED if len(one) == 3 else 0.0
    rounded = np.abs(np.linalg.pinv(information, hermitian=True) @ x.T) @ np.abs(e) * off
    lines = _rate_lines(["intercept", *names], fit, slice(0, None), quantile_of(shares["mechanism"]), rounded)
    return Report(f"log of mean {what}: {max(float(e.sum()), 0):.0f} rows", lines, [ROWS_HIDDEN] if fit[2] else [],
                  {"coefficients": coefficients(lines), "count": float(e.sum())})  # fmt: skip


def _design(columns: Sequence[Column]) -> tuple[list[str], Floats]:
    """A row for each combination of values, the first column slowest: numbers as they are, a category as an indicator
    for each of its values but the first."""
    names: list[str] = []
    levels: list[list[list[float]]] = []
    for column in columns:
        values = list(column["values"])
        if column["number"]:
            names.append(str(column["name"]))
            levels.append([[float(v)] for v in values])
        else:
            names += [f"{column['name']} = {text(v)}" for v in values[1:]]
            levels.append([[float(v == other) for other in values[1:]] for v in values])
    return names, np.array([[v for part in row for v in part] for row in product(*levels)])


Fit = tuple[Floats, Floats, bool, Floats]
Covariance = Callable[[Floats, Floats], Floats]
Law = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""Of logarithms of rates: the mean of an event for one row, its slope, and the weight of its equation."""


def _poisson(eta: Floats) -> tuple[Floats, Floats, Floats]:
    rates = np.exp(np.clip(eta, -40, 40))
    return rates, rates, np.ones_like(rates)


def _grouped(eta: Floats) -> tuple[Floats, Floats, Floats]:
    """Of an event that has come by the end of a time: the weight is that of the largest likelihood."""
    rates = np.exp(np.clip(eta, -40, 4))
    chance = -np.expm1(-rates)
    return chance, rates * np.exp(-rates), rates / chance


def _log_linear(
    x: Floats, y: Floats, e: Floats, covariance: Covariance, residuals: Callable[[Floats], Floats] | None,
    law: Law = _poisson,
) -> Fit:  # fmt: skip
    """β of X'W(y − e·mean(Xβ)) = 0 by scoring, what noise adds, whether noise hides it, and what sampling adds.

    `covariance(A, B)` is that of the noise in A'y − B'e; `residuals` the sums of (y − mean)², the law's own if none.
    """
    p = x.shape[1]
    beta, lost = np.zeros(p), True
    one, none = np.ones((len(x), 1)), np.zeros((len(x), 1))
    noise = [math.sqrt(max(0.0, float(covariance(*of).item()))) for of in ((one, none), (none, one))]
    if p == 0 or y.sum() <= 3 * noise[0] or e.sum() <= 3 * noise[1]:
        return beta, np.eye(p), True, np.eye(p)
    beta = np.linalg.lstsq(x, np.full(len(x), math.log(y.sum() / e.sum())), rcond=None)[0]
    for _ in range(100):
        mean, slope, weight = law(x @ beta)
        steep = (x.T * (np.maximum(e, 0.0) * slope * weight)) @ x
        step = np.linalg.lstsq(steep + 1e-12 * np.eye(p), x.T @ (weight * (y - e * mean)), rcond=None)[0]
        reach = float(np.abs(x @ step).max())
        beta = beta + step * min(1.0, 2.0 / max(reach, 1e-300))
        if reach < 1e-9:
            lost = False
            break
    mean, slope, weight = law(x @ beta)
    weighted = x * weight[:, None]
    information = (weighted.T * (e * slope)) @ x
    scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    along = ((x / scale) @ vectors) ** 2 * (slope * weight)[:, None]
    unsure = np.sqrt(np.diag(covariance(np.zeros_like(along), along)))
    lost = lost or bool((values <= np.maximum(CLEAR * unsure, 1e-9)).any())
    inverse = np.linalg.pinv(information, hermitian=True)
    spread = information if residuals is None else (x.T * np.maximum(residuals(mean), 0.0)) @ x
    added = covariance(weighted, weighted * mean[:, None])
    return beta, inverse @ added @ inverse, lost, inverse @ spread @ inverse


def _rate_lines(names: Sequence[str], fit: Fit, of: slice, quantile: float, rounded: Floats) -> list[dict[str, object]]:
    beta, noise, lost, sampling = fit
    terms, both = [(name, "") for name in names], (noise[of, of], sampling[of, of])
    lines = coefficient_lines(terms, beta[of], *both, quantile, lost, rounded)
    return [line | {"ratio": math.exp(min(line["value"], 700.0))} for line in lines]
