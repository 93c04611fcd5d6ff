"""Standard output as it may be: full, closed, or without a sign for ε; requests to end a run, and faults of Jostle
itself.

What a run released and could not print has been paid for: it is kept in a file of this user's own, `jostle again`
prints it, and it is removed when that went well. Requests to end a run stop it as Ctrl-C does. A fault that was not
foreseen becomes a refusal that names the class of the exception and nothing more. Its message or its traceback
could hold values of private rows. JOSTLE_DEBUG=1 shows all, to whoever may see the data.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TextIO, cast

from jostle.diagnostics import Refusal, refuse
from jostle.resources import user_folder

if TYPE_CHECKING:
    from jostle.run.evaluator import Evaluator

_SIGNS = {
    "ε": "e", "δ": "d", "ρ": "r", "±": "+/-", "×": "x", "–": "-", "−": "-", "…": "...", "▶": ">", "─": "-", "│": "|",
    "┌": "+", "├": "+", "└": "+", "·": ".", "█": "#", "▓": "#", "▒": "=", "░": ".", "“": '"', "”": '"', "’": "'",
}  # fmt: skip


class OutputFault(OSError):
    """Standard output cannot be written."""


class _Output:
    """Standard output: a fault of writing is an `OutputFault`, and comes again with each flush, for those who met the
    first and went on, as the parser of command lines does."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream
        self.fault: OutputFault | None = None

    def write(self, text: str) -> int:
        try:
            if self.stream is None:
                raise OSError(errno.EBADF, "it is closed")
            return self.stream.write(text)
        except OSError as fault:
            self.fault = OutputFault(*fault.args)
            raise self.fault from fault

    def flush(self) -> None:
        try:
            if self.stream is not None:
                self.stream.flush()
        except OSError as fault:
            self.fault = OutputFault(*fault.args)
        if self.fault is not None:
            raise self.fault

    def __getattr__(self, name: str) -> object:
        if self.stream is None and name == "buffer":  # of the server of editors
            raise OutputFault(errno.EBADF, "it is closed")
        return getattr(self.stream or _NOTHING, name)


