"""Mixtures drawn to one Gaussian: exact sums leave them as they are, noise makes them that one, nothing breaks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from jostle.kernels import KernelError
from jostle.kernels.mixtures.em import (
    map_start,
    mixture_frames,
    mixture_prior,
    mixture_start,
    plain_frames,
    shrunk_gaussian_step,
    shrunk_mixture_step,
    synthetic_mixture,
    with_shares,
    with_tails,
)
from jostle.kernels.mixtures.gaussians import GaussianMixture
from jostle.kernels.rowprograms import WEIGHTS
from jostle.privacy.rows.norms import GRID, whole_weights, within_ball
from tests.stdlib.test_mixtures import fit


def facts(d: int) -> dict[str, Any]:
    return {"columns": [f"x{i}" for i in range(d)], "centres": [0.0] * d, "scales": [1.0] * d, "radius": 1.0}


def sums_of(model: GaussianMixture, frames: dict[str, Any], rows: np.ndarray, noise: float = 0.0) -> dict[str, Any]:
    """What a round sees of rows (n, d) in units of the ball, exactly, said to carry so much noise."""
    shares = model.predict_proba(model.space.outside(rows))
    frame = np.einsum("nkd,kde->kne", rows[:, None] - model.means, frames["factors"]) / frames["radius"]
    frame /= np.maximum(1, np.linalg.norm(frame, axis=2, keepdims=True))
    sums = {
        "count": shares.sum(axis=0), "first": np.einsum("nk,kne->ke", shares, frame),
        "second": np.einsum("nk,kne,knf->kef", shares, frame, frame),
    }  # fmt: skip
    return {**sums, **{f"{name}_noise": noise for name in sums}}


@pytest.fixture(scope="module")
def made() -> GaussianMixture:
    return synthetic_mixture(3, 3, 4.0, seed=5)


@pytest.fixture(scope="module")
def points(made: GaussianMixture) -> np.ndarray:
    return np.asarray(made.sample(6000, 1)[0])


def test_exact_sums_are_fitted_as_they_are(points: np.ndarray) -> None:
    prior = mixture_prior(facts(3))
    frames = mixture_frames(prior)
    one = shrunk_gaussian_step(prior, sums_of(prior, frames, points), frames)
    np.testing.assert_allclose(one.means[0], points.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(one.covariances[0], np.cov(points.T), atol=2e-3)


def test_rounds_without_noise_find_the_groups(made: GaussianMixture, points: np.ndarray) -> None:
    """Each round is an M-step; the groups' means come out."""
    prior = mixture_prior(facts(3))
    frames = mixture_frames(prior)
    pooled = shrunk_gaussian_step(prior, sums_of(prior, frames, points), frames)
    model = mixture_start(pooled, 3, 0)
    for _ in range(20):
        frames = mixture_frames(model)
        model = shrunk_mixture_step(model, sums_of(model, frames, points), frames, pooled)
    for middle in made.means:
        assert np.linalg.norm(model.means - middle, axis=1).min() < 0.02


def test_what_noise_explains_is_one_shape_and_even(points: np.ndarray) -> None:
    """Sums that are said to carry much noise move nothing: components keep their shape, places and even shares."""
    prior = mixture_prior(facts(3))
    frames = mixture_frames(prior)
    pooled = shrunk_gaussian_step(prior, sums_of(prior, frames, points / 2), frames)
    start = mixture_start(pooled, 4, 0)
    frames = mixture_frames(start)
    model = shrunk_mixture_step(start, sums_of(start, frames, points / 2, 1e6), frames, pooled)
    np.testing.assert_allclose(model.weights, 0.25)
    np.testing.assert_allclose(model.means, start.means)
    np.testing.assert_allclose(model.covariances, start.covariances, rtol=1e-9)


def test_a_map_starts_where_rows_are() -> None:
    rng, middles = np.random.default_rng(2), np.array([[-0.5, -0.4], [0.5, 0.3]])
    rows = middles[rng.integers(0, 2, 4000)] + rng.normal(0, 0.05, (4000, 2))
    prior = mixture_prior(facts(2))
    frames = mixture_frames(prior)
    pooled = shrunk_gaussian_step(prior, sums_of(prior, frames, rows), frames)
    axis = np.linspace(-0.7, 0.7, 8)
    places = np.stack([a.ravel() for a in np.meshgrid(axis, axis)], axis=1)
    nearest = ((rows[:, None] - places) ** 2).sum(axis=2).argmin(axis=1)
    seen = {"count": np.bincount(nearest, minlength=64) + rng.laplace(0, 5, 64), "count_noise": 5 * 2**0.5}
    model = map_start(facts(2), places, seen, pooled, 2)
    assert max(np.linalg.norm(model.means - middle, axis=1).min() for middle in middles) < 0.1
    assert np.trace(model.covariances[0]) < np.trace(pooled.covariances[0]) / 2
    nothing = map_start(facts(2), places, {"count": np.zeros(64), "count_noise": 5.0}, pooled, 2)
    np.testing.assert_allclose(nothing.means, mixture_start(pooled, 2, 0).means)


def test_tails_leave_no_row_impossible(made: GaussianMixture) -> None:
    prior = mixture_prior(facts(3))
    narrow = GaussianMixture(prior.space, np.ones(1), np.zeros((1, 3)), 1e-6 * np.eye(3)[None])
    for share in (0.1, 1.0):
        model = with_tails(narrow, narrow, share)
        assert model.weights.sum() == pytest.approx(1)
        assert model.score_samples(np.full((1, 3), 0.5))[0] > -10
    with pytest.raises(KernelError, match="at most 1"):
        with_tails(narrow, narrow, 0.0)


