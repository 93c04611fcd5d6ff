"""What a ledger is written in: one database, whose commit is on disk when it returns.

A backend opens it and says what is wrong in words of ours; here are transactions, threads and forks. No connection
lives through a fork: two processes would speak over one, and what SQLite holds for the parent the child only thinks
it holds.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from jostle.diagnostics import Refusal, refuse

TABLES = {
    "datasets": "name TEXT PRIMARY KEY, terms TEXT NOT NULL, state TEXT NOT NULL, seal TEXT NOT NULL, "
    "key {bytes} NOT NULL",
    "history": "dataset TEXT NOT NULL, number INTEGER NOT NULL, content TEXT NOT NULL, previous TEXT NOT NULL, "
    "hash TEXT NOT NULL, PRIMARY KEY (dataset, number)",
    "answers": "dataset TEXT NOT NULL, request TEXT NOT NULL, number INTEGER NOT NULL, answer TEXT NOT NULL, "
    "code TEXT NOT NULL, PRIMARY KEY (dataset, request)",
}
"""The columns of a ledger's tables. `history` is only ever added to."""


class Result(Protocol):
    """What a statement gives."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """An open ledger. Parameters stand for `?`."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Result: ...

    def close(self) -> None: ...


class Store(ABC):
    """One ledger. Safe for threads and forks. `timeout` (seconds) is how long a lock is waited for."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._lock = threading.RLock()
        self._open: Connection | None = None
        self._torn = False  # forked within a transaction
        with _FORKING:
            _STORES.add(self)

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, as it is shown: without a password."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether something is there. What cannot even be looked for is an error: it may hold a registration."""

    @abstractmethod
    def is_part(self, path: str | Path) -> bool:
        """Whether a path is of the ledger's own files, by any name."""

    @abstractmethod
    def create(self) -> None:
        """Makes an empty ledger where there is none, whole or not at all."""

    @abstractmethod
    def checked(self) -> Connection:
        """A connection to what is a ledger of ours and nothing else."""

    @abstractmethod
    def begin(self, connection: Connection, *, write: bool) -> None:
        """Begins a transaction of one consistent view, or that of the only writer."""

    @abstractmethod
    def commit(self, connection: Connection) -> None:
        """Ends a transaction; what it wrote is on disk."""

    @abstractmethod
    def faults(self) -> AbstractContextManager[None]:
        """Turns every error of the database into one `LedgerError`, which quotes none of it."""

    def reading(self) -> AbstractContextManager[Connection]:
        """One consistent view of the ledger."""
        return self._transaction(write=False)

    def writing(self) -> AbstractContextManager[Connection]:
        """The only writer while it is open; on disk when it ends without an exception, undone otherwise."""
        return self._transaction(write=True)

    def close(self) -> None:
        """Ends the connection; the next use makes a new one."""
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None

    def before_fork(self) -> None:
        """Waits for other threads' transactions and closes; one of this very thread cannot be closed."""
        self._lock.acquire()
        if self._open is not None and not self._open.in_transaction:
            self.close()

    def after_fork(self, *, child: bool) -> None:
        self._torn |= child and self._open is not None
        self._lock.release()

    def refusal(self, why: str, help: str = "") -> Refusal:
        return refuse(
            "LedgerError", f"the ledger `{self.place}` {why}", help=help or "nothing was charged, nothing read"
        )

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Connection]:
        with self._lock, self.faults():
            connection = self._connected()
            try:
                self.begin(connection, write=write)
                yield connection
                self.commit(connection)
            finally:
                if connection.in_transaction:
                    with suppress(Refusal), self.faults():
                        connection.execute("ROLLBACK")

    def _connected(self) -> Connection:
        if self._torn:
            raise self.refusal("cannot be used in a process that was forked while it was written")
        if self._open is None:
            self._open = self.checked()
        return self._open


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
