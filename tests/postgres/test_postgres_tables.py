"""Tables of a PostgreSQL database: which are read, what they are known by, and cells of every type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.accounting.definitions import parts_of
from jostle.backends.postgres.connection import Connection
from jostle.backends.postgres.engine import Postgres
from jostle.backends.remote import RemoteData
from jostle.diagnostics import Refusal
from jostle.plan.plan import (
    Apply,
    Bound,
    Categories,
    Column,
    Constant,
    Count,
    Domain,
    Filter,
    FixedSum,
    Integer,
    Key,
    Moments,
    Open,
    Owners,
    Real,
    Scan,
)
from jostle.privacy.mechanisms.stability import BUCKETS, KeyLook, KeyRound
from jostle.readers.duckdb import LocalDuckDb
from jostle.records import replace
from jostle.source import Source
from jostle.tools.session import Session


@pytest.fixture
def engine(url: str) -> Iterator[Postgres]:
    engine = Postgres(url)
    yield engine
    engine.close()


def opened(engine: Postgres, *names: str) -> Any:
    return engine.open(RemoteData("postgres", names), public=False)


# Cells of every type ---------------------------------------------------------------------------------

BOUNDS = Real(-1e6, 1e6)
CELLS: dict[str, tuple[str, list[str | None], Domain, list[Any]]] = {
    "numeric": ("numeric", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "12.50", None], BOUNDS,
                [0.0, 12.5]),
    "decimal as text": ("numeric(10,3)", ["12.500", "-3", "NaN", None], Open("text"), ["-3", "12.5", "NaN"]),
    "float4": ("float4", ["NaN", "Infinity", "1e30", "0.5", None], BOUNDS, [0.5, 1e6]),
    "float8": ("float8", ["NaN", "-Infinity", "-1e300", "5e-324", None], Open("real"), [-1e300, 5e-324]),
    "bigint": ("bigint", [str(2**63 - 1), str(-(2**63)), "7", None], Integer(-5, 9), [-5.0, 7.0, 9.0]),
    "date": ("date", ["infinity", "-infinity", "0044-03-15 BC", "20000-01-01", "2024-02-29", None],
             Moments("date", 0, 20000), [19782.0]),
    "timestamp": ("timestamp", ["infinity", "-infinity", "4713-01-01 BC", "294276-01-01", "1970-01-01 00:00:01", None],
                  Moments("time", 0, 2_000_000), [1_000_000.0]),
    "with zone": ("timestamptz", ["infinity", "1970-01-01 02:00:01+02", None], Moments("time", 0, 2_000_000),
                  [1_000_000.0]),
    "time": ("time", ["24:00:00", "12:30:00", None], Open("text"), ["12:30:00"]),
    "boolean": ("boolean", ["t", "f", None], Open("boolean"), [False, True]),
    "uuid": ("uuid", ["00000000-0000-0000-0000-00000000000A", None], Open("text"),
             ["00000000-0000-0000-0000-00000000000a"]),
    "padded": ("char(5)", ["a", "", None], Open("text"), ["a"]),
    "category": ("text", ["red", "RED", "", "blue", None], Categories(("red", "blue")), ["blue", "red"]),
    "number in text": ("text", ["1e400", " 12 ", "0x10", "1e-400", "x", None], BOUNDS, [0.0, 12.0]),
    "date in text": ("text", ["2024-02-29", "2023-02-29", "0000-01-01", "x", None], Moments("date", 0, 20000),
                     [19782.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", CELLS)
def test_no_cell_of_any_type_fails(name: str, load: Any, engine: Postgres) -> None:
    kind, cells, domain, values = CELLS[name]
    load("cells", {"x": (kind, cells)})
    scan = Scan(opened(engine, "public.cells").key, (("x", domain),))
    said, _ = engine.tally(scan, Column("x"))
    assert [_plain(value) for value in said] == values
    assert engine.rows(scan) == len(cells)
    kept = Bound(scan, ("x",), 1)
    assert engine.rows(kept) <= len(cells)


def _plain(value: Any) -> Any:
    from datetime import date

    from jostle.language.moments import number_of

    return float(number_of(value)) if isinstance(value, date) else value


def test_texts_are_compared_by_their_code_points(execute: Any, engine: Postgres) -> None:
    execute("""DROP TABLE IF EXISTS folded;
        CREATE TABLE folded (x text COLLATE "POSIX"); INSERT INTO folded VALUES ('a'), ('A'), ('a'), ('é'), ('É')""")
    scan = Scan(opened(engine, "folded").key, (("x", Open("text")),))
    values, counts = engine.tally(scan, Column("x"))
    assert (list(values), list(counts)) == (["A", "a", "É", "é"], [1, 2, 1, 1])
    kept = Bound(scan, ("x",), 1)
    assert engine.group(kept, (Key(Column("x"), ("a", "A")),), (Count(),))[0].tolist() == [1, 1]


UNREAD: dict[str, str | None] = {
    "money": "$12.50", "inet": "10.0.0.1", "cidr": "10.0.0.0/8", "macaddr": "08:00:2b:01:02:03", "json": '{"a": 1}',
    "jsonb": "3", "xml": None, "interval": "1 day", "timetz": "12:30:00+02", "oid": "7", "bit(3)": "101",
    "varbit": "1", "bytea": "\\\\x00", "int[]": "{1}", "text[]": "{a}", "int4range": "[1,3)", "daterange": "empty",
    "point": "(1,2)", "tsvector": "a", "pg_lsn": "0/1", '"char"': "a", "jsonpath": "$", "numeric[]": "{1}",
    "pair": "(1,a)", "floatrange": "[1,2)", "own[]": "{a}",
}  # fmt: skip
"""Types that are not read, with a cell of each; the last are of the database's own making."""


