"""CSV files as tables of text, one record a line, so that no row of a file can change what another row is.

Neighbouring data sets differ in a row. A reader that lets a quote span lines, guesses types or a dialect from a
sample, or stops at a bad row lets one row decide about others; this one does not. A record is a line; a quote ends
with its line at the latest; cells that are missing are NULL, as are empty ones, and extra cells are dropped; bytes
that are no UTF-8 become U+FFFD; lines without a character are no records, and what a line has
beyond 64 MB is dropped. The first line is the header. Nothing in the rest of a private file is an error; for a public
file, and for its owner's survey, `load` reports what is irregular.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, BinaryIO

from jostle.diagnostics import refuse
from jostle.engine.duckdb.raw import Irregular, Raw
from jostle.engine.files import OpenFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_BLOCK = 1 << 23  # bytes read at a time
_LONGEST = 1 << 26  # bytes of a line; a text of the database ends at 2^32
_BOM = b"\xef\xbb\xbf"
_NO_TEXT = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x1f\x8b": "gzip", b"PK": "zip", b"BZ": "bzip2"}
# Every cell either without a quote, or a quote, no comma and no quote, a quote: unquoting is dropping the quotes.
_PLAINLY_QUOTED = '("[^",]*"|[^",]*)(,("[^",]*"|[^",]*))*'


class CsvFile(Raw):
    """A CSV file, read as a whole into the table `name` when it is first needed."""

    __slots__ = ("_connection", "_file", "_name", "_read")

    def __init__(self, file: OpenFile, name: str, label: str, connection: DuckDBPyConnection) -> None:
        names = header(file, label)
        super().__init__(names, ("VARCHAR",) * len(names), label)
        self._file, self._name, self._connection, self._read = file, name, connection, False

    def table(self, needed: Collection[int]) -> str:
        self.load(look=False)
        return self._name

    def stale(self) -> bool:
        return not self._read and self._file.changed()

    def load(self, *, look: bool) -> None:
        """Reads the file if it was not yet; with `look`, what is irregular is counted."""
        import duckdb

        if self._read:
            return
        try:
            self._connection.execute(f"DROP TABLE IF EXISTS {self._name}")
            self.irregular = load(self._connection, self._file, self._name, len(self.columns), look=look)
        except (OSError, duckdb.Error):
            raise refuse("DataError", f"{self.label} cannot be read") from None
        self._file.check()
        self._read = True

    def check_regular(self) -> None:
        """Reads a public file, which has the header's cells in every line and is UTF-8, or is refused."""
        self.load(look=True)
        irregular = self.irregular
        if irregular.ragged or irregular.undecodable:
            self._connection.execute(f"DROP TABLE {self._name}")
        if irregular.ragged:
            width, others = len(self.columns), irregular.ragged - 1
            message = f"line {irregular.first_ragged} of {self.label} does not have the {width} cells of the header"
            more = f", nor {'does one other' if others == 1 else f'do {others:,} others'}" if others else ""
            raise refuse("DataError", message + more, help="a record is one line; quote cells that hold a comma")
        if irregular.undecodable:
            raise refuse(
                "DataError", f"line {irregular.first_undecodable} of {self.label} is not UTF-8", help="save it as UTF-8"
            )


def header(file: OpenFile, label: str) -> tuple[str, ...]:
    """The column names of a file; `label` is what messages call it. A `DataError` where there are none to use."""
    with file.reader() as source:
        line = source.readline()
    for magic, what in _NO_TEXT.items():
        if line.startswith(magic):
            raise refuse("DataError", f"{label} is {what}, not a CSV file in UTF-8", help="convert it first")
    names = tuple(cell.strip() for cell in split(_text(line.removeprefix(_BOM)).rstrip("\r\n")))
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
    return names


