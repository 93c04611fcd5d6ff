"""What a database may take: memory, a folder that it spills the rest into, and time until somebody stops it.

The folders of all processes of one user stand in `jostle-spill-UID` in the system's temporary folder. Each has a file
`lock` that its process keeps locked while it lives; what a dead process left behind is removed when an engine starts.
The rows stand there in plain, but no program reads these files as a table.

Ctrl-C: in the main thread DuckDB looks for a signal between the parts of a query, which may be minutes apart, and what
it raises then is no `KeyboardInterrupt`. So a query runs in a thread beside the main one, which waits for it or a
signal.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from jostle.diagnostics import Refusal, refuse
from jostle.engine.files import spill_root

T = TypeVar("T")
_TICK = 0.1  # seconds after which a signal is seen that the system gave to another thread
_PATIENCE = 50  # ticks that a query has to end
_STACK = 2**23  # bytes, as many as a main thread has; plans may be deep
_Worker = tuple[SimpleQueue[object], SimpleQueue[object]]  # what a thread is asked, and what it answers
_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)  # whose threads are the parent's


class Endless(KeyboardInterrupt):
    """A stop of a query that does not end: the connection stays busy. DuckDB looks for none while it plans one."""


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
            answer: tuple[object, BaseException | None] = work(), None
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


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?B|%)", re.IGNORECASE)
_QUARTER = "25%"


def memory_limit(size: str | None) -> str:
    """A size such as `2GB`, `500 MB` or `10%` of the machine's or the container's memory, in DuckDB's own spelling.

    Where `size` is None `$JOSTLE_MEMORY` holds, else a quarter. What is no size is a `ValueError`.
    """
    text = size or os.environ.get("JOSTLE_MEMORY") or _QUARTER
    parts = _SIZE.fullmatch(text.strip())
    if parts is None or not 0 < float(parts[1]) <= (100 if parts[2] == "%" else 2**40):
        help = "write it as `2GB`, `500MB` or `10%`, of the machine's memory"
        raise refuse("ValueError", f"{text!r} is no size of memory", help=help)
    return f"{parts[1]}{parts[2]}"


class SpillFolder:
    """A folder to spill into. `close` removes it; after a process that could not, the next engine does."""

    def __init__(self) -> None:
        above = spill_root()
        try:
            above.mkdir(mode=0o700, exist_ok=True)
            status = above.lstat()
        except OSError:
            raise _unusable(above) from None
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise _unusable(above)
        try:
            with _alone(above):
                _clear(above)
                self.path = tempfile.mkdtemp(dir=above)
                self._lock = _locked(Path(self.path) / "lock")
        except OSError:
            raise _unusable(above) from None

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


@contextmanager
def _alone(above: Path) -> Iterator[None]:
    """No other process makes or removes folders meanwhile."""
    descriptor = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """The descriptor of a lock, which lives with this process and its children; None where another has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _clear(above: Path) -> None:
    """Removes the folders that nobody holds."""
    for left in above.iterdir():
        with suppress(OSError):
            lock = _locked(left / "lock")
            if lock is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)


def _unusable(above: Path) -> Refusal:
    help = "make it yours alone (`chmod 700`), or set TMPDIR to another folder"
    return refuse("DataError", f"the folder `{above}`, for what does not fit in memory, cannot be used", help=help)
