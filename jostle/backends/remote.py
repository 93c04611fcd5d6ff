"""Data that lie on a server: the kinds of servers, and what a program names of one.

The scheme of a URL says which kind it is. A URL may hold a token or a password, so no message quotes one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable

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
_WRITTEN = re.compile(rf"\s*({'|'.join(server.source for server in SERVERS)})\((.*)\)\s*", re.DOTALL)


class RemoteData(Struct, frozen=True):
    """What a program names of a server: tables, or paths there; `source` is the function that names them. Where the
    marks by which the server knew them are their `own`, they are those same data by whatever name they have now."""

    source: str
    names: tuple[str, ...]
    own: frozenset[Hashable] = frozenset()


def remote_data(text: str) -> RemoteData | None:
    """The data that `postgres("ny.flights")` names, as a program writes it; None where a text is something else."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return None
    try:
        names = json.loads(f"[{match[2]}]")
    except ValueError:
        names = []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise refuse("DataError", f"`{match[1]}` takes names, as texts", help=f'`{match[1]}("schema.table")`')
    return RemoteData(match[1], tuple(names))


def need_server(data: RemoteData, remote: str, label: str = "") -> None:
    """Refuses data of a server where a session works on another one, which `remote` names."""
    if remote != data.source:
        server = next(s for s in SERVERS if s.source == data.source)
        named = label or f"`{data.source}(…)` names data"
        message = f"{named} of {server.name}, and this session has none"
        raise refuse("DataError", message, help=f"`jostle run --engine {server.example}`, or ${VARIABLE}")


def not_installed(server: Server) -> Refusal:
    """That an engine's packages are not there."""
    help = f"`pip install 'jostle[{server.extra}]'`"
    return refuse("DataError", f"{server.name} needs packages that are not installed", help=help)
