"""What one row of a workbook holds decides nothing about the other rows, and not whether a program runs."""

from __future__ import annotations

import io
import random
import re
import time
import zipfile
from pathlib import Path

import openpyxl
import pytest

from jostle.diagnostics import Refusal
from jostle.engine.files import open_file
from jostle.readers import workbook as reader
from jostle.readers.filesets import Reading
from jostle.readers.workbook import sheet_table
from jostle.source import Source
from jostle.tools.session import Session

VALUES = ["abc", "", "1e999", "-1e999", "nan", "inf", "99999", "-1", "1.5", " 7 ", "9" * 400, "1e-400", "\u0667", "x",
          "2", "&#0;", "&#xD800;", "&#99999999999;", "&unknown;", "&", "2024-02-30", "2024-03-01T25:00:00", "1_0",
          "0x10"]  # fmt: skip
TYPES = ["", "n", "s", "b", "d", "e", "str", "inlineStr", "unknown"]
CELLS = [
    f'<c r="B5" s="{style}"{kind and f" t={chr(34)}{kind}{chr(34)}"}><v>{value}</v></c>'
    for value in VALUES for kind in TYPES for style in (0, 1)
]  # fmt: skip
ROWS = {
    "no value": '<c r="B5"/>', "no attributes": "<c><v>1</v></c>", "no end": '<c r="B5"><v>1',
    "no end of the tag": '<c r="B5', "no quotes": "<c r=B5 t=s><v>0</v></c>",
    "a style of nobody's": '<c r="B5" s="999999999999"><v>1</v></c>', "no style": '<c r="B5" s="x"><v>1</v></c>',
    "inline": '<c r="B5" t="inlineStr"><is><t>a</t></is></c>', "inline and empty": '<c r="B5" t="inlineStr"/>',
    "rich": '<c r="B5" t="inlineStr"><is><r><t>a</t></r><r><t>b</t></r></is></c>',
    "spoken": '<c r="B5" t="inlineStr"><is><t>a</t><rPh sb="0"><t>x</t></rPh></is></c>',
    "spoken without an end": '<c r="B5" t="inlineStr"><is><rPh><rPh><t>a</t></is></c>',
    "far to the right": '<c r="XFE5"><v>1</v></c>', "farther": '<c r="ZZZZZZZZ5"><v>1</v></c>',
    "no place": '<c r="5B"><v>1</v></c>', "place 0": '<c r="B0"><v>1</v></c>',
    "a huge row": '<c r="B99999999999"><v>1</v></c>', "an empty place": '<c r=""><v>1</v></c>',
    "twice": '<c r="B5"><v>1</v></c><c r="B5"><v>2</v></c>',
    "out of order": '<c r="B5"><v>1</v></c><c r="A5"><v>2</v></c>',
    "an error": '<c r="B5" t="e"><v>#DIV/0!</v></c>', "a formula": '<c r="B5"><f>1/0</f><v>1</v></c>',
    "a long formula": f'<c r="B5"><f>{"A1+" * 9000}1</f></c>',
    "a long text": f'<c r="B5" t="str"><v>{"x" * 70000}</v></c>',
    "CDATA": '<c r="B5" t="inlineStr"><is><t><![CDATA[<b>]]></t></is></c>',
    "a start in CDATA": '<c r="B5" t="inlineStr"><is><t><![CDATA[<row r="5"><c r="A5"><v>9]]></t></is></c>',
    "CDATA without an end": "<c><is><t><![CDATA[",
    "a code of many digits": f'<c r="B5" t="str"><v>&#{"1" * 5000};</v></c>',
    "a comment without an end": "<!-- ", "an instruction": "<?x <c ", "a deep one": "<is>" * 5000,
    "tags": "<c " * 5000, "other tags": "<x/><y>7</y>", "an ampersand": '<c r="B5" t="str"><v>&</v></c>',
    "bytes": '<c r="B5" t="str"><v>\x01\x00</v></c>', "the end": "</worksheet>",
    "merged": '</row></sheetData><mergeCells count="1"><mergeCell ref="A1:B2"/></mergeCells>',
}  # fmt: skip
PROGRAM = """private t = table("t.xlsx") described by {{v: 0..9{}}} protecting rows budget epsilon 1000000
release n = {{{{ select count(*) from t with epsilon 100000 }}}}
release total = {{{{ select sum(v) from t with epsilon 100000 }}}}
"""


