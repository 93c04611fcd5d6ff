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

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jostle.kernels.rowprograms import CONTRIBUTIONS
from jostle.privacy.rows.norms import GRID, clipped
from jostle.source import Source
from jostle.tools.session import Result, Session
from tests.experiments.effects import Population, estimates

SMALL = Population(3000, (2, 3), False)
STRATUM, ARM, WELL = SMALL.sample(np.random.default_rng(4))
FRAME = pd.DataFrame({"a": STRATUM // 3, "b": np.array(["x", "y", "z"])[STRATUM % 3], "drug": ARM, "well": 40 * WELL,
                      "cured": np.where(WELL > 0.4, "yes", "no")})  # fmt: skip
SCHEMA = '{a: 0..1, b: {"x", "y", "z"}, drug: 0..1, well: 0.0..40.0, cured: {"no", "yes"}}'


def ask(call: str, declared: str = "", data: pd.DataFrame = FRAME) -> Result:
    session = Session()
    session.bind("t", data)
    private = "private " if declared else ""
    text = f'use effects\n{private}t = bound("t") described by {SCHEMA} {declared}\nrelease r = {call}'
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
        assert said["effect"] == pytest.approx(effect, abs=2e-3) and said["error"] == 0 and said["strata"] == 6
        assert said["high"] - said["effect"] == pytest.approx(1.96 * math.sqrt(sampling), rel=5e-3)
    weighted = facts(f'ate_weighted(t, "drug", "{outcome}", ["a", "b"]) with epsilon 1')
    assert weighted["effect"] == pytest.approx(effect, abs=(weighted["high"] - weighted["low"]) / 20)


def test_without_columns_to_adjust_by_it_is_the_difference_of_means() -> None:
    means = FRAME.groupby("drug")["well"].mean()
    assert facts('ate_stratified(t, "drug", "well", [])')["effect"] == pytest.approx(means[1] - means[0], abs=2e-3)


def test_a_stratum_without_a_treated_row_is_left_out_or_makes_the_interval_infinite() -> None:
    alone = FRAME[(FRAME["b"] != "z") | (FRAME["drug"] == 0)]
    matched = facts('ate_matched(t, "drug", "well", ["b"])', alone)
    assert matched["strata"] == 2 and matched["left_out"] == (alone["b"] == "z").sum()
    assert math.isfinite(matched["high"])
    assert math.isinf(facts('ate_stratified(t, "drug", "well", ["b"])', alone)["high"])


# What a row gives ----------------------------------------------------------------------------------


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
    """Of 250 seeded samples with seeded noise; the slow command counts 2,000 of each of eight populations."""
    p, rng = Population(4000, (2, 2), False), np.random.default_rng(8)
    runs = [estimates(p, 0.3, rng) for _ in range(250)]
    for name in ("stratified", "matched", "weighted"):
        held = np.mean([r[name]["low"] <= p.truth <= r[name]["high"] for r in runs])
        assert 0.91 <= held <= 0.985, name
        off = np.std([r[name]["effect"] for r in runs])
        half = np.median([r[name]["high"] - r[name]["low"] for r in runs]) / 2
        assert half == pytest.approx(1.96 * off, rel=0.15)
    assert np.mean([r["unadjusted"]["effect"] - p.truth for r in runs]) > 0.1


@pytest.mark.parametrize(("budget", "amount"), [
    ("epsilon 9", "epsilon 3"), ("epsilon 9, delta 1e-5", "epsilon 3 delta 1e-6"), ("rho 9", "rho 1"),
])  # fmt: skip
def test_each_spends_its_allotment_under_every_budget(budget: str, amount: str) -> None:
    for name in ("matched", "weighted"):
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
