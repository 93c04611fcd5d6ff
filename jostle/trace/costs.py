"""The cost of each event of a trace: amounts summed over trees of events, as exact decimals.

A measure names its price; an allotment and a choice say what was really spent in them, which is less than the sum
of what they hold where parts of a partition were measured in parallel. Renders nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from jostle.events import Event
from jostle.trace.forest import Forest
from jostle.trace.text import UNITS, exact

_ZERO = Decimal(0)


@dataclass(frozen=True)
class Costs:
    """`spent`: by event id, what an event cost with all in it; `summed`: the same added up over its children alone."""

    spent: Mapping[int, Decimal]
    summed: Mapping[int, Decimal]

    @staticmethod
    def of(forest: Forest, source: str | None = None) -> Costs:
        """Sums the charges to `source`; without one, the stated price of every measure."""
        spent: dict[int, Decimal] = {}
        summed: dict[int, Decimal] = {}
        # Children begin after their parent, so that going back through the ids meets them first.
        for event in reversed(list(forest.walk())):
            parts = sum((spent[child.id] for child in forest.children(event)), _ZERO)
            summed[event.id] = parts
            spent[event.id] = charge(event, source) if event.kind == "measure" else _whole(event, parts, source)
        return Costs(spent, summed)


def unit(event: Event) -> str:
    """`ε` or `ρ`: the measure in which the event counts."""
    return "ρ" if event.fields.get("rho") is not None and event.fields.get("epsilon") is None else "ε"


def charge(event: Event, source: str | None = None) -> Decimal:
    """The charge of a measure to `source` (or to any, where none is named)."""
    sources = event.fields.get("sources")
    if source is not None:
        if isinstance(sources, Mapping):
            return exact(sources.get(source)) or _ZERO
        if not (isinstance(sources, list | tuple) and source in sources):
            return _ZERO
    price = event.fields.get("epsilon")
    return exact(event.fields.get("rho") if price is None else price) or _ZERO


def budget_total(budget: Any) -> tuple[str, Decimal | None]:
    """The sign and the total of a budget, as a session's record or as an amount: `epsilon 1, delta 1e-6`, `1`."""
    if isinstance(budget, Mapping):
        for measure, sign in UNITS.items():
            if budget.get(measure) is not None:
                figures = budget[measure]
                return sign, exact(figures.get("total") if isinstance(figures, Mapping) else figures)
        return "ε", None
    if isinstance(budget, str):
        measure, _, value = budget.split(",")[0].strip().partition(" ")
        if measure in UNITS:
            return UNITS[measure], exact(value)
    return "ε", exact(budget)


def _whole(event: Event, parts: Decimal, source: str | None) -> Decimal:
    """The cost of an event that holds others: the amount that it states, else the sum of its parts."""
    stated_value: Any = event.fields.get("spent")
    if isinstance(stated_value, Mapping):
        amounts = [exact(stated_value.get(source))] if source is not None else [exact(a) for a in stated_value.values()]
        return max((a for a in amounts if a is not None), default=_ZERO)
    stated = exact(stated_value)
    if stated is None:
        return parts
    # One number for several sources: none of them can have paid more than what was measured on it.
    return min(stated, parts) if source is not None else stated
