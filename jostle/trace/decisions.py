"""The choices of two runs side by side, and what parted those that chose differently.

Choices are matched by their name and the order in which each name's were made.

Choices inside a recursion, arranged as a tree by the parts of the data at which they were made.

A choice point's event says its `context`, the keys of the part at hand, [[column, key], …]. Events without one are no
choices inside an algorithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct, field

from jostle.events import Event
from jostle.records import replace
from jostle.trace.costs import Forest, mapping, records
from jostle.trace.text import Twig, number, plural
from jostle.trace.tree import figures, heading, looked_at, margin


class Decisions(Struct, frozen=True):
    """One choice in two runs; None in the one that did not make it."""

    name: str
    mine: Event | None
    theirs: Event | None

    @property
    def differs(self) -> bool:
        """Whether the two took different options."""
        return chosen(self.mine) != chosen(self.theirs)

    def reasons(self) -> list[str]:
        """Why the two took different options, as far as their events say."""
        if self.mine is None or self.theirs is None:
            return []
        here, there = self.mine.fields, self.theirs.fields
        return [*_parting(here, there), *_predicted(here, there)]


def decisions(one: Sequence[Event], other: Sequence[Event]) -> list[Decisions]:
    """The choices of both runs: those that took different options first."""
    mine, theirs = _by_name(one), _by_name(other)
    pairs = [
        Decisions(f"{name} ({place})", *both)
        for name in dict.fromkeys([*mine, *theirs])
        for place, both in enumerate(zip_longest(mine.get(name, ()), theirs.get(name, ())), 1)
    ]
    return sorted(pairs, key=lambda pair: not pair.differs)


def chosen(event: Event | None) -> str:
    """The option that a choice took."""
    return "no choice" if event is None else str(event.fields.get("chosen", "nothing"))


def features_of(event: Event | None) -> str:
    """The features of a choice, with their values."""
    features = [] if event is None else records(event.fields.get("features"))
    return ", ".join(f"{f['name']} {looked_at(f)}" for f in features)


def _by_name(events: Sequence[Event]) -> dict[str, list[Event]]:
    out: dict[str, list[Event]] = {}
    for event in Forest.of(events).walk():
        if event.kind == "choice":
            out.setdefault(event.name, []).append(event)
    return out


def _paths(fields: Mapping[str, Any]) -> dict[str, list[Mapping[str, object]]]:
    """The tests that a choice met: one path for all options, or one for each."""
    paths = {str(option): records(steps) for option, steps in mapping(fields.get("paths")).items()}
    shared = records(fields.get("path"))
    return {"": shared} if shared and all(steps == shared for steps in paths.values()) else paths


def _parting(here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[str]:
    """The first test of each path at which the two went apart; another way of choosing where there is none."""
    mine, theirs = _paths(here), _paths(there)
    apart = False
    for option in mine:
        for step, other in zip(mine[option], theirs.get(option, ()), strict=False):
            if (step["feature"], step["threshold"]) != (other["feature"], other["threshold"]):
                break
            if step["went"] != other["went"]:
                apart = True
                lead = f"for {option}: " if option else ""
                yield (
                    f"{lead}{step['feature']} is {number(step['value'])} here and {number(other['value'])} there, "
                    f"and {number(step['threshold'])} lies between"
                )
                break
    ways = [str(fields.get("way") or fields.get("policy") or "") for fields in (here, there)]
    if not apart and ways[0] != ways[1]:
        yield f"chosen by {ways[0] or 'no policy'} here and by {ways[1] or 'no policy'} there"
    elif not apart and here.get("trees") != there.get("trees"):
        yield "the two learned from other runs, and ask other questions"


def _predicted(here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[str]:
    """What was predicted of the two options that were taken, in both runs."""
    mine, theirs = figures(here), figures(there)
    options = dict.fromkeys(str(fields.get("chosen")) for fields in (here, there))
    texts = [f"{o} {mine[o][0]} here and {theirs[o][0]} there" for o in options if o in mine and o in theirs]
    if texts and heading(here) == heading(there):
        yield f"{heading(here)}: {'; '.join(texts)}"


_MOST = 12  # nodes that are shown under one


class ChoiceNode(Struct):
    """One part of the data: the key that leads to it, the choices made there, and the parts below."""

    key: str = ""
    split_by: str = ""  # the column that its children are divided by
    choices: list[Event] = field(default_factory=list)
    children: dict[str, ChoiceNode] = field(default_factory=dict)


def nested_choices(events: Iterable[Event]) -> ChoiceNode | None:
    """The tree of parts at which choices were made; None where there were none. Of several trees, one beside another.

    Where a choice is made a second time at the part that the first one stood at, another tree begins.
    """
    trees: list[ChoiceNode] = []
    top = 0
    for event in sorted((e for e in events if e.kind == "choice"), key=lambda e: e.id):
        context = event.fields.get("context")
        if not isinstance(context, list):
            continue
        top = min(top, len(context)) if trees else len(context)
        if not trees or (len(context) == top and any(e.name == event.name for e in _node(trees[-1], context).choices)):
            trees.append(ChoiceNode())
        _node(trees[-1], context).choices.append(event)
    if len(trees) < 2:
        return trees[0] if trees else None
    return ChoiceNode(
        split_by="tree", children={str(i + 1): replace(tree, key=str(i + 1)) for i, tree in enumerate(trees)}
    )


def _node(root: ChoiceNode, context: Sequence[object]) -> ChoiceNode:
    """The part that the keys of a context lead to, made where it was not there."""
    at = root
    for step in context:
        column, key = step if isinstance(step, list | tuple) and len(step) == 2 else ("", step)
        at.split_by = str(column)
        at = at.children.setdefault(number(key), ChoiceNode(number(key)))
    return at


def why(event: Event) -> str:
    """The features at a choice and the tests that they met; where none was asked, how far the next option is behind."""
    path = event.fields.get("path")
    tests = [s for s in path if isinstance(s, Mapping)] if isinstance(path, list) else []
    statements = [
        f"{s.get('feature')} {number(s.get('value'))} {s.get('went')} {number(s.get('threshold'))}" for s in tests
    ]
    policy = [str(event.fields.get("policy") or event.fields.get("way") or ""), margin(event.fields) or ""]
    return ", ".join(statements) or ": ".join(filter(None, policy))


def twig(node: ChoiceNode, name: str = "all rows") -> Twig:
    """The tree to be drawn with characters."""
    branch = Twig("  ".join([name, *(f"{e.name} {chosen(e)} ({why(e)})" for e in node.choices)]))
    children = list(node.children.values())
    for child in children[:_MOST]:
        branch.twigs.append(twig(child, f"{node.split_by} = {child.key}"))
    if len(children) > _MOST:
        branch.add(f"… and {len(children) - _MOST} more")
    return branch


def text(events: Sequence[Event], most: int = 80) -> str:
    """Renders the number of times each option was taken, and the first `most` lines of the tree."""
    root = nested_choices(events)
    if root is None:
        return ""
    lines = twig(root).lines()
    cut = [f"… {len(lines) - most} more lines; `--html` shows all"] if len(lines) > most else []
    times = [f"{name} chose {option} {plural(n, 'time')}" for name, option, n in option_counts(events)]
    return "\n".join([*times, *lines[:most], *cut])


def option_counts(events: Iterable[Event]) -> list[tuple[str, str, int]]:
    """Counts how often each option was taken: (choice, option, times), the most frequent first."""
    times: dict[tuple[str, str], int] = {}
    for event in events:
        if event.kind == "choice":
            place = event.name, str(event.fields.get("chosen"))
            times[place] = times.get(place, 0) + 1
    return sorted(((*place, n) for place, n in times.items()), key=lambda row: (-row[2], row[0], row[1]))
