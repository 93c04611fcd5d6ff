"""Engines and ledgers on servers, and which engine a session has: the one at a URL, or the one in this process.

Loading this room enters its ledgers where programs look for them. Nothing is connected here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from jostle.backends.postgres import ledger as ledger
from jostle.backends.remote import POSTGRES, SERVERS, SPARK, VARIABLE, RemoteData, need_server, not_installed
from jostle.diagnostics import refuse

if TYPE_CHECKING:
    from jostle.backends.server import ServerEngine
    from jostle.engine.base import Engine


def engine_at(url: str | Engine | None, memory: str | None = None, *, environment: bool = True) -> Engine:
    """The engine at a URL, where none is given and with `environment` at that of `$JOSTLE_ENGINE`; an empty URL, or
    none, is the one of this process, which may take so much `memory`. An engine stays what it is."""
    if url is not None and not isinstance(url, str):
        return url
    url = os.environ.get(VARIABLE) if url is None and environment else url
    if not url:
        from jostle.readers.duckdb import LocalDuckDb

        return LocalDuckDb(memory)
    scheme, there, _ = url.partition("://")
    server = next((server for server in SERVERS if there and scheme in server.schemes), None)
    if server is None:
        ways = " or ".join(f"`{server.example}`" for server in SERVERS)
        raise refuse("DataError", "the URL of the engine is of no kind that is known", help=f"it is like {ways}")
    try:
        return _OF[server.source](url)
    except ImportError:
        raise not_installed(server) from None


def server_at(data: RemoteData, url: str | None) -> ServerEngine:
    """The engine on the server that has these data, at a URL, or where none is given at that of `$JOSTLE_ENGINE`."""
    from jostle.backends.server import ServerEngine

    url = url or os.environ.get(VARIABLE, "")
    need_server(data, next((server.source for server in SERVERS if url.partition("://")[0] in server.schemes), ""))
    engine = engine_at(url)
    if not isinstance(engine, ServerEngine):
        raise refuse("DataError", "the URL of the engine is that of no server")
    return engine


def _postgres(url: str) -> Engine:
    import psycopg  # noqa: F401 (that it is there)

    from jostle.backends.postgres.engine import Postgres

    return Postgres(url)


def _spark(url: str) -> Engine:
    from jostle.backends.spark.connection import client
    from jostle.backends.spark.engine import Spark

    client()  # that it is there

    return Spark(url)


_OF: dict[str, Callable[[str], Engine]] = {POSTGRES.source: _postgres, SPARK.source: _spark}
