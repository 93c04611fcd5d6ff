"""Runs through HTTP: what an analyst gets, when, and that nothing is charged or seen beside it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from serve_place import ROWS, change, count, shares

from jostle.accounting.amounts import QUANTA
from jostle.privacy.ledger.ledger import Ledger
from jostle.serve.runs import STOPPED, Runs
from jostle.serve.store import Home, verify
from jostle.serve.worker import draw
from jostle.tools.data import register
from jostle.tools.session import Session


def test_a_run_is_answered_as_the_command_line_answers(place: Any) -> None:
    answer = place.run("ana", count(0.5))["answer"]
    assert answer["ok"] and answer["budget"] == {"t": {"epsilon": {"total": "1", "spent": "0.5"}}}
    assert abs(answer["released"]["n"] - len(ROWS) + 1) < 60  # 30 scales: missed with e^-30
    assert answer["margins"]["n"]["error"] > 0
    assert shares(place.home) == {"people": QUANTA // 2, "people@ana": QUANTA // 2, "people@ben": 0}


def test_a_stream_goes_on_through_the_server(place: Any) -> None:
    """Steps that were released are given again in a later run, with more of them, for the one charge."""
    program = """private t = dataset("people")
g = {{{{ select count(*) as n from t groupby running(age, until = {}), sex with epsilon 0.5 }}}}
release n = g.n
"""
    shown: list[float] = []
    for until in (20, 24, 24):
        answer = place.run("ana", program.format(until))["answer"]
        assert answer["ok"], answer
        n = answer["released"]["n"]
        assert len(n) == 2 * (until - 16) and n[: len(shown)] == shown
        assert shares(place.home) == {"people": QUANTA // 2, "people@ana": QUANTA // 2, "people@ben": 0}
        shown = n


def test_the_price_stands_before_and_a_grant_that_is_used_up_refuses(place: Any) -> None:
    cost = place.post("ana", "/api/check", program=count(0.5)).json()
    assert cost["ok"] and cost["cost"][0]["asks"] == "0.5" and shares(place.home)["people"] == 0
    assert place.run("ana", count(1))["answer"]["ok"]
    last = place.run("ana", count(0.75))["answer"]
    assert not last["ok"] and last["error"]["kind"] == "BudgetExceeded" and shares(place.home)["people"] == QUANTA


@pytest.mark.parametrize("program", [
    'release x = 1 +\n', 'release x = nobody\n', 'private t = table("/etc/passwd") described by {a: 0..1} protecting '
    'rows budget epsilon 1\n', 't = table("people.csv")\n', 'c = counts("/etc/passwd.npy")\n', 'b = bound("x")\n',
    'p = "x.npy"\nc = counts(p)\n', 's = postgres("a.b")\n', 'f = table\n', "use people\n", "(" * 5000,
])  # fmt: skip
def test_what_opens_anything_else_is_refused_at_once_and_free(place: Any, program: str) -> None:
    for name in ("people.csv", "people.jst"):
        (Path.cwd() / name).write_text("a\n1\n")
    run = place.run("ana", program)
    assert run["state"] == "done" and not run["answer"]["ok"] and run["answer"]["error"]["message"]
    assert not place.jobs and shares(place.home)["people"] == 0 and "root" not in json.dumps(run["answer"]["errors"])


def test_public_counts_of_the_program_are_its_own(place: Any) -> None:
    assert place.run("ana", "release n = size(counts([1, 2]))\n")["answer"]["released"] == {"n": 3}


def test_nothing_is_seen_before_the_moment_that_was_declared(place: Any) -> None:
    """The process has ended, well or not; what is seen of the run is a function of when it was handed in."""
    seen = []
    for program in (count(0.25), count(0.25) + "x = [1][n + 5]\n"):
        handed = place.post("ana", "/api/runs", program=program, seconds=600.0).json()
        assert len(place.jobs) == len(seen) + 1
        assert place.post("ana", "/api/runs", program=count(0.1), seconds=600.0).status_code == 429  # one at a time
        now = place.get("ana", f"/api/runs/{handed['id']}").json()
        assert now["answer_at"] == handed["answer_at"] == handed["accepted"] + 600
        assert place.get("ana", f"/runs/{handed['id']}/trace").status_code == 404
        assert place.home.audit()[-1]["content"]["did"] == "run"
        seen.append({k: v for k, v in now.items() if k not in ("id", "accepted", "answer_at", "program", "digest")})
        change(place.home, "UPDATE runs SET answer_at = accepted")  # its place is free
    assert seen[0] == seen[1] and seen[0]["state"] == "running"


def test_an_answer_leaves_at_its_moment(place: Any) -> None:
    place.server.runs.seconds = (1.0,)
    handed = place.post("ana", "/api/runs", program=count(0.25)).json()
    answer = place.get("ana", f"/api/runs/{handed['id']}?wait=1").json()
    assert answer["state"] == "done" and time.time() >= handed["answer_at"] and handed["seconds"] == 1


def test_seconds_are_those_on_offer(place: Any) -> None:
    for seconds in (2, -1, 1e9, "1", True, [1]):
        assert place.post("ana", "/api/runs", program=count(0.1), seconds=seconds).status_code == 400


def test_a_run_without_an_answer_says_one_sentence(place: Any) -> None:
    place.server.runs.start = lambda job: None
    assert place.run("ana", count(0.5))["answer"] == STOPPED
    place.server.runs.start = lambda job: Path(job.folder, "answer.json").write_text("{")
    assert place.run("ana", count(0.5))["answer"] == STOPPED
    place.server.runs.start = lambda job: Path(job.folder, "trace.jsonl").write_text("{}")  # it was killed on its way
    run = place.run("ana", count(0.5))
    assert run["answer"] == STOPPED and place.get("ana", f"/runs/{run['id']}/trace").status_code == 404


def test_an_answer_that_was_charged_is_there_after_a_restart(place: Any) -> None:
    handed = place.post("ana", "/api/runs", program=count(0.5), seconds=0.001).json()
    place.home.close()
    home = Home(place.home.folder)
    (run,) = home.runs("id = ?", handed["id"])
    after = Runs(home, place.check, place.start, draw).visible(run)
    assert after.state == "done" and json.loads(after.document)["ok"]
    charges = [one["content"] for one in home.audit() if one["content"]["did"] == "done"]
    entry = Ledger(home.ledger).history("people@ana")[-1]
    assert charges[0]["charges"] == {"people@ana": [[entry.number, entry.hash]]}
    place.home = home


def test_a_reviewed_program_runs_as_it_was_approved(place: Any) -> None:
    handed = place.run("ben", count(0.5))
    assert handed["state"] == "waiting" and not place.jobs
    (waiting,) = place.get("rita", "/api/reviews").json()["runs"]
    assert waiting["program"] == count(0.5) and waiting["cost"][0]["asks"] == "0.5"
    assert (
        place.post("rita", f"/api/reviews/{handed['id']}", decision="approved", note="fine").json()["state"]
        == "running"
    )
    assert [job.program for job in place.jobs] == [count(0.5)]
    after = place.get("ben", f"/api/runs/{handed['id']}?wait=1").json()
    assert after["answer"]["ok"] and after["note"] == "fine" and after["reviewer"] == "rita"
    assert place.post("rita", f"/api/reviews/{handed['id']}", decision="approved").status_code == 400  # once


def test_a_reviewer_refuses_with_a_note_and_a_freeze_stops_what_waits(place: Any) -> None:
    first, second = (place.run("ben", count(e))["id"] for e in (0.5, 0.25))
    assert place.post("rita", f"/api/reviews/{first}", decision="refused", note="too much").json()["state"] == "refused"
    assert place.get("ben", f"/api/runs/{first}").json()["note"] == "too much" and not place.jobs
    assert place.post("olga", "/api/status", name="people", status="frozen").status_code == 200
    assert place.post("rita", f"/api/reviews/{second}", decision="approved").status_code == 200
    answer = place.get("ben", f"/api/runs/{second}?wait=1").json()["answer"]
    assert answer["error"]["message"] == "`people` is frozen" and shares(place.home)["people"] == 0


def test_the_trace_is_a_page_in_a_sandbox(place: Any) -> None:
    run = place.run("ana", count(0.5))
    page = place.get("ana", f"/runs/{run['id']}/trace")
    assert page.status_code == 200 and page.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert place.get("ben", f"/runs/{run['id']}/trace").status_code == 404


def test_the_log_is_a_chain_that_is_verified_offline(place: Any, tmp_path: Path, capsys: Any) -> None:
    from jostle.tools.entry import main

    place.run("ana", count(0.5))
    log = place.get("aldo", "/api/audit").json()
    assert verify(log["audit"])[0] == len(log["audit"]) > 8
    file = tmp_path / "log.json"
    file.write_text(json.dumps(log))
    assert main(["serve", "--verify", str(file)]) == 0 and "holds" in capsys.readouterr().out
    for part in ("content", "number", "hash"):
        damaged = json.loads(json.dumps(log))
        damaged["audit"][3][part] = {"by": "nobody"} if part == "content" else 7
        file.write_text(json.dumps(damaged))
        assert main(["serve", "--verify", str(file)]) == 1
    del log["audit"][4]
    file.write_text(json.dumps(log))
    assert main(["serve", "--verify", str(file)]) == 1
    histories = place.get("aldo", "/api/ledger/people@ana").json()
    assert histories["verified"] == len(histories["history"]) == 2


@pytest.mark.slow
def test_a_run_in_a_process_of_its_own(place: Any) -> None:
    """Confined, answered at its moment, stopped where it takes longer, and charged all the same; after the process of
    which runs are forked was killed, too."""
    from jostle.serve.runs import Launcher

    launcher = Launcher(place.home.folder)
    try:
        launcher.begin()
        place.server.runs = Runs(place.home, launcher.check, launcher, launcher.draw, seconds=(8.0, 2.0))
        long = count(0.25) + "i = 0\nfor k in 1..900000000:\n    i = i + 1\n"
        answers = []
        for program in (count(0.5), count(0.25), long):  # one after the other, as an analyst has one run at a time
            run = place.post("ana", "/api/runs", program=program, seconds=8).json()
            answers.append(place.get("ana", f"/api/runs/{run['id']}?wait=1").json())
            assert not (place.home.folder / "runs" / run["id"] / "scratch").exists()
            launcher._process.kill()
            launcher._process.wait()
        assert [one["answer"]["ok"] for one in answers] == [True, True, False] and answers[2]["answer"] == STOPPED
        assert shares(place.home)["people@ana"] == QUANTA * 3 // 4  # the last asked what had been answered
    finally:
        launcher.close()


def test_a_fork_has_nothing_of_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its environment, nor the socket by which other runs are handed over, nor another's job."""
    from jostle.serve import runs as running

    monkeypatch.setenv("PGPASSWORD", "secret")
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(running.subprocess, "Popen", lambda *words, **more: asked.append({"words": words, **more}))
    running.Launcher(tmp_path).begin()
    (one,) = asked
    assert "PGPASSWORD" not in one["env"] and one["stdout"] == subprocess.DEVNULL and one["start_new_session"]
    assert "pass_fds" not in one and one.get("close_fds", True)
    assert set(one["env"]) <= {
        "PATH", "LANG", "OPENBLAS_CORETYPE", "JOSTLE_MEMORY", "SSL_CERT_FILE", "HOME", "XDG_CACHE_HOME", "TMPDIR",
        "JOSTLE_LEDGER", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE",
    }  # fmt: skip


