"""Planning figures, against dp-accounting 0.6.0 (RDP and PLD accountants) where it has them, and by their inverses.

The PLD figures below were printed once by that library's accountants with their default discretisation (1e-4), which
rounds up; the closed forms here lie within 1e-3 of them and, for Gaussian noise, within 1e-6.
"""

import math

import pytest

from jostle.accounting import composition as accounting
from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.tools.session import Session

GAUSSIAN = [  # sigma, times, delta, dp-accounting's RDP ε, its PLD ε
    (5.0, 100, 1e-6, 11.68862679916635, 10.997151218387838),
    (1.0, 1, 1e-5, 4.728507067217623, 4.37717810002493),
    (20.0, 1000, 1e-8, 10.19607253667372, 9.697845197366556),
    (0.5, 10, 1e-4, 45.51228554916197, 42.73692897889057),
]


@pytest.mark.parametrize(("sigma", "times", "delta", "rdp", "pld"), GAUSSIAN)
def test_gaussian_composition_equals_dp_accounting(
    sigma: float, times: int, delta: float, rdp: float, pld: float
) -> None:
    found = accounting.of_gaussian(sigma, times, delta)
    assert found["rdp"] == pytest.approx(rdp, abs=1e-9)
    assert found["exact"] == pytest.approx(pld, rel=1e-6)
    assert (
        found["exact"] <= found["zcdp"] <= found["rdp"] * (1 + 1e-12)
    )  # the order is free in one, on a grid in the other
    assert found["advanced"] <= found["linear"]


def test_the_exact_curve_is_the_inverse_of_its_closed_form() -> None:
    for mu, delta in [(0.1, 1e-5), (1.0, 1e-9), (4.0, 1e-3), (30.0, 1e-6)]:
        epsilon = accounting.exact_gaussian(mu, delta)
        first = math.erfc((epsilon / mu - mu / 2) / math.sqrt(2)) / 2
        second = math.exp(epsilon) * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2 if epsilon < 500 else 0.0
        if epsilon < 500:
            assert first - second == pytest.approx(delta, rel=1e-6)


def test_pure_composition_is_randomised_responses_own() -> None:
    """k-fold randomised response, its privacy loss enumerated, attains the bound and nothing smaller does."""
    epsilon, times, delta = 0.5, 8, 1e-3
    total = accounting.exact_pure(epsilon, times, delta)
    p = math.exp(epsilon) / (1 + math.exp(epsilon))

    def lost(at: float) -> float:
        return sum(
            math.comb(times, j)
            * max(0.0, p ** (times - j) * (1 - p) ** j - math.exp(at) * p**j * (1 - p) ** (times - j))
            for j in range(times + 1)
        )

    assert lost(total) == pytest.approx(delta, rel=1e-6) and lost(total - 1e-3) > delta


@pytest.mark.parametrize(("epsilon", "times", "delta"), [(0.1, 100, 1e-6), (1.0, 10, 1e-5), (0.01, 2000, 1e-8)])
def test_every_way_is_an_upper_bound_on_the_exact_one(epsilon: float, times: int, delta: float) -> None:
    found = accounting.of_pure(epsilon, times, delta)
    assert all(found["exact"] <= found[way] + 1e-9 for way in accounting.WAYS)
    assert found["linear"] == pytest.approx(times * epsilon)


def test_rdp_of_randomised_response_tends_to_its_ends() -> None:
    assert accounting.rdp_of_pure(1.0, 1 + 1e-6) == pytest.approx(math.tanh(0.5), rel=1e-3)
    assert accounting.rdp_of_pure(1.0, 1e6) == pytest.approx(1.0, rel=1e-3)


def test_in_the_language() -> None:
    program = """
found = accounting(sigma = 5, times = 100, delta = 1e-6)
assert abs(found.exact - 10.997151) < 0.00001 and found.zcdp < found.linear
release found
"""
    assert Session().attempt(Source("a.jst", program)).ok
    wrong = Session().attempt(Source("b.jst", "x = accounting(times = 3)\n"))
    assert wrong.diagnostics[0].kind == "TypeError"


def test_what_is_no_plan_is_refused() -> None:
    for bad in [(0.0, 1, 1e-6), (1.0, 0, 1e-6), (1.0, 1, 0.0), (1.0, 1, 1.5), (math.nan, 1, 1e-6)]:
        with pytest.raises(Refusal):
            accounting.of_gaussian(*bad)
