"""How often 95 % intervals of `statistics` and `effects` hold, by how the columns are described, and by ε.

    python -m tests.experiments.coverage_by_description [--runs 2000] [--only NAME;NAME] [--check] [--asked]

Each run draws 3,000 fresh rows of a known law and fresh noise. Numbers are described too narrowly (±1 deviation, beyond
which values are clamped), rightly (±4), and four times too wide. *Noise*: value ± error holds the answer about the same
rows without noise. *Sampling*: low to high holds what is true of the law, of clamped columns where they are clamped.
*Law*: where they are clamped, what is true of the columns as they are, of which a program has no rows. Regressions have
a column that is strong and one that is weak; the means of two groups differ by much, or by little.

Sums are calculated here, and their noise is drawn with the law that the language's has and handed to the same
functions; `--check` asks the language as well, and compares how wide its intervals are. `crosstab` and the quantiles of
`describe_numeric`, whose strategies are fitted, are asked of the language alone.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.error_laws import sum_quantile
from jostle.kernels.statistics import effects, moments, regression, weighting
from jostle.kernels.statistics.moments import _stated
from jostle.noise_laws import Laplace
from jostle.source import Source
from jostle.tools.session import Session
from tests.experiments.statistics_coverage import of_noise

ROWS = 3000
WIDTHS = {"narrow": 1.0, "right": 4.0, "4 × too wide": 16.0}
"""Half of the described range, in deviations of a column."""

MANY = 1_000_000
"""Rows from which is read what is true of the law, of clamped columns."""


@dataclass(frozen=True)
class Rows:
    """x (n, 2) of deviation 1; y = 1 + 2x₁ + 0.1x₂ + 2·normal; late: log-odds −0.5 + x₁ + 0.1x₂; two arms."""

    x: np.ndarray
    y: np.ndarray
    late: np.ndarray
    arm: np.ndarray

    @classmethod
    def drawn(cls, n: int, rng: np.random.Generator) -> Rows:
        x, arm = rng.normal(0, 1, (n, 2)), rng.random(n) < 0.5
        y = 1 + x @ [2, 0.1] + rng.normal(0, 2, n)
        return cls(x, y, rng.random(n) < 1 / (1 + np.exp(0.5 - x @ [1, 0.1])), arm)

    def clamped(self, width: float) -> Rows:
        """As a description of ± so many deviations leaves them; y has a mean of 1 and a deviation of 2.8."""
        x = np.clip(self.x, -width, width)
        return Rows(x, np.clip(self.y, 1 - 2.8 * width, 1 + 2.8 * width), self.late, self.arm)


# The measurements of the language -------------------------------------------------------------------


class Noise:
    """Laplace noise of ε in all, or none, where ε is infinite: `moments` as `noisy_moments` makes them of ε's part."""

    def __init__(self, epsilon: float, rng: np.random.Generator) -> None:
        self.epsilon, self.rng = epsilon, rng

    def drawn(self, scale: Any, size: Any) -> np.ndarray:
        return self.rng.laplace(0, 1, size) * scale if self.epsilon < math.inf else np.zeros(size)

    def moments(self, u: np.ndarray, shares: list[float], part: float = 1.0, weights: Any = 1.0) -> dict[str, Any]:
        d = u.shape[1]
        weighted = (u.T * weights).T
        sums = [np.full(1, float(np.sum(np.broadcast_to(weights, len(u))))), weighted.sum(axis=0), weighted.T @ u]
        paid = [self.epsilon * part * s / math.fsum(shares) for s in shares]
        scales = [l1 / e for l1, e in zip((1.0, math.sqrt(d), (d + 1) / 2), paid, strict=False)]
        told: dict[str, Any] = {"mechanism": "laplace"}
        for name, total, scale in zip(("count", "first", "second"), sums, scales, strict=False):
            noise = self.drawn(scale, total.shape)
            noise = np.triu(noise) + np.triu(noise, 1).T if name == "second" else noise
            told[name] = (total + noise) if name == "count" else (total + noise)[None]
            told[f"{name}_noise"] = scale * math.sqrt(2)
        return told

    def squares(self, u: np.ndarray, pulls: Callable[..., dict[str, Any]], many: int, *asked: Any) -> Any:
        """What `noisy_sum` makes of squares and fourth powers of what rows add, of a twentieth, and their `times`."""
        scale = 2 * many / (self.epsilon / 20)
        told = pulls(*asked, scale * math.sqrt(2) if self.epsilon < math.inf else 0.0)
        ones = np.column_stack([u, np.ones(len(u))])
        f = np.clip((ones @ told["left"].T) * (ones @ told["right"].T) * told["times"], -1, 1)
        sums = np.append((f**2).sum(axis=0), (f**4).sum(axis=0)) + self.drawn(scale, 2 * many)
        return {"sum": sums, "noise": 0.0 if self.epsilon == math.inf else scale * math.sqrt(2)}, told["times"]

    def shares(self, z: np.ndarray, squares: bool, part: float = 1.0) -> dict[str, Any]:
        """What `noisy_sum` makes of the shares of one coordinate within ±1."""
        u, scale = (np.trunc(z * 2.0**14) / 2.0**14 + 1) / 2, 1 / (self.epsilon * part)
        parts = [u**2, 2 * u * (1 - u), (1 - u) ** 2] if squares else [u, 1 - u]
        sums = np.array([p.sum() for p in parts]) + self.drawn(scale, len(parts))
        return {"sum": sums, "noise": scale * math.sqrt(2), "mechanism": "laplace"}


