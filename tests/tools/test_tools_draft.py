"""Drafts of descriptions: from what is public of many kinds of files, ready to paste, and never from a row."""

from __future__ import annotations

import gzip
import json
from argparse import Namespace
from datetime import datetime
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jostle
from jostle.diagnostics import Refusal
from jostle.plan.plan import Open
from jostle.tools.datacheck import description
from jostle.tools.draft import Column, clause, columns_of, describe
from jostle.tools.draft.columns import columns_of_arrow, quoted
from jostle.tools.draft.init import _protecting, draft, interview
from jostle.tools.draft.init import drafted as program_for
from jostle.tools.entry import main


def drafted(columns: list[Column]) -> dict[str, str]:
    """Domains by column; what is printed is read again as the language reads it."""
    text = clause(columns)
    filled = text.removeprefix("described by ").replace(": ?", ": 0..1")
    assert [name for name, _ in description(filled)[0]] == [column.name for column in columns]
    return {column.name: column.domain for column in columns}


def of(tmp_path: Path, name: str, text: str, table: str | None = None) -> dict[str, str]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return drafted(columns_of(str(tmp_path / name), table))


SQL = {
    "CREATE TABLE IF NOT EXISTS t (age INT CHECK (age BETWEEN 0 AND 99))": {"age": "0..99"},
    "create table t (age integer check (age >= 18 and age < 100) not null, b text)": {"age": "18..99", "b": "text"},
    "CREATE TABLE t (x REAL, CONSTRAINT c CHECK (x BETWEEN -1.5 AND 2))": {"x": "-1.5..2.0"},
    "CREATE TABLE t (x DECIMAL(5,2), y NUMERIC(3), z NUMERIC, w FLOAT(24))": {
        "x": "-999.99..999.99", "y": "-999..999", "z": "?", "w": "?",
    },
    "CREATE TABLE t (s ENUM('F', 'M', 'it''s'), c VARCHAR(9) CHECK (c IN ('Ames', 'Cork')))": {
        "s": '{"F", "M", "it\'s"}', "c": '{"Ames", "Cork"}',
    },
    'CREATE TABLE a.b ("birth year" SMALLINT, `in` INT, [a b] BIGINT, PRIMARY KEY ("birth year"))': {
        "birth year": "?", "in": "?", "a b": "?",
    },
    "CREATE TABLE t (a INT CHECK (a > 0 OR a < 9), b INT CHECK (b > 3), c INT CHECK (c <> 4))": {
        "a": "?", "b": "?", "c": "?",
    },
    "-- old\n/* CREATE TABLE no (x INT) */ CREATE TABLE t (seen TIMESTAMP, ok BOOLEAN, j JSONB, -- z\n n INT)": {
        "seen": "time", "ok": "{true, false}", "j": "?", "n": "?",
    },
    "CREATE TABLE t (k INT DEFAULT 3 CHECK ((k IN (1, 2, 5))), m TINYINT UNSIGNED COMMENT 'a, b (c)')": {
        "k": "{1, 2, 5}", "m": "?",
    },
    "CREATE TABLE t (a INT CHECK (a BETWEEN 0 AND 9 AND a <> 5), b DOUBLE PRECISION CHECK (b >= 0.5 AND b <= 1e3))": {
        "a": "0..9", "b": "0.5..1000.0",
    },
}  # fmt: skip


@pytest.mark.parametrize("statement", SQL)
def test_create_table(tmp_path: Path, statement: str) -> None:
    assert drafted(columns_of(statement)) == SQL[statement]
    assert of(tmp_path, "t.sql", statement + ";\n") == SQL[statement]


@pytest.mark.parametrize("text", ["SELECT 1", "CREATE TABLE t", "CREATE TABLE a (x INT); CREATE TABLE b (y INT)", ""])
def test_sql_without_one_table(tmp_path: Path, text: str) -> None:
    with pytest.raises(Refusal):
        of(tmp_path, "t.sql", text)


