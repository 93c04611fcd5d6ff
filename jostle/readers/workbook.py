"""A sheet of an Excel workbook (`.xlsx`) as a table of texts: its first row is the header, or the one that the program
says, and each row below it a record. Columns without a name, and those that share one, are not read.

A formula is what it was when the file was saved, a date a date; an empty cell, an error and what is no cell are none; a
row without any cell is no record, as an empty line of CSV is none. What a cell holds fails nothing: the sheet is taken
apart by a reader that is total, row by row. A row is what stands from one `<row` to the next outside CDATA sections,
whatever that is, so no row can change what another one is; of one that is longer than 16 million characters the rest is
dropped. What concerns the file as a whole (no zip file, a part that is missing or breaks, a password) is refused when
it is opened, before anything is charged.
"""

from __future__ import annotations

import codecs
import datetime
import html
import itertools
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from jostle.diagnostics import did_you_mean, refuse
from jostle.engine.files import OpenFile
from jostle.readers.filesets import Reading, reader_of, twice

_FAULTS = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
"""What the reader of zip files raises for what is none, is damaged, or has a password."""
_LONGEST = 1 << 24  # characters of a row, or of a shared text
_CDATA = "<![CDATA["
_BLOCK = 1 << 20  # bytes that are read at a time
_MOST_COLUMNS = 1 << 14  # of Excel's
_NAME = r"(?:[\w.-]{1,64}:)?"  # the prefix of a name
_ROW, _SHARED, _CELL = (re.compile(rf"<{_NAME}{name}(?=[\s/<>])") for name in ("row", "si", "c"))
_TAG = re.compile(rf"<{_NAME}(\w+)((?:\s[^<>]*)?)>")
_ATTRIBUTE = re.compile(r"""([\w:]{1,64})\s{0,64}=\s{0,64}(?:"([^"]*)"|'([^']*)')""")
_VALUE = re.compile(rf"<{_NAME}v(?:\s[^<>]*)?>([^<]*)<")
_TEXT = re.compile(rf"<(/?){_NAME}(t|rPh)(?=[\s/>])([^<>]*)>([^<]*)")
_PLACE = re.compile(r"([A-Z]{1,3})[0-9]*", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[+-]?([0-9]+(?:[.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,9})?\s*")
_MOMENT = re.compile(r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2})(?:T([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,6})?)?)Z?)?\s*")
_NO_SIGN = re.compile(r'"[^"]*"|\[(?!hh?\]|mm?\]|ss?\])[^\]]*\]|[\\_*].', re.IGNORECASE)  # of a format
_SPAN = re.compile(r"\[(hh?|mm?|ss?)\]", re.IGNORECASE)
_LONG_CODE = re.compile("&#[0-9]{99,}")  # of a character: Python makes no number of very many digits
_DATES = {*range(14, 23), 45, 47}  # formats that files do not spell out
_DAY = 86_400_000  # milliseconds
_ERRORS = frozenset({"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#GETTING_DATA"})


def header(file: OpenFile, label: str, reading: Reading) -> tuple[str, ...]:
    """The names in the header of a sheet, which are public, each of one column. Raises `Refusal(DataError)` where it
    has none."""
    with _sheet(file, label, reading) as rows:
        return tuple(_names(next(rows, {}), label, reading)[0])


def sheet_table(
    file: OpenFile, label: str, reading: Reading
) -> tuple[dict[str, list[str | None]], tuple[tuple[str, str], ...]]:
    """The rows below the header, each cell a text or none, and the names that are not read; cells beyond the header's
    are dropped."""
    with _sheet(file, label, reading) as rows:
        names, unread = _names(next(rows, {}), label, reading)
        columns: dict[str, list[str | None]] = {name: [] for name in names}
        for row in filter(None, rows):
            for name, place in names.items():
                columns[name].append(row.get(place))
    file.check()
    return columns, unread


# The parts of the file ------------------------------------------------------------------------------


