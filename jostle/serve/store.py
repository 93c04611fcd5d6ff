"""What a server keeps beside the ledger: accounts, tokens, sessions, runs and the audit log, in one SQLite file, or in
the database that has the ledger.

Of a password there is an Argon2 hash, of a token, a session or a link the SHA-256 of 256 random bits; none of them can
be read back. The audit log is a chain as the ledger's histories are: each entry's hash holds all before it, and the
entry of a run names the last of its charges, so that who has the last hash can test both offline.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from jostle.backends.postgres.ledger import SCHEMES
from jostle.diagnostics import Refusal, refuse
from jostle.plan.digest import canonical, digest
from jostle.privacy.ledger.file import store_at
from jostle.privacy.ledger.grants import ANALYST
from jostle.privacy.ledger.store import FIRST, Connection, Entry, Layout, Result, chained, now
from jostle.resources import Json

ROLES = ("owner", "analyst", "reviewer", "auditor")
SCOPES = ("run", "all")
"""`run`: check and run programs and read what is one's own; `all`: whatever the account may do."""
HOUR, DAY = 3600.0, 86400.0
SESSION, LINK, LONGEST_TOKEN = 12 * HOUR, 7 * DAY, 366 * DAY
SHORTEST_PASSWORD, LONGEST_PASSWORD, MOST_TOKENS = 10, 200, 100
_TABLES = {
    "accounts": "name TEXT PRIMARY KEY, role TEXT NOT NULL, password TEXT NOT NULL, active INTEGER NOT NULL",
    "secrets": "hash TEXT PRIMARY KEY, kind TEXT NOT NULL, account TEXT NOT NULL, label TEXT NOT NULL, "
    "scope TEXT NOT NULL, until DOUBLE PRECISION NOT NULL, id INTEGER NOT NULL",
    "runs": "id TEXT PRIMARY KEY, account TEXT NOT NULL, program TEXT NOT NULL, settings TEXT NOT NULL, "
    "state TEXT NOT NULL, seconds DOUBLE PRECISION NOT NULL, accepted DOUBLE PRECISION NOT NULL, "
    "answer_at DOUBLE PRECISION NOT NULL, price TEXT NOT NULL, note TEXT NOT NULL, reviewer TEXT NOT NULL, "
    "document TEXT NOT NULL, shared INTEGER NOT NULL DEFAULT 0",
    "totals": "run TEXT PRIMARY KEY, content TEXT NOT NULL",
    "failures": "key TEXT NOT NULL, at DOUBLE PRECISION NOT NULL",
    "reviewed": "grant_name TEXT PRIMARY KEY",
    "audit": "number INTEGER PRIMARY KEY, content TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL",
}
_LATER = {2: "CREATE TABLE totals (run TEXT PRIMARY KEY, content TEXT NOT NULL)",
          3: "ALTER TABLE runs ADD COLUMN shared INTEGER NOT NULL DEFAULT 0",
          4: "CREATE TABLE failures (key TEXT NOT NULL, at REAL NOT NULL)"}  # fmt: skip
_KEEP = "INSERT INTO totals VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET content = excluded.content"
LAYOUT = Layout("store", _TABLES, "audit", 0, 4, _LATER, "Away")
_OK, _FAILED = '{"ok": true', '{"ok": false'  # the beginnings of documents
_BRIEF = f"""CASE WHEN state != 'done' THEN '' WHEN substr(document, 1, {len(_OK)}) = '{_OK}' THEN '{_OK}}}'
    ELSE '{_FAILED}}}' END"""


class Account(Struct, frozen=True):
    """Who asks. `csrf` is empty for a token, which no browser sends by itself; `scope` is what the token is for."""

    name: str
    role: str
    scope: str = "all"
    csrf: str = ""


class Run(Struct, frozen=True):
    """A program that was handed in. `state`: `waiting` (for a review), `refused`, `returned` (to be changed),
    `running`, `done`. Times are in seconds since 1970; `answer_at` was declared when the run began. A `shared` one is
    seen by every account that has its link."""

    id: str
    account: str
    program: str
    settings: dict[str, str]
    state: str
    seconds: float
    accepted: float
    answer_at: float
    price: list[dict[str, Json]]
    note: str
    reviewer: str
    document: str
    shared: bool = False


Total = tuple[list[int], int]
"""What a row of the ledger has spent, place by place, and how many entries its history has."""


