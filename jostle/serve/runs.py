"""Programs that are handed in: checked, perhaps reviewed, run in a process each, answered at a declared moment.

*When an answer leaves.* A run is accepted with a number of seconds from a short public list. It holds one of a fixed
number of places from then until `answer_at = accepted + seconds`, whenever its process ends, and nothing of it can be
seen before: not that it ended, failed or was stopped. So answers, and what later runs wait for, depend on when programs
were handed in and with which seconds, not on rows. A process that is not done shortly before that moment ends itself,
and the answer is one fixed sentence. Whether it is done may depend on rows, as running time does; `docs/privacy/server`
argues how much that is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from msgspec import json as coded

from jostle.diagnostics import refuse
from jostle.jsontext import digest
from jostle.privacy.ledger.ledger import Ledger
from jostle.records import replace
from jostle.serve.store import Account, Home, Run, new_secret
from jostle.serve.worker import ANSWER, MOST_ANSWER, TRACE, Job

SECONDS = (5.0, 20.0, 60.0, 300.0)
"""What a run may ask for, and the largest of them that it gets where it does not ask."""
USUAL = 20.0
MARGIN = 0.5
"""Seconds before the answer leaves at which a process ends itself: what writing and reading an answer take."""
MOST_PROGRAM = 64 * 1024  # characters
CHECK_SECONDS = 10.0
STOPPED = {"ok": False, "error": {
    "kind": "Stopped", "message": "the run did not end before its deadline; what was charged stays charged",
    "help": "run it again with more seconds: what had been answered is given again, free",
}}  # fmt: skip

Launch = Callable[[Job], None]


def launch(job: Job) -> None:
    """Starts the process of a run, which outlives this one. Its environment has nothing of the server's."""
    environment = _environment(Path(job.folder))
    process = subprocess.Popen(
        [sys.executable, "-m", "jostle.serve.worker", "run"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=environment, cwd=Path(job.folder) / "empty", start_new_session=True,
    )  # fmt: skip
    _fed(process.stdin).write(coded.encode(job))
    _fed(process.stdin).close()
    threading.Thread(target=process.wait, daemon=True).start()


def _environment(folder: Path) -> dict[str, str]:
    package, cache = str(Path(__file__).resolve().parents[2]), folder.parents[1] / "cache" / "shared"
    cache.mkdir(parents=True, exist_ok=True)
    inherited = ("PATH", "LANG", "OPENBLAS_CORETYPE", "JOSTLE_MEMORY", "SSL_CERT_FILE")
    return {
        **{name: os.environ[name] for name in inherited if name in os.environ},
        "HOME": str(folder), "XDG_CACHE_HOME": str(cache), "TMPDIR": str(folder / "scratch"), "PYTHONPATH": package,
        "PYTHONDONTWRITEBYTECODE": "1", "JOSTLE_LEDGER": "/dev/null/none",
    }  # fmt: skip


def _fed(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise refuse("DataError", "a process has no standard input")
    return pipe


class Checker:
    """Checks programs in one confined process, one after the other; one that takes too long ends with it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, program: str, settings: Mapping[str, str]) -> dict[str, Any]:
        with self._lock:
            process = self._started()
            timer = threading.Timer(CHECK_SECONDS, process.kill)
            timer.start()
            try:
                request = json.dumps({"program": program, "settings": dict(settings)}).encode()
                _fed(process.stdin).write(request + b"\n")
                _fed(process.stdin).flush()
                line = _fed(process.stdout).readline()
                answer: dict[str, Any] = json.loads(line)
                return answer
            except (OSError, ValueError):
                self._process = None
                error = {
                    "kind": "ValueError",
                    "message": "the program cannot be checked in time",
                    "help": "make it simpler",
                }
                return {"ok": False, "errors": [error], "cost": []}
            finally:
                timer.cancel()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            empty = self._folder / "runs" / "checks" / "empty"
            empty.mkdir(parents=True, exist_ok=True)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jostle.serve.worker", "check"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=_environment(empty.parent), cwd=empty, start_new_session=True,
            )  # fmt: skip
        return self._process


class Runs:
    """The runs of a server. `places` is how many go on at once, half of them at most of one analyst."""

    def __init__(
        self, home: Home, check: Callable[[str, Mapping[str, str]], dict[str, Any]], start: Launch = launch,
        seconds: Sequence[float] = SECONDS, places: int = 2 * (os.cpu_count() or 1),
    ) -> None:  # fmt: skip
        self.home, self.check, self.start, self.seconds, self.places = home, check, start, tuple(seconds), places
        self._lock = threading.Lock()

    def submit(self, who: Account, program: str, settings: Mapping[str, str], seconds: float | None) -> Run:
        """Accepts a program, or puts it aside for review; refuses what a check refuses. Nothing is opened."""
        if len(program) > MOST_PROGRAM or len(json.dumps(dict(settings))) > MOST_PROGRAM:
            raise refuse("ValueError", "the program is too long", help=f"up to {MOST_PROGRAM} characters")
        usual = max((one for one in self.seconds if one <= USUAL), default=self.seconds[0])
        seconds = usual if seconds is None else seconds
        if seconds not in self.seconds:
            raise refuse("ValueError", f"a run takes {', '.join(f'{one:g}' for one in self.seconds)} seconds")
        checked = self.check(program, settings)
        waits = self._needs_review(who.name)
        now = time.time()
        state = "waiting" if waits and checked["ok"] else "running"
        run = Run(new_secret()[:32], who.name, program, dict(settings), state, seconds, now, now + seconds,
                  checked["cost"], "", "", "")  # fmt: skip
        if not checked["ok"]:
            run = replace(run, state="done", answer_at=now, document=json.dumps(
                {"ok": False, "error": checked["errors"][0], "errors": checked["errors"], "released": {}, "budget": {}}
            ))  # fmt: skip
            self.home.add_run(run)
            return run
        with self._lock:
            if not waits:
                self._need_place(who.name)
            self.home.add_run(run)
        if not waits:
            self._start(run)
        return run

    def review(self, who: Account, id: str, approve: bool, note: str) -> Run:
        """Approves a program that waits, which then runs as it stands, or refuses it."""
        run = next(iter(self.home.runs("id = ? AND state = 'waiting'", id)), None)
        if run is None or run.account == who.name:
            raise refuse("DataError", "no such program waits for you")
        if len(note) > 2000:
            raise refuse("ValueError", "the note is too long")
        now = time.time()
        state = "running" if approve else "refused"
        after = replace(run, state=state, note=note, reviewer=who.name, accepted=now, answer_at=now + run.seconds)
        with self._lock:
            if approve:
                self._need_place(run.account)
            if not self.home.change_run(after, "waiting", who.name, review="approved" if approve else "refused"):
                raise refuse("DataError", "no such program waits for you")
        if approve:
            self._start(after)
        return after

    def visible(self, run: Run) -> Run:
        """A run as it may be seen now: what is over but for its moment is running."""
        if run.state == "running" and time.time() >= run.answer_at:
            return self._over(run)
        return run

    def _start(self, run: Run) -> None:
        folder = self.folder(run)
        for name in ("empty", "scratch"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        try:
            self.start(
                Job(run.program, run.settings, run.account, self.home.ledger, str(folder), run.answer_at - MARGIN)
            )
        except OSError:
            return  # there will be no answer, and a run that does not begin charges nothing

    def _over(self, run: Run) -> Run:
        """Takes a run's answer into the store, and its charges into the log, once."""
        path, answer = self.folder(run) / ANSWER, {"document": json.dumps(STOPPED), "charges": {}}
        try:
            if path.stat().st_size <= MOST_ANSWER:
                answer = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            (self.folder(run) / TRACE).unlink(missing_ok=True)  # how far it came may depend on rows
        done = replace(run, state="done", document=str(answer["document"]))
        facts = {"answer": digest(done.document), "charges": answer["charges"]}
        if self.home.change_run(done, "running", run.account, **facts):
            shutil.rmtree(self.folder(run) / "scratch", ignore_errors=True)
        return done

    def folder(self, run: Run) -> Path:
        return self.home.folder / "runs" / run.id

    def _needs_review(self, analyst: str) -> bool:
        """Whether some grant of the analyst is reviewed: which of them a program will use is not known before."""
        reviewed = {name.rpartition("@")[2] for name in self.home.reviewed()}
        return analyst in reviewed

    def _need_place(self, analyst: str) -> None:
        going = self.home.runs("state = 'running' AND answer_at > ?", time.time())
        mine = [run for run in going if run.account == analyst]
        if len(going) >= self.places or len(mine) >= max(1, self.places // 2):
            first = min(run.answer_at for run in (mine if len(mine) >= max(1, self.places // 2) else going))
            wait = max(1, round(first - time.time() + 0.5))
            raise refuse("Busy", "all places for runs are taken", help=f"try again in {wait} seconds")


def granted(ledger: Ledger, analyst: str) -> list[tuple[Any, Any]]:
    """An analyst's grants, each with its dataset."""
    datasets = {dataset.terms.name: dataset for dataset in (ledger.datasets() if ledger.store.exists() else [])}
    mine = [d for name, d in datasets.items() if d.terms.within and name == f"{d.terms.within}@{analyst}"]
    return [(datasets[grant.terms.within], grant) for grant in mine]
