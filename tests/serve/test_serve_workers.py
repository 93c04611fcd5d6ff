"""Several processes over one home: what one of them knows the others know, and where one is killed another answers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from serve_place import PASSWORD, count

from jostle.diagnostics import Refusal
from jostle.serve.routing import TOO_OFTEN, Server
from jostle.serve.runs import Runs
from jostle.serve.store import Home
from jostle.serve.worker import draw


def test_an_analyst_has_one_run_at_a_time_in_all_processes(place: Any) -> None:
    home = Home(place.home.folder)
    try:
        other = Runs(home, place.check, place.start, draw, seconds=(600.0,), places=4)
        assert place.post("ana", "/api/runs", program=count(0.1), seconds=600.0).status_code == 200
        ana = home.who(place.tokens["ana"], "token")
        assert ana is not None
        with pytest.raises(Refusal, match="one at a time"):
            other.submit(ana, count(0.2), {}, 600.0)
        assert len(place.jobs) == 1 and len(home.runs()) == 1
    finally:
        home.close()


def test_logins_that_failed_count_in_all_processes(place: Any) -> None:
    for _ in range(TOO_OFTEN):
        assert place.post("", "/api/login", name="ana", password="wrong").status_code == 401
    home = Home(place.home.folder)
    try:
        with pytest.raises(Refusal, match="too many logins"):
            Server(home, place.server.runs).log_in("ana", PASSWORD, "testclient")
        home.add_failure([], time.time() + 1)  # a quarter of an hour later
        vars(home)["_hasher"] = place.home._hasher
        Server(home, place.server.runs).log_in("ana", PASSWORD, "testclient")
    finally:
        home.close()


@pytest.mark.slow
def test_a_worker_that_is_killed_is_started_again(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    words = ["serve", "--home", str(tmp_path / "home"), "--port", str(port), "--workers", "2"]
    server = subprocess.Popen([sys.executable, "-m", "jostle", *words], stdout=subprocess.PIPE, text=True)

    def children() -> set[int]:
        text = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text()
        return {int(pid) for pid in text.split()}

    def healthy() -> bool:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=60) as answer:
                    return bool(json.load(answer)["ok"])
            except OSError:
                time.sleep(0.1)
        return False

    try:
        assert server.stdout is not None and "jostle serves" in server.stdout.readline() and healthy()
        before = children()
        assert len(before) == 2
        os.kill(min(before), signal.SIGKILL)
        assert healthy()
        while len(now := children()) < 2 or min(before) in now:
            time.sleep(0.1)
        assert healthy() and len(now & before) == 1
        server.terminate()
        assert server.wait(60) == 128 + signal.SIGTERM
        while any(Path(f"/proc/{pid}").exists() for pid in now):
            time.sleep(0.1)
    finally:
        server.kill()
        if server.stdout is not None:
            server.stdout.close()
