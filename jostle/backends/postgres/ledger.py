"""A ledger in a PostgreSQL database, for a team: the schema `jostle_ledger`; what a server keeps, in `jostle_store`.

Writers hold one lock on its first table, so that there is one at a time; a reader sees one snapshot. Each transaction
asks for `synchronous_commit`, and a server that does not write its log through (`fsync`, `full_page_writes`) is
refused: a charge is on disk, and with synchronous standbys on theirs, before anything is read. Where the connection is
lost while a charge is written nobody knows whether it stands: the program ends there, and has read nothing.

Messages of the server are never passed on, nor is anything of the address beyond host, port and database.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.diagnostics import refuse
from jostle.privacy.ledger.store import LEDGER, STORES, Connection, Layout, Result, Store

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql://", "postgres://")
_APPEND = (
    "CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'append-only'; END$$"
)
_LOCK = 0x6A6F73746C65  # of whoever makes a ledger
_SETTINGS = ("fsync", "full_page_writes")
# SQLSTATE by its beginning, and the message for a person.
_REASONS = (
    (("55P03",), "is locked by another program", "wait for it to end, and run again"),
    (("25006",), "cannot be written", "charges must be written down before data are read"),
    (("53100",), "cannot grow: the disk is full", "make room; nothing was charged"),
    (("42501", "28", "3D000"), "cannot be opened", "ask its owner for access"),
    (("XX001", "XX002", "42P01", "42703"), "is damaged", "its owner restores it; nothing is read until then"),
    (
        ("08", "57P", "lost"),
        "cannot be reached",
        "it may be starting: try again; a charge that was being written may stand, but nothing was read after it",
    ),
)


def address(url: str) -> str:
    """What may be shown of a server's URL: host, port and database, and no user, password or token."""
    from urllib.parse import parse_qs, urlsplit

    try:
        parts = urlsplit(url)
        host = parts.hostname or parse_qs(parts.query).get("host", ["localhost"])[0]
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{host}{port}{parts.path.partition(';')[0].rstrip('/')}"


class _Server:
    """A psycopg connection as a `Connection`. A forked child leaves it alone: what it said would be the parent's."""

    def __init__(self, connection: psycopg.Connection[object]) -> None:
        self.raw, self._process = connection, os.getpid()

    def __del__(self) -> None:
        if os.getpid() == self._process:
            self.raw.close()

    @property
    def in_transaction(self) -> bool:
        return not self.raw.closed and self.raw.info.transaction_status.name != "IDLE"

    def execute(self, statement: str, parameters: Sequence[object] = (), /) -> Result:
        return self.raw.execute(statement.replace("?", "%s").encode(), parameters or None)

    def close(self) -> None:
        self.raw.close()


