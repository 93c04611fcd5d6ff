"""Exposures: which private sources a handle reads, on which paths of their budgets, and with which stability.

For each private source, an exposure has the path in that source's budget tree on which a measurement is charged, and
the stability: how many rows can change when one protected unit changes. A public handle has no exposures and is
measured exactly, for nothing. What a handle is of (rows, counts, vectors) is in `handles`; no handle holds a row.

A source is what is protected, how it is counted, and the meter that counts it. A source's *identity* (the file,
whatever it is called; the object, if in memory) has one meter in a session: two declarations share the first one's
budget.

*The register* knows the private sources of a session, and whether they may be measured now. It refuses data that are
private under one name and public under another. Before every charge it refuses sources that are closed, training on
private data, and another process than the one that spends.

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
from dataclasses import dataclass
from dataclasses import field as data_field
from operator import attrgetter
from types import TracebackType

from msgspec import Struct, field

from jostle.accounting.amounts import ANY_ROWS, BOUNDS, Amount, Meter, Path, Unit
from jostle.accounting.definitions import Account, Measure, parts_of
from jostle.diagnostics import Note, Refusal, refuse
from jostle.privacy.mechanisms.noise import Noise, SecureNoise
from jostle.records import replace
from jostle.source import Span


@dataclass(slots=True, eq=False)
class Source:
    """One protected thing. `simulated` sources stand for public data in training and take seeded noise; those with
    an `account` are registered, and counted in the ledger too. `closed`, after `outages` or a fault (`kernel.faults`),
    they are measured no more in this session."""

    name: str
    measure: Measure
    unit: Unit
    span: Span | None
    noise: Noise
    meter: Meter = data_field(init=False)
    simulated: bool = False
    charges: list[tuple[str, Amount, str, Span | None]] = data_field(default_factory=list)
    account: Account | None = None
    outages: int = 0
    closed: bool = False
    periods: object = None  # the partition whose parts have all rows of a protected unit

    @classmethod
    def declared(cls, name: str, measure: Measure, unit: Unit, span: Span | None, noise: Noise | None) -> Source:
        """A source of private data; with seeded `noise`, a simulated one."""
        return cls(name, measure, unit, span, noise or SecureNoise(), simulated=noise is not None)

    def __post_init__(self) -> None:
        self.meter = Meter(self.measure.width, self.measure.admits, bool(self.measure.for_ever))

    @property
    def notes(self) -> tuple[Note, ...]:
        return (Note(self.span, f"`{self.name}` is declared private here"),) if self.span is not None else ()

    def join(self, account: Account, span: Span | None) -> None:
        """Counts this source in the ledger too, from its total there on."""
        if self.account is None and self.charges:
            what = f"`{self.name}` was spent from before it was registered"
            raise refuse("DataError", what, span, help="start a new session")
        if self.account is None:
            self.account = account
        elif self.account.version != account.version:
            raise refuse("LedgerError", f"the data of `{account.name}` were updated", span, help="start a new session")
        self.account.catch_up(self.meter, account.spent)


class Allotment(Struct, eq=False):
    """An amount that may be spent inside, for each source it meets; `None` is without limit (public calls)."""

    amount: Amount | None
    span: Span | None
    opened_for: Exposures = ()
    meters: dict[int, tuple[Source, Meter]] = field(default_factory=dict)
    shared_out: Amount | None = None  # what shares of it are of: what was left at the first of them

    @property
    def unit(self) -> str | None:
        return self.amount.unit if self.amount is not None else None

    def meter(self, source: Source) -> Meter:
        if id(source) not in self.meters:
            limit = self.amount

            def admits(total: tuple[int, ...]) -> bool:
                return limit is None or (total[0] <= limit.value and (not limit.delta or total[1] <= limit.delta))

            self.meters[id(source)] = (source, Meter(2, admits))
        return self.meters[id(source)][1]

    def left(self, source: Source, path: Path, place: int = 0) -> int:
        """In quanta of the unit, or (place 1) of δ."""
        meter, whole = self.meter(source), self.amount
        return 0 if whole is None else (whole.value, whole.delta)[place] - meter.spent[place] + meter.slack(path)[place]


class Exposure(Struct, frozen=True):
    """`agents` are smaller budgets of their own that a charge must fit too (PINQ's agents).

    `rows` is how many rows of the handle can change when one protected unit changes, always; None where that has no
    bound, and nothing can be measured. Where rows have weights, `weight` is how much weight they can have in all, and
    what counts weights may go by it. Of the groups of one select `each` bounds the rows that a person has in one.
    `parts` are the plans of parts that it is within, each with the length that the path has there.
    """

    source: Source
    path: Path = ()
    rows: int | None = 1
    agents: tuple[Allotment, ...] = ()
    weight: int | None = None
    each: int | None = None
    declared: Unit | None = None
    parts: tuple[tuple[int, object], ...] = ()

    @classmethod
    def of(cls, source: Source, unit: Unit) -> Exposure:
        """That of a table of a source as it was declared."""
        return cls(source, (), unit.distance, weight=1 if unit.weighted else None, declared=unit)

    @property
    def unit(self) -> Unit:
        return self.declared or self.source.unit

    @property
    def stability(self) -> int:
        """The rows that can change, at least one so that noise has a scale; refused where they are not bounded."""
        return self.bounded()

    def bounded(self, span: Span | None = None) -> int:
        if self.rows is None or self.rows > 2**53:  # which no double tells from one more
            raise refuse("UnboundedSum", ANY_ROWS.format(f"of `{self.source.name}`"), span, help=BOUNDS)
        if self.source.measure.for_ever and not self.whole_path:
            help = "the amount for ever is of periods one by one: `t[period = 2026-01-05]`, `partition(t, period)`"
            raise refuse("UnboundedSum", ANY_ROWS.format("in its periods"), span, help=help)
        return max(1, self.rows)

    @property
    def digest_facts(self) -> tuple[str, int]:
        """What of it decides an answer, beside the plan: for `plan.digest`."""
        return ("Exposure", self.rows or 0)

    @property
    def whole_path(self) -> Path:
        """The start of the path, up to a part that has all rows of each of its units: those of a period."""
        return self.path[:1] if self.path and self.path[0][0] == self.source.periods else ()

    @property
    def weighted_stability(self) -> int:
        """For measurements that count each row by its weight (1 where rows have none)."""
        return self.stability if self.weight is None else self.weight


Exposures = tuple[Exposure, ...]


def extended(exposures: Exposures, label: object, key: object, plan: object = None) -> Exposures:
    """Those of a part, whose rows are what `plan` leaves."""
    return tuple(replace(e, path=(*e.path, (label, key)), parts=(*e.parts, (len(e.path) + 1, plan))) for e in exposures)


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    exposures: Exposures

    @property
    def private(self) -> bool:
        return bool(self.exposures)

    @property
    def measures(self) -> list[Measure]:
        """How each source that it reads is counted."""
        if not any(map(attrgetter("path"), self.exposures)):
            return list(map(attrgetter("source.measure"), self.exposures))
        parts = [(e.source.measure, bool(e.path) and e.stability > 1) for e in self.exposures]
        return [replace(measure, in_parts=shared) if shared else measure for measure, shared in parts]

    @property
    def weighted(self) -> bool:
        """Whether its rows have weights."""
        return not set(map(attrgetter("weight"), self.exposures)) <= {None}


MOST_OUTAGES = 3
"""Failures of the machine or of a server, of one source in one session, before it is closed."""
OUTAGES = (MemoryError, OSError)
"""With an engine's refusals of its data, what keeps these from being read: it names no cell, and the charge stays."""


class Counter:
    """How many faults there were in this process."""

    faults = 0


class Guarded:
    """Reading private rows and adding noise to what was read. Faults on public data are raised as they are."""

    def __init__(self, exposures: Exposures, span: Span | None) -> None:
        self._exposures, self._span = exposures, span

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        sources = [e.source for e in self._exposures if not e.source.simulated] if fault is not None else []
        if not sources or not isinstance(fault, Exception):  # Ctrl-C is a person's doing, not a row's
            return
        refused = isinstance(fault, Refusal) and fault.first.kind in ("DataError", "LedgerError")
        outage = refused or isinstance(fault, OUTAGES)
        for source in sources:
            source.outages += 1
            source.closed = source.closed or not outage or source.outages >= MOST_OUTAGES
        if refused:
            return
        Counter.faults += not outage
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
        help="what was released before is kept; start a new session to go on")  # fmt: skip


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
            raise refuse("DataError", what, span, help=help, notes=source.notes)
        self.names[name] = source
        return source

    def link(self, name: str, identity: Hashable, source: Source, unit: Unit, span: Span | None) -> Source:
        """Makes `identity` a table of a source, under its budget."""
        self.need_opening(span)
        if self._public & parts_of(identity):
            what = f"`{name}` is declared private, yet the same data were read as public before"
            raise refuse("PrivateValue", what, span, help="declare it private before its first use")
        if {self._private.get(part) for part in parts_of(identity)} - {None, (source, unit)}:
            help = "declare a file once, or in the same way each time"
            raise refuse("DataError", f"data of `{name}` are private already under another budget", span, help=help)
        self._private.update(dict.fromkeys(parts_of(identity), (source, unit)))
        self.names[name] = source
        return source

    def read_publicly(self, identity: Hashable, span: Span | None) -> None:
        for private, _ in (self._private[part] for part in parts_of(identity) & self._private.keys()):
            what = f"these data are private (`{private.name}`) and cannot be read as public too"
            raise refuse("PrivateValue", what, span, help=f"use `{private.name}`", notes=private.notes)
        if not parts_of(identity) <= self._public:
            self.need_opening(span)
        self._public |= parts_of(identity)

    def need_opening(self, span: Span | None) -> None:
        if not self.opens:
            raise refuse("TypeError", "a run of `best_run` opens and names no data", span, help="do it before")

    def accounts(self) -> list[Account]:
        """Those of registered sources."""
        return [source.account for source in self.names.values() if source.account is not None]

    def need_open(self, exposures: Exposures, span: Span | None = None) -> None:
        """Refuses private sources of others, while training, in another process, or closed, and rows without a bound.

        Every charge asks this first, and so does everything that holds exact private values.
        """
        for exposure in exposures:
            exposure.bounded(span)
            source = exposure.source
            if not any(source is own for own, _ in self._private.values()):
                if source.simulated:  # it stands for public data of a training
                    continue
                raise refuse("DataError", f"`{source.name}` is of another session, or a copy", span, help="declare it")
            if source.closed:
                raise closed(source.name, span)
            if self._training:
                help = "train on public data: `counts(…)` or `table(…)` without `private`"
                raise refuse("PrivateValue", f"training reaches the private source `{source.name}`", span, help=help)
            if os.getpid() != self._process:
                what = f"`{source.name}` is measured in another process than its own"
                raise refuse("PrivateValue", what, span, help="a session spends where it was made: start one here")