def load(connection: DuckDBPyConnection, file: OpenFile, table: str, width: int, *, look: bool) -> Irregular:
    """Reads the records of a file into a new table of VARCHAR columns `c0`, `c1`, …

    With `look`, counts what is irregular (which private runs never do); else the result is all zeros.
    """
    connection.execute(f"CREATE TABLE {table} ({', '.join(f'c{i} VARCHAR' for i in range(width))})")
    irregular = Irregular()
    with file.reader() as source:
        first = source.readline()
        if look and not _is_utf8(first):
            irregular.undecodable = irregular.first_undecodable = 1
        number = 2
        for block in _blocks(source):
            lines = _text(block).split("\n")[:-1]
            if look:
                _look(block, lines, number, width, irregular)
            _insert(connection, table, width, lines)
            number += len(lines)
    return irregular


def _blocks(source: BinaryIO) -> Iterator[bytes]:
    """Whole lines, about a block at a time; the last line is given an end where it has none, and none is longer than
    `_LONGEST`: what follows there is dropped."""
    parts: list[bytes] = []
    size = 0
    while block := source.read(_BLOCK):
        cut = block.rfind(b"\n") + 1
        if cut:
            end = block.find(b"\n")
            yield b"".join([*parts, block[:end]])[:_LONGEST] + block[end:cut]
            parts, size = [], 0
        if size < _LONGEST:
            parts.append(block[cut:])
            size += len(block) - cut
    if rest := b"".join(parts)[:_LONGEST]:
        yield rest + b"\n"


def _text(line: bytes) -> str:
    """A newline is no part of any longer UTF-8 sequence, so replacing bad bytes changes one line only."""
    return line.decode("utf-8", "replace")


def _insert(connection: DuckDBPyConnection, table: str, width: int, lines: list[str]) -> None:
    lines = [line.rstrip("\r") for line in lines]
    quoted = [line for line in lines if '"' in line]
    bare = [line for line in lines if line and '"' not in line] if quoted else [line for line in lines if line]
    cells = ", ".join(f"nullif(l[{i + 1}], '')" for i in range(width))
    split_in_sql = f"INSERT INTO {table} SELECT {cells} FROM (SELECT string_split(line, ',') AS l FROM ({{source}}))"
    source = "SELECT unnest($1::VARCHAR[]) AS line"
    connection.execute(split_in_sql.format(source=source), [bare])
    if not quoted:
        return
    plain = f"regexp_full_match(line, '{_PLAINLY_QUOTED}')"
    dropped = f"SELECT replace(line, '\"', '') AS line FROM ({source}) WHERE {plain}"
    connection.execute(split_in_sql.replace("{source}", dropped), [quoted])
    others = connection.execute(f"SELECT line FROM ({source}) WHERE NOT {plain}", [quoted]).fetchall()
    if others:
        rows = f"SELECT {cells} FROM (SELECT unnest($1::VARCHAR[][]) AS l)"
        connection.execute(f"INSERT INTO {table} {rows}", [[split(line)[:width] for (line,) in others]])


def split(line: str) -> list[str]:
    """The cells of a record. In a quoted cell a doubled quote is a quote; one that is not closed ends with the line."""
    cells: list[str] = []
    at = 0
    while True:
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
        comma = line.find(",", at)
        parts.append(line[at:] if comma < 0 else line[at:comma])
        cells.append("".join(parts))
        if comma < 0:
            return cells
        at = comma + 1


def _look(block: bytes, lines: list[str], first: int, width: int, irregular: Irregular) -> None:
    for number, line in enumerate(lines, first):
        record = line.rstrip("\r")
        cells = len(split(record)) if '"' in record else record.count(",") + 1
        if record and cells != width:
            irregular.ragged += 1
            irregular.first_ragged = irregular.first_ragged or number
    if not _is_utf8(block):
        for number, raw in enumerate(block.split(b"\n"), first):
            if not _is_utf8(raw):
                irregular.undecodable += 1
                irregular.first_undecodable = irregular.first_undecodable or number


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
