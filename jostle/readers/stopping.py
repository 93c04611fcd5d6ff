"""Ctrl-C while DuckDB works.

In the main thread DuckDB looks for a signal between the parts of a query, which may be minutes apart, and what it
raises then is no `KeyboardInterrupt`. So a query runs in a thread beside the main one, which waits for it or a signal.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from jostle.engine.duckdb.engine import Endless

T = TypeVar("T")
_TICK = 0.1  # seconds after which a signal is seen that the system gave to another thread
_PATIENCE = 50  # ticks that a query has to end
_STACK = 2**23  # bytes, as many as a main thread has; plans may be deep
_Worker = tuple[SimpleQueue[object], SimpleQueue[object]]  # what a thread is asked, and what it answers
_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)  # whose threads are the parent's


def beside(work: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """What `work` gives, whose query `interrupt` ends. After `KeyboardInterrupt` the connection can be used again,
    after `Endless` it cannot. Signals come to the main thread alone: in another one `work` is called as it is."""
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    tasks, answers = worker = _idle.pop() if _idle else _started()
    answer: tuple[T | None, BaseException | None] | None = None
    try:
        tasks.put(work)
        while answer is None:
            answer = _next(answers)
    except KeyboardInterrupt as stop:
        if answer is None and not _ended(answers, interrupt):
            tasks.put(None)
            raise Endless(*stop.args) from None
        _idle.append(worker)
        answer = None  # while a result is open the connection can be asked nothing else
        raise
    _idle.append(worker)
    result, fault = answer
    if fault is not None:
        raise fault
    return cast(T, result)


def _started() -> _Worker:
    """A thread that waits for work: a new one for each query would cost more than a small query."""
    worker: _Worker = SimpleQueue(), SimpleQueue()
    size = threading.stack_size(_STACK)
    _thread.start_new_thread(_serve, worker)
    threading.stack_size(size)
    return worker


def _serve(tasks: SimpleQueue[Any], answers: SimpleQueue[Any]) -> None:
    while (work := tasks.get()) is not None:
        try:
            answer: tuple[Any, BaseException | None] = work(), None
        except BaseException as fault:  # raised again by the one who waits
            answer = None, fault
        answers.put(answer)
        del work, answer  # which hold a connection


def _next(answers: SimpleQueue[object]) -> Any:
    """The next answer, or None after a tick without one."""
    try:
        return answers.get(timeout=_TICK)
    except Empty:
        return None


def _ended(answers: SimpleQueue[object], interrupt: Callable[[], None]) -> bool:
    """Ends a query, again and again since it may not have begun; whether it did end before somebody asks twice."""
    try:
        for _ in range(_PATIENCE):
            interrupt()
            if _next(answers) is not None:
                return True
    except KeyboardInterrupt:
        return False
    return False
