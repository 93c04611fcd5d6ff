"""A server of the tests with real processes, many and cheap: each is forked of one that has imported all they need.

`Herd` holds a folder, accounts and data. Its server listens at the loopback address, and runs of it are processes of
their own, confined as `jostle serve` confines them. A point of a program can be *armed*: the next process that comes
there kills itself by SIGKILL. What ended how stands in `ends`.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

PASSWORD = "a long password"
LATE = 75  # the status of a process that began too late
ROWS = ["age,sex", *(f"{17 + k % 70},{'F' if k % 2 else 'M'}" for k in range(400))]
ROOT = Path(__file__).resolve().parents[2]


class Herd:
    """A home with `people` and a grant for each analyst, and the process of which all others are forked."""

    def __init__(
        self, folder: Path, analysts: int = 6, seconds: float = 3.0, places: int = 8, *, neighbour: bool = False,
        database: str = "", servers: int = 1,
    ) -> None:  # fmt: skip
        """With a `neighbour` there is `people2` too, which has one row more. With a `database` the ledger and the store
        are there, and several servers may share it."""
        self.names = ("people", "people2") if neighbour else ("people",)
        self.folder, self.seconds, self.places = folder, seconds, places
        folder.mkdir(parents=True, exist_ok=True)
        self.home, self.armed, self.ends = folder / "home", folder / "armed", folder / "ends"
        self.database, self.ports, self.pids = database, [free_port() for _ in range(servers)], [0] * servers
        self.tokens = self._filled(analysts)
        words = [sys.executable, "-m", "tests.serve.herd", str(folder)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        self._parent = subprocess.Popen(words, cwd=ROOT, env=environment)
        while not (folder / "socket").exists():
            time.sleep(0.05)
            if self._parent.poll() is not None:
                raise RuntimeError("the process of which others are forked has ended")

    @property
    def pid(self) -> int:
        """The first server's."""
        return self.pids[0]

    def _filled(self, analysts: int) -> dict[str, str]:
        from jostle.serve.store import Home

        home = Home(self.home, self.database)
        tokens = {}
        for name, role in (
            ("owner", "owner"),
            ("auditor", "auditor"),
            *((f"a{k}", "analyst") for k in range(analysts)),
        ):
            home.add_account(name, role, "system")
            tokens[name] = home.add_token(name, "", "all", 1.0)[1]
        from argparse import Namespace

        for name, rows in zip(self.names, (ROWS, [*ROWS, "90,M"]), strict=False):
            self._add(name, rows, analysts, home.ledger, Namespace)
        home.close()
        return tokens

    def _add(self, name: str, rows: list[str], analysts: int, ledger: str, namespace: Any) -> None:
        from jostle.accounting.amounts import QUANTA, Amount
        from jostle.privacy.ledger.ledger import Ledger
        from jostle.tools.data import register

        (self.home / "data" / f"{name}.csv").write_text("\n".join(rows) + "\n")
        register(namespace(
            name=name, file=str(self.home / "data" / f"{name}.csv"), schema='{age: 17..90, sex: {"F", "M"}}',
            protecting="rows", budget=f"epsilon {1000 * analysts}", ledger=ledger, copy=False, sheet=None,
            header=None, engine=None,
        ))  # fmt: skip
        for k in range(analysts):
            Ledger(ledger).grant(name, f"a{k}", Amount("epsilon", 1000 * QUANTA))

    def memory(self) -> float:
        """What the server takes, in MB: its own pages, not those that it has of its parent."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1024

    def ask(self, what: str, **more: Any) -> int:
        """Asks the parent for a process; gives its number."""
        return asked(self.folder, {"what": what, **more})

    def start(self, server: int = 0, **options: Any) -> None:
        """Starts a server, and waits until it answers."""
        told = {"port": self.ports[server], "seconds": self.seconds, "places": self.places, "database": self.database}
        self.pids[server] = self.ask("serve", **told, **options)
        for _ in range(6000):
            try:
                if self.request("", "GET", "/api/health", server=server)[0] == 200:
                    return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("the server does not answer")

    def kill(self) -> None:
        """Kills the server, and waits until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def wait(self, server: int = 0) -> None:
        while f'"pid": {self.pids[server]},' not in (self.ends.read_text() if self.ends.exists() else ""):
            time.sleep(0.01)

    def close(self) -> None:
        """Ends every process of it."""
        over = {one["pid"] for one in self.ended()}
        for line in (self.folder / "children").read_text().split() if (self.folder / "children").exists() else ():
            if int(line) not in over:
                with suppress(ProcessLookupError):
                    os.kill(int(line), signal.SIGKILL)
        self._parent.terminate()
        self._parent.wait()

    def workers(self) -> list[int]:
        """Processes of runs that go on."""
        over = {*self.pids, *(one["pid"] for one in self.ended())}
        return [pid for pid in map(int, (self.folder / "children").read_text().split()) if pid not in over]

    def ended(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ends.read_text().splitlines()] if self.ends.exists() else []

    def request(
        self, who: str, method: str, path: str, body: object = None, timeout: float = 120.0, server: int = 0
    ) -> tuple[int, dict[str, str], bytes]:
        """One request: status, headers, body. `OSError` where the server is not there or goes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[server], timeout=timeout)
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        except http.client.HTTPException as fault:
            raise OSError(str(fault)) from None
        finally:
            connection.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def asked(folder: Path, request: Mapping[str, Any]) -> int:
    with socket.socket(socket.AF_UNIX) as there:
        there.connect(str(folder / "socket"))
        there.sendall(json.dumps(request).encode() + b"\n")
        there.shutdown(socket.SHUT_WR)
        return int(there.makefile().readline())


# The processes -------------------------------------------------------------------------------------------


def parent(folder: Path) -> None:
    """Forks processes as it is asked to, and writes down how they end."""
    warnings.simplefilter("ignore")
    import_all()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "socket"))
    listening.listen(64)
    children: dict[int, Any] = {}
    while True:
        if select.select([listening], [], [], 0.02)[0]:
            there, _ = listening.accept()
            request = json.loads(there.makefile().readline() or "{}")
            if request and (pid := os.fork()) == 0:
                _child(folder, request, listening, there)
            if request:
                children[pid] = request
                with (folder / "children").open("a") as file:
                    file.write(f"{pid}\n")
                with suppress(OSError):  # who asked may be killed meanwhile
                    there.sendall(f"{pid}\n".encode())
            there.close()
        while children and (ended := os.wait4(-1, os.WNOHANG))[0]:
            request = children.pop(ended[0])
            with (folder / "ends").open("a") as file:
                status = os.waitstatus_to_exitcode(ended[1])
                cpu = round(1000 * (ended[2].ru_utime + ended[2].ru_stime))
                one = {"pid": ended[0], "run": request.get("id", ""), "status": status, "cpu ms": cpu}
                file.write(json.dumps(one) + "\n")


def _child(folder: Path, request: dict[str, Any], *sockets: socket.socket) -> None:
    status = 1
    try:
        for one in sockets:
            one.close()
        os.setsid()
        random.seed()
        status = LATE if request["what"] == "run" and run(folder, request) else 0
        if request["what"] == "serve":
            serve(folder, request)
    except BaseException:
        import traceback

        with (folder / "faults").open("a") as file:
            traceback.print_exc(file=file)
    finally:
        os._exit(status)


def import_all() -> None:
    """What runs and servers import, so that a fork has it."""
    from jostle.serve import worker

    for name in (
        "jostle.serve.workbench",
        "uvicorn.lifespan.on",
        "uvicorn.loops.auto",
        "uvicorn.protocols.http.h11_impl",
    ):
        import_module(name)
    worker._load()


def at(folder: Path, point: str) -> None:
    """A point at which a process kills itself, where it is armed."""
    try:
        if (folder / "armed").read_text() == point:
            os.unlink(folder / "armed")
            os.kill(os.getpid(), signal.SIGKILL)
    except OSError:
        return


def wrapped(owner: Any, name: str, before: Callable[[], None] | None, after: Callable[[], None] | None) -> None:
    """Calls `before` and `after` around a function of a class or a module."""
    function = getattr(owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before()
        value = function(*args, **kwargs)
        if after is not None:
            after()
        return value

    setattr(owner, name, call)


SERVER = (
    "server: before a run is written", "server: after a run is written", "server: before its process begins",
    "server: after its process began", "server: before an answer is stored", "server: before that is committed",
    "server: after an answer is stored",
)  # fmt: skip
WORKER = (
    "worker: as it begins", "worker: before the charge", "worker: before the charge is committed",
    "worker: after the charge", "worker: after the answer is remembered", "worker: before the answer is written",
    "worker: before it has its name", "worker: after the answer is written",
)  # fmt: skip


def serve(folder: Path, request: Mapping[str, Any]) -> None:
    """The server: that of `jostle serve`, with short seconds and forked runs."""
    import uvicorn

    from jostle.plan.digest import digest
    from jostle.serve import runs as running
    from jostle.serve import worker
    from jostle.serve.routing import Server
    from jostle.serve.runs import Runs
    from jostle.serve.store import Home
    from jostle.serve.workbench import application

    running.MOST_STOPPED = running.MOST_HANDED = 10**9
    known: dict[str, Any] = {}

    def check(program: str, settings: Any, **more: Any) -> Any:
        key = digest(program) if request.get("check") else "one of many that are alike"
        if key not in known:
            known[key] = worker.check({"program": program, "settings": settings, **more}, folder / "home" / "cache")
        return known[key]

    def begin(job: worker.Job) -> None:
        at(folder, "server: before its process begins")
        asked(folder, {"what": "run", "id": Path(job.folder).name, "job": json.loads(running.coded.encode(job)),
                       "noise": request.get("noise", False)})  # fmt: skip
        at(folder, "server: after its process began")

    for name, before, after in (
        ("add_run", SERVER[0], SERVER[1]), ("change_run", SERVER[4], SERVER[6]),
    ):  # fmt: skip
        wrapped(Home, name, lambda p=before: at(folder, p), lambda p=after: at(folder, p))
    note = Home._note

    def noted(self: Home, by: str, did: str, **facts: Any) -> None:
        note(self, by, did, **facts)
        if did == "done":
            at(folder, "server: before that is committed")

    Home._note = noted  # type: ignore[method-assign]
    home = Home(folder / "home", request.get("database", ""))
    runs = Runs(home, check, begin, worker.draw, (float(request["seconds"]),), int(request["places"]))
    uvicorn.run(
        application(Server(home, runs), ["127.0.0.1"]), host="127.0.0.1", port=int(request["port"]), log_level="error",
        access_log=False,
    )  # fmt: skip


def run(folder: Path, request: Mapping[str, Any]) -> bool:
    """The process of a run: that of the worker. Whether it began after its end, and so did nothing."""
    import io

    from jostle.backends.postgres.ledger import LedgerDatabase
    from jostle.privacy.ledger.file import LedgerFile
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.serve import confine, worker
    from jostle.tools.outlet import guarded

    confine._gives_way = lambda *_: None  # to other work on the machine of these tests it would give way too
    job = request["job"]
    own = Path(job["folder"])
    os.chdir(own)
    cache = folder / "home" / "cache" / job["analyst"]
    cache.mkdir(parents=True, exist_ok=True)
    mine = ""
    try:
        mine = (folder / "armed").read_text()
        if mine not in WORKER:
            mine = ""
        else:
            os.unlink(folder / "armed")  # which only one of them can
    except OSError:
        mine = ""

    def point(k: int) -> Callable[[], None]:
        return lambda: os.kill(os.getpid(), signal.SIGKILL) if mine == WORKER[k] else None

    point(0)()
    wrapped(Ledger, "charge", point(1), point(3))
    for store in (LedgerFile, LedgerDatabase):
        wrapped(store, "commit", lambda: point(2)() if armed else None, None)
    armed: list[int] = []
    wrapped(Ledger, "charge", lambda: armed.append(1), armed.clear)
    wrapped(Ledger, "remember", None, point(4))
    wrapped(worker, "leave", point(5), point(7))
    wrapped(worker.os, "fsync", None, point(6))
    sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps({**job, "cache": str(cache)}).encode()))
    return guarded(worker._run) != 0 and time.time() >= float(job["ends_at"])


if __name__ == "__main__":
    parent(Path(sys.argv[1]))
