"""Two runs as one page: what each chose and why, what both released with its noise, and what they spent."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.events import Event
from jostle.trace.costs import records
from jostle.trace.decisions import Decisions, chosen, decisions
from jostle.trace.difference import (
    Compared,
    Pair,
    Row,
    compared,
    ends,
    params,
    program_lines,
    released_in,
    spending,
    verdict,
)
from jostle.trace.html.event_tree import draw, table
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.html.page import document, ran_on
from jostle.trace.released import plot
from jostle.trace.text import plural
from jostle.trace.tree import figures, heading, looked_at

_ROWS = 40
_DRAWN = 12  # pictures of one page
_CHOICES = 20


def difference_page(one: Sequence[Event], other: Sequence[Event]) -> str:
    """The page, as text: `one` is this run, `other` the other."""
    names = [next((e.name for e in events if e.kind == "run"), "a run") for events in (one, other)]
    lines = [
        tag("p", f"{side}: {name}" + (f" ({on})" if (on := ran_on(events)) else ""))
        for side, name, events in zip(("this run", "the other"), names, (one, other), strict=True)
    ]
    parts = [
        ("choices", "Chosen", _choices(decisions(one, other))),
        ("params", "Parameters", _rows("parameter", params(one, other))),
        ("released", "Released", _released(one, other)),
        ("spent", "Spent", _rows("", spending(one, other))),
        ("ended", "Ended", _rows("", ends(one, other))),
        ("program", "Program", _program(program_lines(one, other))),
    ]
    if all(body is None for _, _, body in parts):
        lines.append(tag("p", "the two runs spent, chose and released the same"))
    title = names[0] if names[0] == names[1] else " and ".join(names)
    return document(f"{title}: two runs", join(tag("h1", f"Two runs of {title}"), lines), parts)


def _rows(what: str, rows: Sequence[Row]) -> Html | None:
    more = tag("p", f"… {len(rows) - _ROWS} more") if len(rows) > _ROWS else None
    body = table([what, "this run", "the other"], rows[:_ROWS], class_="data")
    return join(tag("div", body, class_="wide"), more) if rows else None


def _choices(pairs: Sequence[Decisions]) -> Html | None:
    apart = [pair for pair in pairs if pair.differs]
    alike = len(pairs) - len(apart)
    same = tag("p", f"{plural(alike, 'choice')} took the same option in both runs.") if alike else None
    more = tag("p", f"… {len(apart) - _CHOICES} more") if len(apart) > _CHOICES else None
    return join([_choice(pair) for pair in apart[:_CHOICES]], more, same) if pairs else None


def _choice(pair: Decisions) -> Html:
    """What both took, why, what each looked at, and what was predicted of every option."""
    head = tag("h3", pair.name, " took ", tag("b", chosen(pair.mine)), " here and ", tag("b", chosen(pair.theirs)),
               " there")  # fmt: skip
    if pair.mine is None or pair.theirs is None:
        return tag("section", head, class_="choice")
    here, there = pair.mine.fields, pair.theirs.fields
    reasons = [tag("p", f"{reason[:1].upper()}{reason[1:]}.") for reason in pair.reasons()]
    looked = [{f["name"]: looked_at(f) for f in records(fields.get("features"))} for fields in (here, there)]
    predicted = [{o: " ".join(words) for o, words in figures(fields).items()} for fields in (here, there)]
    rows = [
        (name, *(side.get(name, "–") for side in both))
        for both in (looked, predicted)
        for name in dict.fromkeys([*both[0], *both[1]])
    ]
    what = f"feature, {heading(here)}" if any(looked) else heading(here)
    return tag("section", head, reasons, _rows(what, rows), class_="choice")


def _released(one: Sequence[Event], other: Sequence[Event]) -> Html | None:
    values = compared(one, other)
    if not values:
        return None
    summary, room, out = verdict(values), _DRAWN, []
    for value in values:
        section, used = _value(value, one, other, room)
        room -= used
        out.append(section)
    return join(tag("p", f"{summary[:1].upper()}{summary[1:]}.") if summary else None, out)


def _value(value: Compared, one: Sequence[Event], other: Sequence[Event], room: int) -> tuple[Html, int]:
    """A released value, column by column, and how many pictures that took."""
    head = tag("h3", value.name)
    if not value.of_both:
        return tag("section", head, _rows("", [("", *(released_in(e, value.name) for e in (one, other)))])), 0
    body, used = [], 0
    for column, pairs in value.pairs.items():
        if all(pair.same for pair in pairs.values()):
            continue
        name = f"{value.name}: {column}" if column else value.name
        picture = plot(name, {"this run": value.whole[0].get(column, {}), "the other": value.whole[1].get(column, {})})
        if picture is not None and used < room:
            body.append(draw(picture))
            used += 1
        body.append(_pairs(value, column, pairs))
    return tag("section", head, body, class_="released"), used


def _pairs(value: Compared, column: str, pairs: dict[str, Pair]) -> Html:
    largest = value.most(column, _ROWS)
    rows = [(label, *pair.words()) for label, pair in largest.items()]
    differing = sum(not pair.same for pair in pairs.values())
    more = tag("p", f"the {len(largest)} that differ most, of {differing}") if differing > len(largest) else None
    lit = [pair.beyond for pair in largest.values()]
    return join(more, tag("div", table([column, "this run", "the other", "difference", ""], rows, lit, class_="data"),
                          class_="wide"))  # fmt: skip


def _program(lines: Sequence[str]) -> Html | None:
    """The lines that differ, without the places that a patch would need."""
    spans = [tag("span", line + "\n", class_="gone" if line[0] == "-" else "new") for line in lines if line[0] in "+-"]
    return tag("pre", spans, class_="lines") if spans else None
