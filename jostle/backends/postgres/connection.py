"""One connection to a PostgreSQL server, and one state of its tables.

What is read is of one state of the database, that of the first read: a row that moves from one group to another
meanwhile is in one of them. A second connection keeps that state, in a transaction that names no table; each program
reads it in a transaction of its own (`REPEATABLE READ READ ONLY`), which ends with the program. So a session that waits
at a prompt keeps nobody from altering a table. A table that was altered, rebuilt or renamed meanwhile is refused before
a charge where that was before the program's first question. Names are looked up in the system's catalog alone, so that
no function of a user's runs, and texts are written alike wherever the server stands.

What a server says of an error may quote a cell, and what a client says may quote the URL: neither is passed on. A
query that somebody stops is taken back, and the transaction goes on; after an error the connection is given up. Before
anything of a table was read the next query makes a new one. Later none is made: a row that moved from one part of a
table to another meanwhile would be in both, and parts are paid for once.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from jostle.diagnostics import Refusal, refuse

T = TypeVar("T")
OLDEST = 150_000
_AGAIN = "run the program again; in a notebook or the shell, begin a new session"
_SETTINGS = """SET LOCAL search_path = pg_catalog; SET LOCAL datestyle = ISO; SET LOCAL intervalstyle = postgres;
SET LOCAL timezone = 'UTC'; SET LOCAL extra_float_digits = 1; SET LOCAL standard_conforming_strings = on;
SET LOCAL row_security = off; SET LOCAL array_nulls = on; SET LOCAL jit = off; SET LOCAL statement_timeout = 0;
SET LOCAL enable_nestloop = off"""
"""The last one since a server that expects one row of a nested select would compare each row with each other one."""
_UNENDING = """SET LOCAL idle_in_transaction_session_timeout = 0; SELECT pg_catalog.set_config(
'transaction_timeout', '0', true) WHERE pg_catalog.current_setting('transaction_timeout', true) <> ''"""  # from 17 on
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_MARK = "SAVEPOINT jostle"
_FACTS = """SELECT to_regclass(%s)::oid::bigint, ARRAY(SELECT pg_relation_filenode(part) FROM unnest(%s::oid[]) part),
ARRAY(SELECT pg_describe_object('pg_class'::regclass, %s::oid, place)
|| coalesce(has_column_privilege(%s::oid, place::smallint, 'SELECT'), false) FROM unnest(%s::int[]) place)"""
_SERVER = """SELECT current_setting('server_encoding'), (SELECT system_identifier FROM pg_control_system()),
(SELECT oid FROM pg_database WHERE datname = current_database())"""


class Connection:
    """Connects when something is first asked. Not for several threads at once, nor for a forked process."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._held: list[Any] = []  # the open connections, if there are: one that reads, one that keeps the state
        self._state = ""  # the name of the state
        self._resting = False  # whether the one that reads is in no transaction
        self._owner = os.getpid()
        self._server: tuple[int, int] | None = None
        self._tables: dict[str, int] = {}  # the number that each table in use was known by, under its name
        self._facts: dict[str, tuple[tuple[object, ...], object]] = {}  # what `_FACTS` is of, and said
        self._stale: set[str] = set()  # the names of tables of which it says something else by now
        self._kin: dict[str, frozenset[tuple[str, str]]] = {}  # what may be read with it: schemas and names, as then
        self._sure: set[str] = set()  # the names that nobody can give to another table before the transaction ends
        self._seen = self._lost = False  # whether rows of a table were read, and whether their state is gone
        self._close = weakref.finalize(self, _close, self._held, self._owner)

    def close(self) -> None:
        """Ends the transaction and the connection."""
        self._close()

    @property
    def server(self) -> tuple[int, int]:
        """What tells the server's data and the database from all others."""
        self._open()
        if self._server is None:
            raise unreadable("the server")
        return self._server

    def catalog(self, query: str, label: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query that reads no table of a user's."""
        with self._refusals(label), self._open().cursor(binary=True) as cursor:
            cursor.execute(query, values or None)
            return list(cursor.fetchall())

    def uses(
        self, name: str, number: int, parts: frozenset[tuple[str, str]] | None, kin: list[int], places: list[int]
    ) -> None:
        """Says that queries will name a table so; by which number of the catalog it was known, with which parts and
        heirs, by schema and name, where it may get others; with which numbers; and which places of its columns."""
        self._tables[name] = number
        values = (name, kin, number, number, places)
        self._facts[name] = values, self.catalog(_FACTS, name, values)
        if parts is not None:
            self._kin[name] = parts

    def rest(self) -> None:
        """Ends the transaction that reads, until something is asked again. The state stays."""
        if self._held and not self._resting and os.getpid() == self._owner:
            with contextlib.suppress(Refusal), self._refusals("the server"):
                self._held[0].execute("COMMIT")
                self._sure.clear()
                self._resting = True

    def need(self, query: str) -> None:
        """Refuses a query that names a table which is another by now, as far as that is known without a lock."""
        self._open()
        if any(name in query for name in self._stale):
            raise refuse("DataError", "a table of the PostgreSQL database was altered since it was opened", help=_AGAIN)

    def read(self, query: str, label: str, take: Callable[[Any], T]) -> T:
        """What `take` makes of the cursor of a query."""
        with self._refusals(label), self._open().cursor(binary=True) as cursor:
            self._send(cursor.execute, query)
            return take(cursor)

    def _send(self, execute: Callable[[str], object], query: str) -> None:
        self.need(query)
        self._mark()
        execute(query)
        self._seen = True
        self._check_names(query)
        self._check_parts(query)

    def blocks(self, query: str, label: str, size: int) -> Iterator[tuple[list[object], list[tuple[object, ...]]]]:
        """The columns' description and at most `size` rows of a query at a time, as the server has them."""
        with self._refusals(label), self._open().cursor("blocks", binary=True) as cursor:
            self._send(cursor.execute, query)
            while rows := cursor.fetchmany(size):
                yield cursor.description, rows

    def _check_names(self, query: str) -> None:
        """Refuses where a table took another's name since that was looked up. A query has locked all that it names, and
        a name stays where it is while its table is locked."""
        for name in [name for name in self._tables if name not in self._sure and name in query]:
            cursor = self._open().execute("SELECT to_regclass(%s)::oid::bigint", (name,))
            if cursor.fetchone() != (self._tables[name],):
                raise refuse("DataError", "a table of the PostgreSQL database has another's name by now", help=_AGAIN)
            self._sure.add(name)

    def _check_parts(self, query: str) -> None:
        """Refuses where a table got a part or an heir since it was looked up: no lock of a reader keeps others from
        that, and its rows may have been read by its own name. A plan of the whole table has those that are read with it
        now, not in the transaction, and no fewer than the query read, which has locked them."""
        for name in [name for name in self._kin if name in query]:
            explained = self._open().execute(f"EXPLAIN (FORMAT JSON, VERBOSE, COSTS OFF) SELECT FROM {name}")
            ((plan,),) = explained.fetchall()
            if not self._kin[name].issuperset(_tables(plan)):
                raise refuse("DataError", "a table of the PostgreSQL database has other parts by now", help=_AGAIN)

    @contextlib.contextmanager
    def _refusals(self, label: str) -> Iterator[None]:
        import psycopg

        try:
            yield
        except KeyboardInterrupt:
            self._take_back()
            raise
        except (psycopg.Error, OSError):
            self._give_up()
            raise unreadable(label) from None

    def _mark(self) -> None:
        """A state of the transaction to go back to; what was locked before stays locked."""
        self._open().execute(f"RELEASE {_MARK}; {_MARK}")

    def _take_back(self) -> None:
        """Goes back to before a query that was stopped, whose locks are gone: names are looked up again."""
        import psycopg

        self._sure.clear()
        for connection in self._held[:1]:
            if connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS:
                return  # nothing ran
            try:
                connection.execute(f"ROLLBACK TO {_MARK}")
            except (psycopg.Error, OSError):
                self._give_up()
                return

    def _give_up(self) -> None:
        import psycopg

        self._lost = self._seen
        self._resting = False
        self._sure.clear()
        while self._held:
            with contextlib.suppress(psycopg.Error, OSError):
                self._held.pop().close()

    def _open(self) -> Any:
        import psycopg

        if self._resting:
            self._go_on()
        if self._held:
            return self._held[0]
        if os.getpid() != self._owner:
            raise refuse("DataError", "the connection to PostgreSQL is another process's")
        if self._lost:
            message = "the connection to PostgreSQL broke after data were read, and they may be others by now"
            raise refuse("DataError", message, help=_AGAIN)
        try:
            for _ in range(2):
                connection = psycopg.connect(
                    self._url, autocommit=True, prepare_threshold=None, client_encoding="UTF8", connect_timeout=30
                )
                self._held.append(connection)
        except (psycopg.Error, OSError, UnicodeError):
            message = "the PostgreSQL server cannot be reached, or does not let this user in"
            help = "the URL is like `postgresql://user@host:5432/database`; a password may stand in `~/.pgpass`"
            self._give_up()
            raise refuse("DataError", message, help=help) from None
        try:
            self._begin(*self._held)
        except (psycopg.Error, OSError):
            self._give_up()
            raise unreadable("the server") from None
        except Refusal:
            self._give_up()
            raise
        return self._held[0]

    def _begin(self, connection: Any, keeper: Any) -> None:
        """Begins the transactions, on a server that can be told from others, and is the one of before."""
        if connection.info.server_version < OLDEST:
            raise refuse("DataError", "the PostgreSQL server is older than version 15")
        keeper.execute(f"{_BEGIN}; {_UNENDING}")
        (self._state,) = keeper.execute("SELECT pg_export_snapshot()").fetchone()
        self._enter(connection)
        encoding, system, database = connection.execute(_SERVER).fetchone()
        if encoding != "UTF8":
            raise refuse("DataError", "the texts of the PostgreSQL database are not in UTF-8")
        if self._server not in (None, (system, database)):
            raise refuse("DataError", "the URL leads to another PostgreSQL server than before")
        self._server = system, database

    def _enter(self, connection: Any) -> None:
        """Begins the transaction that reads."""
        connection.execute(f"{_BEGIN}; SET TRANSACTION SNAPSHOT '{self._state}'; {_SETTINGS}; {_UNENDING}; {_MARK}")

    def _go_on(self) -> None:
        """Reads the state again, and finds the tables that are others by now: of one that was rebuilt it has no row."""
        self._resting = False
        with self._refusals("the data"):
            self._enter(self._held[0])
            for name, (values, facts) in self._facts.items():
                if self._held[0].cursor(binary=True).execute(_FACTS, values).fetchall() != facts:
                    self._stale.add(name)


def _tables(plan: object) -> Iterator[tuple[str, str]]:
    """Schemas and names of the tables that a plan reads, which is JSON."""
    if isinstance(plan, dict) and "Relation Name" in plan:
        yield plan["Schema"], plan["Relation Name"]
    for part in plan.values() if isinstance(plan, dict) else plan if isinstance(plan, list) else ():
        yield from _tables(part)


def unreadable(label: str) -> Refusal:
    """What is said of every error, whatever the server says of it."""
    return refuse(
        "DataError", f"{label} cannot be read: the connection broke, or the server gave the query up",
        help=f"the server's log says more; {_AGAIN}",
    )  # fmt: skip


def _close(connections: list[Any], owner: int) -> None:
    if os.getpid() != owner:  # a forked child: the connection is the parent's
        return
    while connections:
        with contextlib.suppress(Exception):  # it may be broken in any way
            connections.pop().close()
