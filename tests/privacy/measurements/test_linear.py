"""The one linear measurement: what it draws by, and that no row moves a vector of any instance further than it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from recording import Bench

from jostle.accounting.amounts import QUANTA, Amount
from jostle.accounting.definitions import Measure
from jostle.diagnostics import Refusal
from jostle.integers import LIMIT, fixed_width
from jostle.noise_laws import Gaussian, Laplace
from jostle.plan.facts import FACTS
from jostle.plan.plan import Column, Domain, FixedSum, Integer, Key, Real, RowExpr
from jostle.plan.schemas import Facts
from jostle.privacy.measurements.running import Roots, _coarser, _rounded
from jostle.privacy.mechanisms.additive import Additive, Linear
from jostle.run import declare
from jostle.simulate import SeededNoise
from jostle.tools.session import Session

ROWS = [(5, "A", "F"), (7, "B", "M"), (12, "C", "F"), (12, "A", "M"), (19, "B", "F")]
MORE = [(5, "A", "F"), (19, "B", "M"), (0, "C", "")]
HEADER = ["v", "town", "sex"]
SOURCE = 'private t = table("t.csv") described by {v: 0..19, town: {"A", "B", "C"}, sex: {"F", "M"}} protecting rows '
FORMS = {
    "counts": "a = {{ select count(*) from t groupby town }} with E",
    "sums": "a = {{ select sum(v), sum(v / 7) as s from t groupby town }} with E",
    "means": "a = {{ select avg(v), var(v / 3), count(v) from t groupby sex }} with E",
    "running answers": "a = {{ select count(*), sum(v / 7) as s from t groupby sex, running(v, until = 18) }} with E",
    "quantiles": "a = {{ select median(v), bounds(v) from t groupby sex }} with E",
    "cells": "a = laplace(histogram(t, v, town)) with E",
    "cubes together": "a = laplace([histogram(t, v), histogram(t, town, sex)]) with E",
    "a strategy": "use histograms\nh = histogram(t, v)\na = hb(h, prefixes(h)) with E",
    "selects of a cube": "h = histogram(t, v, sex)\n"
    "a = {{ select sum(values), max(values) from h groupby sex }} with E",
    "scores": "a = laplace(size(t)) with E\nb = laplace(sum_of(t, v)) with E",
    "moments": 'r = vectors(t, v, v / 2)\na = noisy_moments(r) with E\nb = noisy_sum(r, "coordinates", {}) with E',
    "joint blocks": "jointly with E {\na = {{ select count(*) from t groupby town }}\n"
    "b = {{ select count(*), sum(v) from t groupby town, sex }}\n}",
}


def wrong_domain(expr: RowExpr, kind: str, schema: Any) -> Domain | None:
    known = FACTS.domain(expr, kind, schema)
    return Integer(4, 6) if isinstance(known, Integer) else Real(0.5, 0.75) if isinstance(known, Real) else known


def wrong_key(expr: RowExpr, schema: Any, limit: int) -> Key | None:
    """Another order, and a value twice; of numbers other ones."""
    known = FACTS.key(expr, schema, limit)
    if known is None:
        return None
    values = known.values
    return Key(expr, range(4, 19) if isinstance(values, range) else (*values[1:], values[-1], *values[:1]))


LIES = Facts(lambda expr, schema: (3.0, 8.5), wrong_domain, FACTS.union, wrong_key)


class DrawnOfNothing:
    """Noise that is recorded: what is drawn, by which scale."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, list[int], float]] = []

    def laplace(self, values: Any, scale: float) -> Any:
        self.drawn.append(("laplace", values.ravel().tolist(), scale))
        return values + 1

    def gaussian(self, values: Any, sigma: float) -> Any:
        self.drawn.append(("gaussian", values.ravel().tolist(), sigma))
        return values + 2


def test_a_vector_is_clamped_and_has_noise_of_its_scale() -> None:
    noise: Any = DrawnOfNothing()
    linear = Linear(Laplace, 0.5, 3, 2.0, bits=1)
    numbers = linear.release(np.array([[4, 10**30], [-(10**30), 0]], dtype=object), noise)
    assert noise.drawn == [("laplace", [4, LIMIT, -LIMIT, 0], 6.0)]
    assert numbers.tolist() == [[2.5, LIMIT / 2], [-LIMIT / 2, 0.5]]
    assert linear.law == Laplace(3.0, step=0.5)


def test_widths_widen_the_noise_of_their_numbers_alone() -> None:
    noise: Any = DrawnOfNothing()
    Linear(Gaussian, 2.0, 9, 4.0).release([1, 2, 3, 4], noise, np.array([1.0, 3.0, 1.0, 0.5]))
    assert noise.drawn == [("gaussian", [4], 1.0), ("gaussian", [1, 3], 2.0), ("gaussian", [2], 6.0)]


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_parts_cost_the_whole_together(kind: type[Laplace | Gaussian]) -> None:
    """Of ε, and of ρ = (Δ/σ)²/2."""
    whole, shares = Linear(kind, 0.7, 5, 3.0), (0.5, 0.2, 0.3)
    power = 1 if kind is Laplace else 2
    moved = 5 if kind is Laplace else 3.0
    spent = sum((moved / whole.part(share).scale) ** power for share in shares)
    assert spent == pytest.approx(0.7**power)


