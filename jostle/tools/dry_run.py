"""`jostle run FILE --dry`: what each statement would spend, of which source, and what stays. Nothing runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.accounting.amounts import as_text
from jostle.source import Source
from jostle.trace.text import UNITS, align

if TYPE_CHECKING:
    from jostle.check.cost import Charge, Cost

_CUT = 60  # characters of a line that a table shows


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a program can cost, before it runs: of each source in all (`costs`), and statement by statement.

    `str` of it is a table. Of a source that an earlier program of the session spent from, less is left than it says.
    """

    source: Source
    costs: tuple[Cost, ...]

    @property
    def charges(self) -> list[Charge]:
        """The charges in the order of the program; a statement that costs two sources something has two."""
        charges = [charge for cost in self.costs for charge in cost.charges]
        return sorted(charges, key=lambda charge: (charge.span.line, charge.span.column))

    def __str__(self) -> str:
        charges = self.charges
        if not charges:
            return "nothing is spent"
        rows = [["line", "", "source", "amount", "left"]]
        place = None
        for charge in charges:
            again, place = place == charge.span, charge.span
            rows.append([*(("", "") if again else (_lines(charge), self._text(charge))), charge.source,
                         amount(charge), left(charge)])  # fmt: skip
        return "\n".join(align(rows, [True, False, False, False, False]))

    def as_json(self) -> list[dict[str, Any]]:
        """Amounts as exact decimals, null where there is no bound or, of what is left, where it is not known."""
        return [
            {
                "line": charge.span.line, "end_line": charge.span.end_line, "source": charge.source,
                "unit": charge.unit, "most": None if math.isinf(charge.most) else as_text(int(charge.most)),
                "exact": charge.exact, "left": None if charge.left is None else as_text(charge.left),
                "left_exact": charge.left_exact,
            }
            for charge in self.charges
        ]  # fmt: skip

    def _text(self, charge: Charge) -> str:
        """The first line of a statement, cut where it is long."""
        line = self.source.line(charge.span.line).strip()
        return line if len(line) <= _CUT else f"{line[: _CUT - 1].rstrip()}…"


def amount(charge: Charge) -> str:
    """`ε 0.3`, `at most ε 0.3`."""
    if math.isinf(charge.most):
        return "no bound but its budget"
    unit = UNITS.get(charge.unit, charge.unit)
    return f"{'' if charge.exact else 'at most '}{unit} {as_text(int(charge.most))}".replace("  ", " ")


def left(charge: Charge) -> str:
    """`0.7`, `at least 0.7`; what only the owner of a dataset knows is not said."""
    if charge.left is None:
        return "its owner knows"
    return f"{'' if charge.left_exact else 'at least '}{as_text(charge.left)}"


def prices(charges: Sequence[Charge]) -> list[str]:
    """A text for each charge: `people: ε 0.3`."""
    return [f"{charge.source}: {amount(charge)}" for charge in charges]


def _lines(charge: Charge) -> str:
    first, last = charge.span.line, charge.span.end_line
    return str(first) if first == last else f"{first}–{last}"
