"""Survival, rates and means of several groups of `use statistics`: exact on public rows, and as wide as they say."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import chdtrc
from scipy.stats import chi2_contingency

from jostle.kernels import KernelError
from jostle.kernels.arrays import Sums
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.kernels.statistics.effects import independence_test, log_rank_test, survival_curve
from jostle.kernels.statistics.moments import describe, group_means
from jostle.kernels.statistics.weighting import hazard_model, rate_model
from jostle.noise_laws import Gaussian, Laplace
from jostle.source import Source
from jostle.tools.session import Result, Session

SCHEMA = '{month: 1..12, event: 0..1, arm: {"new", "old"}, age: 0..3, n: 0..30, y: -20.0..20.0, w: 0.0..4.0}'


def made(seed: int, rows: int = 3000, effect: float = 0.4) -> pd.DataFrame:
    """Months until an event, or until a row was lost, with log hazard ratios `effect` of an arm and 0.1 a class."""
    rng = np.random.default_rng(seed)
    old, age = rng.integers(0, 2, rows), rng.integers(0, 4, rows)
    until = np.ceil(rng.exponential(8 * np.exp(-effect * old - 0.1 * age)))
    seen = np.minimum(rng.integers(1, 21, rows), 12)
    return pd.DataFrame({
        "month": np.minimum(until, seen).astype(int), "event": (until <= seen).astype(int),
        "arm": np.where(old == 1, "old", "new"), "age": age,
        "n": rng.poisson(np.exp(0.2 + effect * old - 0.2 * age)), "y": rng.normal(effect * old, 3, rows),
        "w": rng.uniform(0, 4, rows),
    })  # fmt: skip


FRAME = made(1)


def ask(call: str, declared: str = "", frame: pd.DataFrame = FRAME) -> Result:
    session = Session()
    session.bind("t", frame)
    private = "private " if declared else ""
    text = f'use statistics\n{private}t = bound("t") described by {SCHEMA} {declared}\nrelease a = {call}\n'
    return session.attempt(Source("s.jst", text))


def public(call: str) -> Any:
    result = ask(call)
    assert result.ok, result.diagnostics
    return result["a"]


def lines(frame: pd.DataFrame, last: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Events and rows at risk by month."""
    months = np.arange(1, last + 1)
    events = np.array([((frame.month == m) & (frame.event == 1)).sum() for m in months])
    return events, np.array([(frame.month >= m).sum() for m in months])


# Without noise -------------------------------------------------------------------------------------


def test_survival_is_that_of_kaplan_and_meier() -> None:
    report, (d, n) = public('kaplan_meier(t, "month", "event")'), lines(FRAME)
    curve = np.cumprod(1 - d / n)
    np.testing.assert_allclose(report.column("value"), curve)
    np.testing.assert_allclose(report.column("at_risk"), n)
    spread = np.sqrt(np.cumsum(d / (n * (n - d))))  # Greenwood's
    np.testing.assert_allclose(report.column("low"), curve * np.exp(-1.96 * spread), rtol=1e-4)
    assert report.median == 1 + int(np.argmax(curve <= 0.5)) and set(report.column("error")) == {0.0}
    listed = public('kaplan_meier(t, "month", "event", times = [3, 6])')
    assert len(report.notes) == 1 and [note for note in listed.notes if "half at risk" in note]
    assert listed.column("time") == [3, 6] and abs(listed.rows[0]["value"] - curve[2]) < 0.02
    for times in ([month, 60] for month in range(1, 9)):
        rough = public(f'kaplan_meier(t, "month", "event", times = {times})')
        high = math.inf if rough.median_high is None else rough.median_high
        assert rough.median_low is None or rough.median_low <= report.median <= high
    assert {report.median_low, report.median_high} <= set(report.column("time"))
    short = public('kaplan_meier(derive(t, s = min(month, 6)), "s", "event")')
    assert short.column("value")[:5] == report.column("value")[:5] and "ends by 6" in short.notes[0]
    assert short.rows[5]["low"] < curve[5] < short.rows[5]["high"] == short.rows[4]["high"]