@pytest.mark.slow
def test_forks_read_their_own_jobs_alone(tmp_path: Path) -> None:
    """Two jobs that are handed over at once: each fork's memory has its own program and not the other's."""
    code = """
import os, socket, sys, time
from jostle.serve import worker
def look():
    text = sys.stdin.buffer.read()
    there = [f"/proc/self/fd/{one}" for one in os.listdir("/proc/self/fd")]
    seen = [os.readlink(one) for one in there if os.path.lexists(one)]
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        whole = b""
        for line in maps:
            if "rw-p" in line and "[v" not in line:
                low, high = (int(one, 16) for one in line.split()[0].split("-"))
                memory.seek(low)
                whole += memory.read(high - low)
    others = [k for k in range(4) if b"the program of %d" % (1000 + k) in whole]
    open(f"seen-{text.decode()[-1]}", "w").write(repr((others, sum(one.startswith("socket:") for one in seen))))
    return 0
worker._run, worker._load = look, lambda: None
worker._forks()
"""
    control, its = socket.socketpair()
    with its:
        process = subprocess.Popen([sys.executable, "-c", code], stdin=its, cwd=tmp_path)
    places = []
    for _ in range(4):
        mine, theirs = socket.socketpair()
        socket.send_fds(control, [b"."], [theirs.fileno()])
        theirs.close()
        places.append(mine)
    for k, place in enumerate(places):
        place.sendall(f"the program of {1000 + k}".encode())
        place.shutdown(socket.SHUT_WR)
    assert [place.recv(1) for place in places] == [b""] * 4  # their processes have ended
    control.close()
    assert process.wait(30) == 0
    for k in range(4):
        assert (tmp_path / f"seen-{k}").read_text() == f"([{k}], 1)"


