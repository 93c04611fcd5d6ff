"""Programs that are handed in: checked, perhaps reviewed, run in a process each, answered at a declared moment.

*When an answer leaves.* A run is accepted with a number of seconds from a short public list. It holds one of a fixed
number of places from then until `answer_at = accepted + seconds`, whenever its process ends, and nothing of it can be
seen before: not that it ended, failed or was stopped, nor what it has charged. So answers, and what later runs wait
for, depend on when programs were handed in and with which seconds, not on rows. An analyst has one run at a time: a
second one of the same grant would see when the first one charges, by its own charges. A process that is not done
shortly before that moment ends itself, and the answer is one fixed sentence. Whether it is done may depend on rows, as
running time does; so there are few of these in a week. `docs/privacy/server` argues how much that is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from msgspec import json as coded

from jostle.diagnostics import refuse
from jostle.plan.digest import digest
from jostle.privacy.ledger.grants import live
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.ledger.store import MINUTE, Dataset
from jostle.records import replace
from jostle.resources import Json
from jostle.serve import worker
from jostle.serve.store import DAY, Account, Home, Run, Total, new_secret, older
from jostle.serve.worker import ANSWER, MOST_ANSWER, TRACE, WHOLE, Job, clauses, own_environment

SECONDS = (5.0, 20.0, 60.0, 300.0)
"""What a run may ask for, and the largest of them that it gets where it does not ask."""
USUAL = 20.0
MARGIN = 0.5
"""Seconds before the answer leaves at which a process ends itself: what writing and reading an answer take."""
MOST_PROGRAM = 64 * 1024  # characters
CHECK_SECONDS, MOST_CHECKS, CHECKS_OF_ONE = 10.0, 12, 3
STARTS_WITHIN = 60.0
"""How long a check may take, and the process that forks them to start; how many go on: of all, and of one account."""
MOST_STOPPED, MOST_HANDED = 10, 2000
"""Of an analyst in a week: runs that did not end before their deadlines, and programs that were handed in."""
MOST_LARGE = 2 * 2**30
"""Bytes of an analyst's answers of a week that are too large to be shown; whoever has more hands nothing in."""
GONE = ".gone"
OF_SERVER = "-server"  # a cache; analysts' names begin with a letter
SIMULATION, SIMULATED = 60.0, "simulated"
"""Seconds that a simulation for a reviewer may take, and the folder of its answer within that of its run."""
MOST_WAITING = 20  # programs of one analyst
DECISIONS = ("approved", "refused", "returned")
STOPPED = {"ok": False, "error": {
    "kind": "Stopped", "message": "the run did not end before its deadline; what was charged stays charged",
    "help": "run it again with more seconds: what had been answered is given again, free",
}}  # fmt: skip

Launch = Callable[[Job], None]
_NAMED = re.compile(r'dataset\(\s*"([^"\\]*)"')


