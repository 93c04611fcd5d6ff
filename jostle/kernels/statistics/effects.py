"""Average treatment effects from noisy sums by stratum and arm, survival by time, and independence of two columns.

*Effects.* An outcome y within public bounds stands as x = (y − low)/(high − low), and a row gives the shares of x to
the sums of its stratum and arm (`kernels.rowprograms.mixtures`). To first order an effect moves by Σ g·δ for the noise
δ of each sum, whose variance is known. Sampling takes rows to be independent draws of a larger population, whose effect
is the one that intervals are for; its variance is estimated from the same noisy sums, less what noise adds to it. The
effect is one of treatment where, within each stratum, who is treated has nothing to do with what would become of them.
Simulated studies, of which the effect is known, are to train choices on.

*Survival* of one group, and whether several survive alike, from noisy counts by time. S(t) = Π(1 − d/n) over the times
up to t, d the events at a time and n the rows at risk (Kaplan and Meier 1958). Σ d/(n(n − d)) is the sampling variance
of log S (Greenwood 1926). Log-rank: U = Σ(d_g − n_g·d/n) of each group with the hypergeometric variance V of each time
(Mantel 1966); U'(V + N)⁻U, N what noise adds, is a χ² with one degree of freedom less than there are groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from jostle.formulas import error_text
from jostle.kernels.arrays import Floats
from jostle.kernels.statistics import Report, text
from jostle.kernels.statistics.moments import CLEAR, ROUNDED, ROWS_HIDDEN, SAMPLING, alike, deviation_of, rising

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
    def square(self) -> Floats:
        return _PARTS[self.sums.shape[-1]][1]

    @property
    def rows(self) -> Floats:
        return np.asarray(self.sums.sum(axis=-1))

    @property
    def unsure(self) -> float:
        """The deviation of the noise of a number of rows."""
        return self.noise * math.sqrt(self.sums.shape[-1])

    @property
    def clear(self) -> NDArray[np.bool_]:
        """Whether a cell has more rows than its noise could be, and more than one."""
        return np.asarray(self.rows > max(CLEAR * self.unsure, 1.5))

    @property
    def divisors(self) -> Floats:
        """The number of rows, at least as large as its noise."""
        return np.maximum(self.rows, max(2 * self.unsure, 1.0))

    @property
    def mean(self) -> Floats:
        return np.asarray(self.sums @ self.value) / self.divisors

    @property
    def slopes(self) -> Floats:
        """By how much a cell's mean moves with each of its sums, (…, 2 or 3)."""
        return (self.value - self.mean[..., None]) / self.divisors[..., None]

    @property
    def mean_noise(self) -> Floats:
        """The variance of the noise of a mean."""
        return self.noise**2 * np.asarray((self.slopes**2).sum(axis=-1))

    @property
    def spread(self) -> Floats:
        """The variance of x within a cell, less what noise takes from it; between 0 and 1/4."""
        squares = np.asarray(self.sums @ self.square) / self.divisors
        return np.clip(squares - self.mean**2 + self.mean_noise, 0.0, 0.25)


def effect_of_strata(
    sums: object, cells: int, noise: float, mechanism: str, low: float, high: float, what: str, matched: bool = False
) -> Annotated[Report, "effect error low high strata left_out"]:
    """The effect by strata: that of each, weighed by its rows.

    `sums`: the noisy sums of each of the `cells`, a stratum's untreated and treated rows in turn. With `matched` the
    strata where both arms are clear of noise alone, and the interval is infinite where they hold less than half of the
    rows; else all strata whose rows are clear, and it is infinite where an arm of one is not. An infinite interval is
    given as what is possible.
    """
    strata = Cells(shaped(sums, cells), noise)
    together = strata.rows.sum(axis=1)
    both = np.asarray(strata.clear.all(axis=1))
    some = together > max(CLEAR * strata.unsure * math.sqrt(2), 2.0)
    usable = np.asarray(both if matched else some)
    if not usable.any():
        return report(what, 0.0, math.inf, math.inf, high - low, 0.0, 0, float(together.sum()))
    part = Cells(strata.sums[usable], noise)
    share = part.rows.sum(axis=1) / part.rows.sum()
    by_stratum = part.mean[:, 1] - part.mean[:, 0]
    effect = float(share @ by_stratum)
    pull = (by_stratum - effect) / part.rows.sum()
    signs = np.array([-1.0, 1.0])
    slopes = pull[:, None, None] + share[:, None, None] * signs[:, None] * part.slopes
    within = (part.spread / part.divisors).sum(axis=1)
    unsure = within + part.mean_noise.sum(axis=1)
    between = max(float(share @ ((by_stratum - effect) ** 2 - unsure * (1 - share))), 0.0)
    sampling = float(share**2 @ within) + between / float(part.rows.sum())
    lost = float(together[usable].sum()) < float(together.sum()) / 2 if matched else not bool(both[some].all())
    off = ROUNDED if len(part.value) == 3 else 0.0  # both arms' outcomes, by which rows were brought onto a grid
    error, both_wide = (math.inf if lost else w + off for w in widths(slopes, noise, mechanism, 0.0, sampling))
    left = float(together[~usable].sum())
    return report(what, effect, error, both_wide, high - low, float(part.rows.sum()), int(usable.sum()), left)


