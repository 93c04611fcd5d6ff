"""Kills workers and the server of `jostle serve` at every step, under load: `python -m tests.serve.kills --count N`.

After each kill of the server it is started again. What has to be so, however often: no answer without its charge; what
was charged is answered, unless its own process was killed or stopped before the answer was on the disk; an answer stays
as it was given; the charges of each grant add up, the dataset loses as much, and both chains hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.serve.herd import SERVER, WORKER, Herd

RANDOM = ("server: at any time", "worker: at any time", "all of them: at any time")
PATIENCE = 20.0  # seconds that a point is waited for


def program(k: int) -> str:
    select = f"select count(*) from t with epsilon {0.001 + k * 1e-6:.6f}"
    return f'private t = dataset("people")\nn = {{{{ {select} }}}}\nrelease n\n'


class Analyst(threading.Thread):
    """Hands programs in, one after the other, and keeps what was answered; a server that is gone is waited for."""

    def __init__(self, herd: Herd, name: str, first: int, server: int = 0) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.herd, self.who, self.next, self.over = herd, name, first, threading.Event()
        self.answers: dict[str, dict[str, Any]] = {}  # by the number of a run

    def run(self) -> None:
        again: str | None = None
        while not self.over.is_set():
            text = again or program(self.next)
            self.next += again is None
            run = self._answered(text)
            again = None
            if run is not None:
                self.answers[run["id"]] = run
                if not run["answer"]["ok"] and self.next % 2:
                    again = text  # what had been answered is given again, free

    def _request(self, *what: Any) -> Any:
        """One of an analyst's server, or of another at random where that one is gone."""
        try:
            return self.herd.request(self.who, *what, server=self.server)
        except OSError:
            self.server = random.randrange(len(self.herd.ports))
            raise

    def _answered(self, text: str) -> dict[str, Any] | None:
        try:
            status, _, body = self._request("POST", "/api/runs", {"program": text})
            run = json.loads(body)
        except OSError:
            status, run = 0, {}
        while not self.over.is_set():
            try:
                if status != 200:  # perhaps it was taken, perhaps not
                    time.sleep(0.1)
                    runs = json.loads(self._request("GET", "/api/runs")[2])["runs"]
                    run = next((one for one in runs if one["state"] == "running"), runs[0] if runs else None)
                    if run is None:
                        return None
                    status = 200
                answered = json.loads(self._request("GET", f"/api/runs/{run['id']}?wait=1")[2])
                if answered.get("state") == "done":
                    return dict(answered)
            except (OSError, ValueError, KeyError):
                time.sleep(0.1)
        return None


