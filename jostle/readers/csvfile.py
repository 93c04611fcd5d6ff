"""CSV files as tables of text, so read that no row can change what another row is.

Neighbouring data sets differ in a row. A reader that lets a quote span lines, guesses types or a dialect from a
sample, or stops at a bad row lets one row decide about others; this one does not. A record is a line; a quote ends
with its line at the latest; cells that are missing are NULL, as are empty ones, and extra cells are dropped. The first
line is the header, and public: it alone says what separates cells and which encoding the file has, where the program
does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.engine.files import OpenFile
from jostle.engine.filesets import Reading
from jostle.readers import textcells
from jostle.readers.compression import FAULTS, content, damaged
from jostle.readers.textfile import BOM, LONGEST, TextFile, decoded, decodes

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

SEPARATORS = (",", "\t", ";", "|")
OTHER_SEPARATORS = (" ", ":", "~")
"""What separates cells only where a program says so."""
ENCODINGS = ("utf-8", "latin-1", "cp1252", "iso-8859-15", "cp1250", "cp1251", "koi8-r", "mac-roman")
"""UTF-8, and encodings of one byte a character."""
_GROUPED = "'^[ \\t]*[+-]?[0-9][0-9]?[0-9]?([.][0-9][0-9][0-9])+(,[0-9]+)?[ \\t]*$'"  # 1.234,5
_WITHOUT_GROUPS = "CASE WHEN regexp_matches({0}, " + _GROUPED + ") THEN replace({0}, '.', '') ELSE {0} END"
_WITH_COMMA = "regexp_replace({0}, '^([ \\t]*[+-]?[0-9]*),([0-9]+([eE][+-]?[0-9]+)?[ \\t]*)$', '\\1.\\2')"
_NO_TEXT = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK": "zip", b"BZh9": "bzip2", b"\xfd7zXZ": "xz",
            b"SQLite format 3\0": "a SQLite database"}  # fmt: skip


class Header(Struct, frozen=True):
    """The names of a file's columns, what separates its cells, and the encoding of its texts."""

    names: tuple[str, ...]
    separator: str
    encoding: str


class CsvFile(TextFile):
    """A CSV file under the table name `name`."""

    __slots__ = ("_decimal", "_separator")

    def __init__(
        self, file: OpenFile, name: str, label: str, connection: DuckDBPyConnection, reading: Reading | None = None
    ) -> None:
        reading = reading or Reading()
        head = header(file, label, reading)
        self._separator, self._decimal = head.separator, reading.decimal
        super().__init__(file, head.names, name, label, connection, head.encoding)

    def first_line(self, source: BinaryIO) -> str:
        return decoded(source.readline(LONGEST), self._encoding)

    def fits(self, line: str) -> bool:
        return len(self._split(line)) == len(self.columns)

    def check(self) -> None:
        """Reads a public file, which has the header's cells in every line and is of its encoding, or is refused."""
        ragged = f"does not have the {len(self.columns)} cells of the header"
        self.check_regular(ragged, "a record is one line; quote cells that hold what separates them")

    def cells(self, lines: bytes) -> pa.ListArray:
        if self._encoding != "utf-8" or not decodes(lines, "utf-8"):
            lines = decoded(lines, self._encoding).encode()
        return textcells.cells(textcells.full_lines(lines), self._separator, self._split)

    def all_fit(self, found: pa.ListArray) -> bool:
        import pyarrow.compute as pc

        return not pc.any(pc.not_equal(pc.list_value_length(found), len(self.columns))).as_py()

    def _split(self, line: str) -> list[str]:
        """The cells of a line, and one more where it has more than the header."""
        return split(line, self._separator, len(self.columns) + 1)

    def cell_of(self, item: str) -> str:
        return _WITH_COMMA.format(_WITHOUT_GROUPS.format(item)) if self._decimal == "," else item


def header(file: OpenFile, label: str, reading: Reading | None = None) -> Header:
    """The header of a file; `label` is what messages call it. A `DataError` where there are no names to use.

    Where `reading` does not say it, the separator is that of `SEPARATORS` which stands in the header most often
    outside of quotes, and the encoding cp1252 where the header is no UTF-8.
    """
    reading = reading or Reading()
    try:
        with content(file) as source:
            raw = source.readline(LONGEST)
    except FAULTS:
        raise damaged(label) from None
    for magic, what in _NO_TEXT.items():
        if raw.startswith(magic):
            raise refuse("DataError", f"{label} is {what}, not a CSV file in UTF-8", help="convert it first")
    encoding = reading.encoding or ("utf-8" if decodes(raw, "utf-8") else "cp1252")
    line = decoded(raw.removeprefix(BOM), encoding).rstrip("\r\n")
    separator = reading.separator or _separator(line)
    names = tuple(cell.strip() for cell in split(line, separator))
    if not any(names):
        raise refuse("DataError", f"{label} has no header", help="its first line must name the columns")
    if all(_is_number(name) for name in names):
        raise refuse("DataError", f"{label} has no header: its first line holds numbers", help="name the columns there")
    if "" in names:
        raise refuse("DataError", f"{label} has a column without a name", help="name every column in its first line")
    if len(set(names)) < len(names):
        raise refuse(
            "DataError", f"{label} has two columns of one name", help="make the names in its first line differ"
        )
    return Header(names, separator, encoding)


def split(line: str, separator: str = ",", most: float = math.inf) -> list[str]:
    """The cells of a record, or the first ones of them. In a quoted cell a doubled quote is a quote; one that is not
    closed ends with the line."""
    cells: list[str] = []
    at = 0
    while len(cells) < most:
        parts: list[str] = []
        if line.startswith('"', at):
            at += 1
            while (end := line.find('"', at)) >= 0:
                parts.append(line[at:end])
                at = end + 1
                if not line.startswith('"', at):
                    break
                parts.append('"')
                at += 1
            else:
                cells.append("".join([*parts, line[at:]]))
                return cells
        stop = line.find(separator, at)
        parts.append(line[at:] if stop < 0 else line[at:stop])
        cells.append("".join(parts))
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
