"""Mixtures, k-means and factor analysis: they find what is there, and nothing that is fed to them breaks them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.kernels.mixtures.centres import (
    Centres,
    centres_of_map,
    map_begun,
    map_counted,
    map_moved,
    map_places,
    map_refined,
    map_strength,
)  # fmt: skip
from jostle.kernels.mixtures.em import (
    mixture_frames,
    mixture_prior,
    mixture_start,
    mixture_step,
    shrunk_mixture_step,
    synthetic_mixture,
)
from jostle.kernels.mixtures.gaussians import GaussianMixture, Space
from jostle.kernels.mixtures.looks import (
    centres_about,
    centres_beside,
    look_again,
    look_begun,
    look_places,
    look_spread,
    means_about,
    places_about,
)
from jostle.kernels.simulated_points import simulated_points
from jostle.source import Source
from jostle.tools.session import Session

LIFE = Path(__file__).resolve().parents[3] / "shared" / "data" / "lifesci.csv"
BASIC = "epsilon 1000, delta 0.5 counted by basic"


def fit(rows: np.ndarray, program: str, budget: str = BASIC, bound: float = 1.0) -> dict[str, Any]:
    """What a program over `p`, private rows of columns x1, x2, …, releases."""
    d = rows.shape[1]
    described = ", ".join(f"x{i + 1}: -{bound!r}..{bound!r}" for i in range(d))
    session = Session()
    session.bind("p", {f"x{i + 1}": np.ascontiguousarray(rows[:, i]) for i in range(d)})
    text = f'use mixtures\nprivate p = bound("p") described by {{{described}}} protecting rows budget {budget}\n'
    return session.run(Source("t.jst", text + "rows = vectors(p)\n" + program)).values


@pytest.fixture(scope="module")
def made() -> GaussianMixture:
    return synthetic_mixture(3, 3, 4.0, seed=5)


@pytest.fixture(scope="module")
def points(made: GaussianMixture) -> np.ndarray:
    return made.sample(6000, 1)[0]


@pytest.mark.parametrize("budget", [BASIC, "epsilon 1000, delta 0.5"])
def test_a_mixture_is_found(made: GaussianMixture, points: np.ndarray, budget: str) -> None:
    model = fit(points, "release m = mixture(rows, 5, 8) with epsilon 4 delta 0.0001", budget)["m"]
    test = made.sample(3000, 2)[0]
    assert model.score(test) > made.score(test) - 0.35
    assert model.score(test) > fit(points, "release m = single_gaussian(rows) with epsilon 4 delta 0.0001")["m"].score(
        test
    )


def test_a_gaussian_is_found_with_each_kind_of_noise() -> None:
    one = synthetic_mixture(3, 1, 1.0, seed=3)
    rows, test = one.sample(5000, 1)[0], one.sample(2000, 2)[0]
    for budget, spend in (
        ("epsilon 100", "epsilon 2"), ("rho 100", "rho 0.5"), ("epsilon 9, delta 0.1", "epsilon 1 delta 0.001"),
    ):  # fmt: skip
        model = fit(rows, f"release m = single_gaussian(rows) with {spend}", budget)["m"]
        assert model.score(test) > one.score(test) - 0.2


@pytest.mark.slow
def test_public_rows_are_fitted_for_nothing(made: GaussianMixture, points: np.ndarray) -> None:
    rows = json.dumps(points[::3].tolist())
    program = f"use mixtures\nrelease m = mixture(vectors({rows}), 3, 12)\nrelease s = single_gaussian(vectors({rows}))"
    found = Session().run(Source("t.jst", program)).values
    assert found["s"].means_[0] == pytest.approx(points[::3].mean(axis=0), abs=5e-3)
    assert found["m"].score(points) > found["s"].score(points) + 0.3


def test_a_prior_draws_components_to_the_pool(points: np.ndarray) -> None:
    found = fit(points, "release m = mixture(rows, 3, 4, prior_rows = 1000000) with epsilon 4 delta 0.0001")["m"]
    apart = np.linalg.norm(found.means_ - found.means_.mean(axis=0), axis=1)
    assert apart.max() < 0.05


def test_with_a_background_no_row_is_impossible(points: np.ndarray) -> None:
    program = "release m = {}(rows, 3, 2, background = 0.25) with epsilon 4 delta 0.0001"
    for name in ("mixture", "spherical_mixture"):
        model = fit(points[::4], program.format(name))["m"]
        assert model.weights_[3] == 0.25 and model.weights_.sum() == pytest.approx(1)
        assert model.covariances_[3] == pytest.approx(np.cov(points.T), rel=0.5, abs=0.01)


# A model is a value --------------------------------------------------------------------------------


def test_a_model_has_the_face_of_scikit_learn(made: GaussianMixture) -> None:
    from sklearn.mixture import GaussianMixture as Peer

    rows, labels = made.sample(500, 3)
    peer = Peer(3)
    peer.weights_, peer.means_, peer.covariances_ = made.weights_, made.means_, made.covariances_
    peer.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(made.covariances_)).transpose(0, 2, 1)
    assert made.score_samples(rows) == pytest.approx(peer.score_samples(rows))
    assert made.predict_proba(rows) == pytest.approx(peer.predict_proba(rows), abs=1e-9)
    assert (made.predict(rows) == peer.predict(rows)).all() and (made.predict(rows) == labels).mean() > 0.8
    assert made.score(rows) == pytest.approx(peer.score(rows))
    again = GaussianMixture.from_json(json.loads(json.dumps(made.as_json())))
    assert again.score_samples(rows) == pytest.approx(made.score_samples(rows))
    many = made.sample(200_000, 4)[0]
    assert many.mean(axis=0) == pytest.approx(made.weights_ @ made.means_, abs=0.01)


def test_a_model_is_in_the_units_of_the_data() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal([50.0, -20.0], [10.0, 4.0], (4000, 2))
    model = fit(rows, "release m = single_gaussian(rows) with epsilon 5 delta 0.001", bound=100.0)["m"]
    assert model.means_[0] == pytest.approx([50, -20], abs=1)
    assert np.sqrt(np.diag(model.covariances_[0])) == pytest.approx([10, 4], rel=0.1)
    exact = -np.log(2 * math.pi * 40) - 0.5 * (((rows - [50, -20]) / [10, 4]) ** 2).sum(axis=1)
    assert model.score(rows) == pytest.approx(exact.mean(), abs=0.05)


def test_the_language_asks_a_model() -> None:
    program = """
