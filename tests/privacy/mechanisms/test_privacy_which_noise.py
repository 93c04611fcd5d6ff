"""Laplace or Gaussian: the smaller noise at the same charge, decided by public norms and told in the trace."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jostle.accounting.amounts import Amount
from jostle.accounting.composition import quanta
from jostle.accounting.definitions import Measure, gaussian_price, pure_epsilon, rho_of
from jostle.noise_laws import Gaussian, Laplace
from jostle.privacy.mechanisms.stability import key_mechanism, threshold
from jostle.records import replace
from jostle.tools.session import Result

EPSILON, DELTA = 1.0, 1e-6
SIGMA = 1 / math.sqrt(2 * rho_of(EPSILON, DELTA))
SPEND = {"basic": f"epsilon {EPSILON} delta {DELTA}", "zcdp": f"epsilon {EPSILON} delta {DELTA}", "rho": "rho 0.5"}
BUDGET = {"basic": "epsilon 9, delta 0.1 counted by basic", "zcdp": "epsilon 9, delta 0.1", "rho": "rho 9"}
BOXES = '[{{kind: "boxes", lows: [[0] for i in 1..{0}], highs: [[3] for i in 1..{0}], weight: 1}}]'


def measured(attempt: Callable[..., Result], counting: str, what: str, via: str = "") -> dict[str, Any]:
    program = f"private c = counts([5, 6, 7, 8]) protecting rows budget {BUDGET[counting]}\n"
    result = attempt(program + f"x = {what.replace('SPEND', SPEND[counting] + via)}\n")
    assert result.ok, result.diagnostics
    spent = {unit: line["spent"] for unit, line in result.budget["c"].items()}
    (event,) = [e.fields for e in result.events if e.kind == "measure"]
    return {**event, "spent": spent}


COUNT = "{{ select sum(values) from c with SPEND }}"


@pytest.mark.parametrize("what", [COUNT, "laplace(c) with SPEND", "laplace(size(c)) with SPEND"])
def test_plain_sums_of_a_single_norm_take_laplace(attempt: Callable[..., Result], what: str) -> None:
    event = measured(attempt, "basic", what)
    assert event["mechanism"] == "laplace"
    assert event["scale"] == pytest.approx(1 / EPSILON)
    assert event["because"].startswith(f"{math.sqrt(2) / SIGMA:.2g} of the deviation")


def test_where_a_row_is_in_many_answers_gaussian_noise_grows_slower(attempt: Callable[..., Result]) -> None:
    """k answers hold every row: √2·k/ε against √k·σ, which cross at k = σ²ε²/2."""
    even = int(SIGMA**2 * EPSILON**2 / 2)
    for k, expected in ((even, "laplace"), (even + 1, "gaussian")):
        event = measured(attempt, "basic", f"laplace(c, {BOXES.format(k)}) with SPEND")
        assert event["mechanism"] == expected
        deviation = math.sqrt(2) * event["scale"] if expected == "laplace" else event["scale"]
        assert deviation == pytest.approx(min(math.sqrt(2) * k / EPSILON, math.sqrt(k) * SIGMA), rel=1e-6)


@pytest.mark.parametrize("counting", ["zcdp", "rho"])
@pytest.mark.parametrize("k", [1, 40])
def test_in_zcdp_gaussian_noise_is_the_smaller(attempt: Callable[..., Result], counting: str, k: int) -> None:
    event = measured(attempt, counting, f"laplace(c, {BOXES.format(k)}) with SPEND")
    laplace = math.sqrt(2) * k / (pure_epsilon(0.5) if counting == "rho" else 1 / SIGMA)
    gaussian = math.sqrt(k) * (1.0 if counting == "rho" else SIGMA)
    assert event["mechanism"] == "gaussian"
    assert event["because"].startswith(f"{gaussian / laplace:.2g} of the deviation")


def test_much_rho_buys_laplace_noise(attempt: Callable[..., Result]) -> None:
    """ε·tanh(ε/2) = ρ; the deviations √2/ε and 1/√(2ρ) cross at ρ = 3.66…, where tanh √ρ = √ρ/2."""
    for rho, expected in ((3.66, "gaussian"), (3.68, "laplace")):
        event = measured(attempt, "rho", COUNT.replace("SPEND", f"rho {rho}"))
        assert event["mechanism"] == expected
        assert event["spent"] == {"rho": str(rho)}
    assert event["scale"] == pytest.approx(1 / pure_epsilon(3.68))


@pytest.mark.parametrize("counting", ["basic", "zcdp", "rho"])
def test_via_overrides_and_the_charge_is_the_same(attempt: Callable[..., Result], counting: str) -> None:
    chosen = measured(attempt, counting, COUNT)
    for mechanism in ("laplace", "gaussian"):
        event = measured(attempt, counting, COUNT, f" via {mechanism}")
        assert event["mechanism"] == mechanism
        assert "because" not in event
        if counting != "zcdp":  # there Laplace noise for all of ε costs far more of ρ
            delta = {"delta": "0.000001" if mechanism == "gaussian" else "0"} if counting == "basic" else {}
            assert event["spent"] == {**chosen["spent"], **delta}  # in a plain sum Laplace noise costs no δ


def test_without_delta_there_is_nothing_to_choose(attempt: Callable[..., Result]) -> None:
    event = measured(attempt, "basic", COUNT.replace("SPEND", "epsilon 1"))
    assert event["mechanism"] == "laplace"
    assert "because" not in event


@pytest.mark.parametrize(
    "amount", ["rho 1e308", "rho 1.7e308", "epsilon 1e308 delta 1e-6", "epsilon 1e300 delta 1e-6", "rho 1e-320"]
)
@pytest.mark.parametrize("what", [COUNT, "laplace(c) with SPEND", "laplace(size(c)) with SPEND"])
def test_amounts_at_the_ends_of_what_a_float_holds_are_refused_in_words(
    attempt: Callable[..., Result], what: str, amount: str
) -> None:
    """2ρ may be no float where ρ is one."""
    budget = "rho 9" if "rho" in amount else "epsilon 9, delta 0.1"
    program = f"private c = counts([5, 6, 7, 8]) protecting rows budget {budget}\nx = {what.replace('SPEND', amount)}\n"
    result = attempt(program)
    assert not result.ok
    assert result.diagnostics[0].kind in ("BudgetExceeded", "BadAmount")


@pytest.mark.parametrize("rows, each, kind", [(1, 1, Laplace), (2, 2, Laplace), (8, 1, Gaussian), (40, 2, Gaussian)])
def test_keys_of_one_person_pass_the_threshold_with_less_than_delta(rows: int, each: int, kind: type) -> None:
    """The probability that noise exceeds it, from the discrete law itself, times the keys that a person can have."""
    delta = 1e-6
    measure = Measure("basic", Amount("epsilon", quanta(10.0), quanta(1e-3)))
    how, price = key_mechanism(Amount("epsilon", quanta(1.0), quanta(delta)), [measure], rows, each)
    assert how.kind is kind and price.delta0 == quanta(delta) and price.pure == (kind is Laplace)
    most = threshold(how, rows, each)
    scale = rows if kind is Laplace else math.sqrt(rows * each) / how.strength
    at = np.arange(-200_000, 200_001, dtype=float)
    log = -np.abs(at) / scale if kind is Laplace else -(at**2) / (2 * scale**2)
    weights = np.exp(log)
    part = weights[at > most - each].sum() / weights.sum()
    assert 0 < rows * part <= (delta if kind is Laplace else delta / 2)
    other = replace(how, kind=Gaussian if kind is Laplace else Laplace, delta=delta / 2 if kind is Laplace else delta)
    assert most <= threshold(other, rows, each)
    if kind is Gaussian:
        assert how.delta == pytest.approx(delta / 2) and price.rho == gaussian_price(price.amount, how.delta).rho