class LedgerDatabase(Store):
    """A ledger in the database at `postgresql://user@host/database`. Passwords are where libpq looks for them."""

    def __init__(self, url: str, timeout: float = 30.0, layout: Layout = LEDGER) -> None:
        self._url, self.schema = url, f"jostle_{layout.what}"
        self._mark = f"jostle {layout.what} {layout.version}"
        super().__init__(timeout, layout)

    @property
    def place(self) -> str:
        return f"{SCHEMES[0]}{address(self._url)}"

    def exists(self) -> bool:
        with self._lock, self.faults():
            if self._open is not None:
                return True
            with closing(self._server()) as server:
                return self._there(server)

    def is_part(self, path: str | Path) -> bool:
        return False

    def create(self) -> None:
        with self._lock, self.faults(), closing(self._server()) as server:
            server.execute("BEGIN")
            self._durable(server)
            server.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
            if not self._there(server):
                for statement in self._statements():
                    server.execute(statement)
            self.commit(server)

    def _statements(self) -> list[str]:
        chain = self.layout.chain
        changes = f"BEFORE UPDATE OR DELETE OR TRUNCATE ON {chain}"
        return [
            f"CREATE SCHEMA {self.schema}",
            f"SET LOCAL search_path TO {self.schema}, pg_temp",
            *(f"CREATE TABLE {name} ({text.format(bytes='BYTEA')})" for name, text in self.layout.tables.items()),
            _APPEND,
            f"CREATE TRIGGER {chain}_stays {changes} EXECUTE FUNCTION append_only()",
            f"COMMENT ON SCHEMA {self.schema} IS '{self._mark}'",
        ]

    def checked(self) -> Connection:
        server = self._server()
        if not self._there(server):
            raise self.refusal("is not there", "an owner makes one: jostle data register")
        (mark,) = server.execute("SELECT obj_description(?::regnamespace, 'pg_namespace')", (self.schema,)).fetchone()
        tables = [f"{self.schema}.{name}" for name in self.layout.tables]
        if mark != self._mark or any(_kind(server, table) != "p" for table in tables):
            raise self.refusal(f"is no {self.layout.what} of this jostle", f"its schema {self.schema} is another's")
        rights = "SELECT, INSERT, UPDATE, DELETE, TRUNCATE"
        for table in tables:
            if server.execute("SELECT has_table_privilege('public', ?, ?)", (table, rights)).fetchone()[0]:
                help = f"its owner takes that back: REVOKE ALL ON {table} FROM PUBLIC"
                raise self.refusal("is open to everybody", help)
        for setting in _SETTINGS:
            if server.execute(f"SHOW {setting}").fetchone()[0] != "on":
                raise self.refusal("can forget what was charged", f"the server runs with {setting} = off")
        return server

    def begin(self, connection: Connection, *, write: bool) -> None:
        connection.execute(f"BEGIN ISOLATION LEVEL {'READ COMMITTED' if write else 'REPEATABLE READ READ ONLY'}")
        connection.execute(f"SET LOCAL search_path TO {self.schema}, pg_temp")
        if write:
            self._durable(connection)
            connection.execute(f"LOCK TABLE {self.schema}.{next(iter(self.layout.tables))} IN EXCLUSIVE MODE")

    def commit(self, connection: Connection) -> None:
        """A server answers ROLLBACK, and no error, where a statement had failed."""
        if getattr(connection.execute("COMMIT"), "statusmessage", "") != "COMMIT":
            raise self.refusal("cannot be written")

    @contextmanager
    def faults(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            state = error.sqlstate or "lost"
            for beginnings, why, help in _REASONS:
                if state.startswith(beginnings):
                    raise self.refusal(why, help) from None
            raise self.refusal(f"cannot be used ({state})") from None
        finally:
            if isinstance(self._open, _Server) and self._open.raw.closed:
                self._open = None

    def _server(self) -> _Server:
        try:
            import psycopg
        except ImportError:
            raise refuse(
                "LedgerError", "a ledger in PostgreSQL needs a driver", help="pip install 'jostle[postgres]'"
            ) from None
        wait = max(1, round(self.timeout))
        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=wait, application_name="jostle ledger")
        connection.prepare_threshold = None  # behind a pool that lends connections nothing may be left over
        return _Server(connection)

    def _there(self, server: _Server) -> bool:
        return bool(server.execute("SELECT to_regnamespace(?) IS NOT NULL", (self.schema,)).fetchone()[0])

    def _durable(self, connection: Connection) -> None:
        connection.execute("SET LOCAL synchronous_commit TO on")
        connection.execute(f"SET LOCAL lock_timeout TO {max(1, round(self.timeout * 1000))}")


def _kind(server: _Server, table: str) -> str | None:
    """`p` for a permanent table, `u` for one that a crash empties."""
    row = server.execute("SELECT relpersistence FROM pg_class WHERE oid = to_regclass(?)", (table,)).fetchone()
    return None if row is None else str(row[0])


STORES.update(dict.fromkeys(SCHEMES, LedgerDatabase))