@contextmanager
def _sheet(file: OpenFile, label: str, reading: Reading) -> Iterator[Iterator[dict[int, str]]]:
    try:
        with reader_of(file) as source, zipfile.ZipFile(source) as book:
            yield _rows(book, label, reading)
    except _FAULTS:
        help = "open it and save it again as an Excel workbook (.xlsx) without a password"
        raise refuse("DataError", f"{label} cannot be read as a workbook", help=help) from None


def _rows(book: zipfile.ZipFile, label: str, reading: Reading) -> Iterator[dict[int, str]]:
    """The cells of each row of a sheet that are not none, by their places from 0, from the header on: that is Excel's
    first row, or the one of the number that was said."""
    places = (target for kind, target in _relations(book, "").values() if kind == "officeDocument")
    main = next(places, "xl/workbook.xml")
    related, described = _relations(book, main), _text_of(book, main)
    sheets = {}
    for tag in _tags(described, "sheet"):
        target = related.get(next((tag[key] for key in tag if key.split(":")[-1] == "id"), ""), ("", ""))
        if target[0] == "worksheet":
            sheets[tag.get("name", "")] = target[1]
    first_date = any(tag.get("date1904") in ("1", "true") for tag in _tags(described, "workbookPr"))
    parts = dict(related.values())
    shared = _shared(book, parts["sharedStrings"]) if "sharedStrings" in parts else []
    kinds = _kinds(_text_of(book, parts["styles"])) if "styles" in parts else []
    read = _Cells(shared, kinds, 1462 if first_date else 0)
    first, at = reading.header or 1, 0
    with book.open(sheets[_choice(label, reading.sheet, [*sheets])]) as source:
        for row in _pieces(source, _ROW):
            if at < first:
                number = _attributes(row[: row.find(">")]).get("r", "")
                at = int(number) if number.isdecimal() and len(number) < 9 else at + 1
                if at < first:
                    continue
                if at > first:  # rows without a cell are not in the file
                    yield {}
            yield read.row(row)


def _relations(book: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """What a part is related to, by the names that it has there: kinds, and the parts' names in the file."""
    folder, name = posixpath.split(part)
    place = posixpath.join(folder, "_rels", f"{name}.rels")
    if not part and place not in book.namelist():
        return {}
    return {
        tag.get("Id", ""): (
            tag.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, tag.get("Target", "")))[1:],
        )
        for tag in _tags(_text_of(book, place), "Relationship")
    }


def _text_of(book: zipfile.ZipFile, part: str) -> str:
    with book.open(part) as source:
        return "".join(_decoded(source))


def _decoded(source: IO[bytes]) -> Iterator[str]:
    """The text of a part, block by block; what is none of its encoding is replaced."""
    block = source.read(_BLOCK)
    wide = block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    decoder = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")("replace")
    while block:
        yield decoder.decode(block)
        block = source.read(_BLOCK)
    yield decoder.decode(b"", True)


def _markup(source: IO[bytes]) -> Iterator[str]:
    """The text of a part, what stands in CDATA sections escaped: a start that somebody wrote there is none. One without
    an end is none, and damage where more than `_LONGEST` follows; of a long one the rest is dropped."""
    text = ""
    for block in itertools.chain(_decoded(source), [""]):
        text, at, out = text + block, 0, list[str]()
        while (begin := text.find(_CDATA, at)) >= 0 and (end := text.find("]]>", begin)) >= 0:
            out += text[at:begin], html.escape(text[begin + len(_CDATA) : end])
            at = end + 3
        if begin < 0:
            begin = max(at, len(text) - len(_CDATA) * bool(block))
        elif not block and len(text) > begin + _LONGEST:
            raise ValueError("a section has no end")
        yield "".join([*out, text[at:begin] if block else text[at:].replace(_CDATA, "")])
        text = text[begin:] if block else ""  # of a section that may end in a later block
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} {text[-2:]}"  # which are no end together


