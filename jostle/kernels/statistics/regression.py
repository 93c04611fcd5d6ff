"""Linear and logistic regression from released sums, in the columns' own units, and correlations.

Each coefficient has `error`, the 95 % half-width of the noise alone (how far the answer may be from that of the same
rows without noise), and `low` and `high`, 95 % bounds for the law that the rows are a sample of: noise and sampling
together.

Rates λ = exp(Xβ) of events y and exposures e solve X'(y − eλ) = 0, which is linear in released cells, so that noise
does not bias it (Poisson regression; with a level for each time and exposures of the rows at risk, proportional
hazards as piecewise exponential ones: Holford 1980, Laird and Olivier 1981). The covariance is I⁻¹(R + N)I⁻¹, R
that of residuals and N that of the noise of X'(y − eλ).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Annotated, Any, TypedDict

import numpy as np

from jostle.kernels.arrays import Column, Floats, Moments, Sums
from jostle.kernels.statistics import Report, text
from jostle.kernels.statistics.effects import risk_maps
from jostle.kernels.statistics.moments import (
    CLEAR,
    ROUNDED,
    ROWS_HIDDEN,
    SAMPLING,
    SecondMoments,
    deviation_of,
    hidden,
    least_squares,
    quantile_of,
    rounded_by,
    second_moments,
)

HIDDEN = "the noise hides how these columns go together: the intervals are infinite; spend more, or use fewer columns"
HIDES = (
    "the noise hides how far `{}` spreads beside the other columns: the intervals are infinite; spend more, describe "
    "numbers more narrowly, or leave it out"
)


class Curvature(TypedDict):
    """A symmetric matrix of sums, and the deviation of the noise in each entry."""

    matrix: Floats
    noise: Floats


def linear_fit(
    design: Sequence[Column], moments: Moments, radius: float
) -> Annotated[Report, "coefficients r_squared count"]:
    """Least squares of the last term of a design by the others, from released second moments."""
    m = second_moments(design, moments, radius)
    d = len(m.names)
    fit = least_squares(m, range(d), d)
    turn, shift = _to_units(m)
    value = turn @ fit.coefficients + shift
    noise, sampling = (turn @ part @ turn.T for part in (fit.noise, fit.sampling))
    rounded = rounded_by(turn, fit.inverse, 0, fit.off)
    rows = _lines([("intercept", ""), *_terms(design[:-1])], value, noise, sampling, m.quantile, fit.hidden, rounded)
    title = f"{m.names[-1]} by linear regression: {max(m.rows, 0):.0f} rows, R² {fit.explained:.3f}"
    facts = coefficients(rows) | {"r_squared": fit.explained, "count": m.rows}
    notes = [_hides(design, m.sums[:d, :d], m.noise[:d, :d], 0)] if fit.hidden else []
    return Report(title, rows, notes, facts)


def _hides(design: Sequence[Column], sums: Floats, noise: Floats, constant: int) -> str:
    """The note that names the term which is the least clear of its noise, given the others and the constant."""
    own = 1 / np.maximum(np.abs(np.diag(np.linalg.pinv(sums, hermitian=True))), 1e-300)
    clear = np.delete(own / np.maximum(np.diag(noise), 1e-300), constant)
    return HIDES.format(design[int(np.argmin(clear))]["name"])


def _to_units(m: SecondMoments) -> tuple[Floats, Floats]:
    """The map from coefficients of (1, z) to those of (1, x), of y in its own units: turn · β + shift."""
    scale, centre = m.scales[:-1], m.centres[:-1]
    unit = m.scales[-1]
    turn = np.diag(np.append(unit, unit / scale))
    turn[0, 1:] = -unit * centre / scale
    shift = np.zeros(len(turn))
    shift[0] = m.centres[-1]
    return turn, shift


def _terms(design: Sequence[Column]) -> list[tuple[str, str]]:
    return [(str(term["name"]), str(term.get("value", ""))) for term in design]


def _lines(
    names: Sequence[tuple[str, str]], value: Floats, noise: Floats, sampling: Floats, quantile: float, lost: bool,
    rounded: Floats, short: float = 0.0,
) -> list[dict[str, Any]]:  # fmt: skip
    """A line for each coefficient, off by `rounded` beside, and by so many sampling deviations as `short` says."""
    rows = []
    for i, (name, level) in enumerate(names):
        spread = math.sqrt(max(float(sampling[i, i]), 0.0))
        noisy = quantile * math.sqrt(max(float(noise[i, i]), 0.0)) + float(rounded[i])
        error = math.inf if lost else noisy + short * spread
        wide = math.inf if lost else math.hypot(noisy, SAMPLING * spread) + short * spread
        at = float(value[i])
        rows.append({
            "term": f"{name} = {level}" if level else name, "value": at, "error": error, "low": at - wide,
            "high": at + wide,
        })  # fmt: skip
    return rows


def coefficients(rows: Sequence[Mapping[str, object]]) -> dict[str, object]:
    return {"coefficients": {row["term"]: row["value"] for row in rows}}


# Correlation -------------------------------------------------------------------------------------


def correlations(design: Sequence[Column], moments: Moments, radius: float) -> Annotated[Report, "matrix names count"]:
    """The correlation of each pair of columns; intervals by Fisher's z, to which the noise is added by first order."""
    m = second_moments(design, moments, radius)
    n, d = m.rows, len(m.names)
    matrix = np.eye(d)
    rows = []
    for i, j in combinations(range(d), 2):
        places = [0, i + 1, j + 1]
        value, wobble = _correlation(m.sums[np.ix_(places, places)], m.noise[np.ix_(places, places)])
        if value is None:
            rows.append(_pair(m.names, i, j, None, math.inf, -1.0, 1.0))
            matrix[i, j] = matrix[j, i] = math.nan
            continue
        spread = np.sqrt(np.maximum(np.diag(m.sums)[places] / n - (m.sums[0, places] / n) ** 2, 1e-300))[1:]
        error = m.quantile * wobble + m.rounded * float((1 / spread).sum()) / math.sqrt(1 - value**2)
        wide = math.hypot(error, SAMPLING / math.sqrt(max(n - 3, 1.0)))
        low, high = (math.tanh(math.atanh(value) + side * wide) for side in (-1, 1))
        rows.append(_pair(m.names, i, j, value, error * (1 - value**2), low, high))
        matrix[i, j] = matrix[j, i] = value
    notes = ["low and high are for columns of a normal law: with long tails they are too narrow"]
    notes += [HIDDEN] if any(row["correlation"] is None for row in rows) else []
    title = f"correlation: {max(n, 0):.0f} rows"
    return Report(title, rows, notes, {"matrix": matrix, "names": list(m.names), "count": n})


