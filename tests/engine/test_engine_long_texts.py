"""One public limit on the length of a text, before anything is made of a cell; and `like` as what it is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle import Session
from jostle.diagnostics import Refusal
from jostle.engine.files import open_file
from jostle.language import patterns
from jostle.language.operations import LONGEST
from jostle.plan.plan import (
    Bound,
    Categories,
    Column,
    Count,
    Domain,
    Integer,
    Key,
    Moments,
    Open,
    Owners,
    Real,
    Scan,
)
from jostle.readers.databases import duckdb_table, record
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.filesets import Reading
from jostle.run.operators import as_pattern, as_test
from jostle.source import Source


@pytest.fixture
def engine() -> Iterator[LocalDuckDb]:
    engine = LocalDuckDb()
    yield engine
    engine.close()


READ: dict[str, tuple[str, Domain, Any]] = {
    "text": ("é{}", Open("text"), None), "real": ("1{}", Open("real"), 1.0), "bounded": ("1{}", Real(0.0, 9.0), 1.0),
    "integer": ("1{}", Integer(0, 9), 1.0), "numbers": ("1{}", Categories((1.0, 2.0)), 1.0),
    "boolean": ("yes{}", Open("boolean"), True), "number as truth": ("1{}", Open("boolean"), True),
    "date": ("1970-01-02{}", Moments("date", 0, 9), 1.0), "time": ("1970-01-01 00:00:01{}", Open("time"), 1_000_000.0),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "jsonl"])
@pytest.mark.parametrize("name", READ)
def test_a_longer_text_is_none_whatever_it_is_read_as(
    name: str, kind: str, engine: LocalDuckDb, tmp_path: Path
) -> None:
    text, domain, value = READ[name]
    cells = [text.format(" " * (LONGEST - len(text) + 2 + more)) for more in (0, 1, 3 * LONGEST)]
    key = engine.open(stored(cells, kind, tmp_path), public=True, names=("s",)).key
    scan = Scan(key, (("s", domain),))
    values, counts = engine.tally(scan, Column("s"))
    assert [_plain(one) for one in values.tolist()] == [cells[0] if value is None else value]
    assert counts.tolist() == [1] and engine.rows(scan) == 3


def stored(cells: list[str], kind: str, folder: Path) -> Any:
    table, path = pa.table({"s": cells}), folder / f"t.{kind}"
    if kind == "frame":
        return table
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        lines = ["s", *cells] if kind == "csv" else [f'{{"s": "{cell}"}}' for cell in cells]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def _plain(value: Any) -> Any:
    from datetime import date

    from jostle.language.moments import number_of

    return float(number_of(value)) if isinstance(value, date) else value


def test_a_row_of_a_longer_id_is_nobodys(engine: LocalDuckDb) -> None:
    """A shorter id in its place would make one person of two, and one of them could move the rows of both."""
    long = ["p" * LONGEST + end for end in ("", "a", "b")]
    table = pa.table({"who": [*long, *long, "q", None], "x": [0, 1, 2] * 2 + [3, 4]})
    scan = Scan(engine.open(table, public=False).key, (("x", Integer(0, 9)),))
    keys = (Key(Column("x"), range(5)),)
    for plan in (Bound(scan, ("who",), 9), Bound(scan, ("who",), None), Bound(scan, ("who",), 9, weighted=True)):
        assert engine.group(plan, keys, (Count(),))[0].tolist() == [2, 0, 0, 1, 0]
    assert engine.rows(Bound(scan, ("who", "x"), 9)) == 3
    owned = Bound(scan, (), 9, owners=Owners(Bound(scan, ("x",), None), "who", "who"))
    assert engine.group(owned, keys, (Count(),))[0].tolist() == [2, 0, 0, 1, 0]


LIKES = ["", "%", "%%", "_", "_%", "a", "a%", "%a", "%a%", "a%b", "%a%b%", "%ab_c%", "a_c%", "%a_", "_a%", "a%b%c",
         "é%", "%😀_%", "%.%", "\\%", "%(%", "%a%%b%"]  # fmt: skip


def test_like_is_a_prefix_a_suffix_a_part_or_parts_in_order(engine: LocalDuckDb) -> None:
    rng = random.Random(3)
    texts = ["".join(rng.choice("abc.é😀\\(%\n") for _ in range(rng.randrange(7))) for _ in range(400)]
    texts += ["a" * LONGEST, "a" * 30_000 + "b" * 30_000 + "c"]
    for pattern in LIKES:
        operation, other = as_test(pattern)
        plain = {
            "==": str.__eq__,
            "starts_with": str.startswith,
            "ends_with": str.endswith,
            "contains": str.__contains__,
        }
        meant = plain.get(operation, patterns.matches)
        for text in texts:
            regular = patterns.matches(text, as_pattern(pattern))
            assert meant(text, other) == regular == in_order(text, pattern), (text[:50], pattern)


def in_order(text: str, pattern: str) -> bool:
    """`like` by hand: each part between two `%` where it first stands, the first and the last one at the ends."""
    first, *middle, last = [*pattern.split("%"), None] if "%" not in pattern else pattern.split("%")
    if last is None:
        return len(text) == len(first) and fits(text, first)
    if len(text) < len(first) + len(last) or not fits(text[: len(first)], first):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        at = next((i + len(part) for i in range(at, end - len(part) + 1) if fits(text[i : i + len(part)], part)), -1)
        if at < 0:
            return False
    return fits(text[end:], last)


def fits(text: str, part: str) -> bool:
    return all(other in ("_", one) for one, other in zip(text, part, strict=True))


def test_like_of_a_long_text_in_a_program(tmp_path: Path) -> None:
    program = """
