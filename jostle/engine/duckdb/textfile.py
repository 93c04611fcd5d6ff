"""Files of text, one record a line: what CSV and JSON lines have in common.

A record is a line, so that no row of a file can change what another row is. Lines without a character are no records,
what a line has beyond 64 MB is dropped, and bytes that are none of the encoding become U+FFFD. All cells are texts.
Nothing in the rows of a private file is an error; for a public file, and for its owner's survey, `load` counts what is
irregular. A compressed file is read when it is opened, since a stream that breaks is to be known before a charge.
"""

from __future__ import annotations

import codecs
from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from jostle.diagnostics import refuse
from jostle.engine.compression import FAULTS, content, damaged, is_compressed
from jostle.engine.duckdb.raw import Irregular, Raw
from jostle.engine.duckdb.stopping import beside
from jostle.engine.files import OpenFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BOM = codecs.BOM_UTF8
LONGEST = 1 << 26  # bytes of a line; a text of the database ends at 2^32
_BLOCK = 1 << 23  # bytes read at a time


class TextFile(Raw):
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
    def insert(self, lines: list[str]) -> None:
        """Adds the records of some lines, which are not empty and have no ends, to the table."""

    def ask(self, query: str, values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query with a parameter; Ctrl-C ends it."""
        connection = self._connection
        return beside(lambda: connection.execute(query, [values]).fetchall(), connection.interrupt)

    @abstractmethod
    def fits(self, line: str) -> bool:
        """Whether a line has the form that those of a public file have."""

    def first_line(self, source: BinaryIO) -> str:
        """Reads what stands before the records."""
        return ""

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
        import duckdb

        columns = ", ".join(f"c{i} VARCHAR" for i in range(len(self.columns))) or "c0 VARCHAR"
        try:
            self._connection.execute(f"DROP TABLE IF EXISTS {self._name}")
            self._connection.execute(f"CREATE TABLE {self._name} ({columns})")
            self.irregular = self._records(look)
        except duckdb.Error:
            raise refuse("DataError", f"{self.label} cannot be read") from None
        except FAULTS:
            if is_compressed(self._file):
                raise damaged(self.label) from None
            raise refuse("DataError", f"{self.label} cannot be read") from None
        self._file.check()
        self._read = True

    def _records(self, look: bool) -> Irregular:
        """Reads the records into the table; with `look`, counts what is irregular, else the result is all zeros."""
        irregular = Irregular()
        with content(self._file) as source:
            head = self.first_line(source)
            number = 1 + bool(head)
            for block in blocks(source):
                lines = [line.rstrip("\r") for line in decoded(block, self._encoding).split("\n")[:-1]]
                if look:
                    self._count(block, lines, number, irregular)
                self.insert([line for line in lines if line])
                number += len(lines)
        return irregular

    def _count(self, block: bytes, lines: list[str], first: int, irregular: Irregular) -> None:
        for number, line in enumerate(lines, first):
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
