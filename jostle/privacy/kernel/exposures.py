"""Exposures: which private sources a handle reads, on which paths of their budgets, and with which stability.

For each private source, an exposure has the path in that source's budget tree on which a measurement is charged, and
the stability: how many rows can change when one protected unit changes. A public handle has no exposures and is
measured exactly, for nothing. What a handle is of (rows, counts, vectors) is in `handles`; no handle holds a row.

A source is what is protected, how it is counted, and the meter that counts it. A source's *identity* (the file,
whatever it is called; the object, if in memory) has one meter in a session: two declarations share the first one's
budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field as data_field
from operator import attrgetter

from msgspec import Struct, field

from jostle.accounting.amounts import ANY_ROWS, BOUNDS, Amount, Meter, Path, Unit
from jostle.accounting.definitions import Account, Measure
from jostle.diagnostics import Note, refuse
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

    @classmethod
    def declared(cls, name: str, measure: Measure, unit: Unit, span: Span | None, noise: Noise | None) -> Source:
        """A source of private data; with seeded `noise`, a simulated one."""
        return cls(name, measure, unit, span, noise or SecureNoise(), simulated=noise is not None)

    def __post_init__(self) -> None:
        self.meter = Meter(self.measure.width, self.measure.admits)

    @property
    def notes(self) -> tuple[Note, ...]:
        return (Note(self.span, f"`{self.name}` is declared private here"),) if self.span is not None else ()

    def join(self, account: Account, span: Span | None) -> None:
        """Counts this source in the ledger too, from its total there on."""
        if self.account is None and self.charges:
            raise refuse(
                "DataError", f"`{self.name}` was spent from before it was registered", span, help="start a new session"
            )
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
    """

    source: Source
    path: Path = ()
    rows: int | None = 1
    agents: tuple[Allotment, ...] = ()
    weight: int | None = None
    each: int | None = None
    declared: Unit | None = None

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
        return max(1, self.rows) if self.rows is not None and self.rows <= 2**53 else self.bounded()

    def bounded(self, span: Span | None = None) -> int:
        if self.rows is None or self.rows > 2**53:  # which no double tells from one more
            raise refuse("UnboundedSum", ANY_ROWS.format(f"of `{self.source.name}`"), span, help=BOUNDS)
        return max(1, self.rows)

    @property
    def digest_facts(self) -> tuple[str, int]:
        """What of it decides an answer, beside the plan: for `plan.digest`."""
        return ("Exposure", self.rows or 0)

    @property
    def weighted_stability(self) -> int:
        """For measurements that count each row by its weight (1 where rows have none)."""
        return self.stability if self.weight is None else self.weight


Exposures = tuple[Exposure, ...]


def join_exposures(sides: Iterable[Exposures], factors: Iterable[int]) -> Exposures:
    """Of something made from several handles: one exposure a source, at the common prefix, stabilities summed."""
    joined: dict[int, Exposure] = {}
    for side, factor in zip(sides, factors, strict=True):
        for new in side:
            old = joined.get(id(new.source))
            path = new.path if old is None else common_prefix(old.path, new.path)
            rows = None if new.rows is None else new.rows * factor
            if rows is not None and old is not None:
                rows = None if old.rows is None else rows + old.rows
            agents = dict.fromkeys((*(old.agents if old is not None else ()), *new.agents))
            weight = None if new.weight is None else new.weight * factor
            if weight is not None and old is not None:
                weight = None if old.weight is None else weight + old.weight
            joined[id(new.source)] = Exposure(new.source, path, rows, tuple(agents), weight, declared=new.declared)
    return tuple(joined.values())


def common_prefix(a: Path, b: Path) -> Path:
    shared = len(a) if a == b else 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    return a[:shared]


def extended(exposures: Exposures, partition: object, part: object) -> Exposures:
    return tuple(replace(e, path=(*e.path, (partition, part))) for e in exposures)


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    exposures: Exposures

    @property
    def private(self) -> bool:
        return bool(self.exposures)

    @property
    def measures(self) -> list[Measure]:
        """How each source that it reads is counted."""
        return list(map(attrgetter("source.measure"), self.exposures))

    @property
    def weighted(self) -> bool:
        """Whether its rows have weights."""
        return not set(map(attrgetter("weight"), self.exposures)) <= {None}