m = mixture(rows, 2, 2) with epsilon 10 delta 0.001
release n = m.size
release w = sum(m.weights)
release d = m.density([0.1, 0.2])
release l = m.log_likelihood([[0.1, 0.2], [0.3, 0.4]])
release r = m.responsibilities([[0.1, 0.2]])
release s = m.sample(7, 1)
release e = m.ellipse(0)
release p = m.predict([[0.1, 0.2]])
release m
print(m)
"""
    found = fit(np.random.default_rng(0).normal(0, 0.3, (500, 2)), program)
    assert found["n"] == 2 and found["w"] == pytest.approx(1)
    assert len(found["s"]) == 7 and np.asarray(found["e"]).shape == (64, 2)
    assert np.asarray(found["r"]).sum() == pytest.approx(1) and found["p"][0] in (0.0, 1.0)
    assert math.log(found["d"][0]) == pytest.approx(found["m"].score_samples([[0.1, 0.2]])[0])


# What breaks others --------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [
    np.zeros((0, 2)), np.zeros((1, 2)), np.full((300, 2), math.nan), np.full((300, 2), 0.5), np.zeros((5, 1)),
    np.column_stack([np.linspace(-1, 1, 400), np.zeros(400)]), np.full((50, 3), math.inf), np.full((50, 3), 1e300),
    np.random.default_rng(0).choice([-1.0, 1.0], (200, 4)),
], ids=["empty", "one row", "nan", "constant", "column", "flat", "infinite", "huge", "corners"])  # fmt: skip
@pytest.mark.parametrize("spend", ["epsilon 0.001 delta 0.000001", "epsilon 8 delta 0.01"])
def test_covariances_are_positive_definite_whatever_the_rows(rows: np.ndarray, spend: str) -> None:
    program = f"release m = mixture(rows, 7, 3) with {spend}\nrelease k = kmeans(rows, 7, 2) with {spend}\n"
    program += f"release r = spherical_mixture(rows, 7, 2) with {spend}"
    found = fit(rows, program)
    model = found["m"]
    assert np.linalg.eigvalsh(model.covariances).min() > 0 and np.isfinite(model.covariances_).all()
    assert model.weights_.sum() == pytest.approx(1) and (model.weights_ > 0).all()
    assert np.isfinite(model.score_samples(np.full((1, rows.shape[1]), 0.3))).all()
    assert np.isfinite(found["k"].cluster_centers_).all()
    assert np.linalg.eigvalsh(found["r"].covariances).min() > 0 and np.isfinite(found["r"].means_).all()


@pytest.mark.parametrize("step", [mixture_step, shrunk_mixture_step])
@pytest.mark.parametrize("strength", [10.0**k for k in range(0, 9, 2)])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_a_step_keeps_covariances_positive_definite_at_any_noise(step: Any, strength: float, d: int) -> None:
    """N·ε from 1 to 10⁸: sums of a thousand rows with noise of deviation 1000/strength, and some that are all noise."""
    rng = np.random.default_rng(int(strength) + d)
    facts = {"columns": [f"x{i}" for i in range(d)], "centres": [0.0] * d, "scales": [1.0] * d, "radius": 1.0}
    pooled = mixture_prior(facts)
    model = mixture_start(pooled, 4, 0)
    noise = 1000 / strength
    for _ in range(6):
        frames = mixture_frames(model)
        second = rng.normal(0, noise, (4, d, d))
        sums = {
            "count": rng.uniform(0, 500, 4) + rng.normal(0, noise, 4), "count_noise": noise,
            "first": rng.normal(0, noise, (4, d)), "first_noise": noise,
            "second": (second + second.transpose(0, 2, 1)) / 2 + np.eye(d) * rng.uniform(-1, 50), "second_noise": noise,
        }  # fmt: skip
        model = step(model, sums, frames, pooled)
        assert np.linalg.eigvalsh(model.covariances).min() > 0
        assert np.isfinite(model.means).all() and np.isfinite(model.factors).all()


# The others ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def towns() -> np.ndarray:
    rng = np.random.default_rng(1)
    middles = np.array([[-0.6, -0.5], [0.7, 0.1], [0.0, 0.6]])
    return middles[rng.integers(0, 3, 6000)] + rng.normal(0, 0.05, (6000, 2))


def test_centres_print_large_numbers_in_full() -> None:
    text = "use mixtures\nrelease c = kmeans(vectors([[21814, 9], [21815, 9]], low = 0, high = 40000), 1, 1)"
    assert str(Session().run(Source("c.jst", text))["c"]).splitlines()[1].startswith("  21814, 9")


def test_clusters_are_found(towns: np.ndarray) -> None:
    program = """
