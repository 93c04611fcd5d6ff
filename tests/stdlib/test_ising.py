"""Ising models and pairwise fields: exact against enumeration, near the truth, priced by what neighbours see."""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "privacy"))

from recording import Bench, worst_losses

from jostle.accounting.definitions import epsilon_of, rho_of
from jostle.kernels.graphical import ising as isingfit
from jostle.kernels.graphical import pairwise
from jostle.kernels.graphical.ising import (
    IsingModel,
    ising_fit,
    ising_model,
    newton_fit,
    parameter_arrays,
    parameter_vector,
    ring_with_chords,
    state_probabilities,
    stochastic_fit,
)
from jostle.kernels.rowprograms import CONTRIBUTIONS, GRADIENTS
from jostle.kernels.rowprograms.contributions import sign_patterns
from jostle.privacy.rows.factored import coded as coded_rows
from jostle.privacy.rows.factored import gradient_scores
from jostle.privacy.rows.norms import GRID
from jostle.source import Source
from jostle.tools.session import Result, Session


def attempt(rows: np.ndarray, program: str, budget: str = "rho 1000", described: str = "-1..1") -> Result:
    session = Session()
    names = [f"x{i + 1}" for i in range(rows.shape[1])]
    session.bind("d", {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(names)})
    domains = ", ".join(f"{name}: {described}" for name in names)
    text = f'use ising\nprivate d = bound("d") described by {{{domains}}} protecting rows budget {budget}\n'
    return session.attempt(Source("i.jst", text + 'rows = vectors(d, norm = "sup")\n' + program))


# Inference against enumeration -----------------------------------------------------------------------


def listed(model: IsingModel) -> tuple[np.ndarray, np.ndarray, float]:
    """All states, their probabilities and log Z, one at a time."""
    p = len(model.names)
    states = np.array(list(itertools.product([1.0, -1.0], repeat=p)))
    energy = np.array([sum(model.couplings[i, j] * x[i] * x[j] for i in range(p) for j in range(i)) for x in states])
    energy = energy + states @ model.fields
    return states, np.exp(energy) / np.exp(energy).sum(), math.log(np.exp(energy).sum())


def some_model(p: int = 5, seed: int = 0) -> IsingModel:
    rng = np.random.default_rng(seed)
    a = rng.normal(0, 0.4, (p, p))
    return ising_model(a + a.T, rng.normal(0, 0.3, p))


def test_moments_and_log_z_are_those_of_all_states() -> None:
    model = some_model()
    states, probabilities, log_z = listed(model)
    second = np.einsum("s,si,sj->ij", probabilities, states, states)
    np.fill_diagonal(second, probabilities @ states)
    assert np.abs(model.moments() - second).max() < 1e-12
    assert state_probabilities(parameter_vector(model.couplings, model.fields), 5)[1] == pytest.approx(log_z, abs=1e-12)
    assert model.log_likelihood(states) == pytest.approx(float(np.log(probabilities).mean()), abs=1e-12)


def test_maximum_likelihood_inverts_the_moments() -> None:
    model = some_model(6, 1)
    moments = parameter_vector(model.moments(), np.diag(model.moments()))
    couplings, fields = parameter_arrays(newton_fit(moments, 6, 0.0), 6)
    assert np.abs(couplings - model.couplings).max() < 1e-8 and np.abs(fields - model.fields).max() < 1e-8
    # with a ridge the gradient of the penalised likelihood is zero
    found = newton_fit(moments, 6, 0.1)
    again = ising_model(*parameter_arrays(found, 6)).moments()
    assert np.abs(parameter_vector(again, np.diag(again)) - moments + 0.1 * found).max() < 1e-9


def test_moments_of_no_distribution_have_an_answer() -> None:
    found = newton_fit(np.array([1.0, -1.0, 1.0, -1.0, -1.0, -1.0]), 3, 0.5)
    assert np.isfinite(found).all() and np.abs(found).max() < 10
    drowned = ising_fit({"columns": ["a", "b", "c"]}, [3.0, 90.0, -80, 99, 200, -300, 5], 100.0)
    assert drowned.width < 1


def test_gibbs_chains_come_near_the_exact_fit() -> None:
    truth = ring_with_chords(8, 0.25, 3)
    moments = parameter_vector(truth.moments(), np.diag(truth.moments()))
    couplings, _ = parameter_arrays(stochastic_fit(moments, 8, 0.0), 8)
    assert np.abs(couplings - truth.couplings).max() < 0.025