def test_a_codebook(tmp_path: Path) -> None:
    text = """Variable,Type,Min,Max,Values,Label
age,integer,17,90,,age in years
pay,Number,0,1e5,,
sex,category,,,F;M,
grade,integer,,,1=low; 2=mid; 3=high,
city name,text,,,,where they live
born,date,,,,
x,number,3,,,
"""
    assert of(tmp_path, "book.csv", text) == {
        "age": "17..90", "pay": "0.0..100000.0", "sex": '{"F", "M"}', "grade": "{1, 2, 3}", "city name": "text",
        "born": "date", "x": "?",
    }  # fmt: skip


@pytest.mark.parametrize(
    "header",
    [
        "name,type,min,max,salary",
        "name,from,to",
        "name,type",
        "name,min,max",
        "name,type,type,values",
        "name,type,min,max,note,note",
        "age,sex",
    ],
)
def test_of_data_only_the_header_is_read(tmp_path: Path, header: str) -> None:
    """What might be data is not taken for a codebook; bytes that are no text stand in a row, and harm nothing."""
    (tmp_path / "d.csv").write_bytes(header.encode() + b"\nSecret,integer,1,2,\xff\n")
    names = header.split(",")
    once = [name for name in names if names.count(name) == 1]
    assert drafted(columns_of(str(tmp_path / "d.csv"))) == dict.fromkeys(once, "?")


@pytest.mark.parametrize("name", ["people.jsonl", "people.ndjson.gz", "people.duckdb"])
def test_of_data_without_a_header_no_row_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".duckdb"):
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE people AS SELECT 'Zoe' AS name")
    else:
        record = b'{"name": "Zoe"}\n'
        path.write_bytes(gzip.compress(record) if name.endswith(".gz") else record)
    with pytest.raises(Refusal, match="no header of its own"):
        columns_of(str(path))
    options = Namespace(file=str(path), codebook=None, describe=None, protecting=None, budget=None)
    with pytest.raises(Refusal) as refused:
        program_for(options, None, tmp_path)
    assert not any("Zoe" in f"{one.message} {one.help}" for one in refused.value.diagnostics)


def test_a_refused_codebook_shows_no_cell(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        of(tmp_path, "d.csv", "name,type,values\nSecret,Confidential,Hidden\n")
    shown = str(caught.value.first)
    assert not any(word in shown for word in ("Secret", "Confidential", "Hidden"))


def test_parquet(tmp_path: Path) -> None:
    table = pa.table({
        "age": pa.array([41], pa.int8()), "pay": pa.array([1.5]), "name": ["Secret"], "ok": [True],
        "d": [datetime(2020, 1, 1)],
        "c": pa.array(["Secret"]).dictionary_encode(), "l": [[1]], "City Name": pa.array(["Secret"], pa.large_string()),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet")
    columns = columns_of(str(tmp_path / "t.parquet"))
    assert drafted(columns) == {
        "age": "?", "pay": "?", "name": "text", "ok": "{true, false}",
        "d": "time", "c": "text", "l": "?", "City Name": "text",
    }  # fmt: skip
    assert "Secret" not in clause(columns) and "41" not in clause(columns)
    assert describe(table) == clause(columns).replace("element: ", "item: ")
    (tmp_path / "u.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(Refusal, match="no Parquet"):
        columns_of(str(tmp_path / "u.parquet"))


FIELDS = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}},
        {"name": "pay", "type": "number", "constraints": {"minimum": "0", "maximum": "1000.5"}, "title": "a month"},
        {"name": "on", "type": "date"}, {"name": "ok", "type": "boolean"}, {"name": "geo", "type": "geopoint"},
        {"name": "n", "type": "integer", "constraints": {"minimum": 1}},
        {"name": "k", "type": "integer", "categories": [{"value": 1, "label": "one"}, {"value": 2}]},
        {"name": "anything"},
    ]
}  # fmt: skip
SAID = {
    "age": "0..99", "sex": '{"F", "M"}', "pay": "0.0..1000.5", "on": "date", "ok": "{true, false}",
    "geo": "?", "n": "?",
    "k": "{1, 2}", "anything": "?",
}  # fmt: skip


