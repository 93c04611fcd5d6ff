"""Whose turn it is in a session: its programs run one after the other, whatever threads they come from.

A program has the interpreter, the kernel's open allotments and the engine's connection for itself, from before its
first charge until its end.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from jostle.diagnostics import refuse
from jostle.events import Event

P = ParamSpec("P")
R = TypeVar("R")

PATIENCE = 1.0
"""Seconds after which it is said that somebody waits."""


class Turns:
    """The lock of one session. A thread that has the turn may take it again, but for no program within a program."""

    def __init__(self, waits: Callable[[], None]) -> None:
        """`waits` is called, in a thread of its own, where a turn does not come within `PATIENCE`."""
        self.closed = False
        self._waits = waits
        self._lock, self._process = threading.RLock(), os.getpid()
        self._holder: int | None = None
        self._in_program = False

    @contextmanager
    def turn(self, *, program: bool = False) -> Iterator[None]:
        """Waits for the turn, has it, and gives it back whatever happens."""
        self._check_process()
        notice = None
        if self._holder not in (None, threading.get_ident()):
            notice = threading.Timer(PATIENCE, self._waits)
            notice.daemon = True
            notice.start()
        try:
            with self._lock:
                if notice is not None:
                    notice.cancel()
                if self.closed:
                    raise refuse("ValueError", "this session is closed", help="begin another one: `jostle.Session()`")
                if program and self._in_program:
                    help = "what listens to a program runs others in a session of its own"
                    raise refuse("ValueError", "a program of this session is running: no other begins in it", help=help)
                before = self._holder, self._in_program
                self._holder, self._in_program = threading.get_ident(), self._in_program or program
                try:
                    yield
                finally:
                    self._holder, self._in_program = before
        finally:
            if notice is not None:
                notice.cancel()

    def _check_process(self) -> None:
        """A fork has the lock as it was: one of a thread that did not come along is never given back."""
        if os.getpid() == self._process:
            return
        if not self._lock.acquire(blocking=False):
            message = "this session was forked while another thread ran a program in it"
            raise refuse("ValueError", message, help="a session of its own: `jostle.Session()`")
        self._lock.release()


class TakesTurns(Protocol):
    turns: Turns


S = TypeVar("S", bound=TakesTurns)


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method of a session that has the turn while it works."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.turns.turn():
            return method(self, *args, **kwargs)

    return run


def hearing(events: list[Event]) -> Callable[[Event], None]:
    """A listener that keeps events, and prints a line where a program waits for another one of its session."""

    def hear(event: Event) -> None:
        if event.kind == "wait":
            sys.stderr.write("jostle: this waits until another program of the session has ended\n")
        else:
            events.append(event)

    return hear