@pytest.mark.parametrize("spend", ["epsilon 4", "rho 1"])
def test_a_mixture_is_found_beside_its_gaussian(made: GaussianMixture, points: np.ndarray, spend: str) -> None:
    program = f"release a = tailed_gaussian(rows) with {spend}\nrelease b = shrunk_mixture(rows, 3, 3) with {spend}"
    found = fit(points, program, "epsilon 100" if "epsilon" in spend else "rho 100")
    test = made.sample(3000, 2)[0]
    assert found["b"].score(test) > found["a"].score(test) + 0.3
    assert found["b"].score(test) > made.score(test) - 0.6
    assert len(found["a"].weights) == 7 and len(found["b"].weights) == 10


def test_shares_go_where_rows_are(made: GaussianMixture, points: np.ndarray) -> None:
    """Rounds for the shares alone find those of the mixture that rows were drawn from, and raise the likelihood."""
    model = GaussianMixture(made.space, np.array([0.9, 0.05, 0.05]), made.means, made.covariances)
    for _ in range(12):
        better = with_shares(model, {"count": model.predict_proba(points).sum(axis=0), "count_noise": 0.0})
        assert better.score(points) >= model.score(points) - 1e-9
        model = better
    np.testing.assert_allclose(model.weights, made.weights, atol=0.03)


def test_shares_that_noise_explains_stay(made: GaussianMixture) -> None:
    same = with_shares(made, {"count": 1000 * made.weights + [40, -30, 20], "count_noise": 50.0})
    np.testing.assert_allclose(same.weights, made.weights)
    hostile = with_shares(made, {"count": np.array([-1e9, 5.0, 1e9]), "count_noise": 1.0})
    assert (hostile.weights > 0).all() and hostile.weights.sum() == pytest.approx(1)
    with pytest.raises(KernelError, match="other components"):
        with_shares(made, {"count": np.zeros(2), "count_noise": 1.0})


def test_a_row_counts_once_among_gaussians_upon_each_other() -> None:
    """By brute force: the counts of all sizes of a Gaussian change by at most 1 in all for a row, wherever it lies."""
    prior = mixture_prior(facts(2))
    narrow = GaussianMixture(prior.space, np.ones(1), np.array([[0.1, 0.2]]), 1e-3 * np.eye(2)[None])
    view = WEIGHTS["responsibilities"](2, **plain_frames(with_tails(narrow, narrow)))
    axis = np.linspace(-1, 1, 41)
    rows = np.stack([a.ravel() for a in np.meshgrid(axis, axis)], axis=1)
    weights = whole_weights(view.program(within_ball(rows, 1.0, "l2").astype(float))[0])
    assert weights.min() >= 0 and weights.sum(axis=0).max() <= GRID
    assert weights.sum(axis=0).min() > 0.99 * GRID


@pytest.mark.parametrize(("options", "many"), [
    ("components = 4, rounds = 2, alike = false", 11), ("components = 58", 65), ("on_map = 0", 12),
])  # fmt: skip
def test_parts_are_no_more_than_was_given(points: np.ndarray, options: str, many: int) -> None:
    """With room to count the shares or without it: parts of more than the whole would be refused."""
    program = f"release m = shrunk_mixture(rows, {options}) with epsilon 1"
    model = fit(points[:500], program, "epsilon 1")["m"]
    assert np.isfinite(model.score(points)) and len(model.weights) == many


@pytest.mark.parametrize("rows", [
    np.zeros((0, 2)), np.zeros((1, 2)), np.full((300, 2), math.nan), np.full((300, 2), 0.5), np.zeros((5, 1)),
    np.full((50, 3), 1e300), np.random.default_rng(0).choice([-1.0, 1.0], (200, 4)),
], ids=["empty", "one row", "nan", "constant", "column", "huge", "corners"])  # fmt: skip
@pytest.mark.parametrize("spend", ["epsilon 0.001 delta 0.000001", "epsilon 8 delta 0.01"])
def test_fits_are_positive_definite_whatever_the_rows(rows: np.ndarray, spend: str) -> None:
    program = f"release a = tailed_gaussian(rows) with {spend}\nrelease b = shrunk_mixture(rows, 7, 3) with {spend}"
    for model in fit(rows, program).values():
        assert np.linalg.eigvalsh(model.covariances).min() > 0 and np.isfinite(model.covariances_).all()
        assert model.weights_.sum() == pytest.approx(1) and (model.weights_ > 0).all()
        assert np.isfinite(model.score_samples(np.full((1, rows.shape[1]), 0.3))).all()


@pytest.mark.parametrize(("call", "said"), [
    ("shrunk_mixture(rows, 65)", "components are a whole number"), ("shrunk_mixture(rows, beside = 0)", "beside"),
    ("shrunk_mixture(rows, on_gaussian = 0.8)", "parts of the amount"),
    ("tailed_gaussian(rows, 1)", "part of the amount"), ("shrunk_mixture(rows, 3, 0)", "rounds"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(call: str, said: str, points: np.ndarray) -> None:
    with pytest.raises(Exception, match=said):
        fit(points[:20], f"a = {call} with epsilon 1")
