"""Cells drawn together by empirical Bayes, and forests of pairs in closed form: exact tables, loud noise, and laws."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.kernels.errors import KernelError
from jostle.kernels.graphical.empirical_bayes import posterior_means
from jostle.kernels.graphical.forest import forest_fit, pairs_worth
from jostle.kernels.graphical.model import GraphicalModel, graphical_model
from jostle.kernels.graphical.simplex import on_simplex
from jostle.kernels.graphical.synthetic import population, random_model
from jostle.kernels.noisy_array import NoiseModel, with_noise
from jostle.noise_laws import Gaussian, Laplace

LAWS = [Laplace(40.0), Gaussian(40.0 * 2**0.5)]
PRIOR = {"most": 50.0, "wide": 2.5, "weight": 3.0}
SINGLES = [["a"], ["b"], ["c"], ["d"]]
CHAIN = graphical_model(dict.fromkeys("abcd", 4), [*SINGLES, ["a", "b"], ["b", "c"], ["c", "d"]])


def with_law(table: np.ndarray, law: Laplace | Gaussian, rng: np.random.Generator) -> np.ndarray:
    draw = rng.laplace if isinstance(law, Laplace) else rng.normal
    return with_noise(table + draw(0.0, law.scale, table.shape), NoiseModel(law))


def exact_tables(truth: GraphicalModel, rows: int) -> list[np.ndarray]:
    drawn = population(truth, rows, 1)
    return [drawn.table(*truth.domain.names_of(c)) for c in truth.structure.cliques]


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
def test_cells_are_their_posterior_means_under_a_law_that_is_learned(law: Laplace | Gaussian) -> None:
    """Of twenty cells nineteen are empty and one holds 400: cells as they are have three times that error."""
    rng = np.random.default_rng(4)
    truth = np.where(rng.random(1000) < 0.05, 400.0, 0.0)
    seen = np.asarray(with_law(truth, law, rng))
    drawn = posterior_means([seen], [np.full(1000, truth.mean())], [law], **PRIOR)[0]
    assert np.abs(drawn - truth).mean() < np.abs(np.maximum(seen, 0) - truth).mean() / 3


def test_quiet_cells_stay_and_loud_ones_are_what_is_usual() -> None:
    truth = np.array([[0.0, 3.0, 900.0], [20.0, 70.0, 7.0]])
    even = np.full((2, 3), truth.mean())
    same = posterior_means([truth], [even], [Laplace(0.0)], **PRIOR)[0]
    np.testing.assert_allclose(same, truth)
    drowned = posterior_means([truth], [even], [Laplace(1e7)], **PRIOR)[0]
    assert np.ptp(drowned) < 1e-3 * drowned.mean()


def test_what_many_cells_show_is_learned_from_some_of_them() -> None:
    """More cells than the law is learned from, in more than one chunk: each is estimated, in its table's shape."""
    rng = np.random.default_rng(5)
    truth = np.where(rng.random((120, 100)) < 0.1, 500.0, 0.0)
    seen = truth + rng.laplace(0.0, 40.0, truth.shape)
    drawn = posterior_means([seen], [np.full(truth.shape, truth.mean())], [Laplace(40.0)], **PRIOR)[0]
    assert drawn.shape == truth.shape
    assert np.abs(drawn - truth).mean() < np.abs(np.maximum(seen, 0) - truth).mean() / 3


def test_exact_tables_come_back() -> None:
    tables = exact_tables(random_model(CHAIN, 3), 50_000)
    learned = forest_fit(CHAIN, tables)
    assert learned.notes["rows"] == 50_000
    for seen, fitted in zip(tables, learned.tables, strict=True):
        np.testing.assert_allclose(fitted, seen / 50_000, atol=2e-4)


@pytest.mark.parametrize("law", LAWS, ids=["laplace", "gaussian"])
def test_a_pair_that_noise_explains_joins_nothing(law: Laplace | Gaussian) -> None:
    """Columns that are independent: the model of noisy pairs is nearer to them than projected tables, three times."""
    rng, apart = np.random.default_rng(6), random_model(graphical_model(dict.fromkeys("abcd", 4), SINGLES), 2)
    truth = [1000 * apart.marginal(CHAIN.domain.names_of(c)) for c in CHAIN.structure.cliques]
    noisy = [with_law(t, law, rng) for t in truth]
    learned = forest_fit(CHAIN, noisy)
    pairs = range(len(SINGLES), len(truth))
    far = sum(np.abs(learned.tables[i] - np.outer(*(learned.marginal(v) for v in CHAIN.domain.names_of(
        CHAIN.structure.cliques[i])))).sum() for i in pairs)  # fmt: skip
    raw = sum(np.abs(on_simplex(np.asarray(noisy[i]) / 1000) - truth[i] / 1000).sum() for i in pairs)
    assert far < raw / 3


def test_pairs_tell_of_columns() -> None:
    """Where columns are loud and pairs quiet, a column is what its pairs say."""
    rng, truth = np.random.default_rng(7), random_model(CHAIN, 3)
    tables = exact_tables(truth, 5000)
    noisy = [with_law(t, Laplace(2000.0 if t.ndim == 1 else 1.0), rng) for t in tables]
    learned = forest_fit(CHAIN, noisy, 5000)
    np.testing.assert_allclose(learned.marginal("b"), tables[1] / 5000, atol=0.01)


@pytest.mark.parametrize("cliques", [
    [["a"], ["b"], ["c"], ["a", "b"], ["b", "c"], ["c", "a"]], [["a"], ["b"], ["a", "b"]], [["a", "b"], ["b", "c"]],
    [["a"], ["b"], ["c"], ["a", "b", "c"]], [["b"], ["a"], ["c"]],
])  # fmt: skip
def test_what_is_no_forest_is_refused(cliques: list[list[str]]) -> None:
    model = graphical_model(dict.fromkeys("abc", 2), cliques)
    with pytest.raises(KernelError, match="no circle"):
        forest_fit(model, [np.ones([2] * len(c)) for c in cliques])


def test_a_tree_pays_from_some_rows_on() -> None:
    worth = [pairs_worth(x) for x in (-5.0, 0.0, 59.0, 60.0, 110.0, 200.0, 1e6)]
    assert worth == sorted(worth) and worth[:4] == [0.0] * 4 and 0.4 < worth[4] < 0.6 and worth[5:] == [1.0, 1.0]
