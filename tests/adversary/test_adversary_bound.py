"""The same rows, bound from Python under two names: they have one budget, or the second is refused."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from decimal import Decimal
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from jostle.readers.filesets import Objects
from jostle.readers.frames import Frame
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


@pytest.mark.attack("one table by several names")
@pytest.mark.parametrize("path", ["", "x.duckdb"])
@pytest.mark.parametrize("then", ["", "ALTER TABLE new RENAME v TO old; ALTER TABLE new RENAME w TO v",
                                  "CREATE TABLE people AS SELECT range AS v FROM range(3)"])  # fmt: skip
def test_a_table_that_was_renamed_has_the_budget_that_it_had(database: Any, path: str, then: str) -> None:
    """It was bound again under its new name, and had another one."""
    with duckdb.connect(path) as stored:
        stored.execute("CREATE TABLE people AS SELECT range AS v, range AS w FROM range(5)")
        session = Session()
        session.bind("a", stored.table("people"))
        assert kind(session, DECLARED.format("p", '"a"') + ASKED.format("p")) == APART
        stored.execute(f"ALTER TABLE people RENAME TO new; {then}")
        session.bind("b", stored.sql("SELECT v FROM new WHERE v < 4"))
        assert kind(session, DECLARED.format("q", '"b"') + ASKED.format("q")) == (REFUSED if path else SHARED)


@pytest.mark.attack("one table by several names")
def test_tables_of_two_databases_that_have_one_number_are_apart() -> None:
    with duckdb.connect() as one, duckdb.connect() as other:
        one.execute("CREATE TABLE people AS SELECT range AS v FROM range(5)")
        other.execute("CREATE TABLE others AS SELECT range AS v FROM range(5)")
        numbers = [each.sql("SELECT table_oid FROM duckdb_tables()").fetchall() for each in (one, other)]
        assert numbers[0] == numbers[1]
        assert spent_twice(one.table("people"), other.table("others")) == APART


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


MANY = 200
PANDAS: dict[str, Any] = {
    **{kind: pd.array([1] * MANY, dtype=kind) for kind in ("Int8", "UInt64", "Float32", "boolean")},
    "zoned": pd.date_range("2024-01-01", periods=MANY, tz="Europe/Berlin"), "str": pd.array(["a"] * MANY, dtype="str"),
    "moments": pd.date_range("2024-01-01", periods=MANY), "spans": pd.timedelta_range("1D", periods=MANY),
    "periods": pd.period_range("2024-01", periods=MANY, freq="M"), "intervals": pd.interval_range(0, MANY),
    "sparse": pd.arrays.SparseArray([0, 1] * (MANY // 2)), "category": pd.Categorical(["a", "b"] * (MANY // 2)),
    "string[python]": pd.array(["a"] * MANY, dtype="string[python]"), "bool": np.ones(MANY, bool),
    "string[pyarrow]": pd.array(["a"] * MANY, dtype="string[pyarrow]"), "objects": np.array([None, "a"] * (MANY // 2)),
    "arrow": pd.array([1] * MANY, dtype=pd.ArrowDtype(pa.int64())), "float16": np.ones(MANY, np.float16),
}  # fmt: skip
PLAIN = ("?", "i1", "u8", ">i4", "f2", "f8", "g", "c16", "M8[D]", "m8[s]", "U3", "S3")
NUMPY = {
    **{kind: np.ones(MANY, kind) for kind in PLAIN}, "O": np.array([None, "a"] * (MANY // 2)),
    "V4": np.zeros(MANY, "V4"), "masked": np.ma.masked_array(np.ones(MANY), False),
}  # fmt: skip
LISTS, TEXTS = pa.array([[1, 2]] * MANY), pa.array(["abcd"] * MANY)
NUMBERED = (pa.int8(), pa.uint64(), pa.float32(), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"),
            pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.duration("s"), pa.decimal128(9, 2))  # fmt: skip
SPELLED = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
           pa.binary(4))  # fmt: skip
ARROWS: dict[str, pa.Array] = {
    **{str(kind): pa.array([1] * MANY, kind) for kind in (*NUMBERED, pa.decimal256(50, 2))},
    **{str(kind): pa.array(["abcd"] * MANY, kind) for kind in SPELLED},
    "bool": pa.array([True, False] * (MANY // 2)), "float16": pa.array(np.ones(MANY, np.float16)), "list": LISTS,
    "dictionary": TEXTS.dictionary_encode(), "large_list": LISTS.cast(pa.large_list(pa.int64())),
    "fixed_size_list": LISTS.cast(pa.list_(pa.int64(), 2)), "struct": pa.array([{"a": 1}] * MANY),
    "map": pa.array([[("a", 1)]] * MANY, pa.map_(pa.string(), pa.int64())),
    "uuid": pa.array([b"0" * 16] * MANY, pa.uuid()), "missing": pa.array([None] * MANY, pa.int64()),
}  # fmt: skip
VIEWS: dict[str, Callable[[Any], Any]] = {"itself": lambda a: a, "its rows": lambda a: a[3:11]}


@pytest.mark.attack("one table by several names")
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("home", "name"), [
    *(("pandas", name) for name in PANDAS), *(("numpy", name) for name in NUMPY), *(("arrow", name) for name in ARROWS),
])  # fmt: skip
def test_a_column_of_any_type_has_one_budget(home: str, name: str, view: str) -> None:
    """In two tables, beside nothing else; and a copy of it has another, as the guarantee says."""
    if home == "pandas":
        frame = pd.DataFrame({"v": PANDAS[name]})
        one, other, copy = frame, VIEWS[view](frame).copy(deep=False), frame.copy()
        other.columns = ["V"]  # `rename` makes a copy where pandas is older than 3
    elif home == "numpy":
        column = NUMPY[name]
        one, other, copy = {"v": column}, {"w": VIEWS[view](column)}, {"v": column.copy()}
    else:
        array = ARROWS[name]
        one, other = pa.table({"v": array}), pa.table({"w": pa.chunked_array([VIEWS[view](array)])})
        with pa.BufferOutputStream() as sink, pa.ipc.new_stream(sink, one.schema) as writer:
            writer.write_table(one)
        copy = pa.ipc.open_stream(sink.getvalue()).read_all()
    objects, names = Objects(), []
    for table in (one, other, copy):
        objects.lies_in(table, Frame(table, "t").lies_in)
        names.append(objects.identity(table))
    assert names[0] & names[1] or (name, view) == ("sparse", "its rows")  # of which pandas makes a copy
    arrow = home == "pandas" and hasattr(one["v"].array, "_pa_array")  # which it does not copy
    assert arrow or not names[0] & names[2]


POLARS: dict[str, list[Any]] = {
    **dict.fromkeys(("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"), [1] * MANY),
    **dict.fromkeys(("Float32", "Float64", "Decimal"), [Decimal("1.5")] * MANY), "Boolean": [True] * MANY,
    **dict.fromkeys(("String", "Categorical", 'Enum(["a", "b"])'), ["a", "b"] * (MANY // 2)), "Binary": [b"a"] * MANY,
    "Date": [datetime.date(2024, 3, 1)] * MANY, 'Datetime("ns")': [datetime.datetime(2024, 3, 1)] * MANY,
    'Datetime("us", "UTC")': [datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC)] * MANY,
    "Duration": [datetime.timedelta(1)] * MANY, "Time": [datetime.time(1)] * MANY, "Struct": [{"a": 1}] * MANY,
    **dict.fromkeys(("List(polars.Int64)", "Array(polars.Int64, 2)"), [[1, 2]] * MANY),
}  # fmt: skip


@pytest.mark.attack("one table by several names")
@pytest.mark.parametrize("name", POLARS)
def test_a_frame_of_polars_has_one_budget(name: str) -> None:
    polars = pytest.importorskip("polars")
    kind = None if name == "Struct" else eval(f"polars.{name}", {"polars": polars})
    frame = polars.DataFrame({"v": polars.Series(POLARS[name], dtype=kind, strict=False)})
    for other in (frame.clone(), frame.slice(8, 50), {"v": frame["v"]}, frame.select(w="v")):
        objects = Objects()
        for table in (frame, other):
            objects.lies_in(table, Frame(table, "t").lies_in)
        assert objects.identity(frame) & objects.identity(other)
    if name in ("Int8", "Float32", "Boolean", "String", "Categorical", "Date", "Decimal"):
        assert spent_twice(frame, frame.clone()) == spent_twice(frame.slice(8, 50), frame) == SHARED


@pytest.mark.attack("one table by several names")
def test_objects_of_polars_which_are_copied_wherever_they_are_asked_for_are_refused() -> None:
    """A column of them had a budget for each clone."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"v": polars.Series([1, "a"] * 9, dtype=polars.Object), "w": [*range(18)]})
    for one, other in ((frame, frame.clone()), (frame.select("v"), frame.select("v"))):
        assert spent_twice(one, other) == REFUSED
    assert spent_twice(frame.select(v="w"), frame.select(v="w")) == SHARED


