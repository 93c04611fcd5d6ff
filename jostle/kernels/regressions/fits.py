"""Fits regressions to noisy sums. All of it is post-processing of what a program has measured.

Numbers stand as (x − centre)/scale, within ±1; so does the target, whose term is `y`: {name, low, high}. Sums come with
`noise`, the deviation of each. A mean of few rows and much noise is drawn towards what is expected without it: the
middle of the target's range for a mean of all, the mean of all for that of a cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.regressions.models import Additive, Forked, Levels, Part, Regression, Slope, Steps, kept
from jostle.threads import on_one_thread

SPREAD = 0.4
"""How far the mean of a target is from the middle of its range, in halves of it: the deviation over many tables."""
ROWS = 5.0
"""A cell's mean is drawn towards the others' by so many rows, beside what noise accounts for."""

Target = Mapping[str, Any]
Terms = Sequence[Mapping[str, Any]]


def _scale(y: Target) -> tuple[float, float]:
    low, high = float(y["low"]), float(y["high"])
    return (low + high) / 2, max((high - low) / 2, 1e-12)


def of_shares(sums: object) -> tuple[Floats, Floats, Floats]:
    """Counts, sums of y in ±1 and of its square, (cells,) each, of the three shares (u², 2u(1−u), (1−u)²)."""
    a, b, c = np.asarray(sums, dtype=float).reshape(-1, 3).T
    return a + b + c, a - c, a - b + c


NOISE = np.sqrt([3.0, 2.0, 3.0])
"""The deviations of `_of_shares` in those of a share."""


def _drawn(count: Floats, total: Floats, noise: float, spread: float) -> Floats:
    """The means total/count, drawn towards 0 as far as noise and few rows account for them."""
    n = np.maximum(count, 0.0)
    return np.asarray(n * total / np.maximum(n**2 + ROWS * n + (noise / max(spread, 1e-9)) ** 2, 1e-12))


def _mean(count: Floats, total: Floats, noise: float) -> Floats:
    return np.clip(_drawn(count, total, float(NOISE[1]) * noise, SPREAD), -1.0, 1.0)


def target_seen(sums: object, noise: float, y: Target) -> dict[str, float]:
    """The `mean` of the target, the `deviation` of single rows with room for their noise, in its own units, `low`
    and `high`, between which a prediction makes sense, and the `loudness` of the rows, over their noise; of three
    shares of all rows."""
    middle, half = _scale(y)
    count, total, squares = of_shares(sums)
    mean = middle + half * float(_mean(count, total, noise)[0])
    n = max(float(count[0]), noise, 1.0)
    variance = float(squares[0]) / n - min((float(total[0]) / n) ** 2, 1.0) + 3 * noise / n
    deviation = half * math.sqrt(min(max(variance, 1e-6), 1.0))
    low, high = max(float(y["low"]), mean - REACH * deviation), min(float(y["high"]), mean + REACH * deviation)
    return {"mean": mean, "deviation": deviation, "low": low, "high": high, "loudness": n / max(noise, 1e-12)}


REACH = 3.0
"""Predictions are kept within so many deviations of the mean."""


def mean_model(sums: object, noise: float, y: Target) -> Additive:
    """The mean, of three shares (u², 2u(1−u), (1−u)²) of all rows."""
    middle, half = _scale(y)
    count, total, squares = of_shares(sums)
    mean = float(_mean(count, total, noise)[0])
    error = error_of(float(count[0]), float(squares[0] - 2 * mean * total[0] + mean**2 * count[0]), noise, half)
    return Additive("the mean", str(y["name"]), float(y["low"]), float(y["high"]), middle + half * mean, {}, error)


def pooled_shares(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two measurements of the same sums, {sum, noise} each, as one, by their precision."""
    noises = np.array([max(float(seen["noise"]), 1e-12) for seen in (one, other)])
    weights = noises**-2 / (noises**-2).sum()
    sums = np.asarray(one["sum"], dtype=float) * weights[0] + np.asarray(other["sum"], dtype=float) * weights[1]
    return {"sum": sums, "noise": float((noises**-2).sum() ** -0.5)}


def error_of(count: float, squares: float, noise: float, half: float) -> float | None:
    """The root of the mean square; none where that is not clear of its noise."""
    return half * math.sqrt(squares / count) if min(count, squares) > 5 * noise else None


def part_of(column: Mapping[str, Any], numbers: Floats) -> Part:
    if "edges" in column:
        return Steps(kept(column["edges"]), kept(numbers))
    return Levels(tuple(column["values"]), kept(numbers))


