"""A fault after a charge: no answer, one fixed message, a closed source, and a counter that moves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import MOST_OUTAGES, Counter
from jostle.privacy.mechanisms.noise import SecureNoise
from jostle.readers.duckdb import LocalDuckDb
from jostle.source import Source
from jostle.tools.session import Result, Session

DECLARED = """
private people = table("people.csv") described by {age: 16..79} protecting rows budget epsilon 100
private others = table("others.csv") described by {age: 16..79} protecting rows budget epsilon 100
"""
MESSAGE = "measuring `people` failed after the charge, and there is no answer"
CLOSED = "`people` is closed for this session, since measuring it failed after a charge"
COUNT = "release n = {{ select count(*) from people with epsilon 1 }}\n"
OTHER = "release m = {{ select count(*) from others with epsilon 1 }}\n"
FAULTS = [
    ValueError("Ann"), TypeError("Ann"), OverflowError("9223372036854775808"), KeyError("Ann"), AttributeError("x"),
    RecursionError("x"), AssertionError(), UnicodeDecodeError("utf-8", b"Ann", 0, 1, "x"), StopIteration("x"),
    refuse("ValueError", "a refusal that had to come before the charge"),
]  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Session:
    for name, rows in (("people", 4000), ("others", 1000)):
        (tmp_path / f"{name}.csv").write_text("age\n" + "40\n" * rows)
    started = Session(cwd=tmp_path)
    assert started.attempt(Source("p.jst", DECLARED)).ok
    return started


def run(session: Session, text: str) -> Result:
    return session.attempt(Source("p.jst", DECLARED + text))


def failing(fault: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise fault

    return fail


@pytest.mark.plants_faults
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize(("holder", "verb"), [(LocalDuckDb, "group"), (SecureNoise, "laplace")])
def test_a_fault_has_no_answer_and_closes_its_source(
    session: Session, monkeypatch: pytest.MonkeyPatch, holder: type, verb: str, fault: Exception
) -> None:
    before = Counter.faults
    with monkeypatch.context() as planted:
        planted.setattr(holder, verb, failing(fault))
        result = run(session, COUNT)
    assert not result.ok and dict(result.released) == {}
    assert [d.message for d in result.diagnostics] == [MESSAGE]  # the same for each: it depends on the program alone
    assert Counter.faults == before + 1
    assert session.budget()["people"]["epsilon"]["spent"] == "1"
    again = run(session, COUNT)
    assert [d.message for d in again.diagnostics] == [CLOSED]
    assert session.budget()["people"]["epsilon"]["spent"] == "1"  # refused before it is charged
    other = run(session, OTHER)  # its source is open; noise of scale 1 leaves 100 with a probability below 1e-43
    assert other.ok and abs(float(dict(other.released)["m"]) - 1000) < 100
    assert Counter.faults == before + 1


@pytest.mark.parametrize("outage", [MemoryError(), OSError(28, "x"), refuse("DataError", "the data cannot be read")])
def test_what_the_machine_causes_closes_a_source_after_a_few_times(
    session: Session, monkeypatch: pytest.MonkeyPatch, outage: Exception
) -> None:
    before = Counter.faults
    with monkeypatch.context() as planted:
        planted.setattr(LocalDuckDb, "group", failing(outage))
        for _ in range(MOST_OUTAGES - 1):
            assert not run(session, COUNT).ok
    answered = run(session, COUNT)  # a connection was made again
    assert answered.ok and abs(float(dict(answered.released)["n"]) - 4000) < 100
    with monkeypatch.context() as planted:
        planted.setattr(LocalDuckDb, "group", failing(outage))
        assert not run(session, COUNT.replace("n =", "o =")).ok
    assert [d.message for d in run(session, COUNT.replace("n =", "p =")).diagnostics] == [CLOSED]
    assert Counter.faults == before


@pytest.mark.plants_faults
def test_a_fault_of_an_answer_from_several_sources_closes_all(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = "release n = {{ select count(*) from people join others on age up to 1 with epsilon 1 }}\n"
    with monkeypatch.context() as planted:
        planted.setattr(LocalDuckDb, "group", failing(ValueError()))
        result = run(session, joined)
    assert [d.message for d in result.diagnostics] == [MESSAGE.replace("`people`", "`people` and `others`")]
    assert not run(session, COUNT).ok and not run(session, OTHER).ok


def test_ctrl_c_closes_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as planted, pytest.raises(KeyboardInterrupt):
        planted.setattr(LocalDuckDb, "group", failing(KeyboardInterrupt()))
        run(session, COUNT)
    assert run(session, COUNT).ok


def test_a_fault_in_what_is_made_of_released_numbers_is_an_ordinary_one(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells nothing of a row, so it closes nothing."""
    before = Counter.faults
    with monkeypatch.context() as planted:
        planted.setattr("jostle.run.answers.of_terms", failing(ValueError("a bug")))
        result = run(session, COUNT.replace("count(*)", "avg(age)"))
    assert not result.ok and MESSAGE not in [d.message for d in result.diagnostics]
    assert Counter.faults == before
    assert run(session, COUNT).ok


def test_a_fault_on_simulated_rows_is_raised_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Counter.faults
    (tmp_path / "people.csv").write_text("age\n40\n")
    declared = 'private people = table("people.csv") described by {age: 16..79} protecting rows budget epsilon 1\n'
    with monkeypatch.context() as planted:
        planted.setattr("jostle.simulate.SeededNoise.laplace", failing(ValueError("a bug")))
        result = Session(cwd=tmp_path, simulate=1).attempt(Source("p.jst", declared + COUNT))
    assert not result.ok and MESSAGE not in [d.message for d in result.diagnostics]
    assert Counter.faults == before


@pytest.mark.slow
def test_a_call_as_deep_as_calls_can_be_leaves_room_for_a_measurement(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How deep follows from an answer, which no look ahead has; at some depth the measurement itself was too deep."""
    monkeypatch.setattr("jostle.run.faults.DEEP", 12_000)
    body = "f(n - 1)"
    for _ in range(40):
        body = f"max(0, {body})"
    program = (
        "most = 1 if abs({{ select count(*) from people with epsilon 0.1 }} - 4000) < 100 else 0\n"
        "def f(n):\n    if n <= 0: return {{ select count(*) from people with epsilon 0.01 }}\n"
        f"    return {body}\nrelease x = f(most * CALLS)\n"
    )

    def attempt(calls: int, frames: int) -> Result:
        """With so many frames open before."""
        if frames:
            return attempt(calls, frames - 1)
        return session.attempt(Source("p.jst", DECLARED + program.replace("CALLS", str(calls))))

    deepest = next(calls for calls in range(80, 0, -1) if attempt(calls, 0).ok)
    results = [attempt(deepest, frames) for frames in range(0, 240, 2)]
    assert {one.diagnostics[0].kind if one.diagnostics else "" for one in results} == {"", "RecursionLimit"}