ORDERS = "customer,amount\n" + "".join(f"p{k % 30},{k % 10}\n" for k in range(60))
FOLK = "id,age\n" + "".join(f"p{k},{20 + k}\n" for k in range(40))
LINKED = """private f = dataset("folk")
private o = dataset("orders")
spent = {{ select sum(amount) as s from o per person }}
both = {{ select count(*) as n from f join spent on person with epsilon 0.5 }}
n = {{ select count(*) from o up to 1 row with epsilon 0.25 }}
release n
"""


def shop(place: Any) -> None:
    """`folk` and their `orders`, registered and granted through HTTP."""
    for name, text in (("folk", FOLK), ("orders", ORDERS)):
        (place.home.folder / "data" / f"{name}.csv").write_text(text)
    for body in (
        {"name": "folk", "schema": "{age: 0..99}", "protecting": "id up to 1 row", "budget": "epsilon 3"},
        {"name": "orders", "schema": "{amount: 0..9}", "protecting": "folk.id on customer"},
    ):
        done = place.post("olga", "/api/datasets", file=f"{body['name']}.csv", **body)
        assert done.status_code == 200, done.text
    for body in ({"dataset": "folk", "amount": "30 %"}, {"dataset": "orders"}):
        done = place.post("olga", "/api/grants", analyst="ana", **body)
        assert done.status_code == 200, done.text