def _pieces(source: IO[bytes], start: re.Pattern[str]) -> Iterator[str]:
    """What stands from each start to the next, and after the last one."""
    piece, has_start = "", False  # whether the piece has begun with a start
    for block in _markup(source):
        at = max(0, len(piece) - 80)  # a start may lie across two blocks
        piece += block
        begin = 0
        for match in start.finditer(piece, at):
            if has_start and match.start() == begin:
                continue
            if has_start:
                yield piece[begin : match.start()][:_LONGEST]
            begin, has_start = match.start(), True
        piece = piece[begin:] if has_start else piece[-80:]
        piece = piece[:_LONGEST] + piece[max(_LONGEST, len(piece) - 80) :]  # in whose end the next start may begin
    if has_start:
        yield piece[:_LONGEST]


def _tags(text: str, name: str) -> Iterator[dict[str, str]]:
    """The attributes of each tag of a name."""
    return (_attributes(match[2]) for match in _TAG.finditer(text) if match[1] == name)


def _attributes(tag: str) -> dict[str, str]:
    return {name: _unescaped(one or other) for name, one, other in _ATTRIBUTE.findall(tag)}


def _shared(book: zipfile.ZipFile, part: str) -> list[str]:
    with book.open(part) as source:
        return [_texts_in(piece) for piece in _pieces(source, _SHARED)]


def _texts_in(piece: str) -> str:
    """The text of a shared or an inline string, which may be rich; how it is spoken is no part of it."""
    texts, spoken = [], 0
    for closes, name, more, text in _TEXT.findall(piece):
        if name == "rPh":
            spoken = 0 if closes else spoken + (not more.endswith("/"))
        elif not closes and not spoken and not more.endswith("/"):
            texts.append(text)
    return _unescaped("".join(texts))


def _unescaped(text: str) -> str:
    return html.unescape(_LONG_CODE.sub("\ufffd", text))


def _kinds(styles: str) -> list[str]:
    """For each style of cells whether its numbers are dates (`date`), spans of time (`span`) or numbers (``)."""
    formats = {tag.get("numFmtId", ""): tag.get("formatCode", "") for tag in _tags(styles, "numFmt")}
    begin = re.search(rf"<{_NAME}cellXfs[\s>]", styles)
    formats_xml = re.split(rf"</{_NAME}cellXfs\s*>", styles[begin.end() :], maxsplit=1)[0] if begin else ""
    return [_kind(tag.get("numFmtId", "0"), formats) for tag in _tags(formats_xml, "xf")]


def _kind(number: str, formats: dict[str, str]) -> str:
    if number not in formats:
        return "date" if number.isdecimal() and int(number[:9]) in _DATES else "span" if number == "46" else ""
    code = _NO_SIGN.sub("", formats[number].split(";")[0])
    if _SPAN.search(code):
        return "span"
    return "date" if re.search("[dmyhs]", code, re.IGNORECASE) else ""


# Cells ----------------------------------------------------------------------------------------------


