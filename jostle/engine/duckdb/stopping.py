"""Ctrl-C while DuckDB works.

In the main thread DuckDB looks for a signal between the parts of a query, which may be minutes apart, and what it
raises then is no `KeyboardInterrupt`. So a query runs in a thread beside the main one, which waits for it or a signal.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_TICK = 0.1  # seconds after which a signal is seen that the system gave to another thread
_PATIENCE = 50  # ticks that a query has to end
_STACK = 2**23  # bytes, as many as a main thread has; plans may be deep


class Endless(KeyboardInterrupt):
    """A stop of a query that does not end: the connection stays busy. DuckDB looks for none while it plans one."""


def beside(work: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """What `work` gives, whose query `interrupt` ends. After `KeyboardInterrupt` the connection can be used again,
    after `Endless` it cannot. Signals come to the main thread alone: in another one `work` is called as it is."""
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    results: list[T] = []
    faults: list[BaseException] = []
    running = threading.Lock()
    running.acquire()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as fault:  # raised again by the one who waits
            faults.append(fault)
        finally:
            running.release()

    size = threading.stack_size(_STACK)
    try:
        _thread.start_new_thread(run, ())
        threading.stack_size(size)
        while not running.acquire(timeout=_TICK):
            pass
    except KeyboardInterrupt as stop:
        if not _ended(running, interrupt):
            raise Endless(*stop.args) from None
        results.clear()  # with a result that is open the connection can be asked nothing else
        raise
    if faults:
        raise faults[0]
    return results[0]


def _ended(running: threading.Lock, interrupt: Callable[[], None]) -> bool:
    """Ends a query, again and again since it may not have begun; whether it did end before somebody asks twice."""
    try:
        for _ in range(_PATIENCE):
            interrupt()
            if running.acquire(timeout=_TICK):
                return True
    except KeyboardInterrupt:
        return False
    return False