TEXTS = [b"v", b"note", b"a", b"zz", b"b"]
SHARED = b"<sst>" + b"".join(b"<si><t>%s</t></si>" % text for text in TEXTS) + b"</sst>"


def workbook(path: Path, row: bytes, *, row_tag: bytes = b'<row r="5">', shared: bytes = SHARED) -> None:
    """Rows of 0, 1 and 2, one whose XML is given (nothing: no such row), and rows of 5 and 6; texts are shared ones."""
    book = openpyxl.Workbook()
    for cells in [["v", "note"], *[[i, "a"] for i in (0, 1, 2)], [7, "zz"], [5, "b"], [6, "b"]]:
        book.active.append(cells)
    book.active["D1"].number_format = "yyyy-mm-dd"
    raw, out = io.BytesIO(), io.BytesIO()
    book.save(raw)
    with zipfile.ZipFile(raw) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("sheet1.xml"):
                begin, end = data.index(b'<row r="5"'), data.index(b'<row r="6"')
                data = data[:begin] + b"\0" + data[end:]
                for i, text in enumerate(TEXTS):  # which some versions of openpyxl write where they stand
                    data = data.replace(b't="inlineStr"><is><t>%s</t></is>' % text, b't="s"><v>%d</v>' % i)
                data = data.replace(b"\0", row_tag + row + b"</row>" if row else b"")
            if name.endswith("workbook.xml.rels"):
                data = re.sub(rb"<Relationship [^>]*sharedStrings[^>]*>", b"", data)
                of = b'<Relationship Id="t" Type="x/sharedStrings" Target="texts.xml"/></Relationships>'
                data = data.replace(b"</Relationships>", of)
            target.writestr(name, data)
        target.writestr("xl/texts.xml", shared)
    path.write_bytes(out.getvalue())


def others(path: Path) -> list[str | None]:
    cells = [str(cell) for cell in sheet_table(open_file(path), "`t`", Reading())[0]["v"]]
    return [*cells[:3], *cells[-2:]]


@pytest.mark.attack("hostile rows of workbooks")
@pytest.mark.parametrize("name", [*ROWS, "every value as every type"])
def test_a_row_of_a_workbook_decides_nothing_about_the_others(tmp_path: Path, name: str) -> None:
    """Read as it is, and by programs that describe the column of the cell, and that do not."""
    path = tmp_path / "t.xlsx"
    rows = [f'<c r="A5"><v>7</v></c>{cell}' for cell in (CELLS if name not in ROWS else [ROWS[name]])]
    workbook(path, '</row><row r="5">'.join(rows).encode())
    assert others(path) == ["0", "1", "2", "5", "6"]
    for described in ("", ", note: text", ", note: 0..9", ", note: date"):
        seen = []
        for row in (b"", b'<c r="A5"><v>7</v></c>' + (ROWS.get(name) or CELLS[0]).encode()):
            workbook(path, row)
            result = Session(cwd=tmp_path).attempt(Source("p.jst", PROGRAM.format(described)))
            seen.append([round(float(number)) for number in dict(result.released).values()])
        assert seen[0] == [5, 14] and seen[1][0] == 6 and abs(seen[1][1] - 14) <= 9, result.diagnostics


@pytest.mark.attack("hostile rows of workbooks")
def test_a_row_that_is_broken_anywhere_is_one_row(tmp_path: Path) -> None:
    """Bytes of a row are left out, doubled, changed or cut off, as seeds say."""
    path = tmp_path / "t.xlsx"
    cells = b'<c r="A5" s="1" t="s"><v>1</v></c><c r="B5" t="inlineStr"><is><t>z &amp;</t></is></c>'
    signs = [b"<", b">", b'"', b"&", b"/", b"\xff", b"\0", b"<c ", b"</", b"]]>", b"<!--"]
    for seed in range(300):
        draw, row = random.Random(seed), bytearray(b'<row r="5" spans="1:2">' + cells)
        for _ in range(draw.choice([1, 2, 8])):
            at = draw.randrange(5, len(row))
            row[at : at + draw.choice([0, 1, 9])] = draw.choice([b"", *signs, bytes(row[at : at + 20])])
        workbook(path, bytes(row) or b" ", row_tag=b"")
        assert others(path) == ["0", "1", "2", "5", "6"], bytes(row)


