"""Exposures: which private sources a handle reads, on which paths of their budgets, and with which stability.

For each private source, an exposure has the path in the source's budget tree that a measurement is charged to, and the
stability: the number of rows that can change when one protected unit changes. A public handle has no exposures, and
measuring it is exact and free. The kinds of handles (rows, counts, vectors) are in `handles`. No handle holds a row.

A source consists of what is protected, the measure that counts it, and the meter. The *identity* of a source (the
file, under any name, or the object in memory) has one meter in a session: two declarations of it share the budget of
the first one.

*The register* lists the private sources of a session and decides whether they may be measured. It refuses data that
are private under one name and public under another. Before every charge it refuses closed sources, training on private
data, and processes other than the one that created the session.

*Faults.* Everything that runs over private rows is designed to be total, and refusals come before the charge. An
exception between a charge and its release could still depend on a row (`Guarded`). It is replaced by a message that
depends on the program alone, there is no answer, and the sources are closed for the session: at once, or at the third
failure of a kind that the machine can cause. `Measurement.finish` sees released numbers only and is not guarded. The
argument is in docs/decisions/faults.md; the tests keep the counter of such faults at 0.
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
    """One protected data set. `simulated` sources stand for public data in training and use seeded noise. Sources with
    an `account` are registered and also counted in the ledger. A `closed` source, after `outages` or a fault
    (`Guarded`), cannot be measured again in this session."""

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
        """Also counts this source in the ledger, starting from its total there."""
        if self.account is None and self.charges:
            what = f"`{self.name}` was spent from before it was registered"
            raise refuse("DataError", what, span, help="start a new session")
        if self.account is None:
            self.account = account
        elif self.account.version != account.version:
            raise refuse("LedgerError", f"the data of `{account.name}` were updated", span, help="start a new session")
        self.account.catch_up(self.meter, account.spent)


class Allotment(Struct, eq=False):
    """An amount that may be spent inside a block, on each source. An amount of None is no limit (public calls)."""

    amount: Amount | None
    span: Span | None
    opened_for: Exposures = ()
    meters: dict[int, tuple[Source, Meter]] = field(default_factory=dict)
    shared_out: Amount | None = None  # the whole that shares refer to: what was left at the first share

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
        """What is left on a path, in quanta of the unit, or of δ for `place` 1."""
        meter, whole = self.meter(source), self.amount
        return 0 if whole is None else (whole.value, whole.delta)[place] - meter.spent[place] + meter.slack(path)[place]


class Exposure(Struct, frozen=True):
    """How a handle reads one source. `agents` are smaller budgets that a charge must also fit (PINQ's agents).

    `rows` bounds the rows of the handle that change when one protected unit changes; None means no bound, and such a
    handle cannot be measured. For weighted rows `weight` bounds their total weight, which measurements of weights may
    use. `each` bounds a person's rows in one group of a select. `parts` are the plans of the enclosing parts, each with
    the length of the path there.
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
        """The exposure of a source's table as declared."""
        return cls(source, (), unit.distance, weight=1 if unit.weighted else None, declared=unit)

    @property
    def unit(self) -> Unit:
        return self.declared or self.source.unit

    @property
    def stability(self) -> int:
        """The number of rows that can change, at least 1 so that noise has a scale. Refused without a bound."""
        return self.bounded()

    def bounded(self, span: Span | None = None) -> int:
        if self.rows is None or self.rows > 2**53:  # beyond, doubles are not exact
            raise refuse("UnboundedSum", ANY_ROWS.format(f"of `{self.source.name}`"), span, help=BOUNDS)
        if self.source.measure.for_ever and not self.whole_path:
            help = "the amount for ever is of periods one by one: `t[period = 2026-01-05]`, `partition(t, period)`"
            raise refuse("UnboundedSum", ANY_ROWS.format("in its periods"), span, help=help)
        return max(1, self.rows)

    @property
    def in_parts(self) -> bool:
        """Whether a unit may have rows in several parts, or weight, as half a row's may be in each of two."""
        return self.stability > 1 or self.weight is not None

    @property
    def digest_facts(self) -> tuple[str, int]:
        """What affects an answer beside the plan, for `plan.digest`."""
        return ("Exposure", self.rows or 0)

    @property
    def whole_path(self) -> Path:
        """The start of the path up to a period, a part that contains all rows of each of its protected units."""
        return self.path[:1] if self.path and self.path[0][0] == self.source.periods else ()

    @property
    def weighted_stability(self) -> int:
        """The stability for measurements that add up weights; a row without a weight counts as 1."""
        return self.stability if self.weight is None else self.weight


Exposures = tuple[Exposure, ...]


def extended(exposures: Exposures, label: object, key: object, plan: object = None) -> Exposures:
    """The exposures of a part: `label` and `key` extend the paths, and `plan` selects its rows."""
    return tuple(replace(e, path=(*e.path, (label, key)), parts=(*e.parts, (len(e.path) + 1, plan))) for e in exposures)


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    exposures: Exposures

    @property
    def private(self) -> bool:
        return bool(self.exposures)

    @property
    def measures(self) -> list[Measure]:
        """The measure of each source, with `in_parts` for a path on which a unit may be in other parts too."""
        if not any(map(attrgetter("path"), self.exposures)):
            return list(map(attrgetter("source.measure"), self.exposures))
        parts = [(e.source.measure, bool(e.path) and e.in_parts) for e in self.exposures]
        return [replace(measure, in_parts=shared) if shared else measure for measure, shared in parts]

    @property
    def weighted(self) -> bool:
        """Whether its rows have weights."""
        return not set(map(attrgetter("weight"), self.exposures)) <= {None}


MOST_OUTAGES = 3
"""Failures of the machine or of a server, of one source in one session, before it is closed."""
OUTAGES = (MemoryError, OSError)
"""Failures that keep data from being read, beside refusals of an engine. Messages name no cell; the charge stays."""


class Counter:
    """The number of faults in this process."""

    faults = 0


class Guarded:
    """The context of reading private rows and adding noise. Exceptions on public data are raised unchanged."""

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
    """The refusal of a source that is closed for this session."""
    return refuse(
        "DataError", f"`{name}` is closed for this session, since measuring it failed after a charge", span,
        help="what was released before is kept; start a new session to go on")  # fmt: skip


class Register:
    """The private sources of a session by the parts of their identity, and the parts that were read as public.

    A table of persons that belongs to a source has its own identity and unit.
    """

    def __init__(self) -> None:
        self._private: dict[Hashable, tuple[Source, Unit]] = {}
        self._public: set[Hashable] = set()
        self.names: dict[str, Source] = {}
        self._training, self._process = 0, os.getpid()
        self.opens = True  # False in a run of `best_run`, which must leave no trace and so may not open new data

    @contextmanager
    def training(self) -> Iterator[None]:
        """A context in which no private source may be measured."""
        self._training += 1
        try:
            yield
        finally:
            self._training -= 1

    def declare(
        self, name: str, identity: Hashable, measure: Measure, unit: Unit, span: Span | None, noise: Noise | None = None
    ) -> Source:
        """The source of `identity`, new or as first declared. With seeded `noise` it is a simulated one."""
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
        """Registers `identity` as a table of a source, under its budget."""
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
        """The accounts of registered sources."""
        return [source.account for source in self.names.values() if source.account is not None]

    def need_open(self, exposures: Exposures, span: Span | None = None) -> None:
        """Refuses private sources of other sessions, closed ones, any in training or in another process, and rows
        without a bound. Every charge calls this first, and so does everything that holds exact private values.
        """
        for exposure in exposures:
            exposure.bounded(span)
            source = exposure.source
            if not any(source is own for own, _ in self._private.values()):
                if source.simulated:  # stands for public training data
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
