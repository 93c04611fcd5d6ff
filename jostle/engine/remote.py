"""Data that lie on a server: what a program names of them, and which engine stands before them.

The scheme of a URL says which engine it is. A URL may hold a token or a password, so no message quotes one. Nothing is
connected here: an engine does so when something is first asked of it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from jostle.diagnostics import refuse

if TYPE_CHECKING:
    from jostle.engine.base import Engine

VARIABLE = "JOSTLE_ENGINE"


@dataclass(frozen=True, slots=True)
class Server:
    """A kind of server. `source` is the function by which a program names data there, `schemes` how URLs begin,
    `needs` the package that its engine (`engine`, a module and a class) imports, `extra` what installs it."""

    source: str
    name: str
    schemes: tuple[str, ...]
    example: str
    engine: str
    needs: str
    extra: str


SERVERS = (
    Server(
        source="spark", name="a Spark cluster", schemes=("sc",), example="sc://host:15002",
        engine="jostle.engine.spark.engine:Spark", needs="pyspark", extra="spark",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RemoteData:
    """What a program names of a server: tables, or paths there; `source` is the function that names them."""

    source: str
    names: tuple[str, ...]


def engine_at(url: str | None, *, environment: bool = True) -> Engine:
    """The engine at a URL, else with `environment` at that of `$JOSTLE_ENGINE`, else the one in this process."""
    url = url or (os.environ.get(VARIABLE) if environment else None)
    if not url:
        from jostle.engine.duckdb.engine import DuckDb

        return DuckDb()
    server = next((s for s in SERVERS if url.partition("://")[0] in s.schemes and "://" in url), None)
    if server is None:
        ways = " or ".join(f"`{s.example}`" for s in SERVERS)
        raise refuse("DataError", "the engine's URL is none that is known", help=f"it is like {ways}")
    module, _, name = server.engine.partition(":")
    try:
        import_module(server.needs)
    except ImportError:
        help = f"`pip install 'jostle[{server.extra}]'`"
        raise refuse("DataError", f"{server.name} needs packages that are not installed", help=help) from None
    engine: Engine = getattr(import_module(module), name)(url)
    return engine


def need_server(data: RemoteData, engine: Engine) -> None:
    """Refuses data of a server where a session has another engine."""
    if engine.remote != data.source:
        server = next(s for s in SERVERS if s.source == data.source)
        message = f"`{data.source}(…)` names data of {server.name}, and this session has none"
        raise refuse("DataError", message, help=f"`jostle run --engine {server.example}`, or ${VARIABLE}")
