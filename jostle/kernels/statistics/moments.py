"""Second moments of a few columns with the deviation of the noise in each, and what least squares makes of them.

A *design* says what the coordinates of the measured vectors are, in order: `name`, `centre` and `scale`, a column x
standing as (x − centre)/scale; an indicator of a category, against the first of its column, has centre 0 and scale 1.

*Noise.* The matrix M of sums of products of (1, z₁, …, z_d) was released as M + E, E symmetric, its entries on and
above the diagonal independent with known deviations D. For A = M over some coordinates and b = M between them and
another, the coefficients β = A⁻¹b move by A⁻¹(e_b − Eβ) to first order. The covariance of e_b − Eβ is exact. First
order is enough where E is small beside A in every direction, which is looked at: where an eigenvalue of A is less than
`CLEAR` deviations of its own noise, intervals are infinite.

*Means* of several groups: the sum of (m − m̄)² weighed by 1/(s²/n + noise²) is a χ² with one degree of freedom less
than there are groups (Welch 1951, of many rows); simultaneous intervals of contrasts are Bonferroni's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
from scipy.special import chdtrc, log_ndtr

from jostle.error_laws import sum_quantile
from jostle.formulas import error_text
from jostle.kernels import KernelError
from jostle.kernels.accuracy import standard_errors
from jostle.kernels.arrays import Column, Floats, Moments, Sums
from jostle.kernels.noisy_array import noise_of
from jostle.kernels.statistics import Report, text
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.rows.norms import GRID

CLEAR = 5.0
"""Deviations of the noise that an eigenvalue of a matrix of moments has to have."""

ROUNDED = 0.5 / GRID
"""By how much at most a coordinate within ±1 of the longest row is off, as rows are brought onto a grid."""

SAMPLING = 1.959963984540054
"""Of the normal law, for 95 %."""


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """`sums` (d + 1, d + 1) of products of (1, z), `noise` the deviation of each, and the 95 % `quantile` of noise.

    A row's z were brought onto a grid, each by no more than `rounded`.
    """

    names: tuple[str, ...]
    centres: Floats
    scales: Floats
    sums: Floats
    noise: Floats
    quantile: float
    rounded: float

    @property
    def rows(self) -> float:
        return float(self.sums[0, 0])


def second_moments(design: Sequence[Column], moments: Moments, radius: float) -> SecondMoments:
    """The moments that `noisy_moments` released of vectors as `design` describes them, clipped to `radius`."""
    d = len(design)
    sums, noise = np.empty((d + 1, d + 1)), np.empty((d + 1, d + 1))
    sums[0, 0], noise[0, 0] = moments["count"][0], moments["count_noise"]
    sums[0, 1:] = sums[1:, 0] = np.asarray(moments["first"])[0] * radius
    noise[0, 1:] = noise[1:, 0] = moments["first_noise"] * radius
    sums[1:, 1:] = np.asarray(moments["second"])[0] * radius**2
    beside = math.sqrt(2) if moments["mechanism"] == "gaussian" else 1.0  # off the diagonal Gaussian noise is less
    noise[1:, 1:] = moments["second_noise"] * radius**2 / beside
    noise[range(1, d + 1), range(1, d + 1)] = moments["second_noise"] * radius**2
    return SecondMoments(
        tuple(str(term["name"]) for term in design), np.array([float(term["centre"]) for term in design]),
        np.array([float(term["scale"]) for term in design]), sums, noise, quantile_of(moments["mechanism"]),
        radius * ROUNDED,
    )  # fmt: skip


def quantile_of(mechanism: str) -> float:
    """Half of the 95 % interval of a sum of such noises, in its deviations."""
    return sum_quantile(Gaussian if mechanism == "gaussian" else Laplace)


def hidden(matrix: Floats, noise: Floats) -> bool:
    """Whether a symmetric matrix has a direction in which it is not clear of its noise."""
    values, vectors = np.linalg.eigh(matrix)
    squares = vectors**2
    twice = 2.0 - np.eye(len(matrix))  # an entry off the diagonal stands in two places
    deviations = np.sqrt(np.einsum("ik,ij,jk->k", squares, noise**2 * twice, squares))
    return bool((values <= np.maximum(CLEAR * deviations, 1e-12 * np.abs(values).max(initial=0.0))).any())


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients β of the coordinates `of`, and the covariance of what noise and sampling add to them."""

    coefficients: Floats
    noise: Floats
    sampling: Floats
    hidden: bool
    explained: float
    inverse: Floats
    off: tuple[float, float]


