"""Every option of the histogram modules: what it spends, that it finds the truth, and that it takes any shape."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.noise_laws import Gaussian, Laplace
from jostle.run.measured import laplace_scale
from jostle.source import Source
from jostle.tools.session import Session

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("histograms", "hierarchies", "grids", "clusters")
OPTIONS = [
    name for module in MODULES
    for name in re.findall(r"(?m)^def (\w+)_cells\(db, queries", (ROOT / "stdlib" / f"{module}.jst").read_text())
]  # fmt: skip
COARSE = {"uniform", "mwem"}
"""They keep the total alone: they spread it evenly, or measure few queries."""
USES = "".join(f"use {module}\n" for module in MODULES)
SHAPES = [(1,), (2,), (7,), (100,), (1, 1), (1, 9), (5, 9), (3, 50), (16, 16)]


@lru_cache(maxsize=len(SHAPES))
def ran(shape: tuple[int, ...]) -> tuple[np.ndarray, dict[str, Any]]:
    """All options at an epsilon that leaves no noise to speak of, on one source."""
    x = np.random.default_rng(0).integers(0, 50, shape)
    session = Session()
    session.bind("c", x)
    text = [USES, 'private c = bound("c") protecting rows budget epsilon 10000000', "q = ranges(c, 50)"]
    for name in OPTIONS:
        text += [
            f"before = spent(c)\n{name}_answers = {name}(c, q) with epsilon 10000\n{name}_spent = spent(c) - before",
            f"{name}_found = {name}_cells(c, q) with epsilon 100000",
        ]
    session.execute(Source("options", "\n".join(text) + "\n"))
    return x, session.names()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_finds_the_truth_and_spends_its_allotment(name: str, shape: tuple[int, ...]) -> None:
    x, known = ran(shape)
    assert known[f"{name}_spent"] == 10000
    cells = np.asarray(known[f"{name}_found"])
    assert cells.shape == shape and (name == "flat" or cells.min() >= 0)  # which shows the noisy cells as they are
    # Noise of scale 1/100,000 times levels and cells; 0.1 is hundreds of scales away for each of them. Multiplicative
    # weights only approach the answers that they were given.
    if name in COARSE:
        assert cells.sum() == pytest.approx(x.sum(), abs=1)
        return
    np.testing.assert_allclose(cells, x, atol=0.1)
    exact = known["q"].answers(x)
    np.testing.assert_allclose(known[f"{name}_answers"], exact, atol=1, rtol=0.01)


@pytest.mark.parametrize("name", ["adaptive", "shrinkage", "tree_shrinkage"])
def test_many_rows_are_as_exact_as_few(name: str) -> None:
    """Of 10⁹ rows for the noise laws of halves said 0, a quarter or no number: doubles did not hold their shares."""
    x = np.random.default_rng(1).integers(0, 10**8, 64)
    session = Session()
    session.bind("c", x)
    program = (
        f'{USES}private c = bound("c") protecting rows budget epsilon 10\na = {name}(c, prefixes(c)) with epsilon 10'
    )
    session.execute(Source("many", program))
    np.testing.assert_allclose(session.names()["a"], np.cumsum(x), rtol=1e-6)  # 3,000 for noise of about 1


def test_every_option_stands_in_the_guide() -> None:
    guide = (ROOT / "docs" / "stdlib.md").read_text(encoding="utf-8")
    assert len(OPTIONS) > 12
    assert [name for name in OPTIONS if f"| `{name}` |" not in guide] == []


def test_shrinkage_draws_like_cells_together() -> None:
    """On steps cells have less than half of their error by `hdmm`, marginals the same, seed by seed."""
    steps = np.repeat([30, 400, 0, 170], 32)
    text = f"""use histograms
c = counts({steps.tolist()})
d = counts({[steps[:8].tolist(), steps[40:48].tolist()]})
def errors(f, db, q, epsilon):
    return bootstrap(exact(identity(db), db), f, q, epsilon = epsilon, runs = 20).standard_error
lines = [sum(errors(f, c, identity(c), 0.1)) for f in [hdmm, shrinkage]]
sides = [errors(f, d, marginals(d, 1), 0.1) for f in [hdmm, shrinkage]]
"""
    session = Session()
    session.execute(Source("shrinkage", text))
    (plain, drawn), sides = session.names()["lines"], session.names()["sides"]
    assert drawn < plain / 2
    np.testing.assert_array_equal(sides[0], sides[1])


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_refused_more_than_there_is(name: str) -> None:
    session = Session()
    session.bind("c", np.array([3, 1, 0, 2]))
    program = (
        f'{USES}private c = bound("c") protecting rows budget epsilon 1\na = {name}(c, ranges(c, 5)) with epsilon 2\n'
    )
    result = session.attempt(Source("options", program))
    assert [d.kind for d in result.diagnostics] == ["BudgetExceeded"]


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_works_under_noise_and_on_public_data(name: str) -> None:
    session = Session()
    session.bind("c", np.random.default_rng(1).integers(0, 5, (6, 7)))
    session.bind("d", np.random.default_rng(1).integers(0, 5, (6, 7)))
    session.execute(
        Source(
            "options",
            f'{USES}private c = bound("c") protecting rows budget epsilon 1\nd = bound("d")\nq = rectangles(c, 20)\n'
            f"noisy = {name}_cells(c, q) with epsilon 0.01\npublic = {name}_cells(d, q) with epsilon 1\n",
        )
    )
    for found in ("noisy", "public"):
        cells = np.asarray(session.names()[found])
        assert cells.shape == (6, 7) and np.isfinite(cells).all() and (name == "flat" or cells.min() >= 0)


def test_boxes_beat_single_cells_on_even_data() -> None:
    """One box is found and its count is shared: seventy times less error than single cells in a typical run."""
    x = np.full((32, 32), 10)
    errors = {}
    for name in ("flat", "dpcube"):
        session = Session()
        session.bind("c", x)
        program = f'{USES}private c = bound("c") protecting rows budget epsilon 1\nq = rectangles(c, 300)\n'
        session.execute(Source("options", f"{program}a = {name}(c, q) with epsilon 0.1\n"))
        known = session.names()
        errors[name] = float(np.abs(np.asarray(known["a"]) - known["q"].answers(x)).mean())
    assert errors["dpcube"] < errors["flat"], errors


def test_in_rho_strategies_are_fitted_to_gaussian_noise() -> None:
    session = Session()
    data = "counts([100 for i in 1..64]) protecting rows budget"
    session.execute(Source("options", f"""use histograms
private c = {data} rho 100
private e = {data} epsilon 1
private d = {data} epsilon 1, delta 1e-3 counted by basic
powers = [norm_power() with rho 0.01, norm_power() with rho 99, norm_power() with epsilon 0.01,
    norm_power() with epsilon 0.1 delta 1e-6]
"""))  # fmt: skip
    assert session.names()["powers"] == [2, 2, 1, 1]


def test_kernels_are_told_the_scale_of_laplace_noise_whichever_noise_it_is() -> None:
    """In rho they took noise to have twice the variance that it had."""
    assert laplace_scale(Gaussian(5.0)) == pytest.approx(5 / 2**0.5)
    assert (laplace_scale(Laplace(5.0)), laplace_scale(None)) == (5.0, 0.0)
