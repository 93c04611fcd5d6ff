"""Requests to end a run, which stop it as Ctrl-C does: what was paid for is handed over, or kept for `jostle again`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NAMES = ("SIGTERM", "SIGHUP", "SIGXCPU")  # a time limit of a scheduler, a terminal that closes, one of the system


@contextmanager
def stops() -> Iterator[None]:
    """Within it, such a signal raises `KeyboardInterrupt` with its number. One that somebody handles or ignores (as
    `nohup` does) is left alone. A second one ends the process at once."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
        before = {n: signal.SIG_DFL for n in numbers if signal.getsignal(n) is signal.SIG_DFL}
        for number in before:
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt(number)


def status_of(stop: KeyboardInterrupt) -> int:
    """The exit status of a run that was stopped: 128 and the number of the signal, 130 for Ctrl-C."""
    number = next((arg for arg in stop.args if isinstance(arg, int)), int(signal.SIGINT))
    return 128 + number