def least_squares(m: SecondMoments, of: Sequence[int], target: int) -> Fit:
    """Coordinate `target` by the coordinates `of` (0 is the constant), in the coordinates' own units.

    Sampling is that of independent rows whose errors are of one size. `off` is for `rounded_by`.
    """
    places = list(of)
    matrix, right = m.sums[np.ix_(places, places)], m.sums[places, target]
    unsure = m.noise[np.ix_(places, places)]
    inverse = np.asarray(np.linalg.pinv(matrix, hermitian=True), dtype=np.float64)
    beta = inverse @ right
    moved = unsure**2 * np.outer(beta, beta)
    np.fill_diagonal(moved, 0.0)
    moved += np.diag(m.noise[places, target] ** 2 + unsure**2 @ beta**2)
    whole = np.append(beta, -1.0)
    joint = np.ix_([*places, target], [*places, target])
    residual = float(whole @ m.sums[joint] @ whole)
    twice = 2.0 - np.eye(len(whole))
    wobble = math.sqrt(float((whole**2) @ (m.noise[joint] ** 2 * twice) @ (whole**2)))
    spread = float(m.sums[target, target] - m.sums[0, target] ** 2 / max(m.rows, 1.0))
    variance = max(residual, wobble, 0.0) / max(m.rows - len(places), 1.0)
    explained = min(max(1.0 - residual / spread, 0.0), 1.0) if spread > 0 else 0.0
    noise: Floats = inverse @ moved @ inverse
    own, many = m.rounded * (1 + float(np.abs(beta[1:]).sum())), max(m.rows, 0.0)
    off = own * math.sqrt(many), m.rounded * math.sqrt(many * max(residual, 0.0))
    return Fit(beta, noise, np.asarray(variance * inverse), hidden(matrix, unsure), explained, inverse, off)


def rounded_by(turn: Floats, inverse: Floats, constant: int, off: tuple[float, float]) -> Floats:
    """By how much coefficients turn · β are off to first order, where rows x, y are off by h each at most.

    Where Σw·x(y − x·β) = 0 and H = Σw·xx', β moves by H⁻¹Σ(w·x·e + f·r) with |e| ≤ h(1 + Σ|β|), and |f| ≤ h, 0 of the
    constant. By Cauchy and Schwarz that is √(H⁻¹)ᵢᵢ · √Σw·|e|, the first of `off`, and Σⱼ|H⁻¹ᵢⱼ| · hΣ|r|, the second.
    """
    across = np.abs(np.delete(turn @ inverse, constant, axis=1)).sum(axis=1)
    along = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", turn, inverse, turn), 0.0))
    return np.asarray(off[0] * along + off[1] * across)


def group_difference(
    names: Sequence[object], seen: Sequence[Sums], middle: float, half: float, what: str
) -> Annotated[Report, "difference chance error low high"]:
    """The second group's mean less the first's, from the noisy shares of each group, as a contrast of `group_means`."""
    both = group_means(names, seen, middle, half, what, [[-1.0, 1.0]])
    rows: list[dict[str, Any]] = [dict(row) for row in both.rows]
    *_, chance = [row.pop("chance") for row in rows]
    difference = rows[-1]
    difference["group"] = "difference"
    notes = [
        "the noise hides how many rows a group has: the intervals are infinite; spend more"
        if math.isinf(difference["error"]) else
        f"if the groups did not differ, a difference of this size would come by chance {_percent(chance)} of the time"
    ]  # fmt: skip
    facts = {k: difference[k] for k in ("error", "low", "high")}
    return Report(f"{what}, {names[1]} less {names[0]}", rows, notes,
                  {"difference": difference["value"], "chance": chance, **facts})  # fmt: skip


@dataclass(frozen=True, slots=True)
class NoisyMean:
    """Mean and standard deviation of one coordinate within [−1, 1]; the noise in each; by how much each is rounded, as
    all rows are brought onto a grid, and whether noise hides both."""

    rows: float
    mean: float
    noise: float
    deviation: float
    deviation_noise: float
    rounded: float
    hidden: bool