def test_a_log_rank_test_is_that_of_mantel() -> None:
    report = public('log_rank(t, "month", "event", "arm")')
    (d, n), (d1, n1) = lines(FRAME, 11), lines(FRAME[FRAME.arm == "new"], 11)
    gap = (d1 - n1 * d / n).sum()
    variance = (d * (n - d) * n1 * (n - n1) / (n**2 * (n - 1))).sum()
    assert report.statistic == pytest.approx(gap**2 / variance) and report.degrees == 1
    assert report.chance == pytest.approx(chdtrc(1, gap**2 / variance))
    several = public('log_rank(t, "month", "event", "age")')
    assert several.degrees == 3 and [row["group"] for row in several.rows] == ["0", "1", "2", "3"]
    assert sum(several.column("events")) == pytest.approx(sum(several.column("expected")))
    rough = public('log_rank(t, "month", "event", "arm", times = [3, 6, 9])')
    assert rough.column("rows") == [(FRAME.arm == row["group"]).sum() for row in rough.rows]
    alike = made(3, effect=0.0)  # both arms last alike, and one is followed for longer
    alike.loc[(alike.arm == "new") & (alike.month > 6), ["month", "event"]] = 6, 0
    assert ask('log_rank(derive(t, s = min(month, 6)), "s", "event", "arm")', frame=alike)["a"].chance > 0.01


