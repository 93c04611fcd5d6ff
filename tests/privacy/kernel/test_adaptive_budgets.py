"""Budgets with a delta against programs that choose by what they saw: exact losses; broken filters are convicted."""

from __future__ import annotations

import math

import pytest
from adaptive_adversary import Move, gaussian, lone_key, lost, lost_under, randomised_response, together
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.accounting.amounts import QUANTA, Amount, as_float
from jostle.accounting.definitions import (
    Measure,
    Price,
    epsilon_of,
    gaussian_price,
    pure_price,
    rho_of,
    used_delta,
)
from jostle.privacy.mechanisms.margin import stability_price
from jostle.source import Source
from jostle.tools.result import Result
from jostle.tools.session import Session

BUDGETS = [(1, 0.1), (4, 0.01), (8, 0.01), (16, 1e-4), (32, 1e-4)]


def approximate(epsilon: float, delta: float) -> Measure:
    return Measure("approximate", Amount("epsilon", round(epsilon * QUANTA), round(delta * QUANTA)))


def responses(epsilon: float) -> list[Move]:
    return [randomised_response(max(1, round(epsilon * part * 4))) for part in (0.2, 0.5)]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_no_adaptive_program_loses_more_than_its_budget(epsilon: float, delta: float) -> None:
    """Any four of six mechanisms, in any order, picked after each answer; by exact losses. Much of δ is not lost."""
    measure = approximate(epsilon, delta)
    rho, worst = measure.rho_limit / QUANTA, 0.0
    keys = [lone_key(delta, delta / 3), lone_key(delta / 2, delta / 6)]
    for first in (0.1, 0.5, 0.9):
        noises = [gaussian(rho * part, delta / 2, delta / 6) for part in (first, 0.9 - first) if part > 0.01]
        worst = max(worst, lost_under(measure, [*keys, *responses(epsilon), *noises], 4))
    assert delta / 3 * 0.999 < worst <= delta / 2


@pytest.mark.parametrize(("epsilon", "delta"), [(4, 0.01), (8, 0.01), (16, 1e-4)])
def test_what_is_paid_at_once_and_counted_in_rho_keeps_within_its_amount(epsilon: float, delta: float) -> None:
    """Blocks of `in_rho`, of Gaussian noise and of what is worst among pure mechanisms, beside other charges."""
    measure = approximate(epsilon, delta)
    rho, keys = measure.rho_limit / QUANTA, [lone_key(delta / 2, delta / 6)]
    blocks = [
        together([gaussian(rho * part, delta, delta / 3)] * 2, delta / 2, delta / 6) for part in (0.1, 0.2, 0.3)
    ] + [together([randomised_response(1)] * max(1, round(16 * rho)), delta / 2, delta / 6)]
    assert all(measure.admits(measure.cost(move.price)) for move in blocks)
    assert delta / 6 * 0.999 < lost_under(measure, [*keys, *responses(epsilon), *blocks], 3) <= delta / 2


@pytest.mark.parametrize(("epsilon", "delta"), [(16, 1e-4), (32, 1e-4)])
def test_broken_filters_are_convicted(epsilon: float, delta: float) -> None:
    """Each lets a program lose more than (e, d): the adversary finds it, so that it would find it of ours."""
    rho, limit = rho_of(epsilon, delta), Amount("epsilon", round(epsilon * QUANTA), round(delta * QUANTA))
    little = delta / 1000
    keys = [lone_key(part * delta, part * delta) for part in (0.999, 0.9)]

    def cost(price: Price) -> tuple[int, ...]:
        return (price.rho, price.delta0, price.amount.value, price.amount.delta)

    def either(total: tuple[int, ...]) -> bool:
        """Plain sums within (e, d), or the ρ of all of (e, d)."""
        plain = total[2] <= limit.value and total[3] <= limit.delta
        return plain or (total[0] <= rho * QUANTA and total[1] == 0)

    def traded(total: tuple[int, ...]) -> bool:
        """ρ and δ₀ as two currencies of one budget."""
        return total[1] < limit.delta and epsilon_of(total[0] / QUANTA, delta - total[1] / QUANTA) <= epsilon

    def whole_boxes(total: tuple[int, ...]) -> bool:
        """Fixed limits, each of all of δ."""
        return total[0] <= rho * QUANTA and total[1] <= limit.delta

    for admits in (either, traded, whole_boxes):
        worst = 0.0
        for first in (0.3, 0.5, 0.9):
            noises = [gaussian(rho * part, little, little) for part in (first, 0.95 * (1 - first), 0.9 * (1 - first))]
            worst = max(worst, lost(epsilon, [*keys, *responses(epsilon), *noises], cost, admits, 3))
        assert worst > 1.01 * delta, admits.__name__