def forked_model(column: Mapping[str, Any], above: Regression, below: Regression) -> Forked:
    """A fork at an edge or a value of a column."""
    at = column["at"]
    return Forked(str(column["name"]), at if isinstance(at, str) else float(at), bool(column["same"]), above, below)


def leaf_model(sums: object, noise: float, y: Target, expected: float, deviation: float) -> Additive:
    """The mean of a part of the rows, of its three shares, drawn towards what is expected of it.

    `deviation`: that of single rows. Means of parts are taken to differ by half as much.
    """
    middle, half = _scale(y)
    count, total, _ = of_shares(sums)
    start = (float(expected) - middle) / half
    off = total - start * count
    value = start + float(_drawn(count, off, noise * math.sqrt(2 + 3 * start**2), deviation / half / 2)[0])
    name, low, high = str(y["name"]), float(y["low"]), float(y["high"])
    return Additive("the mean", name, low, high, middle + half * min(max(value, -1.0), 1.0))


# Least squares -----------------------------------------------------------------------------------


@on_one_thread
def ridge_model(
    sums: object, noise: float, y: Target, terms: Terms, seen: Mapping[str, float], kind: str = "a ridge regression"
) -> Additive:
    """Least squares by terms of how far the target is from its mean, of noisy sums of products.

    `sums`: 1, then (z, y), then the products of each with itself and those after it (`products` of the row programs),
    where y stands as (y − mean)/reach; `seen` is of `target_seen`. Second moments are centred by noisy means.
    """
    d = len(terms) + 1
    mean, low, high = (float(seen[k]) for k in ("mean", "low", "high"))
    reach = max(mean - float(y["low"]), float(y["high"]) - mean)
    values = np.asarray(sums, dtype=float)
    n, first = float(values[0]), values[1 : d + 1]
    second = np.zeros((d, d))
    second[np.triu_indices(d)] = values[d + 1 :]
    second = np.triu(second) + np.triu(second, 1).T
    rows = max(n, noise, 1.0)
    centre = np.clip(first[:-1] / rows, -1.0, 1.0)
    with_mean = np.append(centre, 0.0)
    joint = second - np.outer(with_mean, first) - np.outer(first, with_mean) + rows * np.outer(with_mean, with_mean)
    rates = _rates(joint[:-1, :-1], joint[:-1, -1], noise, rows, (float(seen["deviation"]) / reach) ** 2)
    whole = np.append(-rates, 1.0)
    error = error_of(n, float(whole @ joint @ whole), noise * math.sqrt(d), reach)
    adds = _by_column(terms, reach * rates, centre)
    base = mean - sum(
        reach * rate * c for rate, c, term in zip(rates, centre, terms, strict=True) if "value" in term
    )  # fmt: skip
    return Additive(kind, str(y["name"]), low, high, float(base), adds, error)


def _rates(matrix: Floats, right: Floats, noise: float, rows: float, variance: float) -> Floats:
    """The posterior means of coefficients β, where right = matrix · β + noise, and of single rows.

    β ~ N(0, τ²) in each direction; τ is found by what `right` has beyond its noise (empirical Bayes), and is at most
    what accounts for the whole `variance` of the target. A direction in which the matrix is lost in noise gets nothing.
    """
    sizes, vectors = np.linalg.eigh(matrix)
    sizes, seen = np.maximum(sizes, 0.0), vectors.T @ right
    unsure = noise**2 + variance * sizes
    most = variance * rows / max(float(sizes.sum()), noise)
    found = float((seen**2 - DOUBT * unsure).sum()) / max(float((sizes**2).sum()), noise**2)
    spread = min(found, most)
    if spread <= 0:
        return np.zeros(len(right))
    return np.asarray(vectors @ (sizes * seen / (sizes**2 + unsure / spread)))


DOUBT = 1.0
"""How many times its variance noise has to be cleared by."""


def _by_column(terms: Terms, rates: Floats, centre: Floats) -> dict[str, Part]:
    adds: dict[str, Part] = {}
    for term, rate, middle in zip(terms, rates.tolist(), centre.tolist(), strict=True):
        name = str(term["name"])
        if "value" in term:
            old = adds.get(name)
            values, numbers = (old.values, old.numbers) if isinstance(old, Levels) else ((), ())
            adds[name] = Levels((*values, term["value"]), (*numbers, rate))
        else:
            at, scale = float(term["centre"]), float(term["scale"])
            adds[name] = Slope(rate / scale, at + scale * middle, at - scale, at + scale)
    return adds