private t = bound("t") described by {s: text} protecting rows budget epsilon 1e6
release a = {{ select count(*) from t where s like "%q%" with epsilon 9e4 }}
release b = {{ select count(*) from t where s like "%q%_z" with epsilon 9e4 }}
release c = {{ select count(*) from t where s not like "%q%" with epsilon 9e4 }}
"""
    session = Session(cwd=tmp_path)
    session.bind("t", pa.table({"s": ["x" * 1_500 + "q", "q" + "y" * 60_000 + "z", "x" * 200_000 + "q", "x", None]}))
    result = session.attempt(Source("p", program))
    assert result.ok and [round(result.released[name]) for name in "abc"] == [2, 1, 1]


def test_a_text_that_no_cell_can_be_is_not_sent_to_a_server() -> None:
    from jostle.backends.postgres.dialect import POSTGRES
    from jostle.backends.remote import check
    from jostle.plan.plan import Apply, Constant

    for text, question in (("a" * LONGEST, True), ("a" * (LONGEST + 1), False)):
        for part in (Apply("==", (Column("s"), Constant(text))), Key(Column("s"), (text,)), Categories((text,))):
            if question:
                check(part, POSTGRES, lambda _: None)
                continue
            with pytest.raises(Refusal, match="more than 65,536 characters is not sent"):
                check(part, POSTGRES, lambda _: None)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), None]
)
def test_no_text_that_is_too_long_for_a_database_is_handed_to_it(kind: pa.DataType | None, engine: LocalDuckDb) -> None:
    """Arrow has none of 2 GB in a column of objects, DuckDB none of 4 GB: a row that had one failed all questions."""
    texts = ["a", None, "é" * 2 * LONGEST, "é" * (2 * LONGEST + 1)]
    table = {"t": texts} if kind is None else pa.table({"t": pa.array(texts, kind)})
    raw, name = engine.raw(engine.open(table, public=False).key)
    assert engine.fetch(f"SELECT length({raw.cell('t')[0]}) FROM {name}") == [(1,), (None,), (2 * LONGEST,), (None,)]


def test_a_table_of_a_database_comes_with_long_texts(tmp_path: Path) -> None:
    """Of a million rows together texts ended at 2 GB: that they were as long depended on each row."""
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'x' AS a")
    table, _ = duckdb_table(open_file(tmp_path / "a.duckdb"), "a", Reading("t"))
    assert table.schema.field("a").type == pa.large_string()


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_long_row_of_a_large_file_takes_no_more_memory(ending: str, tmp_path: Path) -> None:
    """DuckDB had 16 times the longest line in memory: of a file that is larger one row decided whether it was read."""
    path, text = tmp_path / f"t.{ending}", "x" * 4000
    row = "1,{}\n" if ending == "csv" else '{{"a": 1, "t": "{}"}}\n'
    with path.open("w") as file:
        file.write("a,t\n" * (ending == "csv"))
        file.writelines([row.format(text)] * 30_000)
        file.write(row.format(text * 1600))
    engine = LocalDuckDb("90MB")
    key = engine.open(str(path), public=False, names=("a", "t")).key
    assert engine.rows(Scan(key, (("a", Integer(0, 1)),))) == 30_001
    engine.close()


def test_a_line_of_very_many_values_is_no_record() -> None:
    """One of 64 MB took 1.5 GB and 9 seconds, so that whether memory lasted depended on a row."""
    assert record('{"a": 1, "b": [' + "[]," * 2**22 + "[]]}") is None
    assert record('{"a": 1, "b": "' + "x" * 2**24 + '"}') is not None
