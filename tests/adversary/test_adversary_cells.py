"""Every type of column with every hostile cell in one row: nothing fails, and what is said of others is the same bits.

The engine is asked, before noise: without the hostile row, and with it and a condition that leaves it out. The column
is described as a text, a number, a category, or not at all; the row stands first, in the middle and last.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cells import ARROW, NOT_IN_PARQUET, numpy_columns, pandas_columns
from hostile import ROWS

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
    Open,
    Plan,
    Scan,
)  # fmt: skip
from jostle.readers.duckdb import LocalDuckDb

PLAIN = 6
HOSTILE = 99  # the hostile row's id
IDS = [3, 1, 4, 1, 5, 2]
NAMES = ["ann", "bob", None, "cy", "ann", "é"]
SEEN = [1_600_000_000_000_000 + i for i in range(PLAIN)]
OTHERS: tuple[tuple[str, Domain], ...] = (("id", Integer(0, 99)), ("name", Open("text")))
LATER = (*OTHERS, ("seen", Open("text")))
DOMAINS: dict[str, Domain | None] = {
    "not described": None, "text": Open("text"), "integer": Integer(0, 80), "open": Open("real"),
    "texts": Categories(("a", "b", "?", "true")),
}  # fmt: skip
NUMPY, PANDAS = numpy_columns(), pandas_columns()
FRAMES = ARROW | NOT_IN_PARQUET


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalDuckDb]:
    engine = LocalDuckDb()
    yield engine
    engine.close()


def answers(engine: LocalDuckDb, origin: Any, *, later: bool) -> list[Any]:
    """What the engine says of all rows but the hostile one, for every description of the column `x`."""
    key = engine.open(origin, public=False, names=("id", "name", "seen", "x")).key
    said: list[Any] = []
    for name, domain in DOMAINS.items():
        schema = (*(LATER if later else OTHERS), *([("x", domain)] if domain is not None else []))
        scan = Scan(key, schema)
        others: Plan = Filter(scan, Apply("!=", (Column("id"), Constant(HOSTILE))))
        said.append((name, engine.rows(others)))
        for column, kind in schema if name == "not described" else schema[-1:]:
            values, counts = engine.tally(others, Column(column))
            said.append((column, [repr(v) for v in values.tolist()], counts.tolist()))
            if isinstance(kind, Integer):
                terms = (FixedSum(Column(column), -4.0, 80.0, 20), Count(Column(column)))
                said.append([cells.tolist() for cells in engine.group(others, (Key(Column("id"), range(6)),), terms)])
                said.append([block.tobytes() for block in engine.vectors(others, (Column("id"), Column(column)), 100)])
    assert engine.rows(scan) >= PLAIN
    few = Filter(Bound(Scan(key, OTHERS), ("name", "x"), 2), Apply("!=", (Column("id"), Constant(HOSTILE))))
    said.append(engine.group(few, (Key(Column("id"), range(6)),), (Count(),))[0].tolist())
    return said


def rows(plain: Any, odd: list[Any], place: int, join: Any) -> dict[str, Any]:
    """The columns of a table with hostile rows at a place."""
    ids, names, seen = list(IDS), list(NAMES), list(SEEN)
    ids[place:place] = [HOSTILE] * len(odd)
    names[place:place] = ["hostile"] * len(odd)
    seen[place:place] = [2**63 - 1] * len(odd)
    if odd:
        plain = join([plain[:place], *odd, plain[place:]])
    return {"id": pa.array(ids), "x": plain, "name": pa.array(names), "seen": pa.array(seen).view(pa.timestamp("us"))}


def compare(
    engine: LocalDuckDb, made: Any, plain: Any, odd: list[Any], join: Any, *, later: bool = True,
    places: tuple[int, ...] = (0, PLAIN),
) -> None:  # fmt: skip
    """One hostile row in each of the places, with the first cells in turn, and all of them together in the middle."""
    before = answers(engine, made(rows(plain, [], 0, join)), later=later)
    alone = [([odd[i % len(odd)]], place) for i, place in enumerate(places)]
    for cells, place in [*alone, (odd, 3)]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            after = answers(engine, made(rows(plain, cells, place, join)), later=later)
        assert after == before, (place, cells)


@pytest.mark.slow(only=[f"True-{name}" for name in ARROW if not name.startswith("timestamp")])
@pytest.mark.attack("hostile cells of every type")
@pytest.mark.parametrize("name", ARROW)
@pytest.mark.parametrize("old", [False, True])
def test_parquet(engine: LocalDuckDb, tmp_path: Path, name: str, old: bool) -> None:
    """Also with the row groups that a cell stands alone in, without dictionaries, and with times as in old files."""
    numbers = itertools.count()

    def made(columns: dict[str, Any]) -> str:
        path = tmp_path / f"{next(numbers)}.parquet"
        if old:
            pq.write_table(pa.table(columns), path, row_group_size=1, use_dictionary=False, store_schema=False,
                           use_deprecated_int96_timestamps=name.startswith("timestamp ns"))  # fmt: skip
        else:
            pq.write_table(pa.table(columns), path)
        return str(path)

    plain, odd = ARROW[name]
    places = () if old else (0, PLAIN)
    later = not old  # whether a column is described that DuckDB cannot read
    compare(engine, made, plain, odd, pa.concat_arrays, later=later, places=places)


@pytest.mark.slow(only=[*ARROW])
@pytest.mark.attack("hostile cells of every type")
@pytest.mark.parametrize("name", FRAMES)
def test_arrow(engine: LocalDuckDb, name: str) -> None:
    plain, odd = FRAMES[name]

    def join(parts: list[Any]) -> Any:
        return pa.chunked_array(parts) if name.startswith("coded") else pa.concat_arrays(parts)

    compare(engine, pa.table, plain, odd, join)


@pytest.mark.attack("hostile cells of every type")
@pytest.mark.parametrize("name", NUMPY)
def test_numpy(engine: LocalDuckDb, name: str) -> None:
    compare(engine, dict, *NUMPY[name], np.concatenate)


@pytest.mark.attack("hostile cells of every type")
@pytest.mark.parametrize("name", PANDAS)
def test_pandas(engine: LocalDuckDb, name: str) -> None:
    def join(parts: list[Any]) -> Any:
        made = pd.concat(parts, ignore_index=True)
        assert type(made.dtype) is type(parts[1].dtype)
        return made

    compare(engine, dict, *PANDAS[name], join)


LINES = [b"%d,%s,%s,%d" % (i, x, n or b"", s) for i, x, n, s in zip(
    IDS, (b"a", b"7", b'"b,c"', b"", b"2.5", b"true"), [n and n.encode() for n in NAMES], SEEN, strict=True,
)]  # fmt: skip
ODD_LINES = {
    **{name: row for name, row in ROWS.items() if b"\n" not in row},
    "a mark of order": b"\xef\xbb\xbf99,x,y,1", "a lone quote": b'99,"', "a quote and no end": b'99,"a,b,1',
    "NUL": b"99,\0,\0,\0",
    "bad bytes": b"99,\xff,\xff\xfe,\xed\xa0\x80", "a bad byte at the end": b"99,x,y,\xe2",
    "many cells": b"99" + b"," * 10_000,
    "one cell": b"99",
    "a huge cell": b"99," + b"x" * 3_000_000, "quotes": b'99,"""",""",1', "returns": b"99,\r,\r\r,\r",
    "other breaks": "99,\u2028,\u0085,\x0b\x0c\x1c".encode(), "a huge number": b"99," + b"9" * 400_000,
}  # fmt: skip


