"""Amounts: nothing that is no positive finite number of quanta is charged, and sums of amounts are exact."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jostle.tools.session import Result

Attempt = Callable[..., Result]

ROWS = "v\n" + "1\n" * 30
T = 'private t = table("t.csv") described by {v: 0..9} protecting rows budget epsilon 1\n'
NAN = "big = 1e999\nnan = big - big\n"

BAD = {
    "0": "BadAmount", "-0": "BadAmount", "-0.0": "BadAmount", "0 * -1": "BadAmount", "-0.1": "BadAmount",
    "nan": "BadAmount", "big": "BadAmount", "-big": "BadAmount", "1e400": "BadAmount", "10 ^ 400": "BadAmount",
    "5e-324": "BadAmount", "1e-300": "BadAmount", "9.99e-13": "BadAmount", "true": "BadAmount", '"0.1"': "BadAmount",
    "none": "BadAmount", "[0.1]": "BadAmount", "{a: 0.1}": "BadAmount", "(lambda: 0.1)": "BadAmount",
    "size(t)": "PrivateValue", "t": "PrivateValue", "[t]": "PrivateValue",
}  # fmt: skip
PLACES = {
    "a query": "x = {{{{ select count(*) from t with epsilon {} }}}}",
    "a call": "f = lambda d: {{{{ select count(*) from d }}}}\nx = f(t) with epsilon {}",
    "a block": "with epsilon {} {{ x = {{{{ select count(*) from t }}}} }}",
    "a keyword": "x = laplace(histogram(t, v), epsilon = {})",
    "a selection": "x = noisy_max([size(t)], epsilon = {})",
    "an agent": "u = limited(t, {})\nx = {{{{ select count(*) from u with epsilon 0.1 }}}}",
}


@pytest.mark.attack("amounts")
@pytest.mark.parametrize("amount", BAD)
def test_bad_amounts(attempt: Attempt, amount: str) -> None:
    for place, form in PLACES.items():
        if amount == "none" and place in ("a keyword", "a selection"):
            continue  # a default that says nothing: as if it were not given
        result = attempt(T + NAN + form.format(amount) + "\nrelease x\n", t=ROWS)
        told = (place, [(d.kind, d.message) for d in result.diagnostics])
        kind = BAD[amount]
        assert [d.kind for d in result.diagnostics][:1] == [kind], told
        assert result.values == {} and (not result.budget or result.budget["t"]["epsilon"]["spent"] == "0"), told


@pytest.mark.attack("amounts")
def test_bad_budgets(attempt: Attempt) -> None:
    for amount in ("0", "-1", "1e400", "1e-300", '"1"', "true", "10 ^ 400", "1, delta 0", "1, delta 1", "1, delta 2"):
        program = T.replace("epsilon 1", f"epsilon {amount}") + "x = {{ select count(*) from t with epsilon 0.1 }}"
        kinds = [d.kind for d in attempt(program, t=ROWS).diagnostics]
        assert kinds[:1] == ["BadAmount"], (amount, kinds)


@pytest.mark.attack("amounts")
@pytest.mark.parametrize(
    ("amount", "times", "spent"),
    [("0.1", 10, "1"), ("1 / 3", 3, "0.999999999999"), ("0.7 - 0.6", 10, "0.99999999999"),
     ("1e-12", 40, "0.00000000004"), ("1 / 7", 7, "0.999999999999"), ("0.1 + 0.2 - 0.2", 10, None)],
)  # fmt: skip
def test_sums_of_amounts_neither_gain_nor_exceed(attempt: Attempt, amount: str, times: int, spent: str | None) -> None:
    """What fits is charged to the quantum; once more of what fills the budget does not fit."""
    once = f"x = {{{{ select count(*) from t with epsilon {amount} }}}}\n"
    result = attempt(T + once * times, t=ROWS)
    assert float(result.budget["t"]["epsilon"]["spent"]) <= 1
    if spent is not None:
        assert result.ok and result.budget["t"]["epsilon"]["spent"] == spent
    if times * eval(amount) > 0.9:
        more = attempt(T + once * (times + 1), t=ROWS)
        assert [d.kind for d in more.diagnostics] == ["BudgetExceeded"]
        assert float(more.budget["t"]["epsilon"]["spent"]) <= 1


@pytest.mark.attack("amounts")
def test_an_amount_is_what_the_noise_is_made_for(arena: object) -> None:
    """A third is cut after the twelfth place, and the noise is scaled to what is left, never to the third itself."""
    from fractions import Fraction

    arena.write({"t.csv": ROWS.encode()})  # type: ignore[attr-defined]
    for amount in ("1 / 3", "0.1 + 0.2", "1e-12", "0.9999999999999", "2 / 3"):
        seen = arena.see(T + (f"x = {{{{ select count(*) from t with epsilon {amount} }}}}"))  # type: ignore[attr-defined]
        charged = Fraction(seen.result.budget["t"]["epsilon"]["spent"])
        (draw,) = seen.draws
        assert Fraction(draw.scale) * charged >= 1 - Fraction(1, 2**50)