def mean_of(moments: Sums) -> NoisyMean:
    """Of the noisy sums of u², 2u(1 − u) and (1 − u)² of u = (z + 1)/2, or of u and 1 − u where z is −1 or 1."""
    sums, noise = np.asarray(moments["sum"], dtype=float), float(moments["noise"])
    value, square = (np.array(v) for v in (((1, 0, -1), (1, -1, 1)) if len(sums) == 3 else ((1, -1), (1, 1))))
    n = float(sums.sum())
    hidden = n <= max(CLEAR * noise * math.sqrt(len(sums)), 1.0)
    n = max(n, 1.0)
    away = min(max(float(value @ sums) / n, -1.0), 1.0)
    squares = float(square @ sums) / n
    variance = min(max(squares - away**2, 0.0), 1.0) * n / max(n - 1, 1.0)
    wobble = noise * float(np.linalg.norm(square - squares - 2 * away * (value - away))) / n
    deviation = math.sqrt(variance)
    return NoisyMean(
        n, away, noise * float(np.linalg.norm(value - away)) / n, deviation,
        wobble / (2 * max(deviation, math.sqrt(wobble / 2), 1e-300)), ROUNDED if len(sums) == 3 else 0.0, hidden,
    )  # fmt: skip


def chance_of(distance: float, noise: float, sampling: float, laplace: bool) -> float:
    """P(|X| ≥ distance) for X a normal of deviation `sampling`, and Laplace or Gaussian noise of deviation `noise`."""
    if not laplace or noise <= 1e-3 * sampling:
        both = math.hypot(noise, sampling)
        return math.erfc(distance / both / math.sqrt(2)) if both > 0 else float(distance == 0)
    scale = noise / math.sqrt(2)
    if sampling < 1e-3 * noise:
        return math.exp(-distance / scale)
    # a normal beyond d, and what the exponential tails on either side carry over or take away
    near, ratio = distance / sampling, sampling / scale
    out = 0.5 * math.erfc(near / math.sqrt(2))
    carried = math.exp(log_ndtr(near - ratio) + ratio**2 / 2 - distance / scale)
    overlap = math.exp(log_ndtr(-near - ratio) + ratio**2 / 2 + distance / scale)
    return min(max(2 * (out + 0.5 * (carried - overlap)), 0.0), 1.0)


def _percent(chance: float) -> str:
    return f"{100 * chance:.2g} %" if chance >= 1e-4 else "less than 0.01 %"


def cross_table(
    names: Sequence[str], rows: Sequence[object], columns: Sequence[object], answers: Floats
) -> Annotated[
    Report, "cells row_totals column_totals total errors row_errors column_errors total_error row_keys column_keys"
]:
    """Cells, margins and the total, as a workload [cells, first margin, second margin, total] answers them."""
    a, b = len(rows), len(columns)
    wide = _half_widths(answers)
    cells, first, second, total = _parts(np.asarray(answers, dtype=float), a, b)
    unsure, unsure_first, unsure_second, unsure_total = _parts(np.asarray(wide), a, b)
    lines = []
    for i, key in enumerate([*rows, "all"]):
        values = cells[i] if i < a else second
        whole = first[i] if i < a else total
        line: dict[str, object] = {names[0]: text(key)}
        line |= {_heading(names, column): round(float(v), 2) for column, v in zip(columns, values, strict=True)}
        lines.append(line | {"all": round(float(whole), 2)})
    errors = [error_text(math.inf, float(e.mean())) for e in (unsure, unsure_first, unsure_second, unsure_total)]
    note = "± {} a cell, ± {} a row's total, ± {} a column's, ± {} all of it".format(*errors)
    facts = {
        "cells": cells, "row_totals": first, "column_totals": second, "total": float(total), "errors": unsure,
        "row_errors": unsure_first, "column_errors": unsure_second, "total_error": float(unsure_total),
        "row_keys": list(rows), "column_keys": list(columns),
    }  # fmt: skip
    return Report(f"rows by {names[0]} and {names[1]}", lines, [note], facts)


