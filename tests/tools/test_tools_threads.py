"""One session in several threads: its programs take turns, and every charge has its answer."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import jostle
from jostle.events import Event
from jostle.run.faults import DEEP, deep
from jostle.source import Source
from jostle.tools import turns
from jostle.tools.result import Result

SCHEMA = '{age: 0..99, sex: {"F", "M"}}'
DECLARED = f'private people = bound("people") described by {SCHEMA} protecting rows budget epsilon 1000000\n'
QUESTIONS = (
    "release n = {{ select count(*) from people where age > 30 with epsilon 1 }}\n",
    "release n = {{ select avg(age) from people where age > 40 with epsilon 1 }}\n",
    "release n = {{ select count(*) as n from people groupby sex with epsilon 1 }}\n",
    "release n = {{ select median(age) from people with epsilon 1 }}\n",
)


def session_on(frame: pd.DataFrame, **more: Any) -> jostle.Session:
    session = jostle.Session(**more)
    session.bind("people", frame)
    return session


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"age": np.arange(4000) % 90, "sex": ["F", "M"] * 2000})


def program(question: int, name: str = "p") -> Source:
    return Source(name, DECLARED + QUESTIONS[question % len(QUESTIONS)])


def spent(session: jostle.Session) -> Decimal:
    return Decimal(session.budget()["people"]["epsilon"]["spent"])


def asked_together(session: jostle.Session, threads: int, each: int) -> list[Result]:
    barrier = threading.Barrier(threads)

    def work(number: int) -> list[Result]:
        barrier.wait()
        return [session.attempt(program(number + i, f"p{number}.{i}")) for i in range(each)]

    with ThreadPoolExecutor(threads) as pool:
        return [result for results in pool.map(work, range(threads)) for result in results]


@pytest.mark.parametrize(("threads", "each"), [(5, 8), pytest.param(5, 1000, marks=pytest.mark.slow)])
def test_every_charge_of_five_threads_has_its_answer(frame: pd.DataFrame, threads: int, each: int) -> None:
    session = session_on(frame)
    results = asked_together(session, threads, each)
    assert len(results) == threads * each and all(result.ok and "n" in result.released for result in results)
    assert spent(session) == len(results)
    for result in results:  # of this program and of no other
        kinds = [event.kind for event in result.events]
        assert kinds.count("run") == kinds.count("release") == 1 and kinds.count("measure") >= 1


def test_threads_make_the_first_use_of_a_session_together(frame: pd.DataFrame) -> None:
    session = jostle.Session()
    barrier = threading.Barrier(4)

    def work(number: int) -> bool:
        barrier.wait()
        session.bind("people", frame)
        session.budget(), session.names()
        return session.check(program(number)) == [] and session.attempt(program(number)).ok

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
    assert spent(session) == 4


def test_asyncio(frame: pd.DataFrame) -> None:
    async def work(session: jostle.Session) -> list[Result]:
        waiting = [asyncio.to_thread(session.run_text, program(i).text) for i in range(6)]
        tasks = [asyncio.ensure_future(one) for one in waiting]
        await asyncio.sleep(0)
        here = session.run_text(program(0).text)  # inside the loop, while threads have their turns
        return [here, *await asyncio.gather(*tasks)]

    with session_on(frame) as session:
        results = asyncio.run(asyncio.wait_for(work(session), 120))
        assert all("n" in result.released for result in results) and spent(session) == 7


def test_two_sessions_on_one_registered_dataset(tmp_path: Path, frame: pd.DataFrame) -> None:
    """The ledger counts what both spend, and each answer that is charged is given."""
    from jostle.tools.entry import main

    frame.to_csv(tmp_path / "people.csv", index=False)
    ledger = str(tmp_path / "ledger.db")
    words = ["data", "register", "people", str(tmp_path / "people.csv"), "--ledger", ledger]
    words += ["--schema", SCHEMA, "--protecting", "rows", "--budget", "epsilon 100"]
    assert main(words) == 0
    barrier = threading.Barrier(4)
    sessions = [jostle.Session(ledger=ledger) for _ in range(2)]
    text = 'private people = dataset("people")\n'
    text += "release n = {{ select count(*) from people where age > %d with epsilon 1 }}\n"

    def work(number: int) -> list[Result]:
        barrier.wait()
        return [sessions[number % 2].attempt(Source("p", text % (10 * number + i))) for i in range(5)]

    with ThreadPoolExecutor(4) as pool:
        results = [result for results in pool.map(work, range(4)) for result in results]
    assert all(result.ok for result in results), [r.diagnostics for r in results if not r.ok][:1]
    with jostle.Session(ledger=ledger) as session:
        session.run_text('private people = dataset("people")\n')
        assert spent(session) == 20


# Waiting ---------------------------------------------------------------------------------------------


class Halt:
    """A listener that holds a program at its first measurement."""

    def __init__(self) -> None:
        self.reached, self.go_on, self.events = threading.Event(), threading.Event(), []  # type: ignore[var-annotated]

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if event.kind == "measure" and not self.reached.is_set():
            self.reached.set()
            assert self.go_on.wait(60)


def test_a_program_that_waits_says_so(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.02)
    halt = Halt()
    heard: list[Event] = []
    session = session_on(frame, listeners=[halt, turns.hearing(heard)])
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(session.attempt, program(0, "first"))
        assert halt.reached.wait(60)
        assert spent(session) == 1  # what was spent can be asked meanwhile
        second = pool.submit(session.attempt, program(1, "second"))
        end = time.monotonic() + 60
        while not any(event.kind == "wait" for event in halt.events):
            assert time.monotonic() < end and not second.done()
            time.sleep(0.01)
        assert spent(session) == 1  # a turn comes before a charge
        halt.go_on.set()
        assert first.result(60).ok and second.result(60).ok
    assert "waits until another program" in capsys.readouterr().err
    assert heard == [event for event in halt.events if event.kind != "wait"]
    assert not any(event.kind == "wait" for event in (*first.result().events, *second.result().events))


def test_nobody_says_that_they_wait_who_do_not(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.0)
    events: list[Event] = []
    session = session_on(frame, listeners=[events.append])
    assert session.attempt(program(0)).ok and session.attempt(program(1)).ok
    assert not any(event.kind == "wait" for event in events)


def test_a_program_does_not_run_inside_another_one(frame: pd.DataFrame) -> None:
    told: list[str] = []

    def listen(event: Event) -> None:
        if event.kind == "measure":
            for inside in (lambda: session.run(program(1)), lambda: session.execute(program(1)), session.close):
                with pytest.raises(jostle.Refusal) as refused:
                    inside()
                told.append(refused.value.first.message)
            assert session.budget()["people"] and session.check(program(1)) == []

    session = session_on(frame, listeners=[listen])
    assert "n" in session.run(program(0)).released and spent(session) == 1
    assert len(told) == 3 and all("a program of this session is running" in message for message in told)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, SystemExit, ValueError, OSError])
def test_a_turn_is_given_back_whatever_ends_a_program(frame: pd.DataFrame, fault: type[BaseException]) -> None:
    """What a listener raises is its owner's, and passes; the answer that was charged is kept."""
    raised: list[bool] = []

    def listen(event: Event) -> None:
        if event.kind == "release" and not raised:
            raised.append(True)
            raise fault

    session = session_on(frame, listeners=[listen])
    with pytest.raises(fault):
        session.attempt(program(0))
    assert "n" in session.so_far().released
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(session.attempt, program(1)).result(60).ok
    assert spent(session) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_another_thread_runs_a_program_does_not_hang(frame: pd.DataFrame) -> None:
    halt = Halt()
    session = session_on(frame, listeners=[halt])
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.attempt, program(0))
        assert halt.reached.wait(60)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, session.attempt(program(1)).diagnostics[0].message.encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            assert "forked while another thread ran a program" in answer.read()
        os.waitpid(child, 0)
        halt.go_on.set()
        assert running.result(60).ok
    assert session.attempt(program(1)).ok


