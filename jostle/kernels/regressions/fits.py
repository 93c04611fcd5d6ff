"""Fits regressions to noisy sums. All of it is post-processing of what a program has measured.

Numbers stand as (x − centre)/scale, within ±1; so does the target, whose term is `y`: {name, low, high}. Sums come with
`noise`, the deviation of each. A mean of few rows and much noise is drawn towards what is expected without it: the
middle of the target's range for a mean of all, the mean of all for that of a cell.

Additive regressions go by rounds, componentwise boosting (Bühlmann and Yu 2003) of noisy sums: what a round adds is the
posterior mean of a line and a Gaussian process over one column's cells. It is averaged over strengths and lengths of
correlation by how likely they make the noisy sums (empirical Bayes). So where all is noise a round adds next to
nothing, and what goes straight is a line. A stage is a record of plain numbers, by which a program computes what is
left of a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from jostle.kernels.arrays import Column, Floats, Sums
from jostle.kernels.linear_algebra import on_one_thread
from jostle.kernels.regressions.models import Additive, Forked, Levels, Part, Regression, Slope, Steps, floats

SPREAD = 0.4
"""How far the mean of a target is from the middle of its range, in halves of it: the deviation over many tables."""
ROWS = 5.0
"""A cell's mean is drawn towards the others' by so many rows, beside what noise accounts for."""

Terms = Sequence[Column]


class Target(TypedDict):
    """What is predicted, within public bounds."""

    name: str
    low: float
    high: float


class Stage(TypedDict):
    """The model after a round, and what a row program needs for what it leaves; `offset` is the deviation of what all
    of that has in common, in the target's units, and `deviation` that of single rows, or more."""

    model: Additive
    width: float
    deviation: float
    loudness: float
    offset: float
    columns: dict[str, Column]
    steps: Floats
    scale: Floats
    lines: Floats


def _scale(y: Target) -> tuple[float, float]:
    low, high = float(y["low"]), float(y["high"])
    return (low + high) / 2, max((high - low) / 2, 1e-12)


def of_shares(sums: object) -> tuple[Floats, Floats, Floats]:
    """Counts, sums of y in ±1 and of its square, (cells,) each, of the three shares (u², 2u(1−u), (1−u)²)."""
    a, b, c = np.asarray(sums, dtype=float).reshape(-1, 3).T
    return a + b + c, a - c, a - b + c


NOISE = np.sqrt([3.0, 2.0, 3.0])
"""The deviations of `_of_shares` in those of a share."""


def _estimates(count: Floats, total: Floats, noise: float, spread: float) -> Floats:
    """The means total/count, drawn towards 0 as far as noise and few rows account for them."""
    n = np.maximum(count, 0.0)
    return np.asarray(n * total / np.maximum(n**2 + ROWS * n + (noise / max(spread, 1e-9)) ** 2, 1e-12))


def _mean(count: Floats, total: Floats, noise: float) -> Floats:
    return np.clip(_estimates(count, total, float(NOISE[1]) * noise, SPREAD), -1.0, 1.0)


def target_seen(sums: object, noise: float, y: Target) -> dict[str, float]:
    """The `mean` of the target, the `deviation` of single rows with room for their noise, in its own units, `low`
    and `high`, between which a prediction makes sense; the `loudness` of the rows, over their noise, and the
    `variance` without room, by how much it may be `unsure`; of three shares of all rows."""
    middle, half = _scale(y)
    count, total, squares = of_shares(sums)
    mean = middle + half * float(_mean(count, total, noise)[0])
    n = max(float(count[0]), noise, 1.0)
    variance = float(squares[0]) / n - min((float(total[0]) / n) ** 2, 1.0)
    deviation = half * math.sqrt(min(max(max(variance, 0.0) + 3 * noise / n, 1e-6), 1.0))
    low, high = max(float(y["low"]), mean - REACH * deviation), min(float(y["high"]), mean + REACH * deviation)
    loudness = n / max(noise, 1e-12)
    return {"mean": mean, "deviation": deviation, "low": low, "high": high, "loudness": loudness,
            "variance": half**2 * variance, "unsure": 5 * half**2 * noise / n}  # fmt: skip


REACH = 3.0
"""Predictions are kept within so many deviations of the mean."""


def mean_model(sums: object, noise: float, y: Target) -> Additive:
    """The mean, of three shares (u², 2u(1−u), (1−u)²) of all rows."""
    middle, half = _scale(y)
    count, total, squares = of_shares(sums)
    mean = float(_mean(count, total, noise)[0])
    error = error_of(float(count[0]), float(squares[0] - 2 * mean * total[0] + mean**2 * count[0]), noise, half)
    return Additive("the mean", str(y["name"]), float(y["low"]), float(y["high"]), middle + half * mean, {}, error)


