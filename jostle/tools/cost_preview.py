"""Predicts what an entry of the REPL would spend: the entries that ran and the new one are taken as one program.

Nothing is opened and nothing is run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from jostle.accounting.amounts import as_text
from jostle.diagnostics import Refusal
from jostle.records import replace
from jostle.source import Source

if TYPE_CHECKING:
    from jostle.check.cost import Charge
    from jostle.tools.session import Session


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

    def price(self, text: str) -> list[Charge]:
        """Returns what an entry can cost each source; empty where it costs nothing, or is no program."""
        statement = _statement(text)
        if statement is None:
            return []
        ran = "".join(f"{entry}\n" for entry in self._ran)
        first = ran.count("\n") + 1
        costs = self._session.costs(Source("entries", f"{ran}{statement}\n"))
        prices = [[charge for charge in cost.charges if charge.span.end_line >= first] for cost in costs]
        return [_sum(charges) for charges in prices if charges]

    def steep(self, text: str) -> list[Charge]:
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


def _sum(charges: Sequence[Charge]) -> Charge:
    """The charges of several statements to one source as one."""
    most, exact = sum(charge.most for charge in charges), all(charge.exact for charge in charges)
    return replace(charges[-1], most=most, exact=exact)


def _statement(text: str) -> str | None:
    """An entry as a statement of a program; None where it is none. The name of a bare expression is `_`."""
    from jostle.syntax import parse

    for candidate in (text, f"_ = ({text.strip()})"):
        try:
            parse(Source("entry", candidate + "\n"))
        except Refusal:
            continue
        return candidate
    return None
