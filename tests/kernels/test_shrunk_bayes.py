"""Naive Bayes that knows its noise: its posterior by integration, and what it says with and without noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.naive_bayes import CategoricalNB

from jostle.error_laws import law_named
from jostle.formulas import Noised
from jostle.kernels.classifiers import shrink
from jostle.kernels.classifiers.fits import naive_bayes_model
from jostle.kernels.classifiers.growing import tree_split, tree_split_by, tree_start
from jostle.kernels.classifiers.models import AdditiveClassifier
from jostle.kernels.classifiers.shrink import (
    SPREADS,
    _alike,
    bayes_tree_model,
    class_means_model,
    differences,
    gaussian_posterior,
    has_order,
    laplace_posterior,
    prior_counts,
    shrunk_bayes_model,
    value_shares,
)
from jostle.kernels.noisy_array import NoiseModel, law_of, with_noise
from jostle.noise_laws import Gaussian, Laplace
from jostle.run.externals import _to_python

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
    assert (model.places(columns(cells)) == theirs.predict(cells)).mean() > 0.995


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_where_all_is_noise_the_majority_answers(law: str) -> None:
    cells, labels = drawn(1500, 0.0, 7, 3)
    said = [
        shrunk_bayes_model(CLASSES, attributes(8), noisy(cells, labels, 30.0, seed, law)).places(columns(cells)).mean()
        for seed in range(20)
    ]
    plain = [
        naive_bayes_model(CLASSES, attributes(8), noisy(cells, labels, 30.0, seed, law)).places(columns(cells)).mean()
        for seed in range(20)
    ]
    assert np.mean(said) < 0.2 * np.mean(plain)


def test_one_voice_among_many_is_heard() -> None:
    cells, labels = drawn(1500, 0.7, 11, 4)
    gained = []
    for seed in range(20):
        tables = noisy(cells, labels, 40.0, seed)
        right = [
            (model(CLASSES, attributes(12), tables).places(columns(cells)) == labels).mean()
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


# Neighbours that speak alike --------------------------------------------------------------------------


@pytest.mark.parametrize("even", [False, True])
def test_what_neighbours_say_alike_is_the_posterior_of_a_walk(even: bool) -> None:
    """Against the normal law of the whole table, whose covariance is written out; chance is in the evidence alone."""
    rng = np.random.default_rng(3)
    expected, deviation = rng.gamma(2, 10, (2, 1 if even else 6)) * np.ones(6), 4.0
    gap = rng.normal(0, 8, (2, 6))
    logs, means = _alike(gap, expected, deviation)
    at, f = np.arange(6), np.arange(1, 6)
    waves = np.sqrt(2 / 6) * np.cos(np.pi * np.outer(at + 0.5, f) / 6)
    walk = waves @ np.diag(f**-2.0 / np.mean(f**-2.0)) @ waves.T
    assert np.isclose(np.trace(walk), 5)
    for g, spread in enumerate(SPREADS[1:]):
        total = 0.0
        for c in range(2):
            scale = np.diag(np.sqrt(expected[c] * expected.mean()))
            prior, noise = spread**2 * scale @ walk @ scale, deviation**2 * np.eye(6)
            expect = prior @ np.linalg.solve(prior + noise, gap[c])
            np.testing.assert_allclose(means[g].reshape(2, 6)[c], expect, atol=1e-9)
            for sign, law in ((-1, noise + np.diag(expected[c]) + prior), (1, noise + np.diag(expected[c]))):
                total += sign * (gap[c] @ np.linalg.solve(law, gap[c]) + np.linalg.slogdet(law)[1]) / 2
        if even:  # where cells differ, what chance makes of two waves is taken for independent
            assert np.isclose(logs[g], total / 2)  # one class of two follows from the other


def test_what_chance_explains_is_silent() -> None:
    """Counts that differ as Poisson's do, with hardly any noise: nearly all that they seem to say is taken away."""
    rng, expected = np.random.default_rng(8), np.full((3, 8), 20.0)
    gaps = [rng.poisson(20.0, (3, 8)) - 20.0 for _ in range(8)]
    said = differences(gaps, [expected] * 8, Laplace(1.0))
    assert np.sum(np.square(said)) < 0.4 * np.sum(np.square(gaps))
    voices = [20.0 * np.sign(gap) for gap in gaps]
    assert np.sum(np.square(differences(voices, [expected] * 8, Laplace(1.0)))) > 0.9 * np.sum(np.square(voices))


def test_attributes_that_together_gain_nothing_are_silent_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, expected = np.random.default_rng(9), [np.full((2, 10), 100.0)] * 8
    noise = [rng.laplace(0, 8, (2, 10)) + rng.normal(0, 10, (2, 10)) for _ in range(8)]
    voices = [gap + 50.0 * np.outer([1, -1], rng.choice([-1, 1], 10)) for gap in noise]

    def said(gaps: list[np.ndarray]) -> float:
        return float(np.sum(np.square(differences(gaps, expected, Laplace(8.0)))))

    silent, loud = said(noise), said(voices)
    monkeypatch.setattr(shrink, "SPEAKS", 1.0)
    assert silent < 0.3 * said(noise)
    assert loud == pytest.approx(said(voices))


