"""`jostle run FILE --dry`: what each statement would spend, of which source, what stays, and the error that it buys.

Nothing runs but simple statements, on simulated rows: declarations, queries and built-in functions, without loops,
conditions, functions of the program's own and of the library. Of others, errors are left to `jostle plan`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from jostle.accounting.amounts import QUANTA, as_text
from jostle.formulas import rounded_up
from jostle.language.aggregates import AGGREGATES
from jostle.language.builtins import BUILTINS
from jostle.language.operations import ROW_FUNCTIONS
from jostle.records import replace
from jostle.source import Source, Span
from jostle.syntax import nodes as n
from jostle.syntax.walk import every
from jostle.trace.text import UNITS, align

if TYPE_CHECKING:
    from jostle.events import Event
    from jostle.run.looks import Planned
    from jostle.tools.costs import Charge, Cost
    from jostle.tools.expected_errors import Direct

_CUT = 60  # characters of a line that a table shows
_QUICK = {name for name, row in BUILTINS.items() if not row.module} | set(AGGREGATES) | set(ROW_FUNCTIONS)


class DryRun(Struct, frozen=True):
    """What a program can cost, before it runs: of each source in all (`costs`), and statement by statement.

    `str` of it is a table. Of a source that an earlier program of the session spent from, less is left than it says.
    `errors` has what is known of what a statement measures, by its place.
    """

    source: Source
    costs: tuple[Cost, ...]
    errors: Mapping[Span, Sequence[Direct]]

    @property
    def charges(self) -> list[Charge]:
        """The charges in the order of the program; a statement that costs two sources something has two."""
        charges = [charge for cost in self.costs for charge in cost.charges]
        return sorted(charges, key=lambda charge: (charge.span.line, charge.span.column))

    def __str__(self) -> str:
        charges = self.charges
        if not charges:
            return "nothing is spent"
        rows = [["line", "", "source", "amount", "looks", "left", "error"]]
        place = None
        for charge in charges:
            again, place = place == charge.span, charge.span
            looks, errors = as_text(charge.looked) if charge.looked else "", self.errors.get(charge.span, ())
            rows.append([*(("", "") if again else (_lines(charge), self._text(charge))), charge.source, amount(charge),
                         looks, left(charge), "" if again else ", ".join(_errors(errors))])  # fmt: skip
        columns = [at for at in range(len(rows[0])) if at == 1 or any(row[at] for row in rows[1:])]
        return "\n".join(align([[row[at] for at in columns] for row in rows], [True, *[False] * (len(columns) - 1)]))

    def as_json(self) -> list[dict[str, object]]:
        """Amounts as exact decimals, null where there is no bound or, of what is left, where it is not known."""
        return [
            {
                "line": charge.span.line, "end_line": charge.span.end_line, "source": charge.source,
                "unit": charge.unit, "most": None if math.isinf(charge.most) else as_text(int(charge.most)),
                "exact": charge.exact, "looks": as_text(charge.looked),
                "left": None if charge.left is None else as_text(charge.left),
                "left_exact": charge.left_exact,
                "errors": [
                    {"name": d.name, "error": d.error} | ({"of": d.of} if d.of else {})
                    for d in self.errors.get(charge.span, ())
                ],
            }
            for charge in self.charges
        ]  # fmt: skip

    def _text(self, charge: Charge) -> str:
        """The first line of a statement, cut where it is long."""
        line = self.source.line(charge.span.line).strip()
        return line if len(line) <= _CUT else f"{line[: _CUT - 1].rstrip()}…"


def dry_run(source: Source, costs: Sequence[Cost], events: Sequence[Event], names: Mapping[str, object]) -> DryRun:
    """What is known of a program; `costs` are its own, `events` and `names` what a rehearsal of simple lines left."""
    from jostle.tools.expected_errors import direct_errors

    charges = [charge for cost in costs for charge in cost.charges]
    errors: dict[Span, list[Direct]] = {}
    for direct in direct_errors(events, source, names):
        for place in {charge.span for charge in charges}:
            if place.line <= direct.line <= place.end_line:
                errors.setdefault(place, []).append(direct)
    paid = {place: each for place, each in errors.items() if _paid(place, each, charges)}
    return DryRun(source, tuple(costs), {place: _beside_looks(each, place, charges) for place, each in paid.items()})


def with_looks(costs: Sequence[Cost], looks: Mapping[Span, Sequence[Planned]]) -> list[Cost]:
    """The costs with what of each statement's charge is for looks, by the statements' places."""

    def looked(charge: Charge) -> Charge:
        own = [look for look in looks.get(charge.span, ()) if look.source == charge.source]
        columns = dict.fromkeys(column for look in own for column in look.columns)
        return replace(charge, looked=sum(look.amount.value for look in own), columns=tuple(columns))

    return [replace(cost, charges=tuple(map(looked, cost.charges))) for cost in costs]


def simple(statement: n.Stmt) -> bool:
    """Whether a statement takes no time to speak of: it calls built-in functions alone, and nothing again and again."""
    for node in every(statement):
        match node:
            case n.Use() | n.Def() | n.If() | n.For() | n.Run() | n.Choice() | n.Comprehension():
                return False
            case n.Call(function=n.Name(id=name)):
                if name not in _QUICK:
                    return False
            case n.Call():
                return False
    return True


def _paid(place: Span, errors: Sequence[Direct], charges: Sequence[Charge]) -> bool:
    """Whether the measurements of the rehearsal asked for what the statement will: others may have been left out."""
    amount = math.fsum(direct.amount for direct in errors)
    return any(
        charge.exact and charge.span == place and math.isclose(amount, charge.most / QUANTA, rel_tol=1e-9)
        for charge in charges
    )


def _beside_looks(errors: Sequence[Direct], place: Span, charges: Sequence[Charge]) -> list[Direct]:
    """The errors of what is left of a statement's amount where a part of it pays for looks."""
    left = min((1 - c.looked / c.most for c in charges if c.span == place and c.looked), default=1.0)
    return [replace(direct, error=direct.error * left**-direct.power) for direct in errors]


def _errors(errors: Sequence[Direct]) -> Iterator[str]:
    """`± 10`, to two digits; of several, with their names; of vectors the root mean square."""
    for direct in errors:
        text = direct.text(rounded_up(direct.error))
        name = f"{direct.name} " if len(errors) > 1 or direct.vector else ""
        yield f"{name}off by {text}" if direct.vector else f"{name}± {text}"


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
