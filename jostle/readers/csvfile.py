"""CSV files as tables of text, so read that no row can change what another row is.

Neighbouring data sets differ in a row. A reader that lets a quote span lines, guesses types or a dialect from a
sample, or stops at a bad row lets one row decide about others; this one does not. A record is a line; a quote that it
does not close stands in the text of its cell, the rest of the line. That is no value that one half of a text could be
taken for; cells that are missing are NULL, as are empty ones, and extra cells are dropped. The first
line is the header, or the one that the program says, and public as what stands above it: it says what separates cells
and which encoding the file has, where the program does not. Columns without a name, and those that share one, are not
read.

In UTF-8 the bytes of a separator, a quote and a line's end are no part of another character. A line is regular when
every quote in it opens a cell, closes one, or is one of two within a quoted cell: then the number of quotes before a
separator tells whether it separates, which is found by arithmetic on bytes, of all lines of a block at once. Other
lines are taken apart one by one, and written as regular ones, as DuckDB's own reader takes them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.engine.files import OpenFile
from jostle.readers.filesets import TWICE, Reading
from jostle.readers.textfile import BOM, FAULTS, LONG, LONGEST, TextFile, content, damaged, decoded, decodes, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_END, _RETURN, _QUOTE = b'\n\r"'
_RETURNS = re.compile(rb"(?<!\r)\r+\n")
_EMPTY = re.compile(rb"\n\n+")
_CLOSED = re.compile('(?:[^"]++|"")*+"')
SEPARATORS = (",", "\t", ";", "|")
OTHER_SEPARATORS = (" ", ":", "~")
"""What separates cells only where a program says so."""
ENCODINGS = ("utf-8", "latin-1", "cp1252", "iso-8859-15", "cp1250", "cp1251", "koi8-r", "mac-roman")
"""UTF-8, and encodings of one byte a character."""
_GROUPED = "'^[ \\t]*[+(-]?[0-9][0-9]?[0-9]?([.][0-9][0-9][0-9])+(,[0-9]+)?[)]?[ \\t]*$'"  # 1.234,5 and (1.234,5)
_WITHOUT_GROUPS = "CASE WHEN regexp_matches({0}, " + _GROUPED + ") THEN replace({0}, '.', '') ELSE {0} END"
_WITH_COMMA = "regexp_replace({0}, '^([ \\t]*[+(-]?[0-9]*),([0-9]+([eE][+-]?[0-9]+)?[)]?[ \\t]*)$', '\\1.\\2')"
_NO_TEXT = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK": "zip", b"BZh9": "bzip2", b"\xfd7zXZ": "xz",
            b"SQLite format 3\0": "a SQLite database"}  # fmt: skip
MOST_QUOTES = 1 << 20
_ANEW = {
    "UTF-16": "write it anew: `iconv -f UTF-16 -t UTF-8 a.csv > b.csv`",
    "zip": "unpack it: `unzip a.zip`; gzip is read as it is",
    "bzip2": "unpack it: `bunzip2 a.csv.bz2`; gzip is read as it is",
    "xz": "unpack it: `unxz a.csv.xz`; gzip is read as it is",
}

_LINES = (
    'write it as JSON lines, such as by pandas.read_json("a.json").to_json("a.jsonl", orient = "records", lines = True)'
)


class Header(Struct, frozen=True):
    """The names of a file's columns, what separates its cells, and the encoding of its texts. `names` has a place for
    each column, also of one that has no name, or another's."""

    names: tuple[str, ...]
    separator: str
    encoding: str

    @property
    def readable(self) -> tuple[str, ...]:
        """The names that one column has."""
        return tuple(name for name, many in Counter(self.names).items() if name and many == 1)

    @property
    def unread(self) -> tuple[tuple[str, str], ...]:
        """The others, in the form of `Opened.unread`."""
        return tuple((name, TWICE) for name, many in Counter(self.names).items() if not name or many > 1)