@pytest.mark.parametrize("kind", UNREAD)
def test_a_described_column_of_a_type_that_is_not_read_is_refused(
    kind: str, load: Any, execute: Any, url: str, session_at: Any
) -> None:
    execute("""DROP TABLE IF EXISTS cells; DROP TYPE IF EXISTS pair, floatrange, own CASCADE;
        CREATE TYPE pair AS (x int, y text); CREATE TYPE floatrange AS RANGE (subtype = float8);
        CREATE TYPE own AS ENUM ('a', 'b')""")
    load("cells", {"x": (kind, [UNREAD[kind], None]), "y": ("int", [1, 2]), "own": ("own", ["a", None])})
    program = 'private t = postgres("cells") described by {%s} protecting %s budget epsilon 1000\n'
    count = "release n = {{ select count(*) from t where y == 1 with epsilon 900 }}\n"
    for described, unit in (("x: text, y: 0..9", "rows"), ("y: 0..9", "x up to 2 rows")):
        result = session_at(url).attempt(Source("p", program % (described, unit) + count))
        assert not result.ok and "the column `x` is of the type" in result.diagnostics[0].message
        assert "describe that one" in (result.diagnostics[0].help or "")
        assert all(unit["epsilon"]["spent"] == "0" for unit in result.budget.values())
    result = session_at(url).attempt(Source("p", program % ('y: 0..9, own: {"a"}', "rows") + count))
    assert result.ok and round(result.released["n"]) == 1


# Raw cells -------------------------------------------------------------------------------------------

RAW: dict[str, tuple[str, list[Any], Domain, list[Any]]] = {
    "float8": ("float8", [float("nan"), float("inf"), float("-inf"), -1e300, -2.0, -1.0, -0.0, 0.5, 3.0, 4.0, None],
               Real(-1.0, 3.0), [-2.0, -1.0, 0.0, 0.5, 3.0, 3.5]),
    "float4": ("float4", [float("nan"), float("inf"), float("-inf"), -2.0, 0.5, 4.0, None],
               Real(0.0, 3.0), [0.0, 0.5, 3.0]),
    "smallint": ("smallint", [-(2**15), -3, -2, 0, 1, 4, 5, 2**15 - 1, None],
                 Integer(-2, 4), [-3, -2, 0, 0.5, 4, 5, 1e300]),
    "bigint": ("bigint", [-(2**63), 0, 2**53, 2**53 + 1, 2**63 - 1, None],
               Integer(-5, 2**60), [-5, 0, 2.0**53, 2.0**60]),
    "text": ("text", ["a", "A", "", "é", "e\u0301", "b", None], Categories(("a", "é", "", "zz")), ["a", "b", "", "é"]),
}  # fmt: skip


