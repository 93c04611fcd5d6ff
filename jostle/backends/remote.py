"""Data that lie on a server: the kinds of servers, and what a program names of one.

The scheme of a URL says which kind it is. A URL may hold a token or a password, so no message quotes one. What a server
cannot do as the others do is found in a question (`check`) before anything is charged or asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse
from jostle.engine.sql.dialect import Dialect, doubled_quotes, need
from jostle.engine.sql.functions import pattern_literal, whole_text
from jostle.language.operations import LONGEST
from jostle.plan.plan import Apply, Bound, Categories, Constant, Key, Listed, Sample, Scan, Summands
from jostle.records import field_names

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


def check(
    question: object, dialect: Dialect, check_source: Callable[[Scan | Bound], None],
    check_rows: Callable[[Summands | Sample], None] = lambda rows: None,
    check_pattern: Callable[[str], None] = lambda pattern: None,
) -> None:  # fmt: skip
    """Refuses an operation, a text or a data set that is not done alike; rows that cannot be summed where they are; and
    patterns that the server does not read, anywhere in a question: in what it is made of, plans, expressions, keys and
    descriptions, all of which are public. Names of columns are no texts of a query.
    """
    if not dialect.refused and dialect.spelled and dialect.quoted is doubled_quotes:
        return
    waiting, ids = [question], {id(question)}
    while waiting:
        part = waiting.pop()
        for text in _texts(part):
            if len(text) > LONGEST:
                message = f"a text of more than {LONGEST:,} characters is not sent to {dialect.name}"
                raise refuse("DataError", message, help="leave it out: no cell is so long")
            dialect.literal(text)
        if isinstance(part, Apply):
            need(part.op, dialect)
            if (pattern := _pattern_of(part, dialect)) is not None:
                check_pattern(pattern_literal(dialect, pattern).format())
        elif isinstance(part, Scan | Bound):
            check_source(part)
        elif isinstance(part, Summands | Sample):
            check_rows(part)
        inner: list[object] = []
        if isinstance(part, tuple | list):
            inner = [*part]
        else:
            inner = [getattr(part, name) for name in field_names(type(part)) if name != "exposures"]
        waiting += [one for one in inner if id(one) not in ids]
        ids |= {id(one) for one in inner}


def _pattern_of(part: Apply, dialect: Dialect) -> str | None:
    """The pattern by which an operation reads a text."""
    match part:
        case Apply("matches", (_, Constant(str(pattern)))):
            return dialect.pattern(pattern)
        case Apply("date by format" | "time by format" as name, (_, Constant(str(form)))):
            return whole_text(dialect.format(form, name[:4])[0])
    return None


def _texts(part: object) -> Iterable[str]:
    """The texts of a part of a question that stand in its SQL."""
    values: Iterable[object] = ()
    if isinstance(part, Constant):
        values = (part.value,)
    elif isinstance(part, Categories | Key):
        values = () if isinstance(part.values, range) else part.values
    elif isinstance(part, Listed):
        values = (cell for row in part.rows for cell in row)
    return (value for value in values if isinstance(value, str))