class _Aside:
    """Standard error, on which nothing waits: what it cannot take is let go."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream or _NOTHING

    def write(self, text: str) -> int:
        try:
            return self.stream.write(text)
        except OSError:
            _let_go(self.stream)
            return len(text)

    def flush(self) -> None:
        try:
            self.stream.flush()
        except OSError:
            _let_go(self.stream)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


_NOTHING = io.StringIO()


@contextmanager
def prepared() -> Iterator[None]:
    """Within it, standard output and standard error are fit for every text, and no fault of theirs stays in a buffer
    for Python to meet at its end. A standard file that was closed is an empty one, whose number no other file gets."""
    codecs.register_error("jostle.plain", _plain)
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free
    before = sys.stdin, sys.stdout, sys.stderr
    for stream in before[1:]:
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # it writes what waits, which fails again where that matters
                stream.reconfigure(errors="jostle.plain")
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = cast(TextIO, _Output(before[1])), cast(TextIO, _Aside(before[2]))
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stdin, sys.stdout, sys.stderr = before


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_SIGNS.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def give_up() -> None:
    """Lets go of what waits for a standard output that cannot be written."""
    if isinstance(sys.stdout, _Output) and sys.stdout.stream is not None:
        _let_go(sys.stdout.stream)


def _let_go(stream: TextIO) -> None:
    """What waits in a buffer, and all that follows, goes nowhere."""
    if isinstance(stream, io.TextIOWrapper):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        with suppress(OSError):
            stream.flush()


def reason_of(fault: OSError) -> str:
    """What the system says, for a person."""
    return (fault.strerror or "the system refused").lower()


# What is kept ------------------------------------------------------------------------------------------


def keep(program: str, document: Callable[[], Iterator[str]]) -> None:
    """Keeps the answers of a run, one JSON object in pieces, and says on standard error how to have them; prints them
    there where no file takes them."""
    header = json.dumps({"program": program, "time": time.strftime("%Y-%m-%d %H:%M:%S")}, ensure_ascii=False)

    def write(file: TextIO) -> None:
        pieces = document()
        file.write(f"{header[:-1]}, {next(pieces)[1:]}")
        file.writelines(pieces)
        file.write("\n")

    try:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{time.time_ns()}-{os.getpid()}.json"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            write(file)
    except (OSError, RuntimeError):
        sys.stderr.write("jostle: what this run paid for:\n")
        write(sys.stderr)
        return
    sys.stderr.write(f"jostle: what this run paid for is kept in {path}; `jostle again` prints it\n")


def stored() -> Iterator[tuple[Path, dict[str, object]]]:
    """What is kept, the oldest first."""
    try:
        places = sorted(_folder().glob("*.json"))
    except (OSError, RuntimeError):
        return
    for path in places:
        try:
            yield path, json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue


def _folder() -> Path:
    return user_folder("XDG_STATE_HOME", ".local/state")


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


@contextmanager
def stops_wait(run: Evaluator) -> Iterator[None]:
    """Within it a stop comes when what `run` has paid for has its name, or at the end; a second one comes at once."""
    before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def stop(number: int, frame: FrameType | None) -> None:
        if run.kernel.owes and run.stop is None:
            run.stop = partial(before[number], number, None)
            with suppress(OSError):  # standard error itself may be in the middle of a line
                os.write(2, b"\njostle: this stops with the answer that was paid for; a second stop gives it up\n")
        else:
            before[number](number, frame)

    if threading.current_thread() is threading.main_thread() and not run.holds:
        numbers = [getattr(signal, name) for name in ("SIGINT", *_NAMES) if hasattr(signal, name)]
        before.update({number: way for number in numbers if callable(way := signal.getsignal(number))})
    try:
        for number in before:
            run.holds = True
            signal.signal(number, stop)
        yield
    finally:
        if before:
            run.holds, run.kernel.owes = False, True  # no stop comes in the middle of this
            for number, way in before.items():
                if signal.getsignal(number) is stop:
                    signal.signal(number, way)
            run.deliver_stop()


def status_of(stop: KeyboardInterrupt) -> int:
    """The exit status of a run that was stopped: 128 and the number of the signal, 130 for Ctrl-C."""
    number = next((arg for arg in stop.args if isinstance(arg, int)), int(signal.SIGINT))
    return 128 + number


P = ParamSpec("P")
KIND = "InternalError"
"""The kind of a fault of Jostle itself, which has no page."""
_REPORT = (
    "this is a fault of jostle, not of your program; report it with the command and the program, but no data "
    "(JOSTLE_DEBUG=1 shows where it happened, and may show private values)"
)


class Others:
    """Functions of whoever began a session, such as its listeners: what they raise is theirs, and passes. Between a
    charge and the name of its answer it waits, as a stop does."""

    def __init__(self) -> None:
        self._fault: BaseException | None = None
        self._run: Evaluator | None = None

    def of(self, function: Callable[P, None]) -> Callable[P, None]:
        def call(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except BaseException as fault:
                if self._run is None or not self._run.kernel.owes:
                    self._fault = fault
                    raise
                if self._run.stop is None:
                    self._fault, self._run.stop = fault, partial(_throw, fault)

        return call

    @contextmanager
    def excepted(self, run: Evaluator | None = None) -> Iterator[None]:
        """Within it, whatever was not foreseen becomes a refusal that names the class of the exception alone."""
        outer, self._run = self._run, run or self._run
        try:
            yield
        except (Refusal, OutputFault):
            if run is not None and run.stop is not None:
                run.deliver_stop()
            raise
        except MemoryError:
            message = "there is not enough memory for this"
            raise refuse(
                "DataError", message, help="ask for fewer values at once, or run it where there is more"
            ) from None
        # The one broad clause: beyond it stands only the traceback of Python, which may show private values.
        except Exception as fault:
            if fault is self._fault:
                raise
            trace(fault)
            raise refuse(KIND, f"internal error ({type(fault).__name__})", help=_REPORT) from None
        finally:
            self._run = outer


def _throw(fault: BaseException) -> NoReturn:
    raise fault


def guarded(action: Callable[[], int], *, json_wanted: bool = False) -> int:
    """The action's exit status; 1 with what is said on standard error of a fault, 130 for an interrupt
    (128 and the number of another signal that stopped it).

    With `json_wanted`, a fault or a refusal is also one JSON object on standard output.
    """
    with prepared():
        try:
            status = _status(action, json_wanted)
            sys.stdout.flush()
        except OutputFault as fault:
            give_up()
            if fault.errno != errno.EPIPE:  # then whoever read the output has gone, and knows
                sys.stderr.write(f"jostle: standard output cannot be written: {reason_of(fault)}\n")
            return 1
    return status


def _with_paths_named(action: Callable[[], int]) -> int:
    """The action's exit status. Raises `Refusal(DataError)` for a path that the system refuses."""
    try:
        return action()
    except OutputFault:
        raise
    except OSError as fault:
        if not isinstance(fault.filename, str):
            raise
        path = fault.filename if len(fault.filename) <= 80 else fault.filename[:79] + "…"
        trace(fault)
        raise refuse("DataError", f"`{path}` cannot be used: {reason_of(fault)}", help="name another path") from fault


def _status(action: Callable[[], int], json_wanted: bool) -> int:
    """The action's exit status, or that of a fault that was reported."""
    try:
        with Others().excepted():
            return _with_paths_named(action)
    except Refusal as refusal:
        from jostle.tools.render import render_all, wants_colour, width_of

        err = sys.stderr
        if json_wanted:
            document = {"ok": False, "error": refusal.first.as_json(), "released": {}, "budget": {}}
            print(json.dumps(document, ensure_ascii=False))
        else:
            err.write(render_all(refusal.diagnostics, colour=wants_colour(err), width=width_of(err)))
        return 1
    except KeyboardInterrupt as stop:
        sys.stderr.write("\njostle: stopped; what was charged stays charged\n")
        return status_of(stop)


def trace(fault: Exception) -> None:
    """The traceback on standard error, under JOSTLE_DEBUG=1."""
    if os.environ.get("JOSTLE_DEBUG") == "1":
        import traceback

        traceback.print_exception(fault)