@pytest.mark.parametrize("name", RAW)
def test_raw_cells_are_compared_and_grouped_as_cleaned_ones(name: str, load: Any, engine: Postgres) -> None:
    """A condition that is negated is asked of cleaned cells, and its rows are none of those of the condition itself."""
    kind, cells, domain, constants = RAW[name]
    load("cells", {"x": (kind, cells)})
    scan = Scan(opened(engine, "public.cells").key, (("x", domain),))
    column = Column("x")
    known = engine.rows(Filter(scan, Apply("not", (Apply("missing", (column,)),))))
    for op in ("<", "<=", ">", ">=", "==", "!="):
        for constant in constants:
            for test in (Apply(op, (column, Constant(constant))), Apply(op, (Constant(constant), column))):
                inside, outside = (engine.rows(Filter(scan, each)) for each in (test, Apply("not", (test,))))
                assert inside + outside == known, (op, constant)
                cleaned = Apply("and", (Apply("not", (Apply("not", (test,)),)), Constant(True)))
                assert engine.rows(Filter(scan, cleaned)) == inside, (op, constant)
    values = range(-5, 6) if isinstance(domain, Integer | Real) else domain.values
    query = engine.grouped(engine.relation(scan), (Key(column, values),), (Count(), Count(column)))
    source = engine.relation(scan)
    direct = replace(source, columns={name: replace(one, raw=None) for name, one in source.columns.items()})
    plain = engine.grouped(direct, (Key(column, values),), (Count(), Count(column)))
    assert query.sql != plain.sql or "float" in name
    groups, others = (sorted(engine.fetch(each.sql), key=repr) for each in (query, plain))
    assert groups == [row for row in others if row[0] is not None or row in groups]  # of none nothing is asked


# Persons ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_the_rows_of_persons_that_stay_are_those_of_duckdb(weighted: bool, load: Any, engine: Postgres) -> None:
    import pyarrow as pa

    who = [f"p{i % 23}" if i % 7 else None for i in range(400)]
    x = [i * 37 % 101 / 7 if i % 11 else None for i in range(400)]
    n = [i % 5 for i in range(400)]
    load("visits", {"who": ("text", who), "x": ("float8", x), "n": ("int", n)})
    table = pa.table({"who": pa.array(who), "x": pa.array(x, pa.float64()), "n": pa.array(n, pa.int32())})
    here = LocalDuckDb()
    answers = []
    for one, key in ((here, here.open(table, public=False).key), (engine, opened(engine, "visits").key)):
        scan = Scan(key, (("who", Open("text")), ("x", Real(0.0, 12.0)), ("n", Integer(0, 4))))
        some = Bound(scan, ("who",), 3, weighted=weighted)
        owned = Bound(scan, (), 2, owners=Owners(Bound(scan, ("who",), None), "n", "n"))
        said = []
        for plan in (some, owned):
            terms = (Count(weighted=weighted and plan is some),)
            if plan is owned or not weighted:
                terms = (Count(), FixedSum(Column("x"), 0.0, 12.0, 30), Count(Column("x"), distinct=True))  # type: ignore[assignment]
            said += [cells.tolist() for cells in one.group(plan, (Key(Column("n"), range(5)),), terms)]
        answers.append(said)
    here.close()
    assert answers[0] == answers[1]


