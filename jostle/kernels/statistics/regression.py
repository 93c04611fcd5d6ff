"""Linear and logistic regression from released sums, in the columns' own units, and correlations.

Each coefficient has `error`, the 95 % half-width of the noise alone (how far the answer may be from that of the same
rows without noise), and `low` and `high`, 95 % bounds for the law that the rows are a sample of: noise and sampling
together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.statistics.moments import (
    SAMPLING,
    SecondMoments,
    hidden,
    least_squares,
    quantile_of,
    second_moments,
)
from jostle.kernels.statistics.report import Report

HIDDEN = "the noise hides how these columns go together: the intervals are infinite; spend more, or use fewer columns"


def linear_fit(
    design: Sequence[Mapping[str, Any]], moments: Mapping[str, Any], radius: float, mechanism: str
) -> Report:
    """Least squares of the last term of a design by the others, from released second moments."""
    m = second_moments(design, moments, radius, mechanism)
    d = len(m.names)
    fit = least_squares(m, range(d), d)
    turn, shift = _to_units(m)
    value = turn @ fit.coefficients + shift
    noise, sampling = (turn @ part @ turn.T for part in (fit.noise, fit.sampling))
    rows = _lines([("intercept", ""), *_terms(design[:-1])], value, noise, sampling, m.quantile, fit.hidden)
    title = f"{m.names[-1]} by linear regression: {max(m.rows, 0):.0f} rows, R² {fit.explained:.3f}"
    facts = _coefficients(rows) | {"r_squared": fit.explained, "count": m.rows}
    return Report(title, rows, [HIDDEN] if fit.hidden else [], facts)


def _to_units(m: SecondMoments) -> tuple[Floats, Floats]:
    """The map from coefficients of (1, z) to those of (1, x), of y in its own units: turn · β + shift."""
    scale, centre = m.scales[:-1], m.centres[:-1]
    unit = m.scales[-1]
    turn = np.diag(np.append(unit, unit / scale))
    turn[0, 1:] = -unit * centre / scale
    shift = np.zeros(len(turn))
    shift[0] = m.centres[-1]
    return turn, shift


def _terms(design: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(str(term["name"]), str(term.get("value", ""))) for term in design]


def _lines(
    names: Sequence[tuple[str, str]], value: Floats, noise: Floats, sampling: Floats, quantile: float, lost: bool
) -> list[dict[str, Any]]:
    """A line for each coefficient."""
    rows = []
    for i, (name, level) in enumerate(names):
        error = math.inf if lost else quantile * math.sqrt(max(float(noise[i, i]), 0.0))
        wide = math.hypot(error, SAMPLING * math.sqrt(max(float(sampling[i, i]), 0.0)))
        at = float(value[i])
        rows.append({
            "term": f"{name} = {level}" if level else name, "value": at, "error": error, "low": at - wide,
            "high": at + wide,
        })  # fmt: skip
    return rows


def _coefficients(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"coefficients": {row["term"]: row["value"] for row in rows}}


# Correlation -------------------------------------------------------------------------------------


def correlations(
    design: Sequence[Mapping[str, Any]], moments: Mapping[str, Any], radius: float, mechanism: str
) -> Report:
    """The correlation of each pair of columns; intervals by Fisher's z, to which the noise is added by first order."""
    m = second_moments(design, moments, radius, mechanism)
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
        error = m.quantile * wobble
        wide = math.hypot(error, SAMPLING / math.sqrt(max(n - 3, 1.0)))
        low, high = (math.tanh(math.atanh(value) + side * wide) for side in (-1, 1))
        rows.append(_pair(m.names, i, j, value, error * (1 - value**2), low, high))
        matrix[i, j] = matrix[j, i] = value
    lost = [HIDDEN] if any(row["correlation"] is None for row in rows) else []
    title = f"correlation: {max(n, 0):.0f} rows"
    return Report(title, rows, lost, {"matrix": matrix, "names": list(m.names), "count": n})


