"""The tree of events, whose nodes open and close; runs of like events are folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from jostle.events import Event
from jostle.trace.costs import Costs
from jostle.trace.forest import Forest
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.html.program import place_of
from jostle.trace.text import number
from jostle.trace.tree import WORDS

# What has a place of its own on the page.
_QUIET = frozenset({
    "epsilon", "rho", "spent", "sources", "budget", "text", "rows", "value", "paths", "series", "x", "low", "high",
    "trees", "context", "direct", "printed", "version", "date", "margins", "keys", "step", "within", "of",
})  # fmt: skip
_ALIKE = 12  # of more neighbours that look alike, the first and the last few are shown
_OPEN = 2  # levels that are open when the page is


def event_tree(forest: Forest, costs: Costs, text_of: str | None) -> Html:
    """Every event, once; places in the file `text_of`, whose text stands on the page, are links."""
    return tag("div", _branch(forest, costs, text_of, forest.roots, 0), class_="tree")


def _branch(forest: Forest, costs: Costs, text_of: str | None, events: Iterable[Event], depth: int) -> list[Html]:
    out: list[Html] = []
    for _, alike in groupby(events, key=_look):
        group = list(alike)
        if len(group) > _ALIKE and not any(forest.children(e) for e in group):
            middle = group[4:-4]
            nodes = [_node(forest, costs, text_of, e, depth) for e in (*group[:4], *group[-4:])]
            folded = tag("details", tag("summary", f"… {len(middle)} more like these"),
                         [_node(forest, costs, text_of, e, depth) for e in middle])  # fmt: skip
            out += [*nodes[:4], folded, *nodes[4:]]
        else:
            out += [_node(forest, costs, text_of, e, depth) for e in group]
    return out


def _look(event: Event) -> tuple[str, str, Any]:
    return event.kind, event.name, event.span.line if event.span is not None else None


def _node(forest: Forest, costs: Costs, text_of: str | None, event: Event, depth: int) -> Html:
    below = forest.children(event)
    spent = costs.text(event)
    line = join(
        tag("a", event.kind, href=f"#e{event.id}", title="the address of this event", class_=f"kind k-{event.kind}"),
        " ", event.name, " ",
        tag("b", spent, class_="price") if spent else None,
        place_of(event.span, text_of), " ", _details(event),
    )  # fmt: skip
    if not below:
        return tag("div", line, id=f"e{event.id}", class_="leaf")
    return tag(
        "details", tag("summary", line), tag("div", _branch(forest, costs, text_of, below, depth + 1)),
        id=f"e{event.id}", open=depth < _OPEN,
    )  # fmt: skip


def _details(event: Event) -> Html | None:
    """The rest of what an event says, in a few words."""
    if event.kind == "error":
        return join(" ", str(event.fields.get("message") or ""))
    if event.kind == "param":
        return join("= ", number(event.fields.get("value")))
    if event.kind == "choice":
        return join(" → ", tag("b", str(event.fields.get("chosen", "nothing"))))
    words = []
    for key, value in event.fields.items():
        if key in _QUIET or value in (None, "", [], {}):
            continue
        if key in WORDS:
            words.append(WORDS[key])
        elif isinstance(value, int | float | str):
            words.append(f"{key.replace('_', ' ')} {number(value)}")
        elif (
            isinstance(value, list | tuple) and len(value) <= 8 and all(isinstance(v, int | float | str) for v in value)
        ):
            words.append(f"{key.replace('_', ' ')} {', '.join(map(str, value))}")
        elif (
            isinstance(value, Mapping)
            and len(value) <= 4
            and not any(isinstance(v, Mapping | list) for v in value.values())
        ):
            words.append(f"{key} " + ", ".join(f"{k}: {number(v)}" for k, v in value.items()))
    return tag("span", " · ".join(words), class_="said") if words else None
