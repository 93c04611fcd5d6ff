"""Open files that are read as one table: what a program's `table(…)` names.

Every file is opened once. A set of files is recognised by its parts, so that no file has two budgets by standing in
two lists; a file and its compressed copy beside it (`people.csv`, `people.csv.gz`) count as one. How many files there
are and what they are called is public, as are their headers and types; nothing else of them is asked here.

What tables and arrays in memory are known by, so that the same data have one budget under several names.

An object is known by itself, by the names that it was bound to, by the tables and files that a query reads; by the
memory in which its columns lie, and by the files that this memory is a map of. Data that have one of these in common
have an identity in common, whoever came first: names, tables and addresses are public, and no cell is looked at. A copy
has nothing in common with its original.
"""

from __future__ import annotations

import errno
import glob
import io
import os
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field

from jostle.diagnostics import refuse
from jostle.engine.files import OpenFile, identities, is_system
from jostle.lazy import pa

_MOST = 1000  # files of a table; each is an open descriptor


class Reading(Struct, frozen=True):
    """What a program says of how files are read; what it leaves out, a file's header and type say.

    `part` is a table of a database, `sheet` the name of a sheet of a workbook or its number from 1; `header` the line
    of a CSV file, or the row of a sheet, that names the columns, from 1: what stands above it is dropped, and public
    as it is. `separator` is one character between the cells of a CSV file, `encoding` that of its texts, `decimal` the
    sign before the fraction of its numbers.

    The tables of a database have a budget each, the sheets of a workbook one together: a sheet has a name and a number,
    and is no other for that.
    """

    part: str | None = None
    sheet: str | int | None = None
    header: int | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None


def reader_of(file: OpenFile, tail: bytes = b"", buffer: int = 1 << 20) -> BinaryIO:
    """The bytes of an open file from the start on, the last of them in place of the file's own; several readers do not
    disturb each other, in forked processes neither."""
    return io.BufferedReader(_Reader(file, tail), buffer)


class _Reader(io.RawIOBase):
    """Reads at positions of its own, since the descriptor's is shared with forked processes, as much as the file had
    when it was opened."""

    def __init__(self, file: OpenFile, tail: bytes) -> None:
        self._file, self._at, self._tail = file, 0, tail
        self._size = file.status.st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        start = self._size - len(self._tail)
        many = min(len(buffer), max(0, self._size - self._at))
        if self._tail and self._at + many > start:
            many = max(0, start - self._at)
        data = (
            os.pread(self._file.descriptor, many, self._at) if many else self._tail[self._at - start :][: len(buffer)]
        )
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


TWICE = "two columns"
"""In place of a type: that of a name which stands above several columns."""