def in_ball(columns: list[np.ndarray], radius: float) -> np.ndarray:
    """Columns as coordinates in units of 2^-14 of the radius, rounded toward zero."""
    return np.trunc(np.stack(columns, axis=1) / radius * 2.0**14) / 2.0**14


def design(width: float, y: bool) -> list[dict[str, Any]]:
    terms = [{"name": name, "value": "", "centre": 0.0, "scale": width} for name in ("strong", "weak")]
    return [*terms, {"name": "y", "value": "", "centre": 1.0, "scale": 2.8 * width}] if y else terms


def linear(rows: Rows, width: float, noise: Noise) -> Any:
    return of_moments(rows, width, noise, regression.linear_fit, regression.regression_pulls)


def correlations(rows: Rows, width: float, noise: Noise) -> Any:
    report = of_moments(rows, width, noise, regression.correlations, regression.correlation_pulls)
    return type(report)(report.title, report.rows[1:], report.notes, report.facts)  # of x and y


def of_moments(rows: Rows, width: float, noise: Noise, fit: Callable[..., Any], pulls: Callable[..., Any]) -> Any:
    radius = math.sqrt(3)
    u = in_ball([*(rows.x.T / width), (rows.y - 1) / 2.8 / width], radius)
    asked = design(width, True), noise.moments(u, [1, 3, 9], 0.95), radius
    return fit(*asked, *noise.squares(u, pulls, 3, *asked))


def logistic(rows: Rows, width: float, noise: Noise) -> Any:
    radius = math.sqrt(2.0001)
    u = in_ball([*(rows.x.T / width)], radius)
    sign = np.where(rows.late, 1.0, -1.0)
    ones = np.column_stack([u, np.ones(len(u))])

    def derivatives(weights: Any, first: float, second: float) -> tuple[Any, Any]:
        p = 1 / (1 + np.exp(-np.clip(ones @ weights, -18, 18)))
        told = noise.moments(np.column_stack([u, sign * 0.01 / radius]), [1, 2, 7], first, 4 * p * (1 - p))
        scale = math.sqrt(2) * math.sqrt(3) / (noise.epsilon * second)
        slopes = ones.T @ (p - rows.late) + noise.drawn(scale, 3)
        return regression.logistic_curvature_matrix(told), {"sum": slopes, "noise": scale * math.sqrt(2)}

    curvature, gradient = derivatives(np.zeros(3), 0.07, 0.07)
    start, weights = curvature, regression.logistic_start(curvature, gradient)
    for part in (0.06, 0.07):
        curvature, gradient = derivatives(weights, part, part)
        weights = regression.logistic_step(weights, curvature, gradient, start)
    curvature, gradient = derivatives(weights, 0.25, 0.35)
    return regression.logistic_fit(
        design(width, False), "late", weights, curvature, gradient, start, radius, "laplace"
    )  # fmt: skip


