"""What a check before the run does not know, it takes for what may charge anything: the bound never fails open."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from jostle.check.costs import Cost
from jostle.language.builtins import BUILTINS
from jostle.language.facts import Effect, Reads
from jostle.source import Source
from jostle.tools.session import Session

TWO = "".join(
    f'private {name} = table("{name}.csv") described by {{sex: {{"f", "m"}}, age: 0..9}} protecting rows '
    "budget epsilon 1\n"
    for name in ("mine", "other")
)
MEASURING = [row for row in BUILTINS.values() if row.effect is Effect.MEASURES]
CALLS = {
    "exp_mech": "exp_mech([1, 2], [size(cube), size(cube)], epsilon = 0.4)",
    "noisy_max": "noisy_max([size(cube), size(cube)], epsilon = 0.4)",
    "prepaid": "prepaid(rows, epsilon = 0.4)",
    "noisy_moments": "noisy_moments(rows, epsilon = 0.4)",
    "noisy_sum": 'noisy_sum(rows, "coordinates", epsilon = 0.4)',
    "noisy_samples": "noisy_samples([cube], epsilon = 0.4, delta = 1e-7)",
    "perturbed_optimum": "perturbed_optimum([cube], 1, 100, epsilon = 0.4, delta = 1e-7)",
}


def costs(program: str) -> dict[str, Cost]:
    return {cost.name: cost for cost in Session().costs(Source("p.jst", TWO + program))}


def measuring(name: str) -> str:
    call = CALLS.get(name, f"{name}(cube, epsilon = 0.4)")
    return f"cube = histogram(mine, sex)\nrows = vectors(mine, age)\nx = {call}\n"


@pytest.mark.parametrize("row", MEASURING, ids=lambda row: row.name)
def test_a_measurement_charges_its_source_alone(row: object) -> None:
    found = costs(measuring(row.name))  # type: ignore[attr-defined]
    assert found["mine"].bound == 4 * 10**11 and found["other"].bound == 0


@pytest.mark.parametrize("row", MEASURING, ids=lambda row: row.name)
def test_a_measurement_that_is_struck_from_the_table_may_charge_anything(
    row: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that a session knows and the table does not: nothing may be certified."""
    name = row.name  # type: ignore[attr-defined]
    known = dict(BUILTINS)
    monkeypatch.delitem(BUILTINS, name)
    monkeypatch.setattr("jostle.tools.session.BUILTINS", known)
    found = costs(measuring(name))
    assert found["mine"].bound == found["other"].bound == float("inf")


SCORED = {
    "correct_count": 'correct_count(mine, m, "sex")',
    "entropy": "entropy(mine, age, sex, most = 9)",
    "size": "size(mine)",
    "distance": "distance(cube, [1, 2])",
}


@pytest.mark.parametrize("name", SCORED)
def test_a_score_is_paid_by_the_source_it_is_of(name: str) -> None:
    found = costs(f"m = 1\ncube = histogram(mine, sex)\nx = laplace({SCORED[name]}, epsilon = 0.2)\n")
    assert str(found["mine"]) == "exactly epsilon 0.2 of 1" and str(found["other"]) == "nothing of 1"


RELEASED = {
    "accuracy": 'accuracy(laplace(size(histogram(mine, sex)), epsilon = 0.2), simulated_tables(1)[0].test, "class")',
    "simulated_tables": "[t.database for t in simulated_tables(2)]",
    "whole": "whole(Option (data) { return laplace(size(data.cube)) }, [{cube: counts([1, 2])}])",
}


@pytest.mark.parametrize("name", RELEASED)
def test_what_is_released_charges_nothing_more(name: str) -> None:
    spent = "exactly epsilon 0.4 of 1" if name == "accuracy" else "exactly epsilon 0.2 of 1"
    found = costs(f"x = {RELEASED[name]}\ny = [laplace(size(histogram(mine, sex)), epsilon = 0.2)]\nz = len([x, y])\n")
    assert str(found["mine"]) == spent and str(found["other"]) == "nothing of 1"


OPEN = {
    "a measurement by the name of its parameter": "x = laplace(value = histogram(mine, sex), epsilon = 0.4)",
    "what orders a list": "x = sorted([1, 2], lambda i: laplace(size(histogram(mine, sex)), epsilon = 0.2))",
    "what orders a list, by name": (
        "x = sorted([1, 2], by = lambda i: laplace(size(histogram(mine, sex)), epsilon = 0.2))"
    ),
    "the words of an assertion": (
        "n = laplace(size(mine), epsilon = 0.1)\nassert n > 0, str(laplace(size(mine), epsilon = 0.3))"
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_the_bound_holds(name: str) -> None:
    found = costs(OPEN[name] + "\n")
    assert found["mine"].bound == 4 * 10**11 and found["other"].bound == 0


def test_a_module_that_is_used_in_an_allotment_binds_its_names() -> None:
    """After an allotment that is too long to follow, any name that it binds may be anything."""
    program = (
        "def noisyCount(t, e): return 1\n"
        "with epsilon 0.1 {\n    use graphical\n    for i in 1..2000 { for j in 1..2000: x = laplace(size(mine)) }\n}\n"
    )
    assert costs(program)["mine"].bound >= 10**11


def test_every_form_of_the_language_is_run() -> None:
    import typing

    from jostle.run.interpreter import _EXPRESSIONS
    from jostle.run.statements import STATEMENTS
    from jostle.syntax import nodes as n

    def names(kinds: Iterable[type]) -> set[str]:
        return {kind.__name__ for kind in kinds}

    inside = {n.Star, n.Distinct}  # arguments of aggregates
    assert names(STATEMENTS) == names(typing.get_args(n.Stmt)) == names(n.Statement.__subclasses__())
    assert names({*_EXPRESSIONS, *inside}) == names(typing.get_args(n.Expr)) == names(n.Expression.__subclasses__())


def test_public_functions_refuse_handles_before_the_run() -> None:
    refusing = [row.name for row in BUILTINS.values() if row.reads is Reads.PUBLIC and row.place("value") == 0]
    assert len(refusing) > 10
    for name in refusing:
        needed = [one for one in BUILTINS[name].parameters if one.default is None and one.kind == ""]
        args = ["mine", *('"a"' if one.takes == "text" else "1" for one in needed[1:])]
        found = Session().check(Source("p.jst", f"{TWO}x = {name}({', '.join(args)})\n"))
        assert [d.kind for d in found] == ["PrivateValue"], name
