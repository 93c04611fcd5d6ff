"""Every format says the same rows: files of each kind, several of them as one table, databases, streams of Arrow."""

from __future__ import annotations

import contextlib
import gzip
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.diagnostics import Refusal
from jostle.engine.files import open_file
from jostle.plan.facts import schema_of
from jostle.plan.plan import (
    Categories,
    Column,
    Count,
    FixedSum,
    Integer,
    Key,
    Moments,
    Open,
    Real,
    Scan,
    filled,
    filling,
    unfilled,
)
from jostle.readers.databases import record
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.filesets import FileSet, Reading, paths
from jostle.source import Source
from jostle.tools.session import Session

ROWS = [("ann", 3, 1.5), ("bob", None, 2.25), ("çy", 5, None), (None, 7, 0.5)]
NAMES = ("name", "age", "größe")
SCHEMA = (("name", Open("text")), ("age", Integer(0, 9)), ("größe", Real(0.0, 4.0)))


def separated(by: str = ",", encoding: str = "utf-8", end: str = "\n", point: str = ".") -> bytes:
    lines = [by.join("" if v is None else str(v).replace(".", point) for v in row) for row in (NAMES, *ROWS)]
    return "".join(line + end for line in lines).encode(encoding)


def arrow() -> pa.Table:
    return pa.table(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True)))


def zstandard(data: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return bytes(out.getvalue().to_pybytes())


def lines(*more: str) -> bytes:
    objects = [json.dumps(dict(zip(NAMES, row, strict=True)), ensure_ascii=False) for row in ROWS]
    return "".join(line + "\n" for line in (*objects, *more)).encode()


def parquet(path: Path) -> None:
    pq.write_table(arrow(), path)


def feather(path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, arrow().schema) as writer:
        writer.write_table(arrow())


def excel(path: Path) -> None:
    """Two sheets; the second has a row without cells, cells beyond the header, a formula that was never calculated."""
    book = openpyxl.Workbook()
    book.active.append(["other"])
    sheet = book.create_sheet("the People")
    for row in (NAMES, *ROWS[:2], (), *((*row, "beyond") for row in ROWS[2:])):
        sheet.append(row)
    sheet["C4"] = None
    sheet["C5"] = "=1/0"
    book.save(path)


def workbook(*rows: list[Any]) -> Callable[[Path], None]:
    def save(path: Path) -> None:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)

    return save


def sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "the People" (name TEXT, age INT, größe, twice AS (age * 2))')
        connection.executemany('INSERT INTO "the People" VALUES (?, ?, ?)', ROWS)
        connection.execute('CREATE VIEW all_of_them AS SELECT * FROM "the People"')
    connection.close()


def duck(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", arrow())
        connection.execute('CREATE TABLE "the People" AS SELECT *, [age] AS l, encode(name) AS b FROM "rows"')
        connection.execute('CREATE VIEW all_of_them AS SELECT * FROM "the People"')


Writer = bytes | Callable[[Path], None]
FORMATS: dict[str, tuple[Writer, Reading]] = {
    "a.csv": (separated(), Reading()), "a.tsv": (separated("\t"), Reading()), "a.txt": (separated("|"), Reading()),
    "semicolons.csv": (separated(";", point=","), Reading(decimal=",")),
    "marked.csv": (separated(";", "utf-8-sig", "\r\n"), Reading()),
    "latin.csv": (separated(encoding="latin-1"), Reading()),
    "told.csv": (separated("~", "mac-roman"), Reading(separator="~", encoding="mac-roman")),
    "a.csv.gz": (gzip.compress(separated()), Reading()), "two.csv.gz": (
        gzip.compress(separated()[:20]) + gzip.compress(separated()[20:]), Reading()),
    "a.csv.zst": (zstandard(separated()), Reading()), "a.jsonl": (lines(), Reading()),
    "a.ndjson.gz": (gzip.compress(lines()), Reading()), "a.parquet": (parquet, Reading()),
    "a.arrow": (feather, Reading()),
    "a.xlsx": (excel, Reading(sheet="THE people")), "numbered.xlsx": (excel, Reading(sheet=2)),
    "a.db": (sqlite, Reading(part="the people")), "a.duckdb": (duck, Reading(part="THE PEOPLE")),
}  # fmt: skip


def write(path: Path, content: Writer) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)