release ours = kmeans(rows, 3, 6) with epsilon 1 delta 0.0001
release lloyd = dplloyd(vectors(p, norm = "sup"), 3, 5, seed = 2) with epsilon 4
cells_of = derive(p, a = min(15, floor((x1 + 1) * 8)), b = min(15, floor((x2 + 1) * 8)))
release grid = grid_kmeans(rows, histogram(cells_of, x = a, y = b), 3) with epsilon 1
release map = map_kmeans(rows, 3) with epsilon 4
"""
    rough = [f"rough{i}" for i in range(10)]  # one in eight is above 0.1: all of ten are with less than 1e-8
    program += "".join(f"release {name} = map_kmeans(rows, 3) with epsilon 0.02\n" for name in rough)
    found = fit(towns, program)
    for name in ("ours", "grid", "map"):
        assert found[name].nicv(towns) < 0.03, name
    assert found["map"].nicv(towns) < 0.0055 and min(found[name].nicv(towns) for name in rough) < 0.1
    assert found["lloyd"].nicv(towns) < 0.5  # 0.005 is without noise
    assert (np.sort(np.bincount(found["ours"].predict(towns))) > 1500).all()


@pytest.mark.parametrize(("d", "places"), [(1, 64), (2, 64), (3, 64), (5, 32)])
def test_places_cover_the_bounds_or_where_a_gaussian_lies(d: int, places: int) -> None:
    facts = {"columns": ["x"] * d, "centres": np.zeros(d), "scales": np.ones(d), "radius": math.sqrt(d)}
    even = map_places(facts, 64) * math.sqrt(d)
    assert len(even) == places and even.mean(axis=0) == pytest.approx(0, abs=1e-9)
    side = round(places ** (1 / d))
    assert np.abs(even).max() == pytest.approx(1 - 1 / side)
    pooled = GaussianMixture(Space.of(facts), np.ones(1), np.full((1, d), 0.1), 0.01 * np.eye(d)[None])
    near = map_places(pooled, 64)
    assert 32 < len(near) <= 64 and np.abs(near - 0.1).max() < 0.6


def test_a_map_is_refined_where_rows_are_and_counts_are_joined_by_precision() -> None:
    places = map_places({"columns": ["x", "y"], "centres": [0, 0], "scales": [1, 1], "radius": math.sqrt(2)}, 64)
    begun = map_begun(places)
    assert np.ptp(begun["widths"]) < 1e-12 and begun["counts"] is None
    rows = 5000 * np.exp(-50 * ((places - [0.3, 0.2]) ** 2).sum(axis=1))
    once = map_counted(begun, {"count": rows + 30, "count_noise": 20.0})
    twice = map_counted(once, {"count": rows, "count_noise": 10.0})
    assert twice["counts"] == pytest.approx(rows + 6) and twice["noise"] == pytest.approx(80**0.5)
    assert map_strength(twice, 4) == pytest.approx((rows.sum() + 64 * 6) / 80**0.5 / 4)
    fine = map_refined(twice, 64, 1)
    assert 48 <= len(fine["places"]) <= 64 and (fine["widths"] <= begun["widths"][0]).all()
    assert np.linalg.norm(fine["places"] - [0.3, 0.2], axis=1).mean() < 0.25
    empty = map_counted(begun, {"count": np.full(64, -5.0), "count_noise": 20.0})  # a table without rows
    assert np.array_equal(map_refined(empty)["places"], places) and map_strength(empty, 4) == 0
    facts = {"columns": ["x", "y"], "centres": np.zeros(2), "scales": np.ones(2), "radius": 1.0}
    assert len(centres_of_map(facts, empty, 3).centres) == 3
    moved = map_moved(
        begun, {"count": rows, "count_noise": 1.0, "first": np.full((64, 2), 1e9), "first_noise": 1.0}, 0.2
    )
    assert np.linalg.norm(moved["places"] - places, axis=1).max() <= 0.2 + 1e-9  # no further than rows are seen


@pytest.mark.parametrize(("columns", "budget", "amount"), [
    (2, "rho 1", "rho 0.5"), (8, BASIC, "epsilon 2"), (1, BASIC, "epsilon 0.5"), (7, "rho 1", "rho 0.001"),
])  # fmt: skip
def test_a_map_fits_all_columns_and_units(columns: int, budget: str, amount: str) -> None:
    rows = np.random.default_rng(2).normal(0.2, 0.1, (1500, columns)).clip(-1, 1)
    model = fit(rows, f"release m = map_kmeans(rows, 3) with {amount}", budget)["m"]
    assert model.centres.shape == (3, columns) and model.nicv(rows) < (0.05 if "0.001" not in amount else 2.0) * columns


@pytest.mark.parametrize("amount", ["epsilon 0.3", "rho 0.0005"])
def test_of_many_columns_centres_are_no_worse_than_one_where_little_can_be_told(amount: str) -> None:
    """A deviation of a tenth of the bounds in 45 columns; with a noisy covariance this was 6 and 3 times one centre."""
    rows = np.random.default_rng(3).normal(0.1, 0.2, (5000, 45)).clip(-1, 1)
    unit = BASIC if amount.startswith("epsilon") else "rho 1"
    found = fit(rows, "\n".join(f"release m{i} = map_kmeans(rows, 5) with {amount}" for i in range(3)), unit)
    one = float(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert max(found[f"m{i}"].nicv(rows) for i in range(3)) < 1.5 * one


def _look(rows: np.ndarray, noise: float, seed: int) -> Any:
    """A look at rows in the ball, of noise that each number has."""
    rng, d = np.random.default_rng(seed), rows.shape[1]
    facts = {"columns": ["x"] * d, "centres": np.zeros(d), "scales": np.ones(d) * 2, "radius": math.sqrt(d)}
    count = {"count": np.array([len(rows) + rng.normal(0, noise)]), "count_noise": noise}
    look = look_begun(facts, count, {"sum": rows.sum(axis=0) + rng.normal(0, noise, d), "noise": noise})
    near = (1 - ((rows - look["mean"]) ** 2).sum(axis=1)).sum() + rng.normal(0, noise)
    look = look_spread(look, {"sum": np.array([near]), "noise": noise})
    radius, seen = min(2, 1.5 * math.sqrt(look["spread"])), rows - look["mean"]
    seen = seen * np.minimum(1, radius / np.linalg.norm(seen, axis=1))[:, None] / radius
    first = {"first": seen.sum(axis=0)[None] + rng.normal(0, noise, (1, d)), "first_noise": noise}
    return facts, look, look_again(look, count | first)


def test_a_look_says_the_mean_of_all_rows_as_far_as_noise_lets_it() -> None:
    rows = np.random.default_rng(4).normal(0.03, 0.05, (5000, 40))
    middle, spread = rows.mean(axis=0), rows.var(axis=0).sum()
    _, first, second = _look(rows, 30.0, 1)
    assert np.linalg.norm(second["mean"] - middle) < np.linalg.norm(first["mean"] - middle) < 0.06
    assert first["spread"] == pytest.approx(spread, rel=0.2) and second["spread"] == pytest.approx(spread, rel=0.2)
    _, loud, louder = _look(rows, 3000.0, 2)
    assert not loud["mean"].any() and not louder["mean"].any()  # the middle of the bounds: nothing else is known
    assert look_places(loud, 3000.0, "gaussian") == 0 and look_places(second, 1.0, "laplace") > 20


def test_what_noise_explains_stays_at_the_mean_of_all_rows() -> None:
    rng = np.random.default_rng(5)
    rows = rng.choice([-0.2, 0.2], (4000, 1)) + rng.normal(0, 0.02, (4000, 30))
    facts, _, look = _look(rows / 2, 1.0, 3)
    view = places_about(look, 12)
    away = np.linalg.norm(np.asarray(view["centres"]) - look["mean"], axis=1)
    assert away == pytest.approx(0.7 * math.sqrt(look["spread"]))
    sums = {"count": np.full(12, 300.0), "count_noise": 5.0, "first": rng.normal(0, 200, (12, 30)), "first_noise": 200}
    stay = np.isclose(means_about(look, view, sums)["places"], look["mean"]).all(axis=1)
    assert stay.mean() > 0.7  # noise is longer than this in one of six
    told = means_about(look, view, sums | {"first": np.zeros((12, 30)), "first_noise": 0.1})
    assert np.allclose(told["places"], view["centres"], atol=1e-3) and told["counts"].sum() == 3600
    centres = centres_beside(look, centres_about(facts, look, told, 3), 5)
    assert centres.size == 5 and np.allclose(centres.centres[3:], look["mean"])
    none = {**told, "counts": np.full(12, -1.0)}
    assert np.allclose(centres_about(facts, look, none, 3).centres, look["mean"])


def test_public_rows_are_mapped_without_noise() -> None:
    session = Session()
    text = "use mixtures\nrelease m = map_kmeans(vectors([[i / 40, (i % 2) * 2 - 1] for i in 1..40]), 2)\nprint(m)"
    result = session.attempt(Source("t.jst", text))
    assert result.ok, result.diagnostics
    assert np.abs(np.sort(result["m"].cluster_centers_[:, 1])) == pytest.approx(1, abs=1e-3)


def test_simulated_points_are_within_bounds_and_seeded() -> None:
    """Half of the draws have two to four columns, and none is like another."""
    drawn = [simulated_points(1, i) for i in range(40)]
    assert all(np.abs(d[part]).max() <= 1 and len(d["test"]) == 2000 for d in drawn for part in ("rows", "test"))
    assert {2, 3, 4} < {d["rows"].shape[1] for d in drawn} <= set(range(1, 13))
    assert all(300 <= len(d["rows"]) <= 30_000 and 2 <= d["groups"] <= 20 for d in drawn)
    again, other = simulated_points(1, 7), simulated_points(2, 7)
    assert np.array_equal(again["rows"], drawn[7]["rows"]) and not np.array_equal(other["test"], drawn[7]["test"])


def test_round_clouds_are_found_round(towns: np.ndarray) -> None:
    model = fit(towns, "release m = spherical_mixture(rows, 3, 5) with epsilon 10 delta 0.001")["m"]
    assert np.sqrt(model.covariances_[:, 0, 0]) == pytest.approx(0.05, rel=0.2)
    assert (model.covariances_[:, 0, 1] == 0).all() and model.weights_ == pytest.approx(1 / 3, abs=0.05)


def test_dplloyd_has_the_noise_of_its_paper(towns: np.ndarray) -> None:
    """Laplace of scale (d + 1)/ε in each of counts and coordinate sums of a round that has ε."""
    program = """
