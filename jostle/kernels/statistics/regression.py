"""Linear and logistic regression from released sums, in the columns' own units, and correlations.

Each coefficient has `error`, the 95 % half-width of the noise alone (how far the answer may be from that of the same
rows without noise); `low` and `high` are 95 % bounds for the law that the rows are a sample of: noise and sampling
together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, TypedDict

import numpy as np

from jostle.kernels import KernelError
from jostle.kernels.arrays import Column, Floats, Moments, Sums
from jostle.kernels.rowprograms.scales import STEPS
from jostle.kernels.statistics import Report
from jostle.kernels.statistics import moments as mom

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
    design: Sequence[Column], moments: Moments, radius: float, squares: Sums, times: Floats
) -> Annotated[Report, "coefficients r_squared count"]:
    """Least squares of the last term of a design by the others, from released second moments.

    Sampling is that of independent rows, whose errors may be of any size (White 1980): `squares` are the sums of
    squares and fourth powers of what each row adds to each coefficient. Less than errors of one size leave is not said.
    """
    m = mom.second_moments(design, moments, radius)
    d = len(m.names)
    fit = mom.least_squares(m, range(d), d)
    turn, shift = _to_units(m)
    value = turn @ fit.coefficients + shift
    noise, even = turn @ fit.noise @ turn.T, np.diag(turn @ fit.sampling @ turn.T)
    spread = _spreads(squares, _of_coefficients(design, m, fit).reach / times) * max(m.rows, 1.0) / max(m.rows - d, 1.0)
    rounded = mom.rounded_by(turn, fit.inverse, 0, fit.off)
    names = [("intercept", ""), *_terms(design[:-1])]
    rows = coefficient_lines(names, value, noise, np.diag(np.maximum(even, spread)), m.quantile, fit.hidden, rounded)
    explained = "" if fit.hidden else f", R² {fit.explained:.3f}"
    title = f"{m.names[-1]} by linear regression: {max(m.rows, 0):.0f} rows{explained}"
    facts = coefficients(rows) | {"r_squared": fit.explained, "count": m.rows}
    notes = [_hides(design, m.sums[:d, :d], m.noise[:d, :d], 0)] if fit.hidden else []
    return Report(title, rows, notes, facts)


def _hides(design: Sequence[Column], sums: Floats, noise: Floats, constant: int) -> str:
    """The note that names the term which is the least clear of its noise, given the others and the constant."""
    own = 1 / np.maximum(np.abs(np.diag(np.linalg.pinv(sums, hermitian=True))), 1e-300)
    clear = np.delete(own / np.maximum(np.diag(noise), 1e-300), constant)
    return HIDES.format(design[int(np.argmin(clear))]["name"])


def _to_units(m: mom.SecondMoments) -> tuple[Floats, Floats]:
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


def coefficient_lines(
    names: Sequence[tuple[str, str]], value: Floats, noise: Floats, sampling: Floats, quantile: float, lost: bool,
    rounded: Floats, short: float = 0.0,
) -> list[dict[str, Any]]:  # fmt: skip
    """A line for each coefficient, off by `rounded` beside, and by so many sampling deviations as `short` says."""
    rows = []
    for i, (name, level) in enumerate(names):
        spread = math.sqrt(max(float(sampling[i, i]), 0.0))
        noisy = quantile * math.sqrt(max(float(noise[i, i]), 0.0)) + float(rounded[i])
        error = math.inf if lost else noisy + short * spread
        wide = math.inf if lost else math.hypot(noisy, mom.SAMPLING * spread) + short * spread
        at = float(value[i])
        rows.append({
            "term": f"{name} = {level}" if level else name, "value": at, "error": error, "low": at - wide,
            "high": at + wide,
        })  # fmt: skip
    return rows


def coefficients(rows: Sequence[Mapping[str, object]]) -> dict[str, object]:
    return {"coefficients": {row["term"]: row["value"] for row in rows}}


# Squares of what rows add ------------------------------------------------------------------------

FEW_LOUD = 3.0
"""How many times the share of the loudest rows, Σf⁴/(Σf²)², widens a variance of Σf² (`_spreads`)."""


LOUD = 0.5


@dataclass(frozen=True, eq=False)
class Pulls:
    """How much each row moves each of k numbers, to first order: f = (left · (1, z)) · (right · (1, z)).

    Both forms (k, d + 1) are within ±1 of all rows that the design describes, divided by what makes `reach` (k,).
    """

    left: Floats
    right: Floats
    reach: Floats

    @classmethod
    def of(cls, left: Floats, right: Floats, listed: Sequence[str]) -> Pulls:
        """Of forms; `listed`: of each coordinate the column of which it is one of several values, or ""."""
        bounds = [_bounds(form, listed) for form in (left, right)]
        return cls(left / bounds[0][:, None], right / bounds[1][:, None], np.prod(bounds, axis=0))

    def by_noise(self, m: mom.SecondMoments) -> Floats:
        """The variance (k,) that the noise of second moments gives to Σf."""
        forms = self.left[:, :, None] * self.right[:, None, :] * self.reach[:, None, None]
        both = np.triu(forms + forms.transpose(0, 2, 1)) * (1 - np.eye(len(m.sums)) / 2)
        return np.asarray(np.sum((both * m.noise) ** 2, axis=(1, 2)))

    def parameters(self, radius: float, variance: Floats, noise: float) -> dict[str, Floats]:
        """Parameters of `squared_products`, of coordinates that are z over the radius, the constant last.

        f · `times` is clipped to the reach: so far that the noise of Σf² is `LOUD` of a `variance` (k,) that there is
        without it.
        """
        times = np.clip(np.floor(self.reach * np.sqrt(noise / LOUD / np.maximum(variance, 1e-300))), 1, 2.0**18)
        left, right = (np.column_stack([form[:, 1:] * radius, form[:, 0]]) for form in (self.left, self.right))
        return {"left": left, "right": right, "times": times}


def _bounds(forms: Floats, listed: Sequence[str]) -> Floats:
    """The largest |form · (1, z)| of numbers within ±1, and of indicators of which one of a column is 1 at most."""
    low, high = forms[:, 0].copy(), forms[:, 0].copy()
    for name in dict.fromkeys(listed):
        part = forms[:, 1:][:, [other == name for other in listed]]
        if name:
            low, high = low + np.minimum(part.min(axis=1), 0), high + np.maximum(part.max(axis=1), 0)
        else:
            low, high = low - np.abs(part).sum(axis=1), high + np.abs(part).sum(axis=1)
    return np.maximum(np.maximum(-low, high), 1e-300)


def _spreads(squares: Sums, unit: Floats) -> Floats:
    """The variance (k,) that sampling gives to Σf, from noisy Σ(f/unit)² and Σ(f/unit)⁴, above what noise may hide.

    Σf² is what it says (White 1980) of many rows. Where few rows make up most of it, and others like them are not in
    the sample, it says too little: by columns of long tails it is widened by `FEW_LOUD` of the share of the loudest.
    """
    second, fourth = np.asarray(squares["sum"], dtype=float).reshape(2, -1)
    second = np.maximum(second, 0.0) + float(squares["noise"])
    return np.asarray((second + FEW_LOUD * np.clip(fourth, 0.0, second) / second) * unit**2)


def correlation_pulls(design: Sequence[Column], moments: Moments, radius: float, noise: float) -> dict[str, Floats]:
    """How much each row moves each pair's correlation, as parameters of `squared_products`, whose sums have `noise`."""
    m = mom.second_moments(design, moments, radius)
    pulls = _of_correlations(m)
    pairs = combinations(range(len(m.names)), 2)
    even = [max(m.rows, 1.0) * (1 - (_correlation(m, *pair) or 0.0) ** 2) ** 2 for pair in pairs]
    return pulls.parameters(radius, pulls.by_noise(m) + even, noise)


