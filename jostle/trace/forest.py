"""The events of a run as trees, by their parents, and what can be said of a single event in one line.

Events arrive with children before the event that holds them; an id counts beginnings, so order by id is the order
in which things began. An event whose parent never arrived (a run that was killed) stands as a root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from jostle.events import Event


class Forest(Struct, frozen=True):
    """Events by id, and the children of each in the order they began."""

    roots: tuple[Event, ...]
    _children: Mapping[int, tuple[Event, ...]]

    @staticmethod
    def of(events: Iterable[Event]) -> Forest:
        ordered = sorted(events, key=lambda e: e.id)
        ids = {e.id for e in ordered}
        # A parent always began earlier: anything else is damage, and could make a circle.
        parents = {e.id: e.parent if e.parent in ids and e.parent < e.id else None for e in ordered}
        children: dict[int | None, list[Event]] = {}
        for event in ordered:
            children.setdefault(parents[event.id], []).append(event)
        roots = tuple(children.pop(None, ()))
        return Forest(roots, {k: tuple(v) for k, v in children.items() if k is not None})

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
        events, waiting = [], list(reversed(self.roots))
        while waiting:
            here = waiting.pop()
            if here.kind == kind:
                events.append(here)
            else:
                waiting.extend(reversed(self.children(here)))
        return events


def mapping(value: object) -> Mapping[str, Any]:
    """A field that holds a record; an empty one where it holds anything else."""
    return value if isinstance(value, Mapping) else {}


def records(value: object) -> list[Mapping[str, Any]]:
    """The records of a field that holds a list of them."""
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list | tuple) else []


def place(event: Event) -> str:
    """`first.jst:7:7`, or nothing."""
    return str(event.span) if event.span is not None else ""
