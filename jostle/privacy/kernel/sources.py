"""Private sources: what is protected, how it is counted, and the meter that counts it.

A source's *identity* (the file, whatever it is called; the object, if in memory) has one meter in a session: two
declarations share the first one's budget.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jostle.accounting.budget_tree import Meter
from jostle.accounting.definitions import Measure
from jostle.accounting.units import Unit
from jostle.diagnostics import refuse
from jostle.engine.base import parts_of
from jostle.privacy.mechanisms.noise import Noise, SecureNoise
from jostle.source import Span

if TYPE_CHECKING:
    from jostle.privacy.ledger.account import Account


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
    meter: Meter = field(init=False)
    simulated: bool = False
    charges: list[tuple[str, Span | None]] = field(default_factory=list)
    account: Account | None = None
    outages: int = 0
    closed: bool = False

    def __post_init__(self) -> None:
        self.meter = Meter(self.measure.width, self.measure.admits)

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
        account.catch_up(self.meter, account.dataset.state.spent)


class Register:
    """The sources of a session by the parts of their identity, and which parts were read as public.

    A table of a source's persons has an identity of its own, and its own unit.
    """

    def __init__(self) -> None:
        self._private: dict[Hashable, tuple[Source, Unit]] = {}
        self._public: set[Hashable] = set()
        self.names: dict[str, Source] = {}

    def declare(
        self, name: str, identity: Hashable, measure: Measure, unit: Unit, span: Span | None, noise: Noise | None = None
    ) -> Source:
        """The source of `identity`, new or as it was first declared; seeded `noise` makes it a simulated one."""
        owner, *others = {self._private.get(part) for part in parts_of(identity)}
        if owner is None or others:
            source = Source(name, measure, unit, span, noise or SecureNoise(), simulated=noise is not None)
            return self.link(name, identity, source, unit, span)
        source, before = owner
        if before != unit or source.measure.kind != measure.kind or source.measure.unit != measure.unit:
            raise refuse(
                "DataError", f"`{name}` and `{source.name}` are the same data with another unit or measure", span,
                help=f"declare both `protecting {before}` with a budget in {source.measure.unit}",
            )  # fmt: skip
        self.names[name] = source
        return source

    def link(self, name: str, identity: Hashable, source: Source, unit: Unit, span: Span | None) -> Source:
        """Makes `identity` a table of a source, under its budget."""
        if self._public & parts_of(identity):
            raise refuse(
                "PrivateValue", f"`{name}` is declared private, yet the same data were read as public before", span,
                help="declare it private before its first use, and use only the private name",
            )  # fmt: skip
        if {self._private.get(part) for part in parts_of(identity)} - {None, (source, unit)}:
            help = "declare a file once, or in the same way each time"
            raise refuse("DataError", f"data of `{name}` are private already under another budget", span, help=help)
        self._private.update(dict.fromkeys(parts_of(identity), (source, unit)))
        self.names[name] = source
        return source

    def read_publicly(self, identity: Hashable, span: Span | None) -> None:
        for private, _ in (self._private[part] for part in parts_of(identity) & self._private.keys()):
            raise refuse(
                "PrivateValue", f"these data are private (`{private.name}`) and cannot be read as public too", span,
                help=f"use `{private.name}`",
            )  # fmt: skip
        self._public |= parts_of(identity)

    def accounts(self) -> list[Account]:
        """Those of registered sources."""
        return [source.account for source in self.names.values() if source.account is not None]
