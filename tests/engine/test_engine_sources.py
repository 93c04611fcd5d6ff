"""Opening data sets, and cleaning their cells to the described domains."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.diagnostics import Refusal
from jostle.plan.plan import Categories, Column, Count, Domain, Integer, Key, Open, Real, Scan
from jostle.readers.duckdb import LocalDuckDb
from jostle.tools.session import Session

SHARED = Path(__file__).resolve().parents[3] / "shared" / "conformance"
NAN = float("nan")


@pytest.fixture
def engine() -> Iterator[LocalDuckDb]:
    engine = LocalDuckDb()
    yield engine
    engine.close()


def cleaned(engine: LocalDuckDb, cells: Any, domain: Domain) -> list[Any]:
    """The sorted values that the cells of one column become, with None for none."""
    origin = cells if not isinstance(cells, list) else {"x": np.array(cells, dtype=object)}
    scan = Scan(engine.open(origin, public=False).key, (("x", domain),))
    values, counts = engine.tally(scan, Column("x"))
    present = [value for value, n in zip(values.tolist(), counts.tolist(), strict=True) for _ in range(n)]
    return present + [None] * (engine.rows(scan) - len(present))


NOT_NUMBERS = [
    "",
    "abc",
    "nan",
    "NaN",
    "inf",
    "-Infinity",
    "1e400",
    "-1e999",
    "0x10",
    "1_0",
    "1,5",
    "1 2",
    "٣",
    "e5",
    ".",
    "+",
    "1e",
    "--1",
]


@pytest.mark.parametrize(
    "domain", [Integer(0, 99), Real(0.0, 99.0), Open("real"), Open("integer"), Categories((1.0, 10.0))]
)
def test_text_that_is_no_finite_number_is_missing(engine: LocalDuckDb, domain: Domain) -> None:
    assert cleaned(engine, NOT_NUMBERS, domain) == [None] * len(NOT_NUMBERS)


@pytest.mark.parametrize(
    ("cells", "domain", "values"),
    [
        (["7", " 7.9 ", "-7.1", "1e3", "+.5", "5.", "\t3"], Integer(-8, 99), [-8, 0, 3, 5, 7, 7, 99]),
        (["-1.5", "1e-400", "2.5", "9"], Real(-1.0, 3.0), [-1, 0, 2.5, 3]),
        (["-1.5", "9e15"], Open("integer"), [-2, 9e15]),
        (["red", "Red", " red", "blue", ""], Categories(("red", "blue")), ["blue", "red", None, None, None]),
        (["1", "1.0", "01", "2.5", "x", "3"], Categories((1.0, 2.5)), [1, 1, 1, 2.5, None, None]),
        (["a", "", None, " "], Open("text"), [" ", "a", None, None]),
        ([1, 2.5, True, None, NAN, "4"], Integer(0, 9), [1, 2, 4, None, None, None]),
        ([datetime.date(2024, 2, 29), b"\xff", Decimal("1.50"), object(), "\ud800"], Open("text"),
         ["1.5", "2024-02-29", "?", "�", None]),
        ([str(10**30), str(-(10**30))], Integer(-(10**20), 10**20), [-1e20, 1e20]),
    ],
)  # fmt: skip
def test_cells_become_values_of_their_domain(
    engine: LocalDuckDb, cells: list[Any], domain: Domain, values: list[Any]
) -> None:
    found = cleaned(engine, cells, domain)
    assert found == values


def test_the_dirty_file(engine: LocalDuckDb) -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared conformance folder is not beside this checkout")
    scan = Scan(
        engine.open(SHARED / "dirty.csv", public=False).key,
        (("age", Integer(0, 99)), ("sex", Categories(("Female", "Male"))), ("hours", Integer(0, 100))),
    )
    assert engine.rows(scan) == 5
    assert engine.tally(scan, Column("age"))[0].tolist() == [0, 30, 55]
    assert engine.tally(scan, Column("hours"))[0].tolist() == [40, 100]
    assert engine.group(scan, (Key(Column("sex"), ("Female", "Male")),), (Count(),))[0].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("column", "domain", "values"),
    [
        (np.array([1, 300, -5], dtype=np.int16), Integer(0, 99), [0, 1, 99]),
        (np.array([2**64 - 1, 5], dtype=np.uint64), Integer(0, 99), [5, 99]),
        (np.array([2**62, -(2**62)], dtype=np.int64), Integer(-(2**60), 2**60), [-(2.0**60), 2.0**60]),
        (np.array([1.5, NAN, np.inf, -np.inf, -3]), Integer(0, 99), [0, 1, None, None, None]),
        (np.array([1.5, NAN, np.inf, 1e300], dtype=np.float64), Open("real"), [1.5, 1e300, None, None]),
        (np.array([0.5, 2.5], dtype=np.float16), Real(0.0, 1.0), [0.5, 1.0]),
        (np.array([True, False, True]), Integer(0, 1), [0, 1, 1]),
        (np.array([True, False]), Categories(("true", "false")), ["false", "true"]),
        (np.array([3, 7]), Open("text"), ["3", "7"]),
        (np.array(["a", ""]), Open("text"), ["a", None]),
        (np.array(["2024-02-29", "NaT"], dtype="datetime64[D]"), Open("text"), ["2024-02-29", None]),
        (np.array([1 + 2j]), Open("real"), [None]),
    ],
)
def test_typed_arrays(engine: LocalDuckDb, column: Any, domain: Domain, values: list[Any]) -> None:
    assert cleaned(engine, {"x": column}, domain) == values


@pytest.mark.parametrize(
    ("series", "domain", "values"),
    [
        (pd.Series(["b", None, "a"]), Open("text"), ["a", "b", None]),
        (pd.Series([1, None, 3], dtype="Int64"), Integer(0, 2), [1, 2, None]),
        (pd.Series(["u", "v", None], dtype="category"), Categories(("u",)), ["u", None, None]),
        (pd.Series([1, "x", None, 2.5], dtype=object), Open("real"), [1, 2.5, None, None]),
        (pd.Series(pd.to_datetime(["2024-02-29", None])), Open("text"), ["2024-02-29T00:00:00", None]),
    ],
)
def test_pandas(engine: LocalDuckDb, series: Any, domain: Domain, values: list[Any]) -> None:
    found = cleaned(engine, pd.DataFrame({"x": series}), domain)
    assert [value[:19] if isinstance(value, str) else value for value in found] == values


@pytest.mark.parametrize(
    ("array", "domain", "values"),
    [
        (pa.array([1.5, None, NAN]), Real(0, 1), [1, None, None]),
        (pa.array(["a", None]).dictionary_encode(), Open("text"), ["a", None]),
        (pa.array([Decimal("1.25"), None]), Open("real"), [1.25, None]),
        (pa.array([Decimal("2.500"), Decimal(-100), Decimal(0), None]), Open("text"), ["-100", "0", "2.5", None]),
        (pa.array([Decimal("-1e-7"), Decimal(0)], pa.decimal128(9, 7)), Open("text"), ["-0.0000001", "0"]),
        (pa.array([datetime.date(2024, 2, 29)]), Open("text"), ["2024-02-29"]),
        (pa.array([True, None]), Integer(0, 5), [1, None]),
        (pa.array([[1], None]), Open("text"), [None, None]),
        (pa.array([b"7", b"\xff"]), Open("real"), [7, None]),
    ],
)
def test_arrow_and_parquet(engine: LocalDuckDb, tmp_path: Path, array: Any, domain: Domain, values: list[Any]) -> None:
    table = pa.table({"x": array})
    assert cleaned(engine, table, domain) == values
    if not pa.types.is_list(array.type):
        path = tmp_path / "year=2020" / "odd [name]*'; --.parquet"
        path.parent.mkdir()
        pq.write_table(table, path)
        assert engine.open(path, public=False).columns == ("x",)
        assert cleaned(engine, str(path), domain) == values


def test_names_and_constants_are_no_sql(engine: LocalDuckDb, tmp_path: Path) -> None:
    names = ['a"b', "x'; DROP TABLE raw0; --", "select", "c0", "SELECT"]
    row = ["' OR 1=1 --", "'; DROP TABLE raw0; --", '"', "\\", "$1"]
    table = {name: np.array([cell, "other"], dtype=object) for name, cell in zip(names, row, strict=True)}
    path = tmp_path / "x'y.csv"
    path.write_text(
        ",".join('"' + n.replace('"', '""') + '"' for n in names)
        + "\n"
        + ",".join('"' + c.replace('"', '""') + '"' for c in row)
        + "\n"
        + ",".join(["other"] * 5)
        + "\n"
    )
    for origin in (table, pd.DataFrame(table), path):
        opened = engine.open(origin, public=False)
        assert opened.columns == tuple(names)
        domains = tuple((name, Categories((cell, "b'b"))) for name, cell in zip(names, row, strict=True))
        scan = Scan(opened.key, domains)
        for name, cell in zip(names, row, strict=True):
            counts = engine.group(scan, (Key(Column(name), (cell, "other")),), (Count(),))[0]
            assert counts.tolist() == [1, 0]


def test_one_file_by_two_names_is_one(engine: LocalDuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n")
    os.symlink(path, tmp_path / "soft.csv")
    os.link(path, tmp_path / "hard.csv")
    (tmp_path / "copy.csv").write_text("a\n1\n")
    opened = engine.open(str(path), public=False)
    monkeypatch.chdir(tmp_path)
    for other in ("x.csv", "./soft.csv", "hard.csv", path):
        assert engine.open(other, public=True) == opened
    assert engine.open("copy.csv", public=True).identity != opened.identity
    frame = pd.DataFrame({"a": [1]})
    assert engine.open(frame, public=True) == engine.open(frame, public=False)


@pytest.mark.parametrize(
    "origin", ["nothing.csv", "nothing.parquet", "a\0b", ".", 7, None, np.zeros((2, 2)), {}, {"a": [1], "b": [1, 2]}]
)
def test_what_is_no_table_is_refused(
    engine: LocalDuckDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal) as refusal:
        engine.open(origin, public=False)
    assert refusal.value.first.kind == "DataError"


def test_a_damaged_parquet_file_is_refused(engine: LocalDuckDb, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(Refusal) as refusal:
        engine.open(tmp_path / "x.parquet", public=True)
    assert refusal.value.first.kind == "DataError"


def test_one_bad_text_in_a_parquet_file_decides_about_itself_only(engine: LocalDuckDb, tmp_path: Path) -> None:
    offsets = np.array([0, 2, 4, 6], dtype=np.int32)
    texts = pa.StringArray.from_buffers(3, pa.py_buffer(offsets), pa.py_buffer(b"ab\xff\xfecd"))
    table = pa.table({"x": texts, "n": pa.array([1, 2, 3], pa.int8()), "d": pa.array([datetime.date(2024, 2, 29)] * 3)})
    pq.write_table(table, tmp_path / "x.parquet")
    key = engine.open(tmp_path / "x.parquet", public=False).key
    scan = Scan(key, (("n", Integer(0, 2)), ("x", Open("text")), ("d", Open("text"))))
    assert engine.rows(scan) == 3
    assert engine.tally(scan, Column("x"))[0].tolist() == ["??", "ab", "cd"]
    assert engine.tally(scan, Column("n"))[0].tolist() == [1, 2]
    assert engine.tally(scan, Column("d"))[0].tolist() == ["2024-02-29"]
    assert cleaned(engine, {"x": table["x"]}, Open("text")) == ["??", "ab", "cd"]


def test_a_column_that_is_not_there(engine: LocalDuckDb) -> None:
    key = engine.open({"a": [1]}, public=False).key
    with pytest.raises(Refusal) as refusal:
        engine.rows(Scan(key, (("A", Integer(0, 1)),)))
    assert refusal.value.first.kind == "DataError"


def test_guessed_domains(engine: LocalDuckDb, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("n,m,t\n1,,a\n2.5,nan,\n,3,c\n")
    assert engine.guess(engine.open(path, public=True).key) == (
        ("n", Open("real")),
        ("m", Open("text")),
        ("t", Open("text")),
    )


def test_public_columns_that_are_stored_as_booleans_are_guessed_so(tmp_path: Path) -> None:
    """Their groups were 0 and 1, and no condition."""
    pq.write_table(pa.table({"b": [True, None, False, True]}), tmp_path / "x.parquet")
    values = (
        Session(cwd=tmp_path)
        .run_text("""t = table("x.parquet")
release g = {{ select count(*) as n from t groupby b }}
release n = {{ select count(*) from t where b }}
""")
        .values
    )
    assert values["g"].columns == {"b": [False, True], "n": [1, 2]} and values["n"] == 2


def test_long_statements_look_for_no_equal_parts_and_all_for_nothing_that_statistics_tell(engine: LocalDuckDb) -> None:
    """Of 800 columns of persons that took 20 s. What a file's statistics say is used by none of both."""
    never = {"statistics_propagation", "filter_pushdown", "join_filter_pushdown"}
    for many, more in ((1, set[str]()), (20_000, {"common_subexpressions"}), (1, set[str]())):
        engine.fetch(f"SELECT {', '.join(f'{i} AS c{i}' for i in range(many))}")
        ((names,),) = engine.connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()
        assert set(str(names).split(",")) == never | more
