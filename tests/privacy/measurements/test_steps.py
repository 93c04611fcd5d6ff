"""Sums of batches in turn with correlated noise: what a unit moves of all steps, the matrix, and what is refused."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import pytest
from recording import Bench, Record

from jostle.accounting.amounts import Amount
from jostle.privacy.kernel.handles import Vectors
from jostle.privacy.measurements.running import Roots
from jostle.privacy.measurements.vectors import Steps, reach
from jostle.privacy.mechanisms.additive import Additive
from jostle.run.rowsums import Estimates
from jostle.source import Source
from jostle.tools.session import Result, Session

COLUMNS = "{who: text, v: 0..2, w: 0..1}"
BATCHES = "batches = [vectors(p, v, w, scaled = false, radius = 3) for p in split_rows(t, 3)]\n"
PAID = BATCHES + "paid = prepaid(batches, steps = 7) with rho 0.5\n"
SUMS = """a = [noisy_sum(batches, "coordinates", bound = 0.1, paid = paid) for i in 1..4]
b = noisy_sum(batches, "logistic_gradient", {target: 1, weights: [2, 1]}, bound = 0.05, paid = paid)
c = [noisy_sum(batches, "coordinates", bound = 0.1, norm = "l1", paid = paid) for i in 1..2]
"""
KINDS = (("0", "1"), ("2", "0"), ("1", "1"), ("9", "1"), ("", "0"))
OTHERS = [(f"p{i}", "1", str(i % 2)) for i in range(9)]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def steps(bench: Bench, rows: list[tuple[str, str, str]], clause: str, program: str = PAID + SUMS) -> Record:
    bench.table(rows, ("who", "v", "w"))
    declared = f'private t = table("t.csv") described by {COLUMNS} protecting {clause} budget rho 1'
    return bench.run(f"use row_vectors\n{declared}\n{program}")


def lost(one: Record, other: Record) -> float:
    """Σ over all steps of (how far the numbers moved over their noise)² / 2: what a unit loses, in ρ."""
    (*_, a), (*_, b) = one.charges, other.charges
    assert [(d.kind, d.scale) for d in a.draws] == [(d.kind, d.scale) for d in b.draws]
    assert len(a.draws) == 7 and {d.kind for d in a.draws} == {"gaussian"}
    pairs = zip(a.draws, b.draws, strict=True)
    return sum(float(np.linalg.norm((x.values - y.values).astype(float)) / x.scale) ** 2 / 2 for x, y in pairs)


@pytest.mark.slow(but=["rows"])
@pytest.mark.parametrize("clause", ["rows", "who up to 2 rows", "rows, public size"])
def test_a_unit_loses_over_all_steps_what_was_charged(bench: Bench, clause: str) -> None:
    """One unit more (or another in its place), of every kind, in every batch; some lose all that was charged."""
    without, most = steps(bench, OTHERS, clause), 0.0
    several = [(1, 1), (0, 1, 2), (3, 4)] if "2 rows" in clause else [(i,) for i in range(len(KINDS))]
    for name in ("y", "z", "a", "b"):
        for kinds in several:
            kept = OTHERS[1:] if "size" in clause else OTHERS
            with_it = steps(bench, [*kept, *((name, *KINDS[i]) for i in kinds)], clause)
            most = max(most, lost(without, with_it))
    assert most <= 0.5 * (1 + 1e-9)
    assert most > (0.4 if "size" in clause else 0.99) * 0.5  # what is replaced comes and goes in two batches


def test_all_rows_in_one_batch_pay_for_each_step_alone(bench: Bench) -> None:
    program = "batches = [vectors(t, v, w, scaled = false, radius = 3)]\n" + PAID.removeprefix(BATCHES) + SUMS
    one = steps(bench, OTHERS, "rows", program)
    other = steps(bench, [*OTHERS, ("z", "2", "0")], "rows", program)
    assert lost(one, other) == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("count, band", [(1, 1), (5, 1), (7, 3), (8, 8), (9, 20), (40, 8)])
def test_the_reach_is_that_of_the_worst_participation(count: int, band: int) -> None:
    """Against the definition: whatever a row gives at the steps of its batch, in any direction."""
    matrix, rng = Roots(count, band), np.random.default_rng(0)
    whole = matrix.matrix(0, count).astype(float)
    assert np.array_equal(np.tril(whole), whole) and (np.diag(whole) > 0).all()
    found = 0.0
    for p in range(min(band, count)):
        for _ in range(20):
            moved = np.zeros((count, 3))
            given = rng.normal(size=(len(range(p, count, band)), 3))
            moved[p::band] = given / np.linalg.norm(given, axis=1, keepdims=True)
            found = max(found, float(np.linalg.norm(whole @ moved)))
            moved[p::band] *= rng.random((len(given), 1))
            assert np.linalg.norm(whole @ moved) <= reach(matrix, band)
    assert found <= reach(matrix, band) <= found * (1 + 1e-9)


@pytest.mark.parametrize("count, band", [(1, 1), (6, 1), (9, 4), (12, 12), (7, 30)])
def test_estimates_undo_the_matrix(count: int, band: int) -> None:
    rng = np.random.default_rng(1)
    exact = rng.normal(size=(count, 2))
    matrix = np.ldexp(Roots(count, band).matrix(0, count).astype(float), -Roots.bits)
    estimates, inverse = Estimates(count, band), np.linalg.inv(matrix)
    for step, y in enumerate(matrix @ exact):
        numbers, wider = estimates.next(y)
        assert numbers == pytest.approx(exact[step], abs=1e-9)
        assert wider == pytest.approx(np.linalg.norm(inverse[step]), rel=1e-9)


def test_sums_over_many_steps_are_nearer_than_with_independent_noise() -> None:
    """200 steps of 20 batches: the root of the mean squared error of running sums, of one amount."""
    whole = Roots(200, 20).matrix(0, 200).astype(float)
    with_it = np.linalg.norm(np.tril(np.ones((200, 200))) @ np.linalg.inv(whole)) * reach(Roots(200, 20), 20)
    without = np.linalg.norm(np.tril(np.ones((200, 200)))) * math.sqrt(10)
    assert with_it < without / 3


def run(program: str, protecting: str = "protecting rows budget rho 1") -> Result:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"who": [f"p{i}" for i in range(3000)], "v": rng.integers(0, 3, 3000), "w": 1})
    session = Session()
    session.bind("t", frame)
    private = "private " if protecting else ""
    text = f'use row_vectors\n{private}t = bound("t") described by {COLUMNS} {protecting}\n{program}'
    return session.attempt(Source("s.jst", text))


SHOWN = (
    PAID
    + """sums = [noisy_sum(batches, "coordinates", paid = paid) for i in 1..7]
