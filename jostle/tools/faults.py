"""Catches faults of Jostle itself before their text reaches a person.

Whatever was not foreseen becomes one line that names the class of the exception and nothing more, since its message
or its traceback could hold values of private rows. JOSTLE_DEBUG=1 shows all, to whoever may see the data.

Room for calls within calls: Python's limit of them, and the memory in which their frames stand.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from jostle.diagnostics import Refusal, refuse

P = ParamSpec("P")
R = TypeVar("R")

KIND = "InternalError"
"""The kind of a fault of Jostle itself, which has no page."""
_REPORT = (
    "this is a fault of jostle, not of your program; report it with the command and the program, but no data "
    "(JOSTLE_DEBUG=1 shows where it happened, and may show private values)"
)


class Others:
    """Functions of whoever began a session, such as its listeners: what they raise is theirs, and passes."""

    def __init__(self) -> None:
        self._fault: BaseException | None = None

    def of(self, function: Callable[P, R]) -> Callable[P, R]:
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except BaseException as fault:
                self._fault = fault
                raise

        return call

    @contextmanager
    def excepted(self) -> Iterator[None]:
        """Within it, whatever was not foreseen becomes a refusal that names the class of the exception alone."""
        try:
            yield
        except Refusal:
            raise
        except MemoryError:
            message = "there is not enough memory for this"
            raise refuse(
                "DataError", message, help="ask for fewer values at once, or run it where there is more"
            ) from None
        # Beyond this clause stands only the traceback of Python, which may show private values.
        except Exception as fault:
            if fault is self._fault:
                raise
            trace(fault)
            raise refuse(KIND, _message(fault), help=_REPORT) from None


def guarded(action: Callable[[], int], *, json_wanted: bool = False) -> int:
    """The action's exit status; 1 with one line on standard error for a fault, 130 for an interrupt
    (128 and the number of another signal that stopped it).

    With `json_wanted`, a fault or a refusal is also one JSON object on standard output.
    """
    from jostle.tools.outlet import prepared

    with prepared():
        return _guarded(action, json_wanted)


def _guarded(action: Callable[[], int], json_wanted: bool) -> int:
    from jostle.tools.outlet import OutputFault, give_up, reason_of

    try:
        status = _status(action, json_wanted)
        sys.stdout.flush()
    except OutputFault as fault:
        give_up()
        if fault.errno != errno.EPIPE:  # then whoever read the output has gone, and knows
            sys.stderr.write(f"jostle: standard output cannot be written: {reason_of(fault)}\n")
        return 1
    return status


def _status(action: Callable[[], int], json_wanted: bool) -> int:
    """The action's exit status, or that of a fault that was reported."""
    from jostle.tools.outlet import OutputFault

    try:
        return action()
    except Refusal as refusal:
        from jostle.tools.render import render_all, wants_colour, width_of

        err = sys.stderr
        if json_wanted:
            _print_json({"ok": False, "error": refusal.first.as_json(), "released": {}, "budget": {}})
        else:
            err.write(render_all(refusal.diagnostics, colour=wants_colour(err), width=width_of(err)))
        return 1
    except KeyboardInterrupt as stop:
        from jostle.tools.outlet import status_of

        sys.stderr.write("\njostle: stopped; what was charged stays charged\n")
        return status_of(stop)
    except OutputFault:
        raise
    # The one broad clause: beyond it stands only Python's own traceback, which may show private values.
    except Exception as fault:
        return _report(fault, json_wanted)


def _report(fault: Exception, json_wanted: bool) -> int:
    if json_wanted:
        error = {"kind": KIND, "message": _message(fault), "help": _REPORT}
        _print_json({"ok": False, "error": error, "released": {}, "budget": {}})
    report(fault)
    return 1


def report(fault: Exception) -> None:
    """One line on standard error; under JOSTLE_DEBUG=1, the traceback before it."""
    trace(fault)
    sys.stderr.write(f"jostle: {_message(fault)}; {_REPORT}\n")


def trace(fault: Exception) -> None:
    """The traceback on standard error, under JOSTLE_DEBUG=1."""
    if os.environ.get("JOSTLE_DEBUG") == "1":
        import traceback

        traceback.print_exception(fault)


def _message(fault: Exception) -> str:
    return f"internal error ({type(fault).__name__})"


def _print_json(document: dict[str, object]) -> None:
    import json

    print(json.dumps(document, ensure_ascii=False))


DEEP = 60_000  # frames: 1,000 nested calls of a program take 10 to 30 each
FRAME = 2**16  # words of one frame

_lock = threading.Lock()
_limits: list[int] = []  # for each open `deep`, of any thread, Python's limit before the first one


@contextmanager
def deep() -> Iterator[None]:
    """Room for 1,000 nested calls of a program; what is deeper still is refused, and Python's own limit restored."""
    with _lock:
        _limits.append(_limits[0] if _limits else sys.getrecursionlimit())
        sys.setrecursionlimit(max(_limits[0], DEEP))
    try:
        yield
    except RecursionError:
        raise refuse("RecursionLimit", "the program is nested too deeply", help="does the recursion end?") from None
    finally:
        with _lock:
            before = _limits.pop()
            if not _limits:  # it is one for all threads
                sys.setrecursionlimit(before)


def with_room(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, with half a megabyte for the frames of what it calls.

    Python puts frames into chunks of 16 KB, asks the system for the next at the call that crosses an edge, and gives
    it back at the return. An interpreter that walks a tree goes to and fro over such edges: a training of six tables
    did so 190,000 times, for a third of its time in forked processes. A frame that is too large for a chunk gets a
    large one, and what it does not fill is for the calls below.
    """

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    run.__code__ = run.__code__.replace(co_stacksize=FRAME)
    return wraps(function)(run)
