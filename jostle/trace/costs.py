"""The cost of each event of a trace, source by source: amounts summed over trees of events, as exact decimals.

A measurement names its price. An allotment, a choice and a run say what was really spent in them. That is less than
the sum of what they hold where parts of a partition were measured in parallel, and nothing where an answer that was
paid for earlier is given again. The option of a choice spent what its features left.

Events arrive with children before the event that holds them; an id counts beginnings, so order by id is the order in
which things began. An event whose parent never arrived (a run that was killed) stands as a root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from msgspec import Struct

from jostle.events import Event
from jostle.resources import Json
from jostle.trace.text import UNITS, align, amount, exact, number, plural


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


def mapping(value: object) -> Mapping[str, Json]:
    """A field that holds a record; an empty one where it holds anything else."""
    return value if isinstance(value, Mapping) else {}


def records(value: object) -> list[Mapping[str, Json]]:
    """The records of a field that holds a list of them."""
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list | tuple) else []


def place(event: Event) -> str:
    """`first.jst:7:7`, or nothing."""
    return str(event.span) if event.span is not None else ""


Amounts = Mapping[str, Decimal]
_ZERO = Decimal(0)


class Costs(Struct, frozen=True):
    """`spent`: by event id, what an event cost each source with all in it; `summed`: its children's sum alone."""

    signs: Mapping[str, str]  # ε or ρ, by source
    spent: Mapping[int, Amounts]
    summed: Mapping[int, Amounts]

    @staticmethod
    def of(forest: Forest) -> Costs:
        signs: dict[str, str] = {}
        spent: dict[int, Amounts] = {}
        summed: dict[int, Amounts] = {}
        # Children begin after their parent, so that going back through the ids meets them first.
        for event in reversed(list(forest.walk())):
            below = add(spent[child.id] for child in forest.children(event))
            parts = summed[event.id] = _price(event, signs) if event.kind == "measure" else below
            spent[event.id] = _run(forest, event, signs, parts) if event.kind == "run" else _stated(event, parts)
            if event.kind == "choice":
                spent |= _options(forest, event, spent)
        return Costs(signs, spent, summed)

    def text(self, *events: Event) -> str:
        """`ε 0.5`, or `ε 0.4 on people, ρ 0.1 on visits` where sources were charged differently; empty for nothing."""
        spent = {name: value for name, value in add(self.spent[e.id] for e in events).items() if value}
        prices = {name: f"{self.signs[name]} {amount(value)}" for name, value in spent.items()}
        if len(set(prices.values())) < 2:
            return next(iter(prices.values()), "")
        return ", ".join(f"{price} on {name}" for name, price in prices.items())


def add(parts: Iterable[Amounts]) -> dict[str, Decimal]:
    """The sum of amounts, source by source."""
    out: dict[str, Decimal] = {}
    for part in parts:
        for name, value in part.items():
            out[name] = out.get(name, _ZERO) + value
    return out


def price(fields: Mapping[str, object]) -> tuple[str, Decimal] | None:
    """The sign and the amount of ε or ρ that an event or a feature says; None where it says nothing, or zero."""
    prices = ((UNITS[unit], exact(fields.get(unit))) for unit in ("epsilon", "rho"))
    return next(((sign, value) for sign, value in prices if value), None)


def _price(event: Event, signs: dict[str, str]) -> Amounts:
    """The charge of a measurement to each of its sources; of one that was prepaid, nothing."""
    stated = price(event.fields)
    if stated is None:
        return {}
    names = event.fields.get("sources") or ()
    signs.update(dict.fromkeys(names, stated[0]))
    return dict.fromkeys(names, stated[1])


def _stated(event: Event, parts: Amounts) -> Amounts:
    """What an event says that it spent: of no source more than was measured in it."""
    stated = event.fields.get("spent")
    if stated is None:
        return parts
    amounts = {name: exact(stated.get(name) if isinstance(stated, Mapping) else stated) for name in parts}
    return {name: min(part, amounts[name] or _ZERO) for name, part in parts.items()}


def _options(forest: Forest, choice: Event, spent: Mapping[int, Amounts]) -> dict[int, Amounts]:
    """What a choice's option spent: no more than the choice, less what else is in it."""
    inside = {kind: [c for c in forest.children(choice) if (c.kind == "option") == kind] for kind in (True, False)}
    others = add(spent[child.id] for child in inside[False])
    left = {name: whole - others.get(name, _ZERO) for name, whole in spent[choice.id].items()}
    return {o.id: {name: min(part, left[name]) for name, part in spent[o.id].items()} for o in inside[True]}


def _run(forest: Forest, event: Event, signs: dict[str, str], parts: Amounts) -> Amounts:
    """What a run spent of its sources: what their budgets say at its end, less what was spent of them before it."""
    out = dict(parts)
    for source in forest.children(event):
        figures = mapping(event.fields.get("budget")).get(source.name)
        if source.kind == "source" and figures and "same_as" not in source.fields:
            unit = next(u for u in ("epsilon", "rho") if u in figures)
            signs[source.name] = UNITS[unit]
            spent, before = exact(figures[unit]["spent"]), exact(source.fields.get("before"))
            out[source.name] = (spent or _ZERO) - (before or _ZERO)
    return out


MOST = 8  # blocks that are shown


def joint_text(fields: Mapping[str, Json]) -> str:
    """In one line, of the fields of a query; nothing for any other query."""
    comparison = fields.get("of_alone")
    if not isinstance(comparison, Mapping) or not comparison:
        return ""
    unit = "rho" if "rho" in fields else "epsilon"
    spent, apart = (f"{UNITS[unit]} {number(fields.get(name, 0))}" for name in (unit, "apart"))
    head = f"{plural(fields.get('selects', 0), 'select')} by one measurement"
    targets = fields.get("wanted")
    if targets and fields.get("selects") == 1:
        return f"every answer within {number(targets[0])}: {spent}"
    if targets:
        return f"{head}, every answer within {' or '.join(map(number, targets))}: {spent}, one by one about {apart}"
    mean, largest = (number(comparison.get(name, 0)) for name in ("mean", "largest"))
    errors = f"errors {mean} of what each would have with its part of {spent}, {largest} at most"
    given = fields.get("given")
    head += f", {number(given)} of them given" if given else ""
    head += ", none negative" if fields.get("nonnegative") else ""
    head += ", integers" if fields.get("whole") else ""
    return f"{head}, {errors}; one by one they would take about {apart}"


def joint_table(fields: Mapping[str, Json]) -> str:
    """The strategy: what is measured, and the share of the amount that each part has."""
    blocks = list(fields.get("strategy") or ())
    rows = [["share", "measured", "by"]]
    rows += [[number(block["share"]), block.get("of", "rows"), ", ".join(block["by"])] for block in blocks[:MOST]]
    more = int(fields.get("blocks", 0)) - len(rows) + 1
    return "\n".join([*align(rows, [True, False, False]), *([f"and {more} more"] if more > 0 else [])])
