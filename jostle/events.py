"""The stream of events that a run leaves behind.

One stream, several listeners (the trace file, the terminal, a result object). An event holds public and released
values only; whoever emits one answers for that. No times of private work are recorded.

Kinds: `run param source allotment query measure feature train choice option picture release error`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, field

from jostle.diagnostics import Refusal
from jostle.source import Span

VERSION = 1


class Event(Struct, frozen=True):
    """One thing that happened. `parent` is the id of the event that was open when it began."""

    id: int
    parent: int | None
    kind: str
    name: str
    span: Span | None
    fields: dict[str, Any]

    def as_json(self) -> dict[str, object]:
        place = None
        if self.span is not None:
            at = self.span
            place = [at.source.name, at.line, at.column, at.end_line, at.end_column]
        return {"v": VERSION, "id": self.id, "parent": self.parent, "kind": self.kind, "name": self.name,
                "span": place, **self.fields}  # fmt: skip


class Stream(Struct):
    """Where events go. `emit` records one; `within` keeps one open while its children are emitted.

    Children are delivered before the event that holds them, since an event is delivered when it is complete;
    `silent()` drops what training does.
    """

    listeners: list[Callable[[Event], None]] = field(default_factory=list)
    _next: int = 1
    _open: list[int] = field(default_factory=list)
    _silent: int = 0

    def emit(self, kind: str, name: str, span: Span | None = None, **fields: object) -> None:
        if not self._silent:
            self._deliver(Event(self._next, self._open[-1] if self._open else None, kind, name, span, fields))
            self._next += 1

    @contextmanager
    def within(self, kind: str, name: str, span: Span | None = None, **fields: object) -> Iterator[dict[str, object]]:
        """Yields the event's fields, to be filled in until the block ends; delivered also when it is refused."""
        if self._silent:
            yield dict(fields)
            return
        mine, parent = self._next, self._open[-1] if self._open else None
        self._next += 1
        self._open.append(mine)
        try:
            yield fields
        except Refusal:
            fields["refused"] = True
            raise
        finally:
            self._open.pop()
            self._deliver(Event(mine, parent, kind, name, span, fields))

    @contextmanager
    def silent(self) -> Iterator[None]:
        self._silent += 1
        try:
            yield
        finally:
            self._silent -= 1

    def _deliver(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)
