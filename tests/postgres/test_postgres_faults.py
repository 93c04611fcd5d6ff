"""Connections that break, servers that restart and run out of room: one diagnostic, and what was charged stays."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jostle.diagnostics import Refusal
from jostle.tools.session import Session

SECRET = "hunter2-is-the-password"
DECLARED = """
private rows = postgres("public.rows") described by {x: 0..9, who: text} protecting rows budget epsilon 10
"""
COUNT = "release a = {{ select count(*) from rows with epsilon 1 }}\n"
SAID = "the data cannot be read: the connection broke, or the server gave the query up"


@pytest.fixture
def session(execute: Any, url: str, session_at: Any) -> Session:
    execute("""DROP TABLE IF EXISTS rows CASCADE; CREATE TABLE rows AS SELECT i % 10 AS x, 'secret' || i AS who
        FROM generate_series(1, 20000) i""")
    started: Session = session_at(url)
    return started


def spent(session: Session) -> str:
    return session.budget()["rows"]["epsilon"]["spent"]


def entry(session: Session, text: str) -> Any:
    from jostle.source import Source

    return session.execute(Source("text", text))


def test_a_connection_that_is_ended_is_one_diagnostic_and_the_charge_stays(session: Session, execute: Any) -> None:
    entry(session, DECLARED + COUNT)
    execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "
            "backend_type = 'client backend'")  # fmt: skip
    with pytest.raises(Refusal) as refusal:
        entry(session, "release b = {{ select count(*) from rows where x > 3 with epsilon 1 }}\n")
    assert [fault.message for fault in refusal.value.diagnostics] == [SAID]
    assert spent(session) == "1"  # before the charge
    assert "b" not in session.released()
    with pytest.raises(Refusal, match="broke after data were read"):  # a row may be in another part by now
        entry(session, "release c = {{ select count(*) from rows where x > 4 with epsilon 1 }}\n")
    assert "c" not in session.released()


def refused_in_a_query(session: Session, url: str, end: Callable[[Any, int], object]) -> None:
    """A count that waits for a lock when `end`, given a connection and the process that waits, ends it."""
    entry(session, DECLARED)
    locked = threading.Event()

    def watch() -> None:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url) as holder:
            holder.execute("LOCK TABLE rows IN ACCESS EXCLUSIVE MODE")
            locked.set()
            with psycopg.connect(url, autocommit=True) as other:
                for _ in range(1000):
                    waiting = other.execute("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
                    if pid := waiting.fetchone():
                        end(other, pid[0])
                        return
                    time.sleep(0.01)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    locked.wait(10)
    with pytest.raises(Refusal) as refusal:
        entry(session, COUNT)
    thread.join(10)
    assert [fault.message for fault in refusal.value.diagnostics] == [SAID]
    assert spent(session) == "1"
    assert "a" not in session.released()


def test_a_connection_that_is_ended_in_the_middle_of_a_query(session: Session, url: str) -> None:
    refused_in_a_query(session, url, lambda other, pid: other.execute("SELECT pg_terminate_backend(%s)", [pid]))
    entry(session, COUNT.replace("a =", "c ="))  # nothing was read before: there is one state still
    assert abs(session.released()["c"] - 20_000) < 100  # noise of scale 1: beyond with a probability below 1e-43


def test_a_process_of_the_server_that_dies_in_the_middle_of_a_query(session: Session, server: Any, url: str) -> None:
    """The server ends all its other processes then, and starts again by itself."""
    refused_in_a_query(session, url, lambda _, pid: os.kill(pid, signal.SIGKILL))
    for _ in range(600):  # until the server is there again
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url):
            break
        time.sleep(0.1)
    entry(session, COUNT.replace("a =", "c ="))
    assert abs(session.released()["c"] - 20_000) < 100


def test_a_table_that_takes_the_name_of_another_is_not_read(session: Session, execute: Any) -> None:
    entry(session, DECLARED)
    execute("ALTER TABLE rows RENAME TO former; CREATE TABLE rows AS SELECT 1 AS x, 'other' AS who")
    with pytest.raises(Refusal, match="a table of the PostgreSQL database was altered since it was opened"):
        entry(session, COUNT)
    assert spent(session) == "0"
    assert "a" not in session.released()
    execute("DROP TABLE former")


def test_a_table_that_takes_the_name_of_another_within_a_program_is_not_read(
    session: Session, execute: Any, url: str, tmp_path: Path
) -> None:
    def hear(event: Any) -> None:
        if event.kind == "source":
            execute("ALTER TABLE rows RENAME TO former; CREATE TABLE rows AS SELECT 1 AS x, 'other' AS who")

    with Session(engine=url, cwd=tmp_path, ledger=tmp_path / "ledger", listeners=[hear]) as other:
        with pytest.raises(Refusal, match="a table of the PostgreSQL database has another's name by now"):
            entry(other, DECLARED + COUNT)
        assert spent(other) == "1" and "a" not in other.released()
    execute("DROP TABLE former")


def test_who_waits_at_a_prompt_keeps_nobody_from_altering_a_table(session: Session, execute: Any) -> None:
    """And goes on with the state that it began with."""
    entry(session, DECLARED + COUNT)
    execute("SET lock_timeout = '2s'")
    execute("ALTER TABLE rows ADD extra int DEFAULT 3; CREATE INDEX ON rows (x); ALTER TABLE rows ALTER x SET NOT NULL")
    execute("INSERT INTO rows SELECT 7, 'later' FROM generate_series(1, 5000)")
    entry(session, COUNT.replace("a =", "b =").replace("rows with", "rows where x >= 0 with"))
    assert abs(session.released()["b"] - 20_000) < 100 and spent(session) == "2"


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE rows RENAME x TO z; ALTER TABLE rows RENAME who TO x", "ALTER TABLE rows DROP COLUMN who",
        "ALTER TABLE rows ALTER x TYPE bigint", "TRUNCATE rows", "DROP TABLE rows",
    ],
)  # fmt: skip
def test_what_was_altered_at_a_prompt_is_refused_before_a_charge(session: Session, execute: Any, change: str) -> None:
    entry(session, DECLARED + COUNT)
    execute("SET lock_timeout = '2s'")
    execute(change)
    with pytest.raises(Refusal, match="was altered since it was opened"):
        entry(session, COUNT.replace("a =", "b ="))
    assert spent(session) == "1" and "b" not in session.released()


def test_a_part_that_a_table_gets_while_a_session_reads_it_is_refused(session: Session, execute: Any) -> None:
    """Its rows may have a budget of their own in this session. A reader's lock lets others attach it."""
    execute("""DROP TABLE IF EXISTS rows, high; CREATE TABLE rows (x int, who text) PARTITION BY RANGE (x);
        CREATE TABLE low PARTITION OF rows FOR VALUES FROM (0) TO (5);
        CREATE TABLE high AS SELECT 7 AS x, 'b' AS who""")
    entry(session, DECLARED + DECLARED.replace("private rows", "private high").replace("public.rows", "high") + COUNT)
    execute("ALTER TABLE rows ATTACH PARTITION high FOR VALUES FROM (5) TO (10)")
    with pytest.raises(Refusal, match="a table of the PostgreSQL database has other parts by now"):
        entry(session, "release b = {{ select count(*) from rows where x > 3 with epsilon 1 }}\n")
    assert spent(session) == "2"
    assert "b" not in session.released()


