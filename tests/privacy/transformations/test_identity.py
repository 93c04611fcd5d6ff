"""A person has one value of the column that tells persons apart, however it is described, stored and read."""

from __future__ import annotations

import csv
import datetime
import json
import sqlite3
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_value import ROWS, check_one_value_each

from jostle.engine.duckdb.engine import DUCKDB
from jostle.engine.sql.cells import clean, read, whole_or_text
from jostle.plan.plan import Categories, Column, Integer, Moments, Open, Real, Scan
from jostle.readers.duckdb import LocalDuckDb
from jostle.source import Source
from jostle.tools.session import Session


def _double(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


FLOATS = [0.0, -0.0, 1.0, -1.0, 7.0, 7.5, 0.1, 1.5, 1e15, 1e16, 2.0**53, 1e22, 5e-324, np.nan, np.inf, None,
          _double(0x7FF8000000000007)]  # fmt: skip
SMALL = [0.0, -0.0, 1.0, 7.0, 7.5, 0.1, 1.5, 2.0**-24, np.nan, None]
TEXTS = ["7", "07", " 7", "7 ", "7.0", "0", "-0", "0.0", "-0.0", "", "é", "e\u0301", "É", "true", "True", "2024-03-01",
         "2024-03-01 00:00:00", "1e0", "\u0667", "7\0", None]  # fmt: skip
DAYS = [datetime.date(2024, 3, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]
MOMENTS = [
    datetime.datetime(2024, 3, 1),
    datetime.datetime(2024, 3, 1, 12, 30, 0, 1),
    datetime.datetime(1969, 12, 31),
    None,
]
FOLDS = [datetime.datetime(2024, 10, 27, hour, 30, tzinfo=datetime.UTC) for hour in (0, 1)] + [None]
NANOS = pa.array([0, 1, -1, 999, 1000, 1709251200_000000000, None], pa.timestamp("ns"))
KINDS: dict[str, pa.Array] = {
    "float64": pa.array(FLOATS, pa.float64(), from_pandas=False), "float32": pa.array(SMALL, pa.float32()),
    "float16": pa.array([None if x is None else np.float16(x) for x in SMALL], pa.float16()),
    "int8": pa.array([0, 7, -1, None], pa.int8()), "int64": pa.array([0, 7, 2**53, 2**53 + 1, None], pa.int64()),
    "uint64": pa.array([0, 7, 2**64 - 1, 2**64 - 2], pa.uint64()), "bool": pa.array([True, False, None]),
    "string": pa.array(TEXTS), "large_string": pa.array(TEXTS, pa.large_string()),
    "binary": pa.array([b"7", b"a\xff", b"a\xfe", b"a?", None]), "date32": pa.array(DAYS, pa.date32()),
    "date64": pa.array(DAYS, pa.date64()), "moment s": pa.array(MOMENTS, pa.timestamp("s")),
    "moment us": pa.array(MOMENTS, pa.timestamp("us")), "moment ns": NANOS,
    "zoned": pa.array(FOLDS, pa.timestamp("us", "Europe/Berlin")), "clock": pa.array([0, 1, None], pa.time64("us")),
    "decimal": pa.array([Decimal("7.00"), Decimal("1.50"), Decimal("0.10"), None], pa.decimal128(9, 2)),
    "codes of floats": pa.DictionaryArray.from_arrays([0, 1, 2, 1, None], pa.array([0.0, -0.0, 7.0])),
    "codes of texts": pa.DictionaryArray.from_arrays([0, 1, 2, None], pa.array(["7", "7", "07"])),
}  # fmt: skip


def _as_text(value: Any) -> str:
    return "" if value is None else ("true" if value else "false") if isinstance(value, bool) else str(value)


def _plain(column: pa.ChunkedArray) -> list[Any]:
    return [
        value if value is None or isinstance(value, int | float | str) else str(value) for value in column.to_pylist()
    ]


def _csv(path: Path, table: pa.Table) -> None:
    """Every other row has its cells in quotes."""
    with path.open("w", newline="", encoding="utf-8") as file:
        plain, quoted = csv.writer(file), csv.writer(file, quoting=csv.QUOTE_ALL)
        plain.writerow(table.column_names)
        for at, row in enumerate(zip(*map(_plain, table.columns), strict=True)):
            (plain, quoted)[at % 2].writerow([_as_text(cell) for cell in row])


def _lines(path: Path, table: pa.Table) -> None:
    rows = [dict(zip(table.column_names, row, strict=True)) for row in zip(*map(_plain, table.columns), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _workbook(path: Path, table: pa.Table) -> None:
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(table.column_names)
    for row in zip(*map(_plain, table.columns), strict=True):
        sheet.append([None if isinstance(cell, str) and "\0" in cell else cell for cell in row])
    book.save(path)


def _sqlite(path: Path, table: pa.Table) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (id, v)")
        rows = [[str(x) if isinstance(x, int) and x >= 2**63 else x for x in row] for row in
                zip(*map(_plain, table.columns), strict=True)]  # fmt: skip
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    connection.close()


def _duckdb(path: Path, table: pa.Table) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")


def _relation(table: pa.Table) -> Any:
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return connection.table("t")


FILES: dict[str, tuple[str, Callable[[Path, pa.Table], object]]] = {
    "t.csv": ('table("t.csv")', _csv), "t.jsonl": ('table("t.jsonl")', _lines),
    "t.parquet": ('table("t.parquet")', lambda path, table: pq.write_table(table, path)),
    "t.xlsx": ('table("t.xlsx")', _workbook), "t.sqlite": ('table("t.sqlite", "t")', _sqlite),
    "t.duckdb": ('table("t.duckdb", "t")', _duckdb),
}  # fmt: skip


def _objects(table: pa.Table) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(table[name].to_pylist(), dtype=object) for name in table.column_names})


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table, "polars": lambda table: pytest.importorskip("polars").from_arrow(table),
    "pandas": lambda table: table.to_pandas(), "pandas objects": _objects, "lists": lambda table: table.to_pydict(),
    "pandas with arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype), "relation": _relation,
    "arrays": lambda table: {name: table[name].to_numpy() for name in table.column_names},
}  # fmt: skip


def rows_of(cells: pa.Array) -> pa.Table:
    ids = pa.chunked_array([cells] * ROWS)
    return pa.table({"id": ids, "v": pa.array(list(range(len(ids))), pa.int64())})


NOT_THERE = {  # what cannot be written so, or is none in every row
    ("t.duckdb", "float16"), ("relation", "float16"), ("t.duckdb", "binary"), ("pandas", "codes of texts"),
    ("pandas", "codes of floats"), ("pandas with arrow", "codes of texts"),
}  # fmt: skip
QUICK = ("float64", "codes of floats")
CASES = [
    pytest.param(form, kind, marks=() if kind in QUICK else pytest.mark.slow, id=f"{form}-{kind}")
    for form in (*FILES, *FRAMES)
    for kind in KINDS
    if (form, kind) not in NOT_THERE
]


@pytest.mark.parametrize(("form", "kind"), CASES)
def test_a_person_has_one_value_of_the_column_that_tells_persons(tmp_path: Path, form: str, kind: str) -> None:
    session, table = Session(cwd=tmp_path), rows_of(KINDS[kind])
    if form in FILES:
        source, write = FILES[form]
        write(tmp_path / form, table)
    else:
        source = 'bound("t")'
        session.bind("t", FRAMES[form](table))
    check_one_value_each(session, source)


def texts_of(path: Path) -> set[str]:
    engine = LocalDuckDb()
    values, _ = engine.tally(Scan(engine.open(path, public=True).key, (("id", Open("text")),)), Column("id"))
    engine.close()
    return {*values.tolist()}


TWO = ["float64", "float32", "float16", "int8", "int64", "uint64", "bool", "string", "decimal", "codes of floats"]
PAIRS = [
    pytest.param((one, other), marks=pytest.mark.slow if at else (), id=f"{one}-{other}")
    for at, one in enumerate(TWO)
    for other in TWO[at + 1 :]
]
LINKED = """private t = table("a.parquet") described by {id: text, v: 0..99} protecting id up to 3 rows
    budget epsilon 1000000
private u = table("b.parquet") described by {id: -9..99, v: 0..99} protecting t.id on id up to 3 rows
release both = {{ select count(distinct person) from t join u on person with epsilon 100000 }}
"""


@pytest.mark.parametrize("pair", PAIRS)
def test_persons_of_two_tables_are_those_of_equal_texts(tmp_path: Path, pair: tuple[str, str]) -> None:
    """As two files of one table, and as two tables of the same persons of which each describes them in its own way."""
    for name, kind in zip("ab", pair, strict=True):
        pq.write_table(rows_of(KINDS[kind]), tmp_path / f"{name}.parquet")
    texts = [texts_of(tmp_path / f"{name}.parquet") for name in "ab"]
    check_one_value_each(Session(cwd=tmp_path), 'table(["a.parquet", "b.parquet"])', len(texts[0] | texts[1]))
    result = Session(cwd=tmp_path).attempt(Source("p.jst", LINKED))
    assert round(float(dict(result.released)["both"])) == len(texts[0] & texts[1])


ROW = [None, "x", "7", 1.5, True, 2**70, b"x", object(), [7], Decimal("NaN"), datetime.date(2024, 3, 1)]
COLUMNS = {"truths": True, "whole": 7, "floats": 7.0, "texts": "7", "decimals": Decimal(7), "missing": None}
LISTED = """private t = bound("t") described by {v: -9..9, w: text} protecting rows budget epsilon 1000000
release total = {{ select sum(v) from t with epsilon 100000 }}
release same = {{ select count(*) from t where w == "7" or w == "true" with epsilon 100000 }}
"""


@pytest.mark.parametrize("column", COLUMNS)
def test_a_cell_of_a_list_decides_nothing_about_the_others(column: str) -> None:
    """A list declares no type: none is guessed from its cells, of which one more would change the others."""
    seen = []
    for more in ([], *([cell] for cell in ROW)):
        session, cells = Session(), [COLUMNS[column]] * 50 + more
        session.bind("t", {"v": cells, "w": cells})
        result = session.attempt(Source("p.jst", LISTED))
        seen.append([round(float(number)) for number in dict(result.released).values()])
    for total, same in seen:
        assert abs(total - seen[0][0]) <= 9 and abs(same - seen[0][1]) <= 1


def test_what_a_masked_array_masks_is_none() -> None:
    session = Session()
    session.bind("t", {"v": np.ma.masked_array([1, 2, 9, 4], [0, 0, 1, 0]), "w": np.arange(4)})
    program = 't = bound("t") described by {v: 0..9}\nprint({{ select sum(v) from t }}, {{ select count(v) from t }})\n'
    assert session.attempt(Source("p.jst", program)).output == ["7 3"]


HOSTILE = {
    "float64 beyond all": pa.array([np.inf, -np.inf, np.nan, None, -0.0, 0.0, 1.0]),
    "float32 beyond all": pa.array([np.inf, -np.inf, np.nan, None, -0.0, 0.0, 1.0], pa.float32()),
    "date64 within days": pa.array([0, 1, 43_200_000, 86_399_999, -1, None]).view(pa.date64()),
    "long": pa.array(["x" * 70_000, "y" * 70_000, "0" * 70_000 + "7", " " * 70_000 + "7", "", None, "7"]),
    "nanoseconds": pa.array([0, 1, 999, -1, 2**63 - 1, None], pa.timestamp("ns")),
    "years": pa.array([2**62, -(2**62), 0, None], pa.timestamp("us")),
}
READINGS = (
    *map(Open, ("text", "real", "integer", "boolean", "date", "time")), Integer(0, 9), Real(-9.0, 9.0),
    Categories(("inf", "-inf", "nan", "7", "1970-01-01", "true", "")), Categories((0.0, 7.0, 1.0)),
    Moments("date", 0, 9, ""), Moments("date", 0, 99, "month"), Moments("time", 0, 9 * 10**6, ""),
    Moments("time", 0, 9 * 86_400 * 10**6, "hour"),
)  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, *HOSTILE])
def test_rows_that_tie_are_read_alike_under_every_description(tmp_path: Path, kind: str) -> None:
    """Or which of a person's rows stay would depend on how a database orders what it takes for equal."""
    table = pa.table({"id": (KINDS | HOSTILE)[kind]})
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    engine = LocalDuckDb()
    raw, relation = engine.raw(engine.open(tmp_path / "t.arrow", public=True, names=("id",)).key, look=True)
    cell = raw.cell("id")
    seen = [clean(DUCKDB, *read(DUCKDB, *cell, domain), domain).alias for domain in READINGS]
    rows = engine.fetch(f"SELECT {', '.join([whole_or_text(DUCKDB, *cell).alias, *seen])} FROM {relation}")
    engine.close()
    first: dict[Any, Any] = {}
    for tied, *values in rows:
        assert first.setdefault(tied, values) == values