v = vectors(p, norm = "sup")
s = noisy_moments(v, "nearest", {centres: [[0, 0]]}, shares = [1, v.size], via = "laplace") with epsilon 0.5
release n = s.count_noise
release f = s.first_noise
"""
    found = fit(towns, program)
    assert found["n"] == pytest.approx(math.sqrt(2) * 3 / 0.5, rel=1e-6)
    assert found["f"] == pytest.approx(math.sqrt(2) * 3 / 0.5, rel=1e-6)


def test_factors_are_found() -> None:
    rng = np.random.default_rng(2)
    loadings = np.array([[0.3, 0.0], [0.2, 0.1], [-0.2, 0.2], [0.0, 0.3], [0.1, -0.1]])
    rows = rng.normal(size=(20000, 2)) @ loadings.T + rng.normal(0, 0.05, (20000, 5))
    model = fit(rows, "release m = factor_analysis(rows, 2) with epsilon 4 delta 0.0001")["m"]
    assert model.angle(loadings.T) < 5
    assert model.get_covariance() == pytest.approx(np.cov(rows.T), abs=0.02)
    assert model.transform(rows[:3]).shape == (3, 2) and model.score(rows) > 0


def test_the_papers_loop_runs_in_both_scenarios(points: np.ndarray) -> None:
    found = fit(
        points,
        "release g = dpem(rows, 3, 4) with epsilon 4 delta 0.001\n"
        "release l = dpem_llg(rows, 3, 4) with epsilon 4 delta 0.001",
    )
    assert found["g"].n_components == found["l"].n_components == 3


def test_multipliers_are_those_of_the_page() -> None:
    program = """
