"""CSV files: a record is a line, and no line can change another."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jostle.diagnostics import Refusal
from jostle.engine.duckdb import csvfile, textfile
from jostle.engine.duckdb.engine import DuckDb
from jostle.engine.files import open_file
from jostle.engine.filesets import Reading
from jostle.plan.domains import Integer, Open
from jostle.plan.plan import Scan

SETTINGS = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)

CONNECTION = duckdb.connect()


def records(path: Path, data: bytes, reading: Reading = Reading()) -> list[tuple[str | None, ...]]:  # noqa: B008
    path.write_bytes(b"a,b,c\n" + data)
    table = csvfile.CsvFile(open_file(path), "raw", "x", CONNECTION, reading).table(range(3))
    return CONNECTION.execute(f"SELECT * FROM {table}").fetchall()


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (b"1,2,3", ("1", "2", "3")),
        (b"1,2,3\r", ("1", "2", "3")),
        (b"1,,3", ("1", None, "3")),
        (b"1", ("1", None, None)),
        (b"1,2,3,4,5", ("1", "2", "3")),
        (b",,", (None, None, None)),
        (b" 1 , 2,", (" 1 ", " 2", None)),
        (b'"1","2","3"', ("1", "2", "3")),
        (b'"a, b",2,"say ""so"""', ("a, b", "2", 'say "so"')),
        (b'"never closed,2,3', ("never closed,2,3", None, None)),
        (b'a"b,c"d,"', ('a"b', 'c"d', None)),
        (b'"a"b,"",x', ("ab", None, "x")),
        (b"caf\xc3\xa9,\xff\xfe,\xe2\x82", ("café", "��", "�")),
        (b"a\0b,\x1f,x\ry", ("a\0b", "\x1f", "x\ry")),
    ],
)
def test_records(tmp_path: Path, line: bytes, record: tuple[str | None, ...]) -> None:
    found = records(tmp_path / "x.csv", line + b"\n7,8,9")
    assert sorted(map(repr, found)) == sorted(map(repr, [record, ("7", "8", "9")]))


@pytest.mark.parametrize("empty", [b"", b"\n", b"\r\n\n\r\n"])
def test_empty_lines_are_no_records(tmp_path: Path, empty: bytes) -> None:
    assert records(tmp_path / "x.csv", empty) == []


LINES = st.one_of(
    st.text(alphabet='ab,"\r 1é', max_size=12).map(str.encode),
    st.binary(max_size=8).map(lambda data: data.replace(b"\n", b"")),
)


@SETTINGS
@given(before=st.lists(LINES, max_size=5), line=LINES, after=st.lists(LINES, max_size=5))
def test_one_more_line_is_one_more_record_and_changes_no_other(
    tmp_path: Path, before: list[bytes], line: bytes, after: list[bytes]
) -> None:
    without = sorted(map(repr, records(tmp_path / "x.csv", b"\n".join([*before, *after]))))
    found = sorted(map(repr, records(tmp_path / "x.csv", b"\n".join([*before, line, *after]))))
    for record in without:
        found.remove(record)
    assert len(found) <= 1
    assert len(found) == (0 if line.strip(b"\r") == b"" else 1)


def test_blocks_end_where_lines_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = "".join(f'{i},"é,{i}",x{"y" * (i % 50)}\n' for i in range(400)).encode()
    whole = sorted(map(repr, records(tmp_path / "x.csv", data)))
    monkeypatch.setattr(textfile, "_BLOCK", 37)
    assert sorted(map(repr, records(tmp_path / "x.csv", data))) == whole
    assert len(whole) == 400


def test_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'\xef\xbb\xbf"a, b", c ,d\r\n1,2,3\r\n')
    assert csvfile.header(open_file(path), "`x.csv`").names == ("a, b", "c", "d")


@pytest.mark.parametrize(
    "data", [b"", b"\n1,2\n", b",,\n", b"a,a\n", b"a,,b\n", b"1,2.5\n3,4\n", b"\xff\xfea\0,\0b\0\n", b"PK\x03\x04\n"]
)
@pytest.mark.parametrize("public", [True, False])
def test_a_file_without_a_header_is_refused(tmp_path: Path, data: bytes, public: bool) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    with pytest.raises(Refusal) as refusal:
        DuckDb().open(path, public=public)
    assert refusal.value.first.kind == "DataError"
    assert refusal.value.first.span is None


@pytest.mark.parametrize(
    ("data", "line"),
    [(b"a,b\n1,2\n\n3\n4,5\n", "line 4"), (b"a,b\n1,2,3\n", "line 2"), (b"a,b\n1,2\n\xe9,1\n", "line 3")],
)
def test_irregular_public_files_are_refused_by_line_and_private_ones_are_not(
    tmp_path: Path, data: bytes, line: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    with pytest.raises(Refusal) as refusal:
        DuckDb().open(path, public=True)
    assert line in refusal.value.first.message
    engine = DuckDb()
    key = engine.open(path, public=False).key
    assert (
        engine.rows(Scan(key, (("a", Integer(0, 9)), ("b", Open("text")))))
        == data.replace(b"\n\n", b"\n").count(b"\n") - 1
    )
    engine.close()
