"""The web page of a run, and that of two runs side by side: self-contained, readable on a phone, usable by keyboard.

It shows what the events hold, which is public or paid for, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jostle.events import Event
from jostle.resources import Json
from jostle.trace import difference
from jostle.trace.budget import line
from jostle.trace.costs import Costs, Forest, mapping, price, records
from jostle.trace.html.choices import choices
from jostle.trace.html.event_tree import (
    Html,
    budget,
    draw,
    event_tree,
    join,
    pictures_section,
    program,
    releases_section,
    table,
    tag,
    text_of,
    undrawn,
)
from jostle.trace.released import plot
from jostle.trace.text import amount, number, plural
from jostle.trace.tree import Decisions, chosen, decisions, figures, heading, looked_at, margin

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
    paragraphs = [tag("p", _choice(forest, costs, e)) for e in choices[:_CHOICES]]
    rest = tag("p", f"… and {plural(len(choices) - _CHOICES, 'more choice')}") if len(choices) > _CHOICES else None
    return join(printed, paragraphs, rest)


def ran_on(events: Sequence[Event]) -> str:
    """`2026-11-22, Jostle 0.1.0`, as far as the run's event says so."""
    fields: Mapping[str, object] = next((e.fields for e in events if e.kind == "run"), {})
    parts = (fields.get("date"), f"Jostle {fields['version']}" if fields.get("version") else None)
    return ", ".join(str(p) for p in parts if p)


def _choice(forest: Forest, costs: Costs, event: Event) -> Html:
    """`choose took Each for town. It bought people_in_all = 4123 for ε 0.015, and predicts …`"""
    fields = event.fields
    option = str(fields.get("chosen", "nothing"))
    sources = dict.fromkeys(s for e in forest.walk(event) if e.kind == "measure" for s in e.fields.get("sources") or ())
    head = join(tag("a", event.name, href=f"#e{event.id}"), " took ", tag("b", option))
    about = f" for {', '.join(sources)}" if sources else ""
    spent = costs.text(event)
    return join(head, about + (f", at {spent}" if spent else "") + ". ", " ".join(_reasons(fields, option)))


def _reasons(fields: Mapping[str, object], option: str) -> Iterator[str]:
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
    figure = figures(fields).get(option)
    ahead = margin(fields)
    if figure is not None and mapping(fields.get("predictions")):
        what = "an error" if fields.get("errors") else "a utility"
        yield f"It predicts {what} of {figure[0]}" + (f"; {ahead}." if ahead else ".")
    if fields.get("why"):
        yield f"Why this way of choosing: {fields['why']}."


def _paid(feature: Mapping[str, object]) -> str:
    unit, cost = price(feature) or ("", 0)
    return f"{unit} {amount(cost)}"


def page(events: Sequence[Event]) -> str:
    forest = Forest.of(events)
    costs = Costs.of(forest)
    run = next((e for e in events if e.kind == "run"), None)
    name = run.name if run is not None else "a run"
    parts: list[tuple[str, str, Html | None]] = [
        ("story", "What happened", story(events, forest, costs)),
        ("released", "Released", releases_section(events)),
        ("pictures", "Pictures", pictures_section(events)),
        ("budget", "Budget", budget(forest, costs)),
        ("choices", "Choices", choices(events, forest, costs)),
        ("program", "Program", program(events, forest, costs)),
        ("events", "Events", _events(events, event_tree(forest, costs, text_of(events)))),
    ]
    return document(f"{name}: what happened", join(tag("h1", name), _summary(events)), parts)


def document(title: str, header: Html, parts: Sequence[tuple[str, str, Html | None]]) -> str:
    """A page: its title and head, then parts, each with an anchor and a heading; those without a body are left out."""
    there = [(at, heading, body) for at, heading, body in parts if body is not None]
    links = [tag("a", heading, href=f"#{at}") for at, heading, _ in there]
    sections = [tag("section", tag("h2", heading), body, id=at, class_="part") for at, heading, body in there]
    head = tag("head", tag("meta", charset="utf-8"),
               tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
               tag("title", title), tag("style", Html(_asset("page.css"))))  # fmt: skip
    heading = tag("header", header, undrawn(*(body for _, _, body in there)))
    body = tag(
        "body", heading, tag("nav", links, aria_label="parts of this page"),
        tag("main", sections), tag("script", Html(_asset("page.js"))),
    )  # fmt: skip
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _summary(events: Sequence[Event]) -> Html:
    """The end of the run and its spending, a line a source."""
    failed = [e for e in events if e.kind == "error"]
    simulated = any(e.fields.get("simulated") is not None for e in events)
    end = f"refused: {failed[0].name}: {failed[0].fields.get('message')}" if failed else "ran to its end"
    told_of = [e.fields.get("budget") for e in events if e.kind == "run"]
    budgets: dict[str, Json] = next((b for b in told_of if isinstance(b, dict)), {})
    lines = [tag("p", line(source, amounts), class_="spent") for source, amounts in budgets.items()]
    facts = [end, ran_on(events), "simulated, nothing private was opened" if simulated else ""]
    outcome = "; ".join(fact for fact in facts if fact)
    params = ", ".join(f"{e.name} = {number(e.fields.get('value'))}" for e in events if e.kind == "param")
    set_to = tag("p", f"with {params}") if params else None
    return join(tag("p", outcome, class_="failed" if failed else None), set_to, lines)


