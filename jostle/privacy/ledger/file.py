"""A ledger in a file, one SQLite database. The place of a ledger is a path or the URL of a server (`store.STORES`).

It uses a write-ahead log, `synchronous=FULL`, and one `BEGIN IMMEDIATE` transaction for each change. Every error of
SQLite (missing, locked, full, read-only, damaged) becomes one `LedgerError`, and the transaction is rolled back. The
file is created with mode 0600, and refused if everybody may read or write it. SQLite's locks belong to the process and
are lost when any handle on the file is closed, so nothing else may open it; use `stat` only. Connections are not used
after a fork, since a commit could go into a log that the parent deletes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.diagnostics import refuse
from jostle.privacy.ledger.store import LEDGER, STORES, Connection, Layout, Store

if TYPE_CHECKING:
    import sqlite3


def _statements(layout: Layout) -> list[str]:
    chain, stop = layout.chain, "BEGIN SELECT RAISE(ABORT, 'append-only'); END"
    return [
        *(f"CREATE TABLE {name} ({text.format(bytes='BLOB')}) {layout.rows}" for name, text in layout.tables.items()),
        f"CREATE TRIGGER {chain}_stays BEFORE DELETE ON {chain} {stop}",
        f"CREATE TRIGGER {chain}_is_fixed BEFORE UPDATE ON {chain} {stop}",
        f"PRAGMA application_id = {layout.application}",
        f"PRAGMA user_version = {layout.version}",
    ]


# SQLite's error names by their beginnings, and the message for a person.
_REASONS = (
    (("SQLITE_BUSY", "SQLITE_LOCKED"), "is locked by another program", "wait for it to end, and run again"),
    (("SQLITE_READONLY",), "cannot be written", "charges must be written down before data are read"),
    (("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"), "cannot grow: the disk is full", "make room; nothing was charged"),
    (("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"), "cannot be opened", "ask its owner for access"),
    (("SQLITE_CORRUPT", "SQLITE_NOTADB"), "is damaged", "its owner restores it; nothing is read until then"),
)


class LedgerFile(Store):
    """A ledger in an SQLite file."""

    def __init__(self, path: str | Path, timeout: float = 30.0, layout: Layout = LEDGER) -> None:
        self.path = Path(path)
        super().__init__(timeout, layout)

    @property
    def place(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        try:
            self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self.refusal(f"cannot be reached: {(error.strerror or 'refused').lower()}") from None
        return True

    def is_part(self, path: str | Path) -> bool:
        for name in (self.path, f"{self.path}-wal", f"{self.path}-shm", f"{self.path}-journal"):
            with suppress(OSError):
                if os.path.samefile(name, path):
                    return True
        return False

    def create(self) -> None:
        """Creates the file under another name first, and renames it."""
        if self.exists():
            return
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with self.faults():
                connection = self._connect(draft)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                for statement in _statements(self.layout):
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

    def checked(self) -> Connection:
        if not self.exists():
            raise self.refusal("is not there", "an owner makes one: jostle data register")
        if stat.S_IMODE(self.path.stat().st_mode) & 0o007:
            raise self.refusal("is open to everybody", f"its owner takes that back: chmod o= {self.path}")
        connection, layout = self._connect(self.path), self.layout
        if layout.later:
            self._bring_up(connection)
        marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if marks != [layout.application, layout.version] or mode != "wal":
            connection.close()
            help = "give the path of a ledger: --ledger PATH" if layout is LEDGER else "a later one made it: upgrade"
            raise self.refusal(f"is no {layout.what} of this jostle", help)
        return connection

    def _bring_up(self, connection: sqlite3.Connection) -> None:
        """Upgrades a file of an older version."""
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for later in range(version + 1, self.layout.version + 1) if version else ():
            connection.execute(self.layout.later[later])
            connection.execute(f"PRAGMA user_version = {later}")
        connection.execute("COMMIT")

    def begin(self, connection: Connection, *, write: bool) -> None:
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def commit(self, connection: Connection) -> None:
        connection.execute("COMMIT")

    @contextmanager
    def faults(self) -> Iterator[None]:
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            for beginnings, why, help in _REASONS:
                if name.startswith(beginnings):
                    raise self.refusal(why, help) from None
            raise self.refusal(f"cannot be used ({name or type(error).__name__})") from None

    def _connect(self, path: Path) -> sqlite3.Connection:
        import sqlite3

        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=self.timeout, isolation_level=None,
            check_same_thread=False,
        )  # fmt: skip
        connection.execute("PRAGMA synchronous = FULL")
        return connection


def default_place() -> str | Path:
    """`$JOSTLE_LEDGER`, else `jostle/ledger.db` in `$XDG_DATA_HOME` or `~/.local/share`. Refused without a home."""
    own = os.environ.get("JOSTLE_LEDGER")
    if own:
        return own
    base = os.environ.get("XDG_DATA_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "share") / "jostle" / "ledger.db"
    except RuntimeError:
        return Path(os.devnull) / "ledger.db"


def store_at(place: str | Path, timeout: float, layout: Layout = LEDGER) -> Store:
    """The store at a place, of a ledger by default; it is not opened. `LedgerError` for an unknown kind of URL."""
    scheme, there, _ = str(place).partition("://")
    if not there or isinstance(place, Path):
        return LedgerFile(place, timeout, layout)
    if scheme + there not in STORES:
        raise refuse(
            "LedgerError", "this URL is of no server that keeps a ledger", help="postgresql://user@host/database"
        )
    return STORES[scheme + there](str(place), timeout, layout)
