"""Doing numbered pieces of work in several processes, with the same results and errors as in one.

Workers are forked, so what they compute with needs no pickling; results do. They draw from nothing shared, take the
next piece when they are done with one, and end with their parent, also at Ctrl-C. Where there is no `fork`, one
core, or little work, everything happens here.
"""

from __future__ import annotations

import gc
import os
import signal
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.diagnostics import Diagnostic, Refusal, refuse

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

T = TypeVar("T")
Progress = Callable[[int, int], None]

WORTH_FORKING = 1.5
"""Seconds of work left, by the first piece, from which on processes are started."""


def run_all(task: Callable[[int], T], count: int, progress: Progress | None, workers: int | None) -> list[T]:
    """`[task(0), …, task(count − 1)]`. `workers` None: as many as there are cores, if it is worth it.

    Raises the `Refusal` of the first piece that is refused, whatever the number of workers.
    """
    report = progress or (lambda done, total: None)
    report(0, count)
    results: list[Any] = []
    start = time.perf_counter()
    while len(results) < min(count, 1):
        results.append(task(0))
        report(1, count)
    left = (count - 1) * (time.perf_counter() - start)
    many = min(workers or (_cores() if left > WORTH_FORKING else 1), count - 1)
    if many > 1 and hasattr(os, "fork"):
        return results + _forked(task, count, report, many)
    while len(results) < count:
        results.append(task(len(results)))
        report(len(results), count)
    return results


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _forked(task: Callable[[int], object], count: int, report: Progress, many: int) -> list[object]:
    """The results of pieces 1, 2, …, in order."""
    from multiprocessing.connection import wait

    team: dict[Connection, BaseProcess] = {}
    doing: dict[Connection, int] = {}
    results: dict[int, object] = {}
    refused: dict[int, tuple[Diagnostic, ...]] = {}
    todo = iter(range(1, count))
    try:
        for _ in range(many):
            ours, process = _start(task, list(team))
            team[ours] = process
            _hand_out(ours, todo, doing)
        while doing:
            ready = wait(list(doing))
            for ours in [c for c in doing if c in ready]:
                piece = doing.pop(ours)
                try:
                    diagnostics, result = ours.recv()
                except EOFError:
                    raise _lost(task, piece, team[ours]) from None
                if diagnostics is not None:
                    refused[piece] = diagnostics
                    todo = iter(())
                    continue
                results[piece] = result
                report(1 + len(results), count)
                _hand_out(ours, todo, doing)
    finally:
        for ours, process in team.items():
            ours.close()
            process.terminate()
        for process in team.values():
            process.join()
    if refused:
        raise Refusal(*refused[min(refused)])
    return [results[piece] for piece in range(1, count)]


def _start(task: Callable[[int], object], others: list[Connection]) -> tuple[Connection, BaseProcess]:
    import multiprocessing

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(task, theirs, [*others, ours]), daemon=True)
    with warnings.catch_warnings():
        # Python 3.12 warns of threads at any fork; the workers use no thread of their parent.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    return ours, process


def _hand_out(ours: Connection, todo: Any, doing: dict[Connection, int]) -> None:
    piece = next(todo, None)
    if piece is not None:
        ours.send(piece)
        doing[ours] = piece


def _work(task: Callable[[int], object], theirs: Connection, inherited: list[Connection]) -> None:
    """The life of a worker. Inherited ends are closed, so that it notices when its parent is gone; what the parent
    made is never collected here, since an embedded database may not be closed in another process than its own."""
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for connection in inherited:
        connection.close()
    ended = False
    try:
        while True:
            try:
                piece = theirs.recv()
            except EOFError:
                ended = True
                break
            try:
                answer: tuple[object, object] = (None, task(piece))
            except Refusal as refusal:
                answer = (refusal.diagnostics, None)
            theirs.send(answer)
    finally:
        # Anything but a refusal is a fault, shown where the parent meets it again, not here.
        os._exit(0 if ended else 1)


def _lost(task: Callable[[int], object], piece: int, process: BaseProcess) -> Exception:
    """A worker ended early: if by a fault of its own, that fault is met again here; else the system ended it."""
    process.join()
    if process.exitcode is not None and process.exitcode > 0:
        task(piece)
    return refuse(
        "DataError",
        "training stopped: the system ended one of its processes",
        help="most often memory was short: train on smaller data sets, or on fewer at a time",
    )