def compared(rows: Rows, width: float, noise: Noise, of: np.ndarray, half: float, middle: float, squares: bool) -> Any:
    seen = [noise.shares((of[arm] - middle) / half, squares) for arm in (~rows.arm, rows.arm)]
    return moments.group_difference(["old", "new"], seen, middle, half, "")


def means(by: float) -> Callable[[Rows, float, Noise], Any]:
    """Of y in two arms that differ by so much; the second is drawn further before it is clamped."""

    def asked(rows: Rows, width: float, noise: Noise) -> Any:
        half = 2.8 * width
        return compared(rows, width, noise, np.clip(rows.y + by * rows.arm, 1 - half, 1 + half), half, 1.0, True)

    return asked


def shares(rows: Rows, width: float, noise: Noise) -> Any:
    return compared(rows, width, noise, rows.late.astype(float), 0.5, 0.5, False)


def described(rows: Rows, width: float, noise: Noise) -> Any:
    """Mean and deviation, of `describe_numeric`'s three eighths."""
    half = 2.8 * width
    told = noise.shares((rows.y - 1) / half, True, 3 / 8)
    z, q = moments.mean_of(told), sum_quantile(Laplace)
    lines = [
        _stated("mean", 1 + half * z.mean, half * q * z.noise),
        _stated("deviation", half * z.deviation, half * q * z.deviation_noise),
    ]
    return type("Told", (), {"rows": lines})


def effect(name: str) -> Callable[[Rows, float, Noise], Any]:
    """What `late` does to y, by eight strata of both columns, with which it goes together."""

    def asked(rows: Rows, width: float, noise: Noise) -> Any:
        stratum = 2 * np.digitize(rows.x[:, 0], [-0.7, 0, 0.7]) + (rows.x[:, 1] > 0)
        u = 0.5 + (rows.y - 1) / 2.8 / width / 2
        cell, cells, about = 2 * stratum + rows.late, 16, (1 - 2.8 * width, 1 + 2.8 * width, "")

        def by_cell(share: float, values: np.ndarray, cell: Any, many: int) -> tuple[np.ndarray, float]:
            parts = (values**2, 2 * values * (1 - values), (1 - values) ** 2)
            sums = np.stack([np.bincount(cell, part, minlength=many) for part in parts], axis=1)
            scale = 1 / (noise.epsilon * share)
            return sums + noise.drawn(scale, sums.shape), scale * math.sqrt(2)

        if name in ("ate_stratified", "ate_matched"):
            sums, told = by_cell(1.0, u, cell, cells)
            return effects.effect_of_strata(sums, cells, told, "laplace", *about, name == "ate_matched")
        if name == "ate_smoothed":
            sums, told = by_cell(1.0, u, cell, cells)
            return weighting.effect_of_model(sums, cells, told, "laplace", *about, (4, 2))
        first, first_noise = by_cell(0.5, u, cell, cells)
        scores = weighting.effect_scores(first, cells, first_noise, (4, 2))
        score = np.clip(np.asarray(scores["shift"])[cell] + np.asarray(scores["slope"])[cell] * u, 0, 1)
        whole, whole_noise = by_cell(0.5, score, np.zeros_like(cell), 1)
        noises = (whole_noise, first, first_noise, cells, "laplace")
        return weighting.effect_of_scores(whole[0], *noises, *about, (4, 2))

    return asked


EFFECTS = ("ate_stratified", "ate_matched", "ate_smoothed", "ate_weighted")


@dataclass(frozen=True)
class Statistic:
    """`ask` of clamped rows; a small and a large ε; `names` of numbers, and their `truth` for columns as they are."""

    ask: Callable[[Rows, float, Noise], Any]
    amounts: tuple[float, float]
    names: tuple[str, ...]
    truth: tuple[float, ...]
    noise: bool = True
    sampling: bool = True
    widths: tuple[str, ...] = tuple(WIDTHS)


