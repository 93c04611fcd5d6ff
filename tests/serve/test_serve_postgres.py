"""A server whose data, ledger or accounts are in PostgreSQL."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from serve_place import Place, shares

from jostle.accounting.amounts import QUANTA
from jostle.serve import runs as running
from jostle.serve import worker

psycopg = pytest.importorskip("psycopg", reason="no driver: pip install 'psycopg[binary]'")

FLIGHTS = """CREATE SCHEMA ny; CREATE TABLE ny.flights AS SELECT i % 100 AS delay, i / 3 AS id
FROM generate_series(1, 300) i;
CREATE TABLE bags AS SELECT i AS owner, i % 30 AS weight FROM generate_series(1, 90) i"""
COUNT = 'private f = dataset("flights")\nrelease n = {{ select count(*) from f up to 3 rows with epsilon %g }}\n'
BAGS = """private f = dataset("flights")
private b = dataset("bags")
release n = {{ select count(*) from b where weight > 3 up to 1 row with epsilon 0.5 }}
"""
Sql = Callable[[str], list[Any]]


@pytest.fixture
def database(postgres_server: str) -> Iterator[tuple[str, Sql]]:
    """The URL of a database of its own, and what asks it."""
    name = f"serve_{os.urandom(4).hex()}"
    head, _, query = postgres_server.partition("?")
    url = f"{head.rsplit('/', 1)[0]}/{name}{'?' if query else ''}{query}"

    def sql(statement: str, at: str = url) -> list[Any]:
        with psycopg.connect(at, autocommit=True) as connection:
            answer = connection.execute(statement)
            return answer.fetchall() if answer.description else []

    sql(f"CREATE DATABASE {name}", postgres_server)
    yield url, sql
    sql(f"DROP DATABASE {name} WITH (FORCE)", postgres_server)


@pytest.fixture
def airport(place: Place, database: tuple[str, Sql]) -> Place:
    """The server with an engine, whose flights, and the bags of the same persons, are registered and granted."""
    url, sql = database
    sql(FLIGHTS)
    place.server.runs.engine = url
    for body in (
        {"name": "flights", "file": 'postgres("ny.flights")', "schema": "{delay: 0..99}",
         "protecting": "id up to 3 rows", "budget": "epsilon 3"},
        {"name": "bags", "file": 'postgres("bags")', "schema": "{weight: 0..30}", "protecting": "flights.id on owner"},
    ):  # fmt: skip
        done = place.post("olga", "/api/datasets", **body)
        assert done.status_code == 200, done.text
    for body in ({"dataset": "flights", "amount": "epsilon 1"}, {"dataset": "bags"}):
        assert place.post("olga", "/api/grants", analyst="ana", **body).status_code == 200
    return place


def test_tables_of_a_server_are_granted_and_asked(airport: Place) -> None:
    checked = airport.post("ana", "/api/check", program=BAGS).json()
    assert checked["ok"], checked
    answer = airport.run("ana", COUNT % 0.5)["answer"]
    assert answer["ok"] and abs(answer["released"]["n"] - 300) < 6 * 30, answer  # 30 scales: missed with e^-30
    assert airport.run("ana", BAGS)["answer"]["ok"]
    spent = shares(airport.home)
    assert spent["flights"] == spent["flights@ana"] == QUANTA and spent["bags@ana"] == 0
    over = airport.run("ana", COUNT % 0.25)["answer"]
    assert over["error"]["kind"] == "BudgetExceeded" and shares(airport.home)["flights"] == QUANTA
    assert all(job.engine for job in airport.jobs) and len(airport.jobs) == 3
    seen = json.dumps(airport.home.audit()) + airport.get("ana", "/api/datasets").text
    assert "flights" in seen and airport.server.runs.engine not in seen


def test_a_program_over_files_is_handed_no_server(airport: Place) -> None:
    people = 'private t = dataset("people")\nrelease n = {{ select count(*) from t with epsilon 0.1 }}\n'
    assert airport.run("ana", people)["answer"]["ok"] and airport.jobs[-1].engine == "" and not airport.jobs[-1].login
    both = airport.run("ana", people + 'private f = dataset("flights")\n')["answer"]
    assert not both["ok"] and "works on a server" in both["error"]["message"]
    hidden = airport.run("ana", 'name = "flights"\nprivate f = dataset(name)\n')["answer"]
    assert not hidden["ok"] and airport.jobs[-1].engine == ""


@pytest.mark.parametrize("program", ['f = postgres("ny.flights")\n', 'private f = postgres("ny.flights") described by '
                                     "{delay: 0..9} protecting rows budget epsilon 1\n"])  # fmt: skip
def test_a_table_is_opened_as_a_dataset_alone(airport: Place, program: str) -> None:
    answer = airport.run("ana", program)["answer"]
    assert not answer["ok"] and not airport.jobs and "flights" not in answer["error"]["message"]


def test_what_somebody_without_a_grant_gets_is_the_same_for_every_name(airport: Place) -> None:
    airport.home.set_review("people@ben", "olga", needed=False)
    one, other = (airport.run("ben", f'private f = dataset("{name}")\n')["answer"] for name in ("flights", "nothing"))
    assert json.dumps(one).replace("flights", "nothing") == json.dumps(other) and not one["ok"]


@pytest.mark.slow
def test_a_confined_process_asks_the_server(airport: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `jostle serve` starts it: with a home of its own, no files, and what the driver needs."""
    monkeypatch.setenv("PGAPPNAME", "a run")
    launcher = running.Launcher(airport.home.folder)
    airport.server.runs.start = launcher
    airport.server.runs.seconds = (30.0,)
    try:
        handed = airport.post("ana", "/api/runs", program=COUNT % 0.5).json()
        answer = airport.home.folder / "runs" / handed["id"] / worker.ANSWER
        for _ in range(1400):
            if answer.exists():
                break
            time.sleep(0.02)
        document = json.loads(json.loads(answer.read_text())["document"])
        assert document["ok"], document
        assert shares(airport.home)["flights@ana"] == QUANTA // 2
    finally:
        launcher.close()
