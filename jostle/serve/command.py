"""`jostle serve`: starts the server, makes the first owner, and verifies a log."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from jostle import resources
from jostle.accounting.amounts import QUANTA, Amount
from jostle.backends.remote import VARIABLE
from jostle.diagnostics import Refusal, refuse
from jostle.serve.store import Home, kept_secret, verify
from jostle.source import Source

EXAMPLE_PASSWORD = "example-password"
CLOCKS_APART = 0.3  # seconds: less than those at which a process ends before its answer leaves


def command(options: Namespace) -> int:
    """Serves until it is stopped; with `--verify` tests a log, with `--check` a home, with `--backup` copies one."""
    if options.verify is not None:
        return _verify(options)
    try:
        import argon2  # noqa: F401
        import jinja2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise refuse("DataError", "a server needs packages", help='pip install "jostle[serve]"') from None
    if options.check or options.backup:
        home = Home(Path(options.home), options.ledger or "")
        return _check(home) if options.check else _back_up(home, Path(options.backup))
    from jostle.serve.runs import OF_SERVER

    https = bool(options.certificate) or options.behind_proxy
    if not (https or _loopback(options.host)):
        help = "--certificate FILE --key FILE, or --behind-proxy where something else does TLS"
        raise refuse("DataError", "passwords do not leave this machine without TLS", help=help)
    if options.identity and not options.behind_proxy:
        raise refuse("DataError", "only a proxy says who somebody is", help="--behind-proxy")
    passing = options.example or options.playground
    folder = Path(tempfile.mkdtemp(prefix="jostle-")) if passing else Path(options.home)
    home = Home(folder, options.ledger or "")
    _fill_cache(home.folder / "cache" / OF_SERVER)
    try:
        _need_clock(home)
        _need_agreement(home)
        address = f"{'https' if options.certificate else 'http'}://{_in_url(options.host)}:{options.port}"
        public = str(resources.folder("programs").resolve()) if options.playground else ""
        with _listening(options) as place:
            _begin(home, address, options)
            home.close()
            _workers(options.workers, lambda: _serve(options, folder, public, place))
    finally:
        if passing:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _listening(options: Namespace) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:  # of a number that no port has
        why = getattr(error, "strerror", "") or "it is no port"
        help = "another --port"
        raise refuse("DataError", f"cannot listen at {options.host}, port {options.port}: {why}", help=help) from None


def _workers(number: int, work: Callable[[], None]) -> None:
    """Works in this process; or in so many, which share a home and a port, and are started again where one ends."""
    if number <= 1:
        work()
        return

    def begin() -> int:
        if (pid := os.fork()) == 0:
            for one in (signal.SIGTERM, signal.SIGINT):
                signal.signal(one, signal.SIG_DFL)
            with suppress(BaseException):
                work()
            os._exit(0)
        return pid

    def end(number: int, _: object) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        raise SystemExit(128 + number)

    pids = {begin() for _ in range(number)}
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, end)
    while True:
        ended, _ = os.wait()
        pids.discard(ended)
        time.sleep(1.0)  # one that cannot begin does not keep a core
        pids.add(begin())


def _serve(options: Namespace, folder: Path, public: str, place: socket.socket) -> None:
    """Answers requests until the process is stopped."""
    import uvicorn

    from jostle.serve.routing import Server
    from jostle.serve.runs import Launcher, Runs
    from jostle.serve.workbench import application

    home = Home(folder, options.ledger or "")
    launcher = Launcher(home.folder)
    try:
        threading.Thread(target=launcher.begin, daemon=True).start()
        https = bool(options.certificate) or options.behind_proxy
        logs = not (options.playground or options.example)
        engine = "" if options.playground else options.engine or os.environ.get(VARIABLE, "")
        its = (home, launcher.check, launcher, launcher.draw)
        runs = Runs(*its, public=public, engine=engine, ledger=options.ledger_of_runs)
        server = Server(
            home, runs, https, options.example, log=logs,
            identity=options.identity.lower(), domain=options.domain.lower(), proof=_proof(home, options),
        )  # fmt: skip
        hosts = ["localhost", "127.0.0.1", "[::1]", _in_url(options.host), *options.name]
        config = uvicorn.Config(
            application(server, hosts), ssl_certfile=options.certificate,
            ssl_keyfile=options.key, proxy_headers=options.behind_proxy, server_header=False, log_level="warning",
            access_log=False, timeout_keep_alive=10, limit_concurrency=MOST_CONNECTIONS, ws="none",
            h11_max_incomplete_event_size=32 * 1024,
            http=protocol(of_address=MOST_CONNECTIONS if options.behind_proxy else OF_ADDRESS),
        )  # fmt: skip
        uvicorn.Server(config).run([place])
    finally:
        launcher.close()
        home.close()


def _need_clock(home: Home) -> str:
    """Refuses a clock that is not the database's: answers leave at their moments by the clocks of all servers."""
    if abs(ahead := home.clock_ahead()) > CLOCKS_APART:
        help = "set both by NTP: answers leave at their moments by them"
        raise refuse("DataError", f"this machine's clock and the database's are {abs(ahead):.1f} s apart", help=help)
    return "the clock is the database's"