def test_table_schema_and_data_package(tmp_path: Path) -> None:
    assert of(tmp_path, "schema.json", json.dumps(FIELDS)) == SAID
    package = {"resources": [{"name": "people", "schema": FIELDS}]}
    assert of(tmp_path, "datapackage.json", json.dumps(package)) == SAID
    package["resources"].append({"name": "other", "schema": {"fields": [{"name": "x"}]}})
    assert of(tmp_path, "datapackage.json", json.dumps(package), "other") == {"x": "?"}
    with pytest.raises(Refusal, match="which table"):
        of(tmp_path, "datapackage.json", json.dumps(package))


@pytest.mark.parametrize(
    "text", ["", "[", "[1]", "{}", '{"fields": [{}]}', '{"resources": [{"schema": 3}]}', '{"fields": []}']
)
def test_json_that_is_no_schema(tmp_path: Path, text: str) -> None:
    with pytest.raises(Refusal):
        of(tmp_path, "schema.json", text)


def test_a_table_of_records_in_json_is_to_be_written_as_lines(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="neither a Table Schema") as refused:
        of(tmp_path, "cars.json", '[{"name": "a", "miles": 18}]')
    assert "lines = True" in refused.value.diagnostics[0].help


def test_a_frame_by_its_types() -> None:
    frame = pd.DataFrame({
        "n": pd.array([41], "Int8"), "x": [41.5], "t": ["Secret"], "s": pd.array(["Secret"], "string"),
        "d": [datetime(1999, 1, 1)], "k": pd.Categorical([2], categories=[1, 2]), "b": [True],
        "c": pd.Categorical(["b"], categories=["b", 'a "c"\n']),
        "z": pd.to_datetime(["1999-01-01"], utc=True), "class": [41],
    })  # fmt: skip
    text = jostle.describe(frame)
    assert "Secret" not in text and "41" not in text and "1999" not in text
    filled = text.removeprefix("described by ").replace(": ?", ": 0..1")
    domains = dict(description(filled)[0])
    assert domains["c"].values == ("b", 'a "c"\n') and domains["k"].values == (1.0, 2.0)
    assert list(domains) == list(frame.columns)
    for wrong in (None, [1], {"a": [1]}, 3):
        with pytest.raises(Refusal, match="no table"):
            describe(wrong)


def test_dates_and_times() -> None:
    table = "CREATE TABLE t (a DATE, b TIMESTAMP WITH TIME ZONE, c DATETIME, d TIME, e YEAR)"
    assert drafted(columns_of(table)) == {"a": "date", "b": "time", "c": "time", "d": "text", "e": "?"}
    types = {"a": pa.date32(), "b": pa.timestamp("ns", "UTC"), "c": pa.time64("us"), "d": pa.duration("s")}
    columns = columns_of_arrow(pa.schema(types))
    assert drafted(columns) == {"a": "date", "b": "time", "c": "text", "d": "?"}
    domains, _ = description(clause(columns[:2]).removeprefix("described by "))
    assert dict(domains) == {"a": Open("date"), "b": Open("time")}


