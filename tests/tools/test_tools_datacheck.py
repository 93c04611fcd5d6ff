"""`jostle data check`: what it counts of a file, and what it says of a bad schema or file."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from jostle.diagnostics import Refusal
from jostle.language.moments import number_of
from jostle.plan.plan import Categories, Domain, Integer, Moments, Open, Real
from jostle.readers.survey import NUMBERS, survey
from jostle.source import Source
from jostle.tools import datacheck
from jostle.tools.data import parse_clauses
from jostle.tools.draft.columns import domain_text
from jostle.tools.entry import main
from jostle.tools.session import Session

SCHEMA = (("age", Integer(0, 99)), ("sex", Categories(("F", "M"))), ("gain", Real(0.0, 1.5)), ("note", Open("text")))
ROWS = ["age,sex,gain,note", "12,F,1.0,x", "120,M,nan,", "abc,X,,y", "7.5,F", "-3,M,0.5,z,extra"]


def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datacheck, "description", lambda text: (SCHEMA, {}))
    path = tmp_path / "people.csv"
    path.write_bytes("\n".join(ROWS).encode() + b"\n5,M,1,\xff\n")
    lines = datacheck.report(path, "{…}").splitlines()
    assert lines[0].endswith("people.csv: 6 records")
    assert lines[1].startswith("  2 with missing or extra cells") and "Parquet" in lines[2] + lines[3]
    assert lines[4].startswith("  1 with bytes")
    assert "2 of 6 lines have missing or extra cells" in datacheck.misfits(path, SCHEMA)
    assert lines[6:-1] == [
        "age: 0..99", "  unreadable 1 (16.7 %), outside 2 (33.3 %), not whole 1 (16.7 %)",
        "  describe it as `0.0..99.0` to keep fractions",
        "", 'sex: {"F", "M"}', "  unlisted 1 (16.7 %)", "",
        "gain: 0.0..1.5", "  empty 3 (50.0 %)", "",
        "note: text", "  empty 2 (33.3 %)", "",
        "empty: such cells, and words for what is missing such as n/a, count as `none`",
        "unreadable: no number, date or time where one is described; such cells count as `none`",
        "outside: such cells are moved to the nearest end", "not whole: such cells are taken down to whole numbers",
        "unlisted: such cells count as `none`",
    ]  # fmt: skip
    assert "as private as the file" in lines[-1]


def test_categories_in_two_spellings_have_a_way_out_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("City Name\n" + "Köln\n" * 5 + "KÖLN\n köln\nBonn\nBonnn\n")
    lines = datacheck.report("s.csv", '`City Name`: {"Köln", "Bonn"}').splitlines()
    assert lines[2:6] == [
        '"City Name": {"Köln", "Bonn"}', "  unlisted 3 (33.3 %)",
        "  2 of these are listed but for case or blanks: describe it as `text`, and query",
        '  groupby lower(trim(`City Name`)) over {"köln", "bonn"}',
    ]  # fmt: skip
    result = Session().attempt(Source("p", f"""
