"""Matrices of running sums: what they weigh, decode and move, and how near their error is to the least of any."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.privacy.measurements.running import Roots, Tree, matrix_of
from jostle.run.answers import running_weights


@pytest.mark.parametrize("kind", [Roots, Tree])
@pytest.mark.parametrize("steps", [1, 2, 3, 8, 13, 100])
def test_sums_are_those_of_all_steps_before(kind: type[Roots | Tree], steps: int) -> None:
    """Of the matrix itself: no step weighs a later one, the weights give running sums, and the norms are its columns'.
    The rows of some steps are those of all steps, so that a stream may be measured in any parts."""
    of = kind(steps)
    matrix = of.matrix(0, steps)
    assert len(matrix) == of.rows_up_to(steps) and (matrix >= 0).all()
    assert of.norms[0] == matrix.sum(axis=0).max()
    assert 1 <= of.norms[1] / np.sqrt((matrix.astype(float) ** 2).sum(axis=0).max()) < 1 + 1e-9
    for step in range(1, steps + 1):
        weights, rows = running_weights(of, step), of.rows_up_to(step)
        sums = weights @ (matrix[:rows] / 2.0**of.bits)
        assert np.abs(sums[:step] - 1).max() < 1e-9 and np.abs(sums[step:]).max(initial=0) < 1e-9
        before = step // 2
        assert (of.matrix(before, step) == matrix[of.rows_up_to(before) : rows, :step]).all()


@pytest.mark.parametrize("kind", [Roots, Tree])
def test_what_a_late_row_adds_is_never_more(kind: type[Roots | Tree]) -> None:
    """The premise of rows that come late or take an earlier place: entries do not grow with an earlier step."""
    matrix = kind(20).matrix(0, 20)
    ends = [end for end in range(20) for _ in range(kind(20).rows_up_to(end + 1) - kind(20).rows_up_to(end))]
    for row, end in zip(matrix, ends, strict=True):
        assert not row[end + 1 :].any()
        assert kind is Tree or (np.diff(row[: end + 1]) >= 0).all()


def least_error(steps: int, rounds: int) -> float:
    """No factorisation into BC has a smaller root of the mean squared error, by the dual: with weights v of the columns
    of C, each no longer than 1, ‖A·V^½‖₁ ≤ ‖B‖_F·(Σv)^½ (Denisov and others 2022)."""
    sums = np.tril(np.ones((steps, steps)))
    v = np.ones(steps)
    for _ in range(rounds):
        root = np.sqrt(v)
        values, vectors = np.linalg.eigh(root[:, None] * (sums.T @ sums) * root)
        v = ((vectors * np.sqrt(np.maximum(values, 0))) * vectors).sum(axis=1)
    nuclear = np.linalg.svd(sums * np.sqrt(v), compute_uv=False).sum()
    return float(nuclear / np.sqrt(v.sum() * steps))


def error(steps: int) -> float:
    """The root of the mean squared error of all running sums, for noise of the scale of the largest column."""
    of = matrix_of(steps, True)
    squares = [float((running_weights(of, step) ** 2).sum()) for step in range(1, steps + 1)]
    return float(np.sqrt(np.mean(squares)) * of.norms[1] / 2**of.bits)


@pytest.mark.parametrize("steps", [16, 200])
def test_the_error_is_near_the_least(steps: int) -> None:
    assert 1 <= error(steps) / least_error(steps, 30) < 1.02


@pytest.mark.slow
def test_the_error_of_4096_steps_is_near_the_least() -> None:
    """Any weights give a bound: here those that are best for 512 steps, drawn out."""
    steps, few = 4096, 512
    sums, v = np.tril(np.ones((few, few))), np.ones(few)
    for _ in range(25):
        values, vectors = np.linalg.eigh(np.sqrt(v)[:, None] * (sums.T @ sums) * np.sqrt(v))
        v = ((vectors * np.sqrt(np.maximum(values, 0))) * vectors).sum(axis=1)
    wide = np.interp((np.arange(steps) + 0.5) / steps, (np.arange(few) + 0.5) / few, v)
    whole = np.tril(np.ones((steps, steps))) * np.sqrt(wide)
    nuclear = np.sqrt(np.maximum(np.linalg.eigvalsh(whole.T @ whole), 0)).sum()
    assert 1 <= error(steps) / (nuclear / np.sqrt(wide.sum() * steps)) < 1.02
