"""Linear algebra on one thread, for many small products.

The products here take microseconds to a few milliseconds. Spread over threads they gain little on an idle machine, and
where other processes want the cores too (training runs one a core) the threads spin waiting for each other: a
strategy over 1500 buckets then took 2.5 s instead of 0.05 s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

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
