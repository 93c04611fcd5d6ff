"""`noisy_samples` and `perturbed_optimum`: what neighbours can see of a step, brute force, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from recording import Bench, Record, Recorder

from jostle import optional as perturbed
from jostle.accounting.subsampled_gaussian import noise_for
from jostle.kernels.graphical.model import graphical_model
from jostle.kernels.graphical.synthetic import random_model
from jostle.privacy.measurements.subsampled_batches import Rows, counted
from jostle.source import Source
from jostle.tools.session import Result, Session

BASIC = "budget epsilon 9, delta 0.01 counted by basic"
SAMPLES = (
    "s = noisy_samples([histogram(t, v), histogram(t, v, w), histogram(t, x = v > 0)], 0.25, 3)"
    " with epsilon 1 delta 0.0001\n"
)
SIGMA = noise_for(1.0, 1e-4, 0.25, 3)
COLUMNS = "{who: text, v: 0..2, w: 0..1}"
ALL = 10**6  # units: more than there are


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """With samples that keep the first `Recorder.first` units."""

    def sample(self: Recorder, size: int, kept: int) -> np.ndarray:
        assert self.charges and kept == 2**14
        return np.arange(size) < Recorder.first  # type: ignore[attr-defined]

    monkeypatch.setattr(Recorder, "sample", sample, raising=False)
    monkeypatch.setattr(Recorder, "first", ALL, raising=False)
    return Bench(tmp_path, monkeypatch)


def step(bench: Bench, rows: Any, clause: str) -> Record:
    bench.table(rows, ("who", "v", "w"))
    return bench.run(f'private t = table("t.csv") described by {COLUMNS} protecting {clause} {BASIC}\n{SAMPLES}')


def gaps(one: Record, other: Record) -> list[tuple[float, float]]:
    """‖x − x′‖₂ of each step and its noise."""
    (a,), (b,) = one.charges, other.charges
    assert [(d.kind, d.scale) for d in a.draws] == [(d.kind, d.scale) for d in b.draws]
    assert len(a.draws) == 3
    pairs = zip(a.draws, b.draws, strict=True)
    return [(float(np.linalg.norm((x.values - y.values).astype(float))), x.scale) for x, y in pairs]


KINDS = (("0", "1"), ("2", "0"), ("9", "1"), ("", "0"))
UNITS = ["rows", "who up to 2 rows", "who up to 2 rows weighted"]


@pytest.mark.slow(but=["rows"])
@pytest.mark.parametrize("clause", UNITS)
def test_a_unit_moves_a_step_by_what_its_noise_is_scaled_for(bench: Bench, clause: str) -> None:
    """One person more, of every kind and with up to three rows, beside others: ‖·‖₂ ≤ noise/σ, and some reach it."""
    others, tight = [("a", "1", "1"), ("a", "2", "0"), ("b", "0", "0")], False
    without = step(bench, others, clause)
    several = [(0, 0), (0, 1), (0, 2), (1, 1, 1), (0, 1, 3)] if clause != "rows" else []
    for kinds in [*((i,) for i in range(len(KINDS))), *several]:
        for moved, scale in gaps(without, step(bench, [*others, *(("z", *KINDS[i]) for i in kinds)], clause)):
            assert moved <= scale / SIGMA * (1 + 1e-9)
            tight |= moved > 0.9999 * scale / SIGMA
    assert tight


def test_who_is_not_kept_moves_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [("a", "1", "1"), ("b", "2", "0")]
    for first in (0, 1, 2):
        monkeypatch.setattr(Recorder, "first", first, raising=False)
        found = gaps(step(bench, others, "rows"), step(bench, [*others, ("c", "0", "1")], "rows"))
        assert all(moved == 0 for moved, _ in found)


def test_all_rows_of_a_person_are_kept_or_none() -> None:
    rows = Rows(np.array([[0, 2], [1, 3], [4, 2]], dtype=np.int32), 4, 2, np.array([0, 1, 0]), np.array([8, 16, 8]), 4)
    assert counted(rows, np.array([True, False])).tolist() == [8, 0, 16, 0]
    assert counted(rows, np.array([False, True])).tolist() == [0, 16, 0, 16]


def test_persons_are_told_apart(bench: Bench) -> None:
    """Two persons with equal rows are two; one person's rows weigh 1 in all, as many as they are."""
    rows = [("a", "0", "0"), ("b", "0", "0"), ("b", "1", "0")]
    (charge,) = step(bench, rows, "who up to 2 rows weighted").charges
    assert (charge.draws[0].values[:3] / 2**16).tolist() == [1.5, 0.5, 0]
    (charge,) = step(bench, [], "who up to 2 rows weighted").charges
    assert not charge.draws[0].values.any()


