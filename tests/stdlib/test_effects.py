"""`use effects`: exact on public rows, a sensitivity of 1, intervals as wide as they say, and refusals that help."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from jostle.records import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jostle.kernels.rowprograms import CONTRIBUTIONS
from jostle.kernels.statistics.effects import simulated_study
from jostle.kernels.statistics.weighting import Seen, smoothed, values_of
from jostle.privacy.rows.norms import GRID, clipped
from jostle.source import Source
from jostle.tools.session import Result, Session
from tests.experiments.effects import Population, estimates

SMALL = Population(3000, (2, 3), False)
STRATUM, ARM, WELL = SMALL.sample(np.random.default_rng(4))
FRAME = pd.DataFrame({"a": STRATUM // 3, "b": np.array(["x", "y", "z"])[STRATUM % 3], "drug": ARM, "well": 40 * WELL,
                      "cured": np.where(WELL > 0.4, "yes", "no")})  # fmt: skip
SCHEMA = '{a: 0..1, b: {"x", "y", "z"}, drug: 0..1, well: 0.0..40.0, cured: {"no", "yes"}}'


def ask(call: str, declared: str = "", data: pd.DataFrame = FRAME, module: str = "effects") -> Result:
    session = Session()
    session.bind("t", data)
    private = "private " if declared else ""
    text = f'use {module}\n{private}t = bound("t") described by {SCHEMA} {declared}\nrelease r = {call}'
    return session.attempt(Source("e.jst", text))


def facts(call: str, data: pd.DataFrame = FRAME) -> dict[str, Any]:
    result = ask(call, data=data)
    assert result.ok, result.diagnostics
    return dict(result["r"].facts)


# Without noise -------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["well", "cured"])
def test_strata_are_compared_and_weighed_by_their_rows(outcome: str) -> None:
    y = FRAME["well"] if outcome == "well" else (FRAME["cured"] == "yes").astype(float)
    groups = FRAME.assign(y=y).groupby(["a", "b", "drug"])["y"]
    mean, n, spread = (groups.agg(f).unstack() for f in ("mean", "size", lambda v: v.var(ddof=0)))
    share = n.sum(axis=1) / len(FRAME)
    effects = mean[1] - mean[0]
    within = (spread / n).sum(axis=1)
    effect = float(share @ effects)
    sampling = share**2 @ within + (share @ ((effects - effect) ** 2 - within * (1 - share))) / len(FRAME)
    for name in ("stratified", "matched") if outcome == "well" else ("stratified",):
        said = facts(f'ate_{name}(t, "drug", "{outcome}", ["a", "b"])')
        assert said["effect"] == pytest.approx(effect, abs=2e-3) and said["strata"] == 6
        assert abs(said["effect"] - effect) <= said["error"] + 1e-9 < 2e-3  # what rows are rounded by
        assert said["high"] - said["effect"] == pytest.approx(1.96 * math.sqrt(sampling), rel=5e-3)
    for call in ("ate_smoothed(t", "ate_weighted(t"):
        said = facts(f'{call}, "drug", "{outcome}", ["a", "b"]) with epsilon 1')
        assert said["effect"] == pytest.approx(effect, abs=(said["high"] - said["low"]) / 10)


def test_without_columns_to_adjust_by_it_is_the_difference_of_means() -> None:
    means = FRAME.groupby("drug")["well"].mean()
    assert facts('ate_stratified(t, "drug", "well", [])')["effect"] == pytest.approx(means[1] - means[0], abs=2e-3)


def test_a_stratum_without_a_treated_row_is_left_out_or_leaves_what_is_possible() -> None:
    alone = FRAME[(FRAME["b"] != "z") | (FRAME["drug"] == 0)]
    matched = facts('ate_matched(t, "drug", "well", ["b"])', alone)
    assert matched["strata"] == 2 and matched["left_out"] == (alone["b"] == "z").sum()
    assert matched["high"] - matched["low"] < 10
    stratified = facts('ate_stratified(t, "drug", "well", ["b"])', alone)
    assert [stratified[name] for name in ("effect", "error", "low", "high")] == [0, 40, -40, 40]
    drawn = facts('ate_smoothed(t, "drug", "well", ["a", "b"]) with epsilon 1', alone)
    assert drawn["left_out"] == 0 and 0 < drawn["high"] - drawn["low"] < 20


# What a row gives ----------------------------------------------------------------------------------


def test_an_arm_of_two_rows_is_compared() -> None:
    """Whatever noise there is, also none."""
    treated = FRAME[(FRAME.a == 1) & (FRAME.b == "x") & (FRAME.drug == 1)].index
    few = FRAME.drop(treated[2:])
    mean = few.groupby(["a", "b", "drug"])["well"].mean().unstack()
    truth = float((mean[1] - mean[0]) @ few.groupby(["a", "b"]).size() / len(few))
    for data, declared in ((few, ""), (few, "protecting rows budget epsilon 1e9")):
        found = ask('ate_stratified(t, "drug", "well", ["a", "b"]) with epsilon 1e8', declared, data)["r"]
        assert found.effect == pytest.approx(truth, abs=0.01) and found.high - found.low < 10 and found.strata == 6


def test_what_a_row_gives_is_never_more_than_one() -> None:
    """All cells and 33 places of x, and scores from hostile tables: shares from 0 on that add up to 1, so that no row
    moves all sums by more than 1, and no two rows differ by more than 2."""
    cells = [3, 1, 64]
    places = np.rint(np.linspace(-GRID, GRID, 33))
    for many in cells:
        at = np.rint(np.linspace(-GRID, GRID, many)) if many > 1 else np.array([-GRID, 0, GRID])
        units = np.array(list(itertools.product(at, places))).T
        hostile = np.random.default_rng(many).normal(0, 200, (2, many))
        programs = [CONTRIBUTIONS["cell_shares"](2, cells=many, squares=s) for s in (True, False)]
        programs.append(CONTRIBUTIONS["score_shares"](2, shift=hostile[0], slope=hostile[1]))
        for made in programs:
            shares = made.program(units)[0] * 2.0**-made.bits
            assert (shares >= 0).all() and (shares.sum(axis=0) == 1).all()
            assert (np.abs(clipped(shares, "l1").astype(object)).sum(axis=0) <= 2**30).all()


def test_programs_of_shares_compute_what_they_say() -> None:
    rng = np.random.default_rng(5)
    cell, x = rng.integers(0, 5, 400), rng.random(400)
    units = np.rint(np.stack([cell / 2 - 1, 2 * x - 1]) * GRID)
    made = CONTRIBUTIONS["cell_shares"](2, cells=5)
    table = (made.program(units)[0] * 2.0**-made.bits).reshape(5, 3, 400)
    wanted = np.stack([x * x, 2 * x * (1 - x), (1 - x) ** 2]) * (np.arange(5)[:, None, None] == cell)
    assert table == pytest.approx(wanted, abs=1e-4)
    shift, slope = rng.random(5), rng.normal(0, 0.5, 5)
    made = CONTRIBUTIONS["score_shares"](2, shift=shift, slope=slope)
    u = np.clip(shift[cell] + slope[cell] * x, 0, 1)
    wanted = np.stack([u * u, 2 * u * (1 - u), (1 - u) ** 2])
    assert made.program(units)[0] * 2.0**-made.bits == pytest.approx(wanted, abs=2e-4)


@pytest.mark.parametrize(("name", "parameters"), [
    ("cell_shares", "{cells: 0}"), ("cell_shares", "{cells: 2.5}"), ("cell_shares", "{cells: 2, squares: 1}"),
    ("score_shares", "{shift: [1, 2], slope: [1]}"), ("score_shares", "{shift: [2000], slope: [1]}"),
])  # fmt: skip
def test_parameters_that_do_not_fit_are_refused_before_a_charge(name: str, parameters: str) -> None:
    call = f'noisy_sum(vectors(t, a, drug), "{name}", {parameters}, norm = "l1", epsilon = 1)'
    result = ask(call, "protecting rows budget epsilon 1")
    assert result.diagnostics[0].kind == "ValueError" and result.budget == {}


# With noise ----------------------------------------------------------------------------------------


def test_intervals_hold_the_truth() -> None:
    """Of 160 seeded samples with seeded noise; the slow command counts more of each of eight populations."""
    p, rng = Population(4000, (2, 2), False), np.random.default_rng(8)
    runs = [estimates(p, 0.3, rng) for _ in range(160)]
    for name in ("stratified", "matched", "smoothed", "weighted", "sure"):
        held = np.mean([r[name]["low"] <= p.truth <= r[name]["high"] for r in runs])
        assert 0.9 <= held <= 0.99, name
        off = np.std([r[name]["effect"] for r in runs])
        half = np.median([r[name]["high"] - r[name]["low"] for r in runs]) / 2
        assert half == pytest.approx(1.96 * off, rel=0.15)
    assert np.mean([r["unadjusted"]["effect"] - p.truth for r in runs]) > 0.1


@pytest.mark.parametrize(("budget", "amount"), [
    ("epsilon 9", "epsilon 3"), ("epsilon 9, delta 1e-5", "epsilon 3 delta 1e-6"), ("rho 9", "rho 1"),
])  # fmt: skip
def test_each_spends_its_allotment_under_every_budget(budget: str, amount: str) -> None:
    for name in ("matched", "smoothed", "weighted"):
        result = ask(f'ate_{name}(t, "drug", "well", ["a", "b"]) with {amount}', f"protecting rows budget {budget}")
        assert result.ok, result.diagnostics
        unit, most = amount.split()[:2]
        assert 0.999 * float(most) < float(result.budget["t"][unit]["spent"]) <= float(most) or "delta" in budget
        said = result["r"].facts
        assert said["low"] < said["effect"] - said["error"] < said["effect"] + said["error"] < said["high"]


@pytest.mark.parametrize(("arguments", "said"), [
    ('"b", "well", ["a"]', "b has to have two values"), ('"drug", "b", ["a"]', "b is neither a number nor of two"),
    ('"drug", "well", ["drug"]', "are different columns"), ('"drug", "well", ["age"]', "no column age"),
    ('"drug", "cured", ["well"]', "well is real"),
])  # fmt: skip
def test_columns_that_do_not_fit_are_refused_before_a_charge(arguments: str, said: str) -> None:
    result = ask(f"ate_stratified(t, {arguments}) with epsilon 1", "protecting rows budget epsilon 1")
    assert said in result.diagnostics[0].message and result.budget == {}
    result = ask(f"best_effect(t, {arguments}) with epsilon 1", "protecting rows budget epsilon 1", module="best")
    assert said in result.diagnostics[0].message and result.budget == {}


@pytest.mark.parametrize(("call", "said"), [
    ('ate_weighted(t, "drug", "well", ["a"], 1) with epsilon 1', "is a share of the amount, between 0 and 1"),
    ("simulated_studies(0)", "whole numbers from 1 to 1000"),
    ("simulated_studies(2, rows = 2..10)", "a range within 5..1000000"),
])  # fmt: skip
def test_other_misuse_is_refused_before_a_charge(call: str, said: str) -> None:
    result = ask(call, "protecting rows budget epsilon 1")
    assert said in result.diagnostics[0].message
    assert all(float(spent["epsilon"]["spent"]) == 0 for spent in result.budget.values())


# Many strata -----------------------------------------------------------------------------------------


def test_strata_that_noise_hides_are_drawn_and_left_in_doubt() -> None:
    """Means of 200 strata of some 10 rows, whose noise is as large: nearer than their own, and no less than is said."""
    rng, sizes = np.random.default_rng(3), (10, 5, 4)
    design, rows = values_of(sizes), np.full(200, 10.0)
    truth = 0.5 + 0.2 * design @ rng.normal(size=19)
    drawn, said, alone = [], [], []
    for _ in range(60):
        noise = rng.normal(0, 3, (2, 200))
        totals = rng.binomial(10, np.clip(truth, 0, 1)) + noise[0]
        seen = Seen(totals, rows + noise[1], 9.0 * 1.25, 0.25, 3.0)
        found = smoothed(seen, design, 0.0625)
        drawn.append(found.mean - truth)
        alone.append(totals / 10 - truth)
        said.append(np.diag(found.covariance))
    off = np.mean(np.square(drawn))
    assert off < 0.5 * np.mean(np.square(alone)) and off < np.mean(said) < 4 * off


def test_a_simulated_study_is_what_it_says() -> None:
    for number in range(12):
        study = simulated_study(number, 5, 500, 20_000)
        assert 500 <= study.rows <= 20_000 and 2 <= len(study.shares) == math.prod(study.sizes) <= 512
        assert study.shares.sum() == pytest.approx(1) and (study.means > 0).all() and (study.means < 1).all()
        large = replace(study, rows=200_000)
        stratum, arm, outcome = large.sample(np.random.default_rng(1))
        weights = np.where(arm == 1, 1 / study.propensity[stratum], -1 / (1 - study.propensity[stratum]))
        off = (weights * outcome).std() / math.sqrt(large.rows)
        assert abs((weights * outcome).mean() - study.truth) < 6 * off


def test_the_best_effect_spends_what_it_is_given() -> None:
    call = 'best_effect(t, "drug", "well", ["a", "b"]) with epsilon 1'
    result = ask(call, "protecting rows budget epsilon 1", module="best")
    assert result.ok, result.diagnostics
    assert float(result.budget["t"]["epsilon"]["spent"]) == pytest.approx(1, rel=1e-3)
    said = result["r"].facts
    assert said["strata"] == 6 and said["high"] - said["low"] < 20