def _need_agreement(home: Home) -> int:
    """Refuses where the ledger does not have the last charges of answers that were given; else, how many these are. The
    log has them, and the answers in the folder, which is no part of a database that was restored."""
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.serve.worker import ANSWER

    ledger, histories, links = Ledger(home.ledger), dict[str, dict[int, str]](), set[tuple[str, int, str]]()
    answers = (json.loads(path.read_bytes()) for path in (home.folder / "runs").glob(f"*/{ANSWER}"))
    for content in chain((entry["content"] for entry in home.audit()), answers):
        charges = content.get("charges", {})
        links |= {(name, number, hash) for name, of_name in charges.items() for number, hash in of_name}
    for name, number, hash in links:
        if name not in histories:
            there = ledger.datasets() if ledger.store.exists() else []
            history = ledger.history(name) if name in {one.terms.name for one in there} else []
            histories[name] = {one.number: one.hash for one in history}
        if histories[name].get(number) != hash:
            help = "an older copy would forget what was spent: put the last ledger back, with the store of the server"
            raise refuse("LedgerError", f"the ledger lacks charges on `{name}` of answers that were given", help=help)
    return len(links)


def _check(home: Home) -> int:
    """What holds of a home, a line each; 1 where something does not. It reads, beside a server too."""
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.tools.data import verify as verify_history

    def folder() -> str:
        if home.folder.stat().st_mode & 0o077:
            raise refuse("DataError", f"others can read `{home.folder}`", help=f"chmod go= {home.folder}")
        return "only its user can read the folder"

    def histories() -> str:
        ledger = Ledger(home.ledger)
        names = [one.terms.name for one in ledger.datasets()] if ledger.store.exists() else []
        return f"histories hold: {len(names)}, with {sum(verify_history(ledger, one).entries for one in names)} entries"

    def data() -> str:
        ledger = Ledger(home.ledger)
        names = [one.terms.name for one in ledger.datasets() if one.terms.path] if ledger.store.exists() else []
        for name in names:
            ledger.open(name)  # a home that was restored elsewhere has them at another path
        return f"files are as they were registered: {len(names)}"

    def walls() -> str:
        code = "from jostle.serve.confine import *; print(*confine([], [], 9.0, 8 * GIGABYTE), sep=' and ')"
        lacking = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        if lacking.returncode or lacking.stdout.strip():
            why = f"without {lacking.stdout.strip() or 'limits'}"
            raise refuse("DataError", f"runs are confined {why}", help="Linux 5.13 or later, with user namespaces")
        return "runs are confined: files, network, memory, time"

    wrong = 0
    for step in (
        folder, histories, data, lambda: "the log holds: {} entries, up to {}".format(*verify(home.audit())),
        lambda: f"last charges of answers that were given, all in the ledger: {_need_agreement(home)}",
        *([lambda: _need_clock(home)] if home.on_server else []), walls,
    ):  # fmt: skip
        try:
            print(f"good   {step()}")
        except Refusal as refusal:
            wrong += 1
            print(f"wrong  {refusal.first.message}. {refusal.first.help}")
    return min(wrong, 1)


