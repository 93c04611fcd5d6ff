"""Files of text, one record a line: what CSV and JSON lines have in common.

A record is a line, so that no row of a file can change what another row is. Lines without a character are no records,
what a line has beyond 64 MB is dropped, and bytes that are none of the encoding become U+FFFD. All cells are texts.
Nothing in the rows of a private file is an error; for a public file, and for its owner's survey, `load` counts what is
irregular. A compressed file is read when it is opened, since a stream that breaks is to be known before a charge.

All records are written so that DuckDB's own reader finds their cells, in a file without a name. A column is read of it
when it is asked about.

What stands in a compressed file: gzip and Zstandard, known by their first bytes.

A stream that ends early or breaks is no file of rows, whatever it begins with. No single row can make it so, since
their owner compresses all of them together; so such a file is refused as a whole, when it is opened and before anything
is charged.
"""

from __future__ import annotations

import codecs
import io
import itertools
import os
import weakref
import zlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, TypeVar, cast

from msgspec import Struct

from jostle.diagnostics import Refusal, need_package, refuse
from jostle.engine.duckdb.engine import DUCKDB, Raw
from jostle.engine.files import OpenFile
from jostle.readers.arrays import MOST_BYTES
from jostle.readers.filesets import reader_of
from jostle.readers.limits import beside

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")
FAULTS = (OSError, EOFError, zlib.error)
"""What reading a damaged stream may raise."""
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def is_compressed(file: OpenFile) -> bool:
    """Whether the file begins as a compressed stream does."""
    with reader_of(file, buffer=4) as source:
        return source.read(4).startswith((_GZIP, _ZSTANDARD))


def content(file: OpenFile, buffer: int = 1 << 20) -> BinaryIO:
    """What stands in a file, from the start, decompressed where it is compressed. Reading may raise one of `FAULTS`."""
    source = reader_of(file, buffer=buffer)
    first = source.read(4)
    source.seek(0)
    if first.startswith(_GZIP):
        import gzip

        return cast(BinaryIO, gzip.GzipFile(fileobj=source))
    if first != _ZSTANDARD:
        return source
    need_package("pyarrow", "arrow", "what is compressed by zstd is read by")
    return io.BufferedReader(_Zstandard(source), 1 << 20)


def damaged(label: str) -> Refusal:
    """The refusal of a stream that breaks."""
    message = f"{label} is damaged: what is compressed in it cannot be read to its end"
    return refuse("DataError", message, help="compress it again, or give it as it is")


class _Zstandard(io.RawIOBase):
    """Arrow's stream, as Python reads files."""

    def __init__(self, source: BinaryIO) -> None:
        import pyarrow as pa

        self._stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


BOM = codecs.BOM_UTF8
LONGEST = 1 << 26  # bytes of a line; a text of the database ends at 2^32
LONG = MOST_BYTES // 4  # characters of a cell that is surely no longer than `MOST_BYTES`, and so of a line
_BLOCK = 1 << 20  # bytes read at a time
MOST_PARTS = 4  # times that some columns of a table are stored before all are
_LARGEST = 2_000_000  # bytes of a line that DuckDB reads in any case, of which it has 16 in memory
_OPTIONS = """quote = '"', escape = '"', new_line = '\\n', skip = 1, header = false, auto_detect = false,
compression = 'none', strict_mode = true, parallel = false"""
"""Not in parallel: where a part begins within a cell, the quotes of a row would decide what becomes of the others."""


class Irregular(Struct):
    """What does not fit in a CSV file: lines with too many or too few cells, or with bytes that are no UTF-8.

    The line numbers count from 1, the header included, and are those of the first such line (0 where there is none).
    """

    ragged: int = 0
    first_ragged: int = 0
    undecodable: int = 0
    first_undecodable: int = 0


@dataclass(slots=True)
class ReadRaw(Raw):
    """Raw cells as readers have them: with what is irregular, and the arrays of a table in memory."""

    irregular: Irregular = field(default_factory=Irregular, init=False)
    arrays: Any = field(default=None, init=False)  # `readers.arrays.Arrays`
    typed: bool = field(default=False, init=False)  # whether types have the names, outside of rows

    def look(self) -> None:
        """Counts what is irregular: nothing, where a format has no irregular rows."""
        self.irregular = Irregular()

    @abstractmethod
    def stale(self) -> bool:
        """Whether what is still to be read is not what was opened."""


def quoted(rows: Iterable[Sequence[str]], separator: str = ",") -> bytes:
    """Lines of CSV, every cell in quotes; one that is too long to be any value is empty."""
    short = ([cell if len(cell) <= LONG or len(cell.encode()) <= MOST_BYTES else "" for cell in row] for row in rows)
    cells = (separator.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in short)
    return "".join(f"{line}\n" for line in cells).encode()


