"""A registered table of a server, and a client or server that dies at each step: what was spent never falls, and no
answer comes without its charge."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from ledger_place import kind
from test_ledger_servers import COUNT, Airport, airport

from jostle.accounting.amounts import QUANTA
from jostle.backends.postgres.connection import Connection
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.ledger.store import Rows
from jostle.tools.data import verify
from jostle.tools.session import Session

psycopg = pytest.importorskip("psycopg", reason="no driver: pip install 'psycopg[binary]'")
__all__ = ["airport"]

Owner = type[Any]
BEFORE, AFTER = "before", "after"
STEPS: list[tuple[Owner, str, str, float, float]] = [  # where it dies, what is spent then, and after it is run again
    (Ledger, "charge", BEFORE, 0, 0.5),
    (Rows, "move", AFTER, 0, 0.5),  # within the transaction
    (Ledger, "charge", AFTER, 0.5, 1),
    (Connection, "read", BEFORE, 0.5, 1),
    (Connection, "read", AFTER, 0.5, 1),
    (Ledger, "remember", BEFORE, 0.5, 1),
    (Ledger, "remember", AFTER, 0.5, 0.5),
    (Session, "_rest", BEFORE, 0.5, 0.5),  # before it is shown
]


def dies(owner: Owner, name: str, when: str, die: Callable[[], None]) -> Callable[[], None]:
    """A method at which `die` is called; gives what puts it back."""
    method = getattr(owner, name)

    def dying(*args: Any, **kwargs: Any) -> Any:
        if when == BEFORE:
            die()
        value = method(*args, **kwargs)
        if when == AFTER:
            die()
        return value

    setattr(owner, name, dying)
    return lambda: setattr(owner, name, method)


def spent(airport: Airport) -> float:
    held = verify(Ledger(airport.place.ledger), "flights")
    return float(held.spent[0] / QUANTA)


@pytest.mark.slow(but=["file-charge-after"])
@pytest.mark.parametrize("step", STEPS, ids=[f"{name}-{when}" for _, name, when, *_ in STEPS])
@pytest.mark.parametrize("kept", ["file", "database"])
def test_a_client_that_is_killed(airport: Airport, kept: str, step: tuple[Owner, str, str, float, float]) -> None:
    owner, name, when, killed, again = step
    airport.place.ledger = airport.url if kept == "database" else airport.place.ledger
    assert airport.register() == ""
    pid = os.fork()
    if pid == 0:
        gc.disable()  # what the libraries of its parent hold is not the child's to free
        with suppress(BaseException):
            dies(owner, name, when, lambda: os.kill(os.getpid(), signal.SIGKILL))
            airport.run(COUNT % 50)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert spent(airport) == killed
    result = airport.run(COUNT % 50)
    assert result.ok and abs(result.values["n"] - 150) < 60 and spent(airport) == again


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_connection_that_dies_beside_the_question(airport: Airport, when: str) -> None:
    """After the charge: there is no answer, and what was charged stays."""
    assert airport.register() == ""

    def die() -> None:
        airport.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND pid <> pg_backend_pid() AND application_name <> 'jostle ledger'")  # fmt: skip

    restored = dies(Connection, "_mark", when, die)
    try:
        result = airport.run(COUNT % 50)
    finally:
        restored()
    assert not result.ok and not result.values and spent(airport) == 0.5
    assert airport.run(COUNT % 50).ok and spent(airport) == 1


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS, ids=[f"{name}-{when}" for _, name, when, *_ in STEPS])
@pytest.mark.parametrize("kept", ["file", "database"])
def test_a_server_that_is_killed(airport: Airport, kept: str, step: tuple[Owner, str, str, float, float]) -> None:
    """What was spent before is spent when the server is there again, and what was shown was charged."""
    if "JOSTLE_POSTGRES" in os.environ:
        pytest.skip("that server is not killed")
    owner, name, when, killed, _ = step
    airport.place.ledger = airport.url if kept == "database" else airport.place.ledger
    assert airport.register() == ""

    deaths = iter([True])

    def die() -> None:
        if not next(deaths, False):  # it is killed once
            return
        with psycopg.connect(airport.url) as connection, psycopg.connect(airport.url, autocommit=True) as other:
            os.kill(connection.info.backend_pid, signal.SIGKILL)  # it ends all its processes then, and starts again
            with suppress(psycopg.Error):
                other.execute("SELECT pg_sleep(60)")  # until this one is ended too
            time.sleep(0.2)

    restored = dies(owner, name, when, die)
    try:
        result = airport.run(COUNT % 50)
    finally:
        restored()
    for _ in range(600):
        with suppress(psycopg.Error), psycopg.connect(airport.url):
            break
        time.sleep(0.1)
    held = spent(airport)
    assert held >= killed and held in (0, 0.5) and result.ok == bool(result.values)
    assert held == 0.5 if result.ok else "server" in str(result.diagnostics) or "ledger" in str(result.diagnostics)
    assert airport.run(COUNT % 50).ok and held <= spent(airport) <= held + 0.5 and spent(airport) > 0


@pytest.mark.slow
def test_sessions_of_two_machines_at_once(airport: Airport) -> None:
    """Two processes of three sessions each, with nothing in common but the server and the ledger on it: of eighteen
    halves for which six are there, six are paid."""
    airport.place.ledger = airport.url
    assert airport.register() == ""

    def machine(first: int, write: int) -> None:
        shown: list[str] = []

        def ask(start: int) -> None:
            with airport.place.session(engine=airport.url) as session:
                for most in range(start, start + 3):
                    shown.append(kind(airport.place.run(COUNT % most, session)))

        threads = [threading.Thread(target=ask, args=(first + 3 * i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.write(write, (" ".join(shown) + " ").encode())

    read, write = os.pipe()
    children = []
    for first in (10, 60):
        children.append(os.fork())
        if children[-1] == 0:
            gc.disable()  # what the libraries of its parent hold is not the child's to free
            with suppress(BaseException):
                machine(first, write)
            os._exit(0)
    os.close(write)
    for child in children:
        os.waitpid(child, 0)
    with os.fdopen(read) as file:
        assert Counter(file.read().split()) == {"fine": 6, "BudgetExceeded": 12}
    assert spent(airport) == 3


@pytest.mark.slow
def test_a_dump_that_is_restored(airport: Airport, dumps: Callable[[str], Callable[[], None]]) -> None:
    """A restored table is another one until its owner says that it is meant; who has spent notices an older ledger, and
    so do later sessions of that user."""
    airport.place.ledger = airport.url
    assert airport.register() == ""
    table = dumps("ny")
    with airport.place.session(engine=airport.url) as session:
        first = airport.place.run(COUNT % 50, session)
        older = dumps("jostle_ledger")
        assert first.ok and airport.place.run(COUNT % 51, session).ok and spent(airport) == 1
        last = dumps("jostle_ledger")
        older()
        said = airport.place.run(COUNT % 52, session)
        assert "lacks a charge" in str(said.diagnostics) and not said.values
        assert "lacks a charge" in airport.said(COUNT % 53) and spent(airport) == 0.5
    last()
    table()
    assert "the name `ny.flights` is that of another table" in airport.said(COUNT % 50) and spent(airport) == 1
    assert airport.data("update", "flights")[0] == 0
    again = airport.run(COUNT % 50)
    assert again.ok and again.values == first.values and spent(airport) == 1  # the same rows: answered as before
    assert airport.run(COUNT % 52).ok and spent(airport) == 1.5


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["file", "database"])
def test_two_sessions_at_once(airport: Airport, kept: str) -> None:
    """Of ten halves for which six are there, six are paid, and as many answers shown."""
    airport.place.ledger = airport.url if kept == "database" else airport.place.ledger
    assert airport.register() == ""
    shown: list[str] = []

    def ask(first: int) -> None:
        with airport.place.session(engine=airport.url) as session:
            for most in range(first, first + 5):
                shown.append(kind(airport.place.run(COUNT % most, session)))

    threads = [threading.Thread(target=ask, args=(first,)) for first in (10, 60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(shown) == ["BudgetExceeded"] * 4 + ["fine"] * 6 and spent(airport) == 3