def optimum(x: np.ndarray, y: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    beta = np.zeros(x.shape[1])
    for _ in range(100):
        beta = beta + np.linalg.solve((x.T * (e * np.exp(x @ beta))) @ x, x.T @ (y - e * np.exp(x @ beta)))
    return beta, np.linalg.inv((x.T * (e * np.exp(x @ beta))) @ x)


def test_poisson_regression_is_maximum_likelihood_with_the_deviations_of_its_residuals() -> None:
    report = public('poisson_regression(t, "n", ["arm", "age"])')
    x = np.column_stack([np.ones(len(FRAME)), FRAME.arm == "old", FRAME.age]).astype(float)
    beta, inverse = optimum(x, FRAME.n.to_numpy(float), np.ones(len(FRAME)))
    assert report.column("term") == ["intercept", "arm = old", "age"]
    np.testing.assert_allclose(report.column("value"), beta, atol=2e-3)
    residual = (FRAME.n - np.exp(x @ beta)).to_numpy() ** 2
    spread = np.sqrt(np.diag(inverse @ ((x.T * residual) @ x) @ inverse))
    widths = (np.array(report.column("high")) - report.column("low")) / 2
    np.testing.assert_allclose(widths, 1.96 * spread, rtol=0.02)
    np.testing.assert_allclose(report.column("ratio"), np.exp(report.column("value")))


def test_hazard_ratios_are_those_of_grouped_times_and_leave_out_the_last() -> None:
    """Complementary log-log regression (Prentice and Gloeckler 1978); month 12 also has what lies beyond."""
    report = public('hazard_ratios(t, "month", "event", ["arm", "age"])')
    long = FRAME.loc[FRAME.index.repeat(FRAME.month)]
    month = long.groupby(level=0).cumcount() + 1
    long, month = long[month < 12], month[month < 12]
    events = ((month == long.month) & (long.event == 1)).to_numpy(float)
    x = np.column_stack([*(month == m for m in range(1, 12)), long.arm == "old", long.age]).astype(float)
    beta = np.append(np.full(11, -2.0), [0.0, 0.0])
    for _ in range(50):
        rates = np.exp(x @ beta)
        chance = -np.expm1(-rates)
        inverse = np.linalg.inv((x.T * (rates**2 * (1 - chance) / chance)) @ x)
        beta = beta + inverse @ x.T @ (rates / chance * (events - chance))
    np.testing.assert_allclose(report.column("value"), beta[-2:], atol=1e-6)
    widths = (np.array(report.column("high")) - report.column("low")) / 2
    np.testing.assert_allclose(widths, 1.96 * np.sqrt(np.diag(inverse))[-2:], rtol=1e-4)


@pytest.mark.parametrize(("schema", "times"), [("1..5", "none"), ("1..300", "[24]"), ("1..300", "[12, 13, 300]")])
def test_hazard_ratios_hold_where_times_are_cut_or_coarse(schema: str, times: str) -> None:
    """Of 40,000 rows a deviation is at most 0.02: clamped times had 0.31 for 0.4, and two thirds of events at once 0.3.

    No noise to speak of; the seed is fixed.
    """
    rng = np.random.default_rng(5)
    old = rng.integers(0, 2, 40_000)
    until = np.ceil(rng.exponential(20 * np.exp(-0.4 * old))).astype(int)
    frame = pd.DataFrame(
        {"month": np.minimum(until, 250), "event": 1 * (until <= 250), "arm": np.array(["new", "old"])[old]}
    )
    session = Session()
    session.bind("t", frame)
    text = f"""use statistics
private t = bound("t") described by {{month: {schema}, event: 0..1, arm: {{"new", "old"}}}}
    protecting rows budget epsilon 1e6
release a = hazard_ratios(t, "month", "event", ["arm"], times = {times}) with epsilon 1e5
"""
    result = session.attempt(Source("h.jst", text))
    assert result.ok, result.diagnostics
    line = result["a"].rows[0]
    assert abs(line["value"] - 0.4) < 0.07 and line["low"] <= 0.4 <= line["high"] < line["low"] + 0.2


def test_analysis_of_variance_and_contrasts() -> None:
    report = public('anova(t, "y", "age")')
    groups = FRAME.groupby("age").y
    mean, spread = groups.mean().to_numpy(), (groups.std(ddof=0) / np.sqrt(groups.size())).to_numpy()
    np.testing.assert_allclose(report.means, mean, atol=1e-3)
    weights = 1 / spread**2
    assert report.statistic == pytest.approx((weights * (mean - weights @ mean / weights.sum()) ** 2).sum(), rel=0.01)
    pairs = report.rows[4:]
    assert len(pairs) == 6 and pairs[0]["group"] == "1 less 0"
    wide = 2.638 * math.hypot(spread[0], spread[1])  # of 0.05 / 6
    assert pairs[0]["high"] - pairs[0]["value"] == pytest.approx(wide, rel=0.01)
    trend = public('anova(t, "y", "age", contrasts = [[-3, -1, 1, 3]])').rows[-1]
    assert trend["value"] == pytest.approx(np.dot([-3, -1, 1, 3], mean), abs=0.01)


def test_independence_is_that_of_pearson_where_nothing_is_noisy() -> None:
    report = public('independence(t, "arm", "event")')
    observed = pd.crosstab(FRAME.arm, FRAME.event)
    square, chance, _, expected = chi2_contingency(observed, correction=False)
    assert report.statistic == pytest.approx(square) and report.chance == pytest.approx(chance, abs=0.01)
    np.testing.assert_allclose(report.column("rows"), observed.to_numpy().ravel())
    np.testing.assert_allclose(report.column("expected"), expected.ravel())
    assert report.strength == pytest.approx(math.sqrt((square - 1) / len(FRAME)), abs=0.005)


@pytest.mark.parametrize("law", [Laplace(20.0), Gaussian(20.0)])
def test_a_test_of_independence_keeps_its_level_and_sees_what_is_there(law: Any) -> None:
    """Of 300 tables of independent columns chances are below 0.05 in 8 % at most; of 15, where 30 are, once in 10⁶."""
    rng, chances, strong = np.random.default_rng(5), [], []
    for kind, out in ((0.0, chances), (0.12, strong)):
        shares = np.outer([0.5, 0.3, 0.2], [0.6, 0.4]) + kind * np.array([[1, -1], [-1, 1], [0, 0]])
        for _ in range(300 if kind == 0 else 20):
            cells = rng.multinomial(2000, shares.ravel()).astype(float)
            noise = rng.laplace(0, 20, 6) if isinstance(law, Laplace) else rng.normal(0, 20, 6)
            noisy = with_noise(cells + noise, NoiseModel(law))
            out.append(independence_test(["a", "b"], [1, 2, 3], ["x", "y"], noisy))
    assert np.mean([one.chance < 0.05 for one in chances]) < 0.08, [one.chance for one in chances]
    assert np.mean([one.chance for one in chances]) == pytest.approx(0.5, abs=0.1)
    assert all(one.chance < 0.001 and one.strength > 0.3 for one in strong)
    assert np.mean([one.strength for one in chances]) < 0.05


def test_quantiles_by_weight_and_among_candidates() -> None:
    result = ask('weighted_quantiles(t, "y", "w", [0.25, 0.5]) with epsilon 40', "protecting rows budget epsilon 50")
    assert result.ok, result.diagnostics
    ordered = FRAME.sort_values("y")
    shares = ordered.w.cumsum() / ordered.w.sum()
    for line, q in zip(result["a"].rows, (0.25, 0.5), strict=True):
        assert line["value"] == pytest.approx(float(ordered.y[shares >= q].iloc[0]), abs=0.4)
        assert line["low"] <= line["value"] <= line["high"]
    years = ask(
        'weighted_quantiles(t, "month", "w", [0.25, 0.5, 0.9]) with epsilon 1e6', "protecting rows budget epsilon 1e7"
    )
    ordered = FRAME.sort_values("month")  # of whole numbers the quantiles are whole, as those of all rows are
    shares = ordered.w.cumsum() / ordered.w.sum()
    assert years["a"].values == [float(ordered.month[shares >= q].iloc[0]) for q in (0.25, 0.5, 0.9)]
    with pytest.raises(KernelError, match="its columns are quantile, value, low, high"):
        years["a"].column("error")
    near = ask('quantile_among(t, "y", 0.5, [4, -1, 0.1, 9]) with epsilon 20', "protecting rows budget epsilon 50")
    assert near["a"] == min(c for c in (-1, 0.1, 4, 9) if c >= FRAME.y.median())
    assert public('quantile_among(t, "y", 1, [-1, 0.1])') == 0.1  # the largest, where all are smaller


def test_intervals_hold_what_noise_does_not_hide() -> None:
    """Of next to no noise: numbers are brought onto a grid, and where values lie between two edges is not known."""
    budget = "protecting rows budget epsilon 1e7"
    described = ask('describe_numeric(t, "y") with epsilon 1e6', budget)["a"].rows
    for line, exact in zip(described[2:4], (FRAME.y.mean(), FRAME.y.std()), strict=True):
        assert line["low"] <= exact <= line["high"] <= line["low"] + 0.01
    ordered = FRAME.sort_values("y")
    shares, asked = ordered.w.cumsum() / ordered.w.sum(), [0, 0.01, 0.25, 0.5, 0.75, 0.99, 1]
    weighed = ask(f'weighted_quantiles(t, "y", "w", {asked}) with epsilon 1e6', budget)["a"].rows
    for line, q in zip(weighed, asked, strict=True):
        assert line["low"] <= float(ordered.y[shares >= min(q, shares.max())].iloc[0]) <= line["high"]


# With noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "amount", ["epsilon 2", *(pytest.param(a, marks=pytest.mark.slow) for a in ("rho 0.5", "epsilon 2 delta 1e-6"))]
)
def test_answers_are_near_and_cost_what_is_written(amount: str) -> None:
    budget = "protecting rows budget " + amount.replace(" delta", ", delta")
    for call in ('kaplan_meier(t, "month", "event")', 'log_rank(t, "month", "event", "arm")',
                 'hazard_ratios(t, "month", "event", ["arm"])', 'poisson_regression(t, "n", ["arm", "age"])',
                 'anova(t, "y", "arm")', 'weighted_quantiles(t, "y", "w", [0.5])',
                 'independence(t, "arm", "age")'):  # fmt: skip
        noisy, exact = ask(f"{call} with {amount}", budget), ask(f"{call} with epsilon 1")
        assert noisy.ok, noisy.diagnostics
        for one, other in zip(noisy["a"].rows[:6], exact["a"].rows[:6], strict=True):
            if "value" in one:
                wide = 12 * max(one.get("error") or 0.0, one["high"] - one["low"], 0.3)
                assert abs(one["value"] - other["value"]) < wide, (call, one, other)