def test_tables_of_the_same_persons_are_granted_and_the_persons_pay(place: Any) -> None:
    shop(place)
    seen = {one["name"]: one for one in place.get("ana", "/api/datasets").json()["datasets"]}
    assert seen["orders"]["persons"] == "folk" and seen["orders"]["grants"][0]["budget"] is None
    assert seen["folk"]["grants"][0]["budget"]["total"] == "0.9"  # 30 % of 3
    checked = place.post("ana", "/api/check", program=LINKED).json()
    assert checked["ok"] and [(one["source"], one["asks"]) for one in checked["cost"]] == [("f", "0.75"), ("o", "0.75")]
    answer = place.run("ana", LINKED)["answer"]
    assert answer["ok"], answer
    spent = shares(place.home)
    assert spent["folk"] == spent["folk@ana"] == 3 * QUANTA // 4 and spent["orders"] == spent["orders@ana"] == 0
    whole = {one["name"]: one for one in place.get("olga", "/api/datasets").json()["datasets"]}
    assert whole["orders"]["budget"] is None and whole["folk"]["budget"]["spent"] == "0.75"
    place.home.set_review("people@ben", "olga", needed=False)
    refused = place.run("ben", LINKED)["answer"]
    assert not refused["ok"] and "no grant on `folk`" in refused["error"]["message"]


def test_what_is_published_of_a_linked_table_is_known_where_its_persons_are_declared(place: Any) -> None:
    shop(place)
    alone = LINKED.split("\n")[1] + "\nn = {{ select sum(amout) from o up to 2 rows with epsilon 0.5 }}\n"
    beside = LINKED.split("\n")[0] + "\n" + alone
    good = place.post("ana", "/api/check", program=alone.replace("amout", "amount")).json()
    assert good["ok"]
    wrong = place.post("ana", "/api/check", program=beside).json()
    assert not wrong["ok"] and "amout" in wrong["errors"][0]["message"] and wrong["errors"][0]["line"] == 3
    place.home.set_review("orders@ana", "olga", needed=True)
    place.post("ana", "/api/runs", program=LINKED)
    (waits,) = place.get("rita", "/api/reviews").json()["runs"]
    assert waits["simulated"]["ok"] and shares(place.home)["folk"] == 0
    facts = place.server.runs.facts("ana")
    assert facts["orders"].endswith("protecting folk.id on customer") and " budget epsilon 0.9" in facts["folk"]