release each = [one.sum[0] for one in sums]
release noise = [one.noise for one in sums]
release left = paid.left
"""
)


def test_sums_are_of_one_batch_after_the_other_with_the_noise_that_they_say() -> None:
    """The exact sums are those of public rows, in which batches take their turns too; the whole is paid once."""
    private, public = run(SHOWN), run(SHOWN.replace("with rho 0.5", ""), "")
    assert private.ok and public.ok, (private.diagnostics, public.diagnostics)
    found, exact = (np.array(result.released_json()["each"]) for result in (private, public))
    noise = np.array(private.released_json()["noise"])
    assert len(set(exact[:3])) == 3 and (exact[3:6] == exact[:3]).all() and exact[6] == exact[0]
    assert (noise > 0).all() and not any(public.released_json()["noise"])
    assert (np.abs(found - exact) < 6 * noise).all() and (found != exact).all()
    assert float(private.budget["t"]["rho"]["spent"]) == 0.5 and private.released_json()["left"] < 1e-9


@pytest.mark.parametrize("program, words", [
    ('s = [noisy_sum(batches, "coordinates", paid = paid) for i in 1..8]', "of what was paid"),
    ('s = noisy_sum(batches, "coordinates", paid = paid, part = 0.5)', "takes no part"),
    ('s = noisy_sum(batches, "coordinates", paid = paid, norm = "sup")', "Euclidean"),
    ('s = noisy_sum(batches[0], "coordinates", paid = paid)', "batches in turn"),
    ('s = noisy_sum([batches[1], batches[0], batches[2]], "coordinates", paid = paid)', "not the batches"),
    ('s = noisy_sum(batches, "coordinates") with rho 0.1', "one of several steps"),
    ('s = noisy_sum([], "coordinates", paid = paid)', "rows as vectors"),
    ("s = noisy_moments(batches[0], paid = paid)", "steps of batches"),
    ("q = prepaid(batches) with rho 0.1", "number of `steps`"),
    ("q = prepaid(batches, steps = 0) with rho 0.1", "number of `steps`"),
    ("q = prepaid(batches, steps = 1e999) with rho 0.1", "number of `steps`"),
    ("q = prepaid([], steps = 3) with rho 0.1", "rows of one table"),
    ("q = prepaid([t], steps = 3) with rho 0.1", "rows as vectors"),
    ("q = prepaid(batches, steps = 9, rate = 0.1) with rho 0.1", "no `rate`"),
    ('q = prepaid(batches, steps = 9, via = "laplace") with rho 0.1', "no `rate`"),
    ("q = prepaid([batches[0], batches[0]], steps = 9) with rho 0.1", "different parts"),
    ("q = prepaid([vectors(t, v, w), batches[0]], steps = 9) with rho 0.1", "different parts"),
    ("q = prepaid([vectors(t[v = 1], v), vectors(t[w = 0], v)], steps = 9) with rho 0.1", "different parts"),
    ("q = prepaid([vectors(t[v = 1], v), vectors(t[v = 2], w)], steps = 9) with rho 0.1", "same columns"),
    ("q = prepaid([batches[0], vectors([[1, 2]])], steps = 9) with rho 0.1", "one table"),
    ('s = noisy_sum(batches, "coordinates", paid = paid)\n'
     's = noisy_sum(batches, "pair_products", paid = paid)', "as many numbers"),
])  # fmt: skip
def test_what_steps_do_not_take(program: str, words: str) -> None:
    result = run(f"{PAID}{program}\n")
    assert not result.ok and words in result.diagnostics[0].message, result.diagnostics
    assert float(result.budget["t"]["rho"]["spent"]) == 0.5  # what is refused costs nothing


def test_amounts_without_gaussian_noise_are_refused() -> None:
    result = run(PAID.replace("rho 0.5", "epsilon 0.5"), "protecting rows budget epsilon 1")
    assert not result.ok and "delta" in result.diagnostics[0].message


def test_parts_by_a_value_are_batches_too() -> None:
    program = """batches = [vectors(t[v = k], w, scaled = false, radius = 1) for k in 0..2]