def test_what_noise_hides_is_said() -> None:
    little = "protecting rows budget epsilon 1"
    for call in ('hazard_ratios(t, "month", "event", ["arm"])', 'poisson_regression(t, "n", ["age"])',
                 'anova(t, "y", "arm")', 'log_rank(t, "month", "event", "arm")', 'independence(t, "arm", "age")',
                 'kaplan_meier(t, "month", "event")'):  # fmt: skip
        results = [ask(f"{call} with epsilon 1e-5", little) for _ in range(3)]  # rows are 3 errors once in 700 runs
        assert all(result.ok for result in results)
        hidden = [result["a"] for result in results if any("hides" in note for note in result["a"].notes)]
        wide = [[math.isinf(line["error"]) for line in one.rows if "error" in line] for one in hidden]
        # One of two groups is 3 errors once in 350 runs, and its line is finite: in all three once in 4e7.
        assert any(map(all, wide)) and all(any(lines) for lines in wide if lines)


@pytest.mark.parametrize(("call", "said"), [
    ('kaplan_meier(t, "arm", "event")', "of numbers"), ('kaplan_meier(t, "month", "age")', "two values"),
    ('kaplan_meier(t, "month", "event", times = [3, 2])', "rising"),
    ('log_rank(t, "month", "event", "event")', "named once"), ('independence(t, "arm", "arm")', "named once"),
    ('independence(t, "arm", "y")', "is real"), ('hazard_ratios(t, "month", "event", [])', "name one"),
    ('hazard_ratios(t, "month", "event", ["y"])', "is real"), ('poisson_regression(t, "y", ["arm"])', "from 0 on"),
    ('poisson_regression(t, "n", ["arm", "y"])', "is real"), ('anova(t, "y", "y")', "is real"),
    ('quantile_among(t, "y", 0.5, [])', "needs one"), ('weighted_quantiles(t, "n", "y", [0.5])', "from 0 on"),
])  # fmt: skip
def test_what_cannot_be_asked_costs_nothing(call: str, said: str) -> None:
    result = ask(f"{call} with epsilon 1", "protecting rows budget epsilon 1")
    assert not result.ok and said in result.diagnostics[0].message, result.diagnostics
    assert result.budget.get("t", {"epsilon": {"spent": "0"}})["epsilon"]["spent"] == "0"


