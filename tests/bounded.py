"""A process that a test reads from ends in time, so that what is read ends too: no test hangs on a clock."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LONGEST = 600.0
"""Seconds, of which a test needs a few."""


@contextmanager
def ending(process: subprocess.Popen[Any], seconds: float = LONGEST) -> Iterator[None]:
    """The process is killed after so long, if it is not done with by then: its pipes end, and reading gives nothing."""
    clock = threading.Timer(seconds, process.kill)
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