def _events(events: Sequence[Event], tree: Html) -> Html:
    find = tag("input", type="search", id="find", placeholder="find events ( / )", aria_label="find events")
    many = tag("span", plural(len(events), "event"), id="many", role="status")
    buttons = [tag("button", f"{what} all", type="button", id=what) for what in ("open", "close")]
    return join(tag("div", find, buttons, many, class_="tools"), tree)


def style(within: str) -> Html:
    """The page's style for a piece of it in another page: its rules hold inside `within` only."""
    rules = _asset("page.css")
    colours, _, rest = rules.partition("* { box-sizing")
    return tag("style", Html(f"{within} {{ * {{ box-sizing{rest} }}\n{colours}"))


def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


_ROWS = 40
_DRAWN = 12  # pictures of one page
_APART = 20


def difference_page(one: Sequence[Event], other: Sequence[Event]) -> str:
    """The page, as text: `one` is this run, `other` the other."""
    names = [next((e.name for e in events if e.kind == "run"), "a run") for events in (one, other)]
    lines = [
        tag("p", f"{side}: {name}" + (f" ({on})" if (on := ran_on(events)) else ""))
        for side, name, events in zip(("this run", "the other"), names, (one, other), strict=True)
    ]
    parts = [
        ("choices", "Chosen", _choices(decisions(one, other))),
        ("params", "Parameters", _rows("parameter", difference.params(one, other))),
        ("released", "Released", _released(one, other)),
        ("spent", "Spent", _rows("", difference.spending(one, other))),
        ("ended", "Ended", _rows("", difference.ends(one, other))),
        ("program", "Program", _program(difference.program_lines(one, other))),
    ]
    if all(body is None for _, _, body in parts):
        lines.append(tag("p", "the two runs spent, chose and released the same"))
    title = names[0] if names[0] == names[1] else " and ".join(names)
    return document(f"{title}: two runs", join(tag("h1", f"Two runs of {title}"), lines), parts)


def _rows(what: str, rows: Sequence[difference.Row]) -> Html | None:
    more = tag("p", f"… {len(rows) - _ROWS} more") if len(rows) > _ROWS else None
    body = table([what, "this run", "the other"], rows[:_ROWS], class_="data")
    return join(tag("div", body, class_="wide"), more) if rows else None


def _choices(pairs: Sequence[Decisions]) -> Html | None:
    apart = [pair for pair in pairs if pair.differs]
    alike = len(pairs) - len(apart)
    same = tag("p", f"{plural(alike, 'choice')} took the same option in both runs.") if alike else None
    more = tag("p", f"… {len(apart) - _APART} more") if len(apart) > _APART else None
    return join([_parted(pair) for pair in apart[:_APART]], more, same) if pairs else None


def _parted(pair: Decisions) -> Html:
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
    values = difference.compared(one, other)
    if not values:
        return None
    summary, room, out = difference.verdict(values), _DRAWN, []
    for value in values:
        section, used = _value(value, one, other, room)
        room -= used
        out.append(section)
    return join(tag("p", f"{summary[:1].upper()}{summary[1:]}.") if summary else None, out)


def _value(value: difference.Compared, one: Sequence[Event], other: Sequence[Event], room: int) -> tuple[Html, int]:
    """A released value, column by column, and how many pictures that took."""
    head = tag("h3", value.name)
    if not value.of_both:
        words = (difference.released_in(events, value.name) for events in (one, other))
        return tag("section", head, _rows("", [("", *words)])), 0
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


def _pairs(value: difference.Compared, column: str, pairs: dict[str, difference.Pair]) -> Html:
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


__all__ = ["difference_page", "page"]
