"""The page of a run: it holds every event once, needs no network, escapes what it shows, and lights the taken path."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from jostle import diagnostics
from jostle.events import Event
from jostle.records import replace
from jostle.source import Source
from jostle.tools.session import Session
from jostle.trace import tree
from jostle.trace.html import page
from jostle.trace.html.choices import decision_tree
from jostle.trace.html.event_tree import Html, join, tag
from jostle.trace.text import measured

sys.path.insert(0, str(Path(__file__).parent))
import real_runs

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


def without_text() -> list[Event]:
    """A real run, whose trace does not hold the program."""
    return [replace(e, fields={k: v for k, v in e.fields.items() if k != "text"}) for e in real_runs.events()]


def test_every_event_stands_on_the_page_once_and_every_link_leads_somewhere() -> None:
    events = real_runs.events()
    read = Reader(page(events))
    assert sorted(i for i in read.ids if re.fullmatch(r"e\d+", i)) == sorted(f"e{e.id}" for e in events)
    assert len(read.ids) == len(set(read.ids)) and read.crossed == []
    assert {link.removeprefix("#") for link in read.links} <= set(read.ids)


def test_nothing_is_fetched_and_nothing_of_a_program_is_markup() -> None:
    (events,) = [Session().attempt(Source("p.jst", 'x = "<b>bold</b> & more"\nrelease x\n')).events]
    for text in (page(events), page(real_runs.events())):
        read = Reader(text)
        drawn = {link for link in read.outside if link.startswith("#")}
        assert [link for link in read.outside if link not in drawn and not link.startswith("data:")] == []
        assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org)", text)
    assert "<b>bold</b>" not in page(events) and page(events).count("&lt;b&gt;bold&lt;/b&gt;") == 2


def test_it_says_what_was_spent_chosen_and_refused() -> None:
    words = " ".join(Reader(page(real_runs.events())).words)
    for said in ("ε 1.4375 of 2", "ρ 0.375 of 1", "chose", "Either", "top", "BudgetExceeded", "506", "refused"):
        assert said in words, said


def test_a_trace_without_the_programs_text_has_a_page_too() -> None:
    read = Reader(page(without_text()))
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


def test_ten_thousand_events_make_a_page_of_less_than_three_megabytes() -> None:
    """What a run does, as if it did it again and again."""
    own = [e for e in real_runs.events() if e.kind not in ("run", "source", "train", "picture", "release", "error")]
    (run,) = [e for e in real_runs.events() if e.kind == "run"]
    many = [run]
    for times in range(1, 10_000 // len(own)):
        more = 100 * times
        many += [replace(e, id=e.id + more, parent=1 if e.parent == 1 else (e.parent or 0) + more) for e in own]
    text = page(many)
    assert len(many) > 9_900 and len(text.encode()) <= 3_000_000
    assert Reader(text).crossed == []


def test_trees_of_a_forest_stand_side_by_side() -> None:
    """Two runs of an algorithm whose choice is made node by node."""
    again = [replace(e, id=e.id + 100) for e in real_runs.events("nodes") if e.kind == "choice"]
    events = [*real_runs.events("nodes"), *again]
    told = tree.decisions_text(events)
    words = " ".join(Reader(page(events)).words)
    assert "├─ tree = 1  which Up" in told and "│  └─ sex = M  which Up" in told
    assert "└─ tree = 2  which Up" in told and "tree = 2" in words


def test_an_empty_parameter_is_shown_as_one() -> None:
    run = Session().attempt(Source("p.jst", 'param folder = ""\nparam share = 0.1\nprint(folder, share)\n'))
    words = " ".join(Reader(page(run.events)).words)
    assert 'with folder = "", share = 0.1' in words


def test_choices_inside_an_algorithm_stand_at_their_nodes() -> None:
    words = " ".join(Reader(page(real_runs.events("nodes"))).words)
    assert "Node by node" in words and "sex = F" in words and "whole runs on 8 data sets" in words


def test_numbers_lose_the_decimals_that_their_error_has_none_of() -> None:
    assert measured(31786.512, {"error": 3000.0}) == "31787" and measured(36.2345, {"error": 0.41}) == "36.23"
    assert measured(36.2345, {"error": 0.0}) == measured(36.2345, None) == "36.2345" and measured("a", None) == "a"
    value = [{"city": "Ames", "mean": 31786.512}]
    event = Event(1, None, "release", "g", None, {"value": value, "margins": [{"mean": {"error": 3000.0}}]})
    assert "31787" in page([event]) and "31786" not in page([event])


def test_what_cannot_be_drawn_is_a_table_and_what_is_missing_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"shape": "lines", "x": [1, 2], "series": {"y": [31, 47]}, "high": {"y": [32, 48]}}
    events = [Event(i, None, "picture", f"drawn {i}", None, fields) for i in (1, 2, 3)]
    events.append(Event(4, None, "release", "h", None, {"value": [1, 2, 3, 4, 5]}))
    assert "not installed" not in page(events) and "<td" not in page(events) and page(events).count("<svg") == 4
    monkeypatch.setattr(diagnostics, "find_spec", lambda name: None)
    text = page(events)
    assert text.count("not installed") == 1 and all(f">drawn {i}</figcaption>" in text for i in (1, 2, 3))
    assert [text.count(f'<td class="num">{n}</td>') for n in (31, 47, 48)] == [3, 3, 3]
    assert text.count("<figure") == 3  # a released list stands there as numbers
    assert text.count(">y high</th>") == 3
    ends = fields | {"low": {"y": [20.2626, 0.126374]}, "high": {"y": [41.7374, 126.7374]}}
    text = page([Event(1, None, "picture", "ends", None, ends)])
    assert all(f">{n}</td>" in text for n in ("20.3", "0.126", "41.7", "126.7")) and "737" not in text
    named = fields | {"series": {"ages": [31, 47]}, "high": {"ages": [32, 48]}}
    text = page([Event(1, None, "picture", "ages", None, named)])  # the title is not said again in each column
    assert ">value</th>" in text and ">high</th>" in text and ">ages" not in text.replace(">ages</figcaption>", "")


def test_reports_matrices_and_records_are_tables_with_their_errors() -> None:
    report = {"title": "correlation: 9 rows", "rows": [{"x": "age", "low": 0.25}], "notes": ["too narrow"], "more": 1}
    margin = {"value": 30, "error": 4}
    events = [
        Event(1, None, "release", "c", None, {"value": report}),
        Event(2, None, "release", "h", None, {"value": [[1, 2], [3, 41]], "margins": [[margin] * 2] * 2}),
        Event(3, None, "release", "r", None, {"value": {"n": 30}, "margins": {"n": margin}}),
        Event(4, None, "release", "v", None, {"value": [30] * 5, "margins": [margin] * 5}),
    ]
    text = page(events)
    asked = "correlation: 9 rows", "<td>age</td>", "too narrow", '<td class="num">41</td>', "2 × 2 values, ± 4 at most"
    for words in asked:
        assert words in text, words
    assert '<td class="num">4</td>' in text and "5 values, ± 4 at most" in text and "title:" not in text


def test_no_text_turns_a_line_or_is_shown_as_nothing() -> None:
    """In names, values, keys, printed lines, settings, titles and places of pictures, and the program itself."""
    from jostle.trace.html import difference_page
    from jostle.trace.text import HIDDEN

    signs = "\u202e\u2066\u200b\u00ad\u3164\ufe0f\U000e0041\x1b"
    text = (
        f'param p = "{signs}"\nprint(p + "x")\nrelease v = p + "y"\nrelease r = {{a: p, b: [p]}}\n'
        'plot(p, ["a" + p, "b"], [1, 2], kind = "bars")\n'
    )
    result = Session().attempt(Source("signs", text))
    assert result.ok and len(result.pictures) == 1
    other = Session().attempt(Source("signs", text.replace('"y"', '"z"')))
    for html in (page(result.events), difference_page(result.events, other.events), result.pictures[0].svg()):
        assert HIDDEN.search(html) is None and "\N{REPLACEMENT CHARACTER}" in html


def test_a_page_of_many_releases_takes_a_time_that_grows_as_they_do() -> None:
    """It looked through all events for each release: 17 s of 20,000."""
    import time

    def took(many: int) -> float:
        events = Session().attempt(Source("many", f"for i in 1..{many} {{ release x = i }}\n")).events
        times = [time.process_time()]
        for _ in range(3):
            page(events)
            times.append(time.process_time())
        return min(after - before for before, after in pairwise(times))

    took(100)
    assert took(8000) < 12 * took(2000) / 2
