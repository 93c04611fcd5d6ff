"""A trace that was altered by hand is refused with its line, or renders."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest

from jostle.diagnostics import Refusal
from jostle.trace import pictures
from jostle.trace.budget import page as summary
from jostle.trace.budget import spending
from jostle.trace.difference import difference
from jostle.trace.html import difference_page, page
from jostle.trace.jsonl import otlp, plain, read
from jostle.trace.released import damage
from jostle.trace.tree import decisions_text as text

sys.path.insert(0, str(Path(__file__).parent))
import real_runs

OWN = {"v", "id", "parent", "kind", "name", "span"}
ODD = (None, "x", "", "1e999999", [1], [], [[]], -1, 0, 10**400, {"a": 1}, {})
DROPPED = object()
SOME = 4  # every fourth alteration of each run: all take two minutes


def _lines(run: str) -> list[dict[str, Any]]:
    return [plain(event.as_json()) for event in real_runs.events(run)]


def _below(value: Any) -> Iterator[tuple[Any, ...]]:
    """The places in a value: itself, the first field or two of records, the first of a list."""
    yield ()
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())[:6]
    elif isinstance(value, list):
        items = list(enumerate(value[:1]))
    for key, inner in items:
        yield from ((key, *rest) for rest in _below(inner))


def _altered(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    if not place:
        return odd
    key, *rest = place
    inner = _altered(value[key], tuple(rest), odd)
    if isinstance(value, list):
        return [inner, *value[1:]] if inner is not DROPPED else value[1:]
    return {k: (inner if k == key else v) for k, v in value.items() if k != key or inner is not DROPPED}


@cache
def _places() -> dict[str, list[tuple[int, tuple[Any, ...]]]]:
    """The events and places to alter of each run: those of one kind and shape once, in the shortest run."""
    seen: set[Any] = set()
    places: dict[str, list[tuple[int, tuple[Any, ...]]]] = {run: [] for run in real_runs.GOLDENS}
    for run in sorted(places, key=lambda run: len(_lines(run))):
        for at, line in enumerate(_lines(run)):
            for place in _below({k: v for k, v in line.items() if k not in OWN}):
                looks = (line["kind"], tuple(p for p in place if not isinstance(p, int)), len(place))
                if place and looks not in seen:
                    seen.add(looks)
                    places[run].append((at, place))
    return places


def _alterations(run: str) -> Iterator[list[dict[str, Any]]]:
    """The trace with one place of one event dropped or replaced."""
    lines = _lines(run)
    for at, place in _places()[run]:
        for odd in (DROPPED, *ODD):
            yield [*lines[:at], _altered(lines[at], place, odd), *lines[at + 1 :]]


@pytest.mark.parametrize("run", real_runs.GOLDENS)
def test_an_altered_trace_is_refused_or_renders(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = pictures.Picture.svg
    drawing = lru_cache(10_000)(lambda title, fields: drawn(pictures.Picture(title, json.loads(fields))))
    monkeypatch.setattr(pictures.Picture, "svg", lambda p: drawing(p.title, json.dumps(p.fields)))
    path, refused, rendered = tmp_path / "trace", 0, 0
    whole = real_runs.events(run)
    for lines in itertools.islice(_alterations(run), 0, None, SOME):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        try:
            events = read(path)
        except Refusal as refusal:
            first = refusal.first
            assert first.kind == "DataError" and first.message and first.span is not None
            refused += 1
            continue
        for rendering in (summary, spending, text, page, otlp):
            assert rendering(events) is not None
        assert difference(events, whole) and difference(whole, events)
        assert difference_page(events, whole)
        rendered += 1
    assert refused > 5 and rendered > 5


@pytest.mark.parametrize("run", real_runs.GOLDENS)
def test_what_a_run_writes_is_no_damage(run: str) -> None:
    assert [damage(line["kind"], {k: v for k, v in line.items() if k not in OWN}) for line in _lines(run)] == [
        None
    ] * len(_lines(run))


@pytest.mark.parametrize(
    ("kind", "fields", "field"),
    [
        ("source", {"unit": "rows"}, "budget"),
        ("source", {"unit": "rows", "budget": "2 apples"}, "budget"),
        ("source", {"unit": "rows", "budget": "epsilon 1, delta 1e-06"}, None),
        ("source", {"unit": 3, "budget": "epsilon 1"}, "unit"),
        ("measure", {}, "sources"),
        ("run", {"budget": {"people": {"epsilon": {"total": "1"}}}}, "budget"),
        ("choice", {"path": [{"feature": "n", "value": 1}]}, "path"),
        ("choice", {"trees": {"": {"feature": "n", "low": {"says": {"a": 1}}}}}, "trees"),
        ("choice", {"margin": None, "features": []}, None),
        ("train", {"options": ["a", "b"], "rows": [{"utilities": {"a": 1}}]}, "rows"),
        ("picture", {"shape": "line", "x": [1, 2], "series": {"a": [1]}}, "x"),
        ("picture", {"shape": "line", "x": {"b": [1]}, "series": {"a": [1]}}, "x"),
        ("picture", {"shape": "bars", "x": [], "series": {}}, "series"),
        ("picture", {"shape": "line", "x": [1], "series": {"a": [None]}, "low": {"a": [1, 2]}}, "low"),
        ("a kind of later", {"budget": 1}, None),
    ],
)
def test_the_field_is_named(kind: str, fields: dict[str, Any], field: str | None) -> None:
    assert damage(kind, fields) == field
