"""Additive regressions by rounds: each fits the mean of what is left of the target to the bins or values of one column.

Componentwise boosting (Bühlmann and Yu 2003), of noisy sums: what a round adds is the posterior mean of a Gaussian
process over the column's cells, whose strength and length of correlation are those under which the noisy sums are the
likeliest (empirical Bayes). So where all is noise a round adds nothing, and cells next to each other help each other.
A stage is a record of plain numbers, by which a program computes what is left of a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from jostle.kernels.arrays import Floats
from jostle.kernels.regressions.fits import error_of, of_shares, part_of
from jostle.kernels.regressions.models import Additive, Levels, Part, Steps
from jostle.threads import on_one_thread

REACH = 3.0
LEAST_REACH = 2.0**-9
"""What is left is measured within so many of its deviations."""
LENGTHS = (0.15, 1.0)
"""How far along a column its cells go together, in shares of their number."""
LEVEL = 0.05
"""The variance of what all cells of a column have in common, over that of what differs."""
STRENGTHS = 4.0 ** np.arange(-5, 2)
"""Variances of a column's part that are tried, over that of single rows."""
PIECES = 16
"""Steps of a column that a round may add: a program of rows is as long as there are steps."""
GUARD = 1.0
"""A column says nothing unless the log-likelihood that it does is larger by so much."""

Stage = dict[str, Any]


def first_stage(seen: Mapping[str, float], y: Mapping[str, Any]) -> Stage:
    """Before all rounds: the mean for all, of `target_seen`."""
    mean, low, high, deviation = (float(seen[k]) for k in ("mean", "low", "high", "deviation"))
    reach = min(max(mean - low, high - mean), REACH * deviation)
    model = Additive("the mean", str(y["name"]), low, high, mean, {})
    return _stage(model, y, reach, deviation, float(seen["loudness"]), {})


def next_stage(
    stage: Mapping[str, Any], sums: Any, noise: float, y: Mapping[str, Any], column: Mapping[str, Any]
) -> Stage:
    """After a round: the part of `column` added, by three shares a cell of what was left over its reach (in ±1).

    `noise`: the deviation of a share. `column`: {name, place, edges, centre, scale, step} of a number or {name, place,
    values} of a text, `place` its number among the coordinates.
    """
    count, total, squares = of_shares(sums)
    reach, deviation = float(stage["width"]), float(stage["deviation"])
    numbers = posterior(count, total, noise, (deviation / reach) ** 2, "edges" in column)
    old, name = stage["model"], str(column["name"])
    part = part_of(column, reach * numbers)
    if isinstance(part, Steps):
        part, edges = pieces(part, count), part.edges
        numbers = np.array(part.numbers)[np.searchsorted(part.edges, [-math.inf, *edges], side="right")] / reach
    off = float((squares - 2 * numbers * total + numbers**2 * count).sum())
    error = error_of(float(count.sum()), off, 2 * noise * math.sqrt(len(count)), reach)
    parts = dict(old.adds)
    parts[name] = summed(parts.get(name), part)
    model = Additive(f"the means of {', then '.join(parts)}", old.target, old.low, old.high, old.base, parts, error)
    deviation = min(deviation, error) if error is not None else deviation
    columns = {**stage["columns"], name: dict(column)}
    return _stage(model, y, REACH * deviation, deviation, float(stage["loudness"]), columns)


def _stage(
    model: Additive, y: Mapping[str, Any], reach: float, deviation: float, loudness: float, columns: Mapping[str, Any]
) -> Stage:
    """The model, and what a row program needs for what it leaves: in halves of the target's range, about its middle."""
    middle, half = (float(y["low"]) + float(y["high"])) / 2, (float(y["high"]) - float(y["low"])) / 2
    reach = max(reach, LEAST_REACH * half)
    base = model.base
    steps = [(0.0, 0.0, 0.0, 0.0)]  # there is one at least
    for name, part in model.adds.items():
        column = columns[name]
        place = float(column["place"])
        if isinstance(part, Steps):
            base += part.numbers[0]
            at = (np.array(part.edges) - column["step"] / 2 - column["centre"]) / column["scale"]
            steps += [(place, a, 0.0, by / half) for a, by in zip(at.tolist(), np.diff(part.numbers), strict=True)]
        elif isinstance(part, Levels):
            at = 2 * np.arange(len(part.values)) / max(1, len(part.values) - 1) - 1
            steps += [(place, a, 1.0, by / half) for a, by in zip(at.tolist(), part.numbers, strict=True)]
    scale = [(base - middle) / half, (model.low - middle) / half, (model.high - middle) / half, reach / half]
    return {
        "model": model, "width": reach, "deviation": deviation, "loudness": loudness, "columns": dict(columns),
        "steps": np.array(steps), "scale": np.array(scale),
    }  # fmt: skip


