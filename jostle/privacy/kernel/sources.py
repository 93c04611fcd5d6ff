"""Private sources: what is protected, how it is counted, and the meter that counts it.

A source's *identity* (the file, whatever it is called; the object, if in memory) has one meter in a session: two
declarations share the first one's budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jostle.accounting.amounts import Unit
from jostle.accounting.budget_tree import Meter
from jostle.accounting.definitions import Account, Measure
from jostle.diagnostics import Note, refuse
from jostle.privacy.mechanisms.noise import Noise, SecureNoise
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
    meter: Meter = field(init=False)
    simulated: bool = False
    charges: list[tuple[str, Span | None]] = field(default_factory=list)
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