CELLS, UNTOLD = [1, 2, 3], pa.table({"v": pa.nulls(5)})
OTHERS: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "a list in two tables": (lambda: {"v": CELLS}, lambda: {"v": [*CELLS], "w": CELLS}, SHARED),
    "a copy of a list": (lambda: {"v": CELLS}, lambda: {"v": [*CELLS]}, APART),
    "parts of a structured array": (lambda: RECORDS, lambda: RECORDS[["v"]], SHARED),
    "a column of it": (lambda: RECORDS, lambda: {"v": RECORDS["v"]}, SHARED),
    "a series of a frame": (lambda: FRAME, lambda: {"v": FRAME["v"]}, SHARED),
    "chunks": (lambda: ARROW, lambda: pa.concat_tables([ARROW, pa.table({"v": [1], "t": ["a"]})]), SHARED),
    "a batch": (lambda: ARROW, lambda: ARROW.to_batches()[0], SHARED),
    "what lies nowhere": (lambda: UNTOLD, lambda: UNTOLD.slice(1), REFUSED),
}
RECORDS = np.zeros(5, [("v", "i4"), ("w", "f8")])


@pytest.mark.attack("one table by several names")
@pytest.mark.parametrize("name", OTHERS)
def test_lists_records_and_chunks_have_one_budget(name: str) -> None:
    first, second, outcome = OTHERS[name]
    assert spent_twice(first(), second()) == outcome
    assert spent_twice(second(), first()) == outcome


