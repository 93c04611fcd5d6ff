"""Compares two runs as text: what each chose and why, released, and spent.

Spending is compared by source and by allotment, query and choice; choices as `decisions` has them, and what was
released as `comparison` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff

from jostle.events import Event
from jostle.trace.comparison import compared, verdict
from jostle.trace.costs import Costs
from jostle.trace.decisions import Decisions, chosen, decisions, features_of
from jostle.trace.forest import Forest
from jostle.trace.summary import short
from jostle.trace.text import align, number

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
    shown = [p for p in pairs if p.differs or features_of(p.mine) != features_of(p.theirs)]
    rows = [(p.name, _choice_text(p, 0), _choice_text(p, 1)) for p in shown]
    head, *lines = _table("chosen", rows).splitlines() or [""]
    reasons = [p.reasons() if p.differs else [] for p in shown[:_MOST]]
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
            shown = value.most(column, _OF_MANY if len(pairs) > _MOST else _MOST)
            differing = sum(not pair.same for pair in pairs.values())
            beyond = sum(pair.beyond for pair in pairs.values())
            if not differing:
                continue
            cut = f"{differing} of {len(pairs)} differ, {beyond} by more than noise" if differing > len(shown) else ""
            rows += [(name, cut), *((f"  {label}", *pair.words()) for label, pair in shown.items())]
    told = verdict(values)
    return _table("released", rows, "difference", "", most=_RELEASED) + (f"  {told}\n" if told and rows else "")


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
