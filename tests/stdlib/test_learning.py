"""Losses of a program's own: their gradients in fixed point, what is refused of them, and fits by them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from jostle.kernels.arrays import Floats
from jostle.kernels.rowprograms.losses import BITS, REACH, Loss, loss_gradient
from jostle.privacy.rows.norms import GRID
from jostle.source import Source
from jostle.tools.result import Result
from jostle.tools.session import Session

TERMS = '[{name: "x", value: ""}, {name: "y", value: ""}, {name: "z", value: ""}]'
LINE = "(w[0] * row.x + w[1] * row.y + w[2])"


def line(w: Floats, x: Floats) -> float:
    return float(w[0] * x[0] + w[1] * x[1] + w[2])


def unit(w: Floats, x: Floats) -> float:
    return math.tanh(w[0] * x[0] + w[1])


LOSSES: dict[str, tuple[str, int, Callable[[Floats, Floats], float]]] = {
    "squares": (f"({LINE} - row.z)^2", 3, lambda w, x: (line(w, x) - x[2]) ** 2),
    "absolute": (f"abs({LINE} - row.z)", 3, lambda w, x: abs(line(w, x) - x[2])),
    "a quantile's": (
        f"max(0.9 * (row.z - {LINE}), -0.1 * (row.z - {LINE}))", 3,
        lambda w, x: max(0.9 * (x[2] - line(w, x)), -0.1 * (x[2] - line(w, x))),
    ),
    "logistic": (f"log(1 + exp(-row.z * ({LINE})))", 3, lambda w, x: math.log1p(math.exp(-x[2] * line(w, x)))),
    "of a share": (f"-log(1 / (1 + exp(-({LINE}))))", 3, lambda w, x: math.log1p(math.exp(-line(w, x)))),
    "cross entropy": (
        f"-row.z * log(logistic({LINE})) - (1 - row.z) * log(1 - logistic({LINE}))", 3,
        lambda w, x: math.log1p(math.exp(-line(w, x))) + (1 - x[2]) * line(w, x),
    ),
    "counts": (f"exp({LINE}) - (row.z + 1) * ({LINE})", 3, lambda w, x: math.exp(line(w, x)) - (x[2] + 1) * line(w, x)),
    "pseudo Huber": (f"sqrt(1 + ({LINE} - row.z)^2)", 3, lambda w, x: math.sqrt(1 + (line(w, x) - x[2]) ** 2)),
    "with a penalty": (
        f"({LINE} - row.z)^2 + 0.1 * w[0]^2", 3, lambda w, x: (line(w, x) - x[2]) ** 2 + 0.1 * float(w[0]) ** 2,
    ),
    "Gaussian": (
        "w[1] + (row.z - w[0] * row.x)^2 / exp(w[1])", 2,
        lambda w, x: float(w[1] + (x[2] - w[0] * x[0]) ** 2 / math.exp(w[1])),
    ),
    "softmax": (
        "log(sum([exp(w[0] * row.x), exp(w[1] * row.y), exp(w[2])])) - w[0] * row.x", 3,
        lambda w, x: math.log(math.exp(w[0] * x[0]) + math.exp(w[1] * x[1]) + math.exp(w[2])) - float(w[0] * x[0]),
    ),
    "a hidden unit": (
        "(w[2] * tanh(w[0] * row.x + w[1]) - row.z)^2", 3, lambda w, x: (float(w[2]) * unit(w, x) - float(x[2])) ** 2,
    ),
    "rectified": (f"(max(0, {LINE}) - row.z)^2", 3, lambda w, x: (max(0.0, line(w, x)) - x[2]) ** 2),
    "a power": (f"(4 + {LINE})^1.5", 3, lambda w, x: (4 + line(w, x)) ** 1.5),
    "a logarithm": (f"(log(5 + {LINE}) - row.z)^2", 3, lambda w, x: (math.log(5 + line(w, x)) - x[2]) ** 2),
    "clamped": (f"(clamp({LINE}, -0.5, 0.5) - row.z)^2", 3, lambda w, x: (min(max(line(w, x), -0.5), 0.5) - x[2]) ** 2),
    "a quotient": (f"row.z / (3 + {LINE})", 3, lambda w, x: float(x[2] / (3 + line(w, x)))),
}  # fmt: skip


def loss_in(text: str, start: Sequence[float]) -> Loss:
    program = (
        f"use learning\nterms = {TERMS}\nstart = {list(start)}\ndef loss(w, row) = {text}\n"
        "release of = loss_of([loss(at.weights, at.row) for at in loss_points(start, terms)], start, terms)\n"
    )
    loss = Session().run(Source("loss.jst", program))["of"]
    assert isinstance(loss, Loss)
    return loss


def gradient(loss: Loss, weights: Floats, rows: Floats) -> Floats:
    """(weights, rows) of the row program, in doubles."""
    function = loss_gradient(len(loss.places), loss=loss, weights=weights)
    (numbers,) = function.program(np.rint(rows[list(loss.places)] * GRID))
    return np.asarray(numbers / 2.0**BITS)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_differences(name: str) -> None:
    """Beside a kink, where rounding may fall on its other side, no row is asked."""
    text, many, exact = LOSSES[name]
    loss, random = loss_in(text, [0.0] * many), np.random.default_rng(1)
    weights, rows = random.normal(0, 0.5, many), np.rint(random.uniform(-1, 1, (3, 200)) * GRID) / GRID
    shown = gradient(loss, weights, rows)
    for at, x in enumerate(rows.T):
        steps = 1e-5 * np.eye(many)
        if (
            abs(line(np.append(weights, [0.0])[:3], x) - x[2]) < 0.01
            or abs(line(np.append(weights, [0.0])[:3], x)) < 0.01
        ):
            continue
        by_differences = [(exact(weights + h, x) - exact(weights - h, x)) / 2e-5 for h in steps]
        assert np.abs(shown[:, at] - by_differences).max() < 2e-3, (name, x)


@pytest.mark.parametrize("name", LOSSES)
def test_a_gradient_is_total(name: str) -> None:
    """Whatever the weights are: it is a program of whole numbers within its reach."""
    text, many, _ = LOSSES[name]
    loss, random = loss_in(text, [0.0] * many), np.random.default_rng(2)
    rows = np.sign(random.normal(size=(3, 50)))
    for scale in (1e-9, 1.0, 1e3, 1e9, 2.0**40):
        numbers = gradient(loss, scale * np.clip(random.normal(size=many), -1, 1), rows) * 2.0**BITS
        assert np.all(numbers == np.rint(numbers)) and np.abs(numbers).max() <= REACH


REFUSED = {
    "(row.x - w[0])^2 if row.x > 0 else w[0]": "one formula for all rows",
    "(row.x - w[0])^2 if w[0] > 0 else w[0]": "one formula for all rows",
    "floor(row.x * w[0])": "has no `floor`",
    "row.x^2": "does not depend on 1 of its 1 weights",
    "w[0]^2": "reads nothing of the row",
    '"a"': "a loss is a number",
    "row.a * w[0]": "a record has no `a`",
    "log(row.x - 3) * w[0]": "`log` has no value",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_loss_is_refused_before_a_run(text: str) -> None:
    program = (
        'use learning\nprivate t = bound("t") described by {x: 16..79} protecting rows budget epsilon 1, delta 1e-6\n'
        f"fit(t, lambda w, row: {text}, [0]) with epsilon 1 delta 1e-7\n"
    )
    session = Session()
    session.bind("t", pd.DataFrame({"x": [20, 30]}))
    faults = session.check(Source("a.jst", program))
    assert faults and REFUSED[text] in str(faults[0].message), faults


def fitted(frame: pd.DataFrame, described: str, text: str, protecting: str) -> Result:
    session = Session()
    session.bind("t", frame)
    program = (
        f'use learning\n{"private " * bool(protecting)}t = bound("t") described by {described} {protecting}\n{text}'
    )
    result = session.attempt(Source("fit.jst", program))
    assert result.ok, result.diagnostics
    return result


DATA = Path(__file__).resolve().parents[2] / "programs" / "data"
PEOPLE = '{age: 0..100, pay: 0..1000, sex: {"f", "m"}, who: integer}'
BY_SQUARES = """def off(w, row) = (row.pay - w.base - w.age * row.age - w.men * row.sex.m)^2
start = {base: 0, age: 0, men: 0}
line = fit(t, off, start%s)%s
release weights = line.weights
row = row_of(line, {age: 75, sex: "m"})
assert row.age == 0.5 and row.sex.m == 1
"""
WAYS = {
    "public": ("", "", ""),
    "samples": ("protecting rows budget epsilon 9, delta 1e-4", "", " with epsilon 8 delta 1e-5"),
    "batches under rho": ("protecting rows budget rho 4", ", batches = 10", " with rho 4"),
    "persons, batches": ("protecting who up to 2 rows budget rho 16", ", batches = 5", " with rho 16"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_squares_give_what_least_squares_do(way: str) -> None:
    """Of 20,000 rows the mean square is within 2 % of the least; the noise has a hundredth of that."""
    random, many = np.random.default_rng(3), 20_000
    age, sex = random.uniform(0, 100, many), random.choice(["f", "m"], many)
    pay = np.clip(300 + 4 * age + 100 * (sex == "m") + random.normal(0, 80, many), 0, 1000)
    frame = pd.DataFrame({"age": age.round(), "pay": pay.round(), "sex": sex, "who": np.arange(many) // 2})
    protecting, more, amount = WAYS[way]
    weights = fitted(frame, PEOPLE, BY_SQUARES % (more, amount), protecting)["weights"]
    x = np.column_stack([np.ones(many), (frame["age"] - 50) / 50, frame["sex"] == "m"]).astype(float)
    y = ((frame["pay"] - 500) / 500).to_numpy()
    least = np.mean((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2)
    assert np.mean((y - x @ [weights["base"], weights["age"], weights["men"]]) ** 2) < 1.02 * least


def test_a_network_tells_what_no_line_does() -> None:
    """Of two numbers with the same sign, or not: a line is right for half of them."""
    random, many = np.random.default_rng(4), 20_000
    frame = pd.DataFrame(random.uniform(-1, 1, (many, 2)), columns=["a", "b"])
    frame["alike"] = np.where(frame["a"] * frame["b"] > 0, "yes", "no")
    text = """net = network_classifier(t, "alike", hidden = 6, steps = 400, pace = 1) with epsilon 8 delta 1e-5