def regression_pulls(design: Sequence[Column], moments: Moments, radius: float, noise: float) -> dict[str, Floats]:
    """How much each row moves each coefficient, as parameters of `squared_products`, whose sums have `noise`."""
    m = mom.second_moments(design, moments, radius)
    fit, turn = mom.least_squares(m, range(len(m.names)), len(m.names)), _to_units(m)[0]
    variance = np.diag(turn @ (fit.noise + fit.sampling) @ turn.T)
    return _of_coefficients(design, m, fit).parameters(radius, variance, noise)


def _of_coefficients(design: Sequence[Column], m: mom.SecondMoments, fit: mom.Fit) -> Pulls:
    """A row (1, z, y) adds (y − (1, z)·β) · A⁻¹(1, z) to the coefficients β, here of columns in their own units."""
    right = np.column_stack([_to_units(m)[0] @ fit.inverse, np.zeros(len(m.names))])
    left = np.tile(np.append(-fit.coefficients, 1.0), (len(right), 1))
    return Pulls.of(left, right, [str(term["name"]) if term.get("value", "") else "" for term in design])


# Correlation -------------------------------------------------------------------------------------


def correlations(
    design: Sequence[Column], moments: Moments, radius: float, squares: Sums, times: Floats
) -> Annotated[Report, "matrix names count"]:
    """The correlation of each pair of columns; intervals by Fisher's z, to which the noise is added by first order.

    Of u and v, the columns less their means over their deviations, a row moves r by f = uv − r(u² + v²)/2 over the
    number of rows. So Σf² is the variance that sampling gives to it, whatever the columns' law; the normal law's is
    (1 − r²)² rows, less than which is not said.
    """
    m = mom.second_moments(design, moments, radius)
    n, d = max(m.rows, 1.0), len(m.names)
    pulls = _of_correlations(m)
    noise, sampling = pulls.by_noise(m), np.sqrt(_spreads(squares, pulls.reach / times) / n)
    matrix = np.eye(d)
    rows = []
    for k, (i, j) in enumerate(combinations(range(d), 2)):
        value = _correlation(m, i, j)
        if value is None:
            rows.append(_pair(m.names, i, j, None, math.inf, -1.0, 1.0))
            matrix[i, j] = matrix[j, i] = math.nan
            continue
        slope = 1 - value**2
        rounded = m.rounded * sum(1 / _deviation(m, place) for place in (i, j)) * math.sqrt(slope)
        error = m.quantile * math.sqrt(float(noise[k])) / n + rounded
        spread = max(float(sampling[k]) / slope, 1.0) / math.sqrt(max(n - 3, 1.0))
        wide = math.hypot(error / slope, mom.SAMPLING * spread)
        low, high = (math.tanh(math.atanh(value) + side * wide) for side in (-1, 1))
        rows.append(_pair(m.names, i, j, value, error, low, high))
        matrix[i, j] = matrix[j, i] = value
    notes = [HIDDEN] if any(row["correlation"] is None for row in rows) else []
    title = f"correlation: {max(m.rows, 0):.0f} rows"
    return Report(title, rows, notes, {"matrix": matrix, "names": list(m.names), "count": m.rows})