# Closing ---------------------------------------------------------------------------------------------


def test_a_closed_session_runs_nothing_and_knows_what_it_spent(frame: pd.DataFrame) -> None:
    with session_on(frame) as session:
        result = session.run(program(0))
        engine: Any = session._interp.data._engine
        (connection,) = engine._connections
    assert spent(session) == 1 and "n" in result.released and "n" in session.so_far().released
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT 1")
    assert not Path(engine._spill).exists()
    session.close()
    (fault,) = session.attempt(program(0)).diagnostics
    assert fault.message == "this session is closed" and "jostle.Session()" in fault.help
    calls: list[Callable[[], object]] = [
        lambda: session.run(program(0)), lambda: session.bind("people", frame), lambda: session.execute(program(0)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(jostle.Refusal, match="closed"):
            call()


def test_an_engine_that_was_handed_over_stays_open(frame: pd.DataFrame) -> None:
    from jostle.readers.duckdb import LocalDuckDb

    engine = LocalDuckDb()
    with session_on(frame, engine=engine) as session:
        session.run(program(0))
    assert engine.fetch("SELECT 1") == [(1,)]
    engine.close()


def test_a_session_that_did_nothing_closes() -> None:
    with jostle.Session() as session:
        assert session.budget() == {}
    assert session.turns.closed


def test_closing_waits_for_a_program(frame: pd.DataFrame) -> None:
    halt = Halt()
    session = session_on(frame, listeners=[halt])
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(session.attempt, program(0))
        assert halt.reached.wait(60)
        closing = pool.submit(session.close)
        time.sleep(0.05)
        assert not closing.done()
        halt.go_on.set()
        assert running.result(60).ok and closing.result(60) is None


# What is one for all sessions --------------------------------------------------------------------------


def test_room_for_calls_lasts_until_the_last_thread_leaves() -> None:
    before = sys.getrecursionlimit()
    first, second = deep(), deep()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getrecursionlimit() >= DEEP
    second.__exit__(None, None, None)
    assert sys.getrecursionlimit() == before


def test_deep_programs_of_two_sessions_at_once() -> None:
    text = "def down(n):\n    return n if n < 1 else down(n - 1)\nrelease n = down(900)\n"
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: jostle.Session().attempt(Source("p", text)), range(8)))
    assert [result.diagnostics for result in results if not result.ok] == []


