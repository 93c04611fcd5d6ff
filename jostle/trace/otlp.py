"""A run as OpenTelemetry spans, in OTLP's JSON form, which collectors and viewers read from a file.

A trace holds no times of private work, so that a span's times are places in the order of events: event 7 begins at
7 µs. An attribute is a field of an event; lists and records are JSON texts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from jostle.events import Event
from jostle.trace.forest import Forest
from jostle.trace.jsonl import plain

_STEP = 1_000  # nanoseconds from one event to the next
_LONGEST = 4_000  # characters of one attribute


def otlp(events: Sequence[Event]) -> str:
    """One JSON object with every event as a span."""
    forest = Forest.of(events)
    ended = _ends(forest)
    text = json.dumps([e.as_json() for e in events], default=str, sort_keys=True)
    trace = hashlib.sha256(text.encode()).hexdigest()[:32]
    parents = {child.id: event.id for event in forest.walk() for child in forest.children(event)}
    spans = [_span(e, trace, parents.get(e.id), ended[e.id]) for e in forest.walk()]
    scope = {"scope": {"name": "jostle"}, "spans": spans}
    resource = {"attributes": [_attribute("service.name", "jostle")]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}, ensure_ascii=False) + "\n"


def _ends(forest: Forest) -> dict[int, int]:
    """Maps each event to the last one that began within it."""
    last: dict[int, int] = {}
    for event in reversed(list(forest.walk())):
        last[event.id] = max([event.id, *(last[child.id] for child in forest.children(event))])
    return last


def _span(event: Event, trace: str, parent: int | None, last: int) -> dict[str, Any]:
    fields = {f"jostle.{k}": v for k, v in event.fields.items() if k != "text"}
    if event.span is not None:
        fields |= {"code.filepath": event.span.source.name, "code.lineno": event.span.line}
    span = {
        "traceId": trace, "spanId": f"{event.id:016x}", "name": f"{event.kind} {event.name}".strip(), "kind": 1,
        "startTimeUnixNano": str(event.id * _STEP), "endTimeUnixNano": str(last * _STEP + _STEP // 2),
        "attributes": [_attribute(k, v) for k, v in fields.items() if v is not None],
        "status": {"code": 2, "message": str(event.fields.get("message", ""))} if event.kind == "error" else {},
    }  # fmt: skip
    return span if parent is None else {**span, "parentSpanId": f"{parent:016x}"}


def _attribute(key: str, value: object) -> dict[str, Any]:
    json_value = plain(value)
    match json_value:
        case bool():
            typed: dict[str, Any] = {"boolValue": json_value}
        case int():
            typed = {"intValue": str(json_value)}
        case float():
            typed = {"doubleValue": json_value}
        case str():
            typed = {"stringValue": json_value[:_LONGEST]}
        case _:
            typed = {"stringValue": json.dumps(json_value, ensure_ascii=False)[:_LONGEST]}
    return {"key": key, "value": typed}