@pytest.mark.parametrize(
    ("amount", "total"), [("30 %", "0.9"), ("100%", "3"), ("0.5 %", "0.015"), ("epsilon 0.25", "0.25")]
)
def test_a_grant_is_an_amount_or_a_share_of_the_budget(place: Any, amount: str, total: str) -> None:
    shop(place)
    done = place.post("olga", "/api/grants", dataset="folk", analyst="ben", amount=amount)
    if amount == "100%":  # of which 30 % are another's
        assert done.status_code == 400 and "does not fit" in done.text
        return
    assert done.status_code == 200, done.text
    (folk,) = [one for one in place.get("ben", "/api/datasets").json()["datasets"] if one["name"] == "folk"]
    assert folk["grants"][0]["budget"]["total"] == total


@pytest.mark.parametrize("amount", ["0 %", "101 %", "-5 %", "1e9 %", "%", "", "0.0000001 %", "٣ %", "5 % %", "1/3 %"])
def test_what_is_no_share_is_refused(place: Any, amount: str) -> None:
    shop(place)
    done = place.post("olga", "/api/grants", dataset="folk", analyst="ben", amount=amount)
    assert done.status_code == 400 and done.json()["error"]["kind"] == "BadAmount"
    assert "folk@ben" not in shares(place.home)


def test_data_that_are_not_there_cannot_be_granted(place: Any) -> None:
    assert place.post("olga", "/api/grants", dataset="none", analyst="ana", amount="30 %").status_code == 400
    assert place.post("olga", "/api/datasets", name="t", file='postgres("a.b")', protecting="rows",
                      schema="{a: 0..9}", budget="epsilon 1").status_code == 400  # fmt: skip


def test_a_budget_for_each_period_is_not_granted_and_every_refusal_says_what_is(place: Any) -> None:
    """Registered by a page it would stay so, and nobody could ask it; what the machine registered is shown whole."""
    (place.home.folder / "data" / "visits.csv").write_text(
        "day,user\n" + "".join(f"2026-01-{5 + k % 9:02d},u{k}\n" for k in range(90))
    )
    terms = {
        "schema": "{day: date}", "protecting": "user up to 3 rows",
        "budget": "rho 1 each week of day, rho 20 for ever",
    }  # fmt: skip
    page = place.post("olga", "/api/datasets", name="visits", file="visits.csv", **terms)
    assert page.status_code == 400 and "in seven days" in page.json()["error"]["help"]
    options = {"copy": False, "sheet": None, "header": None, "engine": None, "ledger": place.home.ledger}
    register(Namespace(name="visits", file=str(place.home.folder / "data" / "visits.csv"), **terms, **options))
    asks = 'private v = dataset("visits")\nrelease n = {{ select count(*) from v[period = 2026-01-05] with rho 0.25 }}'
    with Session(ledger=place.home.ledger) as session:
        assert session.attempt(asks).ok
    refused = place.post("olga", "/api/grants", dataset="visits", analyst="ana", amount="rho 0.5").json()["error"]
    assert "each week of day" in refused["message"] and "in seven days" in refused["help"]
    for name in ("olga", "aldo"):
        (budget,) = [d["budget"] for d in place.get(name, "/api/datasets").json()["datasets"] if d["name"] == "visits"]
        assert budget == {
            "unit": "rho", "total": "1", "spent": "0.25", "each": "week of day", "for_ever": "20",
            "all_periods": "0.25",
        }  # fmt: skip
        assert place.get(name, "/api/ledger/visits").json()["verified"] == 2
    assert place.run("ana", asks)["answer"]["error"]["message"] == "you have no grant on `visits`"
    assert [d["name"] for d in place.get("ana", "/api/datasets").json()["datasets"]] == ["people"]
    for status in ("frozen", ""):
        assert place.post("olga", "/api/status", name="visits", status=status).status_code == 200
