"""NumPy and PyArrow, loaded when something of them is first used: checking a program needs neither. Kinds of arrays.

What was once asked of such a module is an attribute of its own from then on, so that later uses cost one look.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__all__ = ["Array", "Bools", "Floats", "Ints", "NDArray", "has_arrow", "np", "pa"]


class _Lazy:
    def __init__(self, load: Callable[[], object]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> object:
        value = getattr(self._load(), name)
        setattr(self, name, value)
        return value


def _numpy() -> object:
    import numpy

    return numpy


def _pyarrow() -> object:
    import pyarrow

    return pyarrow


@cache
def has_arrow() -> bool:
    """Whether PyArrow is installed. Without it tables in memory are handed to the database as arrays of NumPy."""
    return find_spec("pyarrow") is not None


if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
else:
    np, pa = _Lazy(_numpy), _Lazy(_pyarrow)
    NDArray = Array = Bools = Floats = Ints = type("ndarray", (), {})  # only types are made of them