# Faults ------------------------------------------------------------------------------------------------

FAULTS = (
    duckdb.Error, duckdb.OutOfMemoryException, OSError, MemoryError, RecursionError, ZeroDivisionError, RuntimeError,
    AttributeError, OverflowError, AssertionError, UnicodeDecodeError,
)  # fmt: skip


@pytest.mark.parametrize("place", [
    "jostle.readers.duckdb.LocalDuckDb.open", "jostle.engine.sql.engine.SqlEngine.check", "jostle.run.selects._bound",
])  # fmt: skip
@pytest.mark.parametrize("kind", FAULTS)
def test_no_exception_leaves_a_run_as_it_is(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], place: str
) -> None:
    fault = UnicodeDecodeError("utf-8", b"secret", 0, 1, "secret") if kind is UnicodeDecodeError else kind("secret")

    def raising(*_: Any, **__: Any) -> None:
        raise fault

    session = session_on(frame)
    with monkeypatch.context() as patched:
        patched.setattr(place, raising)
        (diagnostic,) = session.attempt(program(0)).diagnostics
        with pytest.raises(jostle.Refusal) as refused:
            session.execute(program(0))
    assert "secret" not in diagnostic.message + diagnostic.help and refused.value.first.message == diagnostic.message
    words = {MemoryError: "not enough memory", RecursionError: "nested too deeply"}
    assert words.get(kind, f"internal error ({kind.__name__})") in diagnostic.message
    assert session.attempt(program(0)).ok  # the next one runs