@pytest.mark.attack("one table by several names")
def test_a_query_of_a_frame_is_not_bound_beside_it_nor_alone() -> None:
    """DuckDB does not tell which frame of Python a query reads."""
    frame = pd.DataFrame({"v": [1, 2]})
    connection = duckdb.connect()
    connection.register("named", frame)
    for relation in (duckdb.sql("SELECT * FROM frame"), connection.table("named"), connection.from_df(frame)):
        assert spent_twice(frame, relation) == spent_twice(relation, frame) == REFUSED
        assert spent_twice(relation, pd.DataFrame({"v": [1]})) == REFUSED
        assert spent_twice(relation.to_arrow_table(), pd.DataFrame({"v": [1]})) == APART


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
@pytest.mark.parametrize("in_place", [False, True])
def test_counts_that_changed_are_no_parts_of_those_before(in_place: bool) -> None:
    """A row that was in one cell, and is in another later, loses what is asked of each."""
    session, counts = Session(), np.arange(10)
    declared = 'private p = bound("a") protecting rows budget epsilon 1\n'
    for cell, outcome in ((1, APART), (2, SHARED)):
        session.bind("a", counts)
        assert kind(session, f"{declared}y = laplace(p[x = {cell}], epsilon = 0.6)\n") == outcome
        counts = counts if in_place else counts.copy()
        counts[1:3] += [-1, 1]