STATISTICS = {
    "correlation": Statistic(correlations, (1, 50), ("strong", "weak"), (2 / 8.01**0.5, 0.1 / 8.01**0.5)),
    "linear_regression": Statistic(linear, (2, 100), ("constant", "strong", "weak"), (1, 2, 0.1)),
    "logistic_regression": Statistic(logistic, (8, 400), ("constant", "strong", "weak"), (-0.5, 1, 0.1)),
    "compare, far": Statistic(means(2.0), (0.3, 10), ("old", "new", "difference"), (1, 3, 2)),
    "compare, near": Statistic(means(0.1), (0.3, 10), ("old", "new", "difference"), (1, 1.1, 0.1)),
    "compare, shares": Statistic(shares, (0.1, 10), ("old", "new", "difference"), (), widths=("right",)),
    "describe_numeric": Statistic(described, (0.5, 20), ("mean", "deviation"), (), sampling=False),
    **{name: Statistic(effect(name), (1, 20), ("effect",), ()) for name in EFFECTS},
}  # fmt: skip


def numbers(report: Any) -> np.ndarray:
    """(numbers, 4): value, error, low, high; of a description the error is half of the interval."""
    name = next((k for k in ("value", "correlation") if k in report.rows[0]), "")
    if "error" not in report.rows[0]:
        return np.array([[r["value"], (r["high"] - r["low"]) / 2, r["low"], r["high"]] for r in report.rows])
    return np.array([[r[name] or 0.0, r["error"], r["low"], r["high"]] for r in report.rows])


@dataclass(frozen=True)
class Held:
    """Shares of the runs that say something: `says`, and of each number by noise, by sampling and of the law itself."""

    says: float
    noise: np.ndarray
    sampling: np.ndarray
    law: np.ndarray
    wide: np.ndarray


def coverage(statistic: Statistic, width: float, epsilon: float, runs: int, seed: int = 1) -> Held:
    rng = np.random.default_rng([seed, round(100 * width), round(100 * epsilon)])
    exactly = Noise(math.inf, rng)
    many = numbers(statistic.ask(Rows.drawn(MANY, np.random.default_rng(9)).clamped(width), width, exactly))[:, 0]
    law = np.array(statistic.truth or many)
    truth = law if width > 3 and statistic.truth else many
    told = []
    for _ in range(runs):
        rows = Rows.drawn(ROWS, rng).clamped(width)
        answer = numbers(statistic.ask(rows, width, Noise(epsilon, rng)))
        most = 2.8 * width * 2 * 0.95 if len(statistic.names) == 1 else math.inf  # of what an effect can be
        if np.all(answer[:, 3] - answer[:, 2] < 2 * most):
            own = numbers(statistic.ask(rows, width, exactly))[:, 0]
            inside = [(answer[:, 2] <= true) & (true <= answer[:, 3]) for true in (own, truth, law)]
            by_noise = np.abs(answer[:, 0] - own) <= answer[:, 1] + 1e-9 if statistic.sampling else inside[0]
            told.append([by_noise, inside[1], inside[2], answer[:, 1]])
    if not told:
        return Held(0.0, *(np.full(len(statistic.names), np.nan) for _ in range(4)))
    return Held(len(told) / runs, *np.mean(np.array(told, dtype=float), axis=0))


def lines(name: str, statistic: Statistic, runs: int) -> Iterator[str]:
    for described_as in statistic.widths:
        for epsilon in statistic.amounts:
            held = coverage(statistic, WIDTHS[described_as], epsilon, runs)
            told = [" ".join(f"{100 * s:.1f}" for s in part) for part in (held.noise, held.sampling, held.law)]
            if not statistic.sampling:
                told[1] = told[2] = ""
            elif described_as != "narrow" or not statistic.truth:
                told[2] = ""
            yield f"| {name} | {described_as} | {epsilon:g} | {100 * held.says:.0f} % | {' | '.join(told)} |"


