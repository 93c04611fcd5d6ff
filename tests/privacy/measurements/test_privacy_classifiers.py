"""Brute force: on every tiny table and each of its neighbours, no classifier loses more than it is charged."""

from __future__ import annotations

import itertools

import pytest
from recording import Bench, Record, worst_losses

ROWS = (("x", "p", "1"), ("y", "p", "2"), ("y", "q", "2"), ("x", "", "9"))
"""Every class, a missing cell, and one outside its domain."""

SOURCE = (
    'private t = table("t.csv") described by {{c: {{"x", "y"}}, a: {{"p", "q"}}, b: 1..2}} protecting {} budget {}\n'
)

PURE = """
use classify
a = majority(t, "c") with epsilon 1
b = naive_bayes(t, "c") with epsilon 1
j = shrunk_bayes(t, "c") with epsilon 1
d = selected_bayes(derive(t, d = a), "c", 1) with epsilon 1
e = bayes_tree(t, "c", 1) with epsilon 1
m = shrunk_tree(t, "c") with epsilon 1
n = adaptive_classifier(t, "c") with epsilon 1
o = most_accurate(t, "c", blends(m, j)) with epsilon 1
f = linear(t, "c") with epsilon 1
k = class_means(t, "c") with epsilon 1
g = laplace([histogram(t, a), histogram(t, a, b), histogram(t, c)]) with epsilon 0.7
h = laplace([histogram(t[a = "p"], b), histogram(t[a = "q"], b), histogram(t, c)]) with epsilon 0.7
"""

GAUSS = """
use classify
b = naive_bayes(t, "c") with {0}
j = shrunk_bayes(t, "c") with {0}
f = linear(t, "c") with {0}
k = class_means(t, "c") with {0}
g = laplace([histogram(t, a), histogram(t, a, b), histogram(t, c)]) with {0}
"""


def records(bench: Bench, program: str, most: int) -> dict[tuple[int, ...], Record]:
    found = {}
    for n in range(most + 1):
        for some in itertools.combinations_with_replacement(range(len(ROWS)), n):
            bench.table((ROWS[i] for i in some), ("c", "a", "b"))
            found[some] = bench.run(program)
    return found


def neighbours(found: dict[tuple[int, ...], Record]) -> list[tuple[Record, Record]]:
    return [
        (record, found[more])
        for some, record in found.items()
        for i in range(len(ROWS))
        if (more := tuple(sorted((*some, i)))) in found
    ]


def check(pairs: list[tuple[Record, Record]]) -> int:
    """No charge loses more than its price; how many were used up."""
    tight = 0
    for one, other in pairs:
        for title, lost, charged in worst_losses(one, other):
            assert lost <= charged * (1 + 1e-9), title
            tight += lost > 0.99 * charged
    return tight


@pytest.mark.slow
def test_one_row_more(bench: Bench) -> None:
    found = records(bench, SOURCE.format("rows", "epsilon 100") + PURE, 2)
    assert check(neighbours(found)) >= 50
    assert found[()].spent == pytest.approx(11.4)  # each option its epsilon, and none more


def test_one_row_replaced(bench: Bench) -> None:
    found = records(bench, SOURCE.format("rows, public size", "epsilon 100") + PURE, 1)
    alone = [found[(i,)] for i in range(len(ROWS))]
    assert check(list(itertools.combinations(alone, 2))) >= 1


def test_a_person_with_two_rows(bench: Bench) -> None:
    """`who` has up to two rows: all of them come or go."""
    source = SOURCE.format("who up to 2 rows", "epsilon 100")
    found = {}
    for some in [(), (0,), (0, 1), (1, 2), (2, 2)]:
        bench.table([(*ROWS[i], "ann") for i in some], ("c", "a", "b", "who"))
        found[some] = bench.run(source + PURE)
    assert check([(found[()], record) for some, record in found.items() if some]) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("amount", ["rho 0.5"])
def test_gaussian_forms(bench: Bench, amount: str) -> None:
    found = records(bench, SOURCE.format("rows", "rho 100") + GAUSS.format(amount), 2)
    assert check(neighbours(found)) >= 10
    assert {d.kind for record in found.values() for c in record.charges for d in c.draws} == {"gaussian"}


def test_gaussian_noise_with_delta_is_smaller_than_laplace_would_need(bench: Bench) -> None:
    """Ten tables move by √10 in the ℓ₂ norm and by 10 in the ℓ₁: what the Gaussian form is for."""
    many = "laplace([histogram(t, a) for i in 1..50])"
    bench.table([], ("c", "a", "b"))
    record = bench.run(
        SOURCE.format("rows", "epsilon 100, delta 0.01")
        + f"x = {many} with epsilon 1 delta 1e-6\ny = {many} with epsilon 1\n"
    )
    gauss, laplace = (draw for charge in record.charges for draw in charge.draws)
    assert (gauss.kind, laplace.kind) == ("gaussian", "laplace")
    assert laplace.scale == pytest.approx(50)
    assert gauss.scale < 40 < laplace.scale * 2**0.5