ARM = {"name": "arm", "values": ["new", "old"], "number": False}
AGE = {"name": "age", "values": [0, 1, 2, 3], "number": True}


def shares(x: np.ndarray, scale: float, rng: np.random.Generator, cell: np.ndarray, cells: int) -> np.ndarray:
    """The noisy shares of x, within 0 and 1, of each cell."""
    sums = np.stack([np.bincount(cell, weights=w, minlength=cells) for w in (x**2, 2 * x * (1 - x), (1 - x) ** 2)], 1)
    return sums + rng.laplace(0, scale, sums.shape)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "epsilon", "top", "half"), [(3000, 1.0, 8, 8.0), (1500, 1.0, 60, 60.0)])
def test_intervals_hold_the_truth_and_tests_their_level(rows: int, epsilon: float, top: int, half: float) -> None:
    """Of 400 data sets, over narrow and wide bounds: 93 % at least, and chances below 0.05 in about 5 %.

    With 95 % a count is below 360 of 400 with a probability below 1e-5 for each; seeds are fixed.
    """
    held: Counter[str] = Counter()
    runs, scale = 400, 1 / epsilon
    for run in range(runs):
        rng = np.random.default_rng(run)
        frame = made(run + 10_000, rows, 0.4 if run % 2 else 0.0)
        effect = 0.4 if run % 2 else 0.0
        old, age = (frame.arm == "old").to_numpy(int), frame.age.to_numpy()
        place = ((frame.month - 1) * 2 + frame.event).to_numpy() * 8 + old * 4 + age
        counts = np.bincount(place, minlength=13 * 16).reshape(13, 2, 2, 4).astype(float)

        def noisy(cells: np.ndarray, rng: np.random.Generator = rng) -> Any:
            return with_noise(cells + rng.laplace(0, scale, cells.shape), NoiseModel(Laplace(scale)))

        def inside(name: str, line: Any, value: float) -> None:
            held[name] += line["low"] <= value <= line["high"]

        months = list(range(1, 13))
        curve = survival_curve(months, noisy(counts[:, :, 0].sum(axis=-1)), 0)
        truth = np.exp(-np.outer(months, np.exp(0.1 * np.arange(4)) / 8)).mean(axis=1)
        for m in (2, 6, 10):
            inside(f"survival {m}", curve.rows[m - 1], truth[m - 1])
        hazards = hazard_model(months, [ARM, AGE], noisy(counts), 0)
        inside("hazard of arm", hazards.rows[0], effect)
        inside("hazard of age", hazards.rows[1], 0.1)
        if not run % 2:
            test = log_rank_test(months, ["new", "old"], noisy(counts.sum(axis=-1)), 0)
            held["log-rank"] += test.chance < 0.05
        many = np.minimum(frame.n, top).to_numpy() / top
        seen = {
            "sums": shares(many, scale, rng, old * 4 + age, 8),
            "noise": math.sqrt(2) * scale,
            "mechanism": "laplace",
        }
        rate = rate_model([ARM, AGE], seen, 0, top, "n")
        for line, value in zip(rate.rows, (0.2, effect, -0.2), strict=True):
            inside(f"rate {line['term']}", line, value)
        y = (np.clip(frame.y / half, -1, 1).to_numpy() + 1) / 2
        arms = [
            {"sum": s, "noise": math.sqrt(2) * scale, "mechanism": "laplace"} for s in shares(y, scale, rng, old, 2)
        ]
        inside("difference", group_means(["new", "old"], arms, 0, half, "y", None).rows[-1], effect)
        ages = [
            {"sum": s, "noise": math.sqrt(2) * scale, "mechanism": "laplace"} for s in shares(y, scale, rng, age, 4)
        ]
        classes = group_means([0, 1, 2, 3], ages, 0, half, "y", None)
        held["variance"] += classes.chance < 0.05
        held["all pairs"] += all(line["low"] <= 0 <= line["high"] for line in classes.rows[4:])
    levels = {"log-rank": held.pop("log-rank") / (runs / 2), "variance": held.pop("variance") / runs}
    assert all(level < 0.08 for level in levels.values()), levels
    assert all(many >= 0.93 * runs for many in held.values()), held


