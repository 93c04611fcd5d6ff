"""The register: the private sources of a session, and whether they may be measured now.

It refuses data that are private under one name and public under another. Before every charge it refuses sources that
are closed, training on private data, and another process than the one that spends.

*Faults.* All that runs over private rows is built to be total, and what may be refused is refused before the charge. An
exception between a charge and its release may still depend on a row (`Guarded`). It becomes a message that depends on
the program alone, no answer, and sources that are closed for the session: at once, or at the third failure that the
machine can cause by itself. `Measurement.finish` sees released numbers only and stands outside. The argument is in
docs/decisions/faults.md; the tests hold the counter of such faults at 0.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from types import TracebackType

from jostle.accounting.amounts import Unit
from jostle.accounting.definitions import Account, Measure, parts_of
from jostle.diagnostics import Refusal, refuse
from jostle.privacy.kernel.exposures import Exposures, Source
from jostle.privacy.mechanisms.noise import Noise
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
        self._exposures, self._span = exposures, span

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        sources = [e.source for e in self._exposures if not e.source.simulated] if fault is not None else []
        if not sources or not isinstance(fault, Exception):  # Ctrl-C is a person's doing, not a row's
            return
        outage = isinstance(fault, OUTAGES)
        for source in sources:
            source.outages += 1
            source.closed = source.closed or not outage or source.outages >= MOST_OUTAGES
        if isinstance(fault, Refusal):
            return
        if not outage:
            Counter.faults += 1
        if os.environ.get("JOSTLE_DEBUG") == "1":
            import traceback

            traceback.print_exception(fault)
        names = " and ".join(f"`{source.name}`" for source in sources)
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


class Register:
    """The sources of a session by the parts of their identity, and which parts were read as public.

    A table of a source's persons has an identity of its own, and its own unit.
    """

    def __init__(self) -> None:
        self._private: dict[Hashable, tuple[Source, Unit]] = {}
        self._public: set[Hashable] = set()
        self.names: dict[str, Source] = {}
        self._training, self._process = 0, os.getpid()
        self.opens = True  # in a run of `best_run`, which may leave no trace, nothing is opened that was not before

    @contextmanager
    def training(self) -> Iterator[None]:
        """While this is open, no private source may be measured."""
        self._training += 1
        try:
            yield
        finally:
            self._training -= 1

    def declare(
        self, name: str, identity: Hashable, measure: Measure, unit: Unit, span: Span | None, noise: Noise | None = None
    ) -> Source:
        """The source of `identity`, new or as it was first declared; seeded `noise` makes it a simulated one."""
        owner, *others = {self._private.get(part) for part in parts_of(identity)}
        if owner is None or others:
            source = Source.declared(name, measure, unit, span, noise)
            return self.link(name, identity, source, unit, span)
        source, before = owner
        if before != unit or source.measure.kind != measure.kind or source.measure.unit != measure.unit:
            help = f"declare both `protecting {before}` with a budget in {source.measure.unit}"
            what = f"`{name}` and `{source.name}` are the same data with another unit or measure"
            raise refuse("DataError", what, span, help=help)
        self.names[name] = source
        return source

    def link(self, name: str, identity: Hashable, source: Source, unit: Unit, span: Span | None) -> Source:
        """Makes `identity` a table of a source, under its budget."""
        self._need_opening(span)
        if self._public & parts_of(identity):
            help = "declare it private before its first use, and use only the private name"
            what = f"`{name}` is declared private, yet the same data were read as public before"
            raise refuse("PrivateValue", what, span, help=help)
        if {self._private.get(part) for part in parts_of(identity)} - {None, (source, unit)}:
            help = "declare a file once, or in the same way each time"
            raise refuse("DataError", f"data of `{name}` are private already under another budget", span, help=help)
        self._private.update(dict.fromkeys(parts_of(identity), (source, unit)))
        self.names[name] = source
        return source

    def read_publicly(self, identity: Hashable, span: Span | None) -> None:
        for private, _ in (self._private[part] for part in parts_of(identity) & self._private.keys()):
            what = f"these data are private (`{private.name}`) and cannot be read as public too"
            raise refuse("PrivateValue", what, span, help=f"use `{private.name}`")
        if not parts_of(identity) <= self._public:
            self._need_opening(span)
        self._public |= parts_of(identity)

    def _need_opening(self, span: Span | None) -> None:
        if not self.opens:
            help = "open them before `best_run`"
            raise refuse("TypeError", "a run of `best_run` opens no data that were not open before", span, help=help)

    def accounts(self) -> list[Account]:
        """Those of registered sources."""
        return [source.account for source in self.names.values() if source.account is not None]

    def need_open(self, exposures: Exposures, span: Span | None = None) -> None:
        """Refuses private sources while training, in any process but the kernel's, or closed, and rows without a bound.

        Every charge asks this first, and so does everything that holds exact private values.
        """
        for exposure in exposures:
            exposure.bounded(span)
            source = exposure.source
            if source.simulated:
                continue
            if source.closed:
                raise closed(source.name, span)
            if self._training:
                help = "train on public data: `counts(…)` or `table(…)` without `private`"
                raise refuse("PrivateValue", f"training reaches the private source `{source.name}`", span, help=help)
            if os.getpid() != self._process:
                what = f"`{source.name}` is measured in another process than its own"
                help = "a session spends in the process that made it: start a session here"
                raise refuse("PrivateValue", what, span, help=help)