def test_a_fold_of_codes_is_given_rows_a_block_at_a_time(execute: Any, engine: Postgres) -> None:
    execute("DROP TABLE IF EXISTS many;"
            "CREATE TABLE many AS SELECT i % 3 AS x, i % 5 AS y FROM generate_series(1, 70000) i")  # fmt: skip
    scan = Scan(opened(engine, "many").key, (("x", Integer(0, 2)), ("y", Integer(0, 4))))
    blocks: list[int] = []

    def work(rows: Iterable[Any]) -> list[Any]:
        total = np.zeros(10, dtype=np.int64)
        for block in rows:
            blocks.append(len(block))
            total += np.bincount(block[:, 0] * 3 + block[:, 1] + 1, minlength=10)
        return [total]

    (total,) = engine.fold_codes(scan, (Key(Column("x"), range(3)), Key(Column("y"), range(2))), work)
    known = [(i % 3) * 3 + (i % 5 if i % 5 < 2 else -1) + 1 for i in range(1, 70001)]
    assert total.tolist() == np.bincount(known, minlength=10).tolist()
    assert blocks == [2**16, 70000 - 2**16]


# Which table -----------------------------------------------------------------------------------------


def test_parts_of_a_table_are_one_data_set(execute: Any, engine: Postgres) -> None:
    execute("""DROP TABLE IF EXISTS years CASCADE; CREATE TABLE years (y int) PARTITION BY RANGE (y);
        CREATE TABLE year1 PARTITION OF years FOR VALUES FROM (1) TO (2);
        CREATE TABLE year2 PARTITION OF years FOR VALUES FROM (2) TO (3); INSERT INTO years VALUES (1), (2), (2);
        DROP TABLE IF EXISTS other; CREATE TABLE other (y int)""")
    whole, part, same, other = (opened(engine, name) for name in ("years", "year1", "public.years", "other"))
    assert parts_of(whole.identity) & parts_of(part.identity)
    assert whole.identity == same.identity
    assert not parts_of(whole.identity) & parts_of(other.identity)
    assert [engine.rows(Scan(one.key, (("y", Integer(0, 9)),))) for one in (whole, part)] == [3, 1]