class Home:
    """The folder of a server: data, answers of runs and, where these are not in a database, `serve.db` and the ledger.
    Safe for threads, and for several processes; over one database, on several machines that share the folder."""

    def __init__(self, folder: Path, ledger: str = "") -> None:
        self.folder = folder.resolve()
        for name in ("", "ledger", "data", "runs", "cache"):
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        own, mine = self.folder / "serve.db", self.folder / "ledger" / "ledger.db"
        self.ledger, self.on_server = ledger or str(mine), ledger.startswith(SCHEMES)
        if not self.on_server and Path(self.ledger).resolve() != mine:
            help = f"put it there: {mine}"  # beside it stands when its charges are to be seen
            raise refuse("DataError", "a server's ledger in a file lies in its own home", help=help)
        self._lock = threading.RLock()
        self._db: Connection | None = None  # of the transaction that goes on
        self._written = self._writing = 0  # the last entry of the log that this process wrote, and writes
        self._store = store_at(ledger if self.on_server else own, 30.0, LAYOUT)
        self._store.create()
        if self.on_server and own.exists():
            self._take_over(own)
        if self.on_server:
            self._need_folder()
        self.accounts()

    def _take_over(self, file: Path) -> None:
        """Copies what a home had in a file of its own into the database, where there is nothing yet."""
        old = store_at(file, 30.0, LAYOUT)
        with old.writing() as before, self.alone():
            for table in _TABLES if not self._rows("SELECT 1 FROM accounts") else ():
                for row in before.execute(f"SELECT * FROM {table}").fetchall():
                    self._do(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
        old.close()

    def _need_folder(self) -> None:
        """Refuses a folder that is not the one of the database: answers of runs would lie in the other."""
        mine = _hash(kept_secret(self.folder / "runs" / "home"))
        with self.alone():
            if not self._rows("SELECT 1 FROM secrets WHERE kind = 'home'"):
                self._do("INSERT INTO secrets VALUES (?, 'home', '', '', '', 1e18, 0)", mine)
            if not self._rows("SELECT 1 FROM secrets WHERE kind = 'home' AND hash = ?", mine):
                help = "start all servers over it with one --home, on a disk that they share"
                raise refuse("DataError", "the answers of this database's runs lie in another folder", help=help)

    def close(self) -> None:
        self._store.close()

    def clock_ahead(self) -> float:
        """By how many seconds this machine's clock is ahead of the database's."""
        if not self.on_server:
            return 0.0
        ((there,),) = self._rows("SELECT CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)")
        return time.time() - float(there)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A transaction, or a part of the one that goes on: no other thread, process or server writes meanwhile."""
        with self._lock:
            if self._db is not None:
                yield
                return
            self._writing = self._written
            with self._store.writing() as self._db:
                try:
                    yield
                finally:
                    self._db = None
            self._written = self._writing

    def _do(self, statement: str, *values: object) -> Result:
        if self._db is None:
            raise ValueError("a statement that writes is part of a transaction")
        if any(isinstance(value, str) and "\0" in value for value in values):
            raise refuse("ValueError", "a text has no character 0")  # PostgreSQL has none that do
        return self._db.execute(statement, values)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        with self._lock:
            if self._db is not None:
                return self._do(statement, *values).fetchall()
            with self._store.reading() as self._db:
                try:
                    return self._do(statement, *values).fetchall()
                finally:
                    self._db = None

    # Accounts --------------------------------------------------------------------------------------

    @cached_property
    def _hasher(self) -> Any:
        from argon2 import PasswordHasher

        return PasswordHasher()

    @cached_property
    def _nobody(self) -> str:
        """The hash that is tested for a name that nobody has, so that it takes as long."""
        return str(self._hasher.hash(new_secret()))

    def accounts(self) -> list[dict[str, Json]]:
        rows = self._rows("SELECT name, role, active, password != '' FROM accounts ORDER BY name")
        return [{"name": n, "role": r, "active": bool(a), "has_password": bool(p)} for n, r, a, p in rows]

    def is_open(self, name: str) -> bool:
        """Whether there is an account of this name that is not closed."""
        return bool(self._rows("SELECT 1 FROM accounts WHERE name = ? AND active = 1", name))

    def add_account(self, name: str, role: str, by: str) -> str:
        """A new account; gives the secret of the link by which its person sets a password, once."""
        if not ANALYST.fullmatch(name) or role not in ROLES:
            raise refuse("DataError", "this is no name or no role", help=f"a-z, 0-9, `._-`; {', '.join(ROLES)}")
        with self.alone():
            if self._rows("SELECT 1 FROM accounts WHERE name = ?", name):
                raise refuse("DataError", f"there is an account `{name}` already")
            self._do("INSERT INTO accounts VALUES (?, ?, '', 1)", name, role)
            self._note(by, "account", account=name, role=role)
            return self._add_secret("link", name, "", "all", LINK)[1]

    def forget_guests(self) -> None:
        """Takes away the accounts of guests whose sessions have ended."""
        with self.alone():
            going = "SELECT account FROM secrets WHERE kind = 'session' AND until > ?"
            self._do(f"DELETE FROM accounts WHERE name LIKE 'guest-%' AND name NOT IN ({going})", time.time())

    def renew_link(self, name: str, by: str) -> str:
        """A new link for an account whose password was forgotten, or is known to others: what was there before ends,
        the password too, with which a token could be made that outlives it."""
        with self.alone():
            self._need_account(name)
            self._do("UPDATE accounts SET password = '' WHERE name = ?", name)
            self._do("DELETE FROM secrets WHERE account = ?", name)
            self._note(by, "link", account=name)
            return self._add_secret("link", name, "", "all", LINK)[1]

    def set_active(self, name: str, active: bool, by: str) -> None:
        """Closes an account, with its sessions and tokens, or opens it again."""
        with self.alone():
            self._need_account(name)
            self._do("UPDATE accounts SET active = ? WHERE name = ?", int(active), name)
            if not active:
                self._do("DELETE FROM secrets WHERE account = ?", name)
            self._note(by, "opened" if active else "closed", account=name)

    def set_password(self, link: str, password: str) -> str | None:
        """Sets the password of a link's account, which ends the link and all sessions; None where it is no link."""
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise refuse("DataError", f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
        account = self.who(link, "link")
        if account is None:
            return None
        code = self._hasher.hash(password)
        with self.alone():
            if not self._do("DELETE FROM secrets WHERE hash = ?", _hash(link)).rowcount:
                return None
            self._do("DELETE FROM secrets WHERE account = ? AND kind = 'session'", account.name)
            self._do("UPDATE accounts SET password = ? WHERE name = ?", code, account.name)
            self._note(account.name, "password")
        return account.name

    def password_holds(self, name: str, password: str) -> bool:
        """Whether it is the password of an open account. It takes as long where there is none."""
        from argon2.exceptions import InvalidHashError, VerificationError

        nobody = self._nobody  # at the first login of all its hash is computed, whoever that is
        rows = self._rows("SELECT password FROM accounts WHERE name = ? AND active = 1 AND password != ''", name)
        try:
            self._hasher.verify(rows[0][0] if rows else nobody, password[: LONGEST_PASSWORD + 1])
        except (VerificationError, InvalidHashError):
            return False
        return bool(rows)

    def _need_account(self, name: str) -> None:
        if not self._rows("SELECT 1 FROM accounts WHERE name = ?", name):
            raise refuse("DataError", "there is no such account")

    def failures(self, key: str, since: float) -> int:
        """How many logins have failed that `key` counts."""
        return int(self._rows("SELECT count(*) FROM failures WHERE key = ? AND at > ?", key, since)[0][0])

    def add_failure(self, keys: Iterable[str], since: float) -> None:
        """Counts a login that failed; what is older than `since` counts no more."""
        with self.alone():
            self._do("DELETE FROM failures WHERE at <= ?", since)
            for key in keys:
                self._do("INSERT INTO failures VALUES (?, ?)", key, time.time())

    def forget_failures(self, key: str) -> None:
        with self.alone():
            self._do("DELETE FROM failures WHERE key = ?", key)

    # Secrets ---------------------------------------------------------------------------------------

    def add_session(self, name: str) -> str:
        with self.alone():
            self._do("DELETE FROM secrets WHERE until < ?", time.time())
            self._note(name, "login")
            return self._add_secret("session", name, "", "all", SESSION)[1]

    def add_token(self, name: str, label: str, scope: str, days: float) -> tuple[int, str]:
        if scope not in SCOPES or not 0 < days * DAY <= LONGEST_TOKEN or len(label) > 80:
            raise refuse("DataError", f"a token is for {' or '.join(SCOPES)}, and for up to 366 days")
        with self.alone():
            self._do("DELETE FROM secrets WHERE until < ?", time.time())
            if len(self.tokens(name)) >= MOST_TOKENS:
                raise refuse("DataError", f"{MOST_TOKENS} tokens of one account are enough", help="revoke some")
            number, secret = self._add_secret("token", name, label, scope, days * DAY)
            self._note(name, "token", number=number, scope=scope)
        return number, secret

    def tokens(self, name: str) -> list[dict[str, Json]]:
        statement = "SELECT id, label, scope, until FROM secrets WHERE account = ? AND kind = 'token' ORDER BY id"
        rows = self._rows(statement, name)
        return [{"number": i, "label": label, "scope": scope, "until": until} for i, label, scope, until in rows]

    def revoke(self, name: str, number: int) -> bool:
        """Ends a token of an account; whether there was one."""
        with self.alone():
            statement = "DELETE FROM secrets WHERE account = ? AND kind = 'token' AND id = ?"
            gone = self._do(statement, name, number).rowcount
            if gone:
                self._note(name, "revoked", number=number)
        return bool(gone)

    def log_out(self, secret: str) -> None:
        with self.alone():
            self._do("DELETE FROM secrets WHERE hash = ? AND kind = 'session'", _hash(secret))

    def who(self, secret: str, kind: str) -> Account | None:
        """Whose session, token or link it is, while it lasts and the account is open."""
        rows = self._rows(
            "SELECT a.name, a.role, s.scope FROM secrets s JOIN accounts a ON a.name = s.account "
            "WHERE s.hash = ? AND s.kind = ? AND s.until > ? AND a.active = 1", _hash(secret), kind, time.time(),
        )  # fmt: skip
        if not rows:
            return None
        csrf = hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest() if kind == "session" else ""
        account, role, scope = rows[0]
        return Account(account, role, scope, csrf)

    def _add_secret(self, kind: str, name: str, label: str, scope: str, seconds: float) -> tuple[int, str]:
        secret, until = new_secret(), time.time() + seconds
        (number,) = self._do("SELECT 1 + coalesce(max(id), 0) FROM secrets").fetchone()
        row = (_hash(secret), kind, name, label, scope, until, number)
        self._do("INSERT INTO secrets VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
        return number, secret

    # Grants that are reviewed ------------------------------------------------------------------------

    def set_review(self, grant: str, by: str, *, needed: bool, **facts: object) -> None:
        with self.alone():
            self._do("DELETE FROM reviewed WHERE grant_name = ?", grant)
            if needed:
                self._do("INSERT INTO reviewed VALUES (?)", grant)
            self._note(by, "grant", grant=grant, review=needed, **facts)

    def reviewed(self) -> set[str]:
        return {name for (name,) in self._rows("SELECT grant_name FROM reviewed")}

    # Runs --------------------------------------------------------------------------------------------

    def add_run(self, run: Run, totals: Mapping[str, Total] | None = None) -> None:
        with self.alone():
            self._keep(run, totals)
            self._do(f"INSERT INTO runs VALUES ({', '.join('?' * len(run.__struct_fields__))})", *_stored(run))
            self._note(run.account, "run", run=run.id, program=digest(run.program), state=run.state)

    def _keep(self, run: Run, totals: Mapping[str, Total] | None) -> None:
        if totals is not None:
            self._do(_KEEP, run.id, json.dumps(totals))

    def totals(self) -> dict[str, Total]:
        """What rows of the ledger had spent, and how many entries they had, before the first of the runs began whose
        answers have not left: how far these have come depends on private rows."""
        before: dict[str, Total] = {}
        for (content,) in self._rows(
            "SELECT t.content FROM totals t JOIN runs r ON r.id = t.run WHERE r.state = 'running' AND r.answer_at > ? "
            "ORDER BY r.accepted", time.time()
        ):  # fmt: skip
            before = json.loads(content) | before
        return before

    def change_run(
        self, run: Run, before: str, by: str, totals: Mapping[str, Total] | None = None, **facts: object
    ) -> bool:
        """Writes a run whose state was `before`, with an entry of the log; whether it still was."""
        with self.alone():
            self._keep(run, totals)
            changed = self._do(
                "UPDATE runs SET state = ?, accepted = ?, answer_at = ?, note = ?, reviewer = ?, document = ? "
                "WHERE id = ? AND state = ?",
                run.state, run.accepted, run.answer_at, run.note, run.reviewer, run.document, run.id, before,
            ).rowcount  # fmt: skip
            if changed:
                self._note(by, run.state, run=run.id, program=digest(run.program), **facts)
        return bool(changed)

    def share(self, id: str, by: str, shared: bool) -> bool:
        """Opens a run of an account to the others, or closes it; whether there was one."""
        with self.alone():
            changed = self._do("UPDATE runs SET shared = ? WHERE id = ? AND account = ?", int(shared), id, by)
            if changed.rowcount:
                self._note(by, "shared" if shared else "closed", run=id)
        return bool(changed.rowcount)

    def runs(self, where: str = "1 = 1", *values: object, brief: bool = False) -> list[Run]:
        """Up to 200 runs, the newest first. `where` is a condition of ours, `values` are what it compares with. With
        `brief`, documents say only whether a run went well: answers are up to 8 MB each."""
        columns = [_BRIEF if name == "document" and brief else name for name in Run.__struct_fields__]
        statement = f"SELECT {', '.join(columns)} FROM runs WHERE {where} ORDER BY accepted DESC, id LIMIT 200"
        return [_run(row) for row in self._rows(statement, *values)]

    def counts(self, account: str, since: float, document: str) -> tuple[int, int]:
        """How many runs an account handed in since then, and how many of them were answered by this document."""
        query = "SELECT count(*), count(*) FILTER (WHERE document = ?) FROM runs WHERE account = ? AND accepted > ?"
        ((handed, same),) = self._rows(query, document, account, since)
        return handed, same

    def states(self, at: float) -> tuple[list[tuple[str, int]], int]:
        """How many runs are in each state, and how many of them are under way: their answers leave after `at`."""
        over = "CASE WHEN state = 'running' AND answer_at <= ? THEN 'done' ELSE state END"
        states = self._rows(f"SELECT {over} AS s, count(*) FROM runs GROUP BY s ORDER BY s", at)
        return [(state, number) for state, number in states], dict(states).get("running", 0)

    # The audit log -----------------------------------------------------------------------------------

    def note(self, by: str, did: str, **facts: object) -> None:
        with self.alone():
            self._note(by, did, **facts)

    def _note(self, by: str, did: str, **facts: object) -> None:
        last = self._do("SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1").fetchone() or (0, FIRST)
        if last[0] < self._writing:
            raise older("store")
        entry = Entry.after(last[0] + 1, last[1], {"by": by, "did": did, "time": max(now(), self.latest()), **facts})
        self._writing = entry.number
        text = canonical(entry.content).decode()
        self._do("INSERT INTO audit VALUES (?, ?, ?, ?)", entry.number, text, entry.previous, entry.hash)

    def latest(self) -> str:
        """The time of the log's last entry: a clock that is set back opens no grant whose last day is over."""
        last = self._rows("SELECT content FROM audit ORDER BY number DESC LIMIT 1")
        return str(json.loads(last[0][0])["time"]) if last else ""

    def log_after(self, number: int) -> list[tuple[int, str]]:
        """The contents of the log's entries after so many, as they stand there."""
        return self._rows("SELECT number, content FROM audit WHERE number > ? ORDER BY number", number)

    def audit(self) -> list[dict[str, Json]]:
        """The log, the oldest first, as it is handed out and verified."""
        rows = self._rows("SELECT number, content, hash FROM audit ORDER BY number")
        return [{"number": number, "content": json.loads(text), "hash": hash} for number, text, hash in rows]


def older(what: str) -> Refusal:
    """Where less stands written than was before: what was restored forgets what was spent."""
    message = f"the {what} of the server is older than it was: a copy was put in its place"
    return refuse("LedgerError", message, help="its owner puts the last one back, and starts the server again")


def verify(log: Iterable[Mapping[str, object]]) -> tuple[int, str]:
    """Follows a log from its first entry; gives its length and last hash. `LedgerError` names what does not hold."""
    number, head = 0, FIRST
    for entry in log:
        number += 1
        try:
            good = entry["number"] == number and entry["hash"] == chained(head, digest(entry["content"]))
        except (KeyError, TypeError, ValueError):
            good = False
        if not good:
            raise refuse("LedgerError", f"the audit log is damaged: entry {number} does not follow from those before")
        head = str(entry["hash"])
    return number, head


def new_secret() -> str:
    """256 bits of the operating system's generator, as text. They open an account; no noise is made of them."""
    return os.urandom(32).hex()


def kept_secret(place: Path) -> str:
    """The secret in a file, which is made where there is none: whole, or not at all, whoever else makes it too."""
    if not place.exists():
        draft = place.with_name(f".{place.name}.{os.getpid()}")
        with open(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
            file.write(new_secret())
        with suppress(FileExistsError):
            os.link(draft, place)
        draft.unlink()
    text = place.read_text().strip()
    if len(text) < 64:
        raise refuse("DataError", f"`{place}` holds no secret", help="remove it: another is made")
    return text


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _stored(run: Run) -> list[object]:
    values = (getattr(run, name) for name in run.__struct_fields__)
    return [int(v) if isinstance(v, bool) else json.dumps(v) if isinstance(v, dict | list) else v for v in values]


def _run(row: tuple[Any, ...]) -> Run:
    values = dict(zip(Run.__struct_fields__, row, strict=True))
    return Run(**{**values, "settings": json.loads(values["settings"]), "price": json.loads(values["price"]),
                  "shared": bool(values["shared"])})  # fmt: skip
