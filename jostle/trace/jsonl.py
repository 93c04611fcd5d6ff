"""The event stream on disk: one JSON object a line, written as it happens, and read again; and as OpenTelemetry spans.

`Writer` is a listener of the stream; `read` gives back the events it wrote. A damaged file is refused with its place.
Spans are in OTLP's JSON form. A trace holds no times of private work, so that a span's times are places in the order of
events: event 7 begins at 7 µs. An attribute is a field of an event; lists and records are JSON texts.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from jostle.diagnostics import Refusal, refuse, unwritable
from jostle.events import VERSION, Event
from jostle.resources import loads
from jostle.source import Source, Span
from jostle.trace.costs import Forest
from jostle.trace.released import damage

_OTHER_PATH = "give another path to --trace"
_HEAD = b'{"v": 1, "id": '  # of each line of a trace
_OWN = ("v", "id", "parent", "kind", "name", "span")


def plain(value: object) -> object:
    """The value as standard JSON can hold it.

    NumPy numbers and arrays become numbers and lists, tuples and sets lists, and what JSON has no number for the
    texts "inf", "-inf" and "nan"; anything else becomes its text.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [plain(v) for v in value]
    tolist = getattr(value, "tolist", None)
    return plain(tolist()) if callable(tolist) else str(value)


def need_own(path: Path, head: bytes, help: str = "give another path") -> None:
    """Refuses to write over a file that does not begin as what is to be written: it may hold data, or a ledger."""
    if path.is_file():
        with path.open("rb") as file:
            if not head.startswith(file.read(len(head))):
                raise refuse("DataError", f"`{path}` is there already, and is something else", help=help)


def write_own(path: Path, text: str) -> None:
    """Writes a file of ours, over one that is there only where that begins as it does."""
    try:
        need_own(path, text[:9].encode(errors="replace"))
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as fault:
        raise unwritable(f"`{path}`", fault) from fault


class Writer:
    """A listener that writes each event to `path` at once; `extra` fields stand on every line.

    Raises `Refusal(DataError)` where the file cannot be written, once: then the run ends, and shows what it released.
    A file that is there is written over only where it is a trace or empty: it could hold data, or a ledger.
    Half a surrogate pair, which no encoding has, is written as JSON's escape of it.
    """

    def __init__(self, path: Path, **extra: object) -> None:
        self._path, self._extra, self._broken = path, extra, False
        try:
            need_own(path, _HEAD, _OTHER_PATH)
            self._file: TextIO = path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n", buffering=1)
        except OSError as fault:
            raise unwritable(f"the trace `{path}`", fault, _OTHER_PATH) from fault

    def __call__(self, event: Event) -> None:
        if self._broken:
            return
        line = json.dumps(plain({**event.as_json(), **self._extra}), ensure_ascii=False, allow_nan=False)
        try:
            self._file.write(line + "\n")
        except OSError as fault:
            self._broken = True
            raise unwritable(f"the trace `{self._path}`", fault, _OTHER_PATH) from fault

    def close(self) -> None:
        with suppress(OSError):  # it was reported
            self._file.close()


