"""Summarises a run on one page: its events in order, with counts, releases and errors.

Pure functions of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jostle.events import Event
from jostle.trace.budget import spending
from jostle.trace.costs import Costs, Forest, place
from jostle.trace.text import UNITS, Twig, number, plural
from jostle.trace.tree import choices, fold, hang_children, one_line

_ORDER = (
    "param", "source", "allotment", "query", "measure", "choice", "option", "feature", "train", "picture", "release",
    "error",
)  # fmt: skip
_DEEPEST = 5


def page(events: Sequence[Event]) -> str:
    """The summary, then each choice as a tree where there was one, then the spending."""
    parts = [summary(events)]
    if any(e.kind == "choice" for e in events):
        parts.append(choices(events))
    if any(e.kind == "source" for e in events):
        parts.append(spending(events))
    return "\n".join(parts)


def summary(events: Sequence[Event]) -> str:
    """Counts of each kind, and the events as an indented tree, like ones together, cut at a depth."""
    forest = Forest.of(events)
    counted = Counter(e.kind for e in events)
    counts = [plural(counted[kind], kind) for kind in _ORDER if counted[kind]]
    costs = Costs.of(forest)
    top = Twig(", ".join(counts) if counts else "nothing happened")
    for root in forest.roots:
        _node(forest, costs, top, root, 0)
    top.twigs = fold(top.twigs)
    head = (
        "simulated: nothing private was opened\n" if any(e.fields.get("simulated") is not None for e in events) else ""
    )
    return head + "\n".join(top.lines()) + "\n"


def _node(forest: Forest, costs: Costs, twig: Twig, event: Event, depth: int) -> None:
    under = twig.add(_line(costs, event))
    if event.kind == "choice":
        return  # it has a tree of its own
    hang_children(forest, under, event, depth >= _DEEPEST, lambda child: _node(forest, costs, under, child, depth + 1))


def _line(costs: Costs, event: Event) -> str:
    fields = event.fields
    head = f"{event.kind} {event.name}".strip()
    if event.kind == "release":
        return f"release {event.name} = {short(fields.get('value'))}  {place(event)}".rstrip()
    if event.kind == "source":
        return _source(event)
    if event.kind == "error":
        return "  ".join(p for p in (f"error {event.name}", str(fields.get("message") or ""), place(event)) if p)
    price = costs.text(event)
    if event.kind == "choice":
        return "  ".join(p for p in (f"{head} → {fields.get('chosen', 'nothing')}", price, place(event)) if p)
    return one_line(event, "", price)


def _source(event: Event) -> str:
    """`source adult  protecting rows  budget ε 1`."""
    fields = event.fields
    budget = "budget " + " ".join(UNITS.get(word, word) for word in fields["budget"].split())
    if "same_as" in fields:
        budget = f"the same data as {fields['same_as']}"
    return "  ".join(p for p in (f"source {event.name}", f"protecting {fields['unit']}", budget, place(event)) if p)


def short(value: object) -> str:
    """A released value in a few words: `1234.5`, `[1, 2, 3, … 1024 values]`, `3 rows of sex, n`."""
    if isinstance(value, list | tuple):
        if value and all(isinstance(v, Mapping) for v in value):
            return f"{plural(len(value), 'row')} of {', '.join(map(str, value[0]))}"
        head = ", ".join(short(v) for v in value[:4])
        return f"[{head}]" if len(value) <= 4 else f"[{head}, … {len(value)} values]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {short(v)}" for k, v in value.items()) + "}"
    return number(value, 6)
