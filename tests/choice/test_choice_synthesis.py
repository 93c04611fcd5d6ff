"""Synthesis of `predict`: formulas that are known come back, and what is right already stays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from choice_fakes import CROSSING, FakeBench

from jostle import Refusal
from jostle.choice.formula_fits import (
    ABOVE,
    FEATURE,
    NUMBER,
    Expression,
    Formula,
    Pool,
    bounded,
    front,
    pool_of,
    range_of,
)
from jostle.choice.improvement import Improvement, block, improve
from jostle.choice.models import tree
from jostle.choice.training import train
from jostle.source import Source
from jostle.tools.session import Session

ROWS = 120
COLUMNS = {name: np.random.default_rng(k).uniform(0.05, 1, ROWS) for k, name in enumerate(("u", "s"))}
RANGES = {name: range_of(values) for name, values in COLUMNS.items()}
COLUMNS = {name: values.clip(*RANGES[name]) for name, values in COLUMNS.items()}


@pytest.fixture(scope="module")
def pool() -> Pool:
    return pool_of(COLUMNS, RANGES, 5)


def found(pool: Pool, target: Any) -> list[Formula]:
    return list(front(pool, COLUMNS, target, np.ones(ROWS, dtype=bool), RANGES).values())


@pytest.mark.parametrize(
    ("truth", "complexity"),
    [
        (lambda u, s: u * (1 - s), 5),
        (lambda u, s: 0.9 - s**1.5, 4),
        (lambda u, s: 2 - 3 * s / u, 3),
        (lambda u, s: 7 + 2 * np.log(u + 0.37), 4),
        (lambda u, s: 3 * np.sqrt(u) - 5 * u * s, 6),
        (lambda u, s: 1 + 4 * np.minimum(u, s), 3),
    ],
)
def test_a_formula_that_is_known_comes_back(pool: Pool, truth: Callable[..., Any], complexity: int) -> None:
    target = truth(COLUMNS["u"], COLUMNS["s"])
    last = found(pool, target)[-1]
    assert last.complexity == complexity
    assert np.abs(last.values(COLUMNS) - target).max() < 1e-4 * np.abs(target).max()


def test_a_threshold_comes_back(pool: Pool) -> None:
    cut = float(np.sort(COLUMNS["u"])[59] + np.sort(COLUMNS["u"])[60]) / 2  # the middle, which is among those tried
    target = np.where(COLUMNS["u"] > cut, 5.0, 2.0)
    *_, last = found(pool, target)
    (term,) = last.terms
    assert (last.complexity, last.weights, last.intercept) == (3, (3.0,), 2.0)
    assert term.text() == f"1 if u > {cut:.6g} else 0"


def test_formulas_rise_in_complexity_and_fall_in_error(pool: Pool) -> None:
    target = np.sin(9 * COLUMNS["u"]) + COLUMNS["s"]
    formulas = found(pool, target)
    errors = [((f.values(COLUMNS) - target) ** 2).mean() for f in formulas]
    assert [f.complexity for f in formulas] == sorted({f.complexity for f in formulas})
    assert errors == sorted(errors, reverse=True) and errors[-1] < errors[0] / 2


def test_an_expression_stays_within_its_bounds(pool: Pool) -> None:
    """Also where features are not those of training, as long as they are within their ranges."""
    random = np.random.default_rng(7)
    columns = {name: np.append(random.uniform(*bounds, 50), bounds) for name, bounds in RANGES.items()}
    for expression in pool.expressions:
        low, high = expression.bounds(RANGES) or (math.nan, math.nan)
        values = expression.values(columns)
        slack = 1e-12 * max(abs(low), abs(high))
        assert np.isfinite(values).all() and low - slack <= values.min() and values.max() <= high + slack


@pytest.mark.parametrize(
    ("op", "args"), [("/", ((1, 2), (-1, 1))), ("/", ((1, 2), (0, 0))), ("log", ((0, 1),)), ("sqrt", ((-1, 4),)),
                     ("*", ((1e60, 1e60), (1, 1e60)))]
)  # fmt: skip
def test_what_may_have_no_value_has_no_bounds(op: str, args: tuple[tuple[float, float], ...]) -> None:
    assert bounded(op, *args) is None


def test_no_two_expressions_are_one_up_to_a_factor_and_a_summand(pool: Pool) -> None:
    texts = [e.text() for e in pool.expressions]
    assert "u * s" in texts and len(texts) == len(set(texts))
    correlations = np.corrcoef(pool.values[:150])
    assert (np.abs(correlations - np.eye(150)) < 1 - 1e-9).all()


def test_the_text_says_what_the_formula_says(pool: Pool) -> None:
    """To 1e-9, for features inside and outside of the ranges; every operator is met."""
    u, s = (Expression(FEATURE, name=name) for name in ("u", "s"))
    less = Expression("-", (u, Expression("-", (s, Expression(NUMBER, number=-0.25)))))
    ratio = Expression("/", (u, Expression("*", (s, Expression("max", (s, u))))))
    step = Expression("log", (Expression("+", (s, Expression(ABOVE, (u,), 0.4))),))
    root = Expression("sqrt", (Expression("min", (s, u)),))
    made = [Formula(0.5, (-2.0, 3.0), (less, ratio), RANGES), Formula(0.5, (-2.0, 3.0), (step, root), RANGES)]
    target = np.sin(9 * COLUMNS["u"]) + COLUMNS["u"] ** 3 / COLUMNS["s"]
    formulas = [*made, *found(pool, target)[1::3]]
    columns = {name: np.array([*values[:6], -3.0, 50.0]) for name, values in COLUMNS.items()}
    shown = " ".join(formula.text() for formula in formulas)
    assert all(word in shown for word in (" - ", " * ", " / ", "log(", "sqrt(", "max(", "min(", " if "))
    asked = "".join(f"def f{k}(F) {block(f, k % 2 == 1)}\n" for k, f in enumerate(formulas))
    asked += f"rows = [{{u: u, s: s}} for u, s in zip({columns['u'].tolist()}, {columns['s'].tolist()})]\n"
    asked += "".join(f"release r{k} = [f{k}(row) for row in rows]\n" for k in range(len(formulas)))
    result = Session().run(Source("p.jst", asked))
    for k, formula in enumerate(formulas):
        values = formula.values(columns)
        np.testing.assert_allclose(result[f"r{k}"], -np.exp(values) if k % 2 else values, rtol=1e-9, atol=1e-9)


# The whole ------------------------------------------------------------------------------------------

SIZES = tuple(float(round(10 ** (1 + 4 * k / 7))) for k in range(8))


def improvement(bench: FakeBench) -> Improvement:
    return improve(train(bench, 1.0, 0.1), tree(), bench.predicts, most=4)


def test_wrong_valuations_are_replaced() -> None:
    """Both are valued the wrong way round, which is what the formulas mend."""
    own = {"Small": lambda f: f["size"], "Large": lambda f: -f["size"]}
    got = improvement(FakeBench(SIZES, CROSSING, own=own))
    assert not got.stays and all(one.better and one.before == "predict" for one in got.options)
    assert math.exp(got.regrets.before) > 2.5 and math.exp(got.regrets.after) < 1.4
    assert got.regrets.gain > 2 * got.regrets.error
    for one in got.options:
        assert one.explained < 0 < one.proposed.explained
        assert one.proposed in one.formulas and one.proposed.formula.features == ["size"]


def test_a_valuation_that_is_right_stays() -> None:
    bench = FakeBench(SIZES, CROSSING, own={
        "Small": lambda f: -1.0 if f["size"] < 300 else -5.0, "Large": lambda f: -5.0 if f["size"] < 300 else -1.0,
    })  # fmt: skip
    got = improvement(bench)
    assert got.stays == "no formula explains more beyond one standard error"
    assert not any(one.better for one in got.options) and all(one.explained > 0.9 for one in got.options)
    assert got.regrets.before == got.regrets.after and got.regrets.gain == 0


def test_formulas_that_explain_more_and_choose_worse_are_not_taken() -> None:
    """Valued a thousand times too low, and always in the right order, which a line in the size does not tell."""
    own = {name: lambda f, error=error: -1000 * error(f["size"], 1.0) for name, error in CROSSING.items()}
    bench = FakeBench(SIZES, CROSSING, own=own)
    got = improve(train(bench, 1.0, 0.1), tree(), bench.predicts, most=1)
    assert got.regrets.gain < -got.regrets.error
    assert got.stays == "the formulas explain more, and choose worse"
    assert not any(one.better for one in got.options)


def test_utilities_that_are_no_errors_are_predicted_as_they_are() -> None:
    """2 − error, which a formula says without an exponential; the model is what it has to beat."""
    smooth = {"Falling": lambda size, epsilon: 4 - math.log10(size), "Even": lambda size, epsilon: 1.5}
    got = improvement(FakeBench(SIZES, smooth, positive=True, jitter=0.0))
    falling, even = got.options
    assert not got.logarithmic and falling.before == str(tree()) and falling.better
    assert falling.model == falling.explained < 0.9 < falling.proposed.explained
    assert even.proposed.formula.complexity == 0 and not even.better and even.explained == 1


def test_the_same_runs_give_the_same_formulas() -> None:
    table = train(FakeBench(SIZES[::2], CROSSING), 1.0, 0.1)
    none = (None, None)
    assert improve(table, tree(), none, most=3) == improve(table, tree(), none, most=3)


def test_what_cannot_be_judged_is_refused() -> None:
    def kind(bench: FakeBench) -> str:
        with pytest.raises(Refusal) as refusal:
            improvement(bench)
        return refusal.value.first.message

    assert "two or more" in kind(FakeBench((10.0,), CROSSING))
    assert "looks at nothing" in kind(FakeBench((10.0, 1000.0), CROSSING, private_size=False))
    flat = FakeBench((10.0, 1000.0), CROSSING, private_size=False, public={"same": lambda size: 1.0})
    assert "no feature varies" in kind(flat)