def run(program: str, clause: str = f"protecting rows {BASIC}", columns: str = COLUMNS) -> Result:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"who": [f"p{i}" for i in range(4000)], "v": rng.integers(0, 3, 4000)})
    frame["w"] = (rng.random(4000) < 0.2 + 0.3 * frame["v"]).astype(int)
    session = Session()
    session.bind("t", frame)
    text = f'use graphical\nprivate t = bound("t") described by {columns} {clause}\n{program}'
    return session.attempt(Source("s.jst", text))


def test_batches_are_of_the_rate_and_the_noise_that_they_say() -> None:
    result = run("s = noisy_samples([histogram(t, v)], 0.3, 400) with epsilon 4 delta 0.001\nrelease s")
    assert result.ok, result.diagnostics
    found = result["s"]
    assert found["sums"].shape == (400, 3) and found["rate"] == math.ceil(0.3 * 2**16) / 2**16
    totals = found["sums"].sum(axis=1)
    spread = math.sqrt(4000 * 0.3 * 0.7 + 3 * found["noise"] ** 2)
    assert abs(totals.mean() - 1200) < 6 * spread / 20
    assert abs(totals.std() / spread - 1) < 0.25  # seven standard errors
    assert float(result.budget["t"]["delta"]["spent"]) == pytest.approx(0.001)


@pytest.mark.parametrize("way", ["psgd(t, m)", "output_perturbation(t, m, 4000)"])
@pytest.mark.parametrize("counted", ["", " counted by basic"])
def test_with_much_epsilon_the_truth_is_learned(way: str, counted: str) -> None:
    program = (
        'm = model({v: 0..2, w: 0..1}, [["v", "w"]])\n'
        f"a = {way} with epsilon 60 delta 0.0001\nrelease p = a.probability({{w: 1}}, {{v: 2}})\n"
        "release r = a.rows"
    )
    result = run(program, f"protecting rows budget epsilon 99, delta 0.01{counted}")
    assert result.ok, result.diagnostics
    assert result["p"] == pytest.approx(0.8, abs=0.06)
    assert result["r"] == pytest.approx(4000, rel=0.05)
    spent = float(result.budget["t"]["epsilon"]["spent"])
    assert spent == 60 or not counted
    assert way[0] == "o" or spent >= 60  # in zCDP samples cost as much as any (60, δ)-DP mechanism can lose


def test_public_tables_are_exact_and_free() -> None:
    result = run(
        'p = counts([3, 5])\ns = noisy_samples([p], 0.5, 2)\nrelease s\nm = model({x: 0..1}, [["x"]])\n'
        "release o = perturbed_optimum([p], m, 8)\n"
    )
    assert result.ok, result.diagnostics
    assert result["s"]["sums"].tolist() == [[3, 5], [3, 5]] and result["s"]["rate"] == 1
    theta = result["o"]["potentials"]
    assert 1 / (1 + math.exp(theta[0] - theta[1])) == pytest.approx(5 / 8, abs=2e-3)


ONE = "s = noisy_samples([histogram(t, v)], 0.3, 5)"
PAID = " with epsilon 1 delta 0.001"
PERSON = f"protecting who up to 2 rows {BASIC}"
M = 'm = model({v: 0..2, w: 0..1}, [["v", "w"]])\n'
REFUSED = [
    (ONE + " with epsilon 1", "", COLUMNS, "TypeError", "epsilon and delta"),
    (ONE + " with rho 1", "protecting rows budget rho 2", COLUMNS, "TypeError", "epsilon and delta"),
    (ONE + PAID, f"protecting rows, public size {BASIC}", COLUMNS, "TypeError", "added or removed"),
    (ONE + PAID, PERSON, COLUMNS.replace("who: text, ", ""), "TypeError", "does not tell whose"),
    (ONE.replace("histogram(t,", "histogram(derive(t, who = \"x\"),") + PAID, PERSON, COLUMNS, "TypeError", "whose"),
    (ONE.replace("0.3", "0") + PAID, "", COLUMNS, "ValueError", "a rate is in"),
    (ONE.replace("5)", "0)") + PAID, "", COLUMNS, "ValueError", "steps"),
    (ONE.replace("5)", "2.5)") + PAID, "", COLUMNS, "TypeError", "whole"),
    ("s = noisy_samples([histogram(t, v), histogram(where(t, w == 1), v)])" + PAID, "", COLUMNS, "TypeError", ""),
    ("s = noisy_samples([where(histogram(t, v), v > 1)], 0.3, 5)" + PAID, "", COLUMNS, "TypeError", "one table"),
    ("s = noisy_samples([t], 0.3, 5)" + PAID, "", COLUMNS, "TypeError", "a list of cubes"),
    ("s = noisy_samples([histogram(t, v)], histogram(t, v), 5)" + PAID, "", COLUMNS, "PrivateValue", ""),
    (ONE, "", COLUMNS, "NoEpsilon", ""),
    (M + "o = perturbed_optimum(clique_tables(t, m), m, 0) with epsilon 1", "", COLUMNS, "ValueError", "public number"),
    (M + "o = perturbed_optimum([histogram(t, v)], m, 9) with epsilon 1", "", COLUMNS, "ValueError", "each clique"),
    (M + "o = perturbed_optimum(clique_tables(t, m), m, 9, 0) with epsilon 1", "", COLUMNS, "ValueError", "ridge"),
    (M + "o = perturbed_optimum(clique_tables(t, m), 3, 9) with epsilon 1", "", COLUMNS, "TypeError", "model"),
    (M + "o = perturbed_optimum(clique_tables(t, m), m, 9)", "", COLUMNS, "NoEpsilon", ""),
]  # fmt: skip


