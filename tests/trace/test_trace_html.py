"""The page of a run: it holds every event once, needs no network, escapes what it shows, and lights the taken path."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from jostle.events import Event, Stream
from jostle.source import Source, Span
from jostle.trace.html import page
from jostle.trace.html.markup import Html, join, tag
from jostle.trace.html.trees import decision_tree

sys.path.insert(0, str(Path(__file__).parent))
import sample_run

VOID = {"meta", "input", "br", "hr"}


class Reader(HTMLParser):
    """Reads a page: ids, links, and whether every element is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.outside: list[str] = []
        self._open: list[str] = []
        self.crossed: list[str] = []
        self.feed(text)

    def handle_starttag(self, element: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if element == "a" and named.get("href"):
            self.links.append(str(named["href"]))
        self.outside += [str(v) for k, v in attrs if k in ("src", "href", "data") and not str(v).startswith("#")]
        if element not in VOID:
            self._open.append(element)

    def handle_startendtag(self, element: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(element)
        self.handle_endtag(element)

    def handle_endtag(self, element: str) -> None:
        if not self._open or self._open.pop() != element:
            self.crossed.append(element)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def with_program() -> list[Event]:
    """The made-up run, holding a text as long as its places need."""
    text = "\n".join(f"x{n} = {n}  # <b>line</b> & {n}" for n in range(1, 60))
    events = sample_run.events()
    return [Event(e.id, e.parent, e.kind, e.name, e.span, {**e.fields, "text": text}) if e.kind == "run" else e
            for e in events]  # fmt: skip


def test_every_event_stands_on_the_page_once_and_every_link_leads_somewhere() -> None:
    events = with_program()
    read = Reader(page(events))
    assert sorted(i for i in read.ids if re.fullmatch(r"e\d+", i)) == sorted(f"e{e.id}" for e in events)
    assert len(read.ids) == len(set(read.ids)) and read.crossed == []
    assert {link.removeprefix("#") for link in read.links} <= set(read.ids)


def test_nothing_is_fetched_and_nothing_of_a_program_is_markup() -> None:
    text = page(with_program())
    read = Reader(text)
    drawn = {link for link in read.outside if link.startswith("#")}
    assert [link for link in read.outside if link not in drawn and not link.startswith("data:")] == []
    assert "<b>line</b>" not in text and "&lt;b&gt;line&lt;/b&gt;" in text
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org)", text)


def test_it_says_what_was_spent_chosen_and_refused() -> None:
    words = " ".join(Reader(page(with_program())).words)
    for said in ("ε 0.65 of 1", "chose", "DAWA", "uniformity", "12.38", "BudgetExceeded", "1203", "refused"):
        assert said in words, said


def test_a_trace_without_the_programs_text_has_a_page_too() -> None:
    read = Reader(page(sample_run.events()))
    assert "program" not in read.ids and "events" in read.ids and read.crossed == []
    # Places stay words, since there is no line to go to.
    assert not any(link.startswith("#l") for link in read.links)


def test_the_taken_path_is_lit() -> None:
    tree = {
        "feature": "rows", "threshold": 3.5, "low": {"says": {"A": -1.0, "B": -2.0}, "n": 4},
        "high": {"feature": "cells", "threshold": 10, "low": {"says": {"A": -3.0}, "n": 2},
                 "high": {"says": {"B": -0.5}, "n": 6}},
    }  # fmt: skip
    steps = [{"feature": "rows", "threshold": 3.5, "value": 7.0, "went": ">"},
             {"feature": "cells", "threshold": 10, "value": 64, "went": ">"}]  # fmt: skip
    drawn = str(decision_tree({"trees": {"": tree}, "path": steps, "chosen": "B"}))
    lit = re.findall(r'class="(?:test|says) lit">([^<]*)', drawn)
    assert lit == ["rows ≤ 3.5?", "cells ≤ 10?", "B -0.5"]


def test_markup_escapes_what_is_no_markup() -> None:
    assert tag("a", "<i>", Html("<b></b>"), href='"x"', hidden=True, id=None) == (
        '<a href="&quot;x&quot;" hidden>&lt;i&gt;<b></b></a>'
    )
    assert join(None, ["a", ["b"]], "&") == "ab&amp;"


def many_events(count: int) -> list[Event]:
    heard: list[Event] = []
    stream = Stream(listeners=[heard.append])
    source = Source("p.jst", "")
    with stream.within("run", "p.jst", text="x = 1\n" * 500) as run:
        stream.emit("source", "people", Span(source, 1, 1, 1, 5), unit="rows", budget="epsilon 1")
        for k in range(count // 10):
            at = Span(source, k % 500 + 1, 1, k % 500 + 1, 5)
            with stream.within("choice", "L1", at, chosen="stop" if k % 2 else "go", spent=0.0001):
                for j in range(9):
                    stream.emit("measure", f"count {j}", at, epsilon=0.00001, sources=["people"], mechanism="laplace",
                                scale=10.0)  # fmt: skip
        run["budget"] = {"people": {"epsilon": {"total": "1", "spent": "0.1"}}}
    return heard


def test_ten_thousand_events_make_a_page_of_less_than_three_megabytes() -> None:
    text = page(many_events(10_000))
    assert len(text.encode()) <= 3_000_000
    assert Reader(text).crossed == []


@pytest.mark.parametrize("fields", [{}, {"trees": None}, {"trees": {"": 3}}, {"trees": {"A": {}}, "paths": 4}])
def test_odd_trees_are_no_fault(fields: dict[str, object]) -> None:
    drawn = decision_tree({**fields, "chosen": "A"})
    assert drawn is None or Reader(str(drawn)).crossed == []


def test_trees_of_a_forest_stand_side_by_side() -> None:
    from jostle.trace import nested_choices

    heard: list[Event] = []
    stream = Stream(listeners=[heard.append])
    with stream.within("run", "p.jst"):
        stream.emit("choice", "L0", chosen="Two", context=[])
        for column, key in (("sex", "F"), ("age", 3.0)):
            stream.emit("choice", "L1", chosen="Go", context=[])
            stream.emit("choice", "L1", chosen="Stop", context=[[column, key]])
        for name in ("L0", "L1"):
            stream.emit("train", name, options=["Go", "Stop"], databases=["a", "b"],
                        standings=[{"policy": "One, Go", "regret": 0.25, "error": 0.01}])  # fmt: skip
    told = nested_choices.text(heard)
    words = " ".join(Reader(page(heard)).words)
    assert "What L0, L1 were learned from: whole runs on 2 data sets" in words and words.count("One, Go") == 1
    assert "├─ tree = 1  L0 Two, L1 Go" in told and "│  └─ sex = F  L1 Stop" in told
    assert "└─ tree = 2  L1 Go" in told and "   └─ age = 3  L1 Stop" in told
    assert "tree = 2" in " ".join(Reader(page(heard)).words)


def test_choices_inside_an_algorithm_stand_at_their_nodes() -> None:
    from jostle.trace import nested_choices

    heard: list[Event] = []
    stream = Stream(listeners=[heard.append])
    with stream.within("run", "p.jst"):
        for context, chosen in (
            ([], "Go"),
            ([["sex", "F"]], "Stop"),
            ([["sex", "M"]], "Go"),
            ([["sex", "M"], ["age", 3.0]], "Stop"),
        ):
            path = [{"feature": "rows", "threshold": 9.0, "value": 12.0, "went": ">"}]
            stream.emit("choice", "L1", chosen=chosen, context=context, path=path, features=[])
        stream.emit("train", "L1", options=["Go", "Stop"], databases=["a", "b"],
                    standings=[{"policy": "Go", "regret": 0.25, "error": 0.01}])  # fmt: skip
    told = nested_choices.text(heard)
    assert told.splitlines()[:2] == ["L1 chose Go 2 times", "L1 chose Stop 2 times"]
    assert "└─ sex = M  L1 Go  (rows 12 > 9)" in told and "└─ age = 3  L1 Stop" in told
    words = " ".join(Reader(page(heard)).words)
    assert "Node by node" in words and "age = 3" in words and "whole runs on 2 data sets" in words and "0.25" in words
