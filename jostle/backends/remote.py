"""Data that lie on a server: the kinds of servers, and what a program names of one.

The scheme of a URL says which kind it is. A URL may hold a token or a password, so no message quotes one.
"""

from __future__ import annotations

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse

VARIABLE = "JOSTLE_ENGINE"


class Server(Struct, frozen=True):
    """`source` is the function by which a program names data there, `schemes` how URLs begin, `extra` what installs
    the packages that its engine needs."""

    source: str
    name: str
    schemes: tuple[str, ...]
    example: str
    extra: str


POSTGRES = Server(
    "postgres", "a PostgreSQL server", ("postgresql", "postgres"), "postgresql://user@host/database", "postgres"
)
SPARK = Server("spark", "a Spark cluster", ("sc",), "sc://host:15002", "spark")
SERVERS = (POSTGRES, SPARK)


class RemoteData(Struct, frozen=True):
    """What a program names of a server: tables, or paths there; `source` is the function that names them."""

    source: str
    names: tuple[str, ...]


def need_server(data: RemoteData, remote: str) -> None:
    """Refuses data of a server where a session works on another one, which `remote` names."""
    if remote != data.source:
        server = next(s for s in SERVERS if s.source == data.source)
        message = f"`{data.source}(…)` names data of {server.name}, and this session has none"
        raise refuse("DataError", message, help=f"`jostle run --engine {server.example}`, or ${VARIABLE}")


def not_installed(server: Server) -> Refusal:
    """That an engine's packages are not there."""
    help = f"`pip install 'jostle[{server.extra}]'`"
    return refuse("DataError", f"{server.name} needs packages that are not installed", help=help)