@pytest.mark.parametrize(("program", "clause", "columns", "kind", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refusals_spend_nothing(program: str, clause: str, columns: str, kind: str, message: str) -> None:
    result = run(program, clause or f"protecting rows {BASIC}", columns)
    assert not result.ok
    assert result.diagnostics[0].kind == kind and message in result.diagnostics[0].message, result.diagnostics[0]
    for spent in result.budget.get("t", {}).values():
        assert float(spent["spent"]) == 0


# Output perturbation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.01, 0.5])
def test_potentials_move_by_no_more_than_their_sensitivity(ridge: float) -> None:
    """One row more or less, and weights of 1, at any table: what the optimiser returns, not what it might find."""
    model = graphical_model({"a": 2, "b": 3, "c": 2}, [["a", "b"], ["b", "c"], ["c"]])
    structure, rows = model.structure, 40.0
    _, l2 = perturbed.sensitivities(structure, rows, ridge)
    rng, worst = np.random.default_rng(0), 0.0
    mu = np.concatenate([t.ravel() for t in random_model(model, 1).tables])
    for base in (np.zeros(14), np.round(40 * mu), np.eye(14)[0] * 40, np.full(14, 1e9)):
        moved = base.copy()
        cell = rng.integers(0, [2, 3, 2])
        for clique, start in zip(structure.cliques, (0, 6, 12), strict=True):
            shape = tuple(structure.domain.sizes[v] for v in clique)
            moved[start + np.ravel_multi_index(tuple(cell[list(clique)]), shape)] += 1
        gap = perturbed.descended(structure, base, rows, ridge) - perturbed.descended(structure, moved, rows, ridge)
        worst = max(worst, float(np.linalg.norm(gap)) * 2**perturbed.BITS)
        assert worst <= l2
    assert worst > 0.2 * l2  # near what a flat likelihood would let it move


def test_programs_perturb_by_that(bench: Bench) -> None:
    """What the noise is given on neighbours, against each charge in ρ and in ε."""
    for unit, amount in (("rho", "rho 0.5"), ("epsilon", "epsilon 2")):
        found = []
        for rows in ([("a", "0", "1")] * 3, [("a", "0", "1")] * 4):
            bench.table(rows, ("who", "v", "w"))
            program = f'private t = table("t.csv") described by {COLUMNS} protecting rows budget {unit} 3\n'
            found.append(bench.run(f"use graphical\n{program}{M}o = output_perturbation(t, m, 20) with {amount}"))
        (one,), (other,) = (r.charges for r in found)
        lost = one.draws[0].loss(other.draws[0])
        assert 0 < lost <= one.value * (1 + 1e-9)


# Sums of samples -----------------------------------------------------------------------------------

PAID = (
    "rows = vectors(t, v, w, scaled = false, radius = 2)\n"
    "paid = prepaid(rows, steps = 3, rate = 0.25) with epsilon 1 delta 0.0001\n"
)
SUMS = PAID + 's = [noisy_sum(rows, "coordinates", bound = 0.5, paid = paid) for i in 1..3]\n'


@pytest.mark.parametrize("first", [ALL, 2])
@pytest.mark.parametrize("clause", ["rows", "who up to 1 row"])
def test_a_row_moves_the_sum_of_a_sample_by_what_its_noise_is_scaled_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, clause: str, first: int
) -> None:
    """Each sum is of a fresh sample, drawn after the charge; who is not kept moves nothing; rows are clipped."""
    calls: list[int] = []
    sample = Recorder.sample  # type: ignore[attr-defined]
    monkeypatch.setattr(Recorder, "first", first, raising=False)
    monkeypatch.setattr(Recorder, "sample", lambda self, size, share: calls.append(size) or sample(self, size, share),
                        raising=False)  # fmt: skip

    def of(rows: list[tuple[str, str, str]]) -> Record:
        bench.table(rows, ("who", "v", "w"))
        declared = f'private t = table("t.csv") described by {COLUMNS} protecting {clause} {BASIC}'
        return bench.run(f"use row_vectors\n{declared}\n{SUMS}")

    others = [("a", "1", "1"), ("b", "2", "0")]
    one, other = of(others), of([*others, ("c", "2", "1")])
    assert calls == [2, 2, 2, 3, 3, 3]
    (paid, *_), (again, *_) = one.charges, other.charges
    draws = [charge.draws for charge in (paid, again)]
    assert [len(d) for d in draws] == [3, 3]
    for before, after in zip(*draws, strict=True):
        moved = float(np.linalg.norm((after.values - before.values).astype(float)))
        assert before.scale == after.scale == pytest.approx(SIGMA * 2**30, rel=1e-6)
        assert moved <= before.scale / SIGMA and (moved > 0.999 * before.scale / SIGMA) == (first == ALL)
        assert moved == 0 or first == ALL


@pytest.mark.parametrize("program, words", [
    ("s = noisy_moments(rows, paid = paid)", "sums of samples"),
    ('s = noisy_sum(rows, "coordinates", paid = paid, part = 0.5)', "takes no part"),
    ('s = [noisy_sum(rows, "coordinates", paid = paid) for i in 1..4]', "of what was paid"),
    ("more = prepaid(rows, rate = 0.1) with epsilon 1 delta 1e-6", "whole number of `steps`"),
    ("more = prepaid(rows, steps = 0) with epsilon 1 delta 1e-6", "steps"),
    ("more = prepaid(rows, steps = 1.5) with epsilon 1 delta 1e-6", "whole number of `steps`"),
    ("more = prepaid(rows, steps = 1e999) with epsilon 1 delta 1e-6", "whole number of `steps`"),
    ("more = prepaid(rows, steps = 5, rate = 2) with epsilon 1 delta 1e-6", "rate"),
    ('more = prepaid(rows, steps = 5, via = "laplace") with epsilon 1 delta 1e-6', "Gaussian"),
    ("more = prepaid(rows, steps = 5) with epsilon 0.1", "epsilon and delta"),
])  # fmt: skip
def test_what_sums_of_samples_do_not_take(program: str, words: str) -> None:
    result = run(f"use row_vectors\n{PAID}{program}\n")
    assert not result.ok and words in result.diagnostics[0].message, result.diagnostics
    sums = [event for event in result.events if event.kind == "measure" and event.name == "coordinates"]
    assert len(sums) == (3 if "1..4" in program else 0)


@pytest.mark.parametrize("clause", ["who up to 2 rows", "rows, public size"])
def test_samples_are_of_rows_of_which_a_person_has_one(clause: str) -> None:
    result = run(f"use row_vectors\n{PAID}", f"protecting {clause} {BASIC}")
    assert not result.ok and "each person has one" in result.diagnostics[0].message
    assert not any(event.kind == "measure" for event in result.events)


def test_rows_that_share_a_source_are_no_rows_of_its_samples() -> None:
    """What was paid for a table does not pay for a join of it in which a person has several rows."""
    joined = 'twice = vectors(join(t, t, "v", 2), v, scaled = false, radius = 1)\n'
    joined += 's = noisy_sum(twice, "coordinates", paid = paid)\n'
    result = run(f"use row_vectors\n{PAID}{joined}")
    assert not result.ok and not any(event.name == "coordinates" for event in result.events)


def test_sums_of_samples_are_of_the_rate_and_the_noise_that_they_say() -> None:
    program = """use row_vectors
rows = vectors(t, v * 0 + 1, scaled = false, radius = 1)
paid = prepaid(rows, steps = 400, rate = 0.3) with epsilon 4 delta 0.001
release sums = [noisy_sum(rows, "coordinates", paid = paid).sum[0] for i in 1..400]
release said = {noise: paid.noise, rate: paid.rate, left: paid.left}
"""
    result = run(program)
    assert result.ok, result.diagnostics
    sums, said = np.array(result.released_json()["sums"]), result.released_json()["said"]
    assert said["rate"] == math.ceil(0.3 * 2**16) / 2**16 and said["left"] == pytest.approx(0, abs=1e-6)
    spread = math.sqrt(4000 * 0.3 * 0.7 + said["noise"] ** 2)
    assert said["noise"] == pytest.approx(noise_for(4.0, 0.001, said["rate"], 400), rel=1e-6)
    assert abs(sums.mean() - 1200) < 6 * spread / 20 and abs(sums.std() / spread - 1) < 0.25  # seven standard errors
