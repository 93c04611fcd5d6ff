"""The choices of two runs side by side, and what parted those that chose differently.

Choices are matched by their name and the order in which each name's were made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from jostle.events import Event
from jostle.trace.forest import Forest, mapping, records
from jostle.trace.predictions import figures, heading
from jostle.trace.text import number
from jostle.trace.tree import looked_at


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


def _paths(fields: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
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
    taken = dict.fromkeys(str(fields.get("chosen")) for fields in (here, there))
    told = [f"{o} {mine[o][0]} here and {theirs[o][0]} there" for o in taken if o in mine and o in theirs]
    if told and heading(here) == heading(there):
        yield f"{heading(here)}: {'; '.join(told)}"
