"""The file under the ledger: one SQLite database, opened so that a commit is on disk when it returns.

Write-ahead log, `synchronous=FULL`, every change in one `BEGIN IMMEDIATE` transaction. Whatever SQLite says is wrong
(missing, locked, full, read-only, damaged) becomes one `LedgerError`, and what was begun is rolled back. The file is
made with mode 0600 and refused where everybody may read or write it. SQLite's locks belong to the process and are
lost when any handle on the file is closed, so nothing else may open it: use `stat` only. For the same reason no
connection lives through a fork: SQLite in the child would think it holds locks that only the parent has, and a commit
could go into a log that the parent deletes.
"""

from __future__ import annotations

import os
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.diagnostics import Refusal, refuse

if TYPE_CHECKING:
    import sqlite3

APPLICATION, VERSION = 0x4A4F5354, 1
_TABLES = (
    "CREATE TABLE datasets (name TEXT PRIMARY KEY, terms TEXT NOT NULL, state TEXT NOT NULL, seal TEXT NOT NULL, "
    "key BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE history (dataset TEXT NOT NULL, number INTEGER NOT NULL, content TEXT NOT NULL, "
    "previous TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (dataset, number)) WITHOUT ROWID",
    "CREATE TABLE answers (dataset TEXT NOT NULL, request TEXT NOT NULL, number INTEGER NOT NULL, "
    "answer TEXT NOT NULL, code TEXT NOT NULL, PRIMARY KEY (dataset, request)) WITHOUT ROWID",
    "CREATE TRIGGER history_stays BEFORE DELETE ON history BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER history_is_fixed BEFORE UPDATE ON history BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
# SQLite's error names by their beginnings, and what a person is told.
_REASONS = (
    (("SQLITE_BUSY", "SQLITE_LOCKED"), "is locked by another program", "wait for it to end, and run again"),
    (("SQLITE_READONLY",), "cannot be written", "charges must be written down before data are read"),
    (("SQLITE_FULL",), "cannot grow: the disk is full", "make room; nothing was charged"),
    (("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"), "cannot be opened", "ask its owner for access"),
    (("SQLITE_CORRUPT", "SQLITE_NOTADB"), "is damaged", "its owner restores it; nothing is read until then"),
)


def default_path() -> Path:
    """`$JOSTLE_LEDGER`, else `jostle/ledger.db` in `$XDG_DATA_HOME` or `~/.local/share`; who has no home has none."""
    own = os.environ.get("JOSTLE_LEDGER")
    if own:
        return Path(own)
    base = os.environ.get("XDG_DATA_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "share") / "jostle" / "ledger.db"
    except RuntimeError:
        return Path(os.devnull) / "ledger.db"


_FORKING = threading.RLock()
_FILES: weakref.WeakSet[LedgerFile] = weakref.WeakSet()
_AT_FORK: list[LedgerFile] = []


class LedgerFile:
    """One ledger file. Safe for threads and forks. `timeout` (seconds) is how long a lock is waited for."""

    def __init__(self, path: str | Path, timeout: float = 30.0) -> None:
        self.path, self._timeout = Path(path), timeout
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._torn = False  # forked within a transaction
        with _FORKING:
            _FILES.add(self)

    def exists(self) -> bool:
        """Whether something is there. What cannot even be looked for is an error: it may hold a registration."""
        try:
            self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self.refusal(f"cannot be reached: {(error.strerror or 'refused').lower()}") from None
        return True

    def is_part(self, path: str | Path) -> bool:
        """Whether a path is of the ledger's own files, by any name."""
        for name in (self.path, f"{self.path}-wal", f"{self.path}-shm", f"{self.path}-journal"):
            with suppress(OSError):
                if os.path.samefile(name, path):
                    return True
        return False

    def create(self) -> None:
        """Makes an empty ledger where there is none, whole or not at all: it is built under another name first."""
        if self.exists():
            return
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with self._faults():
                connection = self._connect(draft)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                for statement in _TABLES:
                    connection.execute(statement)
                connection.execute("COMMIT")
                connection.close()
            with suppress(FileExistsError):  # another process was faster
                os.link(draft, self.path)
        except OSError as error:
            raise self.refusal(f"cannot be made: {(error.strerror or 'refused').lower()}") from None
        finally:
            for name in (str(draft), f"{draft}-wal", f"{draft}-shm"):
                with suppress(OSError):
                    os.unlink(name)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the ledger."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The only writer while it is open; on disk when it ends without an exception, undone otherwise."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

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
            "LedgerError", f"the ledger `{self.path}` {why}", help=help or "nothing was charged, nothing read"
        )

    # Inside ----------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        import sqlite3

        with self._lock, self._faults():
            connection = self._connected()
            try:
                connection.execute(begin)
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")

    def _connected(self) -> sqlite3.Connection:
        if self._torn:
            raise self.refusal("cannot be used in a process that was forked while it was written")
        if self._open is None:
            self._open = self._checked()
        return self._open

    def _checked(self) -> sqlite3.Connection:
        """A connection to what is a ledger of ours and nothing else."""
        if not self.exists():
            raise self.refusal("is not there", "an owner makes one: jostle data register")
        if stat.S_IMODE(self.path.stat().st_mode) & 0o007:
            raise self.refusal("is open to everybody", f"its owner takes that back: chmod o= {self.path}")
        connection = self._connect(self.path)
        marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if marks != [APPLICATION, VERSION] or mode != "wal":
            connection.close()
            raise self.refusal("is no ledger of this jostle", "give the path of a ledger: --ledger PATH")
        return connection

    def _connect(self, path: Path) -> sqlite3.Connection:
        import sqlite3

        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=self._timeout, isolation_level=None,
            check_same_thread=False,
        )  # fmt: skip
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    @contextmanager
    def _faults(self) -> Iterator[None]:
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            for beginnings, why, help in _REASONS:
                if name.startswith(beginnings):
                    raise self.refusal(why, help) from None
            raise self.refusal(f"cannot be used ({name or type(error).__name__})") from None


def _before_fork() -> None:
    _FORKING.acquire()
    _AT_FORK[:] = list(_FILES)
    for file in _AT_FORK:
        file.before_fork()


def _after_fork(child: bool) -> None:
    for file in _AT_FORK:
        file.after_fork(child=child)
    _AT_FORK.clear()
    _FORKING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(False),
        after_in_child=lambda: _after_fork(True),
    )