REFUSED = {
    "there": ("no_such", "the database has no table `public.no_such`"),
    "view": ("seen", "is a view, and only tables are read"),
    "materialized": ("copied", "is a materialized view"),
    "policies": ("hidden", "has policies that hide rows"),
    "catalog": ("pg_catalog.pg_class", "the database has no table"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_plain_table_is_refused(name: str, execute: Any, url: str) -> None:
    execute("""DROP TABLE IF EXISTS plain CASCADE; DROP TABLE IF EXISTS hidden; CREATE TABLE plain (x int);
        CREATE VIEW seen AS SELECT 1 / x AS x FROM plain; CREATE MATERIALIZED VIEW copied AS SELECT x FROM plain;
        CREATE TABLE hidden (x int); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
        DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader""")
    table, message = REFUSED[name]
    engine = Postgres(url.replace("postgres:@", "reader@"))
    with pytest.raises(Refusal, match=message.replace("(", r"\(")):
        opened(engine, table)
    engine.close()


def test_columns_that_may_not_be_read_are_none(execute: Any, url: str) -> None:
    calculates = int(execute("SHOW server_version_num")[0][0]) >= 180_000
    last = "z int GENERATED ALWAYS AS (1 / x) VIRTUAL" if calculates else "z int"
    execute(f"""DROP TABLE IF EXISTS half; CREATE TABLE half (x int, y int, {last});
        DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
        GRANT SELECT (x, z) ON half TO reader""")
    engine = Postgres(url.replace("postgres:@", "reader@"))
    half = opened(engine, "half")
    assert half.columns == (("x",) if calculates else ("x", "z"))
    if not calculates:
        engine.close()
        pytest.skip("no column is calculated when it is read before version 18")
    with pytest.raises(Refusal, match="the column `z` of `half` is calculated when it is read"):
        engine.check(Scan(half.key, (("z", Integer(0, 9)),)))
    engine.close()


# Programs --------------------------------------------------------------------------------------------

PROGRAM = """
private orders = postgres("shop.orders") described by {age: 0..99, sex: {"Female", "Male"}, who: text}
  protecting rows budget epsilon 1000000
release many = {{ select count(*) from orders with epsilon 1000 }}
release by_sex = {{ select avg(age) from orders group by sex with epsilon 100000 }}
derived = derive(orders, woman = sex == "Female", old = age > 49)
release women = {{ select avg(old), count(*) from derived where not (old and age > 74)
  group by woman with epsilon 100000 }}
"""


def test_a_program_reads_tables_of_the_session(execute: Any, url: str, session_at: Any, tmp_path: Path) -> None:
    execute("""DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop;
        CREATE TABLE shop.orders AS SELECT i AS id, 'p' || i % 40 AS who, i % 100 AS age,
        CASE i % 3 WHEN 0 THEN 'Female' WHEN 1 THEN 'Male' END AS sex FROM generate_series(1, 3000) i""")
    result = session_at(url).run_text(PROGRAM)
    assert round(result["many"]) == 3000
    assert result["by_sex"]["avg"].between(49, 50).all()
    assert result["women"]["woman"].tolist() == [False, True]
    assert result["women"]["count"].tolist() == [750, 750]
    assert result["women"]["avg"].sub(1 / 3).abs().max() < 1e-3
    with pytest.raises(Refusal, match="postgres"):
        Session(ledger=tmp_path / "ledger").run_text(PROGRAM)


@pytest.mark.looks
def test_cells_of_a_server_are_looked_at(execute: Any, url: str, session_at: Any) -> None:
    execute("""DROP TABLE IF EXISTS misfits; CREATE TABLE misfits AS SELECT i / 1000.0 AS share, 'yes ' AS said,
        to_char(date '2001-01-01' + i, 'DD.MM.YYYY') AS born, date '2001-01-01' + i AS since,
        i % 3 = 0 AS paid FROM generate_series(1, 3000) i""")
    session = session_at(url)
    result = session.run_text("""
private t = postgres("misfits")
    described by {share: 0..3, said: {"yes", "no"}, born: date, since: 2001-01-01..2030-12-31, paid: {true, false}}
    protecting rows budget epsilon 9
release share = {{ select avg(share) from t with epsilon 2 }}
release said = {{ select count(*) from t groupby said with epsilon 2 }}
release born = laplace(histogram(where(t, born > 2003-01-01), paid)) with epsilon 4
release fits = {{ select avg(year(since)) from t with epsilon 1 }}
""")
    assert [w.message.split("`")[1] for w in session.warnings if w.kind == "unfit-cells"] == ["share", "said", "born"]
    assert result.margins()["share"]["error"] is None and "misfit" not in str(result.margins()["fits"])


def test_keys_in_rounds_weigh_the_same(
    load: Any, session_at: Any, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exact weights of the look and of each round, of texts and dates, without what the round before has shown."""
    who = [f"u{i % 40}" for i in range(300)]
    page = [["a", "é", "it's", "Z", ""][i * i % 5] if i % 7 else None for i in range(300)]
    day = [f"2024-01-{1 + i % 3:02}" for i in range(300)]
    load("visits", {"who": ("text", who), "page": ("text", page), "day": ("date", day)})
    pa_parquet(tmp_path / "visits.parquet", who, page, day)
    rounds: list[Any] = []

    def select(self: KeyRound, tally: Any, noise: Any, earlier: Any) -> list[Any]:
        rounds.append(self.weights(tally))
        return sorted(rounds[-1], key=lambda key: (rounds[-1][key], key))[-2:]

    def scores(self: KeyLook, tally: Any, noise: Any) -> Any:
        rounds.append(self.weights(tally))
        return np.where(np.arange(BUCKETS) % 3 < 2, 9.0, 0.0)

    monkeypatch.setattr(KeyRound, "select", select)
    monkeypatch.setattr(KeyLook, "scores", scores)
    program = """private visits = {} described by {{page: text, day: date}} protecting who budget epsilon 1, delta 1e-6
g = {{{{ select page, day from visits groupby page, day up to 2 groups with epsilon 1 delta 1e-6 }}}}
assert len(g) == 5
"""
    for session, source in (
        (session_at(url), 'postgres("visits")'), (Session(cwd=tmp_path), 'table("visits.parquet")'),
    ):  # fmt: skip
        result = session.attempt(Source("p.jst", program.format(source)))
        assert result.ok, result.diagnostics
    assert len(rounds) == 8 and rounds[:4] == rounds[4:] and all(rounds) and len(rounds[0]) > len(rounds[1])


def pa_parquet(path: Path, who: list[str], page: list[str | None], day: list[str]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"who": who, "page": page, "day": pa.array(day).cast(pa.date32())}), path)


def test_a_private_file_is_not_sent(url: str, session_at: Any, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n5\n")
    program = 'private people = table("people.csv") described by {age: 0..9} protecting rows budget epsilon 1'
    with pytest.raises(Refusal, match="a private file is not sent to a server, and this session works on PostgreSQL"):
        session_at(url).run_text(program)


def test_a_public_table_is_sent(engine: Postgres) -> None:
    import pyarrow as pa

    from jostle.plan.plan import Join

    texts = ['a"b', "it's", "\\{1,2}", "NULL", "", None, "é"]
    columns = {
        "i": pa.array([1, -(2**63), None, 4, 5, 6, 7], pa.int64()),
        "r": pa.array([0.5, -0.0, float("nan"), float("inf"), None, 1e300, 5e-324]),
        "b": pa.array([True, False, None, True, True, True, True]),
        "d": pa.array(["2024-02-29", None, *["0001-01-01"] * 5]).cast(pa.date32()), "s": pa.array(texts),
    }  # fmt: skip
    described = {"i": Open("integer"), "r": Open("real"), "b": Open("boolean"), "d": Open("date"), "s": Open("text")}
    reference = LocalDuckDb()
    answers = []
    for some in (engine, reference):
        scan = Scan(some.open(columns, public=True).key, tuple(described.items()))
        answers.append((sorted(map(repr, some.records(scan))), some.rows(Join(scan, scan, ("s",)))))
    reference.close()
    assert answers[0] == answers[1]
    with pytest.raises(Refusal, match="more than 1 MB is not sent"):
        engine.stamp(engine.open({"x": list(range(200_000))}, public=True).key)


@pytest.fixture
def asked(session_at: Any, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a program, and gives each query that reads rows, with how the server plans it."""
    queries: list[tuple[str, str]] = []
    read = Connection.read

    def noting(self: Connection, query: str, label: str, take: Any) -> Any:
        plan = read(self, f"EXPLAIN {query}", label, lambda cursor: cursor.fetchall())
        queries.append((query, "\n".join(line for (line,) in plan)))
        return read(self, query, label, take)

    def run(text: str) -> list[tuple[str, str]]:
        (tmp_path / "program.jst").write_text(text)
        session_at(url).run(tmp_path / "program.jst")
        return queries

    monkeypatch.setattr(Connection, "read", noting)
    return run


def test_a_person_s_rows_are_not_compared_with_all_rows(load: Any, asked: Any) -> None:
    """A server that expects a row of each nested select would join them by comparing each row with each other one: the
    order of a person's rows took minutes for some thousand of them."""
    load("moments", {"who": ("text", ["a", "b"] * 20), "at": ("int", list(range(40))), "what": ("text", ["x"] * 40)})
    queries = asked(
        'use sequences\nprivate t = postgres("moments") described by {at: 0..39, what: {"x", "y"}} protecting who '
        'budget epsilon 1\nn = {{ select count(*) from with_previous(t, "at", "what", 6) with epsilon 1 }}\n'
    )
    assert any("JOIN" in query for query, _ in queries) and not any("Nested Loop" in plan for _, plan in queries)


def test_a_text_is_read_as_a_number_once(load: Any, asked: Any) -> None:
    """However often bins and sums mention it: a column of classes took 15 s for 4,000 rows of texts."""
    load("spelled", {"age": ("text", ["16", "30 ", "1e1", "old"])})
    queries = asked(
        'private t = postgres("spelled") described by {age: 16..79} protecting rows budget epsilon 1\n'
        'b = binned(t, "age", [20, 30, 40, 50, 60])\nn = {{ select count(*) from b groupby age with epsilon 1 }}\n'
    )
    most = max(query.count("regexp_match(") for query, _ in queries)
    assert 0 < most <= 2  # a number is tested and read
