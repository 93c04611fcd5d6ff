"""Files of counts, and the owner's survey of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.diagnostics import Refusal
from jostle.plan.plan import Categories, Integer, Open, Real
from jostle.readers.databases import load_counts
from jostle.readers.survey import ColumnSurvey, survey

NAN = float("nan")


@pytest.mark.parametrize("array", [np.array([1, 2, 3], np.int32), np.ones((2, 3)), np.zeros((2, 2, 2), np.uint8)])
def test_counts(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "x.npy", array)
    found = load_counts(tmp_path / "x.npy")
    assert found.dtype == np.int64 and found.shape == array.shape and np.array_equal(found, array)


@pytest.mark.parametrize(
    "array",
    [np.array(3), np.ones((1, 1, 1, 1)), np.zeros(0), np.array([-1]), np.array([0.5]), np.array([NAN]),
     np.array([np.inf]),
     np.array([2.0**53]), np.array([2**64 - 1], np.uint64), np.array(["a"]), np.array([1j]), np.array([True]),
     np.array([{}], dtype=object)],
)  # fmt: skip
def test_what_are_no_counts_is_refused(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    with pytest.raises(Refusal) as refusal:
        load_counts(tmp_path / "x.npy")
    assert refusal.value.first.kind == "DataError"


def test_no_cell_of_private_counts_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([3.7, NAN, np.inf, -np.inf, -1, 0, 2.0**60]))
    assert load_counts(tmp_path / "x.npy", private=True).tolist() == [3, 0, 2**31, 0, 0, 0, 2**31]


@pytest.mark.parametrize("data", [b"", b"a,b\n1,2\n", b"\x93NUMPY", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<i8'", None])
def test_what_is_no_array_file_is_refused(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(Refusal):
        load_counts(tmp_path / "x.npy")


def test_an_array_file_that_was_cut_short_or_claims_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(1000))
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(Refusal):
        load_counts(path)
    path.write_bytes(whole.replace(b"(1000,), }         ", b"(900000000000,), } "))
    assert b"900000000000,), }" in path.read_bytes()
    with pytest.raises(Refusal) as refusal:
        load_counts(path)
    assert "900,000,000,000" in refusal.value.first.message


def test_survey(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"age,sex,size,note\n30,F,1.5,a\n,X,9,b,extra\n-1,,x,\nforty,M\n\n200.5,F,inf,caf\xe9\n")
    schema = (
        ("age", Integer(0, 99)),
        ("sex", Categories(("F", "M"))),
        ("size", Real(0.0, 5.0)),
        ("note", Open("text")),
    )
    found = survey(path, schema)
    assert (found.rows, found.ragged, found.undecodable) == (5, 2, 1)
    assert found.columns == (
        ColumnSurvey("age", 1, 1, outside=2, not_whole=1, unlisted=0, respelt=0, stand_in=-1, standing_in=1),
        ColumnSurvey("sex", empty=1, unreadable=0, outside=0, not_whole=0, unlisted=1, respelt=0),
        ColumnSurvey("size", empty=1, unreadable=2, outside=1, not_whole=0, unlisted=0, respelt=0),
        ColumnSurvey("note", empty=2, unreadable=0, outside=0, not_whole=0, unlisted=0, respelt=0),
    )
    with pytest.raises(Refusal):
        survey(path, (("nothing", Open("text")),))
