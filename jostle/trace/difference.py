"""Compares two runs as text: what each chose and why, released, number by number, and spent.

The noise of two runs is independent. So the interval of a difference is made of the distances from both values to the
ends of their intervals that face each other (Zou and Donner, "Construction of confidence limits about effect measures",
2008): at 95 % one in 20 differs by more than that, though nothing but the noise is another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import unified_diff

from msgspec import Struct

from jostle.events import Event
from jostle.trace.budget import short
from jostle.trace.costs import Costs, Forest
from jostle.trace.released import Columns, Figure, columns, is_number
from jostle.trace.text import align, number, plural
from jostle.trace.tree import Decisions, chosen, decisions, features_of


class Pair(Struct, frozen=True):
    """One place of a released value in two runs; None in the one that does not have it."""

    mine: Figure | None
    theirs: Figure | None

    @property
    def same(self) -> bool:
        return self.mine is not None and self.theirs is not None and self.mine.value == self.theirs.value

    @property
    def difference(self) -> float | None:
        """The other's number less this run's."""
        if self.mine is None or self.theirs is None:
            return None
        if not (is_number(self.mine.value) and is_number(self.theirs.value)):
            return None
        return float(self.theirs.value) - float(self.mine.value)

    @property
    def noise(self) -> float | None:
        """How far apart noise alone takes the two at 95 %; None where that of one is not known."""
        apart = self.difference
        if apart is None or self.mine is None or self.theirs is None:
            return None
        here, there = self.mine.ends(), self.theirs.ends()
        if here is None or there is None:
            return None
        if apart > 0:
            return math.hypot(here[1] - self.mine.value, self.theirs.value - there[0])
        return math.hypot(self.mine.value - here[0], there[1] - self.theirs.value)

    @property
    def beyond(self) -> bool:
        """Whether the two differ by more than noise explains."""
        apart, noise = self.difference, self.noise
        return apart is not None and noise is not None and abs(apart) > noise

    def words(self) -> tuple[str, str, str, str]:
        """Both values, the difference with its noise, and what that means."""
        apart, noise = self.difference, self.noise
        difference = "" if apart is None else ("+" if apart > 0 else "") + number(apart, 4)
        if noise is not None:
            difference += f" ± {number(float(f'{noise:.2g}'))}"
        ends = [str(figure) if figure is not None else "not released" for figure in (self.mine, self.theirs)]
        return ends[0], ends[1], difference, "more than noise" if self.beyond else ""


class Compared(Struct, frozen=True):
    """A released value of two runs: its pairs by column and label. `whole`: the figures of both."""

    name: str
    pairs: dict[str, dict[str, Pair]]
    whole: tuple[Columns, Columns]

    @property
    def of_both(self) -> bool:
        """Whether both runs released it."""
        return all(self.whole)

    @property
    def differences(self) -> list[Pair]:
        return [pair for column in self.pairs.values() for pair in column.values() if not pair.same]

    def most(self, column: str, many: int) -> dict[str, Pair]:
        """The `many` labels of a column that differ most, measured by their noise, in their own order."""
        differing = {label: pair for label, pair in self.pairs[column].items() if not pair.same}
        first = sorted(differing, key=lambda label: -_size(differing[label]))[:many]
        return {label: differing[label] for label in differing if label in set(first)}


def _size(pair: Pair) -> float:
    apart, noise = pair.difference, pair.noise
    return math.inf if apart is None else abs(apart) / (noise or 1.0)


def compared(one: Sequence[Event], other: Sequence[Event]) -> list[Compared]:
    """What both runs released, or one of them, in the order of their releases; what is the same in both is left out."""
    mine, theirs = ({e.name: columns(e) for e in events if e.kind == "release"} for events in (one, other))
    out = []
    for name in dict.fromkeys([*mine, *theirs]):
        here, there = mine.get(name, {}), theirs.get(name, {})
        pairs = {
            column: {
                label: Pair(here.get(column, {}).get(label), there.get(column, {}).get(label))
                for label in dict.fromkeys([*here.get(column, {}), *there.get(column, {})])
            }
            for column in dict.fromkeys([*here, *there])
        }
        value = Compared(name, pairs, (here, there))
        if value.differences:
            out.append(value)
    return out


def verdict(values: Sequence[Compared]) -> str:
    """How many numbers differ by more than noise explains, in a sentence; empty where no noise is known."""
    pairs = [pair for value in values for column in value.pairs.values() for pair in column.values()]
    noisy = [pair for pair in pairs if pair.noise is not None]
    if not noisy:
        return ""
    beyond = sum(pair.beyond for pair in noisy)
    chance = "" if not beyond else "; at 95 % one in 20 does by chance"
    many = "none" if not beyond else str(beyond)
    return f"{many} of {plural(len(noisy), 'number')} differ{'s' * (beyond == 1)} by more than noise explains{chance}"


_MOST = 30  # lines of one part
_RELEASED = 120  # lines of what was released
_OF_MANY = 6  # numbers that are shown of a column of many
Row = tuple[str, ...]


def difference(one: Sequence[Event], other: Sequence[Event]) -> str:
    """Renders the differences, part by part; one line where there are none."""
    parts = [
        _choices(one, other), _table("parameters", params(one, other)), _releases(one, other),
        _table("spent", spending(one, other)), _table("ended", ends(one, other)), _program(one, other),
    ]  # fmt: skip
    sections = [p for p in parts if p]
    return "\n".join(sections) if sections else "the two runs spent, chose and released the same\n"


def _table(title: str, rows: Sequence[Row], *more: str, most: int = _MOST) -> str:
    """Rows below a title, in columns: what it is of, this run, the other, and `more` words of the head."""
    if not rows:
        return ""
    wide = max(3, *map(len, rows))
    head = (title, "this run", "the other", *more)[:wide]
    padded = [(*row, *[""] * (wide - len(row))) for row in (head, *((f"  {row[0]}", *row[1:]) for row in rows[:most]))]
    lines = align(padded, [False] * wide)
    cut = [f"  … {len(rows) - most} more"] if len(rows) > most else []
    return "\n".join([*lines, *cut]) + "\n"


def params(one: Sequence[Event], other: Sequence[Event]) -> list[Row]:
    """The parameters that had other values in the two runs."""
    mine, theirs = ({e.name: number(e.fields.get("value")) for e in events if e.kind == "param"}
                    for events in (one, other))  # fmt: skip
    names = dict.fromkeys([*mine, *theirs])
    return [(n, mine.get(n, "none"), theirs.get(n, "none")) for n in names if mine.get(n) != theirs.get(n)]


def spending(one: Sequence[Event], other: Sequence[Event]) -> list[Row]:
    """What each place of the program's top level spent in the two runs, where that differs."""
    mine, theirs = _spent(one), _spent(other)
    return [
        (what, mine.get(what) or "nothing", theirs.get(what) or "nothing")
        for what in dict.fromkeys([*mine, *theirs])
        if mine.get(what) != theirs.get(what)
    ]


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
    pairs = decisions(one, other)
    changes = [p for p in pairs if p.differs or features_of(p.mine) != features_of(p.theirs)]
    rows = [(p.name, _choice_text(p, 0), _choice_text(p, 1)) for p in changes]
    head, *lines = _table("chosen", rows).splitlines() or [""]
    reasons = [p.reasons() if p.differs else [] for p in changes[:_MOST]]
    out = [head]
    for place, line in enumerate(lines):
        out += [line, *(f"    {reason}" for reason in (reasons[place] if place < len(reasons) else ()))]
    return "\n".join(out) + "\n" if rows else ""


