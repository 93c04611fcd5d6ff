"""Row programs: total, exact, of one row each, within the intervals that their making promised."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jostle.kernels.rowprograms.scales import rounded
from jostle.privacy.rows import expressions
from jostle.privacy.rows.norms import GRID, Contributions, RowCount, Weights
from jostle.privacy.rows.program import RowProgram, program

WIDTH, REACH = 3, 40
x = SimpleNamespace(**vars(expressions), rounded=rounded)


def grown(rng: np.random.Generator, steps: int) -> RowProgram:
    """A program of so many random operations over a row of three columns and a code; what does not fit is left out."""
    row, code = x.columns((WIDTH,), -REACH, REACH), x.columns((), -1, 4)
    made: list[expressions.Expression] = [row, code, x.constant(rng.integers(-9, 9, WIDTH))]

    def any_of() -> expressions.Expression:
        return made[int(rng.integers(len(made)))]

    def whole(*shape: int) -> Any:
        return rng.integers(-30, 30, shape)

    makers = (
        lambda: any_of() + any_of(), lambda: any_of() - any_of(), lambda: any_of() * any_of(), lambda: -any_of(),
        lambda: (lambda a: a * a)(any_of()), lambda: x.shift(any_of(), int(rng.integers(-3, 5))),
        lambda: x.clamp(any_of(), int(rng.integers(-20, 0)), int(rng.integers(0, 20))),
        lambda: any_of() // x.clamp(any_of(), 1, int(rng.integers(1, 50))),
        lambda: x.comparison(any_of(), ("==", "<", "<=")[int(rng.integers(3))], any_of()),
        lambda: x.select(any_of(), any_of(), any_of()),
        lambda: x.lookup(whole(2, 10), x.clamp(any_of(), 0, 9)), lambda: x.matrix_product(whole(4, WIDTH), any_of()),
        lambda: x.total(any_of()), lambda: x.largest(any_of()), lambda: x.first_largest(any_of()),
        lambda: x.one_hot(any_of(), 4), lambda: x.concatenate([any_of(), any_of()]),
        lambda: x.part(any_of(), [int(rng.integers(3)), 0]), lambda: x.reshape(any_of(), (1, WIDTH)),
        lambda: x.gather(any_of(), x.clamp(any_of(), 0, 2)),
        lambda: x.rounded(any_of(), int(rng.integers(-2, 6)), -50, 50),
    )  # fmt: skip
    while len(made) < steps:
        try:
            one = makers[int(rng.integers(len(makers)))]()
        except x.RowProgramError:
            continue
        if np.prod(one.shape, dtype=float) <= 200:
            made.append(one)
    return program([row, code], *[made[int(i)] for i in rng.integers(3, len(made), 4)], made[-1])


def batch(rng: np.random.Generator, many: int) -> tuple[np.ndarray, np.ndarray]:
    edges = rng.choice([-REACH, REACH, 0, 1, -1], (WIDTH, many))
    rows = np.where(rng.random((WIDTH, many)) < 0.3, edges, rng.integers(-REACH, REACH + 1, (WIDTH, many)))
    return rows, rng.integers(-1, 5, many)


@pytest.mark.parametrize("seed", range(150))
def test_random_programs_give_each_row_its_own_numbers(seed: int) -> None:
    """In any order, batch and repetition, alone and in no rows at all; whole, and within their intervals."""
    rng = np.random.default_rng(seed)
    run = grown(rng, 25)
    rows, codes = batch(rng, 60)
    together = run(rows, codes)
    for value, output in zip(together, run.outputs, strict=True):
        assert value.shape == (*output.shape, 60)
        assert (value == np.trunc(value)).all() and (value >= output.low).all() and (value <= output.high).all()
    for order in (rng.permutation(60), rng.integers(0, 60, 200), np.array([7]), np.arange(0), np.arange(60).repeat(40)):
        there = run(rows[:, order], codes[order])
        assert all(np.array_equal(a[..., order], b) for a, b in zip(together, there, strict=True))
    again = run(rows, codes)
    assert all(np.array_equal(a, b) for a, b in zip(together, again, strict=True))  # no state, no input written to


@pytest.mark.parametrize("seed", range(40))
def test_operations_are_those_of_whole_numbers(seed: int) -> None:
    """Against Python's integers, one row at a time."""
    rng = np.random.default_rng(1000 + seed)
    run = grown(rng, 20)
    rows, codes = batch(rng, 12)
    values = run(rows, codes)
    for j in range(12):
        known: dict[int, Any] = {}
        for e in run.order:
            known[id(e)] = by_hand(e, [known[id(o)] for o in e.operands], run, rows[:, j], int(codes[j]))
        for output, value in zip(run.outputs, values, strict=True):
            assert np.array_equal(np.asarray(known[id(output)], dtype=object).astype(float), value[..., j])