@pytest.mark.attack("hostile cells of every type")
@pytest.mark.parametrize("name", ODD_LINES)
def test_csv(engine: LocalDuckDb, tmp_path: Path, name: str) -> None:
    head, line = b"id,x,name,seen", ODD_LINES[name]
    if line.split(b",")[0].strip() != b"99":
        line = b"99," + line
    before = None
    for place in (None, 0, 3, PLAIN):
        lines = list(LINES)
        if place is not None:
            lines.insert(place, line)
        path = tmp_path / f"{place}.csv"
        path.write_bytes(b"\n".join([head, *lines]) + b"\n")
        after = answers(engine, str(path), later=True)
        before = after if before is None else before
        assert after == before, place


OBJECTS = [b'{"id": %d, "x": %s, "name": "%s", "seen": %d}' % (i, x, n or b"", s) for i, x, n, s in zip(
    IDS, (b'"a"', b"7", b'"b,c"', b"null", b"2.5", b"true"), [n and n.encode() for n in NAMES], SEEN, strict=True,
)]  # fmt: skip
ODD_OBJECTS = {
    "no object": b"99", "a text": b'"99"', "nothing of it": b'{"id": 99}', "a list": b'{"id": 99, "x": [[1], {}]}',
    "a brace too few": b'{"id": 99, "x": {"a": 1}',
    "bad bytes": b'{"id": 99, "x": "\xff\xfe", "name": "\xed\xa0\x80"}',
    "half a pair": b'{"id": 99, "x": "\\ud800", "name": "\\udfff", "seen": "\\u0000"}',
    "twice": b'{"id": 1, "id": 99}',
    "not finite": b'{"id": 99, "x": NaN, "seen": -Infinity}',
    "a huge number": b'{"id": 99, "x": ' + b"9" * 400_000 + b"}",
    "another 99": b'{"id": 9.9e1, "x": 1e999999999, "seen": 1e-999999999}',
    "deep": b'{"id": 99, "x": ' + b"[" * 100_000,
    "deeper": b'{"id": 99, "x": ' + b'{"a": ' * 50_000 + b"1" + b"}" * 50_001, "NUL": b'{"id": 99, "x": "\0"}',
    "a huge cell": b'{"id": 99, "x": "' + b"x" * 3_000_000 + b'"}',
    "blanks": b'  {"id":99}  \r', "a mark": b"\xef\xbb\xbf{}",
}  # fmt: skip