def test_names_that_are_no_plain_names() -> None:
    names = ["a b", "in", "None", "1st", "naïve", 'say "x"', "back\\slash", "tab\there", "ok_1", "a\u200bb"]
    assert list(drafted([Column.of(name, "text") for name in names])) == names
    with pytest.raises(Refusal, match="two columns"):
        clause([Column("a"), Column("a")])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my people.csv").write_text("age,City Name\n41,Secret\n", encoding="utf-8")
    assert main(["data", "draft", str(tmp_path / "my people.csv"), "--program"]) == 0
    program = capsys.readouterr().out
    assert "Secret" not in program
    (tmp_path / "p.jst").write_text(program, encoding="utf-8")
    assert main(["check", str(tmp_path / "p.jst")]) == 1
    assert "`age`, `City Name`" in capsys.readouterr().err
    program = program.replace("age: ?", "age: 0..99").replace('"City Name": ?', '"City Name": text')
    for clause_, text in (("protecting", "rows"), ("budget", "epsilon 1")):
        (tmp_path / "p.jst").write_text(program, encoding="utf-8")
        assert main(["check", str(tmp_path / "p.jst")]) == 1
        assert f"`{clause_} ?` is to be filled in" in capsys.readouterr().err
        program = program.replace(f"{clause_} ?", f"{clause_} {text}")
    (tmp_path / "p.jst").write_text(program, encoding="utf-8")
    assert main(["run", str(tmp_path / "p.jst")]) == 0


def test_what_is_not_known_is_asked_for() -> None:
    answers = iter(["nonsense(", "9..0", "0..9", "", '{"a", "b"}', "F, not said", "{1, 2}", "true, false", '"a", "c"'])
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return next(answers)

    columns = interview([Column.of("a b", "integer"), Column.of("t", "text"), *map(Column.of, "xyzuvw")], ask)
    assert [column.domain for column in columns] == [
        "0..9", "text", "?", '{"a", "b"}', '{"F", "not said"}', "{1, 2}", "{true, false}", '{"a", "c"}',
    ]  # fmt: skip
    assert len(prompts) == 9 and prompts[0].startswith('"a b" (whole numbers')


def test_a_budget_that_is_none_is_asked_for_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    words = Namespace(file=str(tmp_path / "t.csv"), describe="a: 0..9", codebook=None, protecting="rows", budget=None)
    answers = iter(["much", "epsilon -1", "rho 0.5"])
    assert "budget rho 0.5" in program_for(words, lambda prompt: next(answers), tmp_path)[0]
    assert capsys.readouterr().err.count("is no budget: `epsilon 1`") == 2


@pytest.mark.parametrize(("answers", "clause_"), [
    (["user up to 7 rows"], "user up to 7 rows"), (["protecting `User` up to 1 row"], "user up to 1 rows"),
    (["USER", "many", "4"], "user up to 4 rows"), (["user up to 3"], "user up to 3 rows"), (["rows"], "rows"),
    (["a up to b", ""], '"a up to b" up to 5 rows'), (["uesr", "user", ""], "user up to 5 rows"), ([""], "rows"),
])  # fmt: skip
def test_whose_rows_are_is_told_by_a_column_or_by_the_clause(answers: list[str], clause_: str) -> None:
    """`user up to 7 rows` was no column, and the question came again."""
    columns, left = [Column.of("user"), Column.of("a up to b")], iter(answers)
    assert _protecting(columns, lambda _: next(left)) == clause_ and not [*left]


def test_nothing_is_asked_of_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("age\n1\n", encoding="utf-8")
    options = Namespace(source=str(tmp_path / "d.csv"), table=None, program=False, protecting=None, budget=None)
    assert draft(options) == "described by {\n    age: ?\n}\n"


def test_a_text_is_written_as_a_person_would() -> None:
    """A tab was \\u0009."""
    assert quoted('a\tb"\\u0009\u202f') == r'"a\tb\"\\u0009\u202f"'


def test_a_draft_says_where_names_may_stand(tmp_path: Path) -> None:
    """A title above the names was drafted as a column without a word, and JSON lines were sent to databases."""
    (tmp_path / "a.csv").write_text("Report of 1987;;\n;;\nage;sex;pay\n3;F;1\n")
    (tmp_path / "a.jsonl").write_text('{"age": 3}\n')
    (column,) = columns_of(str(tmp_path / "a.csv"))
    assert column.domain == "?" and "--header" in column.note and "--header" in clause([column])
    with pytest.raises(Refusal) as refusal:
        columns_of(str(tmp_path / "a.jsonl"))
    assert "jostle init" in refusal.value.diagnostics[0].help
