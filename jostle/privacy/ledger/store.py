"""The storage of a ledger: one database, whose commits are on disk when they return, and its rows.

*Transactions.* A dataset and the entry that changed it are written together, in a transaction that the caller opens;
nothing is decided here. Connections do not survive a fork: two processes would use one connection, and SQLite's locks
belong to the parent. A backend translates the errors of its database.

*History.* Every charge is an entry. Its `digest` is the SHA-256 of the canonical JSON of its content, and its `hash` is
the SHA-256 of the previous entry's hash and that digest, so one hash determines all earlier entries. Part of a history
can be shown with the entries of others as digests only, and still be verified.

*Seal.* HMAC-SHA256, under a random key of the dataset, of the terms, the total, the data's code and the last hash. It
binds the end of the chain to the dataset, and is tested whenever a dataset is read. The data's *code* is an HMAC of the
file's digest under the same key, since a bare digest would let anybody test a guess of the data. The key is in the
ledger and never shown; anyone who can copy the ledger file has it.

`tests/ledger` tests charges, chains, faults and forks with every kind of ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from jostle.accounting.amounts import Cost
from jostle.accounting.definitions import PARTS, Measure
from jostle.diagnostics import Refusal, did_you_mean, refuse
from jostle.plan.digest import canonical, digest
from jostle.privacy.ledger.registered import State, Terms
from jostle.records import replace

FIRST = hashlib.sha256(b"jostle history 1").hexdigest()  # stands before the first entry


def chained(previous: str, entry_digest: str) -> str:
    """The hash of an entry whose digest is `entry_digest`."""
    return digest({"previous": previous, "digest": entry_digest})


class Entry(Struct, frozen=True):
    """One entry of a history with its `content`. Numbers start at 1, the registration."""

    number: int
    content: Mapping[str, Any]
    previous: str
    hash: str

    @classmethod
    def after(cls, number: int, previous: str, content: Mapping[str, Any]) -> Entry:
        return cls(number, content, previous, chained(previous, digest(content)))

    @property
    def growth(self) -> tuple[int, ...]:
        """The growth of the total, place by place."""
        return tuple(self.content.get("grows", ()))


def broken(name: str, why: str) -> Exception:
    return refuse(
        "LedgerError",
        f"the history of `{name}` is damaged: {why}",
        help="the owner restores the ledger; nothing is read",
    )


# Under the key -----------------------------------------------------------------------------------


def new_key() -> bytes:
    """32 bytes of the operating system's generator, for codes and not for noise."""
    return os.urandom(32)


def sealed(key: bytes, what: str, value: Any) -> str:
    """HMAC-SHA256 of a value. `what` separates codes of different purposes."""
    return hmac.new(key, canonical({"what": what, "value": value}), hashlib.sha256).hexdigest()


def holds(key: bytes, what: str, value: Any, seal: object) -> bool:
    return isinstance(seal, str) and hmac.compare_digest(sealed(key, what, value).encode(), seal.encode())


def seen_file(key: bytes) -> Path:
    """The file with the last entry of a history that a session of this user has seen, in `jostle/histories` of
    `$XDG_STATE_HOME` or `~/.local/state`. It is outside of the ledger, so that restoring a ledger does not change it.
    Anyone who can write there can disable this test, or make the ledger be refused."""
    base = os.environ.get("XDG_STATE_HOME")
    folder = Path(base) if base else Path.home() / ".local" / "state"
    return folder / "jostle" / "histories" / sealed(key, "seen", "")[:32]


def note_seen(key: bytes, number: int, end: str) -> None:
    with suppress(OSError, RuntimeError):  # RuntimeError: no home directory
        path = seen_file(key)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(f"{number} {end}")


TABLES = {
    "datasets": "name TEXT PRIMARY KEY, terms TEXT NOT NULL, state TEXT NOT NULL, seal TEXT NOT NULL, "
    "key {bytes} NOT NULL",
    "history": "dataset TEXT NOT NULL, number INTEGER NOT NULL, content TEXT NOT NULL, previous TEXT NOT NULL, "
    "hash TEXT NOT NULL, PRIMARY KEY (dataset, number)",
    "answers": "dataset TEXT NOT NULL, request TEXT NOT NULL, number INTEGER NOT NULL, answer TEXT NOT NULL, "
    "code TEXT NOT NULL, PRIMARY KEY (dataset, request)",
}
"""The columns of a ledger's tables. `history` is append-only."""


class Layout(Struct, frozen=True):
    """The contents of a database: `tables` by their columns, of which `chain` is append-only. On a server they are in
    the schema `jostle_` and `what`, and writers lock the first. A file has the ids of an `application` and a `version`;
    older versions are upgraded by the statements in `later`. `kind` is the kind of its refusals."""

    what: str
    tables: Mapping[str, str]
    chain: str
    application: int
    version: int
    later: Mapping[int, str] = {}
    kind: str = "LedgerError"
    rows: str = ""  # the storage option of a file's tables