paid = prepaid(batches, steps = 3) with rho 1
release sums = [noisy_sum(batches, "coordinates", paid = paid).sum[0] for k in 0..2]
"""
    result = run(program)
    assert result.ok and abs(sum(result.released_json()["sums"]) - 3000) < 40, result.diagnostics


def test_steps_of_several_threads_take_their_turns() -> None:
    """Each has a number of its own, and is of its batch; what another has not summed yet counts as 0."""
    rows = [Vectors((), None, (), (f"x{i}",), (), (), 1.0) for i in range(3)]  # type: ignore[arg-type]
    how = Additive.of(Amount("rho", 10**12), "gaussian", [])
    paid = Steps((), how.amount, how, 1.0, False, False, tuple(rows), 300)
    held: WeakKeyDictionary[object, Any] = WeakKeyDictionary()

    def summed(batch: Vectors) -> np.ndarray:
        return np.array([int(batch.names[0][1]) << 12])

    with ThreadPoolExecutor(8) as pool:
        found = sorted(int(one[0]) for one in pool.map(lambda _: paid.product(held, summed), range(300)))
    alone = [int(paid.product(WeakKeyDictionary({paid: (iter([t]), {})}), summed)[0]) for t in range(300)]
    assert next(held[paid][0]) == 300 and len(held[paid][1]) <= 3 and sum(found) >= sum(alone)
    turns = WeakKeyDictionary()  # type: ignore[var-annotated]
    whole = Roots(300, 3).matrix(0, 300) @ (np.arange(300) % 3)
    assert [int(paid.product(turns, summed)[0]) for _ in range(300)] == whole.tolist()
