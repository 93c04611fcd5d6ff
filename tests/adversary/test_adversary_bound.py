"""The same rows, bound from Python under two names: they have one budget, or the second is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from jostle.source import Source
from jostle.tools.session import Session

DECLARED = "private {} = bound({}) described by {{v: 0..9}} protecting rows budget epsilon 1\n"
ASKED = "x{0} = {{{{ select count(*) from {0} with epsilon 0.6 }}}}\n"
SHARED, REFUSED, APART = "BudgetExceeded", "DataError", ""


def kind(session: Session, program: str) -> str:
    result = session.attempt(Source("p.jst", program))
    return result.diagnostics[0].kind if result.diagnostics else ""


def spent_twice(first: Any, second: Any, more: str = "") -> str:
    """What stops a program that spends 0.6 of 1 of each of two sources."""
    session = Session()
    session.bind("a", first)
    session.bind("b", second)
    program = DECLARED.format("p", f'"a"{more}') + ASKED.format("p") + DECLARED.format("q", '"b"') + ASKED.format("q")
    return kind(session, program)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    connection = duckdb.connect()
    for table in ("people", "others", '"a AS b"'):
        connection.execute(f"CREATE TABLE {table} AS SELECT range AS v FROM range(5)")
    connection.execute("CREATE VIEW old AS SELECT * FROM people WHERE v > 2")
    connection.execute('CREATE VIEW "as AS select" (v) AS WITH o AS (FROM old) SELECT v FROM o')
    connection.execute("CREATE MACRO all_of() AS TABLE SELECT * FROM people")
    connection.execute("CREATE MACRO most() AS (SELECT max(v) FROM people)")
    connection.execute("COPY people TO 'people.parquet'; COPY others TO 'others.csv'")
    frame = pd.DataFrame({"v": [1, 2]})
    connection.register("frame", frame)
    return connection


READS = {
    "a table": ("FROM people", "FROM people", SHARED), "two tables": ("FROM people", "FROM others", APART),
    "in any case": ("FROM people", "FROM main.PEOPLE", SHARED),
    "a part of it": ("FROM people", "SELECT v + 1 AS v FROM people WHERE v > 2", SHARED),
    "a view": ("FROM old", "FROM people", SHARED), "a view of a view": ("FROM people", 'FROM "as AS select"', SHARED),
    "a view of another": ("FROM others", 'FROM "as AS select"', APART),
    "a join": ("FROM people", "SELECT v FROM others JOIN people USING (v)", SHARED),
    "within": ("FROM people", "SELECT * FROM range(3) t(v) WHERE v IN (SELECT v FROM people)", SHARED),
    "a name of its own": ("FROM others", "WITH people AS (FROM people) FROM people", APART),
    "files": ("FROM 'people.parquet'", "FROM read_parquet(['people.parquet'])", SHARED),
    "two files": ("FROM 'people.parquet'", "FROM read_csv('others.csv')", APART),
    "a pattern": ("FROM 'people.parquet'", "FROM read_parquet('*.parquet')", SHARED),
    "a function": ("FROM others", "FROM all_of()", REFUSED), "a value": ("FROM others", "SELECT most() AS v", REFUSED),
    "a query in a text": ("FROM query('FROM people')", "FROM others", REFUSED),
    "a frame": ("FROM others", "FROM frame", REFUSED), "no table": ("FROM others", "FROM range(5) t(v)", REFUSED),
}  # fmt: skip


@pytest.mark.attack("one table by several names")
@pytest.mark.parametrize("name", READS)
def test_relations_that_read_one_table_have_one_budget(database: Any, name: str) -> None:
    first, second, outcome = READS[name]
    assert spent_twice(database.sql(first), database.sql(second)) == outcome
    assert spent_twice(database.sql(second), database.sql(first)) == outcome


@pytest.mark.attack("one table by several names")
def test_a_relation_of_a_file_is_of_that_file(database: Any) -> None:
    assert spent_twice("people.parquet", database.sql("FROM 'people.parquet'")) == REFUSED
    with duckdb.connect("x.duckdb") as stored:
        for table in ("people", "others"):
            stored.execute(f"CREATE TABLE {table} AS SELECT range AS v FROM range(5)")
    with duckdb.connect("x.duckdb", read_only=True) as stored:
        assert spent_twice("x.duckdb", stored.table("people"), ', part = "People"') == REFUSED
        assert spent_twice("x.duckdb", stored.table("people"), ', part = "others"') == APART
        assert spent_twice(stored.table("others"), stored.table("others")) == SHARED
        assert spent_twice(database.table("others"), stored.table("others")) == APART


@pytest.mark.attack("one table by several names")
def test_a_private_relation_is_not_public_too(database: Any) -> None:
    session = Session()
    for name in ("a", "b"):
        session.bind(name, database.table("people"))
    assert kind(session, DECLARED.format("p", '"a"') + 't = bound("b")\n') == "PrivateValue"


NUMBERS = np.arange(10.0)
FRAME = pd.DataFrame({"v": np.arange(10), "t": list("abcdefghij")})
ARROW = pa.table({"v": np.arange(10), "t": list("abcdefghij")})
MEMORY: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "an array in two tables": (lambda: {"v": NUMBERS}, lambda: {"v": NUMBERS}, SHARED),
    "parts that overlap": (lambda: {"v": NUMBERS[:6]}, lambda: {"v": NUMBERS[5:]}, SHARED),
    "parts that do not": (lambda: {"v": NUMBERS[:5]}, lambda: {"v": NUMBERS[5:]}, APART),
    "no rows": (lambda: {"v": NUMBERS[:0]}, lambda: {"v": NUMBERS[:0]}, SHARED),
    "a table turned round": (lambda: {"v": NUMBERS}, lambda: {"v": NUMBERS[::-1]}, SHARED),
    "a frame and its rows": (lambda: FRAME, lambda: FRAME.iloc[2:], SHARED),
    "a shallow copy": (lambda: FRAME, lambda: FRAME.copy(deep=False), SHARED),
    "halves of a frame": (lambda: FRAME[:5], lambda: FRAME[5:], APART),
    "a frame and Arrow": (lambda: FRAME, lambda: pa.Table.from_pandas(FRAME), SHARED),
    "a table of Arrow": (lambda: ARROW, lambda: ARROW.select(["v"]), SHARED),
    "its rows": (lambda: ARROW.slice(0, 6), lambda: ARROW.slice(5), SHARED),
    "its halves": (lambda: ARROW.slice(0, 5), lambda: ARROW.slice(5), APART),
    "other data": (lambda: {"v": np.arange(9.0)}, lambda: {"v": np.arange(9.0)}, APART),
}


@pytest.mark.attack("one table by several names")
@pytest.mark.parametrize("name", MEMORY)
def test_columns_in_one_place_have_one_budget(name: str) -> None:
    first, second, outcome = MEMORY[name]
    assert spent_twice(first(), second()) == outcome
    assert spent_twice(second(), first()) == outcome


@pytest.mark.attack("one table by several names")
@pytest.mark.parametrize("second", [lambda a: a, lambda a: a[::-1], lambda a: a[3:]])
def test_counts_in_one_place_have_one_budget(second: Callable[[Any], Any]) -> None:
    session, counts = Session(), np.arange(10)
    session.bind("a", counts)
    session.bind("b", second(counts))
    declared = 'private {} = bound("{}") protecting rows budget epsilon 1\ny = laplace({}, epsilon = 0.6)\n'
    assert kind(session, declared.format("p", "a", "p") + declared.format("q", "b", "q")) == SHARED


@pytest.mark.attack("one table by several names")
def test_a_name_that_is_bound_again_keeps_its_budget() -> None:
    session, asked = Session(), DECLARED.format("p", '"a"') + ASKED.format("p")
    for outcome in (APART, SHARED):
        session.bind("a", pd.DataFrame({"v": np.arange(10)}))
        assert kind(session, asked) == outcome


@pytest.mark.attack("one table by several names")
def test_data_that_join_two_sources_are_refused(database: Any) -> None:
    session = Session()
    for name, query in {"a": "FROM people", "b": "FROM others", "c": "FROM people JOIN others USING (v)"}.items():
        session.bind(name, database.sql(query))
    declared = [DECLARED.format(name * 2, f'"{name}"') for name in "abc"]
    assert kind(session, "".join(declared[:2])) == ""
    result = session.attempt(Source("p.jst", declared[2]))
    assert [d.message for d in result.diagnostics] == ["data of `cc` are private already under another budget"]
    assert kind(session, DECLARED.format("again", '"a"') + ASKED.format("again")) == ""
