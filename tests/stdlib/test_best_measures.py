"""Every advisor answers under each kind of budget, and stays within what it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.tools.session import Session

PEOPLE = Path(__file__).parents[2] / "programs" / "data" / "people.csv"
SCHEMA = '{age: 16..79, sex: {"Female", "Male"}, city: {"Ames", "Bergen", "Cork", "Delft"}, hours: 0..63}'
CALLS = {
    "histogram": "best_histogram(cube, identity(cube))",
    "quantiles": 'best_quantiles(people, "age", [0.5])',
    "classifier": 'best_classifier(people, "sex")',
    "regression": 'best_regression(people, "hours")',
    "model": "best_model(pick(people, sex, city))",
    "synthetic": "best_synthetic(pick(people, sex, city), rows = 3)",
    "clusters": "best_clusters(vectors(people, age, hours), 2)",
    "mixture": "best_mixture(vectors(people, age, hours), 2)",
    "effect": 'best_effect(people, "sex", "hours", ["city"])',
}


@pytest.mark.parametrize(("budget", "amount", "unit"), [
    ("rho 5", "rho 0.1", "rho"), ("epsilon 20, delta 1e-4 counted by basic", "epsilon 1 delta 1e-6", "epsilon"),
])  # fmt: skip
def test_each_answers_in_each_measure(budget: str, amount: str, unit: str) -> None:
    session = Session()
    start = (f'use best\nprivate people = table("{PEOPLE}") described by {SCHEMA} protecting rows budget {budget}\n'
             "cube = histogram(people, sex, city)\n")  # fmt: skip
    session.execute(Source("p.jst", start))
    for call in CALLS.values():
        before = float(session.budget()["people"][unit]["spent"])
        session.execute(Source("p.jst", f"x = {call} with {amount}\n"))  # raises what is refused
        spent = float(session.budget()["people"][unit]["spent"]) - before
        assert 0 < spent <= float(amount.split()[1]) * (1 + 1e-9), call


def test_public_data_are_answered_exactly_and_cost_nothing() -> None:
    """Outside every allotment a function of the library has no limit, and a share of that is none; what is private
    pays as before."""
    session = Session()
    start = f'use best\npeople = table("{PEOPLE}") described by {SCHEMA}\ncube = histogram(people, sex, city)\n'
    calls = "".join(f"x{i} = {call}\n" for i, call in enumerate(CALLS.values()))
    assert not session.check(Source("p.jst", start + calls))
    session.execute(Source("p.jst", start + calls))
    session.bind("held", {"age": [20, 30], "sex": ["Male", "Female"]})
    text = """middle = best_quantiles(people, "age", [0.5])
exact = {{ select median(age) as a from people }}
private mine = bound("held") described by {age: 16..79, sex: {"Female", "Male"}} protecting rows budget epsilon 1
"""
    session.execute(Source("p.jst", text))
    assert session.names()["middle"][0] == pytest.approx(session.names()["exact"], abs=1)
    for call in ('best_regression(mine, "age")', "[best_model(d) for d in [mine]]"):
        with pytest.raises(Refusal, match=r"allotment|nothing pays"):
            session.execute(Source("p.jst", f"x = {call}\n"))
    assert float(session.budget()["mine"]["epsilon"]["spent"]) == 0
