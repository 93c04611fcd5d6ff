"""The OpenTelemetry form of a run: every event a span, inside its parent's times, with its fields as attributes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jostle.trace.difference import difference
from jostle.trace.forest import Forest
from jostle.trace.otlp import otlp

sys.path.insert(0, str(Path(__file__).parent))
import real_runs


def test_every_event_is_a_span_within_its_parent() -> None:
    events = real_runs.events()
    (resource,) = json.loads(otlp(events))["resourceSpans"]
    spans = {s["spanId"]: s for s in resource["scopeSpans"][0]["spans"]}
    assert len(spans) == len(list(Forest.of(events).walk())) == len(events)
    for span in spans.values():
        assert len(span["spanId"]) == 16 and len(span["traceId"]) == 32
        if "parentSpanId" in span:
            parent = spans[span["parentSpanId"]]
            assert int(parent["startTimeUnixNano"]) < int(span["startTimeUnixNano"])
            assert int(span["endTimeUnixNano"]) <= int(parent["endTimeUnixNano"])


def test_fields_places_and_errors_are_attributes() -> None:
    spans = json.loads(otlp(real_runs.events()))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    chosen = next(s for s in spans if s["name"] == "choice flat_or_hb")
    known = {a["key"]: a["value"] for a in chosen["attributes"]}
    assert known["jostle.chosen"] == {"stringValue": "Flat"} and known["code.lineno"] == {"intValue": "28"}
    margin = known["jostle.margin"]["doubleValue"]
    predictions = json.loads(known["jostle.predictions"]["stringValue"])
    assert set(predictions) == {"Flat", "Hb"} and margin == predictions["Flat"] - predictions["Hb"] > 0
    assert [s["status"]["code"] for s in spans if s["name"].startswith("error")] == [2]


def test_two_runs_side_by_side() -> None:
    events = real_runs.events()
    assert difference(events, events) == "the two runs spent, chose and released the same\n"
    told = difference(real_runs.events("registered"), real_runs.events("again"))
    assert told.splitlines() == [
        "spent                           this run  the other",
        "  query count, line 5             ε 0.5     nothing",
        "  allotment epsilon 0.25, line 6  ε 0.25    nothing",
    ]
    told = difference(events, real_runs.events(seed=2))
    assert "everyone" in told and "506" in told and "chosen" in told and "rows 510" in told
    told = difference(events, real_runs.events("nodes"))
    assert "BudgetExceeded" in told and "ran to its end" in told and "no choice" in told