def answers(engine: LocalDuckDb, origin: Any, *, public: bool) -> list[Any]:
    names = tuple(name for name, _ in SCHEMA)
    scan = Scan(engine.open(origin, public=public, names=names).key, SCHEMA)
    keys = (Key(Column("age"), range(10)),)
    sums = engine.group(scan, keys, (Count(), FixedSum(Column("größe"), 0.0, 4.0, 20)))
    texts, counts = engine.tally(scan, Column("name"))
    return [engine.rows(scan), [s.tolist() for s in sums], texts.tolist(), counts.tolist()]


def test_points_group_the_digits_of_decimal_commas(tmp_path: Path) -> None:
    """`1.234,5` is read as it is written; a point elsewhere stays what it was."""
    (tmp_path / "x.csv").write_text('a;b\n"45.000";x\n-1.234.567,5;x\n12,5;x\n1.5;x\n1.2345;x\n', encoding="utf-8")
    engine = LocalDuckDb()
    files = FileSet.of([open_file(tmp_path / "x.csv")], Reading(decimal=","))
    scan = Scan(engine.open(files, public=True, names=("a",)).key, (("a", Open("text")),))
    texts, _ = engine.tally(scan, Column("a"))
    assert set(texts.tolist()) == {"45000", "-1234567.5", "12.5", "1.5", "1.2345"}
    engine.close()


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_same_rows(tmp_path: Path, name: str, public: bool) -> None:
    content, reading = FORMATS[name]
    write(tmp_path / name, content)
    (tmp_path / "plain.csv").write_bytes(separated())
    engine = LocalDuckDb()
    files = FileSet.of([open_file(tmp_path / name)], reading)
    assert answers(engine, files, public=public) == answers(engine, tmp_path / "plain.csv", public=public)
    engine.close()


DIRTY = (
    "a,r,c,v,d,m,b\n5,0.5,red,2,2020-02-03,2020-02-03T04:05,yes\n,,,,,,\n12,x,blue,3,1999-01-01,x,q\nnan,9,red,5,,,no\n"
)
NEVER = (
    ("a", Integer(3, 9)), ("r", Real(0.0, 4.0)), ("c", Categories(("green", "red"))), ("v", Categories((2.0, 5.0))),
    ("d", Moments("date", 18262, 18600, "month")), ("m", Moments("time", 0, 2**52)), ("b", Open("boolean")),
)  # fmt: skip


def test_what_is_never_missing_has_its_low_end_or_first_value_and_is_described_as_before(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(DIRTY)
    engine = LocalDuckDb()
    files = FileSet.of([open_file(tmp_path / "x.csv")])
    scan = Scan(engine.open(files, public=True, names=[name for name, _ in NEVER]).key, NEVER)
    plan = filled(scan, NEVER, [name for name, _ in NEVER])
    assert schema_of(plan) == dict(NEVER) and unfilled(plan) is scan and filled(scan, NEVER, ()) is scan
    for name, domain in NEVER:
        values, counts = engine.tally(plan, Column(name))
        first, other = engine.tally(scan, Column(name))
        read = dict(zip(first.tolist(), other.tolist(), strict=True))
        missing = 4 - sum(read.values())
        value = filling(domain)
        assert value is not None and missing >= 1
        read[value.value] = read.get(value.value, 0) + missing
        assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == read
    assert filling(Open("text")) is None and filling(Open("real")) is None
    engine.close()


def test_files_of_several_kinds_are_one_table(tmp_path: Path) -> None:
    """A column that is a whole number here and a text there is both; the order of columns is each file's own."""
    for name in ("a.csv", "a.parquet", "a.jsonl", "a.csv.zst"):
        write(tmp_path / name, FORMATS[name][0])
    swapped = (
        arrow()
        .select(["größe", "name", "age"])
        .cast(pa.schema([("größe", pa.float32()), ("name", pa.large_string()), ("age", pa.uint64())]))
    )
    pq.write_table(swapped, tmp_path / "swapped.parquet")
    engine = LocalDuckDb()
    rows, sums, texts, counts = answers(engine, tmp_path / "a.csv", public=True)
    for names in (["a.parquet", "swapped.parquet"], ["swapped.parquet", "a.jsonl", "a.csv"]):
        many = len(names)
        origin = FileSet.of([open_file(tmp_path / name) for name in names])
        expected = [many * rows, [[many * v for v in s] for s in sums], texts, [many * c for c in counts]]
        assert answers(engine, origin, public=False) == expected
        scan = Scan(engine.open(origin, public=False, names=NAMES).key, SCHEMA)
        codes = engine.codes(scan, (Key(Column("age"), range(10)),))[0].tolist()
        assert sorted(codes) == sorted([3, -1, 5, 7] * many)
    (tmp_path / "other.csv").write_text("name,age\nx,1\n")
    with pytest.raises(Refusal) as caught:
        engine.open(FileSet.of([open_file(tmp_path / "a.csv"), open_file(tmp_path / "other.csv")]), public=False)
    assert "does not have the columns of" in caught.value.first.message
    engine.close()


@pytest.mark.parametrize("again", ["a.csv", "./a.csv", "hard.csv", "a.csv.gz"])
def test_a_private_file_stands_in_a_table_once(tmp_path: Path, again: str) -> None:
    """Twice each row would count two, at the price of one; also of a file that was opened before."""
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x\n1\n"))
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "a.csv")
    table = "private {} = table({}) described by {{x: 0..9}} protecting rows budget epsilon 1\n"
    for first in ("", table.format("a", '"a.csv"')):
        source = Source("p.jst", first + table.format("b", f'["a.csv", "{again}"]'))
        result = Session(cwd=tmp_path).attempt(source)
        assert not result.ok and "are one file" in result.diagnostics[0].message, first