release shares = [network_shares(net, {a: a / 10, b: b / 10}).yes for a in -9..9 for b in -9..9 if a * b != 0]
"""
    described = '{a: -1.0..1.0, b: -1.0..1.0, alike: {"no", "yes"}}'
    result = fitted(frame, described, text, "protecting rows budget epsilon 8, delta 1e-4")
    alike = [a * b > 0 for a in range(-9, 10) for b in range(-9, 10) if a * b]
    right = np.mean([(share > 0.5) == same for share, same in zip(result["shares"], alike, strict=True)])
    assert right > 0.85


def test_listed_numbers_and_truths_have_their_names_in_rows() -> None:
    frame = pd.DataFrame({"a": np.arange(4000) % 5, "old": np.arange(4000) % 5 > 2, "kind": np.arange(4000) % 2})
    text = """net = network_classifier(t, "kind", hidden = 2, steps = 5) with epsilon 8 delta 1e-5
release shares = network_shares(net, {a: 3, old: true})
off = lambda w, row: (row.a - w[0] * row.kind["1"] - w[1] * row.old["true"])^2
release line = fit(t, off, [0, 0], steps = 5) with epsilon 8 delta 1e-5
"""
    described = "{a: 0..4, old: {true, false}, kind: {0, 1}}"
    result = fitted(frame, described, text, "protecting rows budget epsilon 16, delta 1e-4")
    assert list(result["shares"]) == ["0", "1"] and sum(result["shares"].values()) == pytest.approx(1)


CHARGED = """use learning
private t = table("data/people.csv") described by {age: 16..79, hours: 0..63}
    protecting rows budget epsilon 2, delta 1e-5 counted by basic