def _pair(
    names: Sequence[str], i: int, j: int, value: float | None, error: float, low: float, high: float
) -> dict[str, object]:
    return {"x": names[i], "y": names[j], "correlation": value, "error": error, "low": low, "high": high}


def _deviation(m: mom.SecondMoments, i: int) -> float:
    n = max(m.rows, 1.0)
    return math.sqrt(max(float(m.sums[i + 1, i + 1] / n - (m.sums[0, i + 1] / n) ** 2), 1e-300))


def _correlation(m: mom.SecondMoments, i: int, j: int) -> float | None:
    """The correlation of two coordinates, or None where noise hides how far one of them spreads."""
    for place in (i + 1, j + 1):
        both = np.ix_([0, place], [0, place])
        if mom.hidden(m.sums[both], m.noise[both]):
            return None
    together = float(m.sums[i + 1, j + 1] / m.rows - m.sums[0, i + 1] * m.sums[0, j + 1] / m.rows**2)
    return min(max(together / _deviation(m, i) / _deviation(m, j), -1 + 1e-9), 1 - 1e-9)


def _of_correlations(m: mom.SecondMoments) -> Pulls:
    """uv − r(u² + v²)/2 = (as − bt)(as + bt) of s = u + v and t = u − v, a² = (1 − r)/4 and b² = (1 + r)/4."""
    left, right = [], []
    for i, j in combinations(range(len(m.names)), 2):
        r = _correlation(m, i, j)
        forms = np.zeros((2, len(m.names) + 1))
        for form, place in zip(forms, (i, j), strict=True):
            form[[0, place + 1]] = -m.sums[0, place + 1] / max(m.rows, 1.0), 1.0
            form /= _deviation(m, place) if r is not None else math.inf
        both = math.sqrt(1 - (r or 0.0)) / 2 * (forms[0] + forms[1])
        apart = math.sqrt(1 + (r or 0.0)) / 2 * (forms[0] - forms[1])
        left.append(both - apart)
        right.append(both + apart)
    return Pulls.of(np.array(left), np.array(right), [""] * len(m.names))


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
    lost = mom.hidden(matrix, noise)
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
    tables = 0.5 / STEPS  # by how much log-odds are rounded where slopes are looked up
    along = (mom.ROUNDED * float(np.abs(final[:-1]).sum()) + tables) * math.sqrt(weight)
    off = along, mom.ROUNDED * math.sqrt(max(many, 0.0) * weight)
    centres, scales = (np.array([float(term[k]) for term in design]) for k in ("centre", "scale"))
    turn = np.zeros((len(final), len(final)))  # to (intercept, slopes) of the columns in their own units
    turn[0, -1] = 1.0
    turn[0, :-1] = -centres / scales / radius
    turn[1:, :-1] = np.diag(1 / scales / radius)
    rounded = mom.rounded_by(turn, inverse, -1, off)
    lines = coefficient_lines(
        [("intercept", ""), *_terms(design)], turn @ final, turn @ (inverse @ spread @ inverse) @ turn.T,
        turn @ inverse @ turn.T, mom.quantile_of(mechanism), lost or cut, rounded, short,
    )  # fmt: skip
    for line in lines:
        line["odds"] = math.exp(min(line["value"], 700.0))
    title = f"log-odds of {target} by logistic regression: {max(many, 0):.0f} rows"
    clear = not mom.hidden(np.asarray(rows["matrix"], dtype=float), np.asarray(rows["noise"], dtype=float))
    notes = (
        [FEW if clear else _hides(design, matrix, noise, -1)]
        if lost
        else [SEPARATED]
        if cut
        else [UNSETTLED] * (short > 1)
    )
    return Report(title, lines, notes, coefficients(lines) | {"count": many})


