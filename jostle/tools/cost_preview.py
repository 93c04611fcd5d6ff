"""Predicts what an entry of the REPL would spend, from the static cost of all entries together.

The entries that ran are taken as one program; what it can cost with the new entry, less what it can cost without, is
the cost of the entry. Nothing is opened and nothing is run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from jostle.accounting.amounts import as_text
from jostle.diagnostics import Refusal
from jostle.source import Source
from jostle.trace.text import UNITS

if TYPE_CHECKING:
    from jostle.tools.session import Session


@dataclass(frozen=True, slots=True)
class EntryPrice:
    """At most `most` of `source`'s budget (infinite: no bound but the budget), in whole quanta; `exact`: just that."""

    source: str
    unit: str
    most: float
    exact: bool

    def __str__(self) -> str:
        if math.isinf(self.most):
            return f"{self.source}: no bound but its budget"
        amount = f"{UNITS.get(self.unit, self.unit)} {as_text(int(self.most))}"
        return f"{self.source}: {'' if self.exact else 'at most '}{amount}"


class CostPreview:
    """The entries of a session that ran, and the price of one more."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ran: list[str] = []

    def ran(self, text: str) -> None:
        """Remembers an entry that ran to its end."""
        statement = _statement(text)
        if statement is not None:
            self._ran.append(statement)

    def price(self, text: str) -> list[EntryPrice]:
        """Returns what an entry can cost each source; empty where it costs nothing, or is no program."""
        statement = _statement(text)
        if statement is None:
            return []
        before = {c.name: c for c in self._session.costs(Source("entries", "\n".join([*self._ran, ""])))}
        after = self._session.costs(Source("entries", "\n".join([*self._ran, statement, ""])))
        out = []
        for cost in after:
            old = before.get(cost.name)
            bounded = old is None or not math.isinf(old.asked)
            most = cost.asked - (old.asked if old is not None else 0) if bounded else math.inf
            if most > 0:
                out.append(EntryPrice(cost.name, cost.unit, most, cost.exact and (old is None or old.exact)))
        return out

    def steep(self, text: str) -> list[EntryPrice]:
        """The prices of an entry that could take more than half of what is left of a source."""
        try:
            prices = self.price(text)
        except Refusal:
            return []
        budget = self._session.budget()
        out = []
        for price in prices:
            amounts = budget.get(price.source, {}).get(price.unit)
            if amounts is None:
                continue
            left = Decimal(amounts["total"]) - Decimal(amounts["spent"])
            if math.isinf(price.most) or Decimal(as_text(int(price.most))) * 2 > left > 0:
                out.append(price)
        return out


def _statement(text: str) -> str | None:
    """An entry as a statement of a program; None where it is none. A bare expression gets a name."""
    from jostle.syntax import parse

    for candidate in (text, f"_entry = ({text.strip()})"):
        try:
            parse(Source("entry", candidate + "\n"))
        except Refusal:
            continue
        return candidate
    return None
