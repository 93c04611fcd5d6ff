"""Chains that are the same at all times, stochastic gradients, and intervals: on public tables with seeded noise."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.error_laws import law_named
from jostle.kernels.graphical import learn
from jostle.kernels.graphical.model import GraphicalModel, graphical_model, steady_chain, steady_tables
from jostle.kernels.graphical.synthetic import intervals
from jostle.kernels.noisy_array import NoiseModel as Told
from jostle.kernels.noisy_array import noise_of, with_noise

STAY = np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]])
LONG = 5
PAIRS = ["ab", "bc", "cd", "de", "ea"]


def stationary() -> np.ndarray:
    found = np.linalg.matrix_power(STAY, 200)[0]
    return found / found.sum()


def steps_of(rows: float) -> np.ndarray:
    """The expected table of steps of `rows` people who are in balance, each worth one row."""
    return rows * stationary()[:, None] * STAY


def noisy(table: np.ndarray, scale: float, seed: int, kind: str = "laplace") -> np.ndarray:
    rng = np.random.default_rng([seed, 0])
    drawn = (rng.laplace if kind == "laplace" else rng.normal)(0.0, scale, table.shape)
    return with_noise(table + drawn, Told(law_named(kind, scale)))


def test_what_is_tied_is_one_potential_and_a_mean_table() -> None:
    chain = steady_chain(3, LONG)
    ties = chain.ties
    assert ties is not None and ties.lengths == [3, 9] and len(chain.structure.cliques) == LONG
    theta = np.random.default_rng(0).normal(size=12)
    value, slope = ties.infer(theta)
    for i in range(12):
        step = np.eye(12)[i] * 1e-5
        assert (ties.infer(theta + step)[0] - ties.infer(theta - step)[0]) / 2e-5 == pytest.approx(slope[i], abs=1e-9)
    model = chain.with_potentials(theta)
    assert value == pytest.approx(model.log_partition / (LONG - 1))
    np.testing.assert_allclose(slope[3:].reshape(3, 3), np.mean(model.tables[1:], axis=0))
    np.testing.assert_allclose(slope[:3], model.marginal("t1"))
    for a, b in zip(model.structure.split(model.theta)[1:], model.structure.split(model.theta)[2:], strict=False):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("way", ["naive", "cgm"])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_steady_chain_is_learned_from_its_steps_alone(way: str, kind: str) -> None:
    """All its steps have the probabilities of the truth, and it stays in balance."""
    seen = noisy(steps_of(20_000), 5.0, 1, kind)
    fit = {"naive": learn.naive_fit, "cgm": learn.cgm_fit}[way]
    model = fit(steady_chain(3, LONG), steady_tables(seen))
    for t in range(1, LONG):
        pair = model.marginal(f"t{t}", f"t{t + 1}")
        np.testing.assert_allclose(pair / pair.sum(axis=1, keepdims=True), STAY, atol=0.03)
        np.testing.assert_allclose(pair.sum(axis=1), stationary(), atol=0.02)
    held_out = [stationary(), steps_of(1.0)]
    best = float((stationary() * np.log(stationary())).sum() + (LONG - 1) * (steps_of(1.0) * np.log(STAY)).sum())
    assert best - 0.02 < model.log_likelihood(held_out) < best + 1e-9
    assert model.sample(50).codes.shape == (50, LONG)


def test_steady_tables_carry_their_noise() -> None:
    starts, steps = steady_tables(noisy(steps_of(100), 2.0, 2))
    np.testing.assert_allclose(starts, np.asarray(steps).sum(axis=1))
    known = noise_of(starts)
    assert known is not None and known.law.scale == pytest.approx(2 * 3**0.5)
    assert noise_of(steady_tables(steps_of(100))[0]) is None


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: steady_chain(3, 1), "2 to 1000 places"),
        (lambda: steady_tables(np.ones((2, 3))), "a square table"),
        (lambda: graphical_model({"a": 2, "b": 3}, [["a"], ["b"]], "exact", [[0, 1]]), "of one shape"),
        (lambda: graphical_model({"a": 2, "b": 2}, [["a"], ["b"]], "exact", [[0]]), "each of the 2 cliques once"),
        (lambda: learn.naive_fit(steady_chain(3, 4), [np.ones(3)]), "1 tables for 2 groups"),
        (lambda: learn.naive_fit(steady_chain(3, 4), [np.ones(3), np.ones(4)]), "has 4 cells and needs 9"),
    ],
)
def test_ties_that_cannot_be(ask: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask()  # type: ignore[operator]


def ring() -> GraphicalModel:
    return graphical_model(dict.fromkeys("abcde", 3), [list(p) for p in PAIRS])


def truth_and_tables(rows: float) -> tuple[GraphicalModel, np.ndarray]:
    theta = np.random.default_rng(7).normal(0, 0.7, 45)
    truth = ring().with_potentials(theta)
    return truth, rows * np.concatenate([t.ravel() for t in truth.tables])


@pytest.mark.parametrize(("noise", "within"), [(0.0, 0.002), (40.0, 0.02)])
def test_stochastic_gradients_come_to_the_truth(noise: float, within: float) -> None:
    """A hundred batches of a quarter of 20,000 rows; of noise 40·√100/25 = 16 a cell in their mean."""
    truth, exact = truth_and_tables(20_000)
    rng = np.random.default_rng(8)
    sums = rng.poisson(0.25 * exact, (100, 45)) + rng.normal(0, noise, (100, 45))
    model = learn.psgd_fit(ring(), {"sums": sums, "rate": 0.25, "noise": noise})
    assert truth.kl(model) < within < truth.kl(ring()) / 10
    assert model.notes["rows"] == pytest.approx(20_000, rel=0.02)
    with pytest.raises(ValueError, match="45 cells"):
        learn.psgd_fit(ring(), {"sums": sums[:, :9], "rate": 0.25, "noise": noise})


def test_drowned_gradients_leave_the_uniform_model() -> None:
    truth, exact = truth_and_tables(100)
    rng = np.random.default_rng(9)
    sums = 0.25 * exact + rng.normal(0, 400, (100, 45))
    assert truth.kl(learn.psgd_fit(ring(), {"sums": sums, "rate": 0.25, "noise": 400.0}, 100)) < 1.1 * truth.kl(ring())


@pytest.mark.parametrize("way", ["naive", "cgm"])
def test_intervals_hold_the_truth_as_often_as_they_say(way: str) -> None:
    """Eight data sets of one table of nine cells: of 72 intervals at 80 % at least 43 hold it, though those of one
    data set go together; and they are no wider than noise of 10√2 and sampling need."""
    pair = graphical_model({"a": 3, "b": 3}, [["a", "b"]])
    truth = pair.with_potentials(np.random.default_rng(7).normal(0, 0.7, 9))
    fit = {"naive": learn.naive_fit, "cgm": learn.cgm_fit}[way]
    hits, widths = 0, []
    for seed in range(8):
        model = fit(pair, [noisy(2000 * truth.tables[0], 10.0, 100 + seed)], 2000)
        found = intervals(model, ["a", "b"], 0.8, 15, seed)
        hits += int(((found["low"] <= truth.tables[0]) & (truth.tables[0] <= found["high"])).sum())
        widths.append(float((found["high"] - found["low"]).mean()))
    assert hits >= 43
    assert 0 < np.mean(widths) < 0.05


def test_intervals_are_of_learned_models() -> None:
    with pytest.raises(ValueError, match="learned from noisy tables"):
        intervals(ring(), ["a"])
    model = learn.naive_fit(ring(), [noisy(np.full((3, 3), 100.0), 1.0, i) for i in range(5)])
    with pytest.raises(ValueError, match="a coverage lies"):
        intervals(model, ["a"], 1.0)
    assert model.as_json()["notes"]["measured"][0] == {"mechanism": "laplace", "scale": 1.0}
    first, second = (intervals(model, "a", 0.9, 2, 1)["low"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
