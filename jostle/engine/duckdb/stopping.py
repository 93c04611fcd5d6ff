"""Ctrl-C while DuckDB works.

In the main thread DuckDB looks for a signal between the parts of a query, which may be minutes apart, and what it
raises then is no `KeyboardInterrupt`. So a query runs in a thread beside the main one, which waits for it or a signal.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
_TICK = 0.1  # seconds after which a signal is seen that the system gave to another thread
_PATIENCE = 50  # ticks that a query has to end
_STACK = 2**23  # bytes, as many as a main thread has; plans may be deep


class Endless(KeyboardInterrupt):
    """A stop of a query that does not end: the connection stays busy. DuckDB looks for none while it plans one."""


class _Worker:
    """A thread that works for the main one, one piece after the other: a new thread costs more than a small query."""

    def __init__(self) -> None:
        self.given_up = False
        self.answered, self._asked = threading.Lock(), threading.Lock()
        self.answered.acquire()
        self._asked.acquire()
        self._work: Callable[[], Any] | None = None
        self._results: list[Any] = []
        self._faults: list[BaseException] = []
        size = threading.stack_size(_STACK)
        try:
            _thread.start_new_thread(self._serve, ())
        finally:
            threading.stack_size(size)

    def begin(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._asked.release()

    def result(self) -> Any:
        """What the work gave, or raises what it raised; the worker keeps neither."""
        results, faults, self._results, self._faults = self._results, self._faults, [], []
        _idle.append(self)
        if faults:
            raise faults[0]
        return results[0]

    def _serve(self) -> None:
        while not self.given_up:
            self._asked.acquire()
            try:
                if self._work is not None:
                    self._results.append(self._work())
            except BaseException as fault:  # raised again by the one who waits
                self._faults.append(fault)
            finally:
                self._work = None
                self.answered.release()


_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)  # whose threads are the parent's


def beside(work: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """What `work` gives, whose query `interrupt` ends. After `KeyboardInterrupt` the connection can be used again,
    after `Endless` it cannot. Signals come to the main thread alone: in another one `work` is called as it is."""
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    worker = _idle.pop() if _idle else _Worker()
    try:
        worker.begin(work)
        while not worker.answered.acquire(timeout=_TICK):
            pass
    except KeyboardInterrupt as stop:
        if not _ended(worker.answered, interrupt):
            worker.given_up = True
            raise Endless(*stop.args) from None
        with suppress(BaseException):
            worker.result()  # with a result that is open the connection can be asked nothing else
        raise
    result: T = worker.result()
    return result


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
