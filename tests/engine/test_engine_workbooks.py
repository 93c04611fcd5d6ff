"""Workbooks as sources and as what is saved: dates and numbers, one budget for all sheets, commands of owners."""

from __future__ import annotations

import datetime
from pathlib import Path

import openpyxl
import pytest

from jostle.source import Source
from jostle.tools.entry import main
from jostle.tools.export import Export
from jostle.tools.session import Session

DAY, TIME = datetime.datetime(2024, 3, 1), datetime.datetime(2024, 3, 1, 12, 30)


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One sheet, of 30 rows: dates, times, truths, numbers with and without fractions, an error, nothing."""
    book = openpyxl.Workbook()
    book.active.append(["age", "day", "at", "member", "city", 2024])
    for place in range(30):
        book.active.append([20 + place % 3, DAY, TIME, place % 2 == 0, "#N/A" if place == 4 else "Ames", place / 4])
    book.active["A2"] = "=6*7"
    book.save(tmp_path / "survey.xlsx")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "survey.xlsx"


def said(text: str) -> list[str]:
    result = Session(cwd=Path.cwd()).attempt(Source("p.jst", text))
    return result.output or [d.message for d in result.diagnostics]


def test_cells_are_what_they_say(survey: Path) -> None:
    program = """t = table("survey.xlsx") described by {age: 0..99, day: date, at: time, member: {true, false},
    city: {"Ames"}, `2024`: 0.0..9.0}
print({{ select count(*) from t where day == 2024-03-01 }})
print({{ select count(*) from t where at == 2024-03-01T12:30:00 }})
print({{ select count(*) from t where member }}, {{ select count(*) from t where city is none }},
    {{ select count(*) from t where age is none }}, {{ select sum(`2024`) from t }})
"""
    assert said(program) == ["30", "30", "15 1 1 108.75"]


def test_all_sheets_of_a_workbook_have_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = openpyxl.Workbook()
    for sheet in (book.active, book.create_sheet("More")):
        sheet.append(["age"])
        sheet.append([30])
    book.save(tmp_path / "x.xlsx")
    monkeypatch.chdir(tmp_path)
    program = "".join(
        f'private t{i} = table("x.xlsx", sheet = {sheet}) described by {{age: 0..99}}\n'
        "    protecting rows budget epsilon 1\n"
        for i, sheet in enumerate((1, '"more"', 2))
    )
    program += "".join(f"n{i} = {{{{ select count(*) from t{i} with epsilon 0.3 }}}}\n" for i in range(3))
    assert said(program + "print(left(t0), left(t2))\n") == ["0.1 0.1"]
    assert "is private" in said(program + 'print(len(table("x.xlsx", sheet = "More")))\n')[0]


def test_owners_commands_take_a_workbook(survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "draft", "survey.xlsx"]) == 0
    assert "age: ?" in capsys.readouterr().out.replace("integer", "?")
    assert main(["data", "check", "survey.xlsx", "--schema", '{age: 0..21, city: {"Ames"}}']) == 0
    assert "30 records" in capsys.readouterr().out
    assert main(["init", "survey.xlsx", "--describe", '{age: 0..99, city: {"Ames"}}']) == 0
    assert main(["run", "survey.jst", "--simulate"]) == 0


def test_owners_commands_name_a_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    book = openpyxl.Workbook()
    book.active.append(["city"])
    people = book.create_sheet("The people")
    people.append(["age"])
    for age in range(30):
        people.append([age])
    book.save(tmp_path / "x.xlsx")
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("age\n1\n")
    ages = ["--schema", "{age: 0..9}", "--sheet", "the people"]
    register = ["data", "register", "--ledger", "l.db", "--protecting", "rows", "--budget", "epsilon 1000"]
    for words, printed in (
        (["data", "check", "x.xlsx", *ages], "outside 20"), (["data", "draft", "x.xlsx", "--sheet", "2"], "age: ?"),
        (["data", "draft", "x.xlsx", "--sheet", "2", "--program"], 'table("x.xlsx", sheet = 2)'),
        (["init", "x.xlsx", "--sheet", "The people", "--describe", "age: 0..6"], "jostle run x.jst"),
        ([*register, "people", "x.xlsx", *ages], "registered"),
        (["data", "show", "people", "--ledger", "l.db"], "the people"),
    ):  # fmt: skip
        assert main(words) == 0 and printed in capsys.readouterr().out
    assert main(["run", "x.jst"]) == 0
    Path("r.jst").write_text('private p = dataset("people")\nprint({{ select sum(age) from p with epsilon 1000 }})\n')
    assert main(["run", "r.jst", "--ledger", "l.db"]) == 0 and "225" in capsys.readouterr().out
    for words in (
        ["data", "check", "x.xlsx", *ages[:2]], ["data", "draft", "x.xlsx"],
        ["init", "x.xlsx", "--sheet", "3", "--overwrite"],
        ["data", "check", "x.csv", *ages], ["data", "draft", "x.csv", "--sheet", "2"],
        [*register, "more", "x.xlsx", "--schema", "{city: text}", "--sheet", "1"],
        [*register, "c", "x.npy", "--sheet", "1"],
    ):  # fmt: skip
        assert main(words) == 1
        refused = capsys.readouterr().err
        assert "sheet" in refused or "one file has one budget" in refused


def test_a_release_is_saved_as_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    export = Export([("t", str(path))], ["t"], overwrite=False)
    notes, wrong = export.save({"t": [{"n": 1.5, "s": "=1+1"}, {"n": None, "s": "\x01a"}]}, ok=True)
    assert not wrong and "2 rows, 2 columns" in notes[0]
    rows = list(openpyxl.load_workbook(path)["released"].iter_rows())
    assert [[cell.value for cell in row] for row in rows] == [["n", "s"], [1.5, "=1+1"], [None, "a"]]
    assert rows[1][1].data_type == "s"