def test_rows_of_a_table_that_comes_to_inherit_from_another_are_not_read(session: Session, execute: Any) -> None:
    entry(session, DECLARED + COUNT)
    execute("CREATE TABLE heir () INHERITS (rows); INSERT INTO heir SELECT 1, 'c' FROM generate_series(1, 9999)")
    entry(session, "release b = {{ select count(*) from rows where x >= 0 with epsilon 1 }}\n")
    assert abs(session.released()["b"] - 20_000) < 100


def test_an_heir_that_a_table_with_heirs_gets_while_a_session_reads_it_is_refused(
    session: Session, execute: Any
) -> None:
    """Its rows stood in a table of their own, which this session may have read and paid for."""
    execute("DROP TABLE IF EXISTS first, second; CREATE TABLE first () INHERITS (rows);"
            "CREATE TABLE second AS SELECT 1 AS x, 'c' AS who FROM generate_series(1, 9999)")  # fmt: skip
    entry(session, DECLARED + COUNT)
    entry(session, "release b = {{ select count(*) from rows where x >= 0 with epsilon 1 }}\n")
    assert abs(session.released()["b"] - 20_000) < 100
    execute("ALTER TABLE second INHERIT rows")
    with pytest.raises(Refusal, match="a table of the PostgreSQL database has other parts by now"):
        entry(session, "release c = {{ select count(*) from rows where x > 3 with epsilon 1 }}\n")
    assert spent(session) == "3"
    assert "c" not in session.released()