def test_only_public_data_and_what_no_row_moves_are_exact() -> None:
    assert Linear.of(None, 3, 3, 2).release([6], None).tolist() == [1.5]
    assert Linear(Laplace, 1.0, 0, 0.0).release([6], None).tolist() == [6.0]
    with pytest.raises(Refusal):
        Linear(Laplace, 1.0, 1, 1.0).release([6], None)


def test_what_rows_move_is_never_released_without_noise() -> None:
    """A private vector that no amount was found for: `Linear.of(None, …)` is for public data, which have no noise."""
    with pytest.raises(TypeError, match="not released without noise"):
        Linear.of(None, 1, 1).release(np.arange(3), SeededNoise(1))


@pytest.mark.parametrize(("unit", "via"), [("epsilon", "laplace"), ("rho", "laplace"), ("rho", "gaussian")])
def test_the_scale_is_that_of_the_amount(unit: str, via: str) -> None:
    """Against the definitions: ε = Δ₁/b, of which ρ = ε·tanh(ε/2) is the cost in zCDP, and ρ = Δ₂²/2σ²."""
    how = Additive.of(
        Amount(unit, QUANTA // 4), via, [Measure("pure" if unit == "epsilon" else "zcdp", Amount(unit, QUANTA))]
    )
    scale = Linear.of(how, 6, 2.0).scale
    spent = (2.0 / scale) ** 2 / 2 if via == "gaussian" else 6 / scale
    if (unit, via) == ("rho", "laplace"):
        spent *= np.tanh(spent / 2)
    assert spent == pytest.approx(0.25, rel=1e-9)


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Linear, Any, Any]]:
    """All vectors that get noise, with their widths."""
    vectors: list[tuple[Linear, Any, Any]] = []
    release = Linear.release

    def recorded(linear: Linear, exact: Any, noise: Any, widths: Any = None) -> Any:
        if linear.l1:
            vectors.append((linear, fixed_width(exact).astype(float), widths))
        return release(linear, exact, noise, widths)

    monkeypatch.setattr(Linear, "release", recorded)
    return vectors


@pytest.mark.parametrize("facts", [FACTS, LIES], ids=["facts", "lies"])
@pytest.mark.parametrize("clause", ["rows", "town up to 3 rows"])
@pytest.mark.parametrize("form", FORMS)
def test_no_row_moves_a_vector_further_than_is_said(
    bench: Bench, released: list[tuple[Linear, Any, Any]], monkeypatch: pytest.MonkeyPatch, form: str, clause: str,
    facts: Facts,
) -> None:  # fmt: skip
    """Brute force: every instance on a table and on neighbours, in ℓ₁ and in ℓ₂, over its widths, whatever is said to
    be known of its columns."""
    monkeypatch.setattr(declare, "FACTS", facts)
    if clause != "rows" and form == "scores":
        pytest.skip("the same")
    text = f"{SOURCE.replace('rows ', clause + ' ')}budget rho 100\n{FORMS[form].replace('E', 'rho 0.5')}\n"
    bench.table(ROWS, HEADER)
    bench.run(text)
    base, most = list(released), 0.0
    assert base
    for row in MORE:
        released.clear()
        bench.table([*ROWS, row], HEADER)
        bench.run(text)
        for (linear, a, widths), (other, b, _) in zip(base, released, strict=False):
            if linear != other or a.shape != b.shape:
                break  # what was chosen before is another: from here on they are other measurements
            moved = np.abs(a - b) / (1.0 if widths is None else widths)
            assert moved.sum() <= linear.l1 * (1 + 1e-9) or linear.kind is Gaussian
            assert np.sqrt((moved**2).sum()) <= linear.l2 * (1 + 1e-9) or linear.kind is Laplace
            most = max(most, moved.sum() / linear.l1)
    assert most > (0 if facts is LIES else 0.2)


def test_running_sums_are_rounded_by_steps_and_not_by_rows() -> None:
    """A tenth is no multiple of any grid: rounded row by row, two million of them were off by 1.7 times their ±."""
    session = Session()
    session.bind("t", pd.DataFrame({"step": np.arange(20_000) % 4, "x": 0.1}))
    described = 'private t = bound("t") described by {step: 0..3, x: 0.0..50.0} protecting rows budget rho 1e9\n'
    asked = "release g = {{ select sum(x) as s from t groupby running(step) with rho 1000000 }}\n"
    margins = session.run_text(f"# jostle: allow large-epsilon\n{described}{asked}").margins()["g"]
    for step, margin in enumerate(margins, 1):
        assert abs(margin["s"]["value"] - 500 * step) < 3 * margin["s"]["error"] < 0.3


@pytest.mark.parametrize("bits", [0, 1, 2, 5])
def test_a_rounded_sum_moves_as_far_as_its_rows_rounded_up(bits: int) -> None:
    sums = np.arange(-100, 101)
    for moved in range(70):
        assert np.abs(_rounded(sums + moved, bits) - _rounded(sums, bits)).max() <= -(-moved // 2**bits)
    assert np.abs(_rounded(sums, bits) * 2**bits - sums).max() <= 2**bits / 2


@pytest.mark.parametrize(("high", "bits"), [(50.0, 24), (200_000.0, 0)])
def test_running_sums_have_room_for_a_hundred_million_rows(high: float, bits: int) -> None:
    """What is beyond is cut off without a word: six million rows of the largest number at ρ = 1 were."""
    term = _coarser(FixedSum(Column("x"), 0.0, high, bits), high / 30)  # of thirty steps
    assert 1e8 * high * 2.0 ** (term.bits + Roots.bits) < LIMIT
