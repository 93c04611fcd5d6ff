"""Compares two runs: what each chose, spent and released.

Choices are matched in the order they were made; spending is compared by source and by allotment, query and choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from jostle.events import Event
from jostle.trace.costs import Costs
from jostle.trace.forest import Forest
from jostle.trace.summary import short
from jostle.trace.text import align, number

_MOST = 30  # lines of one part


def difference(one: Sequence[Event], other: Sequence[Event]) -> str:
    """Renders the differences, part by part; one line where there are none."""
    parts = [_spending(one, other), _choices(one, other), _releases(one, other), _errors(one, other)]
    sections = [p for p in parts if p]
    return "\n".join(sections) if sections else "the two runs spent, chose and released the same\n"


def _table(title: str, rows: list[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    lines = align([(title, "this run", "the other"), *rows[:_MOST]], (False, False, False))
    more = [f"… {len(rows) - _MOST} more"] if len(rows) > _MOST else []
    return "\n".join([lines[0], *("  " + line for line in lines[1:]), *more]) + "\n"


def _spending(one: Sequence[Event], other: Sequence[Event]) -> str:
    mine, theirs = _spent(one), _spent(other)
    rows = []
    for what in dict.fromkeys([*mine, *theirs]):
        a, b = mine.get(what), theirs.get(what)
        if a != b:
            rows.append((what, a or "nothing", b or "nothing"))
    return _table("spent", rows)


def _spent(events: Sequence[Event]) -> dict[str, str]:
    """The amount that each place of the program's top level spent, over all its visits."""
    forest = Forest.of(events)
    costs = Costs.of(forest)
    visits: dict[str, list[Event]] = {}
    for root in forest.roots:
        for event in forest.children(root):
            if costs.text(event):
                name = f"{event.kind} {event.name}" + (f", line {event.span.line}" if event.span else "")
                visits.setdefault(name, []).append(event)
    return {name: costs.text(*events) for name, events in visits.items()}


def _choices(one: Sequence[Event], other: Sequence[Event]) -> str:
    rows = []
    choices = [[e for e in Forest.of(events).walk() if e.kind == "choice"] for events in (one, other)]
    for place, (a, b) in enumerate(zip_longest(*choices), 1):
        words = [_choice_text(a), _choice_text(b)]
        if words[0] != words[1]:
            rows.append((f"{(a or b).name} ({place})", words[0], words[1]))
    return _table("chosen", rows)


def _choice_text(event: Event | None) -> str:
    if event is None:
        return "no choice"
    features = event.fields.get("features")
    looked = ", ".join(f"{f.get('name')} {number(f.get('value'))}" for f in features) if features else ""
    return str(event.fields.get("chosen", "nothing")) + (f" ({looked})" if looked else "")


def _releases(one: Sequence[Event], other: Sequence[Event]) -> str:
    mine, theirs = ({e.name: short(e.fields.get("value")) for e in events if e.kind == "release"}
                    for events in (one, other))  # fmt: skip
    rows = [(name, mine.get(name, "not released"), theirs.get(name, "not released"))
            for name in dict.fromkeys([*mine, *theirs]) if mine.get(name) != theirs.get(name)]  # fmt: skip
    return _table("released", rows)


def _errors(one: Sequence[Event], other: Sequence[Event]) -> str:
    ended = [next((f"{e.name}: {e.fields.get('message')}" for e in events if e.kind == "error"), "ran to its end")
             for events in (one, other)]  # fmt: skip
    return _table("ended", [("the run", ended[0], ended[1])] if ended[0] != ended[1] else [])