@pytest.mark.slow
@pytest.mark.parametrize("p", [5, 22])
def test_samples_have_the_moments_of_their_model(p: int) -> None:
    """22 are too many to list: Gibbs chains, against the pairs of a ring, tanh of the coupling along a tree."""
    if p == 5:
        model, wanted = some_model(), some_model().moments()[0, 1]
    else:
        a = np.zeros((p, p))
        a[0, 1] = a[1, 0] = 0.5
        model, wanted = ising_model(a), math.tanh(0.5)
    rows = model.sample_array(20_000, 4)
    assert rows.shape == (20_000, p) and set(np.unique(rows)) == {-1.0, 1.0}
    assert float((rows[:, 0] * rows[:, 1]).mean()) == pytest.approx(wanted, abs=0.045)  # 6 deviations


def test_a_model_is_a_value() -> None:
    model = ring_with_chords(6, 0.25, 1)
    assert model.width == pytest.approx(0.75) and len(model.edges(0.125)) == 8
    assert json.loads(json.dumps(model.as_json()))["names"] == list(model.names)
    with pytest.raises(ValueError, match="symmetric"):
        ising_model([[0, 1], [2, 0]])


# Row kernels -----------------------------------------------------------------------------------------


def units_of(rows: Any) -> np.ndarray:
    return np.asarray(rows, dtype=float).T * GRID


def test_pair_products_are_the_statistics() -> None:
    rows = np.array([[1.0, -1.0, 0.5], [-1.0, -1.0, 1.0]])
    given = CONTRIBUTIONS["pair_products"](3)
    (products,) = given.program(units_of(rows))
    assert (products * 2.0**-given.bits).T.tolist() == [[1, 1, -1, 0.5, -1, 0.5, -0.5], [1, -1, -1, 1, 1, -1, -1]]


VALUES = [3, 2, 4]


def coded(rows: np.ndarray) -> np.ndarray:
    """Values as the floor hands them over: scaled by their bounds and rounded toward zero."""
    return np.trunc((2 * rows / (np.array(VALUES) - 1) - 1) * GRID).T.astype(float)


def likelihood(weights: np.ndarray, rows: np.ndarray, target: int) -> float:
    """Σ −ln P(x_target | others), by the definition."""
    total = 0.0
    for x in rows:
        logs = [
            weights[u, target, 0] + sum(weights[u, j, x[j]] for j in range(3) if j != target)
            for u in range(VALUES[target])
        ]  # fmt: skip
        total += float(np.logaddexp.reduce(logs)) - logs[x[target]]
    return total


@pytest.mark.parametrize("target", [0, 1, 2])
def test_sign_gradients_are_those_of_the_likelihood(target: int) -> None:
    rng = np.random.default_rng(target)
    rows = np.stack([rng.integers(0, v, 30) for v in VALUES], axis=1)
    weights = rng.normal(0, 0.5, pairwise.node_shape(VALUES, target))
    given = GRADIENTS["sign_gradient"](3, target=target, values=VALUES, weights=weights)
    k = VALUES[target]
    outer, inner = sign_patterns(k)[1:], sign_patterns(4)
    sums = gradient_scores(coded_rows([coded(rows)], tuple(VALUES)), given, 1.0).astype(float) / 2**30
    sums = sums.reshape(len(outer), 3, len(inner))
    for s, j, r in [(0, target, 0), (0, (target + 1) % 3, 3), (len(outer) - 1, (target + 2) % 3, 5)]:
        moved = weights.copy()
        moved[:, j] += 1e-6 * np.outer(outer[s], inner[r])
        slope = (likelihood(moved, rows, target) - likelihood(weights, rows, target)) / 1e-6
        assert 2 * sums[s, j, r] == pytest.approx(slope, abs=0.05)  # the table of exp is good to a thousandth


@pytest.mark.parametrize("size", [2, 4, 7])
def test_patterns_are_signs_and_no_two_are_the_same_line(size: int) -> None:
    found = sign_patterns(size)
    assert (np.abs(found) == 1).all() and (found[0] == 1).all()
    assert np.linalg.matrix_rank(found) == size
    assert (np.abs(found @ found.T - size * np.eye(len(found))) < size).all()


def test_new_kernels_do_not_look_at_the_place_of_a_row() -> None:
    rng = np.random.default_rng(5)
    rows = np.stack([rng.integers(0, v, 200) for v in VALUES], axis=1)
    for name, given in (("pair_products", {}), ("indicators", {"values": VALUES})):
        run = CONTRIBUTIONS[name](3, **given).program
        (whole,) = run(coded(rows))
        for order in (np.arange(199, -1, -1), np.arange(7, 8), np.r_[3, np.arange(200)]):
            (there,) = run(coded(rows)[:, order])
            assert np.array_equal(whole[:, order], there)


