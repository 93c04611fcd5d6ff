"""Survival, rates and means of several groups from released counts and sums, with what noise and sampling add to them.

All of it is post-processing of cells that were released with independent noise of one known deviation. What is
calculated of them moves by G·δ to first order, for the noise δ of each cell; sampling takes rows to be independent.

* Survival S(t) = Π(1 − d/n) over the times up to t, d the events at a time and n the rows at risk (Kaplan and Meier
  1958); Σ d/(n(n − d)) is the sampling variance of log S (Greenwood 1926).
* Log-rank: U = Σ(d_g − n_g·d/n) of each group, with the hypergeometric variance V of each time (Mantel 1966).
  U'(V + N)⁻U, N what noise adds, is a χ² with one degree of freedom less than there are groups.
* Rates λ = exp(Xβ) of events y and exposures e solve X'(y − eλ) = 0, which is linear in the cells, so that noise does
  not bias it (Poisson regression; with a level for each time and exposures of the rows at risk, proportional hazards
  as piecewise exponential ones: Holford 1980, Laird and Olivier 1981). The covariance is I⁻¹(R + N)I⁻¹, R that of
  residuals.
* Means of groups: the sum of (m − m̄)² weighed by 1/(s²/n + noise²) is a χ² likewise (Welch 1951, of many rows).
  Simultaneous intervals of contrasts are Bonferroni's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.special import chdtrc

from jostle.error_laws import sum_quantile
from jostle.kernels.accuracy import standard_errors
from jostle.kernels.arrays import Floats
from jostle.kernels.errors import KernelError
from jostle.kernels.noisy_array import noise_of
from jostle.kernels.statistics.moments import CLEAR, SAMPLING, chance_of, mean_of, quantile_of, rising
from jostle.kernels.statistics.regression import coefficients
from jostle.kernels.statistics.report import Report, text

HIDDEN = "the noise hides how many rows there are: the intervals are infinite; spend more, or use fewer cells"


def _deviation(cells: Floats) -> tuple[float, float]:
    """The deviation of the noise of each cell, and the 95 % quantile of a sum of such noises, in its deviations."""
    noise = noise_of(cells)
    return (0.0, SAMPLING) if noise is None else (float(np.max(standard_errors(cells))), sum_quantile(type(noise.law)))


# Survival ----------------------------------------------------------------------------------------


def _risks(m: int, late: float) -> tuple[Floats, Floats]:
    """Of the cells (m + 1 times, without and with an event; the last beyond all times) two maps (m, cells): events at a
    time, and rows at risk, of which those that leave then without an event are not at risk for the share `late`."""
    events, risks = np.zeros((m, m + 1, 2)), np.zeros((m, m + 1, 2))
    for j in range(m):
        events[j, j, 1] = 1.0
        risks[j, j:] = 1.0
        risks[j, j, 0] -= late
    return events.reshape(m, -1), risks.reshape(m, -1)


def survival_curve(times: Sequence[float], cells: Floats, late: float) -> Report:
    """The survival at each time, from noisy counts (times + 1, 2) of rows that left without and with an event."""
    counts = np.asarray(cells, dtype=float).reshape(len(times) + 1, 2)
    spread, quantile = _deviation(cells)
    to_events, to_risks = _risks(len(times), late)
    d, n = to_events @ counts.ravel(), to_risks @ counts.ravel()
    clear = n > np.maximum(CLEAR * spread * np.linalg.norm(to_risks, axis=1), 1.0)
    known = int(np.argmin(clear)) if not clear.all() else len(n)
    d, n = np.minimum(d[:known], n[:known] - 0.5), n[:known]
    logs = np.cumsum(np.log1p(-d / n))
    moved = np.cumsum(to_risks[:known] * (d / (n * (n - d)))[:, None] - to_events[:known] / (n - d)[:, None], axis=0)
    noise = spread * np.linalg.norm(moved, axis=1)
    sampling = np.sqrt(np.cumsum(np.maximum(d, 0.0) / (n * (n - d))))
    wide = np.hypot(quantile * noise, SAMPLING * sampling)
    values = -rising(-np.minimum(np.exp(logs), 1.0))
    rows: list[dict[str, Any]] = []
    last = 1.0
    for j, time in enumerate(times):
        if j < known:
            last = min(last, float(np.exp(min(logs[j] + wide[j], 0.0))))
            rows.append({"time": time, "at_risk": float(n[j]), "events": float(d[j]), "value": float(values[j]),
                         "error": float(values[j] * math.expm1(min(quantile * noise[j], 700.0))),
                         "low": float(np.exp(logs[j] - wide[j])), "high": last})  # fmt: skip
        else:
            rows.append({"time": time, "at_risk": None, "events": None, "value": None, "error": math.inf, "low": 0.0,
                         "high": last})  # fmt: skip
    half = {name: next((r["time"] for r in rows if r[of] is not None and r[of] <= 0.5), None)
            for name, of in (("median", "value"), ("median_low", "low"), ("median_high", "high"))}  # fmt: skip
    notes = (
        [] if known == len(times) else ["from the first time without a value on, noise hides how many rows are at risk"]
    )
    whole = float(counts.sum())
    return Report(f"survival: {max(whole, 0):.0f} rows", rows, notes, {**half, "count": whole})


def log_rank_test(times: Sequence[float], groups: Sequence[object], cells: Floats, late: float) -> Report:
    """Whether groups survive alike, from noisy counts (times + 1, 2, groups)."""
    g, m = len(groups), len(times)
    counts = np.asarray(cells, dtype=float).reshape(m + 1, 2, g)
    spread, _ = _deviation(cells)
    to_events, to_risks = _risks(m, late)
    d, n = (to @ counts.reshape(-1, g) for to in (to_events, to_risks))  # (m, g)
    unsure = CLEAR * spread * np.linalg.norm(to_risks, axis=1)
    used = (n > np.maximum(unsure, 1.0)[:, None]).all(axis=1)
    used[int(np.argmin(used)) if not used.all() else m :] = False
    d, n, to_events, to_risks = d[used], n[used], to_events[used], to_risks[used]
    events, risk = d.sum(axis=1), n.sum(axis=1)
    expected = n * (events / risk)[:, None]
    gap = (d - expected).sum(axis=0)
    weight = np.maximum(events, 0.0) * np.maximum(risk - events, 0.0) / (risk**2 * np.maximum(risk - 1, 1.0))
    variance = np.diag((weight[:, None] * n * risk[:, None]).sum(axis=0)) - (n * weight[:, None]).T @ n
    noise = np.zeros((g, g))
    for other in range(g):  # of the cells of each group
        own = np.eye(g)[other]
        moved = (own - n / risk[:, None]).T @ to_events + (
            n * (events / risk**2)[:, None] - own * (events / risk)[:, None]
        ).T @ to_risks
        noise += spread**2 * moved @ moved.T
    both = (variance + noise)[1:, 1:]
    known = bool(len(d)) and np.linalg.matrix_rank(both) == g - 1
    square = float(gap[1:] @ np.linalg.solve(both, gap[1:])) if known else 0.0
    chance = float(chdtrc(g - 1, square)) if known else 1.0
    rows = [
        {"group": text(name), "rows": float(n[0, i]) if known else None, "events": float(d[:, i].sum()),
         "expected": float(expected[:, i].sum())} for i, name in enumerate(groups)
    ]  # fmt: skip
    notes = [_alike(chance, "lasted")] if known else [HIDDEN]
    if known and not used.all():
        notes.append(
            f"of times up to {text(times[int(used.sum()) - 1])}: noise hides how many rows of a group are later at risk"
        )
    return Report("log-rank test", rows, notes, {"chance": chance, "statistic": square, "degrees": g - 1})


def _alike(chance: float, what: str) -> str:
    share = f"{100 * chance:.2g} %" if chance >= 1e-4 else "less than 0.01 %"
    return f"if groups {what} alike, so large a difference would come by chance {share} of the time"


# Rates -------------------------------------------------------------------------------------------


def hazard_model(times: Sequence[float], columns: Sequence[Mapping[str, Any]], cells: Floats, late: float) -> Report:
    """Log hazard ratios of columns, from noisy counts (times + 1, 2, strata): a level for each time beside."""
    m, k = len(times), math.prod(len(c["values"]) for c in columns)
    counts = np.asarray(cells, dtype=float).reshape((m + 1) * 2, k)
    spread, quantile = _deviation(cells)
    to_events, to_risks = _risks(m, late)
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
    lines = _rate_lines(names, fit, slice(keep, None), quantile)
    whole = float(counts.sum())
    return Report(f"log hazard ratios: {max(whole, 0):.0f} rows", lines, [HIDDEN] if fit[2] else [],
                  {"coefficients": coefficients(lines), "count": whole})  # fmt: skip


def rate_model(
    columns: Sequence[Mapping[str, Any]], seen: Mapping[str, Any], low: float, high: float, what: str
) -> Report:
    """Log rates of a number within public bounds, from the noisy shares of each stratum."""
    names, design = _design(columns)
    sums, spread = np.asarray(seen["sums"], dtype=float).reshape(len(design), -1), float(seen["noise"])
    one, square = (np.array(v) for v in (((1, 0.5, 0), (1, 0, 0)) if sums.shape[1] == 3 else ((1, 0), (1, 0))))
    to_y, to_squares = low + (high - low) * one, low**2 + 2 * low * (high - low) * one + (high - low) ** 2 * square
    y, e, squares = sums @ to_y, sums.sum(axis=1), sums @ to_squares
    x = np.concatenate([np.ones((len(design), 1)), design], axis=1)

    def noise(of_y: Floats, of_e: Floats) -> Floats:
        parts = [of_y * value - of_e for value in to_y]
        return spread**2 * np.asarray(sum(part.T @ part for part in parts))

    fit = _log_linear(x, y, e, noise, lambda rates: squares - 2 * rates * y + rates**2 * e)
    lines = _rate_lines(["intercept", *names], fit, slice(0, None), quantile_of(seen["mechanism"]))
    return Report(f"log of mean {what}: {max(float(e.sum()), 0):.0f} rows", lines, [HIDDEN] if fit[2] else [],
                  {"coefficients": coefficients(lines), "count": float(e.sum())})  # fmt: skip


def _design(columns: Sequence[Mapping[str, Any]]) -> tuple[list[str], Floats]:
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
    if p == 0 or y.sum() <= 0 or e.sum() <= 0:
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


def _rate_lines(names: Sequence[str], fit: Fit, of: slice, quantile: float) -> list[dict[str, Any]]:
    beta, noise, lost, sampling = fit
    lines = []
    for name, at, a, b in zip(names, beta[of], np.diag(noise)[of], np.diag(sampling)[of], strict=True):
        error = math.inf if lost else quantile * math.sqrt(max(float(a), 0.0))
        wide = math.hypot(error, SAMPLING * math.sqrt(max(float(b), 0.0)))
        value, ratio = float(at), math.exp(min(float(at), 700.0))
        lines.append({"term": name, "value": value, "error": error, "low": value - wide, "high": value + wide,
                      "ratio": ratio})  # fmt: skip
    return lines


# Means of groups -----------------------------------------------------------------------------------


def group_means(
    names: Sequence[object], seen: Sequence[Mapping[str, Any]], middle: float, half: float, what: str,
    contrasts: Sequence[Sequence[float]] | None,
) -> Report:  # fmt: skip
    """Means of groups and whether they differ, from the noisy shares of each; then contrasts, which hold together."""
    groups = [mean_of(one) for one in seen]
    laplace = seen[0]["mechanism"] != "gaussian"
    if contrasts is None:
        pairs = list(combinations(range(len(groups)), 2))
        contrasts = [[float((i == b) - (i == a)) for i in range(len(groups))] for a, b in pairs]
        titles = [f"{text(names[b])} less {text(names[a])}" for a, b in pairs]
    else:
        titles = [f"contrast {i + 1}" for i in range(len(contrasts))]
        if any(len(row) != len(groups) for row in contrasts):
            raise KernelError(f"a contrast has a weight for each of the {len(groups)} groups")
    hidden = any(g.hidden for g in groups)
    means = np.array([middle + half * g.mean for g in groups])
    noise = np.array([half * g.noise for g in groups])
    sampling = np.array([half * g.deviation / math.sqrt(g.rows) for g in groups])
    variance = np.maximum(noise**2 + sampling**2, 1e-300)
    weights = 1 / variance
    mean = float(weights @ means / weights.sum())
    square = float(weights @ (means - mean) ** 2)
    chance = 1.0 if hidden else _chance_of_square(square, noise, sampling, laplace)
    quantile = quantile_of(seen[0]["mechanism"])
    rows: list[dict[str, Any]] = []

    def line(title: str, weight: Floats, many: float | None, level: float) -> None:
        noisy, spread = float(np.linalg.norm(weight * noise)), float(np.linalg.norm(weight * sampling))
        factor = NormalDist().inv_cdf(1 - level / 2)
        tail = math.log(1 / level) / math.sqrt(2) if laplace else factor  # of one Laplace noise, the longest tail
        wide = math.inf if hidden else math.hypot((quantile if level == 0.05 else tail) * noisy, factor * spread)
        value = float(weight @ means)
        chance = 1.0 if hidden else chance_of(abs(value), noisy, spread, laplace)
        rows.append({"group": title, "rows": many, "value": value, "error": math.inf if hidden else quantile * noisy,
                     "low": value - wide, "high": value + wide, "chance": None if many else chance})  # fmt: skip

    for i, (name, group) in enumerate(zip(names, groups, strict=True)):
        line(text(name), np.eye(len(groups))[i], float(round(group.rows)), 0.05)
    for title, weight in zip(titles, contrasts, strict=True):
        line(title, np.asarray(weight, dtype=float), None, 0.05 / max(len(contrasts), 1))
    notes = [HIDDEN if hidden else _alike(chance, "were")]
    notes.append(f"the intervals of the {len(contrasts)} differences hold together with 95 %")
    return Report(f"{what} by group", rows, notes, {
        "chance": chance, "statistic": square, "degrees": len(groups) - 1, "means": means.tolist(),
    })  # fmt: skip


def weighted_values(
    edges: Sequence[float], sums: Sequence[float], errors: Sequence[float], qs: Sequence[float], name: str
) -> Report:
    """Quantiles by noisy sums of weights between edges (one more), each with a 95 % half-width of its noise."""
    places = np.asarray(edges, dtype=float)
    weights, unsure = np.asarray(sums, dtype=float), np.asarray(errors, dtype=float)
    below, squares = np.append(0.0, np.cumsum(weights)), np.append(0.0, np.cumsum(unsure**2))
    total = max(float(below[-1]), 1e-300)
    rows = []
    for q in qs:
        wide = np.sqrt((1 - q) ** 2 * squares + q**2 * (squares[-1] - squares))
        value, low, high = (
            float(np.interp(q * total, rising(below + side * wide), places)) for side in (0.0, 1.0, -1.0)
        )
        rows.append({"quantile": float(q), "value": value, "low": low, "high": high})
    hidden = float(np.sqrt(squares[-1])) * CLEAR / 2 > total
    return Report(f"{name} by weight: {total:.6g} in all", rows, [HIDDEN] if hidden else [], {
        "values": [row["value"] for row in rows], "total": total,
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
    drawn = sampling * rng.standard_normal((DRAWS, len(noise))) + rng.laplace(
        0, noise / math.sqrt(2), (DRAWS, len(noise))
    )
    weights = 1 / np.maximum(noise**2 + sampling**2, 1e-300)
    apart = (weights * (drawn - (drawn @ weights / weights.sum())[:, None]) ** 2).sum(axis=1)
    return max(chance, float(np.mean(apart >= square)))
