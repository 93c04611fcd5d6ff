"""CSV files as tables of text, so read that no row can change what another row is.

Neighbouring data sets differ in a row. A reader that lets a quote span lines, guesses types or a dialect from a
sample, or stops at a bad row lets one row decide about others; this one does not. A record is a line; a quote ends
with its line at the latest; cells that are missing are NULL, as are empty ones, and extra cells are dropped. The first
line is the header, or the one that the program says, and public as what stands above it: it says what separates cells
and which encoding the file has, where the program does not. Columns without a name, and those that share one, are not
read.

The cells of lines as lists of Arrow, and those of CSV found by arithmetic on bytes: all lines of a block at once.

In UTF-8 the bytes of a separator, a quote and a line's end are no part of another character. A line is regular when
every quote in it opens a cell, closes one, or is one of two within a quoted cell: then the number of quotes before a
separator tells whether it separates. Other lines are taken apart one by one, and written as regular ones.

Of most files all lines can be written so that DuckDB's own reader finds the same cells. A copy is written then when
something is first asked, in a file without a name, and a column is read of it when it is asked about.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec import Struct

from jostle.diagnostics import refuse
from jostle.engine.duckdb.engine import DUCKDB
from jostle.engine.files import OpenFile
from jostle.integers import narrowed
from jostle.readers.filesets import TWICE, Reading, reader_of
from jostle.readers.limits import beside
from jostle.readers.textfile import (
    BOM,
    FAULTS,
    LONGEST,
    Irregular,
    TextFile,
    blocks,
    content,
    damaged,
    decoded,
    decodes,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

    Whole = NDArray[Any]

_END, _QUOTE = ord("\n"), ord('"')
_RETURNS = re.compile(rb"(?<!\r)\r+\n")
_EMPTY = re.compile(rb"\n\n+")
MOST_PARTS = 4  # times that some columns of a table are stored before all are
_LONG = 1 << 20  # bytes of a line that is taken apart by itself, since it may have as many cells
_LARGEST = 1_900_000  # bytes of a block of lines that DuckDB reads, whose lines have up to two million
_OPTIONS = """quote = '"', escape = '"', new_line = '\\n', skip = 1, header = false, auto_detect = false,
compression = 'none', strict_mode = true"""


def full_lines(data: bytes) -> bytes:
    """Whole lines without carriage returns at their ends, and without those that have no character then."""
    import numpy as np

    if b"\r" in data:
        data = _RETURNS.sub(b"\n", data)
    stops = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _END)
    if np.any(np.diff(stops, prepend=-1) == 1):
        data = _EMPTY.sub(b"\n", data).removeprefix(b"\n")
    return data


def lists(rows: Sequence[Sequence[str]]) -> pa.ListArray:
    """Rows of texts, none in place of one that is empty."""
    import numpy as np

    texts = [text.encode() for row in rows for text in row]
    ends = np.cumsum([0, *map(len, texts)])[1:]
    return _lists(b"".join(texts), ends, np.cumsum([0, *map(len, rows)])[1:])


def cells(data: bytes, separator: str, split: Callable[[str], list[str]]) -> pa.ListArray:
    """For each of the full lines, in UTF-8, its cells; none in place of one that is empty. `split` gives those of a
    line that is not regular, or long."""
    import numpy as np
    import pyarrow as pa

    if len(data) <= _LONG:
        return _cells_of_short(data, separator, split)
    stops = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _END)
    parts, at = [], 0
    for number in np.flatnonzero(np.diff(stops, prepend=-1) > _LONG).tolist():
        start, stop = int(stops[number - 1]) + 1 if number else 0, int(stops[number])
        parts += [_cells_of_short(data[at:start], separator, split), lists([split(data[start:stop].decode())])]
        at = stop + 1
    return pa.concat_arrays([*parts, _cells_of_short(data[at:], separator, split)])


def _cells_of_short(data: bytes, separator: str, split: Callable[[str], list[str]]) -> pa.ListArray:
    import numpy as np

    quoted = b'"' in data
    if quoted:
        data = _regular(data, separator, split)
    text = np.frombuffer(data, dtype=np.uint8)
    marks = (text == ord(separator)) | (text == _END)
    if quoted:
        dropped, ends = _unquoted(text, marks)
        mask = np.ones(len(text), dtype=bool)
        mask[dropped] = False
        content: bytes | Whole = text[mask]
    else:
        dropped = np.flatnonzero(marks)
        ends = np.arange(len(dropped))
        content = data.translate(None, f"{separator}\n".encode())
    last = dropped[ends]
    before = last - ends  # the bytes before a cell's end that were not dropped
    return _lists(content, before, np.flatnonzero(text[last] == _END) + 1)


def _lists(content: bytes | Whole, ends: Whole, rows: Whole) -> pa.ListArray:
    """Lists of texts: `ends` are those of the texts in their bytes, `rows` those of the lists among the texts."""
    import numpy as np
    import pyarrow as pa

    ends, rows = (narrowed(np.concatenate([[0], places]), np.int32) for places in (ends, rows))
    full = np.packbits(ends[1:] > ends[:-1], bitorder="little")
    buffers = [pa.py_buffer(part) for part in (ends, content, full)]
    texts = pa.StringArray.from_buffers(len(ends) - 1, *buffers)
    return pa.Array.from_buffers(pa.list_(pa.string()), len(rows) - 1, [None, pa.py_buffer(rows)], children=[texts])


def _unquoted(text: Whole, marks: Whole) -> tuple[Whole, Whole]:
    """Of regular lines the places of what is no text, and which of these places end a cell."""
    import numpy as np

    places = np.flatnonzero(marks | (text == _QUOTE))
    quote = text[places] == _QUOTE
    inside = np.logical_xor.accumulate(quote)  # of a quoted cell, after the place
    second = np.zeros(len(places), dtype=bool)  # of two quotes beside each other
    second[1:] = quote[1:] & quote[:-1] & (np.diff(places) == 1)
    plain = inside & (second | ~quote)
    places, quote = places[~plain], quote[~plain]
    return places, np.flatnonzero(~quote)


def _regular(data: bytes, separator: str, split: Callable[[str], list[str]]) -> bytes:
    """Lines with the same cells that are all regular."""
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    quotes, stops = np.flatnonzero(text == _QUOTE), np.flatnonzero(text == _END)
    line = np.searchsorted(stops, quotes)
    opens = (np.arange(len(quotes)) - np.searchsorted(line, line)) % 2 == 0
    before = np.where(quotes > 0, text[quotes - 1], _END)
    beside = np.where(opens, before, text[quotes + 1])
    odd = (beside != ord(separator)) & (beside != _END) & (beside != _QUOTE)
    odd |= np.bincount(line, minlength=len(stops))[line] % 2 == 1
    parts, at = [], 0
    for number in np.unique(line[odd]).tolist():
        start, stop = int(stops[number - 1]) + 1 if number else 0, int(stops[number])
        cells = [cell.replace('"', '""') for cell in split(data[start:stop].decode())]
        parts += [data[at:start], separator.join(f'"{cell}"' for cell in cells).encode()]
        at = stop
    return b"".join([*parts, data[at:]]) if parts else data


def _append(file: BinaryIO, lines: bytes) -> bool:
    """Adds lines to a file, if there is room."""
    try:
        return file.write(lines) == len(lines)
    except OSError:
        return False


def _unnamed(file: BinaryIO) -> OpenFile:
    """A file without a name, open until what is given goes."""
    descriptor = os.dup(file.fileno())
    copy = OpenFile(descriptor, "", "", os.fstat(descriptor))
    weakref.finalize(copy, os.close, descriptor)
    return copy


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
        return tuple(name for name in self.names if name and self.names.count(name) == 1)

    @property
    def unread(self) -> tuple[tuple[str, str], ...]:
        """The others, in the form of `Opened.unread`."""
        return tuple((name, TWICE) for name in dict.fromkeys(self.names) if name not in self.readable)


class CsvFile(TextFile):
    """A CSV file under the table name `name`."""

    __slots__ = ("_above", "_copy", "_decimal", "_parts", "_separator")

    def __init__(
        self, file: OpenFile, name: str, label: str, connection: DuckDBPyConnection, reading: Reading | None = None
    ) -> None:
        reading = reading or Reading()
        head = header(file, label, reading)
        self._separator, self._decimal = head.separator, reading.decimal
        self._above = reading.header or 1
        self._copy: OpenFile | None = None  # of the records, while columns of it are not read
        self._parts: dict[frozenset[int], str] = {}  # tables of some columns
        super().__init__(file, head.names, name, label, connection, head.encoding)
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

    def table(self, needed: Collection[int]) -> str:
        name, copy = super().table(needed), self._copy
        return name if copy is None else self._reading(lambda: self._of_copy(copy, frozenset(needed)))

    def _records(self, look: bool) -> Irregular:
        import duckdb

        copy = self._copy_of_records(look)
        if copy is None:
            return super()._records(look)
        if not look:
            self._copy = copy
            return Irregular()
        try:
            self._read_columns(copy, self._every, self._name)
        except duckdb.InvalidInputException:  # of a line that does not have the header's cells
            return super()._records(look)
        return Irregular()

    @property
    def _every(self) -> frozenset[int]:
        return frozenset(range(len(self.columns)))

    def _copy_of_records(self, look: bool) -> OpenFile | None:
        """The records as DuckDB reads them, in a file without a name, after a line that it skips; None where some
        cannot be written so, where a `look` counts some, or where there is no room."""
        if len(self.columns) == 1:  # of which a record may be a quoted cell without a text
            return None
        try:
            file = TemporaryFile(buffering=0)  # noqa: SIM115
        except OSError:
            return None
        with file, content(self._file) as source:
            self.lines_above(source)
            for lines in itertools.chain((b"\n",), (self._plain(block, look) for block in blocks(source))):
                if lines is None or not _append(file, lines):
                    return None
            return _unnamed(file)

    def _plain(self, lines: bytes, look: bool) -> bytes | None:
        """A block of lines as DuckDB reads them; None as above."""
        if not lines.isascii() and (self._encoding != "utf-8" or not decodes(lines, "utf-8")):
            if look and not decodes(lines, self._encoding):
                return None
            lines = decoded(lines, self._encoding).encode()
        if b"\r" in lines:
            lines = lines.replace(b"\r\n", b"\n")
        if len(lines) > _LARGEST or lines.startswith(b"\n") or b"\n\n" in lines or b"\r" in lines:
            return None
        return _regular(lines, self._separator, self._split) if b'"' in lines else lines

    def _of_copy(self, copy: OpenFile, needed: frozenset[int]) -> str:
        """The name of a table with the needed columns: of them alone the first few times, then of all."""
        import duckdb

        for places, name in self._parts.items():
            if needed <= places:
                return name
        needed = needed or frozenset({0}) if len(self._parts) < MOST_PARTS else self._every
        name = self._name if needed == self._every else f"{self._name}{len(self._parts)}"
        try:
            self._read_columns(copy, needed, name)
        except duckdb.InvalidInputException:
            name, self._encoding = self._name, "utf-8"  # of the copy
            self._taken_apart(reader_of(copy), 1, look=False)
        self._parts[needed] = name
        if name == self._name:
            self._copy = None
        return name

    def _read_columns(self, copy: OpenFile, places: frozenset[int], name: str) -> None:
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(self.columns)))
        items = ", ".join(f"{self.cell_of(f'c{i}')} AS c{i}" for i in sorted(places))
        query = f"""CREATE OR REPLACE TABLE {name} AS SELECT {items}
            FROM read_csv({DUCKDB.literal(copy.name)}, delim = {DUCKDB.literal(self._separator)},
            columns = {{{columns}}}, {_OPTIONS})"""
        ((size,),) = beside(lambda: self._connection.execute(query).fetchall(), self._connection.interrupt)
        if self.size not in (None, size):
            raise refuse("DataError", f"{self.label} cannot be read")
        self.size = size

    def cells(self, lines: bytes) -> pa.ListArray:
        if self._encoding != "utf-8" or not decodes(lines, "utf-8"):
            lines = decoded(lines, self._encoding).encode()
        return cells(full_lines(lines), self._separator, self._split)

    def all_fit(self, cells: pa.ListArray) -> bool:
        import pyarrow.compute as pc

        return not pc.any(pc.not_equal(pc.list_value_length(cells), len(self.columns))).as_py()

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
    """Refuses a header that goes on in the next line: what would close a quote is a part of its last cell."""
    if split(f'{line}x"', separator)[-1] == f"{split(line, separator)[-1]}x":
        message = f"the header of {label} goes on in the next line: its last name has a quote that is not closed"
        raise refuse("DataError", message, help="a record is a line: write the names without line breaks")


def _lines(source: BinaryIO, most: int) -> Iterator[bytes]:
    return itertools.islice(iter(lambda: source.readline(LONGEST), b""), most)


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
