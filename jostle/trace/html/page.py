"""A whole run as one self-contained page: no network, readable on a phone and in the dark, usable by keyboard.

It shows what the events hold, which is public or paid for, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jostle.events import Event
from jostle.trace.budget import line
from jostle.trace.costs import Costs
from jostle.trace.forest import Forest
from jostle.trace.html.budget import budget
from jostle.trace.html.choices import choices
from jostle.trace.html.event_tree import event_tree
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.html.program import program, text_of
from jostle.trace.html.story import ran_on, story
from jostle.trace.html.values import pictures_section, releases_section
from jostle.trace.text import number, plural


def page(events: Sequence[Event]) -> str:
    """The page, as text."""
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
    body = tag(
        "body", tag("header", header), tag("nav", links, aria_label="parts of this page"),
        tag("main", sections), tag("script", Html(_asset("page.js"))),
    )  # fmt: skip
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _summary(events: Sequence[Event]) -> Html:
    """The end of the run and its spending, a line a source."""
    failed = [e for e in events if e.kind == "error"]
    simulated = any(e.fields.get("simulated") is not None for e in events)
    end = f"refused: {failed[0].name}: {failed[0].fields.get('message')}" if failed else "ran to its end"
    told_of = [e.fields.get("budget") for e in events if e.kind == "run"]
    budgets: dict[str, Any] = next((b for b in told_of if isinstance(b, dict)), {})
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
