"""What is answered without PyArrow, which is an extra: the same numbers, of the arrays of NumPy that DuckDB scans."""

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from jostle import Refusal, Session, diagnostics
from jostle.engine.duckdb import engine
from jostle.readers import duckdb
from jostle.readers.duckdb import LocalDuckDb
from jostle.readers.frames import Frame

ROWS = 3000
PARTS = pd.Index(["north", "south", "zürich"], dtype=object)
FRAME = pd.DataFrame(
    {
        "who": pd.Series([f"p{i % 700}" for i in range(ROWS)], dtype=object),  # pandas has texts in Arrow otherwise
        "age": pd.array([None if i % 11 == 0 else 16 + i * 7 % 60 for i in range(ROWS)], dtype="Int64"),
        "size": np.array([i * 13 % 256 for i in range(ROWS)], dtype=np.uint8),
        "score": [np.nan if i % 9 == 0 else i * 37 % 101 / 7 for i in range(ROWS)],
        "part": pd.Categorical([["north", "south", None, "zürich"][i % 4] for i in range(ROWS)], categories=PARTS),
        "rank": pd.Categorical([i % 3 for i in range(ROWS)]),
        "day": [datetime.date(2024, 1, 1) + datetime.timedelta(i % 300) for i in range(ROWS)],
        "member": [i % 5 < 2 for i in range(ROWS)],
        "took": pd.to_timedelta([i % 90 for i in range(ROWS)], unit="s"),
    }
)
DESCRIBED = """private t = bound("t") described by {who: text, age: 16..79, size: 0..255, score: 0.0..15.0, day: date,
    part: {"north", "south", "zürich"}, rank: 0..2, member: {true, false}, took: 0..90000000000}
    protecting who up to 3 rows budget epsilon 1e12
"""
ASKED = """
a = {{ select count(*) as n, sum(age) as a, sum(size) as s, avg(score) as m from t groupby part with epsilon 1e9 }}
b = {{ select count(*) as n, sum(took) as took from t groupby rank, member with epsilon 1e9 }}
c = {{ select median(score), count(distinct who) from t where member and part != "north" with epsilon 1e9 }}
d = {{ select count(*) as n from t groupby month(day) as m over 1..12 with epsilon 1e9 }}
cells = {{ select count(*) as n from t groupby size * 256 + age over 0..20000 with epsilon 1e9 }}
e = {{ select sum(n) as n, max(n) as most from cells where n > 0 }}
f = {{ select count(*) as n from t where who like "p1%" with epsilon 1e9 }}
"""


def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, duckdb):
        monkeypatch.setattr(module, "has_arrow", lambda: False)
    monkeypatch.setattr(diagnostics, "find_spec", lambda name: None)


def answers(frame: object) -> list[pd.DataFrame]:
    """Of a session of its own. Noise at such an amount moves nothing by a millionth."""
    session, names = Session(), "abcdef"
    session.bind("t", frame)
    result = session.run_text(DESCRIBED + ASKED + "".join(f"release {name}\n" for name in names))
    return [result.frame(name) for name in names]


@pytest.mark.slow
def test_a_frame_is_answered_as_with_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = answers(FRAME)
    without(monkeypatch)
    for one, other in zip(answers(FRAME), arrow, strict=True):
        pd.testing.assert_frame_equal(one, other, rtol=1e-6)
    assert arrow[4].n[0] > 500


@pytest.mark.parametrize(
    ("column", "same"),
    [
        (pd.array([1, None, 3], dtype="Int32"), [1, None, 3]),
        (pd.array([1.5, None, 3.0], dtype="Float32"), [1.5, None, 3.0]),
        (pd.array([True, None, False], dtype="boolean"), [True, None, False]),
        (pd.array(["a", None, "\ud800"], dtype=object), ["a", None, "?"]),
        (np.array(["a", "", "\ud800"]), ["a", "", "?"]),
        (np.array([1, 2, 3], dtype=">i2"), [1, 2, 3]),
        (np.array([1, 2, 3], dtype=np.float16), [1.0, 2.0, 3.0]),
        (np.ma.array([1, 2, 3], mask=[False, True, False]), [1, None, 3]),
        (np.ma.array(["a", "b"], mask=[False, True]), ["a", None]),
        (np.array(["2024-01-02", "NaT", "2024-03-04"], dtype="datetime64[D]"), ["2024-01-02", None, "2024-03-04"]),
        (np.array([5, "NaT", 7], dtype="timedelta64[s]"), [5, None, 7]),
        (pd.Categorical([2, None, 3]), [2, None, 3]),
        (pd.Categorical([None, None, None], categories=np.array([], dtype=object)), [None, None, None]),
        ([None, "x", 2], [None, "x", "2"]),
    ],
)
def test_cells_are_those_of_arrow(monkeypatch: pytest.MonkeyPatch, column: object, same: list[object]) -> None:
    """A column of each type as DuckDB reads it, of the same type and with the same cells."""
    read = {}
    for arrow in (True, False):
        if not arrow:
            without(monkeypatch)
        database = LocalDuckDb()
        frame = Frame({"x": column}, "t").named_by(database.name_rows)
        read[arrow] = database.fetch(f"SELECT typeof(c0), c0 FROM {frame.table([0])} ORDER BY n")
        database.close()
    assert read[True] == read[False] and [cell for _, cell in read[True]] == same


@pytest.mark.parametrize(
    ("file", "what"), [("t.parquet", b"PAR1"), ("t.arrow", b"ARROW1"), ("t.csv", b"\x28\xb5\x2f\xfd")]
)
def test_a_file_that_needs_it_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, what: bytes
) -> None:
    without(monkeypatch)
    (tmp_path / file).write_bytes(what * 4)
    source = f'private t = table("{tmp_path / file}") described by {{a: 0..1}} protecting rows budget epsilon 1\n'
    with pytest.raises(Refusal, match=r'pyarrow, which is not installed(.|\n)*pip install "jostle\[arrow\]"'):
        Session().run_text(source + "print({{ select count(*) from t with epsilon 1 }})")


def test_a_frame_of_arrow_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": [1, 2]})
    without(monkeypatch)
    with pytest.raises(Refusal, match="pyarrow, which is not installed"):
        Frame(table, "t")