class Launcher:
    """Starts a process for each run, which outlives this one, each text that is checked and each trace that is drawn:
    a fork of one that has loaded what these need, and that has nothing of the server's. It reads what it is to do from
    a socket of its own, which closes when it ends. So none waits for another's."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def __call__(self, job: Job) -> None:
        job = replace(job, cache=str(_cache(Path(job.folder), job.analyst)))
        threading.Thread(target=_followed, args=(self._fork(), job), daemon=True).start()

    def check(self, program: str, settings: Mapping[str, str], **more: object) -> dict[str, object]:
        """What `worker.check` says; a refusal where that takes longer than `CHECK_SECONDS`."""
        try:
            request = json.dumps({"program": program, "settings": dict(settings), **more})
            return dict(json.loads(self._answer(CHECK_SECONDS, request=request)))
        except (OSError, ValueError):
            message = "the program cannot be checked in time"
            error = {"kind": "ValueError", "message": message, "help": "make it simpler"}
            return {"ok": False, "errors": [error], "cost": []}

    def draw(self, of: Path, name: str) -> None:
        """Draws what a trace shows into its folder: what that takes is up to who wrote the program."""
        with suppress(OSError):
            self._answer(worker.DRAWS_WITHIN, trace=str(of), name=name)

    def _answer(self, seconds: float, **what: str) -> bytes:
        """What a fork answers that ends within so many seconds; nothing where it was ended."""
        empty = self._folder / "runs" / "checks" / "empty"
        empty.mkdir(parents=True, exist_ok=True)
        cache = str(_cache(empty, OF_SERVER))
        with self._fork() as place:
            place.settimeout(seconds + STARTS_WITHIN)
            place.sendall(coded.encode(worker.Question(str(empty), cache, seconds, **what)))
            place.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: place.recv(2**16), b""))

    def _fork(self) -> socket.socket:
        """The socket of a new one."""
        mine, its = socket.socketpair()
        with its, self._lock:
            try:
                socket.send_fds(self._started(), [b"."], [its.fileno()])
            except OSError:  # it was killed
                self.close()
                socket.send_fds(self._started(), [b"."], [its.fileno()])
        return mine

    def begin(self) -> None:
        """Starts the process before anybody asks."""
        with self._lock:
            self._started()

    def close(self) -> None:
        """Ends it; runs go on."""
        if self._process is not None and self._control is not None:
            self._control.close()
            self._process.kill()
            self._process.wait()
        self._process = self._control = None

    def _started(self) -> socket.socket:
        if self._control is None:
            self._control, its = socket.socketpair()
            empty, nowhere = self._folder / "runs" / "forks" / "empty", subprocess.DEVNULL
            empty.mkdir(parents=True, exist_ok=True)
            words, environment = [sys.executable, "-m", "jostle.serve.worker"], _environment(empty.parent)
            with its:
                self._process = subprocess.Popen(
                    words,
                    stdin=its.fileno(),
                    stdout=nowhere,
                    stderr=nowhere,
                    cwd=empty,
                    env=environment,
                    start_new_session=True,
                )
        return self._control


def _followed(place: socket.socket, job: Job) -> None:
    """Hands a job over, and tidies when its process has ended, and not when its answer leaves: how much it wrote to the
    disk depends on rows."""
    with place, suppress(OSError):
        place.sendall(coded.encode(job))
        place.shutdown(socket.SHUT_WR)
        while place.recv(4096):
            pass
    shutil.rmtree(Path(job.folder) / "scratch", ignore_errors=True)


def _discard(folder: Path) -> None:
    """Takes a folder away at once; removing what is in it takes as long as there is much, and nobody waits for that."""
    gone = folder.with_suffix(GONE)
    with suppress(OSError):
        folder.rename(gone)
    threading.Thread(target=shutil.rmtree, args=(gone, True), daemon=True).start()


def _cache(folder: Path, whose: str) -> Path:
    """Each analyst has a cache of their own, which begins with what the server's has: what one process wrote there no
    other's reads."""
    caches = next(one for one in folder.parents if one.name == "runs").parent / "cache"
    if not (caches / whose).exists():
        (caches / OF_SERVER).mkdir(parents=True, exist_ok=True)
        shutil.copytree(caches / OF_SERVER, caches / whose / "jostle", dirs_exist_ok=True)
    return caches / whose