@pytest.mark.parametrize(("call", "field", "epsilon"), [
    ('correlation({}, "x", "y")', "correlation", 10), ('correlation({}, "x", "y")', "correlation", 300),
    ('linear_regression({}, "y", ["x"])', "value", 30), ('linear_regression({}, "y", ["x"])', "value", 1000),
])  # fmt: skip
def test_intervals_of_columns_with_long_tails_hold_the_truth(call: str, field: str, epsilon: float) -> None:
    """Where the normal law, or errors of one size, were taken for granted 45 to 70 % held. 90 % of 150 have 135.

    With 95 % a count is below 126 with a probability below 1e-8; the seed is fixed.
    """

    def drawn(n: int, rng: np.random.Generator) -> pd.DataFrame:
        x = rng.lognormal(0, 0.7, n)
        return pd.DataFrame({"x": x, "y": x * rng.lognormal(0, 0.7, n)}).clip(upper=20)

    every = drawn(2_000_000, np.random.default_rng(1))
    slope, start = np.polyfit(every.x, every.y, 1)
    truths = [every.x.corr(every.y)] if field == "correlation" else [start, slope]
    rng, runs = np.random.default_rng(2), 150
    session, lines = Session(), ["use statistics"]
    for i in range(runs):
        session.bind(f"t{i}", drawn(2000, rng))
        described = f'private t{i} = bound("t{i}") described by {{x: 0.0..20.0, y: 0.0..20.0}}'
        lines.append(described + " protecting rows budget epsilon 2000")
    asked = ", ".join(f"{call.format(f't{i}')} with epsilon {epsilon}" for i in range(runs))
    result = session.attempt(Source("p.jst", "\n".join([*lines, f"release r = [{asked}]"])))
    held = [
        [line["low"] <= truth <= line["high"] for line, truth in zip(report.rows, truths, strict=True)]
        for report in result["r"]
    ]
    assert (np.sum(held, axis=0) >= 126).all(), np.sum(held, axis=0)
    wide = [report.rows[-1]["high"] - report.rows[-1]["low"] for report in result["r"]]
    assert np.median(wide) < 0.5