def test_python_hands_over_several_paths(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv.gz"):
        write(tmp_path / name, separated() if name == "a.csv" else gzip.compress(separated()))
    session = Session(cwd=tmp_path)
    session.bind("people", [tmp_path / "a.csv", tmp_path / "b.csv.gz"])
    assert session.attempt(Source("p.jst", 'print(len(bound("people")))\n')).output == ["8"]


def test_streams_of_arrow_are_tables() -> None:
    """As polars and DuckDB hand their frames over; one that fails says nothing of its cells."""

    class Stream:
        def __init__(self, table: Any) -> None:
            self.table = table

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return self.table.__arrow_c_stream__(requested_schema)

    engine, people = LocalDuckDb(), arrow()
    outside = duckdb.connect()
    outside.register("people", people)
    expected = answers(engine, people, public=False)
    views = pa.table({"name": people["name"].cast(pa.string_view()), **{n: people[n] for n in NAMES[1:]}})
    outside.execute("CREATE TABLE held AS FROM people")
    relation = outside.sql("SELECT * FROM held")
    for origin in (Stream(people), Stream(views), relation, people.to_reader()):
        assert answers(engine, origin, public=False) == expected
    engine.close()
    engine = LocalDuckDb()
    failing = outside.sql("SELECT CAST(name AS INTEGER) AS age FROM held WHERE age IS NULL")
    with pytest.raises(Refusal) as caught:
        engine.open(failing, public=False)
    assert "bob" not in str(caught.value.diagnostics) and "cannot be read as a table" in caught.value.first.message
    with pytest.raises(Refusal, match="is no table"):
        engine.open(object(), public=False)
    engine.close()


@pytest.mark.parametrize(("name", "content", "reading", "said"), [
    ("x.csv", b"a;b\n1;2\n", Reading(separator="x"), "no separator"),
    ("x.csv", b"a;b\n1;2\n", Reading(encoding="utf-16"), "no encoding"),
    ("x.csv", b"a,b\n1,2\n", Reading(separator=",", decimal=","), "one sign cannot"),
    ("x.csv", b"a,b\n1,2\n", Reading(part="people"), "no database"),
    ("x.jsonl", b"{}\n", Reading(separator=";"), "has no separator"),
    ("x.db", sqlite, Reading(), "has several tables"), ("x.db", sqlite, Reading(part="peple"), "no table `peple`"),
    ("x.db", sqlite, Reading(part="all_of_them"), "no table"),
    ("x.duckdb", duck, Reading(part="all_of_them"), "no table"),
    ("x.parquet.gz", gzip.compress(b"PAR1abc", mtime=0), Reading(), "is compressed"),
    ("x.csv.gz", gzip.compress(b"a\n" + b"1\n" * 9999, mtime=0)[:-9], Reading(), "is damaged"),
    ("x.csv.gz", gzip.compress(b"a\n" + b"1\n" * 9999, mtime=0)[:12], Reading(), "is damaged"),
    ("x.jsonl.gz", gzip.compress(b"{}\n", mtime=0)[:-4] + b"abcd", Reading(), "is damaged"),
    ("x.csv.zst", zstandard(b"a\n1\n")[:-3], Reading(), "is damaged"),
    ("x.arrow", b"ARROW1\0\0 and no more", Reading(), "no Arrow file"), ("x.fea", b"FEA1", Reading(), "first version"),
    ("x.xlsx", excel, Reading(), "has 2 sheets"), ("x.xlsx", excel, Reading(sheet="peple"), "no sheet `peple`"),
    ("x.xlsx", excel, Reading(sheet=3), "no sheet 3: it has 2"), ("x.xlsx", excel, Reading(part="a"), "no database"),
    ("x.xlsx", b"PK\3\4 and no more", Reading(), "cannot be read as a workbook"),
    ("x.xlsx", workbook([]), Reading(), "no names in the first row"),
    ("x.xlsx", workbook(["a"], ["1"]), Reading(header=3), "no names in row 3"),
    ("x.parquet", b"PAR1", Reading(header=2), "has no line of names"),
    ("x.csv", b"a,b\n1,2\n", Reading(header=2), "line 2 holds numbers"),
    ("x.json", b'{"rows": [\n{"a": 1}\n]}\n', Reading(), "as one document"),
    ("x.json", b'[\n{"a": 1}\n]\n', Reading(), "as one document"),
    ("x.arff", b"@RELATION x\n@attribute a numeric\n", Reading(), "an ARFF file"),
    ("x.csv", b"a,b\n1,2\n", Reading(header=9), "has no header"),
    ("x.csv", b'a,"b\nand more"\n1,2\n', Reading(), "goes on in the next line"),
    ("x.xls", bytes.fromhex("d0cf11e0a1b11ae1"), Reading(), "before 2007"),
    ("x.csv", b"a\n", Reading(sheet=1), "is no workbook"),
    ("x.db", b"SQLite format 3\0 and no more", Reading(part="a"), "cannot be read as a database"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused_when_it_is_opened(
    tmp_path: Path, name: str, content: Writer, reading: Reading, said: str
) -> None:
    """By what is public of a file, or since it is no file of rows: before a charge."""
    write(tmp_path / name, content)
    engine = LocalDuckDb()
    with pytest.raises(Refusal) as caught:
        engine.open(FileSet.of([open_file(tmp_path / name)], reading), public=False, names=("a",))
    assert said in caught.value.first.message and caught.value.first.kind == "DataError" and caught.value.first.help
    engine.close()


@pytest.mark.parametrize("part", ["sqlite_stat1", "sqlite_sequence", "words_content", "words_data"])
def test_what_a_database_keeps_of_its_tables_is_no_table(tmp_path: Path, part: str) -> None:
    """The first has how many rows the others have; the third has texts of a private table."""
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)")
        connection.execute("CREATE INDEX names ON people (name)")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(name)")
        connection.execute("INSERT INTO people (name) VALUES ('ann')")
        connection.execute("INSERT INTO words VALUES ('ann')")
        connection.execute("ANALYZE")
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = ?", (part,)).fetchone() == (1,)
    connection.close()
    engine, file = LocalDuckDb(), open_file(tmp_path / "x.db")
    assert engine.open(FileSet.of([file], Reading("people")), public=True).columns == ("id", "name")
    with pytest.raises(Refusal, match=f"no table `{part}`"):
        engine.open(FileSet.of([file], Reading(part)), public=True)


def test_a_database_with_changes_beside_it_is_refused(tmp_path: Path) -> None:
    sqlite(tmp_path / "x.db")
    (tmp_path / "x.db-wal").write_bytes(b"changes")
    files = FileSet.of([open_file(tmp_path / "x.db")], Reading(part="the People"))
    with pytest.raises(Refusal, match="not written to it yet"):
        LocalDuckDb().open(files, public=False)


def test_rows_of_a_transaction_that_is_not_done_are_not_read(tmp_path: Path) -> None:
    """SQLite writes them to its file before, and beside it what takes them back; done with, that may stay in zeros."""
    path = tmp_path / "x.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in ("PRAGMA journal_mode = persist", "PRAGMA cache_size = 1", "CREATE TABLE t (x)", "BEGIN"):
            connection.execute(statement)
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 200,)] * 500)
        files = FileSet.of([open_file(path)], Reading(part="t"))
        with pytest.raises(Refusal, match="not written to it yet"):
            LocalDuckDb().open(files, public=False)
        connection.execute("ROLLBACK")
        files = FileSet.of([open_file(path)], Reading(part="t"))
        assert (tmp_path / "x.db-journal").stat().st_size
        assert LocalDuckDb().open(files, public=False).columns == ("x",)