def _environment(folder: Path) -> dict[str, str]:
    inherited = ("PATH", "LANG", "OPENBLAS_CORETYPE", "JOSTLE_MEMORY", "SSL_CERT_FILE")
    package, cache = str(Path(__file__).resolve().parents[2]), str(_cache(folder, OF_SERVER))
    return {
        **{name: os.environ[name] for name in inherited if name in os.environ},
        **own_environment(folder, cache), "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip


def _login() -> dict[str, str]:
    """What a driver of PostgreSQL looks for: a run has a home of its own, and none of the server's environment."""
    passwords = Path.home() / ".pgpass"
    return {
        **({"PGPASSFILE": str(passwords)} if passwords.exists() else {}),
        **{name: value for name, value in os.environ.items() if name.startswith("PG")},
    }


class Runs:
    """The runs of a server. `places` is how many go on at once, one of each analyst at most."""

    def __init__(
        self, home: Home, check: Callable[..., dict[str, object]], start: Launch, draw: Callable[[Path, str], None],
        seconds: Sequence[float] = SECONDS, places: int = 2 * (os.cpu_count() or 1), public: str = "",
        engine: str = "", ledger: str | None = None,
    ) -> None:  # fmt: skip
        """What `check` and `draw` take is up to who wrote a program: a server's are a launcher's, in processes of their
        own. `ledger` is how processes of runs open the ledger, where that is not as the server does."""
        self.public, self.engine, self.ledger = public, engine, ledger or home.ledger
        self.home, self.check, self.start = home, check, start
        self.seconds, self.places, self._draw = tuple(seconds), places, draw
        self._lock, self._checking = threading.Lock(), list[str]()
        self._entries, self._followed = dict[str, int](), 0  # how long histories were by so much of the log
        for folder in (home.folder / "runs").glob(f"*{GONE}"):  # the server was killed before they were removed
            shutil.rmtree(folder, ignore_errors=True)

    def checked(self, who: str, program: str, settings: Mapping[str, str], **more: object) -> dict[str, Json]:
        """What `check` says, with what is published of their data. Refused where too many wait for it, so that nobody
        keeps the others waiting for long."""
        with self._one_of_few(who, CHECKS_OF_ONE):
            return self.check(program, settings, facts=self.facts(who), public=self.public, **more)

    @contextmanager
    def _one_of_few(self, who: str, most: int) -> Iterator[None]:
        with self._lock:
            if len(self._checking) >= MOST_CHECKS or self._checking.count(who) >= most:
                raise refuse("Busy", "too many programs are being checked", help="try again in some seconds")
            self._checking.append(who)
        try:
            yield
        finally:
            with self._lock:
                self._checking.remove(who)

    @property
    def usual(self) -> float:
        return max((one for one in self.seconds if one <= USUAL), default=self.seconds[0])

    def submit(self, who: Account, program: str, settings: Mapping[str, str], seconds: float | None) -> Run:
        """Accepts a program, or puts it aside for review; refuses what a check refuses. Nothing is opened."""
        if len(program) > MOST_PROGRAM or len(json.dumps(dict(settings))) > MOST_PROGRAM:
            raise refuse("ValueError", "the program is too long", help=f"up to {MOST_PROGRAM} characters")
        seconds = self.usual if seconds is None else seconds
        if seconds not in self.seconds:
            raise refuse("ValueError", f"a run takes {', '.join(f'{one:g}' for one in self.seconds)} seconds")
        self._need_week(who.name)
        checked = self.checked(who.name, program, settings)
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
        with self.home.alone():
            self._need_place(who.name, waits)
            if waits and len(self.home.runs("state = 'waiting' AND account = ?", who.name, brief=True)) >= MOST_WAITING:
                raise refuse("Busy", f"{MOST_WAITING} programs of yours wait for a reviewer", help="ask the reviewer")
            self.home.add_run(run, None if waits else self._totals(who.name))
        if waits:
            rehearsal = replace(run, id=f"{run.id}/{SIMULATED}", answer_at=now + SIMULATION)
            self._start(rehearsal, self.facts(who.name))
        else:
            self._start(run)
        return run

    def facts(self, analyst: str) -> dict[str, str]:
        """What is published of the data that an analyst has grants on."""
        return {data.terms.name: clauses(data, one) for data, one in granted(Ledger(self.home.ledger), analyst)}

    def simulation(self, run: Run) -> dict[str, object] | None:
        """What a program that waits gave on simulated rows; None where it has not ended, or did not end in time."""
        try:
            return dict(json.loads(json.loads((self.folder(run) / SIMULATED / ANSWER).read_bytes())["document"]))
        except (OSError, ValueError):
            return None

    def review(self, who: Account, id: str, decision: str, note: str, digest_: str = "") -> Run:
        """Approves a program that waits, which then runs as it stands, refuses it, or sends it back to be changed.

        `digest_` is that of the text which was read: a decision on another text is none.
        """
        if decision not in DECISIONS:
            raise refuse("ValueError", f"a decision is one of {', '.join(DECISIONS)}")
        approve = decision == "approved"
        run = next(iter(self.home.runs("id = ? AND state = 'waiting'", id)), None)
        if run is None or run.account == who.name:
            raise refuse("DataError", "no such program waits for you")
        if digest_ and digest_ != digest(run.program):
            raise refuse("DataError", "this is not the text of the program that waits", help="reload the page")
        if len(note) > 2000:
            raise refuse("ValueError", "the note is too long")
        now = time.time()
        state = "running" if approve else decision
        after = replace(run, state=state, note=note, reviewer=who.name, accepted=now, answer_at=now + run.seconds)
        with self.home.alone():
            if approve:
                self._need_place(run.account)
            totals = self._totals(run.account) if approve else None
            if not self.home.change_run(after, "waiting", who.name, totals, review=decision):
                raise refuse("DataError", "no such program waits for you")
        if approve:
            self._start(after)
        return after

    def visible(self, run: Run) -> Run:
        """A run as it may be seen now: what is over but for its moment is running."""
        if run.state == "running" and time.time() >= run.answer_at:
            return self._over(run)
        return run

    def _start(self, run: Run, facts: dict[str, str] | None = None) -> None:
        """Starts the process of a run or, with `facts`, of a simulation."""
        folder = self.folder(run)
        for name in ("empty", "scratch"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        try:
            began = max(datetime.fromtimestamp(run.accepted, UTC).strftime(MINUTE), self.home.latest())
            mine = granted(Ledger(self.home.ledger), run.account)
            reviewed = self.home.reviewed() if not run.reviewer else set()  # asked after the grants, which come later
            names = tuple(data.terms.name for data, grant in mine if grant.terms.name not in reviewed)
            engine = self._engine_of(run, mine)
            job = Job(run.program, run.settings, run.account, self.ledger, str(folder), run.answer_at - MARGIN,
                      began=began, facts=facts, public=self.public, engine=engine, granted=names)  # fmt: skip
            self.start(replace(job, login=_login()) if job.on_server or job.engine else job)
        except OSError:
            return  # there will be no answer, and a run that does not begin charges nothing

    def _engine_of(self, run: Run, mine: Sequence[tuple[Dataset, Dataset]]) -> str:
        """The server of the data that a program names, where these are tables of one."""
        tables = {data.terms.name for data, _ in mine if data.terms.server}
        return self.engine if tables.intersection(_NAMED.findall(run.program)) else ""

    def _over(self, run: Run) -> Run:
        """Takes a run's answer into the store, and its charges into the log, once."""
        path = self.folder(run) / ANSWER
        answer: dict[str, Json] = {"document": json.dumps(STOPPED), "charges": {}}
        try:
            if path.stat().st_size <= MOST_ANSWER:
                answer = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            with suppress(OSError):  # what it calculated and kept too
                (self.home.folder / "cache" / run.account).rename(self.folder(run) / "cache")
            _discard(self.folder(run))  # how far it came may depend on rows
        if (self.folder(run) / WHOLE).exists():
            self.whole(run).parent.mkdir(parents=True, exist_ok=True)
            (self.folder(run) / WHOLE).replace(self.whole(run))
        text = str(answer["document"]).encode(errors="backslashreplace").decode()  # JSON, so that these are its escapes
        done = replace(run, state="done", document=text)
        self.home.change_run(done, "running", run.account, answer=digest(done.document), charges=answer["charges"])
        return done

    def pictures(self, run: Run) -> list[str] | None:
        """The titles of a run's pictures; None where there is no trace of it that can be shown."""
        path = self.folder(run) / TRACE
        if run.state != "done" or not path.exists() or path.stat().st_size > MOST_ANSWER:
            return None
        lines = (line for line in path.read_bytes().split(b"\n") if b'"kind": "picture"' in line)
        try:
            return [str(json.loads(line)["name"]) for line in islice(lines, worker.MOST_PICTURES)]
        except (LookupError, TypeError, ValueError):
            return None

    def drawing(self, run: Run, name: str, who: Account, within: str = "") -> str | None:
        """What the trace of a run that is over shows, or that of its simulation; None where it cannot be shown."""
        folder = self.folder(run) / within
        if (run.state != "done" and not within) or not (folder / TRACE).exists():
            return None
        place = folder / name
        if not place.exists() and (folder / TRACE).stat().st_size <= MOST_ANSWER:
            with self._one_of_few(f"{who.name} sees", MOST_CHECKS // 2):
                self._draw(folder, name)
        return place.read_text(encoding="utf-8") if place.exists() and place.stat().st_size <= MOST_ANSWER else None

    def folder(self, run: Run) -> Path:
        return self.home.folder / "runs" / run.id

    def whole(self, run: Run) -> Path:
        """The file of an answer that is too large to be shown, for a week."""
        return self.home.folder / "answers" / run.account / f"{run.id}.json"

    def _needs_review(self, analyst: str) -> bool:
        """Whether some grant of the analyst is reviewed: which of them a program will use is not known before. One that
        has ended, or never came to be, opens nothing."""
        reviewed = self.home.reviewed()
        return any(g.terms.name in reviewed and live(g) for _, g in granted(Ledger(self.home.ledger), analyst))

    def _need_place(self, analyst: str, simulates: bool = False) -> None:
        if not self.home.is_open(analyst):
            raise refuse("DataError", f"the account of `{analyst}` is closed", help="an owner opens it again")
        now = time.time()
        if simulates:
            waiting = self.home.runs("state = 'waiting' AND accepted > ?", now - SIMULATION, brief=True)
            going = [replace(r, answer_at=r.accepted + SIMULATION) for r in waiting if self.simulation(r) is None]
        else:
            going = self.home.runs("state = 'running' AND answer_at > ?", now, brief=True)
        mine = [run for run in going if run.account == analyst]
        if mine or len(going) >= self.places:
            wait = max(1, round(min(run.answer_at for run in mine or going) - now + 0.5))
            what = "simulation" if simulates else "run"
            why = f"your last {what} is under way: one at a time" if mine else f"all places for {what}s are taken"
            raise refuse("Busy", why, help=f"try again in {wait} seconds")

    def _need_week(self, analyst: str) -> None:
        """Refuses who handed in too much in the last seven days, or whose runs were stopped too often."""
        since = time.time() - 7 * DAY
        for run in self.home.runs("account = ? AND state = 'running' AND answer_at <= ?", analyst, time.time()):
            self._over(run)
        handed, stopped = self.home.counts(analyst, since, json.dumps(STOPPED))
        if stopped >= MOST_STOPPED:
            help = "ask for more seconds, or for less; each is forgotten after seven days"
            raise refuse("Busy", f"{stopped} of your runs in a week did not end before their deadlines", help=help)
        if handed >= MOST_HANDED:
            raise refuse("Busy", f"{handed} programs in a week are enough", help="each is forgotten after seven days")
        large = 0
        for place in (self.home.folder / "answers" / analyst).glob("*.json"):
            with suppress(OSError):  # another server may have removed it
                if place.stat().st_mtime < since:
                    place.unlink()
                else:
                    large += place.stat().st_size
        if large > MOST_LARGE:
            help = "each is forgotten after seven days; release less"
            raise refuse("Busy", f"your large answers of a week have {large / 2**20:,.0f} MB", help=help)

    def _totals(self, analyst: str) -> dict[str, Total]:
        for number, text in self.home.log_after(self._followed):  # other processes write it too
            self._followed = number
            for name, links in json.loads(text).get("charges", {}).items():
                self._entries[name] = max([self._entries.get(name, 0), *(number for number, _ in links)])
        pairs = granted(Ledger(self.home.ledger), analyst)  # read after the log
        if any(one.state.entries < self._entries.get(one.terms.name, 0) for pair in pairs for one in pair):
            raise older("ledger")
        return {one.terms.name: (list(one.state.spent), one.state.entries) for pair in pairs for one in pair}

    def datasets(self, who: Account) -> list[Dataset]:
        """The datasets and grants of the ledger. But for owners, who hold the data, they are as they were before the
        runs whose answers have not left."""
        ledger = Ledger(self.home.ledger)
        datasets = ledger.datasets() if ledger.store.exists() else []
        before = {} if who.role == "owner" else self.home.totals()
        later: dict[str, list[tuple[int, ...]]] = {}  # what the grants of these runs took since, by name
        for one in datasets:
            if one.terms.within and one.terms.name in before:
                total = before[one.terms.name][0]
                since = tuple(a - b for a, b in zip(one.state.spent, total, strict=True))
                for name in (one.terms.name, one.terms.within):
                    later.setdefault(name, []).append(since)
        return [as_before(one, later.get(one.terms.name, ())) for one in datasets]


def as_before(dataset: Dataset, later: Sequence[tuple[int, ...]]) -> Dataset:
    """A dataset or a grant without what was charged on it later."""
    spent = tuple(a - sum(of_place) for a, *of_place in zip(dataset.state.spent, *later, strict=True))
    return replace(dataset, state=replace(dataset.state, spent=spent))


def granted(ledger: Ledger, analyst: str) -> list[tuple[Dataset, Dataset]]:
    """An analyst's grants, each with its dataset."""
    return pairs(ledger.datasets() if ledger.store.exists() else [], analyst)


def pairs(datasets: Sequence[Dataset], analyst: str) -> list[tuple[Dataset, Dataset]]:
    """Of these, an analyst's grants, each with its dataset."""
    by_name = {dataset.terms.name: dataset for dataset in datasets}
    mine = [d for name, d in by_name.items() if d.terms.within and name == f"{d.terms.within}@{analyst}"]
    return [(by_name[grant.terms.within], grant) for grant in mine]