def test_a_server_that_restarts_between_two_reads(session: Session, server: Any) -> None:
    """Its tables are the same and its connections are gone: what was read before is of a state that is gone too."""
    entry(session, DECLARED + COUNT)
    server.stop()
    server.start()
    with pytest.raises(Refusal) as refusal:
        entry(session, "release b = {{ select count(*) from rows where x > 3 with epsilon 1 }}\n")
    assert [fault.message for fault in refusal.value.diagnostics] == [SAID]
    assert spent(session) == "1"  # before the charge
    assert "b" not in session.released()
    with pytest.raises(Refusal, match="broke after data were read"):
        entry(session, "release c = {{ select count(*) from rows where x > 4 with epsilon 1 }}\n")


def test_a_full_disk_is_told_without_a_word_of_the_servers(execute: Any, url: str, session_at: Any) -> None:
    execute("DROP TABLE IF EXISTS rows CASCADE; CREATE TABLE rows AS SELECT i % 10 AS x, 'secret' || i AS who "
            "FROM generate_series(1, 20000) i")  # fmt: skip
    settings = ("temp_file_limit%3D64kB", "work_mem%3D64kB", "max_parallel_workers_per_gather%3D0")
    session = session_at(f"{url}&options={'%20'.join(f'-c%20{setting}' for setting in settings)}")
    entry(session, DECLARED)
    with pytest.raises(Refusal) as refusal:
        entry(session, "release b = {{ select count(distinct who) from rows with epsilon 1 }}\n")
    assert [fault.message for fault in refusal.value.diagnostics] == [SAID]
    assert spent(session) == "1"
    entry(session, COUNT)
    assert abs(session.released()["a"] - 20_000) < 100


def test_what_is_counted_twice_is_of_one_state(session: Session, execute: Any) -> None:
    entry(session, DECLARED + COUNT)
    execute("INSERT INTO rows SELECT 3, 'late' FROM generate_series(1, 10000)")
    entry(session, "release b = {{ select count(*) from rows where x >= 0 with epsilon 1 }}\n")
    assert abs(session.released()["b"] - 20_000) < 100


@pytest.mark.parametrize("place", ["postgresql://reader:{}@127.0.0.1:1/db", "postgresql://reader:{}@[::zz/db"])
def test_no_password_stands_in_a_message_or_a_trace(place: str, session_at: Any) -> None:
    session = session_at(place.format(SECRET))
    with pytest.raises(Refusal) as refusal:
        session.run_text(DECLARED + COUNT)
    assert "cannot be reached" in refusal.value.diagnostics[0].message
    assert SECRET not in repr((refusal.value, refusal.value.diagnostics, session.events))
    assert refusal.value.__cause__ is None


def test_a_password_stands_in_no_trace_of_a_run_that_worked(
    session: Session, url: str, session_at: Any, tmp_path: Path
) -> None:
    session = session_at(url.replace("postgres:@", f"postgres:{SECRET}@"))
    result = session.run_text(DECLARED + COUNT)
    assert SECRET not in repr((result, result.events, session.events, result.budget))
    assert not any(SECRET in file.read_text() for file in tmp_path.rglob("*") if file.is_file())