@pytest.mark.attack("one table by several names")
@pytest.mark.parametrize("kind", [
    "int64", "float64", "U1", "O", "m8[s]", "M8[s]", "Int64", "UInt8", "Float64", "boolean", "category",
    "string[python]", "list",
])  # fmt: skip
def test_cells_that_change_after_a_table_was_opened_do_not_change_there(kind: str) -> None:
    """Else a row that moves from one part to another loses what is asked of each, and both are paid for as one."""
    column: Any = [place % 2 for place in range(40)]
    if kind in ("U1", "category", "string[python]"):
        column = list(map(str, column))
    if kind != "list":
        column = np.array(column, kind) if kind in ("U1", "O", "m8[s]", "M8[s]") else pd.Series(column, dtype=kind)
    opened = Frame({"v": column}, "t")
    before, (memory,) = list(map(str, opened._stored[0])), opened.lies_in
    memory[:] = [memory[0]] * len(memory)
    assert list(map(str, opened._stored[0])) == before and len(set(before)) == 2


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


def mapped(name: str, how: str) -> Any:
    if how == "numpy":
        return {"v": np.memmap(name, dtype=np.int64, mode="r", offset=64, shape=10)}
    return feather.read_table(name, memory_map=True)


@pytest.mark.attack("one table by several names")
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells which files memory is a map of")
@pytest.mark.parametrize("how", ["numpy", "arrow"])
def test_maps_of_one_file_have_one_budget(tmp_path: Path, how: str) -> None:
    names = [str(tmp_path / name) for name in ("a.feather", "b.feather")]
    for name in names:
        feather.write_feather(pa.table({"v": np.arange(5000) % 10}), name, compression="uncompressed")
    first, again, other = (mapped(name, how) for name in (names[0], names[0], names[1]))
    assert spent_twice(first, again) == SHARED
    assert spent_twice(first, other) == APART
    assert (spent_twice(names[0], first), spent_twice(first, names[0])) == (REFUSED, SHARED)
    assert spent_twice(names[1], first) == APART


@pytest.mark.attack("one table by several names")
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells which files memory is a map of")
def test_shared_memory_has_one_budget() -> None:
    one, two = (SharedMemory(create=True, size=4096) for _ in range(2))
    try:
        again = SharedMemory(one.name)
        first, second, other = ({"v": np.ndarray(10, np.int64, part.buf)} for part in (one, again, two))
        assert (spent_twice(first, second), spent_twice(first, other)) == (SHARED, APART)
    finally:
        one.unlink()
        two.unlink()


def test_what_a_run_opens_lies_beside_nothing() -> None:
    """Two tables shared a budget once a hidden run had opened a third, which lies in part where each of them does."""
    seen = []
    for least in (-9, 999):
        one, cells = Session(), np.arange(24) % 8
        one.bind("t", {"v": cells.copy()})
        for name, part in {"a": cells[:8], "b": cells[16:], "c": cells[4:20]}.items():
            one.bind(name, {"v": part})
        source = 'private {0} = bound("{0}") described by {{v: 0..7}} protecting rows budget epsilon 9\n'
        program = f"""
def g(d, c):
    n = {{{{ select count(*) from d }}}}
    if n > {least}:
        x = bound("c")
    return {{score: n}}
x = best_run(t, g, [0], 5) with epsilon 6
{source.format("a")}{source.format("b")}x = {{{{ select count(*) from a with epsilon 1 }}}}
"""
        result = one.attempt(Source("p.jst", f"use selection\n{source.format('t')}{program}"))
        assert result.ok, result.diagnostics
        seen.append(result.budget)
    assert seen[0] == seen[1]
