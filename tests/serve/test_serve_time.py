"""What could be a clock: nothing that is seen before an answer's moment says how far its run has come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from serve_place import change, count

from jostle.accounting.amounts import QUANTA, Amount
from jostle.plan.digest import digest
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.ledger.store import now
from jostle.serve import runs as running
from jostle.serve.runs import MOST_STOPPED, STOPPED, Runs
from jostle.serve.store import Home
from jostle.serve.worker import Job, answer, draw


def test_what_a_run_has_charged_shows_when_its_answer_leaves(place: Any) -> None:
    """Whoever asks again and again would see when the second charge comes, which is when the first query ended."""
    place.run("ana", count(0.25))
    paths = {"ana": "/api/datasets", "rita": "/api/datasets", "aldo": "/api/ledger/people@ana"}
    before = {name: place.get(name, path).text for name, path in paths.items()}
    whole = place.get("aldo", "/api/ledger/people").text
    run = place.post("ana", "/api/runs", program=count(0.5), seconds=600.0).json()
    assert len(place.jobs) == 2  # its process has charged and ended
    assert {name: place.get(name, path).text for name, path in paths.items()} == before
    assert place.get("aldo", "/api/ledger/people").text == whole and "0.75" not in before["ana"]
    owner = place.get("olga", "/api/datasets").json()["datasets"][0]
    assert owner["budget"]["spent"] == "0.75"  # who holds the data sees the ledger as it is
    change(place.home, "UPDATE runs SET answer_at = accepted WHERE id = ?", values=(run["id"],))
    assert "0.75" in place.get("ana", "/api/datasets").text
    assert len(place.get("aldo", "/api/ledger/people@ana").json()["history"]) == 3


def test_an_approved_run_is_no_clock_either(place: Any) -> None:
    waiting = place.post("ben", "/api/runs", program=count(0.5), seconds=600.0).json()
    before = place.get("ben", "/api/datasets").text
    decision = {"approve": True, "decision": "approved"}
    assert place.post("rita", f"/api/reviews/{waiting['id']}", **decision).status_code == 200 and place.jobs
    assert place.get("ben", "/api/datasets").text == before


def test_a_history_says_when_a_run_began_and_not_when_it_charged(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace holds the hashes of its charges, from which a minute is found by trying."""
    monkeypatch.setattr("jostle.privacy.ledger.ledger.now", lambda: "2031-01-01T00:00Z")
    place.run("ana", count(0.5))
    run = place.home.runs("account = 'ana'")[0]
    for name in ("people", "people@ana"):
        entry = Ledger(place.home.ledger).history(name)[-1]
        assert entry.content["did"] == "charged" and entry.content["time"] == place.jobs[0].began
    assert time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(run.accepted)) == place.jobs[0].began <= now()


def test_an_analyst_has_one_run_at_a_time(place: Any) -> None:
    """The budget that a second run of the same grant counts in would move when the first one charges."""
    place.server.runs.places = 100
    assert place.post("ana", "/api/runs", program=count(0.1), seconds=600.0).status_code == 200
    busy = place.post("ana", "/api/runs", program=count(0.1), seconds=600.0)
    assert busy.status_code == 429 and "one at a time" in busy.text and len(place.jobs) == 1
    waiting = [place.post("ben", "/api/runs", program=count(0.1), seconds=600.0).json()["id"] for _ in range(2)]
    decision = {"approve": True, "decision": "approved"}
    answers = [place.post("rita", f"/api/reviews/{id}", **decision).status_code for id in waiting]
    assert answers == [200, 429]


