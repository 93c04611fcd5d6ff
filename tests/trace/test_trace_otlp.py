"""The OpenTelemetry form of a run: every event a span, inside its parent's times, with its fields as attributes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from jostle.trace.forest import Forest
from jostle.trace.otlp import otlp

sys.path.insert(0, str(Path(__file__).parent))
import sample_run


def test_every_event_is_a_span_within_its_parent() -> None:
    events = sample_run.events()
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
    spans = json.loads(otlp(sample_run.events()))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    chosen = next(s for s in spans if s["name"] == "choice noisyHistChoice")
    known = {a["key"]: a["value"] for a in chosen["attributes"]}
    assert known["jostle.chosen"] == {"stringValue": "DAWA"} and known["code.lineno"] == {"intValue": "41"}
    assert known["jostle.margin"] == {"doubleValue": 0.89}
    assert json.loads(known["jostle.predictions"]["stringValue"]) == {"DAWA": -0.42, "MWEM": -1.31}
    assert [s["status"]["code"] for s in spans if s["name"].startswith("error")] == [2]


def test_two_runs_side_by_side() -> None:
    from dataclasses import replace

    from jostle.trace.difference import difference

    events = sample_run.events()
    assert difference(events, events) == "the two runs spent, chose and released the same\n"
    changed = []
    for e in events:
        if e.kind == "choice":
            e = replace(e, fields={**e.fields, "chosen": "MWEM"})
        if e.kind == "release" and e.name == "total":
            e = replace(e, fields={"value": 1190.0})
        if e.kind != "error" and e.name != "sizes":
            changed.append(e)
    told = difference(events, changed)
    assert "allotment sizes, line 7" in told and "ε 0.05" in told and "nothing" in told
    assert "DAWA (uniformity 12.38" in told and "MWEM (uniformity 12.38" in told
    assert "1203" in told and "1190" in told and "BudgetExceeded" in told and "cdf" not in told
