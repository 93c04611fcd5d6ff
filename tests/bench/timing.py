"""What an action takes, by the clock and of the processor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Seconds(NamedTuple):
    """`wall` by the clock, `cpu` of this process with all its threads."""

    wall: float
    cpu: float


def timed(action: Callable[[], object]) -> Seconds:
    """What one call of `action` takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)