@pytest.mark.parametrize("law", [Laplace(20.0), Gaussian(28.0)])
def test_a_trend_is_seen_through_noise_where_values_have_an_order(law: Laplace | Gaussian) -> None:
    rng = np.random.default_rng(5)
    expected = np.full((2, 24), 100.0)
    trend = np.outer([1, -1], np.linspace(-40, 40, 24))
    off = {True: 0.0, False: 0.0}
    for _ in range(40):
        noise = rng.laplace(0, 20, (2, 24)) if isinstance(law, Laplace) else rng.normal(0, 28, (2, 24))
        for ordered in off:
            off[ordered] += float(((differences([trend + noise], [expected], law, [ordered])[0] - trend) ** 2).sum())
    assert off[True] < 0.75 * off[False]


def test_numbers_have_an_order_and_texts_and_truths_have_none() -> None:
    assert has_order((1.0, 2.0, 5.0)) and has_order((0, 1, 2))
    assert not has_order((0.0, 1.0)) and not has_order(("a", "b", "c")) and not has_order((False, True, 2.0))


# Bayes in the leaves of a tree ------------------------------------------------------------------------


def in_leaves(scale: float) -> list[float]:
    """How probable the first class is by (a, b) = (0, 0), (0, 1), (1, 0), (1, 1): their exclusive or decides, and `a`
    is asked. The counts are exact, and said to have noise of this scale."""
    tree = tree_split(tree_start([{"name": n, "values": [0.0, 1.0]} for n in "abc"]), [0])
    own = np.array([[[400, 10], [10, 400]], [[10, 100], [100, 10]]], dtype=float)  # leaf, value of b, class
    even = np.stack([own.sum(axis=1) / 2] * 2, axis=1)
    vectors = [own.sum(axis=1), own, even]
    counts = [with_noise(v.ravel(), NoiseModel(Laplace(scale))) for v in vectors]
    assert [len(tree_split_by(tree, name).tree.leaves) * 2 for name in "abc"] == [len(v) for v in counts]
    attributes = [{"name": n, "values": [0.0, 1.0], "edges": []} for n in "abc"]
    model = bayes_tree_model(CLASSES, attributes, tree, counts)
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 0, 0, 0]}
    return [float(p) for p in model.probabilities(rows)[:, 0]]


def test_leaves_keep_what_sets_them_apart_as_far_as_it_is_no_noise() -> None:
    low = in_leaves(0.0)
    assert low[0] > 0.95 and low[1] < 0.05 and low[2] < 0.15 and low[3] > 0.85
    loud = in_leaves(100.0)  # here both leaves say what all rows say, most of which are in the first
    assert loud[2] > 0.5 > loud[3] and loud[0] > 0.5 > loud[1]


def test_numbers_under_one_noise_arrive_in_kernels_with_its_law() -> None:
    law = Laplace(2.0, 1.0)
    assert law_of(_to_python([Noised(1.0, law), Noised(4.0, law)])) == law
    assert law_of(_to_python([[Noised(1.0, law)], [Noised(4.0, law)]])[1]) == law
    assert law_of(_to_python([Noised(1.0, law), Noised(4.0, Laplace(3.0, 1.0))])) == Laplace(0.0)
    assert law_of(_to_python([Noised(1.0, law), 4.0])) == Laplace(0.0)


def means(rows: int, noise: float, others: AdditiveClassifier | None = None) -> AdditiveClassifier:
    """Of three classes whose means of `n` are apart, and of `f` with two values that say nothing."""
    rng = np.random.default_rng(8)
    labels, n, f = rng.integers(0, 3, rows), rng.normal(size=rows), rng.integers(0, 2, rows)
    levels = np.clip(np.rint(4 + n + 1.5 * labels), 0, 9)
    codes = [[2 * np.arange(10) / 9 - 1], [np.array([-1.0, 1.0])]]
    rows_of = np.stack([np.ones(rows), 2 * levels / 9 - 1, 2.0 * f - 1], axis=1)
    sums = np.stack([rows_of[labels == c].sum(axis=0) for c in range(3)]) + noise * rng.normal(size=(3, 3))
    listed = [{"name": "n", "values": list(range(10))}, {"name": "f", "values": ["a", "b"]}]
    return class_means_model(["x", "y", "z"], listed, codes, sums, noise, others)


def test_class_means_tell_classes_along_a_number() -> None:
    model = means(4000, 0)
    np.testing.assert_array_equal(model.places({"n": [2, 5, 9], "f": ["a", "b", "a"]}), [0, 1, 2])
    (_, by_number), (_, by_sign) = model.weights["n"], model.weights["f"]
    assert np.ptp(by_number, axis=0).max() > 2 and np.ptp(by_sign, axis=0).max() < 0.1


def test_class_means_say_less_the_more_noise_they_have() -> None:
    apart = [np.ptp(means(400, noise).weights["n"][1], axis=0).max() for noise in (0, 50, 1000)]
    assert apart[0] > 1.5 * apart[1] > 0 and apart[2] < 0.1, apart


def test_class_means_go_on_with_what_other_attributes_say() -> None:
    other = naive_bayes_model(["x", "y", "z"], [{"name": "w", "values": ["p", "q"]}], [np.array([[9.0, 1]] * 3)])
    assert list(means(100, 0, other).weights) == ["n", "f", "w"]
