"""Spending of a run as an indented tree with bars: for each source, which allotment, choice and query took how much.

A bar's length is the share of the source's budget. Pure functions of events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from jostle.events import Event
from jostle.trace.costs import Costs, budget_total, unit
from jostle.trace.forest import Forest, place
from jostle.trace.text import UNITS, Twig, amount, bar, exact
from jostle.trace.tree import fold

_WIDTH = 20
_DEEPEST = 8


def spending(events: Sequence[Event]) -> str:
    """One tree a source; `no private source was declared` where there is none."""
    forest = Forest.of(events)
    sources = {e.name: e for e in forest.walk() if e.kind == "source" and e.fields.get("budget") is not None}
    if not sources:
        return "no private source was declared\n"
    return "\n\n".join(_source(forest, events, name, event) for name, event in sources.items()) + "\n"


def line(name: str, amounts: Mapping[str, Mapping[str, str]], indent: int = 0) -> str:
    """`people  ███░░  ε 0.3 of 1 spent, 0.7 left`, from the budget of one source as a session gives it."""
    parts = []
    for measure, figures in amounts.items():
        total, used = exact(figures.get("total")), exact(figures.get("spent")) or Decimal(0)
        sign = UNITS.get(measure, measure)
        if total is None:
            parts.append(f"{sign} {amount(used)} spent")
            continue
        share = f"{bar(float(used / total) if total else 0.0, _WIDTH)}  " if not parts else ""
        parts.append(f"{share}{sign} {amount(used)} of {amount(total)} spent, {amount(total - used)} left")
    return f"{name.ljust(indent)}  " + "; ".join(parts)


def _source(forest: Forest, events: Sequence[Event], name: str, event: Event) -> str:
    sign, total = budget_total(event.fields.get("budget"))
    stated = _stated(events, name)
    costs = Costs.of(forest, name)
    parts = sum((costs.spent[root.id] for root in forest.roots), Decimal(0))
    used = parts if stated is None else stated
    share = f"{bar(float(used / total), _WIDTH)}  " if total else ""
    head = f"{name}  {share}{sign} {amount(used)}" + (f" of {amount(total)} spent" if total else " spent")
    twig = Twig(head + ("" if stated is not None or used == 0 else " at most"))
    for root in forest.roots:
        # The run itself is no step of its own: its children are.
        for child in forest.children(root) if root.kind == "run" else (root,):
            _node(forest, costs, twig, child, total, 0)
    if used < parts:
        twig.add("parts measured in parallel count as their maximum")
    twig.twigs = fold(twig.twigs)
    return "\n".join(twig.lines())


def _node(forest: Forest, costs: Costs, twig: Twig, event: Event, total: Decimal | None, depth: int) -> None:
    cost = costs.spent[event.id]
    if cost == 0:
        return
    share = f"{bar(float(cost / total), _WIDTH)}  " if total else ""
    under = twig.add("  ".join(p for p in (f"{share}{unit(event)} {amount(cost)}", _title(event), place(event)) if p))
    if depth < _DEEPEST:
        below = forest.children(event)
        # A query with its one measure is one line, not two.
        if not (len(below) == 1 and below[0].kind == "measure"):
            for child in below:
                _node(forest, costs, under, child, total, depth + 1)
        if cost < costs.summed[event.id]:
            under.add("parts measured in parallel count as their maximum")
        under.twigs = fold(under.twigs)


def _title(event: Event) -> str:
    if event.kind == "measure":
        return " ".join(dict.fromkeys(str(p) for p in (event.fields.get("mechanism"), event.name) if p))
    if event.kind == "choice" and event.fields.get("chosen"):
        return f"choice {event.name} → {event.fields['chosen']}"
    return f"{event.kind} {event.name}".strip()


def _stated(events: Sequence[Event], name: str) -> Decimal | None:
    """The amount spent of a source as the run's last event states it: exact, with parallel parts as maxima."""
    for event in reversed(events):
        budget = event.fields.get("budget") if event.kind == "run" else None
        if isinstance(budget, Mapping) and isinstance(budget.get(name), Mapping):
            for measure in UNITS:
                figures = budget[name].get(measure)
                if isinstance(figures, Mapping):
                    return exact(figures.get("spent"))
    return None