@pytest.mark.parametrize("values", [(2, 3), (3, 2, 4), (2, 2, 2, 3)])
def test_pairwise_models_against_enumeration(values: tuple[int, ...]) -> None:
    """Log-probabilities, tables of pairs, and the fit of exact tables."""
    rng = np.random.default_rng(len(values))
    p, k = len(values), max(values)
    tables, fields = pairwise.identifiable(rng.normal(0, 0.4, (p, p, k, k)), rng.normal(0, 0.3, (p, k)), values)
    for i, many in enumerate(values):
        fields[i, many:] = 0
    model = pairwise.PairwiseModel(tuple("abcd"[:p]), values, tables, fields)
    states = np.array(list(itertools.product(*map(range, values))))
    pairs = [(i, j) for i in range(p) for j in range(i + 1, p)]
    energy = [
        sum(fields[i, x[i]] for i in range(p)) + sum(tables[i, j, x[i], x[j]] for i, j in pairs) for x in states
    ]  # fmt: skip
    weights = np.exp(energy)
    chances = weights / weights.sum()
    assert model.log_likelihood(states) == pytest.approx(float(np.log(chances).mean()), abs=1e-12)
    found = pairwise.marginals(chances.reshape(values))
    scaled = np.trunc((2 * states / (np.array(values) - 1) - 1) * GRID).T.astype(float)
    (ones,) = CONTRIBUTIONS["indicators"](p, values=values).program(scaled)
    assert found == pytest.approx(ones[1:] @ chances, abs=1e-12) and (ones.sum(axis=0) == 1 + p * (p + 1) // 2).all()
    facts = {"columns": model.names, "norm": "sup", "radius": 1, "scales": [(v - 1) / 2 for v in values]}
    again = pairwise.pairwise_fit(facts, 1e9 * np.concatenate([[1], found]), 0.0)
    assert again.error(model) < 1e-4 and again.fields == pytest.approx(fields, abs=1e-4)
    with pytest.raises(ValueError, match="one kind"):
        model.error(ring_with_chords(5))
    for bad in ([[0.5] * p], [[0] * (p + 1)], [[k] * p]):
        with pytest.raises(ValueError, match="rows"):
            model.log_likelihood(bad)


def test_what_drowns_is_near_uniform() -> None:
    facts = {"columns": ["a", "b"], "norm": "sup", "radius": 1, "scales": [1, 1]}
    sums = 50 * np.random.default_rng(0).normal(0, 1, 1 + 6 + 9)
    assert pairwise.pairwise_fit(facts, sums, 50.0).width < 1


# Steps ------------------------------------------------------------------------------------------------


def test_steps_go_against_the_gradient_and_stay_in_the_ball() -> None:
    w = pairwise.fw_start(3)
    for t, chosen in enumerate([1, 5, 0, 4]):
        w = pairwise.fw_step(w, chosen, 1.5, t)
        assert np.abs(w).sum() <= 1.5 + 1e-12
        if t == 0:
            assert w.tolist() == [0, -1.5, 0]
    assert pairwise.fw_rounds(10_000, 1.5, 0.1, 10_000) == round(0.5 * (7500 * math.sqrt(0.1)) ** (2 / 3))
    assert pairwise.fw_rounds(1e4, 1.5, math.inf, 30) == 30
    assert pairwise.fw_rounds(1e9, 1.5, 1, 400) == 400 and pairwise.fw_rounds(1, 1.5, 1e-9, 400) == 8


def test_a_node_step_is_the_pattern_that_was_chosen() -> None:
    start = pairwise.node_start([4, 4, 3], 1)
    outer, inner = sign_patterns(4)[1:], sign_patterns(4)
    chosen = int(np.ravel_multi_index((1, 2, 0, 3), (2, len(outer), 3, len(inner))))
    made = pairwise.node_step(start, chosen, 2.0, 0)
    assert np.array_equal(made[:, 0], 2 * np.outer(outer[2], inner[3])) and not made[:, 1:].any()


# In the language -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ring() -> tuple[IsingModel, np.ndarray]:
    truth = ring_with_chords(5, 0.25, 2)
    return truth, truth.sample_array(40_000, 3)


def test_both_ways_find_the_model_and_spend_what_they_are_given(ring: tuple[IsingModel, np.ndarray]) -> None:
    truth, rows = ring
    for call, most in (("ising_moments(rows)", 0.06), ("ising_fw(rows, 0.75, 40000, most = 50)", 0.08)):
        result = attempt(rows, f"release m = {call} with rho 2")
        assert result.ok, result.diagnostics
        assert result["m"].error(truth) < most and result["m"].edges(0.125) == truth.edges(0.125)
        assert 1.9999 < float(result.budget["d"]["rho"]["spent"]) <= 2


def test_columns_of_nought_and_one_are_the_same(ring: tuple[IsingModel, np.ndarray]) -> None:
    truth, rows = ring
    result = attempt((rows + 1) / 2, "release m = ising_moments(rows) with rho 2", described="0..1")
    assert result["m"].error(truth) < 0.06


def test_the_reading_in_epsilon_and_delta(ring: tuple[IsingModel, np.ndarray]) -> None:
    """Under a budget of ε and δ the selections come to the ρ that they were given, and ε says the same."""
    truth, rows = ring
    program = """
r = rho_within(2, 0.000001)
release m = ising_fw(rows, 0.75, 40000, in_all = r, most = 60)
release back = [r, epsilon_within(r, 0.000001)]
release now = spent(d).epsilon
"""
    result = attempt(rows, program, "epsilon 2, delta 0.000001")
    assert result.ok, result.diagnostics
    assert result["back"] == pytest.approx([rho_of(2, 1e-6 / 3), 2], rel=1e-3)
    assert epsilon_of(0.98 * rho_of(2, 1e-6 / 3), 1e-6 / 3) < result["now"] <= 2
    assert result["m"].error(truth) < 0.1
    alone = attempt(rows, "release m = ising_moments(rows) with epsilon 1 delta 0.000001", "epsilon 2, delta 0.00001")
    assert alone["m"].error(truth) < 0.06


def test_sparse_logistic_regression_alone() -> None:
    rng = np.random.default_rng(0)
    rows = rng.choice([-1.0, 1.0], (20_000, 6))
    rows[:, 5] = np.where(rng.random(20_000) < 1 / (1 + np.exp(-1.5 * rows[:, 0] + 0.5 * rows[:, 3])), 1, -1)
    result = attempt(rows, 'm = sparse_logistic(rows, "x6", 2, 20000) with rho 1\nrelease m\nprint(m)')
    assert result.ok, result.diagnostics
    model = result["m"]
    assert model.weights == pytest.approx([1.5, 0, 0, -0.5, 0], abs=0.2)
    assert model.probability({f"x{i}": 1 for i in range(1, 6)}) == pytest.approx(1 / (1 + math.exp(-1)), abs=0.06)
    assert model.loss(rows) < 0.55 and result.output[0].startswith("logistic model of x6")


def test_a_pairwise_field_is_found() -> None:
    truth = pairwise.pairwise_ring(4, 3, 0.4, 1)
    rows = np.array(truth.sample(20_000, 2))
    result = attempt(
        rows, f"release m = pairwise_fw(rows, {truth.width}, 20000, rounds = 60) with rho 5", described="0..2"
    )
    assert result.ok, result.diagnostics
    assert result["m"].error(truth) < 0.17 and result["m"].edges(0.2) == truth.edges(0.2)
    assert np.array(result["m"].tables).sum(axis=3) == pytest.approx(np.zeros((4, 4, 3)), abs=1e-9)
    assert 4.9999 < float(result.budget["d"]["rho"]["spent"]) <= 5


def test_pairwise_moments_find_the_field_and_variables_apart_their_shares() -> None:
    truth = pairwise.pairwise_ring(4, 3, 0.4, 1)
    rows = np.array(truth.sample(20_000, 2))
    rows = rows[(rows[:, 0] < 2) | (np.arange(len(rows)) % 2 == 0)]  # fewer 2s in the first column
    calls = "release m = pairwise_moments(rows) with rho 1\nrelease a = pairwise_apart(rows) with rho 1"
    result = attempt(rows, calls, described="0..2")
    assert result.ok, result.diagnostics
    moments, apart = result["m"], result["a"]
    assert moments.error(truth) < 0.13 and moments.edges(0.2) == truth.edges(0.2) and not apart.tables.any()
    shares = np.exp(apart.fields[0]) / np.exp(apart.fields[0]).sum()
    assert shares == pytest.approx(np.bincount(rows[:, 0].astype(int)) / len(rows), abs=0.02)
    held = np.array(truth.sample(2000, 5))
    assert moments.log_likelihood(held) > apart.log_likelihood(held) + 0.05
    assert float(result.budget["d"]["rho"]["spent"]) == pytest.approx(2, abs=1e-4)
    bits = attempt(np.sign(rows[:, :3] - 0.5), "release a = ising_apart(rows) with rho 1")["a"]
    wanted = [math.atanh(float(np.sign(rows[:, i] - 0.5).mean())) for i in range(3)]
    assert bits.fields == pytest.approx(wanted, abs=0.03) and not bits.couplings.any()


@pytest.mark.parametrize(("program", "message"), [
    ('m = ising_moments(vectors(d)) with rho 1', "sup"),
    ('m = sparse_logistic(rows, "y", 1) with rho 1', "no column"),
    ("m = ising_fw(rows, 0) with rho 1", "positive"),
    ('m = pairwise_fw(vectors(derive(d, x1 = x1 / 3), norm = "sup"), 1) with rho 1', "whole numbers"),
    ("m = ising_moments(rows) with rho 2000", "2000"),
    ('m = pairwise_moments(vectors(d, ' + ", ".join(["x1"] * 14) + ', norm = "sup")) with rho 1', "too many to list"),
])  # fmt: skip
def test_refusals_spend_nothing(program: str, message: str) -> None:
    result = attempt(np.ones((10, 3)), program)
    assert not result.ok and message in result.diagnostics[0].message
    assert float(result.budget.get("d", {"rho": {"spent": 0}})["rho"]["spent"]) == 0


# What neighbours can see -----------------------------------------------------------------------------------

HEAD = (
    'use ising\nprivate t = table("t.csv") described by {a: 0..1, b: 0..1, c: 0..2} protecting rows %s budget rho 100\n'
    'rows = vectors(t, norm = "sup")\nbits = vectors(t, a, b, norm = "sup")\n'
)
FITS = """
m = ising_moments(bits) with rho 1
f = ising_fw(bits, 1, rounds = 3) with rho 1
s = sparse_logistic(rows, "a", 2, rounds = 3) with rho 1
p = pairwise_fw(rows, 1, rounds = 3) with rho 1
q = pairwise_moments(rows) with rho 1
i = ising_apart(bits) with rho 1
j = pairwise_apart(rows) with rho 1
"""
KINDS = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1, 2)] + [(9, -5, 7), ("", 1, 2)]
BASE = [KINDS[i] for i in (0, 0, 3, 7, 8, 11, 4)]


