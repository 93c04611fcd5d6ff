"""Utilities and scores of the library are what NumPy calculates of the same rows: real columns, with missing cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from jostle.kernels.classifiers.fits import ranked_area
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.noise_laws import Laplace
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
release area = noisy_auc(few, m, "c") with epsilon 1e6
release lost = noisy_log_loss(few, m, "c") with epsilon 1e6
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
    shares = told["m"].probabilities({"x": X})[:, 1]
    assert told["area"]["auc"] == pytest.approx(area(shares, C == "q"), abs=0.01)
    own = np.where(C == "q", shares, 1 - shares)
    assert told["lost"]["log_loss"] == pytest.approx(-np.log(np.maximum(own, 0.001)).mean(), abs=2e-3)


def area(shares: np.ndarray, own: np.ndarray) -> float:
    """How often one of `own` has more than one of the others, half where they are equal."""
    pairs = shares[own][:, None] - shares[~own][None, :]
    return float(((pairs > 0) + (pairs == 0) / 2).mean())


@pytest.mark.parametrize("private", [False, True])
def test_areas_of_three_classes_are_weighed_by_their_rows(private: bool) -> None:
    k = np.where(X > 0.4, "r", np.where(np.arange(MANY) % 2 == 0, "p", C))
    cells = np.floor(8 * X).astype(int)
    session = Session(allow=["large-epsilon"])
    session.bind("rows", {"x": cells, "k": k})
    given = "protecting rows budget epsilon 1e9" if private else ""
    declared = f'{"private " * private}t = bound("rows") described by {{x: -8..7, k: {{"p", "q", "r"}}}} {given}\n'
    result = session.attempt(Source("u.jst", "use classifiers\nuse trees\n" + declared + """
m = blended_model([drawn_tree(t, "k") with epsilon 1e4, naive_bayes(t, "k") with epsilon 1e4], [0.5, 0.5])
release m
release each = noisy_auc(t, m, "k") with epsilon 1e6
release of_r = noisy_auc(t, m, "k", of = "r") with epsilon 1e6
release lost = noisy_log_loss(t, m, "k") with epsilon 1e6
"""))  # fmt: skip
    assert result.ok, result.diagnostics
    told = dict(result.released)
    shares = told["m"].probabilities({"x": cells})
    areas = [area(shares[:, i], k == one) for i, one in enumerate("pqr")]
    assert told["each"]["auc"] == pytest.approx(np.dot([(k == one).mean() for one in "pqr"], areas), abs=0.01)
    assert told["of_r"]["auc"] == pytest.approx(areas[2], abs=0.01)
    own = shares[np.arange(MANY), ["pqr".index(one) for one in k.tolist()]]
    assert told["lost"]["log_loss"] == pytest.approx(-np.log(np.maximum(own, 0.001)).mean(), abs=2e-3)


@pytest.mark.parametrize("scale", [2.0, 40.0])
def test_the_noise_of_an_area_is_within_its_error(scale: float) -> None:
    rng, some = np.random.default_rng(5), np.linspace(1, 0.1, 40)
    counts = np.round(400 * np.stack([some, some[::-1]], axis=1).ravel())
    assert ranked_area(counts)["error"] == 0
    within = []
    for _ in range(400):
        noisy = with_noise(counts + rng.laplace(0, scale, counts.size), NoiseModel(Laplace(scale)))
        told = ranked_area(noisy)
        within.append(abs(told["auc"] - ranked_area(counts)["auc"]) <= told["error"])
    assert 0.92 < np.mean(within) < 0.98


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