@pytest.mark.attack("hostile cells of every type")
@pytest.mark.parametrize("name", ODD_OBJECTS)
def test_json_lines(engine: LocalDuckDb, tmp_path: Path, name: str) -> None:
    before = None
    for place in (None, 0, 3, PLAIN):
        lines = list(OBJECTS)
        if place is not None:
            lines.insert(place, ODD_OBJECTS[name])
        path = tmp_path / f"{place}.jsonl"
        path.write_bytes(b"\n".join(lines) + b"\n")
        after = answers(engine, str(path), later=True)
        before = after if before is None else before
        assert after == before, place


def test_a_line_ends_somewhere(engine: LocalDuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a line has beyond the limit is dropped, wherever blocks begin."""
    from jostle.readers import textfile

    monkeypatch.setattr(textfile, "LONGEST", 20)
    for block in (7, 8, 20, 64, 1000):
        monkeypatch.setattr(textfile, "_BLOCK", block)
        path = tmp_path / f"{block}.csv"
        path.write_bytes(b"a,b\n1,2\n" + b"3," + b"x" * 2000 + b"\n5,6\n7," + b"y" * 2000)
        scan = Scan(engine.open(path, public=False).key, (("a", Integer(0, 9)), ("b", Open("text"))))
        values = engine.tally(scan, Column("b"))[0].tolist()
        assert engine.rows(scan) == 4 and {v[0] for v in values} == {"2", "6", "x", "y"}
        assert block > 20 or max(map(len, values)) == 18


@pytest.mark.attack("hostile cells of every type")
@pytest.mark.parametrize("line", [
    '{"x":' + "[" * 200 + '"' + '\\"' * 200_000, '{"x":"' + '\\"' * 200_000 + "\\" + "[" * 200,
    "{" + '"' * 200_001 + "[" * 200,
    '{"x":' + "9" * 200_000 + "}", '{"x":"\\ud800"}', '{"\\ud800":1}', '{"x":1,"x":[' + "1," * 9999 + "1]}", "\0",
    '{"x":NaN}',
])  # fmt: skip
def test_a_line_of_json_is_a_record_or_none_in_time(tmp_path: Path, line: str) -> None:
    """A long line with quotes that do not close was gone through from each quote again: minutes for this one."""
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"x":"a"}}\n{line}\n{{"x":"b"}}\n')
    engine, began = LocalDuckDb(), time.process_time()
    table = Scan(engine.open(path, public=False, names=("x",)).key, (("x", Open("text")),))
    assert engine.rows(table) == 3 and {"a", "b"} <= {*engine.tally(table, Column("x"))[0].tolist()}
    assert time.process_time() - began < 30
    engine.close()