def twice(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The names of several columns, which are not read, in the form of `Opened.unread`."""
    return tuple((name, TWICE) for name, many in Counter(names).items() if many > 1)


def check_read(name: str, unread: Iterable[tuple[str, str]]) -> None:
    """Refuses with `DataError` a column of a type that is not read, or that shares its name with another."""
    for column, kind in unread:
        if column == name and kind == TWICE:
            message = f"the header has the name `{name}` more than once"
            raise refuse("DataError", message, help="rename one of them there, or describe other columns alone")
        if column == name:
            message = f"the column `{name}` is of the type `{kind}`, which is not read"
            help = "store it as numbers, texts, dates or times in a column of its own, and describe that one"
            raise refuse("DataError", message, help=help)


class FileSet(Struct, frozen=True, eq=False):
    """One open file or several. `identity` has what each is known by, with the part that is read of a database: its
    names are the same in any case."""

    parts: tuple[OpenFile, ...]
    reading: Reading
    identity: frozenset[tuple[object, ...]]

    @classmethod
    def of(cls, parts: Sequence[OpenFile], reading: Reading | None = None) -> FileSet:
        """Refuses with `DataError` one file that is named twice, also where one is a compressed copy beside it."""
        reading = reading or Reading()
        owners: dict[tuple[object, ...], int] = {}
        for place, file in enumerate(parts):
            for name in {file.identity, *identities(file.real)}:
                part = () if reading.part is None else (reading.part.casefold(),)
                first = owners.setdefault((*name, *part), place)
                if first != place:
                    other = parts[first]
                    message = f"`{other.path}` and `{file.path}` are one file, or one is the other compressed"
                    raise refuse("DataError", message, help="name each file of a table once")
        return cls(tuple(parts), reading, frozenset(owners))

    @property
    def label(self) -> str:
        """What messages call it."""
        more = len(self.parts) - 1
        return f"`{self.parts[0].path}`" + (f" and {more} other file{'s' * (more > 1)}" if more else "")

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for two sets that give the same rows in the same order."""
        return (*(file.identity for file in self.parts), self.reading)

    def check(self) -> None:
        """Refuses files that changed since they were opened."""
        for file in self.parts:
            file.check()


def paths(text: str, folders: Sequence[Path]) -> list[Path | str]:
    """The files that a path or a pattern (`part*.csv`, `**/*.parquet`) names, in the order of their names.

    They are those of the first folder that has any. A `DataError` where a pattern matches none, or more than 1,000, and
    for a text that the system takes for no path.
    """
    try:
        os.lstat(text)
    except ValueError:  # of NUL, and of half a surrogate pair
        raise refuse("DataError", f"`{text}` cannot be read: its name is not a path") from None
    except OSError as fault:
        if fault.errno == errno.ENAMETOOLONG:
            raise refuse("DataError", f"`{text[:40]}…` cannot be read: its name is too long") from None
    place = next((folder / text for folder in folders if is_system(folder / text) or exists(folder / text)), None)
    if place is not None:
        return [place]
    if not glob.has_magic(text) or "\0" in text:
        return [text]
    for folder in folders:
        names = sorted(glob.glob(text, root_dir=folder, recursive=True))
        places = [folder / name for name in names if not (folder / name).is_dir() and not is_system(folder / name)]
        if len(places) > _MOST:
            raise refuse("DataError", f"`{text}` matches {len(places):,} files; a table has at most {_MOST:,}")
        if places:
            return [*places]
    raise refuse("DataError", f"no file matches `{text}`", help="paths in a program start at its folder")


def exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


Span = tuple[int, int]  # addresses of bytes, the end excluded
_NOTHING: frozenset[Hashable] = frozenset()


class _Known(Struct):
    """What is known of an object. It is held, and so are its columns, so that nothing else gets their addresses."""

    origin: object
    marks: set[Hashable]
    reads: frozenset[Hashable] = _NOTHING
    numbers: frozenset[Hashable] = _NOTHING  # of tables in their databases
    columns: tuple[object, ...] = ()
    spans: list[Span] = field(default_factory=list)


class _Group(Struct, eq=False):
    """Data that have something in common with the first of them."""

    marks: set[Hashable] = field(default_factory=set)
    spans: list[Span] = field(default_factory=list)

    def has(self, entry: _Known, starts: list[int], ends: list[int]) -> bool:
        """Whether it has a mark of these, or lies in part where they do: from `starts` to `ends`, rising and apart."""
        return bool(self.marks & entry.marks) or any(_meets(span, starts, ends) for span in self.spans)


class Objects:
    """The objects of a session."""

    def __init__(self) -> None:
        self._groups: list[_Group] = []
        self._known: dict[int, _Known] = {}

    def _of(self, origin: object) -> _Known:
        return self._known.setdefault(id(origin), _Known(origin, {("object", id(origin))}))

    def bind(self, origin: object, name: str) -> None:
        """Remembers a name of an object: whatever is bound to it later has something in common with it."""
        self._of(origin).marks.add(("name", name))

    def lies_in(self, origin: object, columns: Iterable[object]) -> None:
        """Remembers the arrays, of NumPy or Arrow, and the lists in which the columns of an object lie."""
        entry = self._of(origin)
        entry.columns = tuple(columns)
        lists = [column for column in entry.columns if isinstance(column, list | tuple)]
        entry.marks |= {("object", id(column)) for column in lists}
        entry.spans = [
            span for column in entry.columns if not isinstance(column, list | tuple) for span in _spans(column)
        ]
        mapped = _mapped(entry.spans)
        entry.reads, entry.marks = entry.reads | mapped, entry.marks | mapped

    def reads(self, origin: object, of: Callable[[object], frozenset[Hashable] | None]) -> None:
        """Remembers the tables and files that a query reads. Where that is not known, None, it is refused with
        `DataError`: it may read what has a budget under another name, such as a frame of Python.

        A table has what it had under another name. Other databases may give its number too: then the earlier query
        reads there still what it read.
        """
        marks = of(origin)
        if marks is None:
            raise refuse(
                "DataError", "it is not known which rows this query of DuckDB reads",
                help="bind the frame that it reads, a table, `connection.table(…)`, or once what it gives, "
                "`query.to_arrow_table()`",
            )  # fmt: skip
        entry = self._of(origin)
        entry.numbers = frozenset(mark for mark in marks if isinstance(mark, tuple) and mark[0] == "number")
        entry.reads = marks - entry.numbers
        entry.marks |= entry.reads
        for other in list(self._known.values()):
            shared = entry.numbers & other.numbers
            if shared and not shared <= (of(other.origin) or _NOTHING):
                entry.marks |= other.marks

    def identity(self, origin: object) -> frozenset[Hashable]:
        """What an object is known by, with a part in common with that of all data that it has something in common
        with; and with that of a file that it reads."""
        entry = self._of(origin)
        fresh = entry.marks.difference(*(group.marks for group in self._groups))
        starts, ends = _apart(entry.spans)
        overlaps = [group for group in self._groups if group.has(entry, starts, ends)] or [_Group()]
        for group in overlaps:
            group.marks |= fresh
            group.spans += [span for span in entry.spans if span not in group.spans]
        self._groups += [group for group in overlaps if group not in self._groups]
        files = (mark for mark in entry.reads if isinstance(mark, tuple) and mark[0] == "file")
        return frozenset([*map(id, overlaps), *files])


def _apart(spans: list[Span]) -> tuple[list[int], list[int]]:
    """Where spans start and end, those that overlap taken together."""
    starts, ends = list[int](), list[int]()
    for start, end in sorted(spans):
        if ends and start < ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


def _meets(span: Span, starts: list[int], ends: list[int]) -> bool:
    return (i := bisect_left(starts, span[1])) > 0 and ends[i - 1] > span[0]


def _mapped(spans: list[Span]) -> set[Hashable]:
    """The files, or shared memory, that memory is a map of, as Linux says: every map of one has its own addresses."""
    files = set[Hashable]()
    with suppress(OSError):
        maps = Path("/proc/self/maps").read_bytes().splitlines()  # in the order of their addresses
        for start, end in zip(*_apart(spans), strict=True):
            for line in islice(maps, max(0, bisect_right(maps, start, key=_first_address) - 1), None):
                place, _, _, device, inode, *path = line.split(maxsplit=5)
                first, last, major, minor = (int(number, 16) for number in (*place.split(b"-"), *device.split(b":")))
                if first >= end:
                    break
                if inode != b"0" and last > start:
                    files |= {("file", os.makedev(major, minor), int(inode))}
                    files |= set(identities(os.fsdecode(path[0]))) if path else set()
    return files


def _first_address(line: bytes) -> int:
    """Where the memory of a line of `/proc/self/maps` begins."""
    return int(line[: line.index(b"-")], 16)


def _spans(column: Any) -> list[Span]:
    """Where a column lies: an array of NumPy, and perhaps what is between its cells, or the first buffer of the cells
    of a column of Arrow, or the codes of a dictionary. An array without rows lies somewhere too, so that no row decides
    whether it does."""
    if not hasattr(column, "buffers") and not hasattr(column, "chunks"):
        start = end = column.__array_interface__["data"][0]
        for many, step in zip(column.shape, column.strides, strict=True):
            whole = (max(many, 1) - 1) * step
            start, end = start + min(0, whole), end + max(0, whole)
        return [(start, end + column.itemsize)]
    return [span for chunk in getattr(column, "chunks", [column]) for span in _spans_of_chunk(chunk)]


def _spans_of_chunk(chunk: pa.Array) -> list[Span]:
    kind, types = chunk.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _spans_of_chunk(chunk.storage)
    if types.is_dictionary(kind):
        return _spans_of_chunk(chunk.indices)
    if types.is_struct(kind):
        return [span for field in chunk.flatten() for span in _spans_of_chunk(field)]
    if types.is_fixed_size_list(kind) or types.is_run_end_encoded(kind):
        return _spans_of_chunk(chunk.values)
    width, buffers = _bits(kind), chunk.buffers()
    if not width or buffers[1] is None:
        return []
    first, last = chunk.offset * width // 8, -(-(chunk.offset + max(len(chunk), 1)) * width // 8)
    return [(buffers[1].address + first, buffers[1].address + last)]


def _bits(kind: pa.DataType) -> int:
    """How many bits of the second buffer of a column of Arrow are of one row: its value, or where it begins."""
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return 128
    if types.is_large_string(kind) or types.is_large_binary(kind) or types.is_large_list(kind):
        return 64
    if types.is_string(kind) or types.is_binary(kind) or types.is_list(kind) or types.is_map(kind):
        return 32
    if types.is_large_list_view(kind) or types.is_list_view(kind):
        return 64 if types.is_large_list_view(kind) else 32
    if types.is_null(kind):
        return 0
    return 8 if types.is_union(kind) else int(kind.bit_width)