@pytest.mark.parametrize("call", [
    'linear_regression(t, "y", ["w", "event"])', 'logistic_regression(t, "event", ["w", "y"])',
    'poisson_regression(derive(t, y = clamp(y, 0, 20)), "y", ["event"])', 'correlation(t, "w", "y")',
])  # fmt: skip
def test_the_errors_of_coefficients_count_what_rows_are_rounded_by(call: str) -> None:
    """Of values that are on no grid: each was off by up to a thousand times its error where noise is small."""
    place = np.arange(len(FRAME))
    rows = FRAME.assign(w=np.select([place % 3 == 0, place % 7 < 3], [0.37, 0.91], 0.6))
    rows["event"] = ((place * place) % 11 < 4 + 4 * (rows.w > 0.8)).astype(int)
    rows["y"] = np.where((place % 5 < 2 + rows.event) ^ (rows.w > 0.8), 2.1, 1.3)
    result = ask(f"{call} with epsilon 1e8", "protecting rows budget epsilon 1e9", rows)
    target, names = (
        ("event", ["w", "y"]) if "logistic" in call else ("y", ["event"] if "poisson" in call else ["w", "event"])
    )
    x, y = np.column_stack([np.ones(len(rows)), *(rows[name] for name in names)]), rows[target].to_numpy(dtype=float)
    beta = np.zeros(x.shape[1])
    for _ in range(40):  # Newton's method, of least squares at once
        eta = x @ beta
        mean, slope = {"linear": (eta, 1.0 + 0 * eta), "logistic": (p := 1 / (1 + np.exp(-eta)), p * (1 - p))}.get(
            call.split("_")[0], (np.exp(eta), np.exp(eta)))  # fmt: skip
        beta = beta + np.linalg.solve((x.T * slope) @ x, x.T @ (y - mean))
    exact = [rows.w.corr(rows.y)] if "correlation" in call else beta
    for line, value in zip(result["a"].rows, exact, strict=True):
        told = line["correlation" if "correlation" in call else "value"]
        assert abs(told - value) <= line["error"] < 0.1 * (line["high"] - line["low"]), (line, value)


def test_the_errors_of_log_odds_count_the_steps_of_their_tables() -> None:
    """Of few values all rows with one are rounded alike: an intercept was off by six times its error."""
    z, yes = np.repeat([0.0, 4.0, 3.0, 2.0, 1.0], [224, 42, 27, 22, 13]), np.zeros(328, dtype=int)
    for value, many in zip([0.0, 4.0, 3.0, 2.0, 1.0], [103, 22, 14, 12, 6], strict=True):
        yes[np.flatnonzero(z == value)[:many]] = 1
    x, beta = np.column_stack([np.ones(328), z]), np.zeros(2)
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ beta))
        beta = beta + np.linalg.solve((x.T * p * (1 - p)) @ x, x.T @ (yes - p))
    session = Session()
    session.bind("t", pd.DataFrame({"z": z, "g": yes}))
    text = 'use statistics\nt = bound("t") described by {z: 0.0..4.0, g: 0..1}\n'
    result = session.attempt(Source("p", text + 'release r = logistic_regression(t, "g", ["z"])'))
    for line, true in zip(result["r"].rows, beta, strict=True):
        assert abs(line["value"] - true) <= line["error"] < 1e-3


def test_deviations_are_the_samples() -> None:
    """As `stddev` and pandas have it."""
    few = FRAME.iloc[:5]
    told = ask('describe_numeric(t, "y") with epsilon 1e8', "protecting rows budget epsilon 1e9", few)["a"].rows[3]
    assert told["low"] <= few["y"].std() <= told["high"] < told["low"] * 1.01