def read(path: Path) -> list[Event]:
    """The events of a file, in the order they were written. Raises `Refusal(DataError)` with the damaged line."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as fault:
        raise refuse(
            "DataError", f"there is no trace `{path}`", help="write one: jostle run FILE --trace PATH"
        ) from fault
    except OSError as fault:
        reason = (fault.strerror or "the system refused").lower()
        raise refuse("DataError", f"the trace `{path}` cannot be read: {reason}") from fault
    except UnicodeDecodeError as fault:
        raise refuse(
            "DataError", f"`{path}` is no trace: it is not UTF-8 text", help="jostle run FILE --trace PATH writes one"
        ) from fault
    source = Source(str(path), text)
    lines = text.split("\n")
    events: list[Event] = []
    ids: set[int] = set()
    for n, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = Span(source, n, 1, n, len(line) + 1)
        event = _event(line, place, cut=n == len(lines))
        if event.id in ids:
            raise _damaged(place, f"the trace is damaged: event {event.id} stands on a second line")
        ids.add(event.id)
        events.append(event)
    if not events:
        raise refuse("DataError", f"the trace `{path}` holds no events", help="write one: jostle run FILE --trace PATH")
    return events


def _damaged(place: Span, message: str) -> Refusal:
    return refuse("DataError", message, place, help="run the program again with --trace PATH")


def _event(line: str, place: Span, *, cut: bool) -> Event:
    """One line as an event; `cut` says that the line is the file's last and has no end."""
    try:
        record = loads(line)
    except ValueError as fault:
        what = "the trace is cut short in its last line" if cut else "the trace is damaged: this line is not JSON"
        if place.line == 1:
            what = f"`{place.source.name}` is no trace: this line is not JSON"
        raise _damaged(place, what) from fault
    if not isinstance(record, dict) or any(key not in record for key in _OWN):
        raise _damaged(place, "this line is no event of a trace: it needs " + ", ".join(f"`{k}`" for k in _OWN))
    if record["v"] != VERSION:
        raise refuse(
            "DataError",
            f"the trace is of version {record['v']}; this jostle reads version {VERSION}",
            place,
            help="read it with the jostle that wrote it, or run the program again",
        )
    number, parent, kind, name, span = (record[key] for key in _OWN[1:])
    fits = _whole(number) and (parent is None or _whole(parent)) and isinstance(kind, str) and isinstance(name, str)
    if not fits:
        raise _damaged(place, "the trace is damaged: `id`, `parent`, `kind` or `name` is of the wrong type")
    fields = {key: value for key, value in record.items() if key not in _OWN}
    if (field := damage(kind, fields)) is not None:
        odd = f"`{field}` of this {kind} is missing, or not what a run writes"
        raise _damaged(place, f"the trace is damaged: {odd}")
    return Event(number, parent, kind, name, _span(span, place), fields)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _span(record: object, place: Span) -> Span | None:
    """The place an event names. Its source has a name and no text: the trace does not hold the program."""
    if record is None:
        return None
    if not (
        isinstance(record, list) and len(record) == 5 and isinstance(record[0], str) and all(map(_whole, record[1:]))
    ):
        raise _damaged(place, "the trace is damaged: `span` is no place")
    return Span(Source(record[0], ""), *record[1:])


_STEP = 1_000  # nanoseconds from one event to the next
_LONGEST = 4_000  # characters of one attribute


def otlp(events: Sequence[Event]) -> str:
    """One JSON object with every event as a span."""
    forest = Forest.of(events)
    ended = _ends(forest)
    text = json.dumps([e.as_json() for e in events], default=str, sort_keys=True)
    trace = hashlib.sha256(text.encode()).hexdigest()[:32]
    parents = {child.id: event.id for event in forest.walk() for child in forest.children(event)}
    spans = [_otlp_span(e, trace, parents.get(e.id), ended[e.id]) for e in forest.walk()]
    scope = {"scope": {"name": "jostle"}, "spans": spans}
    resource = {"attributes": [_attribute("service.name", "jostle")]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}, ensure_ascii=False) + "\n"


def _ends(forest: Forest) -> dict[int, int]:
    """Maps each event to the last one that began within it."""
    last: dict[int, int] = {}
    for event in reversed(list(forest.walk())):
        last[event.id] = max([event.id, *(last[child.id] for child in forest.children(event))])
    return last


def _otlp_span(event: Event, trace: str, parent: int | None, last: int) -> dict[str, object]:
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


def _attribute(key: str, value: object) -> dict[str, object]:
    json_value = plain(value)
    match json_value:
        case bool():
            typed: dict[str, object] = {"boolValue": json_value}
        case int():
            typed = {"intValue": str(json_value)}
        case float():
            typed = {"doubleValue": json_value}
        case str():
            typed = {"stringValue": json_value[:_LONGEST]}
        case _:
            typed = {"stringValue": json.dumps(json_value, ensure_ascii=False)[:_LONGEST]}
    return {"key": key, "value": typed}
