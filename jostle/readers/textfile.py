"""Files of text, one record a line: what CSV and JSON lines have in common.

A record is a line, so that no row of a file can change what another row is. Lines without a character are no records,
what a line has beyond 64 MB is dropped, and bytes that are none of the encoding become U+FFFD. All cells are texts.
Nothing in the rows of a private file is an error; for a public file, and for its owner's survey, `load` counts what is
irregular. A compressed file is read when it is opened, since a stream that breaks is to be known before a charge.

One statement makes the table: the database asks for the lines, block by block, as it stores their cells.

What stands in a compressed file: gzip and Zstandard, known by their first bytes.

A stream that ends early or breaks is no file of rows, whatever it begins with. No single row can make it so, since
their owner compresses all of them together; so such a file is refused as a whole, when it is opened and before anything
is charged.
"""

from __future__ import annotations

import codecs
import io
import zlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse
from jostle.engine.duckdb.engine import Raw
from jostle.engine.files import OpenFile
from jostle.readers.filesets import reader_of
from jostle.readers.limits import beside

if TYPE_CHECKING:
    import pyarrow as pa
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
    return io.BufferedReader(_Zstandard(source), 1 << 20) if first == _ZSTANDARD else source


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
_BLOCK = 1 << 20  # bytes read at a time


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


class TextFile(ReadRaw):
    """A file of text, read as a whole into the table `name` when it is first needed."""

    __slots__ = ("_connection", "_encoding", "_file", "_name", "_read")

    def __init__(
        self, file: OpenFile, columns: tuple[str, ...], name: str, label: str, connection: DuckDBPyConnection,
        encoding: str,
    ) -> None:  # fmt: skip
        super().__init__(columns, ("VARCHAR",) * len(columns), label)
        self._file, self._name, self._connection, self._encoding = file, name, connection, encoding
        self._read = False
        if is_compressed(file):
            self.look()

    @abstractmethod
    def cells(self, lines: bytes) -> pa.ListArray:
        """For each of the lines of a block, but for those without a character, a list of cells: texts or none."""

    def cell_of(self, item: str) -> str:
        """The SQL of a cell, where it is made of an item of the list otherwise than by taking it."""
        return item

    @abstractmethod
    def fits(self, line: str) -> bool:
        """Whether a line has the form that those of a public file have."""

    def all_fit(self, cells: pa.ListArray) -> bool:
        """Whether the lines of a block, of these cells, are known to fit."""
        return False

    def lines_above(self, source: BinaryIO) -> int:
        """Reads what stands before the records; gives the number of its lines."""
        return 0

    @property
    def numbered(self) -> bool:
        return False

    def table(self, needed: Collection[int]) -> str:
        if not self._read:
            self._load(look=False)
        return self._name

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
        if irregular.ragged or irregular.undecodable:
            self._connection.execute(f"DROP TABLE {self._name}")
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
        self.irregular = self._reading(lambda: self._records(look))
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

    def _records(self, look: bool) -> Irregular:
        """Reads the records into the table; with `look`, counts what is irregular, else the result is all zeros."""
        with content(self._file) as source:
            return self._taken_apart(source, 1 + self.lines_above(source), look)

    def _taken_apart(self, source: BinaryIO, number: int, look: bool) -> Irregular:
        """The same of what is left of a source, of which the first line has a number."""
        import pyarrow as pa

        irregular, faults = Irregular(), list[Exception]()
        connection, name = self._connection, f"{self._name}lines"

        def batches() -> Iterator[pa.RecordBatch]:
            first = number
            try:
                for block in blocks(source):
                    cells = self.cells(block)
                    if look:
                        self._count(block, first, irregular, fit=self.all_fit(cells))
                        first += block.count(b"\n")
                    yield pa.record_batch([cells], names=["l"])
            except FAULTS as fault:  # which the database would tell in words of its own
                faults.append(fault)

        schema = pa.schema([("l", pa.list_(pa.string()))])
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        cells = [f"{self.cell_of(f'l[{i + 1}]')} AS c{i}" for i in range(max(1, len(self.columns)))]
        query = f"CREATE OR REPLACE TABLE {self._name} AS SELECT {', '.join(cells)} FROM {name}"
        connection.register(name, reader)
        try:
            beside(lambda: connection.execute(query), connection.interrupt)
        finally:
            connection.unregister(name)
        if faults:
            connection.execute(f"DROP TABLE IF EXISTS {self._name}")
            raise faults[0]
        return irregular

    def _count(self, block: bytes, first: int, irregular: Irregular, *, fit: bool) -> None:
        """Counts what is irregular in the lines of a block, of which the first has a number; `fit`: all of them do."""
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


def decoded(data: bytes, encoding: str) -> str:
    """The text of whole lines. A newline is no part of a longer sequence of any encoding here, so what replaces bad
    bytes changes one line only."""
    return data.decode(encoding, "replace")


def decodes(data: bytes, encoding: str) -> bool:
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