t = table("s.csv") described by {{"City Name": text}}
assert {{{{ select count(*) as n from t {lines[5].strip()} }}}}.n == [7, 1]
"""))  # fmt: skip
    assert result.ok, result.diagnostics


def test_truths_in_other_letters_are_described_as_truths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("weekend\nTrue\nFalse\n")
    lines = datacheck.report("s.csv", 'weekend: {"TRUE", "FALSE"}').splitlines()
    assert lines[3:5] == [
        "  unlisted 2 (100.0 %)", "  describe it as `weekend: {true, false}`, which reads them in any spelling"
    ]  # fmt: skip
    assert "every cell fits" in datacheck.report("s.csv", "weekend: {true, false}")


def test_dates_and_times(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(
        "day,at,month\n2024-03-01,2024-03-01T12:30:00,2024-12-15\n2024-13-01,noon,2025-01-01\n1999-01-01,,x\n"
    )
    described = "{day: 2020-01-01..2024-12-31, at: time, month: 2020-01-01..2024-12-31}"
    lines = datacheck.report(path, described).splitlines()
    assert lines[2:5] == [
        "day: 2020-01-01..2024-12-31", "  unreadable 1 (33.3 %), outside 1 (33.3 %)",
        '  another form is read where it is described by it: date("%d/%m/%Y"); months have English names',
    ]  # fmt: skip
    assert lines[6:8] == ["at: time", "  empty 1 (33.3 %), unreadable 1 (33.3 %)"]
    assert lines[10:12] == ["month: 2020-01-01..2024-12-31", "  unreadable 1 (33.3 %), outside 1 (33.3 %)"]
    by_month = Moments("date", 18262, number_of(date(2024, 12, 1)), "month")
    assert [survey(str(path), [("month", by_month)]).columns[0].outside] == [1]


def test_what_offices_leave_in_a_table_is_told(tmp_path: Path) -> None:
    """Dates in three ways were told to be read in a fourth, and a total below the table was counted without a word."""
    days = [f"{'2024-03-' if i % 3 == 0 else ''}{i % 20 + 10}{('', '.03.2024', '/03/2024')[i % 3]}" for i in range(60)]
    path = tmp_path / "a.csv"
    path.write_text("day,n\n" + "".join(f"{day},{i}\n" for i, day in enumerate(days)) + "12.03.2024,Total\n")
    text = datacheck.report(str(path), "{day: date, n: 0..99}")
    assert "describe it by coalesce(date(day), date(day, " in text
    assert '"%d.%m.%Y"), date(day, "%d/%m/%Y")' in text and '20 by "%d/%m/%Y"' in text
    assert "are these totals or notes below the table? `where n is not missing` leaves their rows out" in text


def test_a_total_below_the_table_is_reported_by_what_its_row_lacks(tmp_path: Path) -> None:
    """`every cell fits` was said of a table with a row of totals, which `count(*)` counts; and the way to leave totals
    out left all other rows without that cell out too, without a word."""
    path = tmp_path / "a.csv"
    rows = "".join(f"{'AB'[i % 2]},{'xyz'[i % 3]},{i % 9 if i % 4 else ''}\n" for i in range(120))
    domains: list[tuple[str, Domain]]
    domains = [("town", Categories(("A", "B"))), ("kind", Categories(("x", "y", "z"))), ("n", Integer(0, 99))]
    path.write_text("town,kind,n\n" + rows + ",,99\n")
    text = datacheck.misfits(path, domains)
    assert "town, kind: empty in 1 row each: if these are totals below the table, `where town is not missing`" in text
    path.write_text("town,kind,n\n" + rows + "A,x,Total\n")
    text = datacheck.misfits(path, domains)
    assert "`where n is not missing` leaves their rows out, and the 30 where it is empty" in text
    path.write_text("town,kind,n\n" + rows)
    assert datacheck.misfits(path, domains) == ""


def test_several_files_are_surveyed_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a1.csv").write_text("age\n" + "2.5\n" + "3\n" * 1999)
    Path("a2.jsonl").write_text('{"age": 200}\nno object\n')
    lines = datacheck.report("a*", "{age: 0..99}").splitlines()
    assert lines[0] == "a*: 2002 records" and lines[1].startswith("  1 with missing")
    assert lines[6] == "  empty 1 (<0.1 %), outside 1 (<0.1 %), not whole 1 (<0.1 %)"


def test_domains_are_shown_as_they_are_written() -> None:
    assert domain_text(Categories((1.0, 2.5, 3.0, 4.0))) == "{1, 2.5, 3, … 4 in all}"
    assert domain_text(Real(-1.0, 2.0)) == "-1.0..2.0"


def test_the_schema_is_the_languages_own() -> None:
    assert datacheck.description('{age: 0..99, sex: {"F", "M"}, gain: 0.0..1.5, note: text}')[0] == SCHEMA
    for text in ("{age: }", "{age: 12}", "3", "{}", "{age: nowhere}"):
        with pytest.raises(Refusal):
            datacheck.description(text)


def test_quotes_that_are_missing_or_too_many_are_told() -> None:
    for text, way in (("sex: {F, M}", '{"F", "M"}'), ('day: "2024-01-01".."2024-12-31"', "2024-01-01..2024-12-31")):
        with pytest.raises(Refusal) as caught:
            datacheck.description(text)
        assert way in caught.value.first.help


def test_a_missing_file_or_column_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datacheck, "description", lambda text: (SCHEMA, {}))
    (tmp_path / "p.csv").write_text("age\n1\n")
    for path in (tmp_path / "absent.csv", tmp_path / "p.csv"):
        with pytest.raises(Refusal) as caught:
            datacheck.report(path, "{…}")
        assert caught.value.first.kind == "DataError"


def test_formats_and_decimal_commas_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g.csv").write_text("born;at;n\n" + "31.12.2014;12/31/2014 5:30 PM;2,5\n" * 9 + "2014-12-31;x;3\n")
    told = datacheck.report("g.csv", "{born: date, at: time, n: 0.0..9.0}")
    assert 'its cells are like 31.12.2024: describe it by date("%d.%m.%Y")' in told and "no digit" not in told
    assert 'describe it by time("%m/%d/%Y %I:%M %p")' in told
    assert (
        told.count('table(path, decimal = ",")') == 1
        and "n: 0.0..9.0\n  every cell fits\n  numbers are written as 12,5" in told
    )


@pytest.mark.parametrize(("between", "cells", "comma"), [
    ("\t", ["1,025", "72"], False), (",", ['"1,025"', "6.3"], False), ("\t", ["0,125", "2"], True),
    ("\t", ["12,5", "1,025"], True), (";", ["1,025", "2,500"], True),
])  # fmt: skip
def test_thousands_are_told_from_decimal_commas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: str, cells: list[str], comma: bool
) -> None:
    """Of 1,025 homes `init` wrote a program that read 1.025, without a word."""
    monkeypatch.chdir(tmp_path)
    Path("g.csv").write_text(f"n{between}m\n" + "".join(f"{cell}{between}0\n" for cell in cells))
    told = datacheck.report("g.csv", "{n: 0.0..9000.0}")
    assert ('decimal = ","' in told) == comma and ('number(replace(n, ",", ""))' in told) == (not comma)


def test_registering_tells_the_owner_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g.csv").write_text("born,n\n" + "31.12.2014,2.5\n" * 9)
    words = ["data", "register", "--protecting", "rows", "--budget", "epsilon 1", "--ledger", "l.db"]
    assert main([*words, "g", "g.csv", "--schema", "{born: date, n: 0..9}"]) == 0
    out = capsys.readouterr().out
    assert "born: unreadable 9 (100.0 %)" in out and "n: not whole 9 (100.0 %)" in out and datacheck.EXACT in out
    Path("h.csv").write_text("n\n" + "2.5\n" * 9)
    assert main([*words, "h", "h.csv", "--schema", "{n: 0.0..9.0}"]) == 0
    assert "fit" not in capsys.readouterr().out


def test_registered_data_have_a_decimal_comma(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g.csv").write_text("n;m\n" + "1.234,5;a\n" * 900)
    words = ["data", "register", "g", "g.csv", "--protecting", "rows", "--budget", "epsilon 1", "--ledger", "l.db"]
    assert main([*words, "--schema", "{n: 0.0..2000.0}", "--decimal", ","]) == 0
    assert "fit" not in capsys.readouterr().out
    Path("g.jst").write_text('private g = dataset("g")\nrelease a = {{ select avg(n) from g with epsilon 1 }}\n')
    assert main(["run", "g.jst", "--ledger", "l.db", "--format", "json"]) == 0
    assert abs(json.loads(capsys.readouterr().out)["released"]["a"] - 1234.5) < 200


def test_a_description_with_formats_is_checked_by_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ("day,at", "31.12.2024,17:30", "2024-12-31,9:05", "n/a,x", ",8:00", "30.2.2024,7:00", "1.1.2030,6:00")
    Path("a.csv").write_text("\n".join(rows) + "\n")
    told = datacheck.report("a.csv", '{day: clamp(date("%d.%m.%Y"), 2020-01-01, 2025-01-01), at: time("%H:%M")}')
    assert 'day: clamp(date("%d.%m.%Y"), 2020-01-01, 2025-01-01)\n  empty 2 (33.3 %), unreadable 2 (33.3 %), ' in told
    assert 'at: time("%H:%M")\n  unreadable 1 (16.7 %)' in told
    with pytest.raises(Refusal, match="a program alone may do") as refused:
        datacheck.report("a.csv", "{day: lower(trim(day))}")
    assert "`day: text`" in refused.value.diagnostics[0].help
    assert main(["init", "a.csv", "--describe", '{day: date("%d.%m.%Y"), at: time}', "-o", "a.jst"]) == 0
    assert 'day: date("%d.%m.%Y"),\n        at: time("%H:%M")' in Path("a.jst").read_text()


def test_a_schema_of_registered_data_has_no_form() -> None:
    with pytest.raises(Refusal, match="a program alone may do"):
        parse_clauses("a", "table", '{day: date("%d.%m.%Y")}', "rows", "epsilon 1")


@pytest.mark.parametrize("domain", ["0..99", 'date("%d.%m.%Y")'])
def test_a_description_within_the_source_is_told_where_it_belongs(tmp_path: Path, domain: str) -> None:
    """An identity of the source was asked for before: an internal error."""
    (tmp_path / "a.csv").write_text("day\n1\n")
    with pytest.raises(Refusal, match=r"described after `table\(…\)`, not in it") as refused:
        source = f'table("{tmp_path}/a.csv", {{day: {domain}}})'
        Session().run(Source("p", f"private p = {source} described by {{a: text}} protecting rows budget rho 1\n"))
    assert "described by {" in refused.value.diagnostics[0].help


def test_units_in_cells_are_found_and_no_number_of_another_unit_is_read() -> None:
    for sign, _, _, edits in (one for one in NUMBERS.values() if one[0].strip()):
        for other in (one[0].strip() for one in NUMBERS.values() if one[0].strip() and one[0].strip() != sign.strip()):
            for cell in (f"5 {other}", f"5{other}"):
                for old, new in ((sign, ""), *edits):
                    cell = cell.replace(old, new)
                with pytest.raises(ValueError, match="could not convert"):
                    float(cell)


def drafted_mean(name: str) -> float:
    """The mean of `pay` by the program that `init` drafted, almost without noise."""
    described = Path(f"{name}.jst").read_text().partition("all_rows")[0].replace("epsilon 1", "epsilon 20000")
    text = described + "release a = {{ select avg(pay) as w from mine with epsilon 20000 }}\n"
    return float(Session().run(Source("b.jst", text))["a"])


@pytest.mark.parametrize("styled", ["({})", "$({})", "(${})", "({} €)"])
def test_numbers_in_brackets_are_below_zero(styled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were unreadable: the mean was that of what is above zero."""
    monkeypatch.chdir(tmp_path)
    signs = styled.strip("()").replace("{}", "").strip("( ")
    pairs = [(f"{signs}1,2{i % 90 + 10}.50", 1200.5 + i % 90 + 10) for i in range(300)]
    pairs += [(styled.format(f"{i % 40 + 10}.25"), -(i % 40 + 10) - 0.25) for i in range(200)]
    Path("a.csv").write_text("pay,n\n" + "".join(f'"{cell}",1\n' for cell, _ in pairs))
    assert main(["init", "a.csv", "--describe", "{pay: -2000.0..2000.0, n: 0..2}"]) == 0
    assert '"(", "-"' in Path("a.jst").read_text()
    assert abs(drafted_mean("a") - sum(value for _, value in pairs) / len(pairs)) < 0.05