class CsvFile(TextFile):
    """A CSV file under the table name `name`."""

    __slots__ = ("_above", "_decimal")

    def __init__(
        self, file: OpenFile, name: str, label: str, connection: DuckDBPyConnection, reading: Reading | None = None
    ) -> None:
        reading = reading or Reading()
        head = header(file, label, reading)
        self._decimal, self._above = reading.decimal, reading.header or 1
        super().__init__(file, head.names, name, label, connection, head.encoding, head.separator)
        self.unread = head.unread

    def lines_above(self, source: BinaryIO) -> int:
        return sum(1 for _ in _lines(source, self._above))

    def fits(self, line: str) -> bool:
        return len(self._split(line)) == len(self.columns)

    def check(self) -> None:
        """Reads a public file, which has the header's cells in every line and is of its encoding, or is refused."""
        ragged = f"does not have the {len(self.columns)} cells of the header"
        self.check_regular(
            ragged,
            "a record is one line; quote cells that hold what separates them, and "
            "write texts with line breaks as Parquet or JSON lines",
        )

    def plain(self, block: bytes, *, exact: bool) -> tuple[bytes, bool]:
        if not block.isascii() and (self._encoding != "utf-8" or not decodes(block, "utf-8")):
            block = decoded(block, self._encoding).encode()
        lines = _RETURNS.sub(b"\n", block) if b"\r" in block else block
        if lines.startswith(b"\n") or b"\n\n" in lines:
            lines = _EMPTY.sub(b"\n", lines).removeprefix(b"\n")
        if not exact and b'"' not in lines and b"\r" not in lines and not _has_long(lines):
            return lines, False
        parts, at, fit = list[bytes](), 0, exact
        for start, stop in self._odd(lines, exact):
            cells = self._split(lines[start:stop].decode())
            fit = fit and len(cells) == len(self.columns)
            parts += [lines[at:start], quoted([(cells + [""] * self.width)[: self.width]], self._separator)]
            at = stop + 1
        return b"".join([*parts, lines[at:]]) if parts else lines, fit

    def _odd(self, lines: bytes, exact: bool) -> Iterator[tuple[int, int]]:
        """Where lines start and stop that are not regular or hold a carriage return or, where it is to be `exact`, have
        other than the header's cells."""
        import numpy as np

        text = np.frombuffer(lines, dtype=np.uint8)
        if lines.count(b'"') > MOST_QUOTES:  # of one long line: numbers for each of them would take gigabytes
            stops = np.flatnonzero(text == _END)
            yield from zip([0, *(stops[:-1] + 1).tolist()], stops.tolist(), strict=True)
            return
        stops, quotes = np.flatnonzero(text == _END), np.flatnonzero(text == _QUOTE if b'"' in lines else ())
        line = np.searchsorted(stops, quotes)
        first = np.searchsorted(line, np.arange(len(stops)))  # of the quotes in each line
        before, after = np.where(quotes > 0, text[quotes - 1], _END), text[quotes + 1]
        beside = np.where((np.arange(len(quotes)) - first[line]) % 2 == 0, before, after)
        separator = ord(self._separator)
        odd = np.bincount(line, minlength=len(stops)) % 2 == 1
        odd |= np.diff(stops, prepend=-1) > LONG  # of which cells may be too long
        odd[line[(beside != separator) & (beside != _END) & (beside != _QUOTE)]] = True
        if b"\r" in lines:
            odd[np.searchsorted(stops, np.flatnonzero(text == _RETURN))] = True
        if exact:
            places = np.flatnonzero(text == separator)
            if len(quotes):  # those in quoted cells do not count
                line = np.repeat(np.arange(len(stops)), np.diff(np.searchsorted(places, stops), prepend=0))
                places = places[(np.searchsorted(quotes, places) - first[line]) % 2 == 0]
            odd |= np.diff(np.searchsorted(places, stops), prepend=0) != len(self.columns) - 1
        for number in np.flatnonzero(odd).tolist():
            yield int(stops[number - 1]) + 1 if number else 0, int(stops[number])

    def _split(self, line: str) -> list[str]:
        """The cells of a line, and one more where it has more than the header."""
        return split(line, self._separator, len(self.columns) + 1)

    def cell_of(self, item: str) -> str:
        return _WITH_COMMA.format(_WITHOUT_GROUPS.format(item)) if self._decimal == "," else item


