"""A run in a few sentences: when it ran, what it printed, and of each choice what it took and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jostle.events import Event
from jostle.trace.costs import Costs, price
from jostle.trace.forest import Forest, mapping, records
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.predictions import figures, margin
from jostle.trace.text import amount, plural
from jostle.trace.tree import looked_at

_LINES = 60
_CHOICES = 8


def story(events: Sequence[Event], forest: Forest, costs: Costs) -> Html | None:
    """The sentences; none for a run that printed nothing and chose nothing."""
    runs = [e for e in events if e.kind == "run"]
    lines = [str(line) for run in runs for line in run.fields.get("printed") or ()]
    choices = [e for e in forest.outermost("choice") if e.kind == "choice"]
    if not lines and not choices:
        return None
    more = [f"… {plural(len(lines) - _LINES, 'more line')}"] if len(lines) > _LINES else []
    printed = tag("pre", "\n".join([*lines[:_LINES], *more]), class_="printed") if lines else None
    told = [tag("p", _choice(forest, costs, e)) for e in choices[:_CHOICES]]
    rest = tag("p", f"… and {plural(len(choices) - _CHOICES, 'more choice')}") if len(choices) > _CHOICES else None
    return join(printed, told, rest)


def ran_on(events: Sequence[Event]) -> str:
    """`2026-11-22, Jostle 0.1.0`, as far as the run's event says so."""
    fields: Mapping[str, Any] = next((e.fields for e in events if e.kind == "run"), {})
    parts = (fields.get("date"), f"Jostle {fields['version']}" if fields.get("version") else None)
    return ", ".join(str(p) for p in parts if p)


def _choice(forest: Forest, costs: Costs, event: Event) -> Html:
    """`choose took Each for town. It bought people_in_all = 4123 for ε 0.015, and predicts …`"""
    fields = event.fields
    chosen = str(fields.get("chosen", "nothing"))
    sources = dict.fromkeys(s for e in forest.walk(event) if e.kind == "measure" for s in e.fields.get("sources") or ())
    head = join(tag("a", event.name, href=f"#e{event.id}"), " took ", tag("b", chosen))
    about = f" for {', '.join(sources)}" if sources else ""
    spent = costs.text(event)
    return join(head, about + (f", at {spent}" if spent else "") + ". ", " ".join(_reasons(fields, chosen)))


def _reasons(fields: Mapping[str, Any], chosen: str) -> Iterator[str]:
    features = records(fields.get("features"))
    bought = [f for f in features if price(f) is not None]
    free = [f for f in features if price(f) is None]
    if bought:
        paid = ", ".join(f"{f['name']} = {looked_at(f)} for {_paid(f)}" for f in bought)
        yield f"It bought {paid}."
    if free:
        yield "It knew " + ", ".join(f"{f['name']} = {looked_at(f)}" for f in free) + "."
    if fields.get("way"):
        yield f"By {fields['way']}: it ran every option, and {fields['why']}."
        return
    if not features:
        yield "It looked at nothing."
    figure = figures(fields).get(chosen)
    ahead = margin(fields)
    if figure is not None and mapping(fields.get("predictions")):
        what = "an error" if fields.get("errors") else "a utility"
        yield f"It predicts {what} of {figure[0]}" + (f"; {ahead}." if ahead else ".")
    if fields.get("why"):
        yield f"Why this way of choosing: {fields['why']}."


def _paid(feature: Mapping[str, Any]) -> str:
    unit, cost = price(feature) or ("", 0)
    return f"{unit} {amount(cost)}"