def test_numbers_in_brackets_stand_beside_those_with_points_and_a_decimal_comma(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = [(f"1.2{i % 90 + 10},50", 1210.5 + i % 90) for i in range(300)]
    pairs += [(f"({'1.0' * (i % 2)}{i % 40 + 10},25)", -(1000 * (i % 2) + i % 40 + 10) - 0.25) for i in range(200)]
    Path("a.csv").write_text("pay;n\n" + "".join(f"{cell};1\n" for cell, _ in pairs))
    assert main(["init", "a.csv", "--describe", "{pay: -2000.0..2000.0, n: 0..2}"]) == 0
    assert "every cell fits" in capsys.readouterr().out
    assert abs(drafted_mean("a") - sum(value for _, value in pairs) / len(pairs)) < 0.05


def test_init_reads_cells_with_units_and_a_program_of_it_has_their_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [f'"1,{i % 400:03} kg",{i % 50}.5 m,{i % 3}' for i in range(2_000)]
    Path("a.csv").write_text("\n".join(["weight,size,n", *cells, "500 g,7 mm,1"]) + "\n")
    assert main(["init", "a.csv", "--describe", "{weight: 0.0..2000.0, size: 0.0..60.0, n: 0..2}"]) == 0
    assert "weight: unreadable 1 (<0.1 %)" in capsys.readouterr().out  # the one in grams
    described = Path("a.jst").read_text().partition("all_rows")[0].replace("epsilon 1", "epsilon 20000")
    asked = "release a = {{ select avg(weight) as w, avg(size) as s from mine with epsilon 20000 }}\n"
    Path("b.jst").write_text(described + asked)
    assert main(["run", "b.jst", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)["released"]["a"]
    assert abs(answer["w"] - 1199.5) < 0.05 and abs(answer["s"] - 25) < 0.05


def test_numbers_that_stand_for_missing_cells_and_truths_of_other_languages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("age,again\n" + "40,J\n" * 6 + "-999,N\n" * 4)
    told = datacheck.misfits("a.csv", (("age", Integer(0, 80)), ("again", Open("boolean"))))
    assert "4 of these are -999" in told and 'list the values that the cells have, such as {"ja", "nein"}' in told
    (asked,) = [line.strip() for line in told.splitlines() if "none if" in line]
    session = Session()
    session.execute(f'private t = table("a.csv") described by {{age: {asked}}} protecting rows budget epsilon 90000')
    assert abs(float(str(session.execute("{{ select avg(age) from t with epsilon 90000 }}"))) - 40) < 0.01


@pytest.mark.parametrize(("magic", "way"), [(b"PK\x03\x04", "unzip"), (b"BZh91", "bunzip2"), (b"\xfd7zXZ\0", "unxz")])
def test_archives_that_are_not_read_are_named_with_what_unpacks_them(tmp_path: Path, magic: bytes, way: str) -> None:
    (tmp_path / "a.csv").write_bytes(magic + b"\0\0\n")
    with pytest.raises(Refusal) as refused:
        datacheck.misfits(tmp_path / "a.csv", (("a", Integer(0, 9)),))
    assert way in refused.value.diagnostics[0].help


def test_rows_of_another_encoding_have_their_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which the header says nothing, since its names are plain."""
    monkeypatch.chdir(tmp_path)
    Path("win.csv").write_bytes("name;n\r\nMüller;3\r\nMeier;4\r\n".encode("cp1252"))
    domains, way = datacheck.description("{name: text, n: 0..9}")[0], 'table(path, encoding = "cp1252")'
    told = datacheck.report("win.csv", "{name: text, n: 0..9}")
    assert "1 with bytes that are none of its encoding" in told and way in told
    assert way in datacheck.misfits("win.csv", domains)