def _has_long(lines: bytes) -> bool:
    """Whether a line may be longer than `LONG`: then there is a part of half as many bytes without an end."""
    return any(lines.find(b"\n", at, at + LONG // 2) < 0 for at in range(0, len(lines) - LONG // 2, LONG // 2))


def header(file: OpenFile, label: str, reading: Reading | None = None) -> Header:
    """The header of a file; `label` is what messages call it. A `DataError` where there are no names to use.

    Where `reading` does not say it, the separator is that of `SEPARATORS` which stands in the header most often
    outside of quotes. The encoding is cp1252 where the header is no UTF-8.
    """
    reading = reading or Reading()
    at = reading.header or 1
    try:
        with content(file) as source:
            *lines, raw = [*_lines(source, at), *[b""] * at][:at]
            above = b"".join(lines)
    except FAULTS:
        raise damaged(label) from None
    begin = (above or raw).removeprefix(BOM).strip()
    for magic, what in _NO_TEXT.items():
        if (above or raw).startswith(magic):
            help = _ANEW.get(what, "convert it first")
            raise refuse("DataError", f"{label} is {what}, not a CSV file in UTF-8", help=help)
    if begin.startswith((b'{"', b'[{"')) or begin == b"[":
        message = f"{label} is JSON, which is read a record a line, and not as one document"
        raise refuse("DataError", message, help=_LINES)
    if begin.lower().startswith(b"@relation"):
        raise refuse("DataError", f"{label} is an ARFF file, not CSV", help="write it as CSV, with the names above")
    encoding = reading.encoding or ("utf-8" if decodes(above + raw, "utf-8") else "cp1252")
    line = decoded(raw.removeprefix(BOM), encoding).rstrip("\r\n")
    separator = reading.separator or _separator(line)
    names = tuple(cell.strip() for cell in split(line, separator))
    which = "first line" if at == 1 else f"line {at}"
    other = f'; if another line does, say which: `table("{label[1:-1]}", header = {at + 1})`'
    _need_whole(line, separator, label)
    if not any(names):
        raise refuse("DataError", f"{label} has no header", help=f"its {which} must name the columns{other}")
    if all(_is_number(name) for name in names):
        message = f"{label} has no header: its {which} holds numbers"
        raise refuse("DataError", message, help=f"name the columns there{other}")
    return Header(names, separator, encoding)


def _need_whole(line: str, separator: str, label: str) -> None:
    """Refuses a header that goes on in the next line."""
    last = split(line, separator)[-1]
    if last.startswith('"') and line.endswith(last):
        message = f"the header of {label} goes on in the next line: its last name has a quote that is not closed"
        raise refuse("DataError", message, help="a record is a line: write the names without line breaks")


def _lines(source: BinaryIO, most: int) -> Iterator[bytes]:
    return itertools.islice(iter(lambda: source.readline(LONGEST), b""), most)


def split(line: str, separator: str = ",", most: float = math.inf) -> list[str]:
    """The cells of a record, or the first ones of them. In a quoted cell a doubled quote is a quote; of one that is not
    closed all stands as it is written."""
    cells: list[str] = []
    at = 0
    while len(cells) < most:
        text = ""
        if line.startswith('"', at):
            end = _CLOSED.match(line, at + 1)
            if end is None:
                return [*cells, line[at:]]
            text, at = end[0][:-1].replace('""', '"'), end.end()
        stop = line.find(separator, at)
        cells.append(text + (line[at:] if stop < 0 else line[at:stop]))
        if stop < 0:
            break
        at = stop + 1
    return cells


def _separator(line: str) -> str:
    outside = "".join(line.split('"')[::2])
    return max(SEPARATORS, key=outside.count)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
