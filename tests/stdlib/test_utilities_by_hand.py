"""Utilities and scores of the library are what NumPy calculates of the same rows: real columns, with missing cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from jostle.source import Source
from jostle.tools.session import Session

MANY = 2000
RNG = np.random.default_rng(11)
X, Z = RNG.uniform(-0.9, 0.9, MANY), RNG.uniform(0.1, 0.6, MANY)
Y = 0.5 + 0.3 * X - 0.4 * Z + RNG.normal(0, 0.05, MANY)
C = np.where(RNG.random(MANY) < 0.1 + 0.8 * (X > 0.25), "q", "p")
FRAME = pd.DataFrame({"x": X, "z": Z, "y": Y, "c": C})
HOLED = pd.DataFrame({
    "x": np.where(np.arange(MANY) % 10 == 3, np.nan, X), "z": Z.copy(),
    "y": np.where(np.arange(MANY) % 7 == 2, np.nan, Y), "c": C.copy(),
})  # fmt: skip
SCHEMA = '{x: -1.0..1.0, z: 0.0..1.0, y: -1.0..2.0, c: {"p", "q"}}'


def answers(text: str, private: bool = False) -> dict[str, Any]:
    session = Session()
    session.bind("t", FRAME)
    session.bind("holed", HOLED)
    given = "protecting rows budget epsilon 1e9" if private else ""
    declared = "\n".join(
        f'{"private " if name == "t" and private else ""}{name} = bound("{name}") described by {SCHEMA} '
        f"{given if name == 't' else ''}"
        for name in ("t", "holed")
    )
    result = session.attempt(Source("u.jst", f"use best\nuse regressions\nuse classifiers\n{declared}\n{text}"))
    assert result.ok, result.diagnostics
    return dict(result.released)


@pytest.mark.parametrize("private", [False, True])
def test_the_error_of_a_regression_is_that_of_its_rows(private: bool) -> None:
    told = answers("""
m = ridge(pick(t, x, z, y), "y") with epsilon 1e6
release m = m
release near = prediction_error(pick(holed, x, z, y), m)
release without = prediction_error(holed, m)
release whole = prediction_error(table([{x: 0.25, z: 0.5, y: 0.5}, {x: -0.5, z: 0.25, y: -0.75}]), m)
""", private)  # fmt: skip
    m = told["m"]

    def off(x: Any, z: Any, y: Any) -> float:
        parts = [(m.adds["x"], x), (m.adds["z"], z)]
        added = [np.where(np.isnan(v), 0.0, part.rate * (v - part.centre)) for part, v in parts]  # none adds nothing
        gap = (np.clip(m.base + sum(added), -1, 2) - y)[~np.isnan(y)]
        return math.sqrt((gap**2).mean())

    assert told["near"] == pytest.approx(off(HOLED["x"], HOLED["z"], HOLED["y"]), rel=1e-9)
    assert told["without"] == told["near"] < 0.1
    few = off(np.array([0.25, -0.5]), np.array([0.5, 0.25]), np.array([0.5, -0.75]))
    assert told["whole"] == pytest.approx(few, rel=1e-9)


@pytest.mark.parametrize("private", [False, True])
def test_how_often_a_classifier_is_right_is_counted_on_its_rows(private: bool) -> None:
    told = answers("""
few = pick(t, x, c)
binned_rows = in_bins(few, equal_cuts(few, "c", bins = 8))
m = on_raw(naive_bayes(binned_rows, "c") with epsilon 1e6, equal_cuts(few, "c", bins = 8))
release m = m
release right = accuracy(pick(holed, x, c), m, "c")
release with_others = accuracy(holed, m, "c")
release score = laplace(correct_count(few, m, "c")) with epsilon 1e6
""" + private * 'release noisy = noisy_accuracy(few, m, "c") with epsilon 1e6', private)  # fmt: skip
    named = {}  # the more frequent class of each bin
    for place in range(8):
        inside = (-1 + place / 4 <= X) & (-0.75 + place / 4 > X)
        named[place] = "q" if (C[inside] == "q").mean() > 0.5 else "p"
    bins = np.floor((X + 1) * 4).astype(int)
    says = np.array([named[place] for place in bins.tolist()])
    holed = np.where(np.isnan(HOLED["x"]), "p", says)  # of a missing cell the more frequent class is named
    assert (C == "p").mean() > 0.5
    assert told["right"] == pytest.approx((holed == C).mean(), abs=1e-12)
    assert told["with_others"] == told["right"]
    assert told["score"] == (says == C).sum()
    if private:
        assert told["noisy"]["accuracy"] == pytest.approx((says == C).mean(), abs=1e-3)


def test_utilities_of_rows_as_vectors_and_of_cells_are_calculations_by_hand() -> None:
    some = np.column_stack([X, Z])[:200].round(6) / 2
    session = Session()
    result = session.attempt(Source("u.jst", f"""
use mixtures
use workloads
use features
some = {some.tolist()}
t = vectors(some, low = -1, high = 1)
release apart = rmse([0.25, 0.5, -1], [0, 0.75, 1])
release scaled = scaled_error([0.25, 0.5, -1], [0, 0.75, 1], 10)
release centres = kmeans(t, 3, 2)
release near = centres.nicv(some)
release normal = single_gaussian(t)
release likely = normal.log_likelihood(some)
h = counts([3, 1, 4, 1, 5])
q = prefixes(h)
release rough = laplace(total_variation(h))
release far = laplace(closeness(h, q, [3.5, 4, 8.25, 9, 14]))
"""))  # fmt: skip
    assert result.ok, result.diagnostics
    told = dict(result.released)
    assert told["apart"] == pytest.approx(math.sqrt((0.25**2 + 0.25**2 + 4) / 3))
    assert told["scaled"] == pytest.approx(math.sqrt(0.25**2 + 0.25**2 + 4) / 30)
    squares = ((some[:, None] - told["centres"].cluster_centers_[None]) ** 2).sum(axis=2)
    assert told["near"] == pytest.approx(squares.min(axis=1).mean(), rel=1e-9)
    logs = multivariate_normal(some.mean(axis=0), np.cov(some.T, bias=True)).logpdf(some)
    assert told["likely"] == pytest.approx(logs.mean(), abs=1e-3)
    sums, answered = np.cumsum([3, 1, 4, 1, 5]), np.array([3.5, 4, 8.25, 9, 14])
    assert told["far"] == pytest.approx(-math.sqrt(((sums - answered) ** 2).mean()), abs=1e-5)
    assert told["rough"] == 2 + 3 + 3 + 4