def pooled_shares(one: Sums, other: Sums) -> dict[str, object]:
    """Two measurements of the same sums, {sum, noise} each, as one, by their precision."""
    noises = np.array([max(float(part["noise"]), 1e-12) for part in (one, other)])
    weights = noises**-2 / (noises**-2).sum()
    sums = np.asarray(one["sum"], dtype=float) * weights[0] + np.asarray(other["sum"], dtype=float) * weights[1]
    return {"sum": sums, "noise": float((noises**-2).sum() ** -0.5)}


def error_of(count: float, squares: float, noise: float, half: float) -> float | None:
    """The root of the mean square; none where that is not clear of its noise."""
    return half * math.sqrt(squares / count) if min(count, squares) > 5 * noise else None


def part_of(column: Column, numbers: Floats) -> Part:
    if "edges" in column:
        return Steps(floats(column["edges"]), floats(numbers))
    return Levels(tuple(column["values"]), floats(numbers))


def forked_model(column: Column, above: Regression, below: Regression) -> Forked:
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
    value = start + float(_estimates(count, off, noise * math.sqrt(2 + 3 * start**2), deviation / half / 2)[0])
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
    if error is not None:  # what lies beyond the reach is off by more than what was taken for it
        square = error**2 + max(float(seen["variance"]) - reach**2 * float(joint[-1, -1]) / n, 0.0)
        error = math.sqrt(square) if square > float(seen["unsure"]) else None
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
    sizes, projections = np.maximum(sizes, 0.0), vectors.T @ right
    if not (noise or sizes.any()):  # of no rows, without noise
        return np.zeros(len(right))
    unsure = noise**2 + variance * sizes
    most = variance * rows / max(float(sizes.sum()), noise)
    strength = float((projections**2 - DOUBT * unsure).sum()) / max(float((sizes**2).sum()), noise**2)
    spread = min(strength, most)
    if spread <= 0:
        return np.zeros(len(right))
    return np.asarray(vectors @ (sizes * projections / (sizes**2 + unsure / spread)))


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
SLOPES = (0.05, 0.5, 4.0)
"""What a line explains of the variance, over that of single rows; 0 is tried beside them."""


def first_stage(seen: Mapping[str, float], y: Target) -> Stage:
    """Before all rounds: the mean for all, of `target_seen`."""
    mean, low, high, deviation = (float(seen[k]) for k in ("mean", "low", "high", "deviation"))
    reach = min(max(mean - low, high - mean), REACH * deviation)
    model = Additive("the mean", str(y["name"]), low, high, mean, {})
    offset = 0.5 * (float(y["high"]) - float(y["low"])) * math.sqrt(2) / max(float(seen["loudness"]), 1e-9)
    return _stage(model, y, reach, deviation, float(seen["loudness"]), {}, offset)


def next_stage(stage: Stage, sums: object, noise: float, y: Target, column: Column) -> Stage:
    """After a round: the part of `column` added, by three shares a cell of what was left over its reach (in ±1).

    `noise`: the deviation of a share. `column`: {name, place, edges, centre, scale, step} of a number or {name, place,
    values} of a text, `place` its number among the coordinates.
    """
    count, total, squares = of_shares(sums)
    reach, deviation = float(stage["width"]), float(stage["deviation"])
    places = _middles(column) if "edges" in column else None
    offset = float(stage["offset"])  # of the mean so far; what this round tells of it is weighed by precision
    numbers, slope = posterior(count, total, noise, (deviation / reach) ** 2, places, (offset / reach) ** 2)
    apart = 2 * len(count) * noise**2 * reach**2 / max(float(count.sum()), noise) ** 2
    offset = (1 / max(offset**2, 1e-30) + 1 / max(apart, 1e-30)) ** -0.5
    old, name = stage["model"], str(column["name"])
    part = part_of(column, reach * numbers)
    if isinstance(part, Steps) and places is not None:
        part, edges = pieces(part, count), part.edges
        numbers = np.array(part.numbers)[np.searchsorted(part.edges, [-math.inf, *edges], side="right")] / reach
        numbers = numbers + slope * places
        part = Steps(part.edges, part.numbers, _line(column, reach * slope)) if slope else part
    off = float((squares - 2 * numbers * total + numbers**2 * count).sum())
    error = error_of(float(count.sum()), off, 2 * noise * math.sqrt(len(count)), reach)
    parts = dict(old.adds)
    parts[name] = summed(parts.get(name), part)
    model = Additive(f"the means of {', then '.join(parts)}", old.target, old.low, old.high, old.base, parts, error)
    unsure = 2 * noise * math.sqrt(len(count))
    if (rows := float(count.sum())) > 5 * unsure:
        deviation = min(deviation, reach * math.sqrt((max(off, 0.0) + 2 * unsure) / rows))
    columns = {**stage["columns"], name: column.copy()}
    return _stage(model, y, REACH * deviation, deviation, float(stage["loudness"]), columns, offset)


