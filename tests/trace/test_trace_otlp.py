"""The OpenTelemetry form of a run: every event a span, inside its parent's times, with its fields as attributes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jostle.trace.costs import Forest
from jostle.trace.jsonl import otlp

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