@pytest.mark.attack("hostile rows of workbooks")
@pytest.mark.parametrize("text", [
    b"<si><t>zz", b"<si", b"<si/>", b"<si><t>&#0;&", b"<si><rPh><t>", b"<si><t><![CDATA[", b"<si>" + b"<t>" * 9999,
    b"<si>\xff</t>", b"<si><t><![CDATA[<si><t>]]></t></si>", b"<si><t><![CDATA[<![CDATA[<si>]]></t></si>",
    b"<si><t><![CDATA[" + b"&lt;" * 20_000 + b"]]",
])  # fmt: skip
def test_a_shared_text_of_a_workbook_decides_nothing_about_the_others(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "t.xlsx"
    texts = SHARED.replace(b"<si><t>zz</t></si>", text)
    workbook(path, b'<c r="A5"><v>7</v></c><c r="B5" t="s"><v>3</v></c>', shared=texts)
    assert others(path) == ["0", "1", "2", "5", "6"]
    notes = sheet_table(open_file(path), "`t`", Reading())[0]["note"]
    assert len(notes) == 6 and notes[:3] + notes[4:] == ["a", "a", "a", "b", "b"]


@pytest.mark.attack("hostile rows of workbooks")
@pytest.mark.parametrize("into", [1, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_what_follows_a_very_long_text_is_there(tmp_path: Path, shared: bool, into: int) -> None:
    """Of more than 16 million characters the rest is dropped, and with it went the beginning of the next row, or of the
    next shared text, where that lay across two blocks: each text after it was another one's."""
    path, row = tmp_path / "t.xlsx", b'<c r="A5"><v>7</v></c><c r="B5" t="str"><v>%s</v></c>'
    if shared:
        text = b"z" * (17 * 2**20 - into - SHARED.index(b"zz") - len(b"</t></si>"))
        workbook(path, b'<c r="A5"><v>7</v></c><c r="B5" t="s"><v>3</v></c>', shared=SHARED.replace(b"zz", text))
    else:
        workbook(path, row % b"")
        with zipfile.ZipFile(path) as book:
            follows = book.read("xl/worksheets/sheet1.xml").index(b'<row r="6"')
        workbook(path, row % (b"z" * (17 * 2**20 - into - follows)))
    assert others(path) == ["0", "1", "2", "5", "6"]
    notes = sheet_table(open_file(path), "`t`", Reading())[0]["note"]
    assert notes[:3] + notes[4:] == ["a", "a", "a", "b", "b"]


@pytest.mark.attack("hostile rows of workbooks")
def test_a_cdata_section_across_two_blocks_is_one_text(tmp_path: Path) -> None:
    path, note = tmp_path / "t.xlsx", b"<![CDATA[<si>&lt;%d]]>"
    texts = b"".join(b"<si><t>%s</t></si>" % (note % i) for i in range(60_000))
    workbook(path, b'<c r="A5"><v>7</v></c><c r="B5" t="s"><v>60004</v></c>', shared=SHARED[:-6] + texts + b"</sst>")
    assert sheet_table(open_file(path), "`t`", Reading())[0]["note"][3] == "<si>&lt;59999"


@pytest.mark.attack("hostile rows of workbooks")
@pytest.mark.slow(only=["600000"])
@pytest.mark.parametrize("many", [2_000, 600_000])
def test_rows_in_a_cdata_section_are_text_however_long_it_is(tmp_path: Path, many: int) -> None:
    """Of more than 65,536 characters each was a row: one answer in a form was as many as its writer liked."""
    path, rows = tmp_path / "t.xlsx", b'<row r="5"><c r="A5"><v>9</v></c></row>' * many
    workbook(path, b'<c r="A5"><v>7</v></c><c r="B5" t="inlineStr"><is><t><![CDATA[%s]]></t></is></c>' % rows)
    assert sheet_table(open_file(path), "`t`", Reading())[0]["v"] == ["0", "1", "2", "7", "5", "6"]


@pytest.mark.attack("hostile rows of workbooks")
@pytest.mark.parametrize("cell", ["<c %s></c>", "<c a%s></c>", "<c><v>%sx</v></c>", "<c><v>.%sx</v></c>"])
def test_a_long_cell_is_gone_through_once(tmp_path: Path, cell: str) -> None:
    """Again and again it took minutes, so that a row stopped who reads the others."""
    for sign in "a1 ":
        workbook(tmp_path / "t.xlsx", (cell % (sign * 100_000)).encode())
        began = time.process_time()
        assert others(tmp_path / "t.xlsx") == ["0", "1", "2", "5", "6"]
        assert time.process_time() - began < 5


@pytest.mark.attack("hostile rows of workbooks")
def test_what_is_dropped_of_a_long_section_joins_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `]` at the end of what stays, and `]>` of what follows, made an end, and rows of the text behind it."""
    monkeypatch.setattr(reader, "_LONGEST", 64)
    monkeypatch.setattr(reader, "_BLOCK", 64)
    section = "<![CDATA[" + "x" * 54 + "]" + "y" * 62 + "]>" + '<row r="1">' * 20 + "]]>"
    text = "".join(reader._markup(io.BytesIO(f"{section}<z/>".encode())))
    assert "<row" not in text and text.endswith("<z/>") and text.startswith("x" * 54)


@pytest.mark.slow
def test_a_workbook_whose_last_section_has_no_end_is_damaged(tmp_path: Path) -> None:
    workbook(tmp_path / "t.xlsx", b"<c><is><t><![CDATA[" + b"x" * 17 * 2**20)
    with pytest.raises(Refusal, match="cannot be read as a workbook"):
        sheet_table(open_file(tmp_path / "t.xlsx"), "`t`", Reading())


@pytest.mark.parametrize("damage", ["no zip", "cut off", "no sheet", "no part", "a password"])
def test_a_file_that_is_no_workbook_is_refused_as_a_whole(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "t.xlsx"
    workbook(path, b"")
    data = path.read_bytes()
    if damage in ("no sheet", "no part"):
        gone = {"no sheet": "sheet1.xml", "no part": "workbook.xml"}[damage]
        with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(path, "w") as target:
            for name in source.namelist():
                if not name.endswith(gone):
                    target.writestr(name, source.read(name))
    else:
        path.write_bytes({
            "no zip": b"PK but no more", "cut off": data[: len(data) // 2],
            "a password": re.sub(rb"(PK\x01\x02.{4}).", lambda begin: begin[1] + b"\x01", data, flags=re.DOTALL),
        }[damage])  # fmt: skip
    with pytest.raises(Refusal, match="cannot be read as a workbook"):
        sheet_table(open_file(path), "`t`", Reading())


@pytest.mark.filterwarnings("ignore:Cell .* is marked as a date")
def test_dates_numbers_and_texts_are_those_of_openpyxl(tmp_path: Path) -> None:
    """Every format of numbers that a file may leave out, and some that it spells out."""
    book, formats = openpyxl.Workbook(), [*openpyxl.styles.numbers.BUILTIN_FORMATS.values()]
    formats += ['"day" 0', "[$-409]d-mmm", "[Red]0", '#,##0 "h"', "yyyy\\-mm", "_-* #,##0", "ss.0", "0;[Blue]-0"]
    numbers = [0, 0.25, 1, 45.5, 59, 60, 61, 45000, 45000.75, 2958465.5, 12.5, 1e15, 1e16, 123456789012]
    book.active.append([f"c{i}" for i in range(len(formats))])
    for number in numbers:
        book.active.append([number] * len(formats))
        for cell, shown in zip(book.active[book.active.max_row], formats, strict=True):
            cell.number_format = shown
    book.save(tmp_path / "t.xlsx")
    read = sheet_table(open_file(tmp_path / "t.xlsx"), "`t`", Reading())[0]
    rows = list(
        openpyxl.load_workbook(tmp_path / "t.xlsx", data_only=True).active.iter_rows(min_row=2, values_only=True)
    )
    for column, values in zip(read.values(), zip(*rows, strict=True), strict=True):
        assert column == [_text(value) for value in values]


def _text(value: object) -> str | None:
    import datetime

    if isinstance(value, datetime.timedelta) or value == "#VALUE!":
        return None
    if isinstance(value, datetime.datetime):
        return str(value.date() if value.time() == datetime.time() else value)
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return str(int(value) if whole else value)  # type: ignore[call-overload]