def _stage(
    model: Additive, y: Target, reach: float, deviation: float, loudness: float, columns: Mapping[str, Column],
    offset: float,
) -> Stage:  # fmt: skip
    """The model, and what a row program needs for what it leaves: in halves of the target's range, about its middle."""
    middle, half = (float(y["low"]) + float(y["high"])) / 2, (float(y["high"]) - float(y["low"])) / 2
    reach = max(reach, LEAST_REACH * half)
    base = model.base
    steps = [(0.0, 0.0, 0.0, 0.0)]  # there is one at least
    lines = [(0.0, 0.0)]
    for name, part in model.adds.items():
        column = columns[name]
        place = float(column["place"])
        if isinstance(part, Steps):
            base += part.numbers[0]
            at = (np.array(part.edges) - column["step"] / 2 - column["centre"]) / column["scale"]
            steps += [(place, a, 0.0, by / half) for a, by in zip(at.tolist(), np.diff(part.numbers), strict=True)]
            if part.slope is not None:
                lines.append((place, part.slope.rate * column["scale"] / half))
        elif isinstance(part, Levels):
            at = 2 * np.arange(len(part.values)) / max(1, len(part.values) - 1) - 1
            steps += [(place, a, 1.0, by / half) for a, by in zip(at.tolist(), part.numbers, strict=True)]
    scale = [(base - middle) / half, (model.low - middle) / half, (model.high - middle) / half, reach / half]
    return {
        "model": model, "width": reach, "deviation": deviation, "loudness": loudness, "columns": dict(columns),
        "steps": np.array(steps), "scale": np.array(scale), "lines": np.array(lines), "offset": offset,
    }  # fmt: skip


def _middles(column: Column) -> Floats:
    """Where the cells of a number lie, by their middles, within ±1; of whole numbers those that a cell holds."""
    edges, centre, scale = np.asarray(column["edges"], dtype=float), float(column["centre"]), float(column["scale"])
    first, last = np.append(centre - scale, edges), np.append(edges - float(column["step"]), centre + scale)
    return np.asarray(((first + last) / 2 - centre) / scale)


def _line(column: Column, rate: float) -> Slope:
    """So much a coordinate of ±1, as a slope over the column's own numbers."""
    centre, scale = float(column["centre"]), float(column["scale"])
    return Slope(rate / scale, centre, centre - scale, centre + scale)


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
        lines = [step.slope for step in (one, other) if step.slope is not None]
        line = lines[0] if lines else None
        if len(lines) == 2:
            line = Slope(lines[0].rate + lines[1].rate, lines[0].centre, lines[0].low, lines[0].high)
        return Steps(edges, tuple(a + b for a, b in zip(*at, strict=True)), line)
    if isinstance(one, Levels) and isinstance(other, Levels):
        return Levels(one.values, tuple(a + b for a, b in zip(one.numbers, other.numbers, strict=True)))
    return other


@on_one_thread
def posterior(
    count: Floats, total: Floats, noise: float, variance: float, places: Floats | None, unsure_mean: float = 0.0
) -> tuple[Floats, float]:
    """The posterior means (k,) of cells and of a slope, where total = count · (mean + slope · place) + noise.

    `count`, `total` (k,): noisy numbers of rows and sums; `noise` the deviation of a share; `variance` that of single
    rows, `unsure_mean` that of what all cells have in common; `places` (k,): where cells lie that go together with
    those next to them; none where they do not. The mean over laws, that all else is noise among them, which has half
    of the prior.
    """
    n = np.maximum(count, 0.0)
    unsure = 2 * noise**2 + n * variance + 1e-12
    along, wide, middle = np.zeros(len(n)), 1.0, 0.0
    kernels, slopes = [np.eye(len(n))], np.zeros(1)
    if places is not None:
        share = n / max(float(n.sum()), 1e-9)
        middle = float(share @ places)
        along = places - middle
        wide = float(share @ along**2) + 1e-6
        apart = np.abs(np.arange(len(n))[:, None] - np.arange(len(n))) / len(n)
        kernels, slopes = [np.exp(-apart / length) + LEVEL for length in LENGTHS], np.append(0.0, SLOPES)
    shapes = [0 * kernels[0], *(variance * strength * kernel for kernel in kernels for strength in STRENGTHS)]
    laws = [(shape, variance / wide * slope) for shape in shapes for slope in slopes]
    logs, cells, lines = [], [], []
    for together, slope in laws:
        together = together + LEVEL * slope * wide + unsure_mean
        factor = np.linalg.cholesky(n[:, None] * (together + slope * np.outer(along, along)) * n + np.diag(unsure))
        white = np.linalg.solve(factor, total)
        logs.append(-0.5 * float(white @ white) - float(np.log(np.diag(factor)).sum()))
        pull = n * np.linalg.solve(factor.T, white)
        lines.append(slope * float(along @ pull))
        cells.append(together @ pull - lines[-1] * middle)
    likely = np.array(logs)
    likely[1:] -= math.log(len(laws) - 1)
    weights = np.exp(likely - likely.max())
    weights /= weights.sum()
    return np.asarray(weights @ np.stack(cells)), float(weights @ np.array(lines))