LEDGER = Layout("ledger", TABLES, "history", 0x4A4F5354, 1, rows="WITHOUT ROWID")


class Result(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """An open database. `?` marks parameters."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Result: ...

    def close(self) -> None: ...


class Store(ABC):
    """One ledger, or another database with a `layout`. Safe for threads and forks. `timeout` (seconds) is the longest
    wait for a lock."""

    def __init__(self, timeout: float, layout: Layout = LEDGER) -> None:
        self.timeout, self.layout = timeout, layout
        self._lock = threading.RLock()
        self._open: Connection | None = None
        self._torn = False  # forked within a transaction
        with _FORKING:
            _STORES.add(self)

    @property
    @abstractmethod
    def place(self) -> str:
        """The displayed place, without a password."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether the database exists. Raises an error if that cannot be determined: it may have registrations."""

    @abstractmethod
    def is_part(self, path: str | Path) -> bool:
        """Whether a path is one of the database's own files, under any name."""

    @abstractmethod
    def create(self) -> None:
        """Creates an empty database if there is none, completely or not at all."""

    @abstractmethod
    def checked(self) -> Connection:
        """A connection to a database that was verified to have this layout."""

    @abstractmethod
    def begin(self, connection: Connection, *, write: bool) -> None:
        """Begins a transaction with one consistent view, or as the only writer."""

    @abstractmethod
    def commit(self, connection: Connection) -> None:
        """Commits a transaction to disk."""

    @abstractmethod
    def faults(self) -> AbstractContextManager[None]:
        """Translates every error of the database into one `LedgerError`, without quoting it."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction with one consistent view."""
        return self._transaction(write=False)

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction as the only writer; committed to disk, or rolled back on an exception."""
        return self._transaction(write=True)

    def close(self) -> None:
        """Closes the connection; the next use opens a new one."""
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None

    def before_fork(self) -> None:
        """Waits for transactions of other threads, and closes. A transaction of this thread cannot be closed."""
        self._lock.acquire()
        if self._open is not None and not self._open.in_transaction:
            self.close()

    def after_fork(self, *, child: bool) -> None:
        self._torn |= child and self._open is not None
        self._lock.release()

    def refusal(self, why: str, help: str = "") -> Refusal:
        what = f"the ledger `{self.place}`" if self.layout is LEDGER else f"the {self.layout.what} of the server"
        return refuse(self.layout.kind, f"{what} {why}", help=help or "nothing was charged, nothing read")

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Connection]:
        with self._lock, self.faults():
            try:
                connection = self._begun(write)
                yield connection
                self.commit(connection)
            finally:
                if self._open is not None and self._open.in_transaction:
                    with suppress(Refusal), self.faults():
                        self._open.execute("ROLLBACK")

    def _begun(self, write: bool) -> Connection:
        """A transaction, on a new connection if the old one has ended, since nothing was written on it yet."""
        before, connection = self._open, self._connected()
        try:
            with self.faults():
                self.begin(connection, write=write)
        except Refusal:
            if before is None or self._open is not None:
                raise
            connection = self._connected()
            self.begin(connection, write=write)
        return connection

    def _connected(self) -> Connection:
        if self._torn:
            raise self.refusal("cannot be used in a process that was forked while it was written")
        if self._open is None:
            self._open = self.checked()
        return self._open


STORES: dict[str, Callable[[str, float, Layout], Store]] = {}
"""Constructors of stores on servers, by the prefix of their URL; `backends` registers them."""

_FORKING = threading.RLock()
_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_AT_FORK: list[Store] = []


def _before_fork() -> None:
    _FORKING.acquire()
    _AT_FORK[:] = list(_STORES)
    for store in _AT_FORK:
        store.before_fork()


def _after_fork(child: bool) -> None:
    for store in _AT_FORK:
        store.after_fork(child=child)
    _AT_FORK.clear()
    _FORKING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(False),
        after_in_child=lambda: _after_fork(True),
    )


class Dataset(Struct, frozen=True):
    """The current state of a registered dataset. `key` is the secret for codes and seals."""

    terms: Terms
    state: State
    key: bytes

    def __repr__(self) -> str:
        return f"Dataset({self.terms.name!r})"


class Rows(Struct, frozen=True):
    """The rows of one open transaction."""

    store: Store
    connection: Connection

    def all(self) -> list[Dataset]:
        rows = self.connection.execute("SELECT name, terms, state, seal, key FROM datasets").fetchall()
        return [self._read(*row) for row in sorted(rows, key=lambda row: str(row[0]))]

    def find(self, name: str) -> Dataset:
        row = self.connection.execute(
            "SELECT name, terms, state, seal, key FROM datasets WHERE name = ?", (name,)
        ).fetchone()
        if row is None:
            names = [str(other) for (other,) in self.connection.execute("SELECT name FROM datasets").fetchall()]
            raise refuse(
                "LedgerError", f"no dataset `{name}` is registered",
                help=did_you_mean(name, names) or f"its owner registers it: jostle data register {name} FILE …",
            )  # fmt: skip
        return self._read(*row)

    def entries(self, name: str) -> list[Entry]:
        stored = self.connection.execute(
            "SELECT number, content, previous, hash FROM history WHERE dataset = ? ORDER BY number", (name,)
        ).fetchall()
        try:
            return [Entry(number, dict(json.loads(text)), previous, hash) for number, text, previous, hash in stored]
        except (TypeError, ValueError):
            raise broken(name, "an entry cannot be read") from None

    def add(self, terms: Terms, state: State, key: bytes, entry: Entry) -> Dataset:
        """Adds a dataset with its first entry."""
        dataset = Dataset(terms, state, key)
        self.connection.execute(
            "INSERT INTO datasets VALUES (?, ?, ?, ?, ?)",
            (terms.name, json.dumps(terms.as_json()), json.dumps(state.as_json()), _seal(dataset), key),
        )
        self._insert(terms.name, entry)
        return dataset

    def move(self, dataset: Dataset, content: Mapping[str, Any], amount: Cost = ()) -> Entry:
        """Writes `dataset` with a new entry, which added `amount` to its total."""
        name, state = dataset.terms.name, dataset.state
        grown_content = {**content, "grows": list(amount)} if amount else dict(content)
        entry = Entry.after(state.entries + 1, state.head, grown_content)
        spent = plus(state.spent, amount) if amount else state.spent
        after = replace(dataset, state=replace(state, spent=spent, entries=entry.number, head=entry.hash))
        changed = self.connection.execute(
            "UPDATE datasets SET state = ?, seal = ? WHERE name = ?",
            (json.dumps(after.state.as_json()), _seal(after), name),
        )
        if changed.rowcount != 1:
            raise self.store.refusal("cannot be written")
        self._insert(name, entry)
        return entry

    def _read(self, name: str, terms: str, state: str, seal: str, key: bytes) -> Dataset:
        try:
            dataset = Dataset(Terms.from_json(json.loads(terms)), State.from_json(json.loads(state)), key)
            measure = dataset.terms.measure
            spent = completed(measure, dataset.state.spent, measure.width)
            good = dataset.terms.name == name and len(spent) == measure.width
            if good and holds(key, "state", [dataset.terms.as_json(), dataset.state.as_json()], seal):
                return replace(dataset, state=replace(dataset.state, spent=spent))
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        raise self.store.refusal(f"is damaged: what it says of `{name}` does not hold", "its owner restores it")

    def _insert(self, name: str, entry: Entry) -> None:
        self.connection.execute(
            "INSERT INTO history VALUES (?, ?, ?, ?, ?)",
            (name, entry.number, canonical(entry.content).decode(), entry.previous, entry.hash),
        )


def need_seen(store: Store, dataset: Dataset) -> None:
    """Refuses a history without the entry that a session of this user saw last, and records its end."""
    name, number, end = dataset.terms.name, 0, ""
    with suppress(OSError, RuntimeError, ValueError):
        text, end = seen_file(dataset.key).read_text().split()
        number = min(abs(int(text)), 2**62)
    with store.reading() as connection:  # after reading the file, which may name an entry that was just written
        one = "SELECT hash FROM history WHERE dataset = ? AND number = ?"
        there = connection.execute(one, (name, number)).fetchone()
    if number and there != (end,):
        raise refuse(
            "LedgerError", f"the ledger lacks a charge on `{name}` that was seen on this machine",
            help="an older ledger was restored, or a copy of it was charged: its owner registers the data anew "
            "with what is left, or, where nothing was lost, removes from `~/.local/state` "
            f"`jostle/histories/{seen_file(dataset.key).name}`",
        )  # fmt: skip
    note_seen(dataset.key, dataset.state.entries, dataset.state.head)


MINUTE = "%Y-%m-%dT%H:%MZ"


def now(ago: timedelta = timedelta(0)) -> str:
    """The time to the minute, so that histories do not measure the duration of private work."""
    return (datetime.now(UTC) - ago).strftime(MINUTE)


def plus(a: Cost, b: Cost) -> Cost:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _seal(dataset: Dataset) -> str:
    return sealed(dataset.key, "state", [dataset.terms.as_json(), dataset.state.as_json()])


def completed(measure: Measure, total: Cost, places: int) -> Cost:
    """A total that a ledger counted by an earlier rule, extended to `places` places.

    Two places: before plain sums, which are not continued. Three places: δ₀ was used in full, up to a quarter of d, and
    ρ up to that of ¾·d. New charges stay within these shares: a third of a requested δ₀ is used, up to that quarter,
    and no Gaussian noise enters the plain sum. So old and new charges together stay within (e, d).
    """
    if measure.kind == "approximate" and len(total) == 2 < places:
        total = (*total, measure.limit.value + 1 if any(total) else 0)
    if measure.kind == "approximate" and len(total) == 3 < places:
        delta = PARTS * total[1] + math.ceil(measure.limit.delta / 4)
        total = (total[0], delta, total[2], measure.limit.delta) if any(total) else (0, 0, 0, 0)
    return total
