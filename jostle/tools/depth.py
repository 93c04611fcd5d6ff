"""Room for calls within calls: Python's limit of them, and the memory in which their frames stand."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from jostle.diagnostics import refuse

P = ParamSpec("P")
R = TypeVar("R")

DEEP = 60_000  # frames: 1,000 nested calls of a program take 10 to 30 each
FRAME = 2**16  # words of one frame

_lock = threading.Lock()
_limits: list[int] = []  # for each open `deep`, of any thread, Python's limit before the first one


@contextmanager
def deep() -> Iterator[None]:
    """Room for 1,000 nested calls of a program; what is deeper still is refused, and Python's own limit restored."""
    with _lock:
        _limits.append(_limits[0] if _limits else sys.getrecursionlimit())
        sys.setrecursionlimit(max(_limits[0], DEEP))
    try:
        yield
    except RecursionError:
        raise refuse("RecursionLimit", "the program is nested too deeply", help="does the recursion end?") from None
    finally:
        with _lock:
            before = _limits.pop()
            if not _limits:  # it is one for all threads
                sys.setrecursionlimit(before)


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, with half a megabyte for the frames of what it calls.

    Python puts frames into chunks of 16 KB, asks the system for the next at the call that crosses an edge, and gives
    it back at the return. An interpreter that walks a tree goes to and fro over such edges: a training of six tables
    did so 190,000 times, for a third of its time in forked processes. A frame that is too large for a chunk gets a
    large one, and what it does not fill is for the calls below.
    """

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    run.__code__ = run.__code__.replace(co_stacksize=FRAME)
    return wraps(function)(run)