def _heading(names: Sequence[str], column: object) -> str:
    """A column's value as a heading, apart from the two other headings."""
    label = text(column)
    return f"{names[1]} {label}" if label in (names[0], "all") else label


def _parts(answers: Floats, a: int, b: int) -> tuple[Floats, Floats, Floats, np.float64]:
    return answers[: a * b].reshape(a, b), answers[a * b : a * b + a], answers[a * b + a : -1], answers[-1]


def _half_widths(answers: Floats) -> Floats:
    """Of each number, half of its 95 % interval: half a step more where noise is a few whole numbers."""
    noise = noise_of(answers)
    if noise is None:
        return np.zeros(np.shape(answers))
    return np.asarray(
        standard_errors(answers) * sum_quantile(type(noise.law)) + (noise.law.step / 2 if noise.law.coarse else 0)
    )


# One column --------------------------------------------------------------------------------------

HEAP = 0.01
"""Of the rows, from which on a heap at an end of the described range is said."""

QUANTILES = {"lowest": 0.0, "5 %": 0.05, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75, "95 %": 0.95,
             "highest": 1.0}  # fmt: skip


def describe(
    name: str, gone: Floats, seen: Sums, below: Floats, starts: Sequence[float], high: float,
    middle: float, half: float, whole: bool,
) -> Annotated[Report, "mean deviation missing lowest p5 lower_quartile median upper_quartile p95 highest"]:
    """A summary of one column.

    `gone` (2,): noisy numbers of rows that have a value, and that have none. `seen`: the shares of (x − middle)/half.
    `below` (k,): noisy numbers of rows up to the end of each bin, as a workload of prefixes answers them; `starts` are
    the bins' lower ends. A quantile's interval is made of the bins in which as many rows may lie below.
    """
    z, quantile = mean_of(seen), quantile_of(seen["mechanism"])
    unsure = _half_widths(gone)
    lines = [
        _stated("rows", float(np.sum(gone)), math.hypot(*unsure)),
        _stated("missing", float(gone[1]), float(unsure[1])),
        _stated("mean", middle + half * z.mean, half * (quantile * z.noise + z.rounded)),
        _stated("deviation", half * z.deviation, half * (quantile * z.deviation_noise + z.rounded)),
    ]  # fmt: skip
    wide = _half_widths(below)
    below = np.asarray(below, dtype=float)
    counts = rising(below)
    ends = np.append(np.asarray(starts, dtype=float)[1:], high)
    places = np.asarray(starts, dtype=float)
    for label, share in QUANTILES.items():
        rank = share * max(float(below[-1]), 0.0)  # of `counts` the last is lifted by the largest noise of a long tail
        doubt = float(np.sqrt(wide.max() ** 2 + (share * wide[-1]) ** 2))
        rank = min(max(rank, doubt), counts[-1] - doubt) if share in (0.0, 1.0) and doubt < counts[-1] / 2 else rank
        at = _at(counts, places, ends, rank, whole)
        low, high_ = (
            float(places[_bin(counts, rank - doubt)]),
            float((places if whole else ends)[_bin(counts, rank + doubt)]),
        )
        if share in (0.0, 1.0):
            low, high_ = (float(places[0]), high_) if share == 0.0 else (low, float(ends[-1]))
        lines.append({"": label, "value": at, "low": low, "high": high_})
    lines[4]["value"] = min(line["value"] for line in lines[4:])  # the lowest and highest are aimed at from inside
    lines[-1]["value"] = max(line["value"] for line in lines[4:])
    notes = ["the noise hides how many rows there are; spend more"] if z.hidden else []
    heaped = _at_ends(counts, math.sqrt(2) * float(wide.max()))
    if heaped:
        notes.append(f"{100 * heaped:.0f} % of the rows lie at an end of the described range, where numbers beyond it "
                     "are counted too: all this is of the clamped numbers")  # fmt: skip
    return Report(name, lines, notes, {_field(str(line[""])): line["value"] for line in lines})


def rising(noisy: Floats) -> Floats:
    """Numbers (k,) that do not fall: half-way from the largest so far, which noise lifts, to the smallest to come."""
    largest, smallest = np.maximum.accumulate(noisy), np.minimum.accumulate(noisy[::-1])[::-1]
    middle: Floats = (largest + smallest) / 2
    return middle


