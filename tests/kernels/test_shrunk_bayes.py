"""Naive Bayes that knows its noise: its posterior by integration, and what it says with and without noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.naive_bayes import CategoricalNB

from jostle.error_laws import law_named
from jostle.kernels.classifiers.fits import naive_bayes_model
from jostle.kernels.classifiers.shrink import (
    SPREADS,
    differences,
    gaussian_posterior,
    laplace_posterior,
    prior_counts,
    shrunk_bayes_model,
    value_shares,
)
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.noise_laws import Laplace

CLASSES = ["no", "yes"]


def drawn(rows: int, told: float, silent: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one attribute with five values that says the class `told` of the time, and `silent` that say nothing."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < 0.3).astype(int)
    speaks = np.where(rng.random(rows) < told, 4 * labels, rng.integers(0, 5, rows))
    return np.column_stack([speaks, rng.integers(0, 5, (rows, silent))]), labels


def noisy(cells: np.ndarray, labels: np.ndarray, scale: float, seed: int, law: str = "laplace") -> list[np.ndarray]:
    rng = np.random.default_rng([seed, 1])
    made = []
    for column in cells.T:
        table = np.zeros((2, 5))
        np.add.at(table, (labels, column), 1)
        noise = rng.laplace(0, scale, table.shape) if law == "laplace" else rng.normal(0, scale, table.shape)
        made.append(with_noise(table + (noise if scale else 0), NoiseModel(law_named(law, scale))))
    return made


def attributes(many: int) -> list[dict[str, object]]:
    return [{"name": f"a{i}", "values": [float(v) for v in range(5)]} for i in range(many)]


def columns(cells: np.ndarray) -> dict[str, np.ndarray]:
    return {f"a{i}": cells[:, i] for i in range(cells.shape[1])}


@pytest.mark.parametrize("y", [-40.0, -3.0, 0.0, 0.7, 12.0, 200.0])
@pytest.mark.parametrize(("variance", "scale"), [(25.0, 4.0), (1.0, 10.0), (900.0, 2.0)])
def test_the_posterior_under_laplace_noise_is_the_integral(y: float, variance: float, scale: float) -> None:
    def joint(d: float) -> float:
        return float(
            np.exp(-(d**2) / (2 * variance) - abs(y - d) / scale) / np.sqrt(2 * np.pi * variance) / (2 * scale)
        )

    edges = sorted({-12 * variance**0.5, min(max(y, -12 * variance**0.5), 12 * variance**0.5), 12 * variance**0.5})
    pieces = list(itertools.pairwise(edges))
    density = sum(quad(joint, a, b, epsabs=0, epsrel=1e-10, limit=200)[0] for a, b in pieces)
    mean = sum(quad(lambda d: d * joint(d), a, b, epsabs=1e-300, epsrel=1e-9, limit=200)[0] for a, b in pieces)
    log, found = laplace_posterior(np.array([[y]]), np.array([[variance]]), scale)
    assert log[0, 0] == pytest.approx(np.log(density), abs=1e-6)
    assert found[0, 0] == pytest.approx(mean / density, rel=1e-5, abs=1e-6)


def test_the_posterior_under_gaussian_noise() -> None:
    y, variance = np.array([[3.0, -8.0]]), np.array([[4.0, 1.0]])
    log, mean = gaussian_posterior(y, variance, 2.0)
    np.testing.assert_allclose(mean, [[1.5, -1.6]])
    np.testing.assert_allclose(log, -(y**2) / (2 * (variance + 4)) - np.log(2 * np.pi * (variance + 4)) / 2)


def test_far_from_what_is_expected_a_cell_says_no_more() -> None:
    y = np.array([[20.0, 2000.0]])
    mean = laplace_posterior(y, np.full((1, 2), 9.0), 5.0)[1]
    assert mean[0, 1] == pytest.approx(9 / 5, rel=1e-6) and mean[0, 0] > 1.7


def test_without_noise_differences_are_what_they_are() -> None:
    y, expected = [np.array([[1.0, -1.0], [-2.0, 2.0]])], [np.full((2, 2), 5.0)]
    np.testing.assert_array_equal(differences(y, expected, Laplace(0.0))[0], y[0])
    tables = [np.array([[8.0, 2.0], [1.0, 9.0]]), np.array([[5.0, 5.0], [4.0, 6.0]])]
    np.testing.assert_allclose(prior_counts(tables, 0.0), [10.0, 10.0])
    np.testing.assert_allclose(value_shares(tables[0], 20, 0.0), [10 / 22, 12 / 22])


def test_without_noise_it_is_naive_bayes() -> None:
    cells, labels = drawn(3000, 0.4, 3, 2)
    model = shrunk_bayes_model(CLASSES, attributes(4), noisy(cells, labels, 0.0, 2))
    theirs = CategoricalNB(alpha=1, min_categories=[5] * 4).fit(cells, labels)
    assert (model.predict(columns(cells)) == theirs.predict(cells)).mean() > 0.995


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_where_all_is_noise_the_majority_answers(law: str) -> None:
    cells, labels = drawn(1500, 0.0, 7, 3)
    said = [
        shrunk_bayes_model(CLASSES, attributes(8), noisy(cells, labels, 30.0, seed, law)).predict(columns(cells)).mean()
        for seed in range(20)
    ]
    plain = [
        naive_bayes_model(CLASSES, attributes(8), noisy(cells, labels, 30.0, seed, law)).predict(columns(cells)).mean()
        for seed in range(20)
    ]
    assert np.mean(said) < 0.2 * np.mean(plain)


def test_one_voice_among_many_is_heard() -> None:
    cells, labels = drawn(1500, 0.7, 11, 4)
    gained = []
    for seed in range(20):
        tables = noisy(cells, labels, 40.0, seed)
        right = [
            (model(CLASSES, attributes(12), tables).predict(columns(cells)) == labels).mean()
            for model in (naive_bayes_model, shrunk_bayes_model)
        ]
        gained.append(right[1] - right[0])
    assert np.mean(gained) > 0.05


def test_every_number_stays_finite() -> None:
    """Noise far above all counts, a class and a value that nobody has, and one value alone."""
    rng = np.random.default_rng(6)
    for scale in (1e-9, 1.0, 1e6):
        tables = [with_noise(rng.laplace(0, scale, (2, v)) + np.array([[9.0], [0.0]]), NoiseModel(Laplace(scale)))
                  for v in (1, 5)]  # fmt: skip
        named = [{"name": "a0", "values": [0.0]}, attributes(2)[1]]
        model = shrunk_bayes_model(CLASSES, named, tables)
        assert np.isfinite(model.base).all() and all(np.isfinite(w).all() for _, w in model.weights.values())
    assert SPREADS[0] == 0