def test_the_adversary_finds_the_exact_loss_of_one_mechanism() -> None:
    measure = approximate(1, 0.1)
    assert lost_under(measure, [randomised_response(4)], 1) == 0.0
    assert lost(0.5, [randomised_response(4)], measure.cost, measure.admits, 1) == pytest.approx(
        math.exp(1) / (1 + math.exp(1)) * -math.expm1(-0.5)
    )
    assert lost_under(measure, [lone_key(0.1, 0.1 / 3)], 1) == pytest.approx(0.1 / 3)


# What is admitted --------------------------------------------------------------------------------------------

KINDS = ("pure", "gaussian", "keys")


def price_of(kind: str, amount: Amount, measure: Measure) -> Price:
    if kind == "pure":
        return pure_price(Amount(amount.unit, amount.value))
    return stability_price(amount) if kind == "keys" else gaussian_price(amount, used_delta(amount, [measure]))


def total_of(prices: list[Price], measure: Measure) -> tuple[int, ...]:
    costs = [measure.cost(price) for price in prices]
    return tuple(map(sum, zip(*costs, strict=True))) if costs else (0,) * measure.width


requests = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=6)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(requests, st.sampled_from([(0.1, 1e-5), (1, 1e-6), (8, 1e-9), (32, 1e-4)]))
def test_whatever_plain_sums_admit_is_admitted(asked: list[tuple[str, int, int]], limit: tuple[float, float]) -> None:
    """Amounts of any kind that add up to (e, d) at most, exactly in full among them."""
    measure = approximate(*limit)
    values, deltas = sum(v for _, v, _ in asked), sum(d for _, _, d in asked)
    whole = measure.limit
    prices = []
    for kind, value, delta in asked:
        amount = Amount("epsilon", max(1, whole.value * value // values), max(1, whole.delta * delta // deltas))
        prices.append(price_of(kind, amount, measure))
    if sum(p.amount.value for p in prices) <= whole.value and sum(p.amount.delta for p in prices) <= whole.delta:
        assert measure.admits(total_of(prices, measure))


@settings(deadline=None, max_examples=200)
@given(requests)
def test_what_is_left_and_what_is_spent_are_the_budget(asked: list[tuple[str, int, int]]) -> None:
    """In quanta; and what is left can be asked for: in the plain sum by anything, in ρ by Gaussian noise."""
    measure = approximate(1, 1e-6)
    whole, prices = measure.limit, []
    for kind, value, delta in asked:
        amount = Amount("epsilon", whole.value * value // 100, whole.delta * delta // 100)
        price = price_of(kind, amount, measure)
        if measure.admits(total_of([*prices, price], measure)):
            prices.append(price)
    total = total_of(prices, measure)
    spent, left = measure.spent_exactly(total), measure.left_exactly(total, (0,) * measure.width)
    assert (spent[0] + left[0], spent[1] + left[1]) == (whole.value, whole.delta)
    if left[0] > 10**6 and left[1] > 1000:
        rest = gaussian_price(Amount("epsilon", *left), used_delta(Amount("epsilon", *left), [measure]))
        assert measure.admits(total_of([*prices, rest], measure))
        keys = stability_price(Amount("epsilon", 1, left[1]))
        assert measure.admits(total_of([*prices, keys], measure))
        if not measure.counts_in_zcdp(total):
            assert measure.admits(total_of([*prices, pure_price(Amount("epsilon", left[0]))], measure))


def test_many_small_measurements_go_by_rho_and_few_large_ones_by_plain_sums() -> None:
    measure = approximate(1, 1e-6)
    large = [pure_price(Amount("epsilon", QUANTA // 2))] * 2
    assert measure.admits(total_of(large, measure)) and not measure.counts_in_zcdp(total_of(large, measure))
    small = [pure_price(Amount("epsilon", QUANTA // 1000))] * 5000
    assert measure.admits(total_of(small, measure)) and measure.counts_in_zcdp(total_of(small, measure))
    assert measure.spent(total_of(small, measure))["epsilon"] < 1
    some = Amount("epsilon", QUANTA // 100, QUANTA // 10**8)
    mixed = [large[0], gaussian_price(some, used_delta(some, [measure]))]
    assert measure.admits(total_of(mixed, measure))
    assert measure.spent(total_of(mixed, measure)) == {"epsilon": 0.51, "delta": as_float(QUANTA // 10**8)}


def test_gaussian_noise_on_a_part_of_a_person_has_no_plain_sum() -> None:
    """Of how many of its rows are in which part δ says nothing; ρ does."""
    measure = approximate(1, 1e-6)
    some = Amount("epsilon", QUANTA // 100, QUANTA // 10**8)
    price = gaussian_price(some, used_delta(some, [measure]))
    part = measure.cost(price, in_part_of_person=True)
    half = measure.cost(pure_price(Amount("epsilon", QUANTA // 2)))
    assert measure.admits(part)
    assert not measure.admits(tuple(a + b for a, b in zip(part, half, strict=True)))


# Paid at once, and counted in ρ: `in_rho` ----------------------------------------------------------------------


def ran(body: str, budget: str = "epsilon 1, delta 1e-6", protecting: str = "rows") -> Result:
    rows = {"who": [f"p{i % 50}" for i in range(200)], "a": [float(i % 2) for i in range(200)]}
    session = Session()
    session.bind("data", rows)
    session.bind("others", {name: column[:100] for name, column in rows.items()})
    declared = f"described by {{who: text, a: 0..1}} protecting {protecting} budget {budget}"
    start = f"""use selection
private t = bound("data") {declared}
private u = bound("others") {declared}
"""
    return session.attempt(Source("in_rho.jst", start + body))


TWICE = """def twice(d):
    cells = laplace(histogram(d, a)) with 1/2
    return laplace(size(d))
"""


@pytest.mark.parametrize("counted", ["", " counted by basic"])
def test_what_is_counted_in_rho_is_charged_once(counted: str) -> None:
    program = TWICE + "n = in_rho(t, twice) with epsilon 0.5 delta 5e-7\nrelease s = spent(t)"
    result = ran(program, f"epsilon 1, delta 1e-6{counted}")
    if counted:
        assert result["s"] == {"epsilon": 0.5, "delta": 5e-7}
    else:  # of which zCDP says less
        assert 0.48 < result["s"]["epsilon"] < 0.49 and result["s"]["delta"] == 0
    first, *inside = [e.fields for e in result.events if e.kind == "measure"]
    assert (first["epsilon"], first["delta"]) == (0.5, 5e-7) and [f["prepaid"] for f in inside] == pytest.approx(
        [0.5, 0.5]
    )
    rho = rho_of(0.5, 5e-7 if counted else 5e-7 / 3 * (1 - 2.0**-40))
    noise = sum(f["sensitivity"] ** 2 / (2 * f["scale"] ** 2) for f in inside)
    assert noise <= rho * (1 + 1e-9) and noise > 0.999 * rho


def test_other_units_call_the_function_as_it_is() -> None:
    assert ran(TWICE + "n = in_rho(t, twice) with epsilon 0.5\nrelease s = spent(t)")["s"]["epsilon"] == 0.5
    assert ran(TWICE + "n = in_rho(t, twice) with rho 0.5\nrelease s = spent(t)", "rho 1")["s"] == 0.5
    exact = ran(TWICE + "old = table([{a: 1}, {a: 0}])\nrelease n = in_rho(old, twice)\nrelease s = spent(t)")
    assert exact["n"] == 2 and exact["s"]["epsilon"] == 0


@pytest.mark.parametrize(
    ("inside", "kind"),
    [
        ("laplace(size(d)) with rho 0.0001", "TypeError"),
        ("[laplace(size(d)) with 3/4, laplace(size(d)) with 3/4]", "BudgetExceeded"),
        ("laplace(size(u))", "TypeError"),
        ("laplace(size(d)) with epsilon 0.1", "TypeError"),
        ("laplace(size(d)) with epsilon 0.1 delta 1e-7", "TypeError"),
    ],
)
def test_what_rho_does_not_cover_is_refused_inside(inside: str, kind: str) -> None:
    """And what was paid is paid; nothing else is, also after it."""
    result = ran(f"def f(d): return {inside}\nn = in_rho(t, f) with epsilon 0.5 delta 1e-7")
    assert [d.kind for d in result.diagnostics] == [kind]
    assert sum(e.kind == "measure" and "prepaid" not in e.fields for e in result.events) <= 1


def test_after_it_amounts_are_those_of_the_budget_again() -> None:
    result = ran(
        TWICE
        + """
with epsilon 0.5 delta 5e-7 {
    n = in_rho(t, twice) with 1/2
    m = laplace(size(t)) with epsilon 0.25 via laplace
}
release s = spent(t)
"""
    )
    assert result.ok and result["s"] == {"epsilon": 0.5, "delta": 2.5e-7}
    late = ran(TWICE + "n = in_rho(t, twice) with epsilon 0.5 delta 1e-7\nm = laplace(size(t)) with rho 0.001")
    assert [d.kind for d in late.diagnostics] == ["TypeError"]


def test_agents_are_charged_once_too() -> None:
    agent = "small = limited(t, 0.3)\n"
    result = ran(agent + TWICE + "n = in_rho(small, twice) with epsilon 0.25 delta 1e-7\nrelease l = left(small)")
    assert result.ok and result["l"]["epsilon"] == pytest.approx(0.05)
    over = ran(agent + TWICE + "n = in_rho(small, twice) with epsilon 0.4 delta 1e-7")
    assert [d.kind for d in over.diagnostics] == ["BudgetExceeded"]