def main(words: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.serve.kills", description=__doc__)
    options.add_argument("--count", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--seconds", type=float, default=3.0, help="when answers leave")
    options.add_argument("--database", default="", help="the URL of an empty database for the ledger and the store")
    options.add_argument("--servers", type=int, default=1, help="so many over one database")
    given = options.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        herd = Herd(Path(folder) / "herd", seconds=given.seconds, database=given.database, servers=given.servers)
        done = kills(herd, given.count, given.seed)
    print(json.dumps(done, indent=1))
    return 1 if done["wrong"] else 0


def kills(herd: Herd, count: int, seed: int) -> dict[str, Any]:
    """What was killed how often, and what of it was wrong."""
    rng, servers, seconds = random.Random(seed), len(herd.ports), herd.seconds
    analysts = [Analyst(herd, f"a{k}", 10_000 * k, k % servers) for k in range(6)]
    killed: Counter[str] = Counter()
    try:
        for server in range(servers):
            herd.start(server)
        for one in analysts:
            one.start()
        points = [*SERVER, *WORKER, *RANDOM]
        order = [point for _ in range(count // len(points) + 1) for point in rng.sample(points, len(points))][:count]
        for point in order:
            killed[point if _killed(herd, point, rng) else f"not reached: {point}"] += 1
        time.sleep(2 * seconds)
        for one in analysts:
            one.over.set()
        for one in analysts:
            one.join(60)
        time.sleep(seconds)
        wrong, facts = checked(herd, analysts)
    finally:
        herd.close()
    return {"killed": dict(sorted(killed.items())), "kills": sum(killed[p] for p in points), **facts, "wrong": wrong}


def _killed(herd: Herd, point: str, rng: random.Random) -> bool:
    """Kills at a point, and starts what is needed again; whether it was reached."""
    if point in RANDOM:
        time.sleep(rng.random() * herd.seconds)
        until = time.monotonic() + PATIENCE
        while not (workers := herd.workers()) and point.startswith("worker") and time.monotonic() < until:
            time.sleep(rng.random() / 20)
        one = rng.choice(herd.pids)
        which = {"server": [one], "worker": workers[-1:], "all of them": [*herd.pids, *workers]}[point.split(":")[0]]
        for pid in which:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        reached = bool(which)
    else:
        herd.armed.with_suffix(".new").write_text(point)
        herd.armed.with_suffix(".new").rename(herd.armed)
        until = time.monotonic() + PATIENCE
        while herd.armed.exists() and time.monotonic() < until:
            time.sleep(0.01)
        reached = not herd.armed.exists()
        herd.armed.unlink(missing_ok=True)
    gone = [*range(len(herd.pids))] if point.startswith("all") else []
    while reached and point.startswith("server") and not gone:
        time.sleep(0.01)
        over = {one["pid"] for one in herd.ended()}
        gone = [server for server, pid in enumerate(herd.pids) if pid in over]
    for server in gone:
        herd.wait(server)
        herd.start(server)
    return reached


def checked(herd: Herd, analysts: list[Analyst]) -> tuple[list[str], dict[str, Any]]:
    """What does not hold, and how much there was."""
    from jostle.plan.digest import digest
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.serve.store import verify
    from jostle.tools.data import verify as verify_ledger

    wrong: list[str] = []
    _, _, body = herd.request("auditor", "GET", "/api/audit")
    log = json.loads(body)["audit"]
    verify(log)
    ledger = Ledger(herd.database or herd.home / "ledger" / "ledger.db")
    histories = {one.terms.name: ledger.history(one.terms.name) for one in ledger.datasets()}
    for name in histories:
        verify_ledger(ledger, name)
    spent = {one.terms.name: one.state.spent[0] for one in ledger.datasets()}
    if spent["people"] != sum(total for name, total in spent.items() if "@" in name):
        wrong.append("the dataset has not lost what its grants have")
    done = {one["content"]["run"]: one["content"] for one in log if one["content"]["did"] == "done"}
    if len(done) != sum(one["content"]["did"] == "done" for one in log):
        wrong.append("a run was answered twice")
    stopped = {one["run"]: one["status"] for one in herd.ended() if one["run"]}
    handed = {one["content"]["run"]: one["content"] for one in log if one["content"]["did"] == "run"}
    good, paid, ours = 0, defaultdict(list), {}
    for analyst in analysts:
        for id, run in analyst.answers.items():
            ours[id] = run
            now = json.loads(herd.request(analyst.who, "GET", f"/api/runs/{id}")[2])
            if now["answer"] != run["answer"]:
                wrong.append(f"{id}: the answer is another one than was given")
            paid[digest(run["program"])].append(run)
            if not run["answer"]["ok"]:
                if stopped.get(id) == 0:
                    wrong.append(f"{id}: its process ended well, and there is no answer")
                continue
            good += 1
            entries = {(e.number, e.hash) for e in histories[f"people@{run['analyst']}"]}
            links = [tuple(link) for link in done[id]["charges"].get(f"people@{run['analyst']}", [])]
            again = len(paid[digest(run["program"])]) > 1
            if not set(links) <= entries or (not links and not again):
                wrong.append(f"{id}: an answer without its charge")
    charges, unanswered = 0, 0
    for name, history in histories.items():
        for program, times in Counter(e.content["digest"] for e in history if e.content["did"] == "charged").items():
            charges += times * ("@" in name)
            runs = [run for run, content in handed.items() if content["program"] == program]
            answered = any(run in ours and ours[run]["answer"]["ok"] for run in runs)
            if "@" in name and not answered:
                unanswered += 1
                seen = [run for run in runs if run in ours]
                if seen and all(stopped.get(run, -9) == 0 for run in seen):
                    wrong.append(f"{runs}: a charge without an answer, whose process ended well")
            if times > len(runs):
                wrong.append(f"{runs}: more charges than runs")
    ends = Counter(stopped.values())
    facts = {"runs": len(handed), "answers": len(ours), "well": good, "charges": charges,
             "charges whose processes were killed or stopped": unanswered, "log": len(log),
             "processes by their ends": {str(k): v for k, v in sorted(ends.items())}}  # fmt: skip
    return wrong, facts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