def test_quantiles_know_how_many_rows_share_one() -> None:
    """Where a quarter of the rows were at an end of the range, the median beside a 90 % quantile was that of 56 %."""
    heaped = FRAME.assign(n=np.minimum(np.arange(len(FRAME)) % 40, 30))
    for asked in ([0.5, 0.9], [0.1, 0.5, 0.76, 0.9], [0.9, 0.95, 1]):
        exact = heaped.n.quantile(asked, interpolation="lower")
        for amount, declared in ((" with epsilon 1e3", "protecting rows budget epsilon 1e6"), ("", "")):
            found = ask(f'quantiles(t, "n", {asked}){amount}', declared, heaped)["a"]
            assert all(abs(value - true) <= 1 for value, true in zip(found, exact, strict=True)), found


def test_where_noise_is_small_several_classes_have_the_weights_of_maximum_likelihood() -> None:
    """Gradients that were clipped to half of what they can be moved a slope by a sixth of it, at any amount."""
    rng = np.random.default_rng(3)
    kinds = rng.integers(0, 3, 400)
    a = np.clip(np.array([2, 5, 4])[kinds] + rng.normal(0, 1.5, 400), 0, 8)
    c = np.where(rng.random(400) < np.array([0.2, 0.5, 0.8])[kinds], "q", "p")
    frame = pd.DataFrame({"a": a, "c": c, "kind": np.array(list("xyz"))[kinds]})
    session = Session()
    session.bind("t", frame)
    result = session.attempt(Source("c.jst", """use statistics
private t = bound("t") described by {a: 0.0..8.0, c: {"p", "q"}, kind: {"x", "y", "z"}} protecting rows budget rho 1e10
release fit = softmax_regression(t, "kind", ["a", "c"], steps = 300, batches = 1) with rho 1e9
"""))  # fmt: skip
    assert result.ok, result.diagnostics
    found = np.array([line["value"] for line in result["fit"].rows]).reshape(3, 3)
    x = np.column_stack([np.ones(len(frame)), frame["a"] - 4, frame["c"] == "q"])
    y, best = np.eye(3)[kinds], np.zeros((3, 3))
    for _ in range(4000):
        odds = np.exp(x @ best.T)
        best -= 0.4 * (odds / odds.sum(axis=1, keepdims=True) - y).T @ x / len(x)
    best[:, 0] -= 4 * best[:, 1]
    assert found == pytest.approx(best - best.mean(axis=0), abs=0.02)


def test_quantiles_beside_a_long_tail_are_not_lifted_by_its_noise() -> None:
    """The largest noise of a long tail counted as rows: the 95 % quantile lay 10 rows too high, and its interval held
    94 of 100 times."""
    places, off = np.arange(1024.0), []
    truth = np.interp(places + 1, [0, 200, 1024], [0, 2900, 3000])
    seen: Sums = {"sum": np.array([750.0, 1500.0, 750.0]), "noise": 1.0, "mechanism": "gaussian"}
    for seed in range(200):
        below = truth + np.random.default_rng(seed).normal(0, 10, 1024)
        report = describe("x", np.array([3000.0, 0.0]), seen, below, places, 1024.0, 512.0, 512.0, False)
        at = next(float(line["value"]) for line in report.rows if line[""] == "95 %")
        off.append(np.interp(at, np.append(places, 1024.0), np.append(0.0, truth)) - 0.95 * 3000)
    assert abs(np.mean(off)) < 4


@pytest.mark.parametrize(("q", "value"), [(0, 1), (0.25, 1.5), (0.5, 2), (0.75, 4.5), (1, 5)])
def test_a_quantile_of_counts_lies_in_a_bin_with_rows(q: float, value: float) -> None:
    text = f"use streams\nrelease x = quantile_of([0, 4, -3, 0, 4, 0], [0, 1, 2, 3, 4, 5, 6], {q})\n"
    assert Session().attempt(Source("q.jst", text))["x"] == value