use mixtures
release m = [noise_multiplier(w, 1, 70, 0.0001) for w in ["zcdp", "exact"]]
release p = pure_share("linear", 1, 5, 0.0001)
"""
    found = Session().run(Source("t.jst", program)).values
    assert found["m"] == pytest.approx([29.3, 26.7], rel=0.01) and found["p"] == pytest.approx(0.2)


@pytest.mark.skipif(not LIFE.is_file(), reason="Life Science is not beside the repository")
@pytest.mark.parametrize(
    ("epsilon", "call", "least"),
    [(0.1, "single_gaussian(rows)", 9.0), (1, "mixture(rows, 12, 5)", 10.8), (4, "mixture(rows, 12, 5)", 11.0)],
)
def test_life_science_is_as_likely_as_it_was_measured(epsilon: float, call: str, least: float) -> None:
    rows = np.loadtxt(LIFE, delimiter=",")[:, :10]
    radius = float(np.linalg.norm(rows, axis=1).max())
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = rows[order[:24059]], rows[order[24059:]]
    program = f"rows = vectors(p, radius = 1)\nrelease m = {call} with epsilon {epsilon} delta 0.0001"
    assert fit(train, program, bound=radius)["m"].score(test) + 10 * math.log(radius) > least


def test_centres_lie_within_the_bounds_of_their_columns() -> None:
    session, rng, names = Session(), np.random.default_rng(6), [f"x{i}" for i in range(40)]
    session.bind("t", {name: rng.uniform(0, 10, 500) for name in names})
    ranges = ", ".join(f"{name}: 0.0..10.0" for name in names)
    program = f"""use best
private t = bound("t") described by {{{ranges}}} protecting rows budget epsilon 1
release centres = best_clusters(vectors(t, {", ".join(names)}), 5) with epsilon 0.1
"""
    result = session.attempt(Source("p.jst", program))
    assert result.ok, result.diagnostics
    centres = result["centres"].cluster_centers_
    assert centres.shape == (5, 40) and centres.min() >= -1e-9 and centres.max() <= 10 + 1e-9
    bounded = Space.of({"columns": ["x"], "centres": [5.0], "scales": [5.0], "radius": 1.0, "norm": "l2"})
    assert Centres(bounded, np.array([[3.0], [-0.5]])).cluster_centers_.tolist() == [[10.0], [2.5]]
    raw = Space.of({"columns": ["x"], "centres": [0.0], "scales": [1.0], "radius": 4.0, "norm": "l2"})
    assert Centres(raw, np.array([[0.9]])).cluster_centers_ == [[3.6]]  # a column that is not scaled has no bounds here
