"""One session of a Spark Connect server: queries go, Arrow comes back, and nothing that the server says of rows.

The messages of a server quote values and plans, and the client writes them to a log before anything can catch them, so
that log is closed. What fails is one `DataError` with a fixed text. A URL may hold a token: it is kept here and told to
nobody. What is asked again after a lost connection is asked for some seconds, not for ten minutes as the client would.

A connection that was cut without a word, as by a machine that lost its power, is noticed. A server that works is asked
for a sign of life; a server of Apache's takes it ill where that is more often than every five minutes.
A forked process has the parent's connection in common with it, and what it said would be the parent's: it says nothing.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.diagnostics import Refusal, refuse
from jostle.engine.sql.dialect import subquery
from jostle.lazy import pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.proto import Plan
    from pyspark.sql.connect.session import SparkSession

T = TypeVar("T")
_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
_RETRIES = 6  # after 0.05, 0.2, 0.8 and then after each second
_SILENCE = 330_000  # milliseconds without a word, after which a server that works is asked for a sign of life
_CHANNEL = (("grpc.keepalive_timeout_ms", 20_000), ("grpc.http2.max_pings_without_data", 0),
            ("grpc.min_reconnect_backoff_ms", 5_000))  # fmt: skip
_PATIENCE = 3.0  # seconds that an answer to a stop is waited for
_UNTOLD = "the message of the server is not shown: it may quote rows"
_NO_ANSWER = "the Spark cluster could not do what it was asked, or did not answer"
_CHECK = "SELECT 'a' = 'A' AS c0, unix_micros(try_cast('1970-01-01' AS TIMESTAMP)) AS c1"


def client() -> tuple[Any, Any, Any]:
    """What makes a session, what makes its channel, and what says how often is asked again; `ImportError` where the
    packages are not there.

    A program that came by `python -c` has no file, which the package takes for a test of its own, and exits.
    """
    main = sys.modules["__main__"]
    nameless = not hasattr(main, "__file__")
    if nameless:
        main.__file__ = ""
    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession
    finally:
        if nameless:
            del main.__file__
    return SparkSession.builder, DefaultChannelBuilder, DefaultPolicy


class Connection:
    """Connects when it is first asked anything. Not for a forked process."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._owner = os.getpid()
        self._kept: list[DataFrame] = []  # data frames whose rows the cluster keeps

    @property
    def session(self) -> SparkSession:
        if os.getpid() != self._owner:
            raise refuse("DataError", "the connection to the Spark cluster is another process's")
        return self._opened

    @cached_property
    def _opened(self) -> SparkSession:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        warnings.simplefilter("ignore")  # of the client: a warning may quote values
        with _refusals("the Spark cluster cannot be reached", "is the URL right, and is the server up?"):
            builder, channel, policy = client()
            for name in _LOGS:
                log = logging.getLogger(name)
                log.disabled, log.propagate = True, False
            options = [*_CHANNEL, ("grpc.keepalive_time_ms", _SILENCE)]
            session: SparkSession = builder.channelBuilder(channel(self._url, options)).create()
            again = policy(max_retries=_RETRIES, max_backoff=1_000, max_server_retry_delay=1_000)
            session.client.set_retry_policies([again])
            vars(session.client)["interrupt_operation"] = lambda _: None  # `_stoppable` stops all
            stub = session.client._stub  # what frees a query: Sail answers it when a stopped query would have ended
            stub.ReleaseExecute = partial(stub.ReleaseExecute, timeout=_PATIENCE)
            session.conf.set("spark.sql.session.timeZone", "UTC")
            agrees = list(session.sql(_CHECK).toArrow().to_pylist()[0].values())
        if agrees != [False, 0]:
            raise refuse("DataError", "the Spark cluster compares texts by a language, or has no UTC",
                         help="set its default collation and time zone back to what they are at first")  # fmt: skip
        self._end = weakref.finalize(self, _stopped, session, self._kept, self._owner)
        return session

    def table(self, query: str) -> pa.Table:
        """The rows of a query, all at once. It goes as a plan: a command would take two more calls of the server."""
        return self.ask(lambda session: session.client.to_table(_planned(session, query), {})[0])

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The rows of a query as Arrow record batches, as they come."""
        session = self.session
        with _refusals(_NO_ANSWER), _stoppable(session):
            for part in session.client.to_table_as_iterator(_planned(session, query), {}):
                if hasattr(part, "to_batches"):
                    yield from part.to_batches()

    def ask(self, read: Callable[[SparkSession], T], message: str = _NO_ANSWER, help: str | None = None) -> T:
        """What `read` gives of the session."""
        session = self.session
        with _refusals(message, help), _stoppable(session):
            return read(session)

    def cache(self, query: str) -> DataFrame:
        """A data frame whose rows the cluster keeps until this connection is closed.

        Spark answers whatever plan is equal to a kept one from what it keeps, in every session, also when files have
        changed meanwhile. So the plan names the session, which costs nothing on a row.
        """
        statement = f"SELECT * FROM {subquery(query)} WHERE '{self.session.session_id}' <> ''"
        frame = self.ask(lambda session: session.sql(statement).persist())
        self._kept.append(frame)
        return frame

    def close(self) -> None:
        if "_opened" in self.__dict__:
            self._end()


def _planned(session: SparkSession, query: str) -> Plan:
    """A query as a plan of the protocol's."""
    from pyspark.sql.connect.plan import SQL

    return SQL(query).to_proto(session.client)


_left: list[object] = []  # what is a parent's, and may not be closed by a forked process, not even when it is collected
os.register_at_fork(after_in_child=gc.freeze)  # what the parent had not collected stays: a channel would crash here


def _stopped(session: SparkSession, frames: list[DataFrame], owner: int) -> None:
    """Ends a session, which alone does not free the rows that Apache Spark keeps for it; a server that is gone is not
    waited for."""
    if os.getpid() != owner:
        _left.append(session)
        return
    session.client.set_retry_policies([])
    with warnings.catch_warnings(), contextlib.suppress(Refusal), _refusals(_NO_ANSWER):
        warnings.simplefilter("ignore")
        for frame in frames:
            frame.unpersist()
        session.stop()


@contextmanager
def _stoppable(session: SparkSession) -> Iterator[None]:
    """Whoever stops a query here stops it on the server too. It is asked once, and not waited for long: Sail may answer
    only when the query's rows are not waited for either, which stops it as well."""

    def interrupt() -> None:
        with contextlib.suppress(Refusal), _refusals(_NO_ANSWER):
            session.interruptAll()

    try:
        yield
    except KeyboardInterrupt:
        policies = session.client.get_retry_policies()
        session.client.set_retry_policies([])
        asking = threading.Thread(target=interrupt, daemon=True)
        asking.start()
        asking.join(_PATIENCE)
        session.client.set_retry_policies(policies)
        raise


@contextmanager
def _refusals(message: str, help: str | None = None) -> Iterator[None]:
    """A `DataError` of one's own words for whatever the client or the server raises."""
    import grpc
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, grpc.RpcError, pa.ArrowException, OSError, ValueError, RuntimeError):
        raise refuse("DataError", message, help=help or _UNTOLD) from None