class _Cells:
    """Reads the cells of rows: `shared` texts and the `kinds` of styles by their numbers, days from 1900 on, and more
    where a file counts them from a later one. Every method is total: what is no cell of its type is none."""

    def __init__(self, shared: list[str], kinds: list[str], days: int) -> None:
        self._shared, self._kinds, self._days = shared, kinds, days

    def row(self, text: str) -> dict[int, str]:
        """The cells of a row that are not none, by their places; of two in one place the last one."""
        cells: dict[int, str] = {}
        starts = [match.start() for match in _CELL.finditer(text)]
        place = -1
        for start, end in itertools.pairwise([*starts, len(text)]):
            tag = text[start : text.find(">", start, end) + 1 or end]
            attributes = {name: one or other for name, one, other in _ATTRIBUTE.findall(tag)}
            place = _place(attributes.get("r", ""), place + 1)
            cell = self._cell(attributes, text[start + len(tag) : end])
            if cell is not None and place < _MOST_COLUMNS:
                cells[place] = cell
            else:
                cells.pop(place, None)
        return cells

    def _cell(self, attributes: dict[str, str], text: str) -> str | None:
        kind = attributes.get("t", "n")
        if kind == "inlineStr":
            return _text(_texts_in(text))
        match = _VALUE.search(text)
        if match is None:
            return None
        value = _unescaped(match[1])
        if kind == "n":
            style = attributes.get("s", "0")
            at = int(style) if style.isdecimal() and len(style) < 9 else 0
            return self._number(value, self._kinds[at] if at < len(self._kinds) else "")
        if kind == "s":
            at = int(value) if value.strip().isdecimal() and len(value) < 18 else -1
            return _text(self._shared[at]) if 0 <= at < len(self._shared) else None
        if kind == "b":
            return {"1": "true", "true": "true", "0": "false", "false": "false"}.get(value.strip())
        if kind == "d":
            return _moment(value)
        return _text(value) if kind == "str" else None

    def _number(self, text: str, kind: str) -> str | None:
        """A number as a text: without a fraction a whole one, a date where its style shows one."""
        from jostle.readers.frames import text_of

        if not _NUMBER.fullmatch(text) or kind == "span":
            return None
        number = float(text)
        if kind == "date":
            return self._date(number)
        digits = text.strip()
        return str(int(digits)) if len(digits) < 19 and digits.lstrip("+-").isdecimal() else text_of(number)

    def _date(self, number: float) -> str | None:
        """The days since the end of 1899 as a day, a time of day or both; none before 1900, and after 9999."""
        if not 0 <= number < 3_000_000:
            return None
        millis = round(number * _DAY)
        day, rest = divmod(millis, _DAY)
        clock = (datetime.datetime.min + datetime.timedelta(milliseconds=rest)).time()
        if day == 0 and number < 1:
            return clock.isoformat()
        day += self._days + (self._days == 0 and day < 60)  # Excel has 29 February 1900
        if not day <= 2_958_465:
            return None
        date = (datetime.date(1899, 12, 30) + datetime.timedelta(days=day)).isoformat()
        return f"{date} {clock.isoformat()}" if rest else date


def _place(name: str, following: int) -> int:
    """The place of a column from 0, `C` or `C7` of the third; the following one where nothing says so."""
    match = _PLACE.fullmatch(name)
    if match is None:
        return following
    place = 0
    for letter in match[1].upper():
        place = place * 26 + ord(letter) - ord("A") + 1
    return place - 1


def _moment(text: str) -> str | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    clock = match[2] or ""
    return match[1] if not clock or not clock.strip("0:.") else f"{match[1]} {clock}"


def _text(text: str) -> str | None:
    return None if not text or text in _ERRORS else text


# What is public -------------------------------------------------------------------------------------


def _choice(label: str, sheet: str | int | None, names: list[str]) -> str:
    """The sheet that is meant: by its name, in any case, or its number from 1; the only one where none is said."""
    available = f"it has {', '.join(names[:12])}" if names else "it has none"
    if sheet is None and len(names) == 1:
        return names[0]
    if sheet is None:
        hint = f'say which one, `table("{label[1:-1]}", sheet = "NAME")` or `--sheet NAME`; {available}'
        raise refuse("DataError", f"{label} has {len(names)} sheets", help=hint if names else available)
    if isinstance(sheet, int):
        if 1 <= sheet <= len(names):
            return names[sheet - 1]
        raise refuse("DataError", f"{label} has no sheet {sheet}: it has {len(names)}", help=available)
    match = next((name for name in names if name.casefold() == sheet.casefold()), None)
    if match is None:
        raise refuse("DataError", f"{label} has no sheet `{sheet}`", help=did_you_mean(sheet, names) or available)
    return match


def _names(row: dict[int, str], label: str, reading: Reading) -> tuple[dict[str, int], tuple[tuple[str, str], ...]]:
    """The places of the columns by their names in the header, and the names that stand above several, which are not
    read; nor is a column without one."""
    cells = {place: row[place].strip() for place in sorted(row) if row[place].strip()}
    if not cells:
        at = reading.header or 1
        which = "the first row" if at == 1 else f"row {at}"
        message = f"{label} has no names in {which} of its sheet"
        help = f'if another row has them, say which: `table("{label[1:-1]}", header = {at + 1})`'
        raise refuse("DataError", message, help=help)
    unread = dict(twice(cells.values()))
    return {name: place for place, name in cells.items() if name not in unread}, tuple(unread.items())