def _pair(
    names: Sequence[str], i: int, j: int, value: float | None, error: float, low: float, high: float
) -> dict[str, object]:
    return {"x": names[i], "y": names[j], "correlation": value, "error": error, "low": low, "high": high}


def _correlation(sums: Floats, noise: Floats) -> tuple[float | None, float]:
    """The correlation of two coordinates, and the deviation of the noise in its Fisher transform.

    None where noise hides how far one of them spreads.
    """
    if any(hidden(sums[np.ix_(p, p)], noise[np.ix_(p, p)]) for p in ([0, 1], [0, 2])):
        return None, math.inf
    value = _of(sums)
    variance = 0.0
    for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (2, 2), (1, 2)):
        step = 1e-5 * max(float(sums[0, 0]), 1.0)
        ends = []
        for side in (-1, 1):
            other = sums.copy()
            other[i, j] += side * step
            other[j, i] = other[i, j]
            ends.append(_of(other))
        slope = (ends[1] - ends[0]) / (2 * step)
        variance += (slope * float(noise[i, j])) ** 2
    value = min(max(value, -1 + 1e-9), 1 - 1e-9)
    return value, math.sqrt(variance) / (1 - value**2)


def _of(sums: Floats) -> float:
    mean = sums[0, 1:] / sums[0, 0]
    spread = sums[1:, 1:] / sums[0, 0] - np.outer(mean, mean)
    return float(spread[0, 1] / math.sqrt(max(float(spread[0, 0] * spread[1, 1]), 1e-300)))


