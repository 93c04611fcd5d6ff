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
from jostle.diagnostics import refuse
from jostle.privacy.noise import Noise, SecureNoise
from jostle.source import Span

if TYPE_CHECKING:
    from jostle.privacy.ledger.account import Account


@dataclass(frozen=True, slots=True)
class Unit:
    """What neighbours differ by: one row, one row replaced, or all (up to `rows`) rows of one value of `columns`.

    `weighted`: the rows of one value have weights that add up to 1.
    """

    columns: tuple[str, ...] = ()
    rows: int = 1
    public_size: bool = False
    at_most: int | None = None
    weighted: bool = False

    @property
    def distance(self) -> int:
        """The distance of neighbours in added and removed rows: what every stability starts from."""
        return 2 if self.public_size else self.rows

    def __str__(self) -> str:
        if self.columns:
            return f"{', '.join(self.columns)} up to {self.rows} rows{' weighted' if self.weighted else ''}"
        tail = ", public size" if self.public_size else f", at most {self.at_most} rows" if self.at_most else ""
        return f"rows{tail}"


@dataclass(slots=True, eq=False)
class Source:
    """One protected thing. `simulated` sources stand for public data in training and take seeded noise; those with
    an `account` are registered, and counted in the ledger too."""

    name: str
    measure: Measure
    unit: Unit
    span: Span | None
    noise: Noise
    meter: Meter = field(init=False)
    simulated: bool = False
    charges: list[tuple[str, Span | None]] = field(default_factory=list)
    account: Account | None = None

    def __post_init__(self) -> None:
        self.meter = Meter(self.measure.width, self.measure.admits)

    def join(self, account: Account, span: Span | None) -> None:
        """Counts this source in the ledger too, from its total there on."""
        from jostle.privacy.ledger.account import catch_up

        if self.account is None and self.charges:
            raise refuse(
                "DataError", f"`{self.name}` was spent from before it was registered", span, help="start a new session"
            )
        if self.account is None:
            self.account = account
        elif self.account.version != account.version:
            raise refuse("LedgerError", f"the data of `{account.name}` were updated", span, help="start a new session")
        catch_up(self.meter, account.dataset.state.spent, account.name)


class Register:
    """The sources of a session by identity, and which identities were read as public."""

    def __init__(self) -> None:
        self._private: dict[Hashable, Source] = {}
        self._public: set[Hashable] = set()
        self.names: dict[str, Source] = {}

    def declare(
        self, name: str, identity: Hashable, measure: Measure, unit: Unit, span: Span | None, noise: Noise | None = None
    ) -> Source:
        """The source of `identity`, new or as it was first declared; seeded `noise` makes it a simulated one."""
        if identity in self._public:
            raise refuse(
                "PrivateValue", f"`{name}` is declared private, yet the same data were read as public before", span,
                help="declare it private before its first use, and use only the private name",
            )  # fmt: skip
        found = self._private.get(identity)
        if found is None:
            found = Source(name, measure, unit, span, noise or SecureNoise(), simulated=noise is not None)
            self._private[identity] = found
        elif found.unit != unit or found.measure.kind != measure.kind or found.measure.unit != measure.unit:
            raise refuse(
                "DataError", f"`{name}` and `{found.name}` are the same data with another unit or measure", span,
                help=f"declare both `protecting {found.unit}` with a budget in {found.measure.unit}",
            )  # fmt: skip
        self.names[name] = found
        return found

    def read_publicly(self, identity: Hashable, span: Span | None) -> None:
        found = self._private.get(identity)
        if found is not None:
            raise refuse(
                "PrivateValue", f"these data are private (`{found.name}`) and cannot be read as public too", span,
                help=f"use `{found.name}`",
            )  # fmt: skip
        self._public.add(identity)