def _at_ends(counts: Floats, doubt: float) -> float:
    """The share of the rows in the first and the last bin, if either is a heap beside the next one, and no noise."""
    if len(counts) < 20:
        return 0.0
    bins = np.diff(counts, prepend=0.0)
    heaps = [float(end) for end, beside in ((bins[0], bins[1]), (bins[-1], bins[-2]))
             if end - 4 * max(float(beside), 0.0) > max(2 * doubt, HEAP * counts[-1])]  # fmt: skip
    return sum(heaps) / float(counts[-1]) if heaps else 0.0


def _field(label: str) -> str:
    return {"5 %": "p5", "95 %": "p95"}.get(label, label.replace(" ", "_"))


def _stated(label: str, value: float, error: float) -> dict[str, str | float]:
    least = 0.0 if label in ("rows", "missing", "deviation") else -math.inf
    return {"": label, "value": max(value, least), "low": max(value - error, least), "high": max(value + error, least)}


def _bin(counts: Floats, rank: float) -> int:
    return min(int(np.searchsorted(counts, rank, side="left")), len(counts) - 1)


def _at(counts: Floats, starts: Floats, ends: Floats, rank: float, whole: bool) -> float:
    """The number below which so many rows lie: within its bin, where as many of the bin's rows do."""
    place = _bin(counts, rank)
    if whole:
        return float(starts[place])
    before = counts[place - 1] if place else 0.0
    share = min(max((rank - before) / max(counts[place] - before, 1e-9), 0.0), 1.0)
    return float(starts[place] + share * (ends[place] - starts[place]))


# Several groups ----------------------------------------------------------------------------------

ROWS_HIDDEN = "the noise hides how many rows there are: the intervals are infinite; spend more, or use fewer cells"


def _contrasts(names: Sequence[object], weights: Sequence[Sequence[float]] | None) -> tuple[list[str], list[Floats]]:
    """Contrasts of groups and what they are called: those that are given, or all pairs."""
    if weights is None:
        unit, pairs = np.eye(len(names)), list(combinations(range(len(names)), 2))
        return [f"{text(names[b])} less {text(names[a])}" for a, b in pairs], [unit[b] - unit[a] for a, b in pairs]
    if any(len(row) != len(names) for row in weights):
        raise KernelError(f"a contrast has a weight for each of the {len(names)} groups")
    return [f"contrast {i + 1}" for i in range(len(weights))], [np.asarray(row, dtype=float) for row in weights]


def group_means(
    names: Sequence[object], shares: Sequence[Sums], middle: float, half: float, what: str,
    contrasts: Sequence[Sequence[float]] | None,
) -> Annotated[Report, "chance statistic degrees means"]:  # fmt: skip
    """Means of groups and whether they differ, from the noisy shares of each; then contrasts, which hold together.

    x is middle + half · z. Sampling takes the groups as independent rows of larger ones (Welch). Chances count the
    noise as one Laplace noise of its size where it is not Gaussian, which has the longest tail that it can have.
    """
    groups = [mean_of(one) for one in shares]
    laplace = shares[0]["mechanism"] != "gaussian"
    titles, vectors = _contrasts(names, contrasts)
    hidden = any(g.hidden for g in groups)
    means = np.array([middle + half * g.mean for g in groups])
    noise, rounded = (half * np.array([(g.noise, g.rounded) for g in groups])).T
    sampling = np.array([half * g.deviation / math.sqrt(g.rows) for g in groups])
    variance = np.maximum(noise**2 + sampling**2, 1e-300)
    weights = 1 / variance
    mean = float(weights @ means / weights.sum())
    square = float(weights @ (means - mean) ** 2)
    chance = 1.0 if hidden else _chance_of_square(square, noise, sampling, laplace)
    quantile = quantile_of(shares[0]["mechanism"])
    rows: list[dict[str, object]] = []

    def line(title: str, weight: Floats, many: float | None, level: float) -> None:
        noisy, spread = float(np.linalg.norm(weight * noise)), float(np.linalg.norm(weight * sampling))
        lost = any(g.hidden and w != 0 for g, w in zip(groups, weight, strict=True))
        factor = NormalDist().inv_cdf(1 - level / 2)
        tail = math.log(1 / level) / math.sqrt(2) if laplace else factor  # of one Laplace noise, the longest tail
        value, off = float(weight @ means), float(np.abs(weight) @ rounded)
        error = math.inf if lost else quantile * noisy + off
        wide = math.hypot(error if level == 0.05 else tail * noisy + off, math.inf if lost else factor * spread)
        chance = None if many is not None else 1.0 if lost else chance_of(abs(value), noisy, spread, laplace)
        rows.append({"group": title, "rows": many, "value": value, "error": error,
                     "low": value - wide, "high": value + wide, "chance": chance})  # fmt: skip

    for i, (name, group) in enumerate(zip(names, groups, strict=True)):
        line(text(name), np.eye(len(groups))[i], float(round(group.rows)), 0.05)
    for title, weight in zip(titles, vectors, strict=True):
        line(title, weight, None, 0.05 / max(len(vectors), 1))
    notes = [ROWS_HIDDEN if hidden else alike(chance, "were")]
    notes += [f"the intervals of the {len(vectors)} differences hold together with 95 %"] * (len(vectors) > 1)
    return Report(f"{what} by group", rows, notes, {
        "chance": chance, "statistic": square, "degrees": len(groups) - 1, "means": means.tolist(),
    })  # fmt: skip