class TextFile(ReadRaw):
    """A file of text under the table name `name`. When something is first asked, its records are written as the
    database's own reader takes them, and a column is read of these when it is asked about."""

    __slots__ = (
        "_connection", "_copy", "_encoding", "_exact", "_file", "_name", "_parts", "_read", "_separator",
    )  # fmt: skip
    written_anew: ClassVar[bool] = False
    """Whether every line is, so that cells may hold the ends of lines, and each has its cells."""

    def __init__(
        self, file: OpenFile, columns: tuple[str, ...], name: str, label: str, connection: DuckDBPyConnection,
        encoding: str = "utf-8", separator: str = ",",
    ) -> None:  # fmt: skip
        super().__init__(columns, ("VARCHAR",) * len(columns), label)
        self._file, self._name, self._connection, self._encoding = file, name, connection, encoding
        self._separator, self._exact = separator, self.written_anew
        self._read = False
        self._copy: OpenFile | None = None  # of the records, while columns of it are not read
        self._parts: dict[frozenset[int], str] = {}  # tables of some columns
        if is_compressed(file):
            self.look()

    @abstractmethod
    def plain(self, block: bytes, *, exact: bool) -> tuple[bytes, bool]:
        """The records in a block of lines as lines of CSV in UTF-8, and whether all lines are known to fit. Where it is
        not to be `exact`, lines with more or fewer cells than there are columns may stay as they are."""

    def cell_of(self, item: str) -> str:
        """The SQL of a cell, where it is made of what stands in a line otherwise than by taking it."""
        return item

    @abstractmethod
    def fits(self, line: str) -> bool:
        """Whether a line has the form that those of a public file have."""

    def lines_above(self, source: BinaryIO) -> int:
        """Reads what stands before the records; gives the number of its lines."""
        return 0

    @property
    def width(self) -> int:
        """How many cells a line of the records has: one where no column is asked for."""
        return max(1, len(self.columns))

    @property
    def numbered(self) -> bool:
        return False

    def table(self, needed: Collection[int]) -> str:
        if not self._read:
            self._load(look=False)
        return self._reading(lambda: self._table(frozenset(needed)))

    def stale(self) -> bool:
        return not self._read and self._file.changed()

    def look(self) -> None:
        if not self._read:
            self._load(look=True)

    @abstractmethod
    def check(self) -> None:
        """Reads a public file, or refuses it."""

    def check_regular(self, ragged: str, help: str) -> None:
        """Reads a public file; `ragged` says, after a line's number, what one does not have that should."""
        self.look()
        irregular = self.irregular
        if irregular.ragged:
            others = irregular.ragged - 1
            more = f", nor {'does one other' if others == 1 else f'do {others:,} others'}" if others else ""
            message = f"line {irregular.first_ragged} of {self.label} {ragged}{more}"
            raise refuse("DataError", message, help=help)
        if irregular.undecodable:
            encoding = "UTF-8" if self._encoding == "utf-8" else self._encoding
            message = f"line {irregular.first_undecodable} of {self.label} is not {encoding}"
            raise refuse("DataError", message, help='save it as UTF-8, or say what it is: `encoding = "latin-1"`')

    def _load(self, *, look: bool) -> None:
        """Writes the records; with `look`, counts what is irregular, else that is all zeros."""
        self._exact = self._exact or look
        self._copy = self._reading(lambda: _unnamed(lambda: self._records(look)))
        self._file.check()
        self._read = True

    def _reading(self, work: Callable[[], T]) -> T:
        """What `work` gives; a `DataError` where it fails."""
        import duckdb

        try:
            return work()
        except (duckdb.Error, MemoryError):
            raise refuse("DataError", f"{self.label} cannot be read") from None
        except FAULTS:
            if is_compressed(self._file):
                raise damaged(self.label) from None
            raise refuse("DataError", f"{self.label} cannot be read") from None

    def _records(self, look: bool) -> Iterator[bytes]:
        self.irregular = Irregular()
        with content(self._file) as source:
            number = 1 + self.lines_above(source)
            for block in blocks(source):
                lines, fit = self.plain(block, exact=look)
                if look:
                    self._count(block, number, fit=fit)
                    number += block.count(b"\n")
                yield lines

    def _mended(self, copy: OpenFile) -> Iterator[bytes]:
        """The records of a copy in which the database met a line of another number of cells."""
        self._encoding = "utf-8"  # of the copy
        with reader_of(copy) as source:
            source.readline()
            for block in blocks(source):
                yield self.plain(block, exact=True)[0]

    def _table(self, needed: frozenset[int]) -> str:
        """The name of a table with the needed columns: of them alone the first few times, then of all."""
        import duckdb

        for places, name in self._parts.items():
            if needed <= places:
                return name
        every = frozenset(range(self.width))
        needed = needed or frozenset({0}) if len(self._parts) < MOST_PARTS else every
        name = self._name if needed == every else f"{self._name}{len(self._parts)}"
        copy = cast(OpenFile, self._copy)
        try:
            self._read_columns(copy, needed, name)
        except duckdb.InvalidInputException:
            if self._exact:
                raise
            self._exact = True
            self._copy = _unnamed(lambda: self._mended(copy))
            self._read_columns(self._copy, needed, name)
        self._parts[needed] = name
        if name == self._name:
            self._copy = None
        return name

    def _read_columns(self, copy: OpenFile, places: frozenset[int], name: str) -> None:
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(self.width))
        items = ", ".join(f"{self.cell_of(f'c{i}')} AS c{i}" for i in sorted(places))
        longest = max(_LARGEST, self.width * (2 * MOST_BYTES + 3))  # by public facts: a row would decide about memory
        most = f"max_line_size = {longest}, buffer_size = {max(16 * _LARGEST, longest)}"
        query = f"""CREATE OR REPLACE TABLE {name} AS SELECT {items}
            FROM read_csv({DUCKDB.literal(copy.name)}, delim = {DUCKDB.literal(self._separator)},
            columns = {{{columns}}}, {_OPTIONS}, {most})"""
        ((size,),) = beside(lambda: self._connection.execute(query).fetchall(), self._connection.interrupt)
        if self.size not in (None, size):
            raise refuse("DataError", f"{self.label} cannot be read")
        self.size = size

    def _count(self, block: bytes, first: int, *, fit: bool) -> None:
        """Counts what is irregular in the lines of a block, of which the first has a number; `fit`: all of them do."""
        irregular = self.irregular
        lines = [] if fit else decoded(block, self._encoding).split("\n")
        for number, line in enumerate((line.rstrip("\r") for line in lines), first):
            if line and not self.fits(line):
                irregular.ragged += 1
                irregular.first_ragged = irregular.first_ragged or number
        if not decodes(block, self._encoding):
            for number, raw in enumerate(block.split(b"\n"), first):
                if not decodes(raw, self._encoding):
                    irregular.undecodable += 1
                    irregular.first_undecodable = irregular.first_undecodable or number


