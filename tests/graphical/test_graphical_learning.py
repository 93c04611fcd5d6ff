"""Learning from tables: gradients, the dual of the E-step, message passing beside it, and what noise does."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jostle.error_laws import law_named
from jostle.kernels.graphical import learn
from jostle.kernels.graphical.learn import on_simplex
from jostle.kernels.graphical.model import GraphicalModel, graphical_model
from jostle.kernels.graphical.synthetic import population, random_model
from jostle.kernels.noisy_array import NoiseModel as Told
from jostle.kernels.noisy_array import with_noise
from jostle.noise_laws import Gaussian, Laplace
from tests.experiments.graphical import noised, tables_of

PAIRS = ["ab", "bc", "cd", "de", "ea"]


def ring(values: int = 3) -> GraphicalModel:
    return graphical_model(dict.fromkeys("abcde", values), [list(p) for p in PAIRS])


@pytest.fixture(scope="module")
def case() -> tuple[GraphicalModel, list[np.ndarray]]:
    """A truth on a ring, and the tables of 20,000 rows of it."""
    truth = random_model(ring(), 0)
    return truth, tables_of(truth, population(truth, 20_000, 1))


def test_the_gradient_of_the_log_partition_function_is_the_marginals() -> None:
    structure, rng = ring().structure, np.random.default_rng(1)
    theta = rng.normal(size=sum(structure.lengths))
    mu = structure.infer(theta)[1]
    for i in range(0, len(theta), 4):
        step = np.zeros_like(theta)
        step[i] = 1e-5
        slope = (structure.infer(theta + step)[0] - structure.infer(theta - step)[0]) / 2e-5
        assert slope == pytest.approx(mu[i], abs=1e-9)


def test_the_fit_solves_its_equations(case: tuple) -> None:
    """μ − μ̃ = −2λθ, and with next to no ridge on true tables their marginals come back."""
    truth, tables = case
    structure = truth.structure
    target = np.concatenate([t.ravel() for t in tables]) / 20_000
    theta = learn.maximum_likelihood(structure, target, 0.01)
    np.testing.assert_allclose(structure.infer(theta)[1] - target, -0.02 * theta, atol=2e-4)
    theta = learn.maximum_likelihood(structure, target, 1e-9)
    np.testing.assert_allclose(structure.infer(theta)[1], target, atol=1e-3)


def test_variables_that_nothing_connects_are_independent() -> None:
    """The table of a and d is a product, as calibrating over it says, too; that of a and c is none."""
    m = random_model(graphical_model({"a": 3, "b": 2, "c": 2, "d": 4}, [["a", "b"], ["b", "c"], ["d"]]), 5)
    for names in (["a", "d"], ["d", "c"], ["a", "c"], ["c", "a", "d"]):
        clique = m.domain.clique(names)
        np.testing.assert_allclose(m.marginal(names), m._with({}, clique).marginals()[-1], atol=1e-14)


def test_projection_on_the_simplex() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        y = rng.normal(0, 1, (3, 4))
        p = on_simplex(y)
        assert p.min() >= 0 and p.sum() == pytest.approx(1)
        # nearest: no other point of the simplex makes an acute angle
        for q in rng.dirichlet(np.ones(12), 20).reshape(-1, 3, 4):
            assert ((y - p) * (q - p)).sum() <= 1e-9
    assert (on_simplex(np.full(4, -1e6)) == 0.25).all()


def test_tables_agree_on_single_variables() -> None:
    model = graphical_model({"a": 2, "b": 3, "c": 4}, [["a", "b", "c"], ["c", "b"], ["a"]])
    rng = np.random.default_rng(6)
    tables = [rng.normal(size=shape) for shape in model.structure.shapes]
    made = learn.consistent_tables(model.structure, tables, [1.0, 2.0, 0.001])
    assert [t.sum() for t in made] == pytest.approx([1, 1, 1])
    np.testing.assert_allclose(made[0].sum(axis=(1, 2)), made[2])
    np.testing.assert_allclose(made[0].sum(axis=(0, 2)), made[1].sum(axis=0))
    np.testing.assert_allclose(made[0].sum(axis=(0, 1)), made[1].sum(axis=1))
    np.testing.assert_allclose(made[2], tables[2] + (1 - tables[2].sum()) / 2, atol=1e-5)  # the precise one stays
    joint = rng.dirichlet(np.ones(24)).reshape(2, 3, 4)
    true = [joint, joint.sum(axis=0).T, joint.sum(axis=(1, 2))]
    for before, after in zip(true, learn.consistent_tables(model.structure, true, [1.0, 2.0, 3.0]), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-12)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [5.0, 200.0])
def test_the_e_step_has_no_duality_gap(case: tuple, kind: str, scale: float) -> None:
    """The dual bounds the true objective from above; at n = N·μ(θ + l) the two meet, so neither can be improved."""
    truth, tables = case
    structure, rows = truth.structure, 20_000.0
    rng = np.random.default_rng(3)
    theta = rng.normal(0, 0.3, len(truth.theta))
    y = np.concatenate([t.ravel() for t in tables]) + rng.laplace(0, scale, len(theta))
    step, dual = learn.e_step(structure, theta, y, rows, learn.CellNoise(law_named(kind, scale)))
    log_partition, mu = structure.infer(theta + step)
    n = rows * mu
    # θ·n + H(n) = N·A(θ + l) − l·n for n in the family
    likelihood = np.abs(y - n).sum() / scale if kind == "laplace" else ((y - n) ** 2).sum() / (2 * scale**2)
    primal = log_partition - float(step @ n) / rows - likelihood / rows
    assert 0 <= dual - primal + 1e-9 < 2e-6
    if kind == "laplace":
        assert np.abs(step).max() <= 1 / scale * (1 + 1e-12)


def nlbp(
    structure: object, theta: np.ndarray, noisy: np.ndarray, rows: float, noise: learn.CellNoise, *,
    damping: float = 0.02, rounds: int = 3000, tolerance: float = 1e-5,
) -> np.ndarray:  # fmt: skip
    """The E-step as in the paper (Algorithm 1, after Sun, Sheldon and Kumar 2015): flat tables n of `rows` rows.

    n ← (1 − α)n + α·N·μ(θ + ∇log p(y | n)), α = `damping`. Under Laplace noise the gradient is a sign, which never
    settles: what converges is the average of n over the later half of the rounds, and that is returned. Stops when
    it moves by less than `tolerance` (ℓ₁ a table, as shares of N) over a quarter of the rounds so far.
    """
    n, scales = rows * structure.infer(theta)[1], noise.scale * np.asarray(noise.relative, dtype=float)
    total, average, at = np.zeros_like(n), n, 0
    mark, check = np.zeros_like(n), 64
    for i in range(1, rounds + 1):
        gap = n - noisy
        pull = -np.sign(gap) / scales if isinstance(noise.law, Laplace) else -gap / scales**2
        n = (1 - damping) * n + damping * rows * structure.infer(theta + pull)[1]
        total += n
        if i == check:
            now = (total - mark) / (i - at)
            change = float(np.abs(now - average).sum()) / (rows * len(structure.lengths))
            if i > 64 and change < tolerance:
                return now
            average, mark, at, check = now, total.copy(), i, min(2 * check, rounds)
    return average


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_message_passing_agrees_with_the_dual(case: tuple, kind: str) -> None:
    truth, tables = case
    structure, rows, noise = truth.structure, 20_000.0, learn.CellNoise(law_named(kind, 20.0))
    rng = np.random.default_rng(4)
    theta = np.zeros_like(truth.theta)
    y = np.concatenate([t.ravel() for t in tables]) + rng.laplace(0, 20.0, len(theta))
    step, _ = learn.e_step(structure, theta, y, rows, noise)
    exact = structure.infer(step)[1]
    found = nlbp(structure, theta, y, rows, noise) / rows
    assert np.abs(found - exact).sum() / len(PAIRS) < 0.003


def test_long_steps_end_where_short_ones_do(case: tuple) -> None:
    truth, tables = case
    given = noised(tables, 1.0, 5)
    long = learn.cgm_fit(ring(), given, 20_000, 6)
    theta, step = np.zeros_like(truth.theta), None
    y = np.concatenate([np.asarray(t).ravel() for t in given])
    for _ in range(6):
        step, _ = learn.e_step(truth.structure, theta, y, 20_000, learn.CellNoise(Laplace(5.0)), step, loose=True)
        theta = theta + step
    short = GraphicalModel(truth.structure, theta)
    assert truth.kl(long) == pytest.approx(truth.kl(short), abs=0.05 * truth.kl(ring()))
    assert long.jostle_fields["steps"] == 6
    assert learn.cgm_fit(ring(), given, 20_000, 0).jostle_fields["steps"] > 6  # a public number of them


@pytest.mark.parametrize("learned", [learn.naive_fit, learn.cgm_fit], ids=["naive", "cgm"])
def test_more_rows_or_less_noise_come_nearer_to_the_truth(case: tuple, learned: object) -> None:
    """Divergences fall by the page: 20,000 rows at ε = 1 leave less than a hundredth of the uniform model's."""
    truth, tables = case
    far = truth.kl(ring())
    found = [truth.kl(learned(ring(), noised(tables, epsilon, 7), 20_000)) for epsilon in (0.01, 0.1, 1)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < far / 100
    assert found[0] < 1.02 * far


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_noise_s_own_likelihood_and_a_prior_come_nearer_than_the_naive_estimate(kind: str) -> None:
    """Of twelve truths nearly all, where noise is large beside cells; with little noise the two are the same."""
    nearer, gained = 0, []
    for seed in range(12):
        truth = random_model(ring(), 50 + seed)
        given = noised(tables_of(truth, population(truth, 2000, seed)), 0.1, seed, kind)
        naive, collective = (truth.kl(fit_of(ring(), given, 2000)) for fit_of in (learn.naive_fit, learn.cgm_fit))
        nearer += collective < naive
        gained.append(naive / collective)
    assert nearer >= 8 and np.mean(gained) > 1.02
    clear = noised(tables_of(truth, population(truth, 100_000, 1)), 5.0, 1, kind)
    assert learn.cgm_fit(ring(), clear).kl(learn.naive_fit(ring(), clear)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("learned", [learn.naive_fit, learn.cgm_fit], ids=["naive", "cgm"])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_drowned_in_noise_a_model_is_near_uniform_and_says_so(case: tuple, learned: object, kind: str) -> None:
    truth, _ = case
    few = tables_of(truth, population(truth, 100, 8))
    for seed in range(5):
        model = learned(ring(), noised(few, 0.02, seed, kind))  # N·ε = 2, and N read off the tables
        assert truth.kl(model) < 1.02 * truth.kl(ring())
        assert "near uniform" in model.jostle_fields["warning"]


def test_enough_rows_give_no_warning(case: tuple) -> None:
    _, tables = case
    assert learn.naive_fit(ring(), noised(tables, 1.0, 9)).jostle_fields["warning"] == ""


def test_the_number_of_rows_is_read_off_the_tables(case: tuple) -> None:
    """Five tables of nine cells with noise of scale 5: a deviation of 5·√(2·9/5) < 10 rows."""
    _, tables = case
    assert abs(learn.rows_in(noised(tables, 1.0, 10)) - 20_000) < 70
    quiet = [
        with_noise(np.full((3, 3), 10.0), Told(law_named("laplace", 1e-3))),
        with_noise(np.full(9, 99.0), Told(law_named("laplace", 1e3))),
    ]
    assert learn.rows_in(quiet) == pytest.approx(90, abs=1e-3)
    assert learn.rows_in([np.zeros(3)]) == 1
    assert learn.rows_in([], 12) == 12


def test_tables_without_noise_are_exact(case: tuple) -> None:
    truth, tables = case
    model = learn.naive_fit(ring(), [t.astype(float) for t in tables])
    assert truth.kl(model) < 0.01
    assert learn.cgm_fit(ring(), [t.astype(float) for t in tables]).kl(model) == pytest.approx(0, abs=1e-9)


def test_learning_refuses_what_cannot_be(case: tuple) -> None:
    _, tables = case
    given = noised(tables, 1.0, 11)
    mixed = [*given[:-1], noised(tables, 0.1, 11)[-1]]
    for ask, message in [
        (lambda: learn.naive_fit(ring(), given[:-1]), "4 tables for 5 cliques"),
        (lambda: learn.naive_fit(ring(4), given), "has 9 cells and needs 16"),
        (lambda: learn.naive_fit(ring(), given, 100, -1), "a ridge is a positive number"),
        (lambda: learn.naive_fit(ring(), given, float("nan")), "the number of rows is a number"),
        (lambda: learn.cgm_fit(ring(), given, 100, 0.5), "at least one step"),
        (lambda: learn.cgm_fit(ring(), [*given[:-1], with_noise(given[-1], Told(Gaussian(5.0)))]), "several kinds"),
        (lambda: learn.rows_in([]), "give it"),
    ]:
        with pytest.raises(ValueError, match=message):
            ask()
    for fit_of in (learn.naive_fit, learn.cgm_fit):  # tables of several scales each count by their own noise
        assert fit_of(ring(), mixed).domain == ring().domain


def test_a_frame_has_the_values_of_the_source() -> None:
    model = graphical_model({"age": range(20, 25), "city": ["Ankara", "Bergen"], "half": [0.5, 1.5]}, [["age", "city"]])
    frame = model.frame(50)
    assert list(frame.columns) == ["age", "city", "half"]
    assert frame["age"].dtype == np.int64 and set(frame["age"]) <= set(range(20, 25))
    assert list(frame["city"].cat.categories) == ["Ankara", "Bergen"]
    assert set(frame["half"]) == {0.5, 1.5}
    assert model.sample(3).as_json()[0].keys() == {"age", "city", "half"}
    with pytest.raises(ValueError, match="`city` has no value"):
        model.log_likelihood(frame.assign(city="Cork"))