def test_a_process_that_begins_after_its_end_opens_nothing(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine under load it may begin when its answer has left: a trace would then say how far it came."""
    from jostle.serve import worker

    folder = place.home.folder / "runs" / "late"
    folder.mkdir()
    job = Job(count(0.5), {}, "ana", place.home.ledger, str(folder), time.time() - 0.001)
    monkeypatch.setattr(worker.coded, "decode", lambda *_, **__: job)
    monkeypatch.setattr(worker.sys, "stdin", open("/dev/null"))  # noqa: SIM115
    monkeypatch.setattr(worker, "confine", lambda *_, **__: pytest.fail("it was confined, to run"))
    assert worker._run() == 1 and list(folder.iterdir()) == []


def test_a_process_ends_by_the_clock_that_the_server_goes_by() -> None:
    """Where the machine sleeps or its clock is set, the timer of the process is late, and its charges would show."""
    code = "import time, threading; from jostle.serve.worker import _ended_at\nreal = time.time; since = real()\n"
    code += "time.time = lambda: real() + (3600 if real() > since + 0.3 else 0)\n"
    code += "threading.Thread(target=_ended_at, args=(since + 600,), daemon=True).start()\ntime.sleep(60)"
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", code], check=False)
    assert ended.returncode == -9 and time.monotonic() - began < 30


@pytest.mark.parametrize("own", [False, True])
def test_a_confined_process_slows_its_own_session_alone(own: bool) -> None:
    """`jostle serve --check` had left the terminal that it was called from as slow as a run."""
    code = "from jostle.serve.confine import confine; confine([], [], 9.0, 2**33)"
    code += "; print(open('/proc/self/autogroup').read())"
    place = Path("/proc/self/autogroup")
    if not place.exists():
        pytest.skip("this system has no groups of sessions")
    before = place.read_text()
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, start_new_session=own, check=True
    )
    assert place.read_text() == before and ("nice 15" in said.stdout or not own)


SLOW = "def g(x) {\nfor i in 1..1000: x = x + i\nreturn x\n}\n" + "".join(f"a{k} = g({k})\n" for k in range(4000))
"""Takes some minutes to check."""


def priority(pid: int) -> int | None:
    with suppress(ProcessLookupError):  # it has just answered
        return os.getpriority(os.PRIO_PROCESS, pid)
    return None


def test_who_writes_does_not_wait_behind_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process checked everybody's programs, one after the other: three that take ten seconds kept all others
    waiting half a minute, also when whoever handed them in had gone."""
    monkeypatch.setattr(running, "CHECK_SECONDS", 60.0)
    launcher = running.Launcher(tmp_path)
    try:
        assert launcher.check("release x = 1\n", {})["ok"]
        slow = [threading.Thread(target=launcher.check, args=(SLOW, {}), daemon=True) for _ in range(3)]
        for one in slow:
            one.start()
        time.sleep(2.0)  # they give way by now
        began = time.monotonic()
        assert all(launcher.check(f"release x = {k}\n", {})["ok"] for k in range(3))
        assert time.monotonic() - began < 15 and all(one.is_alive() for one in slow)
        forks = Path(f"/proc/{launcher._process.pid}/task/{launcher._process.pid}/children").read_text().split()
        low = [int(pid) for pid in forks if priority(int(pid)) == min(19, os.nice(0) + 10)]
        assert len(low) == 3
        for pid in low:
            os.kill(pid, signal.SIGKILL)
        for one in slow:
            one.join(20)  # a process that is ended answers
        assert not any(one.is_alive() for one in slow)
    finally:
        launcher.close()


def test_a_check_that_takes_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = running.Launcher(tmp_path)
    try:
        assert launcher.check("release x = 1\n", {})["ok"]
        monkeypatch.setattr(running, "CHECK_SECONDS", 1.0)
        began = time.monotonic()
        (error,) = launcher.check(SLOW, {})["errors"]
        assert "in time" in error["message"] and time.monotonic() - began < 20
    finally:
        launcher.close()


def test_a_stopped_run_leaves_no_file(place: Any) -> None:
    def partly(job: Job) -> None:
        for name in ("trace.jsonl", "scratch/spilled"):
            Path(job.folder, name).write_text("{}")

    place.server.runs.start = partly
    model = place.home.folder / "cache" / "ana" / "jostle" / "models" / "half.json"  # which a second run would load
    model.parent.mkdir(parents=True)
    model.write_text("{}")
    run = place.run("ana", count(0.5))
    folder = place.server.runs.folder(place.home.runs()[0])
    assert run["answer"] == STOPPED and not folder.exists() and not model.exists()
    Path(f"{folder}.gone").mkdir(exist_ok=True)  # where the server is killed before all is removed, the next one does
    assert Runs(place.home, place.check, place.start, draw) and list(folder.parent.glob("*.gone")) == []


def test_an_analyst_whose_runs_are_stopped_too_often_waits(place: Any) -> None:
    """Each overrun says something of running times; so they are few."""
    place.server.runs.start = lambda job: None
    for k in range(MOST_STOPPED):
        assert place.run("ana", f"x = {k}\nrelease x\n")["answer"] == STOPPED
    refused = place.post("ana", "/api/runs", program="release x = 1\n", seconds=0.001)
    assert refused.status_code == 429 and "did not end before" in refused.json()["error"]["message"]
    assert place.post("ben", "/api/runs", program=count(0.1)).status_code == 200
    change(place.home, "UPDATE runs SET accepted = accepted - 8 * 86400")
    assert place.post("ana", "/api/runs", program="release x = 1\n", seconds=0.001).status_code == 200


def test_what_waits_to_be_checked_is_bounded_for_each_account(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One program takes up to 10 seconds to be checked, one after the other: nobody takes all turns."""
    runs = place.server.runs

    def nested(program: str, settings: Any, **more: Any) -> dict[str, Any]:
        depth.append(program)
        last = len(depth) == running.CHECKS_OF_ONE
        with pytest.raises(Exception, match="too many programs are being checked") if last else nullcontext():
            runs.checked("ana", "x", {})
        return {"ok": True}

    depth: list[str] = []
    monkeypatch.setattr(runs, "check", nested)
    runs.checked("ana", "x", {})
    assert len(depth) == running.CHECKS_OF_ONE and runs._checking == []
    monkeypatch.setattr(running, "MOST_CHECKS", 0)
    assert place.post("ben", "/api/check", program="x = 1\n").status_code == 429


def test_a_home_of_the_first_version_is_brought_up(place: Any) -> None:
    drops = [f"DROP TABLE {name}" for name in ("totals", "failures")]
    change(place.home, *drops, "ALTER TABLE runs DROP COLUMN shared", "PRAGMA user_version = 1")  # as it was then
    place.home.close()
    place.home = Home(place.home.folder)
    assert place.home.totals() == {} and Runs(place.home, place.check, place.start, draw).places


def test_answers_of_any_text_leave(place: Any) -> None:
    """Half a surrogate pair has no encoding, and JSON an escape for it."""
    run = place.run("ana", 'release s = "\\ud800"\nprint("\\udc00")\n')
    assert run["answer"]["released"] == {"s": "\ud800"} and run["answer"]["output"] == ["\udc00"]
    assert place.get("ana", f"/runs/{run['id']}/trace").status_code == 200
    assert digest(place.home.runs()[0].document) in json.dumps(place.home.audit())


def test_a_fault_is_one_sentence_with_the_headers_of_all(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("row 7 is 41")

    monkeypatch.setattr(place.home, "tokens", broken)
    answer = place.get("ana", "/api/tokens")
    assert answer.status_code == 500 and answer.json()["error"]["message"] == "this is a fault of the server"
    assert "41" not in answer.text and answer.headers["x-frame-options"] == "DENY"


def test_a_confined_process_reaches_nothing(tmp_path: Path) -> None:
    """Neither files that it was not handed, nor a network, nor a process outside, where the system has these walls."""
    import subprocess
    import sys

    (tmp_path / "own").mkdir()
    (tmp_path / "secret").write_text("41")
    code = f"""
import os, resource, socket
from pathlib import Path
from jostle.serve.confine import confine
lacking = confine([], [Path({str(tmp_path / "own")!r})], 30.0, 4 * 2**30)
def tried(what):
    try:
        what()
    except (OSError, MemoryError) as fault:
        return type(fault).__name__
    return "done"
def udp():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
print(lacking, tried(lambda: open({str(tmp_path / "secret")!r}).read()), tried(udp),
      tried(lambda: open({str(tmp_path / "own" / "x")!r}, "w").close()), tried(lambda: os.kill(os.getppid(), 0)),
      tried(lambda: bytearray(8 * 2**30)), tried(lambda: os.listdir({str(Path.home())!r})), sep="; ")
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    lacking, secret, udp, own, signal, memory, _ = said.split("; ")
    assert own == "done" and memory == "MemoryError"
    assert secret == "PermissionError" or "Landlock" in lacking
    assert udp == "OSError" or "network" in lacking
    assert signal in ("PermissionError", "done")  # Landlock refuses signals since Linux 6.12


def test_a_last_day_and_a_week_are_those_of_when_a_run_began(place: Any, tmp_path: Path) -> None:
    """By the clock of a charge its refusal would say whether the query before it ended before midnight."""
    ledger = Ledger(place.home.ledger)
    ledger.grant("people", "cleo", Amount("epsilon", QUANTA), "2026-01-09", None, Amount("epsilon", 3 * QUANTA // 10))

    def run(began: str, epsilon: float) -> str:
        job = Job(count(epsilon), {}, "cleo", place.home.ledger, str(tmp_path / began), 0.0, began=began,
                  granted=("people",))  # fmt: skip
        document = json.loads(str(answer(job)["document"]))
        return str(document["error"]["message"]) if "error" in document else "good"

    assert run("2026-01-01T00:00Z", 0.3) == "good"
    assert "in seven days" in run("2026-01-07T23:59Z", 0.1)
    assert run("2026-01-08T00:01Z", 0.1) == "good"
    assert run("2026-01-09T23:59Z", 0.05) == "good"
    assert run("2026-01-10T00:00Z", 0.04) == "your grant on `people` is expired"


def test_a_clock_that_is_set_back_opens_no_grant_that_is_over(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place.home.add_account("cleo", "analyst", "olga")
    place.tokens["cleo"] = place.home.add_token("cleo", "", "all", 300.0)[1]
    Ledger(place.home.ledger).grant("people", "cleo", Amount("epsilon", QUANTA), now()[:10])
    monkeypatch.setattr("jostle.serve.store.now", lambda: "2126-01-01T00:00Z")
    place.home.note("olga", "somebody was here after its last day")
    monkeypatch.undo()
    place.home.note("olga", "the clock was set back")
    answer = place.run("cleo", count(0.1))["answer"]
    assert answer["error"]["message"] == "your grant on `people` is expired"
    times = [entry["content"]["time"] for entry in place.home.audit()]
    assert times == sorted(times)


def test_a_total_shows_no_order_of_runs_that_go_on_at_once(place: Any) -> None:
    """What an auditor sees of the whole is without the charges of runs under way, and not as these runs found it."""
    for name in ("cleo", "dora"):
        place.home.add_account(name, "analyst", "system")
        place.tokens[name] = place.home.add_token(name, "", "all", 1.0)[1]
        Ledger(place.home.ledger).grant("people", name, Amount("epsilon", QUANTA // 2))
    shown = []
    for epsilon, late in ((0.1, False), (0.2, True)):
        held: list[Job] = []
        place.server.runs.start = held.append if late else place.start
        first = place.post("cleo", "/api/runs", program=count(epsilon), seconds=600.0).json()
        place.server.runs.start = place.start
        place.post("dora", "/api/runs", program=count(epsilon), seconds=600.0)
        for job in held:
            place.start(job)
        change(place.home, "UPDATE runs SET answer_at = accepted WHERE id = ?", values=(first["id"],))
        shown.append(place.get("aldo", "/api/datasets").json()["datasets"][0]["budget"]["spent"])
        change(place.home, "UPDATE runs SET answer_at = accepted")
    assert shown == ["0.1", "0.4"]
