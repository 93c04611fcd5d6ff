"""The engine on Spark answers as DuckDB does; what it is told and tells, and what happens when a server goes."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines_spark import sail_process, sail_url, started_apache, started_sail

from jostle.accounting.amounts import QUANTA, Amount, Unit
from jostle.accounting.definitions import Measure, parts_of
from jostle.backends.remote import RemoteData
from jostle.backends.spark.connection import client
from jostle.backends.spark.engine import Spark
from jostle.diagnostics import Refusal
from jostle.kernels.rowprograms import WEIGHTS
from jostle.plan.plan import (
    Apply,
    Bound,
    Categories,
    Column,
    Constant,
    Count,
    Derive,
    Filter,
    FixedSum,
    GroupRows,
    Integer,
    Join,
    Key,
    Moments,
    Open,
    Plan,
    Real,
    Scan,
    Union,
)  # fmt: skip
from jostle.privacy.ledger.ledger import Ledger
from jostle.privacy.ledger.registered import Terms
from jostle.privacy.rows.folds import AtRows, MomentFold, RowsOf
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.filesets import FileSet
from jostle.source import Source
from jostle.tools.session import Session

N = 400
DESCRIBED = (
    ("who", Open("text")), ("k", Integer(0, 4)), ("c", Categories(("red", "green"))), ("x", Real(0.0, 10.0)),
    ("t", Moments("time", 0, 10**15, None)), ("d", Moments("date", 0, 20000, None)),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile cells in two Parquet files."""
    draw = np.random.default_rng(4)
    x = draw.normal(5, 3, N)
    x[::17], x[::19], x[::23] = np.nan, np.inf, -0.0
    table = pa.table({
        "who": [f"p{i % 60}" for i in range(N)], "k": pa.array(draw.integers(-9, 9, N), pa.int32()),
        "c": [["red", "green", None, "blue", "it's \\ ä"][i % 5] for i in range(N)], "x": x,
        "t": pa.array(draw.integers(0, 10**15, N), pa.timestamp("us", "UTC")),
        "d": pa.array(draw.integers(-800_000, 30000, N).astype(np.int32), pa.date32()),
        "l": [[1]] * N, "A`b": pa.array([None] * N, pa.decimal128(10, 2)),
    })  # fmt: skip
    place = tmp_path_factory.mktemp("rows")
    for i in range(2):
        pq.write_table(table.slice(i * N // 2, N // 2), place / f"part{i}.parquet")
    return place


@pytest.fixture(scope="module")
def spark(url: str) -> Iterator[Spark]:
    engine = Spark(url)
    yield engine
    engine.close()


def plans(key: str) -> list[Plan]:
    scan = Scan(key, DESCRIBED)
    few = Bound(scan, ("who",), 3)
    high = Filter(scan, Apply(">", (Column("x"), Constant(3.0))))
    return [scan, high, few, Bound(scan, ("who",), 2, weighted=True), Join(few, high, ("who",), 2)]


def answers(engine: Any, plan: Plan, weighted: bool) -> list[Any]:
    keys = Key(Column("c"), ("red", "green")), Key(Column("k"), range(5))
    terms = (Count(), FixedSum(Column("x"), 0.0, 10.0, 30), Count(Column("x"), distinct=True))
    said: list[Any] = [engine.rows(plan)]
    said += [cells.tolist() for cells in engine.group(plan, keys, (*terms, *[Count(weighted=True)] * weighted))]
    said += [cells.tolist() for name in ("t", "d", "c") for cells in engine.tally(plan, Column(name))]
    said += sorted(row for block in engine.vectors(plan, (Column("x"),), 64) for row in block[:, 0].tolist())
    return said


def test_files_of_the_cluster_are_read_as_those_of_this_machine(spark: Spark, folder: Path) -> None:
    duck = LocalDuckDb()
    there = spark.open(RemoteData("spark", (f"{folder}/*.parquet",)), public=False)
    here = duck.open(FileSet.of([duck.file(file) for file in sorted(folder.iterdir())]), public=False)
    assert there.columns == here.columns and parts_of(there.identity) >= parts_of(here.identity)
    for at, (a, b) in enumerate(zip(plans(here.key), plans(there.key), strict=True)):
        assert answers(duck, a, at == 3) == answers(spark, b, at == 3)
    duck.close()


def test_one_name_more_is_no_second_budget_and_views_are_refused(spark: Spark, folder: Path, tmp_path: Path) -> None:
    def run(query: str) -> None:
        spark.connection.ask(lambda session: session.sql(query).toArrow())

    run("DROP VIEW IF EXISTS shown")
    run("DROP TABLE IF EXISTS people")
    place = tmp_path / "people"
    run(f"CREATE TABLE people USING parquet LOCATION '{place}' AS SELECT k, x FROM parquet.`{folder}/part0.parquet`")
    run("CREATE VIEW shown AS SELECT * FROM people")
    table = spark.open(RemoteData("spark", ("people",)), public=False)
    full = spark.open(RemoteData("spark", ("default.people",)), public=False)
    files = sorted(str(part[1]) for part in parts_of(table.identity) if part[0] == "spark file")
    paths = spark.open(RemoteData("spark", tuple(files)), public=False)
    assert not parts_of(table.identity).isdisjoint(parts_of(paths.identity)) and files
    assert parts_of(table.identity) == parts_of(full.identity)
    scan = Scan(table.key, (("k", Integer(0, 4)),))
    assert spark.rows(scan) == N // 2
    wrong = (("shown", "view"), ("nobody", "no table"), ("people; DROP", "no name"), ("/none/*.parquet", "the"))
    for name, word in wrong:
        with pytest.raises(Refusal, match=word):
            spark.open(RemoteData("spark", (name,)), public=False)
    run("INSERT INTO people SELECT * FROM people")
    with pytest.raises(Refusal, match="changed while"):
        spark.rows(Filter(scan, Apply(">=", (Column("k"), Constant(0.0)))))


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_folds_are_the_same_to_the_bit_whatever_the_partitions(spark: Spark, folder: Path, parts: int) -> None:
    duck = LocalDuckDb()
    exprs = (Column("x"), Column("k"))
    work = AtRows(MomentFold(WEIGHTS["nearest"](2, centres=[[0.1, 0.2], [0.5, 0.1]]), 2, 2), 12.0, "l2")
    here = Scan(duck.open(FileSet.of([duck.file(f) for f in sorted(folder.iterdir())]), public=False).key, DESCRIBED)
    wanted = duck.fold(here, exprs, work)
    key = spark.open(RemoteData("spark", (f"{folder}/*.parquet",)), public=False).key
    stored = spark.stored(key)
    view = spark._view(spark.connection.ask(lambda session: session.table(stored.table).repartition(parts)))
    stored.table, before = view, stored.table
    spark._relations.clear()
    try:
        given = spark.fold(Scan(key, DESCRIBED), exprs, work)
        assert [array.tolist() for array in given] == [array.tolist() for array in wanted]
        assert int(spark.fold(Scan(key, DESCRIBED), exprs, AtRows(RowsOf(), 1.0, "sup"))[0]) > N // 2
    finally:
        stored.table = before
        spark._relations.clear()
        duck.close()


def test_rows_that_the_cluster_keeps_are_freed_at_the_end(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ending a session does not free them on Apache Spark, which answers any equal plan from them."""
    client()  # imports the package as it has to be imported in a process without a file
    from pyspark.sql.connect.dataframe import DataFrame

    kept: list[DataFrame] = []
    freed: list[DataFrame] = []
    persist, unpersist = DataFrame.persist, DataFrame.unpersist
    monkeypatch.setattr(DataFrame, "persist", lambda frame: kept.append(frame) or persist(frame))
    monkeypatch.setattr(DataFrame, "unpersist", lambda frame: freed.append(frame) or unpersist(frame))
    queries = set()
    for _ in range(2):
        engine = Spark(url)
        key = engine.open(RemoteData("spark", (f"{folder}/*.parquet",)), public=False).key
        bound = Bound(Scan(key, DESCRIBED), ("who",), 2)
        assert engine.rows(bound) == 120 and engine.rows(bound) == 120
        queries.add(kept[-1]._plan.to_proto(engine.connection.session.client).root.sql.query)
        engine.close()
    assert freed == kept and len(kept) == len(queries - {""}) == 2


PROGRAM = """private D = spark("{folder}/*.parquet")
    described by {{k: 0..4, c: {{"red", "green"}}, x: 0.0..10.0}}
    protecting who up to 2 rows
    budget epsilon 100000
counts = {{{{ select count(*), sum(x) from D group by c with epsilon 50000 }}}}
release counts
release high = {{{{ select sum(not high) as count, sum(x) from derive(D, high = x > 3)
    where high or k > 1 group by high with epsilon 50000 }}}}
"""


def test_a_program_runs_and_its_token_is_told_nowhere(
    url: str, folder: Path, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("JOSTLE_ENGINE", f"{url}/;user_id=s3cret")
    session = Session()
    result = session.run_text(PROGRAM.format(folder=folder))
    local = Session(engine="").run_text(PROGRAM.format(folder=folder).replace("spark(", "table("))
    assert result["high"]["high"].tolist() == [False, True]
    for name in ("counts", "high"):
        for column in ("count", "sum"):
            assert np.allclose(result[name][column], local[name][column], atol=1, rtol=0)
    told = repr(result.events) + "".join(result.output) + "".join(capsys.readouterr())
    assert "s3cret" not in told
    session._interp.data._engine.close()


def test_a_registered_file_is_no_other_data_of_a_cluster_on_this_machine(
    url: str, folder: Path, tmp_path: Path
) -> None:
    ledger, file = tmp_path / "ledger.db", tmp_path / "people.parquet"
    shutil.copy(folder / "part0.parquet", file)
    unit, budget = Unit(), Measure("pure", Amount("epsilon", QUANTA))
    Ledger(ledger).register(Terms("people", "table", str(file), (("k", Integer(0, 4)),), unit, budget))
    session = Session(engine=url, ledger=ledger)
    for program in (PROGRAM.format(folder=tmp_path), f'D = spark("{file}")'):
        with pytest.raises(Refusal, match="registered as the dataset `people`"):
            session.run_text(program)
    session._interp.data._engine.close()


@pytest.mark.parametrize(
    ("url", "word"),
    [("http://x/;token=s3cret", "no kind"), ("sc://127.0.0.1:1/;token=s3cret", "cannot be reached"),
     ("sc://", "cannot be reached"), (None, "and this session has none")],
)  # fmt: skip
def test_a_url_that_leads_nowhere(url: str | None, word: str, monkeypatch: Any) -> None:
    if word == "cannot be reached":
        pytest.importorskip("grpc", reason="a client of Spark Connect, `pip install 'jostle[spark]'`, is not there")
    monkeypatch.setattr("jostle.backends.spark.connection._RETRIES", 1)
    monkeypatch.delenv("JOSTLE_ENGINE", raising=False)
    with pytest.raises(Refusal) as refused:
        Session(engine=url).run_text(PROGRAM.format(folder="/x"))
    assert word in str(refused.value) and "s3cret" not in repr(refused.value.diagnostics)


@pytest.mark.parametrize("again", [False, True])
def test_a_server_that_goes_or_starts_again_is_one_diagnostic_and_the_charge_stays(
    again: bool, folder: Path, capfd: Any, monkeypatch: Any
) -> None:
    pytest.importorskip("pysail", reason="pysail, a server of Spark Connect, is not installed")
    monkeypatch.setattr("jostle.backends.spark.connection._RETRIES", 1)
    server, at = started_sail()
    servers = [server]
    session = Session(engine=at)

    def gone(_: str) -> None:
        server.stop()
        if again:
            servers.append(started_sail(int(at.rpartition(":")[2]))[0])

    text = PROGRAM.format(folder=folder).replace("budget epsilon 100000", "budget epsilon 200000")
    text += "print(1)\nm = {{ select median(x) from D with epsilon 30000 }}\nrelease m\n"
    session._out = gone  # between two measurements
    with pytest.raises(Refusal) as refused:
        session.run_text(text)
    (fault,) = refused.value.diagnostics
    assert fault.message == "the Spark cluster could not do what it was asked, or did not answer"
    assert session.so_far().budget["D"]["epsilon"]["spent"] == "130000"
    assert list(session.so_far().values) == ["counts", "high"]
    assert not [cell for cell in ("it's", "blue", "jostle0_") if cell in "".join(capfd.readouterr())]
    if again:
        servers[1].stop()


def test_a_server_that_is_killed_while_a_query_runs_is_one_diagnostic(
    url: str, folder: Path, capfd: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("jostle.backends.spark.connection._RETRIES", 1)
    process, at = sail_process() if url == sail_url() else started_apache()
    session = Session(engine=at)
    declared, _, rest = PROGRAM.format(folder=folder).partition("release high")
    session.execute(Source("a program", declared))
    process.send_signal(signal.SIGSTOP)  # so that the query is under way until the end
    end = threading.Timer(0.5, process.kill)
    end.start()
    with pytest.raises(Refusal) as refused:
        session.execute(Source("a program", "release high" + rest.replace("50000", "30000")))
    end.join()
    process.communicate()
    (fault,) = refused.value.diagnostics
    assert fault.message == "the Spark cluster could not do what it was asked, or did not answer"
    assert session.so_far().budget["D"]["epsilon"]["spent"] == "80000"
    assert list(session.so_far().values) == ["counts"]
    assert not [cell for cell in ("it's", "blue", "jostle0_") if cell in "".join(capfd.readouterr())]


def test_a_worker_that_dies_is_one_diagnostic(url: str, folder: Path, capfd: Any, monkeypatch: Any) -> None:
    """Workers of Sail are threads of the server, which is gone with them."""
    monkeypatch.setattr("jostle.backends.spark.connection._RETRIES", 1)
    alone, at = sail_process() if url == sail_url() else (None, url)
    engine, space = Spark(at), {"__name__": "__main__"}  # what is of no module is sent as it is
    exec("def work(rows):\n    import os\n    os._exit(1)", space)
    scan = Scan(engine.open(RemoteData("spark", (f"{folder}/*.parquet",)), public=False).key, DESCRIBED)
    with pytest.raises(Refusal, match="could not do what it was asked") as refused:
        engine.fold(scan, (Column("x"),), space["work"])
    assert len(refused.value.diagnostics) == 1 and "part0" not in "".join(capfd.readouterr())
    if alone is None:
        assert engine.rows(scan) == N
    else:
        assert alone.wait(30) == 1
    engine.close()


def test_files_in_a_store_that_the_cluster_does_not_reach_are_refused_before_the_charge(
    url: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr("jostle.backends.spark.connection._RETRIES", 1)
    program = PROGRAM.format(folder="store://bucket/rows")
    result = Session(engine=url).attempt(Source("a program", program))
    assert result.diagnostics[0].message == "the Spark cluster could not do what it was asked, or did not answer"
    assert result.diagnostics[0].span is not None and "can the cluster read them" in (result.diagnostics[0].help or "")
    assert result.budget == {}


def test_many_texts_are_listed_in_a_description_and_in_keys_that_are_calculated(spark: Spark) -> None:
    """Found by seed 91078: Sail does not look up constants of a table in a CASE."""
    words = tuple(f"w{i:03}" for i in range(300))
    opened = spark.open({"x": np.array([*words, "other"] * 2, object)}, public=True)
    listed = Scan(opened.key, (("x", Categories(words)),))
    assert spark.rows(Filter(listed, Apply("in", (Column("x"), *map(Constant, words[:200]))))) == 400
    upper = Key(Apply("upper", (Column("x"),)), tuple(word.upper() for word in words[:100]))
    for scan in (listed, Scan(opened.key, (("x", Open("text")),))):
        assert spark.group(scan, (Key(Column("x"), words),), (Count(),))[0].tolist() == [2] * 300
        assert spark.group(scan, (upper,), (Count(),))[0].tolist() == [2] * 100


def test_public_rows_come_in_order_where_two_columns_of_a_union_are_one(spark: Spark) -> None:
    """Found by seeds 90560 and 91420: Sail plans no order of such rows."""
    opened = spark.open({"x": np.array(["b", "a", "b", None], object), "y": np.arange(4.0)}, public=True)
    scan = Scan(opened.key, (("x", Open("text")), ("y", Real(0.0, 9.0))))
    twice = Derive(scan, (("x", Column("x")), ("z", Column("x")), ("y", Column("y"))))
    rows = [("a", "a", 1.0), ("b", "b", 0.0), ("b", "b", 2.0), (None, None, 3.0)]
    assert spark.records(Union((twice, twice))) == [row for row in rows for _ in range(2)]


def test_numbers_are_not_read_as_texts_which_the_server_writes_in_its_own_way(spark: Spark) -> None:
    opened = spark.open({"x": np.array([0.5, 1e300])}, public=True)
    for plan in (Scan(opened.key, (("x", Open("text")),)), Bound(Scan(opened.key, (("x", Open("real")),)), ("x",), 1)):
        with pytest.raises(Refusal, match="Spark cannot write a number"):
            spark.check((Filter(plan, Constant(True)),))
    spark.check(Scan(opened.key, (("x", Open("real")),)))


def test_zeros_of_both_signs_are_one_key_and_one_of_a_list(spark: Spark) -> None:
    """`-0.04` rounded to tenths is −0, which Sail finds in no list and in a group of its own."""
    opened = spark.open({"x": np.array([-0.04, -0.01, 0.0, 0.04, 0.2, -0.3])}, public=True)
    scan = Scan(opened.key, (("x", Real(-1.0, 1.0)),))
    tenth = Apply("/", (Apply("round", (Apply("*", (Column("x"), Constant(10.0))),)), Constant(10.0)))
    whole = Apply("round", (Column("x"),))
    for zero in (0.0, -0.0):
        assert spark.rows(Filter(scan, Apply("in", (tenth, *map(Constant, (zero, 0.2, 0.5)))))) == 5
    for key, counts in ((Key(tenth, (-0.3, 0.0, 0.2, 0.5)), [1, 4, 1, 0]), (Key(whole, (0.0, 1.0, 3.0)), [6, 0, 0])):
        assert spark.group(scan, (key,), (Count(),))[0].tolist() == counts
    many = Key(tenth, tuple(i / 10 for i in range(-10, 1000)))
    assert spark.group(scan, (many,), (Count(),))[0][[7, 10, 12]].tolist() == [1, 4, 1]


def test_a_sum_of_a_persons_rows_does_not_wrap_around(spark: Spark) -> None:
    """Of 400 rows of 5e17 it was less than 0; and where a server raises there, it failed after a charge."""
    many = {"x": np.array([5 * 10**17] * 400 + [3]), "p": np.array(["a"] * 400 + ["b"], object)}
    opened = spark.open(many, public=True)
    scan = Scan(opened.key, (("x", Integer(-(10**18), 10**18)), ("p", Open("text"))))
    sums = (("total", FixedSum(Column("x"), -1e18, 1e18, 0)), ("least", FixedSum(Column("x"), 0.0, 5e17, 0)))
    grouped = GroupRows(Bound(scan, ("p",), None), True, (), sums)
    high = tuple([Apply(">", (Column(name), Constant(1e20))) for name in ("total", "least")])
    assert spark.rows(Filter(grouped, Apply("and", high))) == 1
    assert spark.rows(Filter(grouped, Apply("<", (Column("total"), Constant(0.0))))) == 0