# Logistic regression -------------------------------------------------------------------------------

LARGEST_MARGIN = 12.0
"""Log-odds of rows: their root mean square is kept within this. An optimum beyond it is none: values are separated."""

LARGEST_STEP = 3.0
"""Log-odds, likewise, that one step may change."""

LARGEST_WEIGHT = 2.0**20
"""Of a column in units of the longest row, which is kept to 2^-14 of them."""

LARGEST_STRETCH = 2.0
"""Of the first step, which falls short of the optimum."""

SEPARATED = (
    "the steps did not come to an end: these columns tell the two values apart (nearly) without error, or the noise "
    "hides whether they do: the intervals are infinite; spend more, or use fewer columns"
)

FEW = (
    "the noise hides the curvature at these weights, to which few rows add: one of the two values is rare, or these "
    "columns nearly tell them apart; the intervals are infinite; spend more, or use fewer columns"
)

UNSETTLED = "the steps had not come to an end: `error` is more of what they may still leave than of noise"


def logistic_curvature_matrix(moments: Moments, factor: float = 0.25) -> Curvature:
    """Σγ·uuᵀ · factor over u = (x, 1), the constant in the last place, and the deviation of the noise in each entry.

    From moments of rows whose last coordinate is the target.
    """
    first, second = np.asarray(moments["first"])[0], np.asarray(moments["second"])[0]
    matrix, noise = second.copy(), np.full(second.shape, float(moments["second_noise"]))
    matrix[-1, :] = matrix[:, -1] = first
    noise[-1, :] = noise[:, -1] = moments["first_noise"]
    matrix[-1, -1], noise[-1, -1] = moments["count"][0], moments["count_noise"]
    return {"matrix": matrix * factor, "noise": noise * factor}


def logistic_start(curvature: Curvature, gradient: Sums) -> Floats:
    """The first weights, from sums at weights of 0: a step from the log-odds of the share, stretched to what it were
    if log-odds were normal.

    At weights (0, …, 0, b) all rows have the probability p = 1 / (1 + e^−b), so that sums at weights of 0 say those
    there: the curvature is 4p(1 − p) of theirs, and the gradient is larger by (p − ½)Σu. With the share of the rows for
    p it is near the optimum also where events are rare; a step from 0 would go no further than log-odds of ±2.

    Newton's first step is least squares, whose slopes fall short of the optimum the more, the better the two values are
    told apart: where log-odds are normal by E[σ′] / σ′(b). As others are not normal, it is stretched by
    `LARGEST_STRETCH` at most: from too short weights Newton's steps come nearer, from too long ones they may not.
    """
    matrix = np.asarray(curvature["matrix"], dtype=float)
    noise = np.asarray(curvature["noise"], dtype=float)
    many = max(4 * float(matrix[-1, -1]), 1.0)
    sums = np.asarray(gradient["sum"], dtype=float)
    rare = min(0.5, 2 * float(gradient["noise"]) / many + 1e-9)  # noise hides shares below
    p = min(max(0.5 - float(sums[-1]) / many, rare), 1 - rare)
    weights = np.append(np.zeros(len(matrix) - 1), math.log(p / (1 - p)))
    slope = 4 * p * (1 - p)
    there: Sums = {"sum": sums + (p - 0.5) * 4 * matrix[-1], "noise": gradient["noise"]}
    weights = logistic_step(weights, {"matrix": matrix * slope, "noise": noise * slope}, there, curvature)
    share = matrix / max(float(matrix[-1, -1]), 0.25)
    middle = float(share[-1, :-1] @ weights[:-1])
    spread = math.sqrt(max(float(weights[:-1] @ share[:-1, :-1] @ weights[:-1]) - middle**2, 0.0))
    low, high = 1.0, LARGEST_STRETCH
    for _ in range(40):
        stretch = (low + high) / 2
        short = stretch * 4 * _mean_slope(middle + weights[-1], stretch * spread) < slope
        low, high = (stretch, high) if short else (low, stretch)
    stretched = np.append(weights[:-1] * low, weights[-1] + (1 - low) * middle)
    return np.asarray(np.clip(stretched, -LARGEST_WEIGHT, LARGEST_WEIGHT))