def _choice_text(pair: Decisions, side: int) -> str:
    event = (pair.mine, pair.theirs)[side]
    looked = features_of(event)
    return chosen(event) + (f" ({looked})" if looked else "")


def _releases(one: Sequence[Event], other: Sequence[Event]) -> str:
    values = compared(one, other)
    rows: list[Row] = []
    for value in values:
        if not value.of_both:
            words = [released_in(events, value.name) for events in (one, other)]
            rows.append((value.name, *words))
            continue
        for column, pairs in value.pairs.items():
            name = f"{value.name}: {column}" if column else value.name
            if list(pairs) == [""]:
                rows.append((name, *pairs[""].words()))
                continue
            largest = value.most(column, _OF_MANY if len(pairs) > _MOST else _MOST)
            differing = sum(not pair.same for pair in pairs.values())
            beyond = sum(pair.beyond for pair in pairs.values())
            if not differing:
                continue
            cut = f"{differing} of {len(pairs)} differ, {beyond} by more than noise" if differing > len(largest) else ""
            rows += [(name, cut), *((f"  {label}", *pair.words()) for label, pair in largest.items())]
    summary = verdict(values)
    return _table("released", rows, "difference", "", most=_RELEASED) + (f"  {summary}\n" if summary and rows else "")


def released_in(events: Sequence[Event], name: str) -> str:
    """What a run released under a name, in a few words."""
    value = next((e.fields.get("value") for e in events if e.kind == "release" and e.name == name), None)
    return "not released" if value is None else short(value)


def ends(one: Sequence[Event], other: Sequence[Event]) -> list[Row]:
    """How the two runs ended, where that differs."""
    ended = [next((f"{e.name}: {e.fields.get('message')}" for e in events if e.kind == "error"), "ran to its end")
             for events in (one, other)]  # fmt: skip
    return [("the run", ended[0], ended[1])] if ended[0] != ended[1] else []


def program_lines(one: Sequence[Event], other: Sequence[Event]) -> list[str]:
    """The lines in which the two programs differ, those of this run with `-`, those of the other with `+`."""
    texts = [next((str(e.fields.get("text") or "") for e in events if e.kind == "run"), "") for events in (one, other)]
    if not all(texts) or texts[0] == texts[1]:
        return []
    lines = unified_diff(texts[0].splitlines(), texts[1].splitlines(), "this run", "the other", n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++"))]


def _program(one: Sequence[Event], other: Sequence[Event]) -> str:
    lines = program_lines(one, other)
    cut = [f"  … {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return "\n".join(["program", *(f"  {line}" for line in lines[:_MOST]), *cut]) + "\n" if lines else ""
