"""What `jostle check` says of a program beside its files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.source import Source
from jostle.tools.session import Session

PROGRAM = 'private t = table("people.csv") described by {age: 0..99, city: {"a"}} protecting rows budget epsilon 1\n'


def said(folder: Path, program: str = PROGRAM) -> list[tuple[str, str, str]]:
    found = Session(cwd=folder).check(Source(str(folder / "p.jst"), program))
    return [(fault.kind, fault.message, fault.help) for fault in found]


def test_a_column_that_the_header_lacks_is_found_and_no_name_is_told(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("secret,city\n1,a\n", encoding="utf-8")
    ((kind, message, help),) = said(tmp_path)
    assert (kind, message) == ("DataError", "there is no column `age`")
    assert "secret" not in help
    run = Session(cwd=tmp_path).attempt(Source(str(tmp_path / "p.jst"), PROGRAM))
    assert run.diagnostics[0].message == message


@pytest.mark.parametrize("column", ["lists", "other"])
def test_a_column_that_a_parquet_file_lacks_or_that_is_not_read_is_found(tmp_path: Path, column: str) -> None:
    table = pa.table({"age": [30], "city": ["a"], "lists": [[1]]})
    pq.write_table(table, tmp_path / "people.parquet")
    program = PROGRAM.replace(".csv", ".parquet")
    assert said(tmp_path, program) == []
    ((kind, message, _),) = said(tmp_path, program.replace("age", column))
    run = Session(cwd=tmp_path).attempt(Source(str(tmp_path / "p.jst"), program.replace("age", column)))
    assert kind == "DataError" and run.diagnostics[0].message == message
    (tmp_path / "people.parquet").write_bytes(b"PAR1" * 9)
    assert said(tmp_path, program) == []  # which its run says


PUBLIC = """towns = table("towns.csv")
big = derive(towns, big = size > 3)
n = {{ select sum(size) from towns where city == "Ames" groupby city over ["Ames"] }}
m = {{ select count(*) from big groupby big }}
for town in towns: print(town.city, towns[0].size, len(list(towns)), sample(towns, 1))
"""


def test_a_column_that_a_public_file_lacks_is_found_before_anything_is_paid(tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("city,size\nAmes,3\nCork,4\n", encoding="utf-8")
    (tmp_path / "people.csv").write_text("age,city\n1,a\n", encoding="utf-8")
    assert said(tmp_path, PUBLIC) == []
    paid = PROGRAM + "k = {{ select count(*) from t with epsilon 1 }}\n"
    for wrong, help in (("citty", 'groupby city over ["Ames"] }}`'), ("zone", "the columns are `city`, `size`")):
        program = paid + PUBLIC.replace("groupby city", f"groupby {wrong}")
        ((kind, message, way),) = said(tmp_path, program)
        assert (kind, message) == ("NameError", f"there is no column `{wrong}`") and way.endswith(help)
        run = Session(cwd=tmp_path).attempt(Source(str(tmp_path / "p.jst"), program))
        assert not run.ok and run.budget == {}
    (tmp_path / "towns.csv").unlink()
    assert said(tmp_path, program) == []


def test_a_misspelt_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "poeple.csv").write_text("age,city\n1,a\n", encoding="utf-8")
    assert said(tmp_path) == [("DataError", "there is no file `people.csv`", "did you mean `poeple.csv`?")]


@pytest.mark.parametrize("text", [None, "age,city\n1,a\n", "city;age\na;1\n", '"age","city"\n'])
def test_what_fits_and_what_is_elsewhere_pass(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    assert said(tmp_path) == []
    assert said(tmp_path, PROGRAM.replace("people.csv", "part*.csv")) == []
