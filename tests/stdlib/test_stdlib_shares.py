"""The library divides amounts by shares, which have no unit: every option runs under ρ, and under ε and δ."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from jostle.source import Source
from jostle.tools.session import Result, Session

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("histograms", "hierarchies", "grids", "clusters", "cuts")
OPTIONS = [
    name for module in MODULES
    for name in re.findall(r"(?m)^def (\w+)_cells\(db, queries", (ROOT / "stdlib" / f"{module}.jst").read_text())
]  # fmt: skip
USES = "".join(f"use {module}\n" for module in (*MODULES, "features"))
BUDGETS = {"rho 40": "rho 20", "epsilon 40, delta 1e-5": "epsilon 30 delta 1e-6"}
TRUTH = np.random.default_rng(0).integers(0, 500, 64)


def run(program: str, budget: str, cells: np.ndarray) -> Result:
    session = Session()
    session.bind("c", cells)
    declared = f'private c = bound("c") protecting rows budget {budget}\nq = ranges(c, 50)\n'
    return session.attempt(Source("p.jst", USES + declared + program))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_runs_under_every_budget(name: str, budget: str) -> None:
    """With little noise its answers are near, and it spends its allotment and no more."""
    for cells in (TRUTH, TRUTH.reshape(8, 8)):
        program = f"release a = {name}(c, q) with {BUDGETS[budget]}\nrelease now = spent(c)\n"
        program += f"release q = exact(q, counts({cells.tolist()}))"
        result = run(program, budget, cells)
        assert result.ok, result.diagnostics
        if budget.startswith("rho"):
            assert 19.99 < result["now"] <= 20
        else:
            assert 0 < result["now"]["epsilon"] <= 30 and result["now"]["delta"] <= 1e-6
        if name not in ("uniform", "mwem"):
            exact = np.asarray(result["q"])
            assert np.abs(np.asarray(result["a"]) - exact).mean() < 0.1 * exact.mean()


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ["rows", "strength", "occupied", "unevenness", "height"])
def test_a_feature_runs_under_every_budget(name: str, budget: str) -> None:
    result = run(f"release f = {name}({{database: c, queries: q}}) with {BUDGETS[budget]}", budget, TRUTH)
    assert result.ok, result.diagnostics
    assert np.isfinite(result["f"])


def test_no_option_names_a_unit() -> None:
    assert not {
        f"{path.stem}: {line.strip()}"
        for path in (ROOT / "stdlib").glob("*.jst") if path.stem in (*MODULES, "features", "classifiers", "classify")
        for line in path.read_text().replace("with epsilon (whole)", "").splitlines()  # all but the delta
        if re.search(r"^[^#]*\b(with epsilon|epsilon =|= epsilon)", line)
    }  # fmt: skip


def test_as_epsilon_is_what_is_left_and_in_rho_the_epsilon_of_a_pure_mechanism() -> None:
    program = "with epsilon 2 { n = laplace(size(c)) with 1/4\n e = as_epsilon() }\nrelease x = e"
    assert run(program.replace("{ n", "{\n n").replace(" }", "\n}"), "epsilon 4", TRUTH)["x"] == 1.5
    within = "with rho 0.5 {\n e = as_epsilon()\n}\nrelease x = e"
    value = run(within, "rho 1", TRUTH)["x"]
    assert value * np.tanh(value / 2) == pytest.approx(0.5)
    quarter = run(within.replace("()", "(1 / 4)"), "rho 1", TRUTH)["x"]
    assert quarter * np.tanh(quarter / 2) == pytest.approx(0.125)
    outside = run("release x = as_epsilon()", "rho 1", TRUTH)
    assert not outside.ok and outside.diagnostics[0].kind == "NoEpsilon"


def test_a_classifier_leaves_a_delta_unspent() -> None:
    program = (
        'use classify\nprivate t = bound("t") described by {a: 0..4, c: {"u", "v"}} protecting rows '
        'budget epsilon 2, delta 1e-4\nm = adaptive_classifier(t, "c") with epsilon 1 delta 1e-6\ns = spent(t)\n'
    )
    session = Session()
    session.bind("t", {"a": np.arange(400) % 5, "c": np.array(["u", "v"])[np.arange(400) % 2]})
    session.execute(Source("p.jst", program))
    assert session.names()["s"]["delta"] == 0 and session.names()["s"]["epsilon"] <= 1


NINE = "abcdefghi"


def learned(rows: int, unit: str, amount: str) -> Session:
    """`m`, a classifier of nine classes by three numbers."""
    rng = np.random.default_rng(rows)
    labels = rng.integers(0, 9, rows)
    numbers = {f"x{i}": np.clip(labels // 3**(i % 2) % 3 * 4 + rng.integers(0, 3, rows), 0, 9) for i in range(3)}
    session = Session()
    session.bind("t", numbers | {"who": np.arange(rows) % 5000 + 1, "c": np.array(list(NINE))[labels]})
    described = ", ".join([*(f"x{i}: 0..9" for i in range(3)), f"c: {{{', '.join(map(repr, NINE))}}}, who: 1..5000"])
    session.execute(Source("p.jst", (
        f'use classify\nprivate t = bound("t") described by {{{described}}} protecting {unit}\n'
        f'd = pick(t, x0, x1, x2, c)\nm = adaptive_classifier(d, "c") with {amount}\ns = spent(t)\n'
    ).replace("'", '"')))  # fmt: skip
    return session


@pytest.mark.parametrize(("unit", "fits"), [
    ("rows", True), ("who up to 1 row", True), ("who up to 2 rows", False), ("rows, public size", False),
])  # fmt: skip
def test_an_amount_of_rho_has_softmax_regression_by_batches_where_rows_are_many(unit: str, fits: bool) -> None:
    session = learned(1500, f"{unit} budget rho 5", "rho 4")
    assert 3.9 < session.names()["s"] <= 4
    assert ("softmax_gradient" in {event.name for event in session.events}) == fits


def test_a_large_rho_is_taken_for_no_epsilon() -> None:
    session = Session(allow=["large-epsilon"])
    session.bind("t", {"a": np.arange(60) % 3, "c": np.arange(60) % 2})
    session.execute(Source("p.jst", (
        'use classify\nprivate t = bound("t") described by {a: 0..2, c: 0..1} protecting rows budget rho 10000\n'
        'm = adaptive_classifier(t, "c") with rho 5000\n'
    )))  # fmt: skip
    assert session.names()["m"].classes == (0, 1)


def test_has_delta_is_of_the_amount() -> None:
    asked = "release x = has_delta() with {}"
    for amount, budget, has in (
        ("epsilon 1", "epsilon 2, delta 1e-5", False), ("epsilon 1 delta 1e-6", "epsilon 2, delta 1e-5", True),
        ("rho 1", "rho 2", False),
    ):  # fmt: skip
        assert run(asked.format(amount), budget, TRUTH)["x"] is has


def test_the_best_histogram_takes_several_rows_of_a_person() -> None:
    """Their noise is wider, and was taken for that of an amount with delta; it called itself without an end."""
    session = Session()
    session.bind("t", {"who": np.arange(600) % 300 + 1, "x": np.arange(600) % 40})
    result = session.attempt(Source("p.jst", (
        'use best\nprivate t = bound("t") described by {who: 1..300, x: 0..39} protecting who up to 2 rows '
        'budget epsilon 9, delta 1e-4\nname = "x"\nc = histogram(t, @name)\n'
        "release a = best_histogram(c, prefixes(c)) with epsilon 1\n"
    )))  # fmt: skip
    assert result.ok, result.diagnostics
    assert len(result["a"]) == 40


@pytest.mark.parametrize("rows", [0, 40, 4000, 200_000])
@pytest.mark.parametrize("ranked", ["false", "true"])
def test_a_classifier_of_many_classes_in_rho_has_what_it_spends(rows: int, ranked: str) -> None:
    """Of few rows it asked for more than the count of rows had left, and was refused after it had paid for that."""
    program = (
        'use classify\nprivate t = bound("t") described by {a: 0..7, b: 0..7, c: 0..7} protecting rows '
        f'budget rho 0.5\nm = adaptive_classifier(t, "c", {ranked}) with rho 0.5\n'
    )
    session = Session()
    session.bind("t", {name: np.arange(rows) // step % 8 for name, step in (("a", 1), ("b", 3), ("c", 1))})
    assert session.attempt(Source("p.jst", program)).diagnostics == ()
