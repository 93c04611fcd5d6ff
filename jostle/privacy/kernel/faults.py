"""What an exception between a charge and its release becomes: a fixed message, and a source that is closed.

Everything that runs over private rows is built to be total, and what may be refused is refused before the charge. What
fails all the same may depend on a row. docs/decisions/faults.md argues for what it becomes here:
no answer, a message that depends on the program alone, sources that are closed for the session (at the third failure
that the machine can cause by itself), and a counter that the tests hold at 0. `Measurement.finish` stands outside.
"""

from __future__ import annotations

import os
from types import TracebackType

from jostle.diagnostics import Refusal, refuse
from jostle.privacy.kernel.exposures import Exposures
from jostle.source import Span

MOST_OUTAGES = 3
"""Failures of the machine or of a server, of one source in one session, before it is closed."""
OUTAGES = (Refusal, MemoryError, OSError)
"""What an engine raises where its data cannot be read: it names no cell, and the charge stays."""


class Counter:
    """How many faults there were in this process."""

    faults = 0


class Guarded:
    """Reading private rows and adding noise to what was read. Faults on public data are raised as they are."""

    def __init__(self, exposures: Exposures, span: Span | None) -> None:
        self._sources = [e.source for e in exposures if not e.source.simulated]
        self._span = span

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        if not self._sources or not isinstance(fault, Exception):  # Ctrl-C is a person's doing, not a row's
            return
        outage = isinstance(fault, OUTAGES)
        for source in self._sources:
            source.outages += 1
            source.closed = source.closed or not outage or source.outages >= MOST_OUTAGES
        if isinstance(fault, Refusal):
            return
        if not outage:
            Counter.faults += 1
        if os.environ.get("JOSTLE_DEBUG") == "1":
            import traceback

            traceback.print_exception(fault)
        names = " and ".join(f"`{source.name}`" for source in self._sources)
        raise refuse(
            "DataError", f"measuring {names} failed after the charge, and there is no answer", self._span, help=_HELP
        ) from None


_HELP = (
    "this is a fault of jostle or of this machine, not of your program, and what was charged stays charged. Report it "
    "with the program, but no data (JOSTLE_DEBUG=1 shows where it happened, and may show private values)"
)


def closed(name: str, span: Span | None) -> Refusal:
    """That a source cannot be measured any more in this session."""
    return refuse(
        "DataError", f"`{name}` is closed for this session, since measuring it failed after a charge", span,
        help="what was released before is kept; start a new session to go on",
    )  # fmt: skip