# Steps down noisy gradients --------------------------------------------------------------------------

KEEPS = 0.9
"""What of a step goes on in the next."""


def descent_start(weights: object) -> dict[str, Floats]:
    """The state before the first step, from weights of any shape."""
    start = np.asarray(weights, dtype=float)
    if not (np.abs(start) <= LARGEST_WEIGHT).all():
        raise KernelError(f"weights start as numbers of at most {LARGEST_WEIGHT:g}")
    return {"weights": start, "step": np.zeros(())}


def descent_step(
    state: Mapping[str, Floats], gradient: Sums, rows: float, pace: float, done: float
) -> dict[str, Floats]:  # fmt: skip
    """Down the noisy gradient of some `rows`, by `pace` times its mean, less as the share `done` of all steps grows."""
    before = np.asarray(state["weights"], dtype=float)
    mean = np.asarray(gradient["sum"], dtype=float).reshape(before.shape) / max(float(rows), 1.0)
    step = np.clip(KEEPS * np.asarray(state["step"]) - pace * (1 - done) * mean, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    return {"weights": np.clip(before + step, -LARGEST_WEIGHT, LARGEST_WEIGHT), "step": step}


def softmax_fit(
    design: Sequence[Column], target: str, classes: Sequence[object], weights: object, radius: float
) -> Annotated[Report, "classes"]:
    """The log-odds of each class as lines, in the units of the columns, each value beside its column's first."""
    matrix = np.asarray(weights, dtype=float)
    matrix = matrix - matrix.mean(axis=0)
    slopes = matrix[:, :-1] / np.array([float(term["scale"]) for term in design]) / radius
    constants = matrix[:, -1] - slopes @ np.array([float(term["centre"]) for term in design])
    first = {term["name"]: i for i, term in reversed(list(enumerate(design))) if term["value"] != ""}
    constants += slopes[:, list(first.values())].sum(axis=1)
    others = [i for i, term in enumerate(design) if first.get(term["name"]) != i]
    padded = np.column_stack([slopes, 0 * constants])
    slopes = padded[:, others] - padded[:, [first.get(design[i]["name"], -1) for i in others]]
    names = [("intercept", ""), *_terms([design[i] for i in others])]
    lines = [
        {"class": kind, "column": column, "of": value, "value": float(number)}
        for kind, numbers in zip(classes, np.column_stack([constants, slopes]), strict=True)
        for (column, value), number in zip(names, numbers, strict=True)
    ]
    return Report(f"log-odds of {target} among {len(classes)} classes", lines, (), {"classes": list(classes)})