_PLACES: tuple[Callable[[], BinaryIO], ...] = (
    lambda: cast(BinaryIO, TemporaryFile(buffering=0)),  # noqa: SIM115
    lambda: cast(BinaryIO, open(os.memfd_create("records"), "w+b", buffering=0)),  # noqa: SIM115
)


def _unnamed(records: Callable[[], Iterator[bytes]]) -> OpenFile:
    """The records, after a line that is skipped, in a file without a name, open until what is given goes; in memory
    where a folder has no room for it."""
    for begun in _PLACES:
        try:
            file = begun()
        except (OSError, AttributeError):  # not every system has such memory
            continue
        with file:
            if all(_append(file, lines) for lines in itertools.chain((b"\n",), records())):
                descriptor = os.dup(file.fileno())
                copy = OpenFile(descriptor, "", "", os.fstat(descriptor))
                weakref.finalize(copy, os.close, descriptor)
                return copy
    raise OSError("there is no room")


def _append(file: BinaryIO, lines: bytes) -> bool:
    """Adds lines to a file, if there is room."""
    try:
        return file.write(lines) == len(lines)
    except OSError:
        return False


def decoded(data: bytes, encoding: str) -> str:
    """The text of whole lines. A newline is no part of a longer sequence of any encoding here, so what replaces bad
    bytes changes one line only."""
    return data.decode(encoding, "replace")


def decodes(data: bytes, encoding: str) -> bool:
    if data.isascii():  # as every encoding here has it
        return True
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def blocks(source: BinaryIO) -> Iterator[bytes]:
    """Whole lines, about a block at a time; the last line is given an end where it has none, and none is longer than
    `LONGEST`: what follows there is dropped."""
    parts: list[bytes] = []
    size = 0
    while block := source.read(_BLOCK):
        cut = block.rfind(b"\n") + 1
        if cut:
            end = block.find(b"\n")
            yield b"".join([*parts, block[:end]])[:LONGEST] + block[end:cut]
            parts, size = [], 0
        if size < LONGEST:
            parts.append(block[cut:])
            size += len(block) - cut
    if rest := b"".join(parts)[:LONGEST]:
        yield rest + b"\n"
