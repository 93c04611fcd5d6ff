"""The events of a run as trees, by their parents, and what can be said of a single event in one line.

Events arrive with children before the event that holds them; an id counts beginnings, so order by id is the order
in which things began. An event whose parent never arrived (a run that was killed) stands as a root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jostle.events import Event
from jostle.trace.text import UNITS, amount


@dataclass(frozen=True)
class Forest:
    """Events by id, and the children of each in the order they began."""

    roots: tuple[Event, ...]
    _children: Mapping[int, tuple[Event, ...]]

    @staticmethod
    def of(events: Iterable[Event]) -> Forest:
        ordered = sorted(events, key=lambda e: e.id)
        ids = {e.id for e in ordered}
        children: dict[int, list[Event]] = {}
        roots = []
        for event in ordered:
            # A parent always began earlier: anything else is damage, and could make a circle.
            if event.parent is None or event.parent not in ids or event.parent >= event.id:
                roots.append(event)
            else:
                children.setdefault(event.parent, []).append(event)
        return Forest(tuple(roots), {k: tuple(v) for k, v in children.items()})

    def children(self, event: Event) -> tuple[Event, ...]:
        return self._children.get(event.id, ())

    def walk(self, event: Event | None = None) -> Iterator[Event]:
        """The event and all below it, or all events, in the order they began."""
        waiting = list(reversed(self.roots)) if event is None else [event]
        while waiting:
            here = waiting.pop()
            yield here
            waiting.extend(reversed(self.children(here)))

    def outermost(self, kind: str) -> list[Event]:
        """The events of a kind that stand inside no other of that kind, in the order they began."""
        found, waiting = [], list(reversed(self.roots))
        while waiting:
            here = waiting.pop()
            if here.kind == kind:
                found.append(here)
            else:
                waiting.extend(reversed(self.children(here)))
        return found


def place(event: Event) -> str:
    """`first.jst:7:7`, or nothing."""
    return str(event.span) if event.span is not None else ""


def priced(fields: Mapping[str, Any], key: str = "") -> str:
    """`ε 0.1`, `ρ 2`, `ε 0.5, δ 1e-07`: the amounts among `fields`, or those of the field `key`; empty where none."""
    if key:
        value = fields.get(key)
        if not isinstance(value, Mapping):
            unit = "ρ" if "rho" in fields and "epsilon" not in fields else "ε"
            return "" if value is None else f"{unit} {amount(value)}"
        fields = value
    return ", ".join(f"{sign} {amount(fields[unit])}" for unit, sign in UNITS.items() if fields.get(unit) is not None)