@pytest.mark.parametrize(("line", "found"), [
    ('{"a": 1e400, "b": -0.50, "c": "x", "d": true}', {"a": "1e400", "b": "-0.50", "c": "x", "d": True}),
    ('\ufeff {"a": NaN, "a": null}', {"a": None}), ('{"a": ' + "9" * 50_000 + "}", {"a": "9" * 50_000}),
    ("[1]", None), ("{", None), ('{"a": 1} 2', None), ("nothing", None), ('{"a": ' * 5000 + "1" + "}" * 5000, None),
    ('{"' + "}" * 5000 + '": ' + "[" * 5000 + "]" * 5000 + "}", None),
    ('{"a": "' + "[" * 5000 + '"}', {"a": "[" * 5000}),
])  # fmt: skip
def test_a_line_of_json_is_an_object_or_nothing(line: str, found: dict[str, Any] | None) -> None:
    assert record(line) == found


def test_json_lines_have_the_columns_that_are_described(tmp_path: Path) -> None:
    """Or, of a public file, all names that stand in it; what is no object there is refused by its line."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n\n{"b": "x", "a": [2]}\n')
    program = 'print([(r.a, r.b) for r in table("x.jsonl")])\n'
    assert Session(cwd=tmp_path).attempt(Source("p.jst", program)).output == ['[[1, none], [none, "x"]]']
    path.write_text('{"a": 1}\n\nno record\n')
    result = Session(cwd=tmp_path).attempt(Source("p.jst", program))
    assert "line 3 of" in result.diagnostics[0].message and "is no JSON object" in result.diagnostics[0].message


def test_patterns_name_files_in_order(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b2.csv", "b1.csv", "deep/b3.csv", "a[1].csv"):
        (tmp_path / name).write_text("x\n1\n")
    (tmp_path / "b9.csv").mkdir()
    folders = [tmp_path / "nowhere", tmp_path]
    assert paths("b*.csv", folders) == [tmp_path / "b1.csv", tmp_path / "b2.csv"]
    assert [Path(place).name for place in paths("**/b*.csv", folders)] == ["b1.csv", "b2.csv", "b3.csv"]
    assert paths("a[1].csv", folders) == [tmp_path / "a[1].csv"] and paths("none.csv", folders) == ["none.csv"]
    with pytest.raises(Refusal, match="no file matches"):
        paths("c*.csv", folders)


def test_times_of_old_parquet_files_are_those_that_they_hold(tmp_path: Path) -> None:
    """Of Spark and Impala: as nanoseconds of 64 bits the last day of the calendar would be one of 1816."""
    times = pa.array([-62_135_596_800, 1_700_000_000, 253_402_214_400], pa.timestamp("s"))
    said = []
    for old in (False, True):
        path = str(tmp_path / f"{old}.parquet")
        pq.write_table(pa.table({"x": times.cast(pa.timestamp("us"))}), path, use_deprecated_int96_timestamps=old)
        engine = LocalDuckDb()
        scan = Scan(engine.open(path, public=False).key, (("x", Open("time")),))
        said.append(sorted(engine.tally(scan, Column("x"))[0].tolist()))
    assert said[0] == said[1] == times.to_pylist()


def test_columns_of_parquet_have_the_names_that_the_file_gives_them(tmp_path: Path) -> None:
    """DuckDB has no names that differ in case alone: what it calls the second column is the name of the third."""
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table([pa.array([one]) for one in (1, 20, 3, 4, 5)], ["X", "x", "x_1", "y", "y"]), path)
    engine = LocalDuckDb()
    opened = engine.open(path, public=False)
    assert opened.columns == ("X", "x", "x_1", "y", "y") and dict(opened.unread) == {"y": "two columns"}
    for name, value in (("X", 1), ("x", 20), ("x_1", 3)):
        scan = Scan(opened.key, ((name, Integer(0, 99)),))
        assert engine.tally(scan, Column(name))[0].tolist() == [value]
