"""The program's text, each line marked with its cost and with links to its events."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.events import Event
from jostle.source import Span
from jostle.syntax.lexicon import colour_tokens
from jostle.trace.costs import Costs, Forest
from jostle.trace.html.markup import Html, join, tag

_LIT = ("param", "source", "allotment", "query", "measure", "choice", "train", "option", "picture", "release", "error")
_SHOWN = 4  # links beside a line


def program(events: Sequence[Event], forest: Forest, costs: Costs) -> Html | None:
    """The text of the run, or None where the trace does not hold it."""
    run = next((e for e in events if e.kind == "run" and isinstance(e.fields.get("text"), str)), None)
    if run is None:
        return None
    marks = _marks(run.name, forest)
    rows = []
    for number, line in enumerate(_lines(str(run.fields["text"])), 1):
        here = marks.get(number, [])
        lit = "lit " + " ".join(dict.fromkeys(f"k-{e.kind}" for e in here)) if here else None
        rows.append(
            tag("tr", tag("td", str(number), class_="no"), tag("td", _notes(here, costs), class_="notes"),
                tag("td", tag("code", line)), id=f"l{number}", class_=lit)
        )  # fmt: skip
    return tag("table", rows, class_="program")


def place_of(span: Span | None, text_of: str | None) -> Html | None:
    """A place in words: a link where its line stands on the page."""
    if span is None:
        return None
    words = str(span).rsplit("/", 1)[-1]
    if span.source.name != text_of:
        return tag("span", words, class_="place")
    return tag("a", words, href=f"#l{span.line}", class_="place")


def text_of(events: Sequence[Event]) -> str | None:
    """The name of the file whose text the trace holds."""
    return next((e.name for e in events if e.kind == "run" and isinstance(e.fields.get("text"), str)), None)


def _marks(name: str, forest: Forest) -> dict[int, list[Event]]:
    """The outermost events of each line; an event inside another of its own line is left to that one."""
    marks: dict[int, list[Event]] = {}
    waiting: list[tuple[Event, int]] = [(e, 0) for e in reversed(forest.roots)]
    while waiting:
        event, above = waiting.pop()
        line = event.span.line if event.span is not None and event.span.source.name == name else 0
        if line and line != above and event.kind in _LIT:
            marks.setdefault(line, []).append(event)
        waiting.extend((child, line or above) for child in reversed(forest.children(event)))
    return marks


def _notes(here: list[Event], costs: Costs) -> Html:
    if not here:
        return Html("")
    spent = costs.text(*here)
    price = tag("b", spent, class_="price") if spent else None
    links = [tag("a", e.kind, href=f"#e{e.id}", class_=f"k-{e.kind}") for e in here[:_SHOWN]]
    more = f"+{len(here) - _SHOWN}" if len(here) > _SHOWN else None
    return join(price, links, more)


def _lines(text: str) -> list[Html]:
    lines: list[list[Html]] = [[]]
    for colour, piece in colour_tokens(text):
        for i, part in enumerate(piece.split("\n")):
            if i:
                lines.append([])
            if part:
                lines[-1].append(tag("span", part, class_=f"c-{colour}") if colour else join(part))
    if not lines[-1]:
        lines.pop()
    return [join(line) for line in lines]