def pieces(part: Steps, count: Floats) -> Steps:
    """The same steps, at most `PIECES` of them: next to each other, those that change least are drawn together."""
    edges, numbers = list(part.edges), list(part.numbers)
    weights = (np.maximum(count, 0.0) + 1e-3 * max(float(count.sum()), 1.0)).tolist()
    while len(numbers) > PIECES:
        change = [
            weights[i] * weights[i + 1] / (weights[i] + weights[i + 1]) * (numbers[i] - numbers[i + 1]) ** 2
            for i in range(len(edges))
        ]
        i = int(np.argmin(change))
        both = weights[i] + weights[i + 1]
        numbers[i : i + 2] = [(weights[i] * numbers[i] + weights[i + 1] * numbers[i + 1]) / both]
        weights[i : i + 2] = [both]
        del edges[i]
    return Steps(tuple(edges), tuple(numbers))


def summed(one: Part | None, other: Part) -> Part:
    """Two parts of one column, of the same cells."""
    if isinstance(one, Steps) and isinstance(other, Steps):
        edges = tuple(sorted({*one.edges, *other.edges}))
        at = [[step.numbers[k] for k in np.searchsorted(step.edges, [-math.inf, *edges], side="right")]
              for step in (one, other)]  # fmt: skip
        return Steps(edges, tuple(a + b for a, b in zip(*at, strict=True)))
    if isinstance(one, Levels) and isinstance(other, Levels):
        return Levels(one.values, tuple(a + b for a, b in zip(one.numbers, other.numbers, strict=True)))
    return other


@on_one_thread
def posterior(count: Floats, total: Floats, noise: float, variance: float, ordered: bool) -> Floats:
    """The posterior means (k,) of cells, where total = count · mean + noise, and mean ~ N(0, λK); λ is found.

    `count`, `total` (k,): noisy numbers of rows and sums; `noise` the deviation of a share; `variance` that of single
    rows; `ordered` cells go together with those next to them, others do not. 0 where all may be noise.
    """
    n = np.maximum(count, 0.0)
    unsure = 2 * noise**2 + n * variance + 1e-12
    chance = -0.5 * float((total**2 / unsure + np.log(unsure)).sum()) + GUARD
    likeliest, numbers = chance, np.zeros(len(n))
    for length in LENGTHS if ordered else (0.0,):
        together = _together(len(n), length) if ordered else None
        for strength in variance * STRENGTHS:
            likelihood, found = _fit(n, total, unsure, strength, together)
            if likelihood > likeliest:
                likeliest, numbers = likelihood, found
    return numbers


def _together(k: int, length: float) -> Floats:
    places = np.arange(k)
    return np.asarray(np.exp(-np.abs(places[:, None] - places) / (length * k)) + LEVEL)


def _fit(n: Floats, total: Floats, unsure: Floats, strength: float, together: Floats | None) -> tuple[float, Floats]:
    """The log-likelihood of the sums, up to a constant, and the posterior means."""
    if together is None:
        spread = strength * n**2 + unsure
        return -0.5 * float((total**2 / spread + np.log(spread)).sum()), strength * n * total / spread
    covariance = strength * together
    factor = np.linalg.cholesky(n[:, None] * covariance * n + np.diag(unsure))
    white = np.linalg.solve(factor, total)
    likelihood = -0.5 * float(white @ white) - float(np.log(np.diag(factor)).sum())
    return likelihood, (covariance * n) @ np.linalg.solve(factor.T, white)
