"""Linear algebra on released numbers: matrices are lists of rows, or arrays, of finite doubles.

Everything is LAPACK's, through NumPy. What has no answer is a `KernelError` that says what would have one.

*One thread* (`on_one_thread`) is for many small products, of microseconds to a few milliseconds. Spread over threads
they gain little on an idle machine, and where other processes want the cores too the threads spin waiting for each
other: a strategy over 1500 buckets then took 2.5 s instead of 0.05 s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

from jostle.kernels import KernelError
from jostle.lazy import Floats, np

SINGULAR = "the matrix is singular, to the precision of doubles: give a `ridge`, a number that is added to its diagonal"


def solve(matrix: object, right: object, ridge: float = 0.0) -> Floats:
    """x with (matrix + ridge · identity) · x = right; `right` is a vector (n) or a matrix (n, k), and so is x."""
    regular, values = _regular(matrix, ridge), _array(right)
    if values.ndim not in (1, 2) or len(values) != len(regular):
        raise KernelError(f"the right-hand side has {len(regular)} numbers, or rows, as the matrix has rows")
    return np.asarray(np.linalg.solve(regular, values), dtype=float)


def inverse(matrix: object, ridge: float = 0.0) -> Floats:
    """The inverse of matrix + ridge · identity (n, n)."""
    return np.asarray(np.linalg.inv(_regular(matrix, ridge)), dtype=float)


def det(matrix: object) -> float:
    return float(np.linalg.det(_square(matrix)))


def eigen(matrix: object) -> dict[str, object]:
    """Of a symmetric matrix (n, n) the eigenvalues, the largest first, and in row i of `vectors` a unit eigenvector of
    the i-th, whose largest component is positive."""
    square = _square(matrix)
    if not np.allclose(square, square.T, rtol=1e-9, atol=1e-9 * np.abs(square).max(initial=0.0)):
        raise KernelError("the matrix is not symmetric, and its eigenvalues may be complex: take `svd` of it, or "
                          "`eigen` of half the sum of it and its `transpose`")  # fmt: skip
    values, vectors = np.linalg.eigh(square)
    return {"values": values[::-1].copy(), "vectors": _signed(vectors.T[::-1])}


def svd(matrix: object) -> dict[str, object]:
    """matrix (n, m) = Σ values[i] · left[i] · right[i]ᵀ over its min(n, m) singular values, the largest first."""
    left, values, right = np.linalg.svd(_matrix(matrix), full_matrices=False)
    signed = _signed(right)
    turned = np.where((signed * right).sum(axis=1) < 0, -1.0, 1.0)
    return {"values": values, "left": left.T * turned[:, None], "right": signed}


def transpose(matrix: object) -> Floats:
    return _matrix(matrix).T.copy()


def matmul(a: object, b: object) -> Floats:
    """The product of matrices; a vector on the left is a row and on the right a column, and so is the product."""
    one, other = _array(a), _array(b)
    if min(one.ndim, other.ndim) < 1 or max(one.ndim, other.ndim) > 2 or (one.ndim, other.ndim) == (1, 1):
        raise KernelError("`matmul` takes two matrices, or a matrix and a vector; of two vectors take `dot`")
    if one.shape[-1] != other.shape[0]:
        raise KernelError(f"rows of {one.shape[-1]} numbers do not go with columns of {other.shape[0]}")
    return np.asarray(one @ other)


def dot(a: object, b: object) -> float:
    one, other = _array(a), _array(b)
    if one.ndim != 1 or one.shape != other.shape:
        raise KernelError("`dot` takes two vectors of one length")
    return float(one @ other)


def _regular(matrix: object, ridge: float) -> Floats:
    square = _square(matrix)
    if not isinstance(ridge, int | float) or not np.isfinite(ridge):
        raise KernelError("a ridge is a number")
    square = square + ridge * np.eye(len(square))
    if not np.linalg.cond(square) < 1 / np.finfo(float).eps:
        raise KernelError(SINGULAR)
    return square


def _square(matrix: object) -> Floats:
    values = _matrix(matrix)
    if values.shape[0] != values.shape[1]:
        raise KernelError(f"the matrix has {values.shape[0]} rows and {values.shape[1]} columns, and must be square")
    return values


def _matrix(value: object) -> Floats:
    array = _array(value)
    if array.ndim != 2 or 0 in array.shape:
        raise KernelError("a matrix is a list of rows, which are lists of numbers")
    return array


def _array(value: object) -> Floats:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise KernelError("a matrix is a list of rows of one length, and every entry a number") from None
    if not np.isfinite(array).all():
        raise KernelError("an entry is not finite")
    return array


def _signed(vectors: Floats) -> Floats:
    """Vectors, one a row, each turned so that its largest component is positive."""
    places = np.abs(vectors).argmax(axis=1)
    return vectors * np.where(vectors[np.arange(len(vectors)), places] < 0, -1.0, 1.0)[:, None]


# One thread ----------------------------------------------------------------------------------------


P = ParamSpec("P")
R = TypeVar("R")


_limited: list[bool] = []  # of the calls that are open, whether SciPy was loaded


@lru_cache(maxsize=2)
def _libraries(scipy: bool) -> Any:
    """The loaded libraries. SciPy brings its own, after which they are looked up again."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, during which NumPy's linear algebra uses one thread; 17 ms the first time, 0.2 ms after."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        scipy = "scipy.linalg" in sys.modules
        if scipy in _limited:  # by a call around this one
            return function(*args, **kwargs)
        _limited.append(scipy)
        try:
            with _libraries(scipy).limit(limits=1, user_api="blas"):
                return function(*args, **kwargs)
        finally:
            _limited.remove(scipy)

    return run
