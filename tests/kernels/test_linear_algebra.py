"""Linear algebra on released numbers against its definitions, and what it says where there is no answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from jostle.kernels import KernelError
from jostle.kernels import linear_algebra as la
from jostle.source import Source
from jostle.tools.session import Session


@pytest.mark.parametrize("size", [1, 2, 5])
def test_definitions(size: int) -> None:
    rng = np.random.default_rng(size)
    a, b, tall = rng.normal(size=(size, size)), rng.normal(size=size), rng.normal(size=(size + 2, size))
    np.testing.assert_allclose(a @ la.solve(a.tolist(), b.tolist()), b, atol=1e-9)
    np.testing.assert_allclose(la.inverse(a, 0.5) @ (a + 0.5 * np.eye(size)), np.eye(size), atol=1e-9)
    assert la.det(a) == pytest.approx(np.prod(np.linalg.eigvals(a)).real)
    symmetric = a + a.T
    spectrum = la.eigen(symmetric)
    assert (np.diff(spectrum["values"]) <= 0).all()
    np.testing.assert_allclose(symmetric @ spectrum["vectors"].T, spectrum["vectors"].T * spectrum["values"], atol=1e-9)
    for matrix in (tall, tall.T):
        parts = la.svd(matrix)
        again = sum(v * np.outer(x, y) for v, x, y in zip(parts["values"], parts["left"], parts["right"], strict=True))
        np.testing.assert_allclose(again, matrix, atol=1e-9)
    np.testing.assert_allclose(la.matmul(tall, la.transpose(tall)), tall @ tall.T)
    np.testing.assert_allclose(la.matmul(a, b), a @ b)
    assert la.dot(b, b) == pytest.approx(float(b @ b))


@pytest.mark.parametrize(("call", "why"), [
    ("solve([[1, 2], [2, 4]], [1, 2])", "singular"),
    ("inverse([[0, 0], [0, 0]])", "ridge"),
    ("det([[1, 2, 3], [4, 5, 6]])", "2 rows and 3 columns, and must be square"),
    ("eigen([[1, 2], [3, 4]])", "not symmetric"),
    ("solve([[1, 0], [0, 1]], [1, 2, 3])", "right-hand side has 2"),
    ("svd([[1, 2], [3]])", "rows of one length"),
    ("det([])", "list of rows"),
    ("matmul([1, 2], [3, 4])", "take `dot`"),
    ("matmul([[1, 2]], [[1, 2]])", "do not go with"),
    ("dot([1], [1, 2])", "one length"),
    ("det([[1e400]])", "not finite"),
    ('det([["a"]])', "every entry a number"),
])  # fmt: skip
def test_what_has_no_answer(call: str, why: str) -> None:
    (said,) = Session().attempt(Source("p.jst", f"use linear_algebra\nprint({call})")).diagnostics
    assert said.kind == "ValueError" and why in said.message


def test_numbers_are_no_rows() -> None:
    (said,) = Session().attempt(Source("p.jst", "use linear_algebra\nprint(det([1, 2]))")).diagnostics
    assert said.kind == "TypeError" and said.message == "`det` takes a list of rows, and this list holds a number"


def test_a_singular_matrix_is_an_error_in_python_too() -> None:
    with pytest.raises(KernelError):
        la.solve([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0])


def test_a_ridge_is_a_number() -> None:
    program = 'use linear_algebra\nprint(solve([[1]], [1], ridge = "a"))'
    (said,) = Session().attempt(Source("p.jst", program)).diagnostics
    assert said.kind == "TypeError" and "takes a number, not a text" in said.message


@pytest.mark.parametrize("radius", [1.5, 4])
def test_a_regression_of_moments_is_that_of_the_rows(radius: float) -> None:
    """Its intercept was off where the target's mean is not the middle of its bounds."""
    rows = [{"x": float(i % 7), "z": float(i % 5), "y": 3 + 2.0 * (i % 7) - 1.5 * (i % 5)} for i in range(70)]
    session = Session()
    session.bind("t", pd.DataFrame(rows))
    described = "{x: 0.0..9.0, z: 0.0..9.0, y: -9.0..30.0}"
    program = (
        f'use linear_algebra\nt = bound("t") described by {described}\nv = vectors(t, x, z, y, radius = {radius})\n'
        'fit = regression(v, noisy_moments(v), "y")\nrelease a = [fit.intercept, fit.slopes.x, fit.slopes.z]'
    )
    np.testing.assert_allclose(session.run_text(program)["a"], [3, 2, -1.5], atol=0.01)