def _pair(
    names: Sequence[str], i: int, j: int, value: float | None, error: float, low: float, high: float
) -> dict[str, Any]:
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
            moved = sums.copy()
            moved[i, j] += side * step
            moved[j, i] = moved[i, j]
            ends.append(_of(moved))
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
"""Weights of a step are brought within what gives such log-odds at the largest row."""


def logistic_curvature_matrix(moments: Mapping[str, Any], factor: float = 0.25) -> dict[str, Any]:
    """Σγ·uuᵀ · factor over u = (x, 1), the constant in the last place, and the deviation of the noise in each entry.

    From moments of rows whose last coordinate is the target.
    """
    first, second = np.asarray(moments["first"])[0], np.asarray(moments["second"])[0]
    matrix, noise = second.copy(), np.full(second.shape, float(moments["second_noise"]))
    matrix[-1, :] = matrix[:, -1] = first
    noise[-1, :] = noise[:, -1] = moments["first_noise"]
    matrix[-1, -1], noise[-1, -1] = moments["count"][0], moments["count_noise"]
    return {"matrix": matrix * factor, "noise": noise * factor}


def logistic_step(weights: Any, curvature: Mapping[str, Any], gradient: Mapping[str, Any]) -> Floats:
    """One step of Newton's method with noisy sums; where curvature is less than its noise, as if it were that noise."""
    w, matrix, noise = (np.asarray(x, dtype=float) for x in (weights, curvature["matrix"], curvature["noise"]))
    values, vectors = np.linalg.eigh(matrix)
    floor = max(2.0 * float(noise.max()) * math.sqrt(len(w)), 1e-9 * float(np.abs(values).max(initial=0.0)), 1e-12)
    step = vectors @ ((vectors.T @ np.asarray(gradient["sum"], dtype=float)) / np.maximum(values, floor))
    moved = w - step
    reach = float(np.linalg.norm(moved[:-1]) + abs(moved[-1]))
    return np.asarray(moved * min(1.0, LARGEST_MARGIN / reach) if reach > 0 else moved)


def logistic_fit(
    design: Sequence[Mapping[str, Any]], target: str, weights: Any, curvature: Mapping[str, Any],
    gradient: Mapping[str, Any], radius: float, mechanism: str, rows: float,
) -> Report:  # fmt: skip
    """The last step, and what noise and sampling leave open: (matrix)⁻¹ times the noise of the gradient, and itself."""
    matrix, noise = (np.asarray(curvature[k], dtype=float) for k in ("matrix", "noise"))
    lost = hidden(matrix, noise)
    final = logistic_step(weights, curvature, gradient)
    inverse = np.linalg.pinv(matrix, hermitian=True)
    step = final - np.asarray(weights, dtype=float)
    moved = noise**2 * np.outer(step, step)  # the noise of the matrix moves the last step as that of least squares
    np.fill_diagonal(moved, 0.0)
    moved += np.diag(float(gradient["noise"]) ** 2 + noise**2 @ step**2)
    centres, scales = (np.array([float(term[k]) for term in design]) for k in ("centre", "scale"))
    turn = np.zeros((len(final), len(final)))  # to (intercept, slopes) of the columns in their own units
    turn[0, -1] = 1.0
    turn[0, :-1] = -centres / scales / radius
    turn[1:, :-1] = np.diag(1 / scales / radius)
    lines = _lines(
        [("intercept", ""), *_terms(design)], turn @ final, turn @ (inverse @ moved @ inverse) @ turn.T,
        turn @ inverse @ turn.T, quantile_of(mechanism), lost,
    )  # fmt: skip
    for line in lines:
        line["odds"] = math.exp(min(line["value"], 700.0))
    title = f"log-odds of {target} by logistic regression: {max(rows, 0):.0f} rows"
    return Report(title, lines, [HIDDEN] if lost else [], _coefficients(lines) | {"count": rows})