DRAWS = 20_000


def _chance_of_square(square: float, noise: Floats, sampling: Floats, laplace: bool) -> float:
    """How often groups of one mean differ so much: a χ²; with Laplace noise by draws, where it is not beyond them.

    The noise of a mean counts as one Laplace noise of its size, which has the longest tail that it can have.
    """
    chance = float(chdtrc(len(noise) - 1, square))
    if not laplace or not noise.any():
        return chance
    rng = np.random.default_rng(0)  # the same answer gives the same chance
    draws = sampling * rng.standard_normal((DRAWS, len(noise))) + rng.laplace(
        0, noise / math.sqrt(2), (DRAWS, len(noise))
    )
    weights = 1 / np.maximum(noise**2 + sampling**2, 1e-300)
    apart = (weights * (draws - (draws @ weights / weights.sum())[:, None]) ** 2).sum(axis=1)
    return max(chance, float(np.mean(apart >= square)))


def alike(chance: float, what: str) -> str:
    return f"if groups {what} alike, so large a difference would come by chance {_percent(chance)} of the time"


def weighted_values(
    edges: Sequence[float], sums: Sequence[float], errors: Sequence[float], qs: Sequence[float], name: str,
    whole: bool = False,
) -> Annotated[Report, "values total"]:  # fmt: skip
    """Quantiles by noisy sums of weights between edges (one more), each with a 95 % half-width of its noise: `low` and
    `high` are edges, since where values lie between two of them is not known. Of a column of whole numbers they are."""
    places = np.asarray(edges, dtype=float)
    weights, unsure = np.asarray(sums, dtype=float), np.asarray(errors, dtype=float)
    below, squares = np.append(0.0, np.cumsum(weights)), np.append(0.0, np.cumsum(unsure**2))
    total = max(float(below[-1]), 1e-300)
    rows = []
    for q in qs:
        wide = np.sqrt((1 - q) ** 2 * squares + q**2 * (squares[-1] - squares))
        first, last = (int(rising(below + side * wide).searchsorted(q * total)) for side in (1.0, -1.0))
        low, high = float(places[max(first - 1, 0)]), float(places[min(max(last, 1), len(places) - 1)])
        value = float(np.interp(q * total, rising(below), places))
        value = float(np.ceil(value)) if whole else value
        rows.append({"quantile": float(q), "value": value, "low": low, "high": high})
    hidden = float(np.sqrt(squares[-1])) * CLEAR / 2 > total
    return Report(f"{name} by weight: {total:.6g} in all", rows, [ROWS_HIDDEN] if hidden else [], {
        "values": [row["value"] for row in rows], "total": total,
    })  # fmt: skip


def deviation_of(cells: Floats) -> tuple[float, float]:
    """The deviation of the noise of each cell, and the 95 % quantile of a sum of such noises, in its deviations."""
    noise = noise_of(cells)
    return (0.0, SAMPLING) if noise is None else (float(np.max(standard_errors(cells))), sum_quantile(type(noise.law)))
