"""Budgets with a delta against programs that choose by what they saw: exact losses; broken filters are convicted."""

from __future__ import annotations

import math

import pytest
from adaptive_adversary import Move, gaussian, lone_key, lost, lost_under, randomised_response
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
    stability_price,
    used_delta,
)

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