def by_hand(e: expressions.Expression, given: list[Any], run: RowProgram, row: np.ndarray, code: int) -> Any:
    match e.operation:
        case "columns":
            return np.asarray([int(v) for v in row], dtype=object) if e is run.inputs[0] else code
        case "constant":
            return np.vectorize(int, otypes=[object])(e.array)[()]
        case "+":
            return given[0] + given[1]
        case "-":
            return given[0] - given[1]
        case "*":
            return given[0] * given[1]
        case "//":
            return given[0] // given[1]
        case "==" | "<" | "<=" as relation:
            return np.vectorize(
                lambda a, b: int({"==": a == b, "<": a < b, "<=": a <= b}[relation]), otypes=[object]
            )(*given)[()]
        case "shift":
            return given[0] // 2 ** e.numbers[0] if e.numbers[0] >= 0 else given[0] * 2 ** -e.numbers[0]
        case "clamp":
            return np.minimum(np.maximum(given[0], e.low), e.high)
        case "look-up":
            return np.take(np.asarray(e.array).astype(object), np.asarray(given[0], dtype=int), axis=-1)
        case "matrix":
            return np.asarray(e.array).astype(object) @ given[0]
        case "total":
            return np.sum(given[0], axis=e.numbers[0])
        case "largest":
            return np.max(given[0], axis=e.numbers[0])
        case "first largest":
            return np.argmax(np.asarray(given[0], dtype=float), axis=e.numbers[0])
        case "reshape":
            return np.reshape(given[0], e.shape)
        case "part":
            return np.asarray(given[0], dtype=object)[list(e.numbers)]
        case "gather":
            return given[0][int(given[1])]
        case "concatenate":
            return np.concatenate(given)
        case "select":
            return np.where(np.asarray(given[0], dtype=float) != 0, given[1], given[2])[()]
    raise AssertionError(e.operation)


def test_every_operation_is_tried() -> None:
    kinds = {e.operation for seed in range(40) for e in grown(np.random.default_rng(1000 + seed), 20).order}
    assert kinds == {*x.OPERATIONS, "columns"}


@pytest.mark.parametrize("make", [
    lambda a: x.lookup([1, 2, 3], a), lambda a: a // a, lambda a: a // 0,
    lambda a: x.matrix_product(np.ones((2, 3)), a),
    lambda a: x.matrix_product([[2**50, 2**52]], a), lambda a: x.shift(a, -60), lambda a: x.shift(a, 2000),
    lambda a: a + x.constant(np.ones(3)), lambda a: x.constant([0.5]), lambda a: x.constant([np.nan]),
    lambda a: x.constant([1e300]), lambda a: x.constant([]), lambda a: x.gather(x.constant([1, 2]), x.total(a)),
    lambda a: x.concatenate([]), lambda a: x.concatenate([a, x.total(a)]), lambda a: x.total(a, 1),
    lambda a: x.part(a, [2]), lambda a: x.part(a, [-1]), lambda a: x.reshape(a, (3,)), lambda a: x.clamp(a, 3, 2),
    lambda a: x.comparison(a, "!=", a), lambda a: x.lookup(np.ones((2**23, 1)), x.clamp(a, 0, 0)),
    lambda a: a * 2**60, lambda a: x.constant([2**52]) * a * a * a * a, lambda a: program([], x.total(a)),
])  # fmt: skip
def test_what_might_fail_on_a_row_cannot_be_made(make: Any) -> None:
    with pytest.raises(x.RowProgramError):
        make(x.columns((2,), -9, 9))


def test_the_largest_numbers_are_exact() -> None:
    """At the edge of what an interval allows, in the dividend of a quotient, in a product and in a sum."""
    a = x.columns((2,), -(2**25), 2**25)
    run = program([a], a * a // 3, x.total(a * a), x.matrix_product([[2**26, 2**26]], a), x.shift(a * 2**26, 7))
    rows = np.array([[2**25, -(2**25), 2**25 - 1], [2**25 - 1, 2**25, -3]], dtype=float)
    by_three, squares, product, moved = run(rows)
    for j in range(3):
        one, other = (int(v) for v in rows[:, j])
        assert [int(v) for v in by_three[:, j]] == [one * one // 3, other * other // 3]
        assert int(squares[j]) == one * one + other * other and int(product[0, j]) == 2**26 * (one + other)
        assert [int(v) for v in moved[:, j]] == [one * 2**26 // 128, other * 2**26 // 128]


def test_programs_can_be_sent() -> None:
    one = grown(np.random.default_rng(1), 20)
    sent = pickle.loads(pickle.dumps(copy.deepcopy(one)))
    rows, codes = batch(np.random.default_rng(0), 9)
    assert all(np.array_equal(a, b) for a, b in zip(one(rows, codes), sent(rows, codes), strict=True))


def test_what_a_program_gives_has_the_declared_kind() -> None:
    row, wide = x.columns((2,), -GRID, GRID), x.columns((2,), -GRID, 2 * GRID)
    one, frames = x.constant([1, 2]), x.reshape(x.concatenate([row, row]), (2, 2))
    squared = x.total(frames * frames, axis=1)
    Weights("w", program([row], one, frames, squared), 5)
    for wrong in (
        program([row], row), program([row], x.total(row * row)), program([wide], one),
        program([row], x.constant(np.ones(65))), program([row], one, row, squared), program([row], one, frames, one),
        program([row], one, x.shift(frames, -20), x.total(frames * frames, axis=1)),
    ):  # fmt: skip
        with pytest.raises(x.RowProgramError):
            Weights("w", wrong, 5)
    with pytest.raises(x.RowProgramError):
        Weights("w", program([row], one, frames, squared), 0)
    for bits, output in ((61, row), (-1, row), (3, x.total(row))):
        with pytest.raises(x.RowProgramError):
            Contributions("c", program([row], output), bits)
    code = x.columns((), -1, 3)
    assert RowCount("r", program([code], code)).sensitivity == 3
    for wrong in (program([row], x.total(row)), program([code], x.constant([1])), program([code], code * 2**40)):
        with pytest.raises(x.RowProgramError):
            RowCount("r", wrong)