# The language itself --------------------------------------------------------------------------------

CALLS = {
    "correlation": 'correlation_matrix(t, ["strong", "weak", "y"])',
    "linear_regression": 'linear_regression(t, "y", ["strong", "weak"])',
    "logistic_regression": 'logistic_regression(t, "late", ["strong", "weak"])',
    "compare, near": 'compare(t, "y", "arm")', "describe_numeric": 'describe_numeric(t, "y")',
}  # fmt: skip


def through(name: str, width: float, epsilon: float, runs: int) -> np.ndarray:
    """The numbers that the language answers about one draw of rows, (runs, numbers, 4)."""
    import pandas as pd

    rows = Rows.drawn(ROWS, np.random.default_rng(1)).clamped(width)
    frame = {"strong": rows.x[:, 0], "weak": rows.x[:, 1], "y": rows.y, "late": rows.late.astype(int)}
    session = Session()
    session.bind("t", pd.DataFrame({**frame, "arm": np.where(rows.arm, "new", "old")}))
    half = 2.8 * width
    text = f"""use statistics
private t = bound("t") described by {{strong: {-width}..{width}, weak: {-width}..{width}, y: {1 - half}..{1 + half},
    late: 0..1, arm: {{"old", "new"}}}} protecting rows budget epsilon 1e12
release r = [{CALLS[name.split(",")[0] if "quantiles" in name else name]} with epsilon {epsilon} for i in 1..{runs}]
"""
    result = session.attempt(Source("coverage.jst", text))
    if not result.ok:
        raise RuntimeError(str(result.diagnostics[0]))
    keep = {
        "correlation": slice(1, None), "describe_numeric": slice(2, 4), "describe_numeric, quantiles": slice(4, None),
    }.get(name, slice(None))  # fmt: skip
    return np.array([numbers(type("Kept", (), {"rows": r.rows[keep]})) for r in result["r"]])


def asked(runs: int) -> Iterator[str]:
    """How often the intervals of quantiles hold what there is without noise, and those of cells and totals."""
    for described_as, width in WIDTHS.items():
        exact = through("describe_numeric, quantiles", width, 1e9, 1)[0, :, 0]
        for epsilon in (0.5, 20):
            told = through("describe_numeric, quantiles", width, epsilon, runs)
            held = ((told[:, :, 2] <= exact) & (exact <= told[:, :, 3])).mean(axis=0)
            shown = " ".join(f"{100 * s:.1f}" for s in held)
            yield f"| describe_numeric, quantiles | {described_as} | {epsilon:g} | 100 % | {shown} | | |"
    for amount in (0.05, 5):
        held = of_noise("crosstab", f"epsilon {amount}", runs)
        yield f"| crosstab | right | {amount:g} | 100 % | {100 * held.min():.1f} to {100 * held.max():.1f} | | |"


def check(name: str, runs: int = 40) -> str:
    """Middle errors of the language and of the sums calculated here, of the same rows."""
    statistic, width = STATISTICS[name], WIDTHS["right"]
    rng = np.random.default_rng(1)
    rows = Rows.drawn(ROWS, rng).clamped(width)
    epsilon = statistic.amounts[1]
    own = np.array([numbers(statistic.ask(rows, width, Noise(epsilon, rng)))[:, 1] for _ in range(runs)])
    ratio = np.median(through(name, width, epsilon, runs)[:, :, 1], axis=0) / np.median(own, axis=0)
    return f"{name}: the language's errors over these, at ε {epsilon:g}: {' '.join(f'{r:.3f}' for r in ratio)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", default=";".join(STATISTICS))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--asked", action="store_true", help="the language, of quantiles and cross tables")
    options = parser.parse_args()
    for name in () if options.asked else options.only.split(";"):
        if options.check:
            print(check(name) if name in CALLS else f"{name}: not asked", flush=True)
        else:
            for line in lines(name, STATISTICS[name], options.runs):
                print(line, flush=True)
    for line in asked(options.runs) if options.asked else ():
        print(line, flush=True)


if __name__ == "__main__":
    main()