def _mean_slope(middle: float, spread: float) -> float:
    """E[σ′(m)] of normal log-odds m."""
    places, shares = np.polynomial.hermite_e.hermegauss(21)
    odds = 1 / (1 + np.exp(-np.clip(middle + spread * places, -500, 500)))
    return float(shares @ (odds * (1 - odds)) / shares.sum())


def logistic_step(weights: object, curvature: Curvature, gradient: Sums, rows: Curvature) -> Floats:
    """One step of Newton's method with noisy sums; `rows` is the curvature at weights of 0, a moment of all rows.

    Where curvature is less than its noise it is taken to be that noise. No privacy rests on how long a step is.
    """
    values, vectors = _above_noise(curvature)
    step = -vectors @ ((vectors.T @ np.asarray(gradient["sum"], dtype=float)) / values)
    return _within(np.asarray(weights, dtype=float), step, rows)[0]


def _within(weights: Floats, step: Floats, rows: Curvature) -> tuple[Floats, bool]:
    """Weights and a step, and whether either was too long and was cut."""
    after = weights + step * min(1.0, LARGEST_STEP / max(_log_odds(step, rows), 1e-300))
    after *= min(1.0, LARGEST_MARGIN / max(_log_odds(after, rows), 1e-300))
    after = np.clip(after, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    return after, bool((np.abs(after - weights - step) > 1e-9 * np.abs(step)).any())


def _above_noise(curvature: Curvature) -> tuple[Floats, Floats]:
    """Eigenvalues, none below about its noise, and eigenvectors."""
    matrix, noise = (np.asarray(curvature[k], dtype=float) for k in ("matrix", "noise"))
    values, vectors = np.linalg.eigh(matrix)
    floor = max(2.0 * float(noise.max()) * math.sqrt(len(matrix)), 1e-9 * float(np.abs(values).max(initial=0.0)), 1e-12)
    return np.maximum(values, floor), vectors


def _log_odds(weights: Floats, rows: Curvature) -> float:
    """The root mean square of weights · u over the rows, of which `rows` has a moment; at least that."""
    values, vectors = _above_noise(rows)
    return math.sqrt(float(values @ (vectors.T @ weights) ** 2) / max(float(np.asarray(rows["matrix"])[-1, -1]), 0.25))


def logistic_fit(
    design: Sequence[Column], target: str, weights: object, curvature: Curvature,
    gradient: Sums, rows: Curvature, radius: float, mechanism: str,
) -> Annotated[Report, "coefficients count"]:  # fmt: skip
    """The last step, and what noise and sampling leave open: (matrix)⁻¹ times the noise of the gradient, and itself.

    What the steps may still be short of is added to both. Where Δ leads to the optimum, a step leaves half of
    H⁻¹Σσ″(m)(Δ·u)²u of it, |σ″| ≤ σ′ at any log-odds m: of a coefficient at most √(Σσ′(Δ·u)⁴) / 2 of its sampling
    deviations, √Σσ′·q² with the mean square q² = Δ'HΔ/Σσ′ of Δ·u, where its fourth moment is 4q⁴ (3q⁴ for the normal).
    The step is Δ but for what it leaves, and for noise, whose share in q² is taken off. What rows are rounded by is
    `rounded_by`.
    """
    matrix, noise = (np.asarray(curvature[k], dtype=float) for k in ("matrix", "noise"))
    inverse = np.linalg.pinv(matrix, hermitian=True)
    lost = hidden(matrix, noise)
    before = np.asarray(weights, dtype=float)
    final, cut = _within(before, -inverse @ np.asarray(gradient["sum"], dtype=float), rows)
    if lost:
        final = logistic_step(weights, curvature, gradient, rows)
    step = final - before
    spread = noise**2 * np.outer(step, step)  # the noise of the matrix moves the last step as that of least squares
    np.fill_diagonal(spread, 0.0)
    spread += np.diag(float(gradient["noise"]) ** 2 + noise**2 @ step**2)
    weight = max(float(matrix[-1, -1]), 0.25)
    q = math.sqrt(max(float(step @ matrix @ step) - float(np.sum(inverse * spread)), 0.0) / weight)
    short = math.sqrt(weight) * (q * (1 + q)) ** 2
    many = 4 * float(np.asarray(rows["matrix"])[-1, -1])
    off = ROUNDED * float(np.abs(final[:-1]).sum()) * math.sqrt(weight), ROUNDED * math.sqrt(max(many, 0.0) * weight)
    centres, scales = (np.array([float(term[k]) for term in design]) for k in ("centre", "scale"))
    turn = np.zeros((len(final), len(final)))  # to (intercept, slopes) of the columns in their own units
    turn[0, -1] = 1.0
    turn[0, :-1] = -centres / scales / radius
    turn[1:, :-1] = np.diag(1 / scales / radius)
    rounded = rounded_by(turn, inverse, -1, off)
    lines = _lines(
        [("intercept", ""), *_terms(design)], turn @ final, turn @ (inverse @ spread @ inverse) @ turn.T,
        turn @ inverse @ turn.T, quantile_of(mechanism), lost or cut, rounded, short,
    )  # fmt: skip
    for line in lines:
        line["odds"] = math.exp(min(line["value"], 700.0))
    title = f"log-odds of {target} by logistic regression: {max(many, 0):.0f} rows"
    clear = not hidden(np.asarray(rows["matrix"], dtype=float), np.asarray(rows["noise"], dtype=float))
    notes = (
        [FEW if clear else _hides(design, matrix, noise, -1)]
        if lost
        else [SEPARATED]
        if cut
        else [UNSETTLED] * (short > 1)
    )
    return Report(title, lines, notes, coefficients(lines) | {"count": many})


# Several classes, by gradients of samples -----------------------------------------------------------

PACE, KEEPS = 6.0, 0.9
"""The first step by a mean gradient, from where steps fall to none, and what of a step goes on in the next."""


def softmax_start(classes: float, terms: float) -> dict[str, list[list[float]]]:
    """Weights of 0, of each class a list with the constant last, and no step before."""
    zeros = np.zeros((int(classes), int(terms))).tolist()
    return {"weights": zeros, "step": zeros}


def softmax_step(
    state: Mapping[str, list[list[float]]], gradient: Sums, rows: float, done: float
) -> dict[str, list[list[float]]]:
    """Down the noisy gradient of a sample of about so many rows; `done` is the share of all steps that are over."""
    weights, before = (np.asarray(state[k], dtype=float) for k in ("weights", "step"))
    mean = np.asarray(gradient["sum"], dtype=float).reshape(weights.shape) / max(float(rows), 1.0)
    step = KEEPS * before - PACE * (1 - done) * mean
    after = np.clip(weights + step, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    return {"weights": after.tolist(), "step": step.tolist()}


def softmax_fit(
    design: Sequence[Column], target: str, classes: Sequence[object], weights: object, radius: float
) -> Annotated[Report, "classes"]:
    """The log-odds of each class as lines, in the units of the columns: of which only differences say something."""
    matrix = np.asarray(weights, dtype=float)
    matrix = matrix - matrix.mean(axis=0)
    slopes = matrix[:, :-1] / np.array([float(term["scale"]) for term in design]) / radius
    constants = matrix[:, -1] - slopes @ np.array([float(term["centre"]) for term in design])
    names = [("intercept", ""), *_terms(design)]
    lines = [
        {"class": kind, "column": column, "of": value, "value": float(number)}
        for kind, numbers in zip(classes, np.column_stack([constants, slopes]), strict=True)
        for (column, value), number in zip(names, numbers, strict=True)
    ]
    return Report(f"log-odds of {target} among {len(classes)} classes", lines, (), {"classes": list(classes)})


# Rates -------------------------------------------------------------------------------------------


def hazard_model(
    times: Sequence[float], columns: Sequence[Column], cells: Floats, late: float
) -> Annotated[Report, "coefficients count"]:
    """Log hazard ratios of columns, from noisy counts (times + 1, 2, strata): a level for each time beside."""
    m, k = len(times), math.prod(len(c["values"]) for c in columns)
    counts = np.asarray(cells, dtype=float).reshape((m + 1) * 2, k)
    spread, quantile = deviation_of(cells)
    to_events, to_risks = risk_maps(m, late)
    to_exposure = to_risks - to_events / 2  # events come half-way
    names, design = _design(columns)
    x = np.concatenate([np.kron(np.eye(m), np.ones((k, 1))), np.kron(np.ones((m, 1)), design)], axis=1)
    y, e = (np.asarray(to @ counts).ravel() for to in (to_events, to_exposure))
    risk = to_risks @ counts.sum(axis=1)
    unsure = CLEAR * spread * math.sqrt(k) * np.linalg.norm(to_risks, axis=1)
    fits = (np.asarray(to_events @ counts).sum(axis=1) > 0) & (risk > np.maximum(unsure, 1.0))  # others have no level
    some = np.repeat(fits, k)
    x = x[some][:, np.concatenate([fits, np.ones(design.shape[1], dtype=bool)])]

    def noise(of_y: Floats, of_e: Floats) -> Floats:
        parts = [to_events[fits].T @ of_y[i::k] - to_exposure[fits].T @ of_e[i::k] for i in range(k)]
        return spread**2 * np.asarray(sum(part.T @ part for part in parts))

    fit = _log_linear(x, y[some], e[some], noise, None)
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


def _log_linear(
    x: Floats, y: Floats, e: Floats, covariance: Covariance, residuals: Callable[[Floats], Floats] | None
) -> Fit:
    """β of X'(y − e·exp(Xβ)) = 0 by Newton's method, what noise adds, whether noise hides it, and what sampling adds.

    `covariance(A, B)` is that of the noise in A'y − B'e; `residuals` the sums of (y − λ)², Poisson's law if none.
    """
    p = x.shape[1]
    beta, lost = np.zeros(p), True
    one, none = np.ones((len(x), 1)), np.zeros((len(x), 1))
    noise = [math.sqrt(max(0.0, float(covariance(*of).item()))) for of in ((one, none), (none, one))]
    if p == 0 or y.sum() <= 3 * noise[0] or e.sum() <= 3 * noise[1]:
        return beta, np.eye(p), True, np.eye(p)
    beta = np.linalg.lstsq(x, np.full(len(x), math.log(y.sum() / e.sum())), rcond=None)[0]
    for _ in range(100):
        rates = np.exp(np.clip(x @ beta, -40, 40))
        steep = (x.T * (np.maximum(e, 0.0) * rates)) @ x
        step = np.linalg.lstsq(steep + 1e-12 * np.eye(p), x.T @ (y - e * rates), rcond=None)[0]
        reach = float(np.abs(x @ step).max())
        beta = beta + step * min(1.0, 2.0 / max(reach, 1e-300))
        if reach < 1e-9:
            lost = False
            break
    rates = np.exp(np.clip(x @ beta, -40, 40))
    information = (x.T * (e * rates)) @ x
    scale = np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    along = ((x / scale) @ vectors) ** 2 * rates[:, None]
    unsure = np.sqrt(np.diag(covariance(np.zeros_like(along), along)))
    lost = lost or bool((values <= np.maximum(CLEAR * unsure, 1e-9)).any())
    inverse = np.linalg.pinv(information, hermitian=True)
    spread = information if residuals is None else (x.T * np.maximum(residuals(rates), 0.0)) @ x
    return beta, inverse @ covariance(x, x * rates[:, None]) @ inverse, lost, inverse @ spread @ inverse


def _rate_lines(names: Sequence[str], fit: Fit, of: slice, quantile: float, rounded: Floats) -> list[dict[str, object]]:
    beta, noise, lost, sampling = fit
    lines = _lines([(name, "") for name in names], beta[of], noise[of, of], sampling[of, of], quantile, lost, rounded)
    return [line | {"ratio": math.exp(min(line["value"], 700.0))} for line in lines]