def _back_up(home: Home, to: Path) -> int:
    """Copies a home but its data, while it is used: answers first and the ledger last, which so has all charges."""
    import sqlite3

    def copy(file: Path) -> None:
        (to / file.parent.relative_to(home.folder)).mkdir(parents=True, exist_ok=True, mode=0o700)
        if file.is_file():
            there = to / file.relative_to(home.folder)
            os.close(os.open(there, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(file)) as one, closing(sqlite3.connect(there)) as other:
                one.backup(other)

    if to.exists():
        raise refuse("DataError", f"`{to}` is there already", help="give the name of a new folder")
    copy(home.folder / "serve.db")
    for place, folders, files in os.walk(home.folder / "runs"):  # what goes meanwhile is not missed
        folders[:] = (one for one in folders if one not in ("scratch", "empty", "checks", "forks"))
        there = to / Path(place).relative_to(home.folder)
        there.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in files:
            with suppress(FileNotFoundError):
                shutil.copy2(Path(place, name), there / name)
    copy(home.folder / "ledger" / "ledger.db")
    print(f"copied to {to}, without the folder `data`: put that beside it, and serve it with --home")
    if home.on_server:
        print("its database holds the rest: now pg_dump --schema=jostle_ledger --schema=jostle_store")
    return 0


MOST_CONNECTIONS, OF_ADDRESS = 500, 200
"""Of all, and of one address or network; a proxy has all of them."""
TAKEN = 64 * 1024
"""Bytes of an answer that a client takes in the time after which a connection is looked at again."""


def protocol(seconds: float = 20.0, of_address: int = OF_ADDRESS) -> type[Any]:
    """HTTP as uvicorn speaks it, which looks at each connection every so many seconds and ends what has not moved: no
    request came whole, or nobody reads the answer. While an answer is made it waits; that ends by itself."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from jostle.serve.routing import network_of

    class Protocol(H11Protocol):
        timer: Any = None
        network, left, answered, before = "", 0, 0, 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.network = network_of(self.client[0]) if self.client else ""
            if sum(getattr(one, "network", None) == self.network for one in self.connections) > of_address:
                transport.abort()
            self.timer = self.loop.call_later(seconds, self.look)

        def connection_lost(self, fault: Exception | None) -> None:
            super().connection_lost(fault)
            self.timer.cancel()

        def on_response_complete(self) -> None:
            self.answered += 1
            super().on_response_complete()

        def look(self) -> None:
            left, making = self.transport.get_write_buffer_size(), self.cycle and not self.cycle.response_complete
            unread = 0 < self.left < left + TAKEN if left else not making
            if unread and self.answered == self.before:
                self.transport.abort()  # closing would wait until everything is read
            self.left, self.before = left, self.answered
            self.timer = self.loop.call_later(seconds, self.look)

    return Protocol


def _fill_cache(folder: Path) -> None:
    """The grammar's table, with which each cache begins: building it takes as long as a small run."""
    from jostle.syntax import parse

    os.environ["JOSTLE_CACHE"] = str(folder)
    parse(Source("first.jst", "x = 1\n"))


def _proof(home: Home, options: Namespace) -> str:
    """What the proxy shows with each request in which it says who somebody is: 256 bits, in a file of the home."""
    return kept_secret(home.folder / "proxy-secret") if options.identity else ""


def _begin(home: Home, address: str, options: Namespace) -> None:
    """Says where the server is; without an owner, gives the link by which one becomes the first."""
    lines = [f"jostle serves {home.folder} at {address}"]
    owner, example = options.owner, options.example
    owners = [one for one in home.accounts() if one["role"] == "owner"]
    if example:
        fill_example(home)
        lines.append(f"log in as `owner` or `analyst`, password `{EXAMPLE_PASSWORD}`")
    elif options.playground:
        lines = [f"a playground on public data at {address}"]
    elif options.identity:
        if not owners:
            home.add_account(owner, "owner", "system")
        secret = home.folder / "proxy-secret"
        lines.append(
            f"the proxy says who somebody is in `{options.identity}`; `X-Jostle-Proxy` has the text of {secret}"
        )
    elif not any(one["has_password"] for one in owners):
        new = not any(account["name"] == owner for account in home.accounts())
        link = home.add_account(owner, "owner", "system") if new else home.renew_link(owner, "system")
        lines.append(f"the first owner sets a password, once, at {address}/welcome#{link}")
    print("\n".join(lines), flush=True)


def fill_example(home: Home) -> None:
    """Public data with a budget, an owner, and an analyst with a part of it."""
    from jostle.privacy.ledger.ledger import Ledger
    from jostle.tools.data import register

    shutil.copy(resources.folder("programs") / "data" / "people.csv", home.folder / "data" / "people.csv")
    register(Namespace(
        name="people", file=str(home.folder / "data" / "people.csv"), schema=EXAMPLE_SCHEMA, protecting="rows",
        budget="epsilon 10", ledger=home.ledger, copy=False, sheet=None, header=None, engine=None,
    ))  # fmt: skip
    for name in ("owner", "analyst"):
        home.set_password(home.add_account(name, name, "system"), EXAMPLE_PASSWORD)
    Ledger(home.ledger).grant("people", "analyst", Amount("epsilon", 5 * QUANTA))


EXAMPLE_SCHEMA = (
    '{age: 16..79, sex: {"Female", "Male"}, city: {"Ames", "Bergen", "Cork", "Delft"}, hours: 0..63, income: 0..200000}'
)


def _verify(options: Namespace) -> int:
    try:
        log = json.loads(Path(options.verify).read_text(encoding="utf-8"))
        entries = log["audit"] if isinstance(log, dict) else log
    except (OSError, ValueError, KeyError):
        raise refuse("DataError", f"`{options.verify}` is no log", help="what `/api/audit` gives") from None
    number, head = verify(entries)
    sys.stdout.write(f"the log holds: {number} entries, up to {head}\n")
    return 0


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
