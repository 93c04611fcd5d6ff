"""Each rendering of a real run, word for word (`tests/golden/trace`), and that the runs show what a trace can hold."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import real_runs

from jostle.events import Event
from jostle.trace.pictures import pictures


@pytest.mark.parametrize(("run", "ending"), [(run, e) for run, endings in real_runs.GOLDENS.items() for e in endings])
def test_golden(run: str, ending: str) -> None:
    said = (real_runs.GOLDEN / f"{run}.{ending}").read_text(encoding="utf-8")
    assert real_runs.RENDERINGS[ending](run) == said, "python tests/trace/real_runs.py --write"


def test_the_runs_hold_what_a_trace_can_hold() -> None:
    """Every kind of event, of noise and of payment; what no run shows, no golden does."""
    all_ = [e for run in real_runs.GOLDENS for e in real_runs.events(run)]
    assert {e.kind for e in all_} == {
        "run", "source", "allotment", "query", "measure", "feature", "train", "choice", "option", "picture", "release",
        "error",
    }  # fmt: skip
    measured = [e.fields for e in all_ if e.kind == "measure"]
    assert {m["mechanism"] for m in measured} == {"laplace", "gaussian", "selection"}
    for fits in (
        lambda m: "rho" in m, lambda m: m.get("delta"), lambda m: m.get("prepaid"), lambda m: len(m["sources"]) == 2,
        lambda m: "secret samples" in m.get("because", ""),
    ):  # fmt: skip
        assert any(fits(m) for m in measured)
    chosen = [e for e in all_ if e.kind == "choice"]
    assert any(_inside(e, all_, "choice") for e in chosen) and any(e.fields.get("context") for e in chosen)
    assert any(e.fields.get("replayed") for e in all_) and any(e.fields.get("refused") for e in all_)


def _inside(event: Event, events: list[Event], kind: str) -> bool:
    return any(e.kind == kind and e.id == above for e in events for above in _above(event, events))


def _above(event: Event, events: list[Event]) -> set[int]:
    parents = {e.id: e.parent for e in events if any(e is own for own in events)}
    above: set[int] = set()
    at = event.parent
    while at is not None and at not in above:
        above.add(at)
        at = parents.get(at)
    return above


def test_the_picture_of_a_run_is_what_was_released() -> None:
    (picture,) = pictures(real_runs.events())
    (answers,) = [e.fields["value"] for e in real_runs.events() if e.name == "answers"]
    assert picture.title == "ages below" and list(picture.fields["series"].values()) == [pytest.approx(list(answers))]
    assert picture.svg().count("<path") > 2 and ">ages below<" in picture.svg()