@pytest.mark.parametrize("unit", ["", ", public size"])
def test_one_row_loses_no_more_than_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str) -> None:
    """One row more, or one replaced: no charge loses more than it says, and some lose just about all of it."""
    bench = Bench(tmp_path, monkeypatch)

    def record(rows: list[tuple[object, ...]]) -> Any:
        bench.table(rows, ("a", "b", "c"))
        return bench.run(HEAD % unit + FITS)

    start = record([*BASE, KINDS[0]] if unit else BASE)
    used: dict[str, float] = {}
    for kind in KINDS:
        for title, lost, charged in worst_losses(start, record([*BASE, kind])):
            assert lost <= charged * (1 + 1e-9)
            used[title] = max(used.get(title, 0.0), lost / charged)
    least = 0.49 if unit else 0.99  # two rows of ±1 differ in at most half of the pairs
    assert used["selection"] > 0.9 and used["prepaid"] > least


def test_a_tally_of_equal_rows_gives_the_same_sums() -> None:
    from jostle.integers import fixed_width
    from jostle.privacy.rows.factored import total_of
    from jostle.privacy.rows.norms import clipped

    rng = np.random.default_rng(1)
    given = rng.normal(0, 0.4, (5, 50))
    times = rng.integers(1, 9, 50)
    each = clipped(np.repeat(given, times, axis=1), "sup")
    assert np.array_equal(total_of(clipped(given, "sup"), times), each.sum(axis=1))
    huge = total_of(clipped(np.ones((1, 1)), "l2"), np.array([2**33]))
    assert fixed_width(huge)[0] == 2**62  # clamped, never wrapped
    assert isingfit.EXACT == 20


def test_a_printed_model_names_its_strongest_pairs() -> None:
    model = ising_model([[0, 0.5, 0], [0.5, 0, -0.75], [0, -0.75, 0]], names=["old", "busy", "rich"])
    said = [line.split() for line in str(model).splitlines()[1:]]
    assert said == [["busy", "rich", "-0.750"], ["old", "busy", "+0.500"]]
    ring = str(pairwise.pairwise_ring(20, 3, 0.25, 1)).splitlines()
    assert len(ring) == 14 and ring[-1].endswith("weaker pairs") and "-" not in ring[1]
