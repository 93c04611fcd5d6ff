"""What a registered source is counted in beside its meter: a protocol, which the ledger on disk implements."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from msgspec import Struct

from jostle.accounting.budget_tree import Cost, Meter, Path
from jostle.accounting.definitions import ChargePurpose, Price
from jostle.source import Source as Text
from jostle.source import Span


class Account(Protocol):
    """A registered dataset as one session has opened it. `version` rises when its owner updates the data."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def spent(self) -> Cost:
        """The total that was read from the ledger when the dataset was opened."""
        ...

    def begin(self) -> None:
        """Another program of the session begins."""

    def catch_up(self, meter: Meter, total: Cost) -> None:
        """Adds to the session's meter what other sessions have spent; refuses a total below the meter's."""

    def settle(
        self, charges: Sequence[Charge], price: Price, what: str, span: Span | None, program: Text | None,
        purpose: ChargePurpose,
    ) -> int | None:  # fmt: skip
        """Writes all charges of a measurement, each with its own account, or none of them. Returns the index of a
        charge that does not fit its budget, or None when all of them are on disk; raises `LedgerError` otherwise."""
        ...


class Charge(Struct, frozen=True):
    """What one measurement costs one registered source: on which path of its meter, and what a row protects."""

    account: Account
    meter: Meter
    path: Path
    cost: Cost
    protects: str


def parts_of(identity: Hashable) -> frozenset[Hashable]:
    """What data are known by: data that have a part in common are one, wherever one budget is to be counted."""
    return identity if isinstance(identity, frozenset) else frozenset((identity,))
