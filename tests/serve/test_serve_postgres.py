"""A server whose data, ledger or accounts are in PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from serve_place import PASSWORD, Place, count, shares

from jostle.accounting.amounts import QUANTA
from jostle.diagnostics import Refusal
from jostle.privacy.ledger.ledger import Ledger
from jostle.serve import command, worker
from jostle.serve import runs as running
from jostle.serve.runs import Runs
from jostle.serve.store import Home, verify
from jostle.tools.data import verify as verify_history

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


# The store of a server in the database of its ledger -------------------------------------------------------


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: tuple[str, Sql]) -> Iterator[Place]:
    """The server of the other tests, whose accounts, runs and log are in PostgreSQL."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    place = Place(tmp_path / "home", database[0])
    yield place
    place.home.close()
    Ledger(place.home.ledger).store.close()


def test_everything_of_a_server_stands_in_its_database(team: Place, database: tuple[str, Sql]) -> None:
    assert not list(team.home.folder.rglob("*.db"))
    answer = team.run("ana", count(0.5))["answer"]
    assert answer["ok"] and shares(team.home)["people@ana"] == QUANTA // 2
    client, header = team.browser("ana")
    assert client.get("/api/me").json()["name"] == "ana" and header["X-CSRF"]
    (run,) = client.get("/api/runs").json()["runs"]
    assert run["ok"] and client.post(f"/api/runs/{run['id']}", json={"shared": True}, headers=header).status_code == 200
    assert team.get("ben", f"/api/runs/{run['id']}").json()["answer"]["ok"]
    number = team.post("ben", "/api/tokens", label="a").json()["number"]
    assert [one["number"] for one in team.get("ben", "/api/tokens").json()["tokens"]][-1] == number
    assert team.client().delete(f"/api/tokens/{number}", headers=team.headers("ben")).status_code == 200
    assert team.post("ben", "/api/runs", program=count(0.25)).json()["state"] == "waiting"
    (waits,) = team.get("rita", "/api/reviews").json()["runs"]
    assert team.post("rita", f"/api/reviews/{waits['id']}", decision="approved").json()["state"] == "running"
    assert team.get("ben", f"/api/runs/{waits['id']}?wait=1").json()["answer"]["ok"]
    assert 'jostle_runs{state="done"} 2' in team.get("aldo", "/api/metrics").text
    log = team.get("aldo", "/api/audit").json()
    assert log["verified"] == len(log["audit"]) and verify(log["audit"])[1] == log["head"]
    for path in ("/api/runs/%00", "/api/ledger/%00"):
        assert team.get("aldo", path).status_code in (400, 404)
    _, sql = database
    for change in ("UPDATE jostle_store.audit SET content = '{}'", "DELETE FROM jostle_store.audit"):
        with pytest.raises(psycopg.Error, match="append-only"):
            sql(change)
    secrets = [PASSWORD, *team.tokens.values()]
    kept = "".join(str(sql(f"SELECT * FROM jostle_store.{table}")) for table in ("accounts", "secrets", "audit"))
    assert "ana" in kept and not [one for one in secrets if one in kept]