f = fit(t, lambda w, row: (row.hours - w * row.age)^2, 0, steps = 20) with epsilon 1 delta 1e-6
assert spent(t).epsilon == 1
"""


def test_a_fit_charges_what_check_says() -> None:
    session, source = Session(), Source(str(DATA.parent / "fit.jst"), CHARGED)
    (cost,) = session.costs(source)
    assert str(cost).startswith("exactly epsilon 1 of 2") and cost.delta == 1_950_000  # 0.95 and 1 millionth
    assert session.attempt(source).ok


FAR_LOSSES = {
    "squares": "(row.hours - w.b - w.a * row.age)^2", "exp": "exp(w.a * row.age + w.b) - row.hours * w.a",
    "products": "(w.a * w.b * row.age + 1)^4 * exp(w.a)", "a share": "1 / (w.b + w.a * row.age + 3)",
}  # fmt: skip


@pytest.mark.parametrize("loss", FAR_LOSSES)
@pytest.mark.parametrize("more", ["pace = 1e8", "pace = 1e8, batches = 3", "bound = 1e-8", "bound = 9e8, batches = 3"])
@pytest.mark.parametrize("start", ["{a: 0.1, b: 0.2}", "{a: 1e6, b: -1e6}"])
def test_what_was_paid_for_has_weights_however_far_steps_go(loss: str, more: str, start: str) -> None:
    """Numbers that no row program takes ended a training in its middle, with all of its amount charged."""
    program = CHARGED.replace(
        "(row.hours - w * row.age)^2, 0, steps = 20", f"{FAR_LOSSES[loss]}, {start}, {more}, steps = 9"
    )
    result = Session().attempt(Source(str(DATA.parent / "fit.jst"), program + "release w = f.weights\n"))
    assert result.ok and np.isfinite(list(result["w"].values())).all(), result.diagnostics


@pytest.mark.parametrize(
    "wrong", ["0, bound = 1e300", "0, bound = 0", "0, bound = none", "0, pace = -1", "0, pace = 1e300", '0, pace = "a"',
              "1e300", "1e7", "0, batches = 2, rate = 0.5", "0, rate = 2", "0, steps = 1"],
)  # fmt: skip
def test_what_no_fit_takes_is_refused_before_it_is_paid_for(wrong: str) -> None:
    result = Session().attempt(Source(str(DATA.parent / "fit.jst"), CHARGED.replace("0, steps = 20", wrong)))
    assert not result.ok and all(one["epsilon"]["spent"] == "0" for one in result.budget.values())


def test_steps_are_as_long_for_each_listed_value() -> None:
    """The first of them had no weights of its own, so that the order of a list said how far steps had come."""
    rng = np.random.default_rng(4)
    kinds = rng.integers(0, 3, 300)
    c = np.where(rng.random(300) < np.array([0.1, 0.5, 0.9])[kinds], "q", "p")
    session, shares = Session(), []
    session.bind("t", pd.DataFrame({"c": c, "kind": np.array(list("xyz"))[kinds]}))
    for listed in ('"p", "q"', '"q", "p"'):
        result = session.attempt(Source("c.jst", f"""use statistics
private t = bound("t") described by {{c: {{{listed}}}, kind: {{"x", "y", "z"}}}} protecting rows budget rho 1e10
fit = softmax_regression(t, "kind", ["c"], steps = 10, batches = 1) with rho 1e9
release shares = [class_shares(fit, {{c: one}}) for one in ["p", "q"]]
"""))  # fmt: skip
        assert result.ok, result.diagnostics
        shares.append(np.array(result["shares"]))
    assert shares[0] == pytest.approx(shares[1], abs=1e-3)