def shaped(sums: object, cells: int) -> Floats:
    """(strata, 2, numbers of a row)."""
    return np.asarray(sums, dtype=float).reshape(int(cells) // 2, 2, -1)


def widths(slopes: Floats, noise: float, mechanism: str, second: float, sampling: float) -> tuple[float, float]:
    """Half-widths at 95 % of noise alone, and of noise and sampling together.

    `slopes`: the effect's slope in each noisy sum. `second`: a variance of noise that is counted as normal. The tail of
    a sum of Laplace noises lies between one Laplace noise's and a normal one's: its fourth cumulant says where
    (Cornish and Fisher 1938).
    """
    variance = noise**2 * float((slopes**2).sum())
    fourth = 3 * noise**4 * float((slopes**4).sum()) if mechanism != "gaussian" else 0.0
    return _half_width(variance + second, fourth), _half_width(variance + second + sampling, fourth)


def _half_width(variance: float, fourth: float) -> float:
    if variance <= 0 or math.isinf(variance):
        return variance
    z = SAMPLING
    return math.sqrt(variance) * (z + fourth / variance**2 * (z**3 - 3 * z) / 24)


def report(
    what: str, effect: float, error: float, wide: float, unit: float, rows: float, strata: int, left: float
) -> Annotated[Report, "effect error low high strata left_out"]:
    """Of an effect, and half-widths, in x; `unit` is the range of y.

    No effect is beyond ±1, so what an interval says beyond is cut off, and the effect stands in the middle of the rest:
    an infinite one says −1 to 1.
    """
    least, most = (min(max(end, -1.0), 1.0) for end in (effect - wide, effect + wide))
    value, widest = (least + most) / 2 * unit, (most - least) / 2
    facts = {"effect": value, "error": min(error, widest) * unit, "low": least * unit, "high": most * unit}
    counted = {"rows": round(rows), "strata": strata, "left_out": max(round(left), 0)}
    notes = []
    if math.isinf(wide):
        notes.append("the noise hides an arm of a stratum: `low` and `high` are what the outcome's bounds say; "
                     "spend more, use fewer strata, or `ate_weighted`")  # fmt: skip
    return Report(what, [{"": "effect", "value": value, **{k: facts[k] for k in ("error", "low", "high")}, **counted}],
                  notes, facts | counted)  # fmt: skip


Rng = np.random.Generator
MOST_STRATA = 512


@dataclass(frozen=True, eq=False)
class Study:
    """A population by stratum: `shares` of it, `propensity` of treatment, `means` (strata, 2) of the outcome untreated
    and treated, all of [0, 1]. `sizes`: how many values each covariate has, of which the first changes slowest.

    `concentration`: how near its mean an outcome lies (that of a beta law), 0 where it is 0 or 1. `used`: the part of
    its described range, from 0 on, that the outcome can take.
    """

    rows: int
    sizes: tuple[int, ...]
    shares: Floats
    propensity: Floats
    means: Floats
    concentration: float
    used: float

    @property
    def binary(self) -> bool:
        return self.concentration == 0

    @property
    def effects(self) -> Floats:
        """The effect in each stratum, of an outcome whose range is 1."""
        return np.asarray((self.means[:, 1] - self.means[:, 0]) * self.used)

    @property
    def truth(self) -> float:
        """The mean effect in the population."""
        return float(self.shares @ self.effects)

    def sample(self, rng: Rng) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Stratum, arm and outcome of each of the rows."""
        stratum = rng.choice(len(self.shares), self.rows, p=self.shares)
        arm = (rng.random(self.rows) < self.propensity[stratum]).astype(np.int64)
        mean = self.means[stratum, arm]
        if self.binary:
            return stratum, arm, (rng.random(self.rows) < mean).astype(float)
        outcome = rng.beta(mean * self.concentration, (1 - mean) * self.concentration)
        return stratum, arm, np.asarray(outcome * self.used)

    def data_set(self, seed: int, number: int) -> dict[str, NDArray[np.int64] | Floats]:
        """The rows of the sample of study `number` of a seed as a table: covariates `x1`, …, `treated`, `outcome`."""
        stratum, arm, outcome = self.sample(np.random.default_rng([seed, number, 1]))
        places = np.unravel_index(stratum, self.sizes)
        covariates = {f"x{i + 1}": np.asarray(place, dtype=np.int64) for i, place in enumerate(places)}
        last = outcome.astype(np.int64) if self.binary else outcome
        return {**covariates, "treated": arm, "outcome": last}


def simulated_study(number: int, seed: int, least: int, most: int) -> Study:
    """Study `number` of a seed, with `least` to `most` rows and 2 to 512 strata, both evenly on the log scale."""
    rng = np.random.default_rng([seed, number])
    rows = round(math.exp(rng.uniform(math.log(least), math.log(most))))
    sizes = _sizes(math.exp(rng.uniform(math.log(2), math.log(MOST_STRATA))), rng)
    shares = _shares(sizes, rng)
    together = rng.uniform(0, 1) ** 2  # how much covariates act together, beside each alone
    who, other, differs = (_score(sizes, shares, together, rng) for _ in range(3))
    confounded = rng.uniform(-1, 1)
    outlook = confounded * who + math.sqrt(1 - confounded**2) * other
    propensity = np.clip(_logistic(rng.normal(0, 0.7) + rng.uniform(0, 1.2) * who), 0.04, 0.96)
    binary = rng.random() < 0.4
    start = rng.normal(-1, 1) + rng.uniform(0, 1) * outlook
    effect = rng.normal(0, 0.6) + rng.uniform(0, 0.5) * differs
    means = np.clip(_logistic(np.stack([start, start + effect], axis=1)), 0.01, 0.99)
    spread = math.exp(rng.uniform(math.log(1.5), math.log(80)))
    used = 1.0 if binary or rng.random() < 0.5 else math.exp(rng.uniform(math.log(0.1), 0))
    return Study(rows, sizes, shares, propensity, means, 0.0 if binary else spread, used)


def _sizes(strata: float, rng: Rng) -> tuple[int, ...]:
    """Covariates of 2 to 8 values, about so many strata in all."""
    sizes: list[int] = []
    while not sizes or (math.prod(sizes) * 1.4 < strata and math.prod(sizes) * 2 <= MOST_STRATA):
        left = strata / math.prod(sizes)
        most = min(max(2, round(left)), MOST_STRATA // math.prod(sizes))
        sizes.append(min(int(rng.integers(2, 9)), most))
    return tuple(sizes)


def _shares(sizes: tuple[int, ...], rng: Rng) -> Floats:
    """How often each stratum is: two kinds of rows, within each of which covariates are independent."""
    even = math.exp(rng.uniform(math.log(1), math.log(20)))
    kinds = [_product([rng.dirichlet(np.full(size, even)) for size in sizes]) for _ in range(2)]
    part = rng.random()
    shares = part * kinds[0] + (1 - part) * kinds[1]
    return np.asarray(shares / shares.sum())


def _product(parts: list[Floats]) -> Floats:
    whole = np.ones(1)
    for part in parts:
        whole = np.outer(whole, part).ravel()
    return whole


def _score(sizes: tuple[int, ...], shares: Floats, together: float, rng: Rng) -> Floats:
    """A number of each stratum, with mean 0 and variance 1 over the population."""
    places = np.indices(sizes).reshape(len(sizes), -1)
    alone = sum(rng.normal(size=size)[place] for size, place in zip(sizes, places, strict=True))
    both = [np.asarray(x - shares @ x) for x in (np.asarray(alone), rng.normal(size=len(shares)))]
    units = [x / max(math.sqrt(float(shares @ x**2)), 1e-9) for x in both]
    score = math.sqrt(1 - together) * units[0] + math.sqrt(together) * units[1]
    return np.asarray(score / max(math.sqrt(float(shares @ score**2)), 1e-9))


def _logistic(x: Floats | float) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.asarray(x))))


# Survival ----------------------------------------------------------------------------------------


def risk_maps(m: int, late: float) -> tuple[Floats, Floats]:
    """Of the cells (m + 1 times, without and with an event; the last beyond all times) two maps (m, cells): events at a
    time, and rows at risk, of which those that leave then without an event are not at risk for the share `late`."""
    events, risks = np.zeros((m, m + 1, 2)), np.zeros((m, m + 1, 2))
    for j in range(m):
        events[j, j, 1] = 1.0
        risks[j, j:] = 1.0
        risks[j, j, 0] -= late
    return events.reshape(m, -1), risks.reshape(m, -1)


def survival_curve(
    times: Sequence[float], cells: Floats, late: float, beyond: bool = False
) -> Annotated[Report, "median median_low median_high count"]:
    """The survival at each time, from noisy counts (times + 1, 2) of rows that left without and with an event.

    `beyond`: whether those that left after the last time are counted there, so that more may last.
    """
    counts = np.asarray(cells, dtype=float).reshape(len(times) + 1, 2)
    spread, quantile = deviation_of(cells)
    to_events, to_risks = risk_maps(len(times), late)
    d, n = to_events @ counts.ravel(), to_risks @ counts.ravel()
    clear = n > np.maximum(CLEAR * spread * np.linalg.norm(to_risks, axis=1), 1.0)
    clearly = int(np.argmin(clear)) if not clear.all() else len(n)
    d, n = np.minimum(d[:clearly], n[:clearly] - 0.5), n[:clearly]
    logs = np.cumsum(np.log1p(-d / n))
    moved = np.cumsum(
        to_risks[:clearly] * (d / (n * (n - d)))[:, None] - to_events[:clearly] / (n - d)[:, None], axis=0
    )
    noise = spread * np.linalg.norm(moved, axis=1)
    sampling = np.sqrt(np.cumsum(np.maximum(d, 0.0) / (n * (n - d))))
    wide = np.hypot(quantile * noise, SAMPLING * sampling)
    values = -rising(-np.minimum(np.exp(logs), 1.0))
    rows: list[dict[str, Any]] = []
    last = 1.0
    for j, time in enumerate(times):
        if j < clearly:
            last = min(last, float(np.exp(min(logs[j] + wide[j], 0.0))))
            rows.append({"time": time, "at_risk": float(n[j]), "events": float(d[j]), "value": float(values[j]),
                         "error": float(values[j] * math.expm1(min(quantile * noise[j], 700.0))),
                         "low": float(np.exp(logs[j] - wide[j])), "high": last})  # fmt: skip
        else:
            rows.append({"time": time, "at_risk": None, "events": None, "value": None, "error": math.inf, "low": 0.0,
                         "high": last})  # fmt: skip
    beyond = beyond and clearly == len(times)
    if beyond:
        rows[-1]["high"] = rows[-2]["high"] if len(rows) > 1 else 1.0
    sure = {"value": rows[: len(rows) - beyond]}
    half = {name: next((j for j, r in enumerate(sure.get(of, rows)) if r[of] is not None and r[of] <= 0.5), None)
            for name, of in (("median", "value"), ("median_low", "low"), ("median_high", "high"))}  # fmt: skip
    medians = {name: None if j is None else times[j] for name, j in half.items()}
    if late and half["median_low"] is not None:  # where not every time is listed, half may be reached since the last
        medians["median_low"] = times[half["median_low"] - 1] if half["median_low"] else min(times[0], 0.0)
    notes = (
        []
        if clearly == len(times)
        else ["from the first time without a value on, noise hides how many rows are at risk"]
    )
    if late:
        notes.append("rows that leave without an event count as half at risk in their time: more times are nearer")
    if beyond:
        notes.append(f"the range ends by {times[-1]:g}, where rows count that lie beyond it: more may last")
    whole = float(counts.sum())
    return Report(f"survival: {max(whole, 0):.0f} rows", rows, notes, {**medians, "count": whole})


def log_rank_test(
    times: Sequence[float], groups: Sequence[object], cells: Floats, late: float
) -> Annotated[Report, "chance statistic degrees"]:
    """Whether groups survive alike, from noisy counts (times + 1, 2, groups)."""
    g, m = len(groups), len(times)
    counts = np.asarray(cells, dtype=float).reshape(m + 1, 2, g)
    spread, _ = deviation_of(cells)
    to_events, to_risks = risk_maps(m, late)
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
    clearly = bool(len(d)) and np.linalg.matrix_rank(both) == g - 1
    square = float(gap[1:] @ np.linalg.solve(both, gap[1:])) if clearly else 0.0
    chance = float(chdtrc(g - 1, square)) if clearly else 1.0
    rows = [
        {"group": text(name), "rows": float(counts[..., i].sum()) if clearly else None, "events": float(d[:, i].sum()),
         "expected": float(expected[:, i].sum())} for i, name in enumerate(groups)
    ]  # fmt: skip
    notes = [alike(chance, "lasted")] if clearly else [ROWS_HIDDEN]
    if clearly and not used.all():
        notes.append(
            f"of times up to {text(times[int(used.sum()) - 1])}: noise hides how many rows of a group are later at risk"
        )
    return Report("log-rank test", rows, notes, {"chance": chance, "statistic": square, "degrees": g - 1})


def independence_test(
    names: Sequence[str], rows: Sequence[object], columns: Sequence[object], cells: Floats
) -> Annotated[Report, "chance statistic strength total"]:
    """Whether two columns have to do with each other, from noisy counts (rows, columns) of their values.

    Of Σ(x − E)²/(E + s²), E by the margins and s the deviation of the noise, `chance` says how often it is as large
    where they have not: by draws of tables with these margins and of their noise (Gaboardi, Lim, Rogers and Vadhan
    2016, MCIndep), of which noise is part as it is of the counts. `strength` is Cramér's V, less what comes by chance.
    """
    x = np.asarray(cells, dtype=float).reshape(len(rows), len(columns))
    spread, quantile = deviation_of(cells)
    sides = [np.maximum(x.sum(axis=1), 0.0), np.maximum(x.sum(axis=0), 0.0)]
    total = max(float(x.sum()), 1e-300)
    clear = [side[side > max(CLEAR * spread * math.sqrt(x.size / len(side)), 0.5)] for side in sides]
    hidden = min(map(len, clear)) < 2 or sum(map(len, clear)) < len(rows) + len(columns)
    expected = np.outer(*(side / max(side.sum(), 1e-300) for side in sides))
    few = bool(total * expected.min() < 5)

    def distances(tables: Floats) -> tuple[Floats, Floats]:
        first, second = tables.sum(axis=-1, keepdims=True), tables.sum(axis=-2, keepdims=True)
        product = np.maximum(first * second, 1e-9) / np.maximum(tables.sum(axis=(-1, -2), keepdims=True), 1e-9)
        squares = (tables - product) ** 2
        own = np.maximum(total * expected, 1e-9)
        return (squares / (own + spread**2)).sum(axis=(-1, -2)), (squares / own).sum(axis=(-1, -2)) / total

    square, chance, strength = 0.0, 1.0, 0.0
    if not hidden:
        rng = np.random.default_rng(0)  # the same answer gives the same chance
        draws = rng.multinomial(round(total), expected.ravel() / expected.sum(), TABLES).reshape(-1, *x.shape)
        square, share = (float(part) for part in distances(x))
        law, scale = (rng.normal, spread) if quantile == SAMPLING else (rng.laplace, spread / math.sqrt(2))
        by_chance, shares = distances(draws + law(0, scale, draws.shape))
        chance = float((np.sum(by_chance >= square) + 1) / (TABLES + 1))
        strength = math.sqrt(max(share - float(shares.mean()), 0.0) / (min(x.shape) - 1))
    lines = [
        {names[0]: text(a), names[1]: text(b), "rows": float(x[i, j]), "expected": float(total * expected[i, j])}
        for i, a in enumerate(rows) for j, b in enumerate(columns)
    ]  # fmt: skip
    notes = [ROWS_HIDDEN] if hidden else [alike(chance, "were")]
    if spread:
        notes.append(f"± {error_text(math.inf, quantile * spread)} a number of rows, of noise")
    if few and not hidden:
        notes.append("some values meet in fewer than 5 expected rows, where the chance is approximate")
    facts = {"chance": chance, "statistic": square, "strength": strength, "total": total}
    return Report(f"independence of {names[0]} and {names[1]}", lines, notes, facts)


TABLES = 20_000
"""Drawn for the chance of a distance: it is known to 0.3 % where it is 5 %."""