def test_servers_over_one_database_know_what_the_others_know(team: Place) -> None:
    other = Home(team.home.folder, team.home.ledger)
    try:
        runs = Runs(other, team.check, team.start, worker.draw, seconds=(600.0,), places=4)
        assert team.post("ana", "/api/runs", program=count(0.1), seconds=600.0).status_code == 200
        ana = other.who(team.tokens["ana"], "token")
        assert ana is not None
        with pytest.raises(Refusal, match="one at a time"):
            runs.submit(ana, count(0.2), {}, 600.0)
        assert runs.datasets(ana)[1].state.spent == (0,)  # what the run has charged is not seen before its moment
        before = len(other.audit())

        def write(home: Home, k: int) -> None:
            for _ in range(10):
                home.note("system", f"did {k}")

        threads = [threading.Thread(target=write, args=(home, k)) for k, home in enumerate((team.home, other) * 2)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert verify(team.home.audit())[0] == before + 40
        assert abs(team.home.clock_ahead()) < command.CLOCKS_APART
        assert command._need_agreement(team.home) == 1  # its answer, which has not left
    finally:
        other.close()


def test_servers_over_one_database_have_one_folder(team: Place, tmp_path: Path) -> None:
    """Else one would not find the answer of the other's run, and say that it was stopped."""
    with pytest.raises(Refusal, match="another folder"):
        Home(tmp_path / "other", team.home.ledger)
    Home(team.home.folder, team.home.ledger).close()


def test_a_home_of_files_moves_into_the_database(place: Place, database: tuple[str, Sql]) -> None:
    log, accounts = place.home.audit(), place.home.accounts()
    place.home.close()
    moved = Home(place.home.folder, database[0])
    try:
        assert (moved.audit(), moved.accounts()) == (log, accounts)
        assert moved.who(place.tokens["ana"], "token") is not None
        moved.add_account("eve", "analyst", "olga")
        again = Home(place.home.folder, database[0])  # once, and not over what came later
        assert again.is_open("eve") and verify(again.audit())[0] == len(log) + 1
        again.close()
    finally:
        moved.close()


def test_a_clock_that_is_not_the_databases_is_refused(team: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Home, "clock_ahead", lambda _: 1.5)
    with pytest.raises(Refusal, match=r"1\.5 s apart"):
        command._need_clock(team.home)


def test_a_database_that_is_away_is_one_sentence(team: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    team.home.close()
    monkeypatch.setattr(team.home._store, "_url", "postgresql://nobody@127.0.0.1:9/none")
    answer = team.get("ana", "/api/me")
    assert answer.status_code == 503 and "the store of the server cannot be reached" in answer.text
    assert "127.0.0.1" not in answer.text


@pytest.mark.parametrize("schemas", [["jostle_ledger"], ["jostle_store"], ["jostle_ledger", "jostle_store"]])
def test_an_older_dump_that_is_restored_is_noticed(
    team: Place, dumps: Callable[[str], Callable[[], None]], schemas: list[str]
) -> None:
    """By the server that goes on, and, from the answers in its folder, by one that begins where the ledger forgets."""
    assert team.run("ana", count(0.25))["answer"]["ok"]
    older = [dumps(schema) for schema in schemas]
    assert team.run("ana", count(0.5))["answer"]["ok"]
    last = [dumps(schema) for schema in schemas]
    for restore in older:
        restore()
    said = team.post("ana", "/api/runs", program=count(0.125))
    assert said.status_code == 400 and "is older than it was" in said.json()["error"]["message"], said.text
    if "jostle_ledger" in schemas:
        with pytest.raises(Refusal, match="the ledger lacks charges on `people"):
            command._need_agreement(team.home)
    for restore in last:
        restore()
    assert team.run("ana", count(0.125))["answer"]["ok"] and shares(team.home)["people@ana"] == 7 * QUANTA // 8
    assert command._need_agreement(team.home) == 3


def test_a_connection_that_ended_is_made_anew(team: Place, database: tuple[str, Sql]) -> None:
    """As after a restart of the database: the next request is answered."""
    assert team.get("ana", "/api/me").status_code == 200
    database[1]("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid()")  # fmt: skip
    assert team.get("ana", "/api/me").json()["name"] == "ana" and team.run("ana", count(0.5))["answer"]["ok"]


class Servers:
    """Two processes of `jostle serve` over one database and one folder."""

    def __init__(self, team: Place) -> None:
        self.team, self.ports, self.processes = team, list[int](), list[subprocess.Popen[bytes]]()
        for _ in range(2):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.ports.append(int(free.getsockname()[1]))
            words = [
                "serve",
                "--home",
                str(team.home.folder),
                "--ledger",
                team.home.ledger,
                "--port",
                str(self.ports[-1]),
            ]
            self.processes.append(subprocess.Popen([sys.executable, "-m", "jostle", *words], stdout=subprocess.DEVNULL))

    def ask(self, server: int, method: str, path: str, **body: object) -> tuple[int, Any]:
        data = json.dumps(body).encode() if method == "POST" else None
        headers = {**self.team.headers("ana"), "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[server]}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as fault:
            return fault.code, json.load(fault)

    def wait(self, server: int) -> None:
        for _ in range(1200):
            try:
                if self.ask(server, "GET", "/api/health")[0] == 200:
                    return
            except OSError:
                time.sleep(0.1)
        pytest.fail("the server does not answer")


@pytest.mark.slow
def test_where_one_of_two_servers_is_killed_the_other_goes_on(team: Place) -> None:
    servers = Servers(team)
    try:
        for k in range(2):
            servers.wait(k)
        status, run = servers.ask(0, "POST", "/api/runs", program=count(0.5), seconds=60.0)
        assert status == 200, run
        answer = team.home.folder / "runs" / run["id"] / worker.ANSWER
        status, refused = servers.ask(1, "POST", "/api/runs", program=count(0.25), seconds=5.0)
        assert status == 429 and "one at a time" in refused["error"]["message"]
        for _ in range(2000):  # its process has begun, and goes on without its server
            if answer.parent.joinpath(worker.TRACE).exists():
                break
            time.sleep(0.02)
        os.kill(servers.processes[0].pid, signal.SIGKILL)
        servers.processes[0].wait()
        assert servers.ask(1, "GET", f"/api/runs/{run['id']}")[1]["state"] == "running"
        status, over = servers.ask(1, "GET", f"/api/runs/{run['id']}?wait=1")
        assert status == 200 and over["state"] == "done" and over["answer"]["ok"], over
        assert time.time() >= run["answer_at"]
        assert shares(team.home)["people@ana"] == QUANTA // 2
        status, more = servers.ask(1, "POST", "/api/runs", program=count(0.25), seconds=20.0)
        assert status == 200 and servers.ask(1, "GET", f"/api/runs/{more['id']}?wait=1")[1]["state"] == "done"
        assert verify(team.home.audit())[0] and command._need_agreement(team.home) >= 1
        assert verify_history(Ledger(team.home.ledger), "people@ana").entries >= 2
    finally:
        for process in servers.processes:
            process.kill()
            process.wait()
