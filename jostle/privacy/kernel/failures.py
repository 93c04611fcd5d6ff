"""What is read after a charge, where reading it fails: the same as if there were no rows.

Everything that runs over private rows is built to be total, and checked before anything is charged. Where that is not
so after all, a message would tell of a row for nothing. So a failure on private data shows nowhere: noise is added to
what an empty table would give. On public data it is raised as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

FAILURES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NameError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip


def exact_or_empty(private: bool, read: Callable[[], T], empty: Callable[[], T]) -> T:
    """What `read` gives; of private data that it fails on, what `empty` gives."""
    if not private:
        return read()
    try:
        return read()
    except FAILURES:
        return empty()
