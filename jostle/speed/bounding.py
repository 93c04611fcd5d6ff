"""At most so many rows of each person, chosen in arrays: the rows that the SQL of `sql.persons` keeps, sooner.

Rows are counted by person and the first digits of their hash, which tells the cell that has the last row of a person
that stays; only the rows of such cells are sorted, by a person's code and the hash as one whole number of 64 bits.
Codes tell persons apart exactly, so that a person's rows alone decide. Where several rows share the number it does not
matter which of them stays if all their cells are equal; where they are not, nothing is chosen here: the SQL decides.

Persons are dealt into parts by DuckDB's hash of whose a row is: all rows of a person are in one part, so that what the
parts are decides nothing about which of them stay. Rows are hashed as they are read, once, and are in memory, or in a
file without a name where they are more than fit. Those that stay are asked as they are in memory where there is room
and one part, and else added to a table of the database, which DuckDB spills. A part of which too much was read is
halved. Where arrays cannot decide, or rows have weights, the SQL of `sql.persons` chooses.

Arrays of private rows on the disk, in files that have no name.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol

from jostle.diagnostics import Refusal
from jostle.engine.sql import persons
from jostle.engine.sql.cells import FALSE, FLOATS, TRUE, WHOLE, whole_or_text
from jostle.engine.sql.dialect import Dialect
from jostle.engine.sql.persons import BITS, HALF, MISSING, ROUNDS, START, counted_as, factor
from jostle.integers import fixed_width, same_bits
from jostle.language.moments import FIRST_DAY, LAST_DAY, moment_of
from jostle.language.operations import LONGEST
from jostle.lazy import Array, np, pa
from jostle.plan.plan import Bound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from numpy.typing import DTypeLike

    from jostle.engine.duckdb.engine import Raw

    Whole = Array
    Read = tuple[pa.Table, Whole, dict[str, "_Texts"]] | tuple[()]

MOST_ROWS = 2**24  # of persons that are bounded together
MOST_BYTES = 2**29  # of the cells that are read of them, in memory
MOST_ON_DISK = 2**31 - 1  # of those and others, since Arrow's places in a text have 32 bits
BLOCK = 2**16  # rows, few enough for a processor's cache
MOST_DIGITS = 6  # of a hash, by which rows are counted


class _Rows:
    """Batches of rows, in memory or, where they are more than fit, in a file without a name."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._size = 0
        self._file: Any = None
        self._writer: Any = None

    def add(self, batch: pa.RecordBatch) -> bool:
        """Whether there is room for it."""
        self._size += batch.nbytes
        self._batches.append(batch)
        if self._size > MOST_BYTES:
            try:
                if self._writer is None:
                    self._file = tempfile.TemporaryFile()  # noqa: SIM115
                    self._writer = pa.ipc.new_file(self._file, batch.schema)
                for some in self._batches:
                    self._writer.write_batch(some)
            except OSError:
                return False
            self._batches = []
        return self._size <= MOST_ON_DISK

    def table(self) -> pa.Table:
        if self._writer is None:
            return pa.Table.from_batches(self._batches)
        self._writer.close()
        self._file.flush()
        pages = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_file(pa.BufferReader(pa.py_buffer(pages))).read_all()


def staying(persons: pa.ChunkedArray, keys: Whole, most: int, alike: Callable[[Whole], Whole]) -> Whole | None:
    """Whether each row stays, of whole numbers or texts that tell whose a row is, none missing, and hashes of the rows.

    `alike` says of rows whether each has the cells of the one before. None where hashes cannot decide.
    """
    many, codes = _codes(persons)
    ends = np.cumsum([*map(len, codes)])
    blocks = [(end - len(some), keys[end - len(some) : end], some) for end, some in zip(ends, codes, strict=True)]
    digits = min(MOST_DIGITS, max(1, 2 * len(keys) // many).bit_length())
    most = min(most, len(keys))
    for kind in (np.uint8, np.int32):  # the narrow cells are in a processor's cache, and wrap around
        counts: Whole = np.zeros(many << digits, dtype=kind)
        for _, part, some in blocks:
            np.add.at(counts, (part >> BITS - digits) * many + some, kind(1))
        upto, room = np.zeros(many, dtype=np.int32), np.full(many, most, dtype=np.int32)
        last = np.zeros(many, dtype=np.uint8)
        for row in counts.reshape(-1, many):  # one cell of each person
            upto += row
            last += (fits := upto <= most)
            room -= row * fits
        if upto.sum(dtype=np.int64) == len(keys):
            break
    last = 2 * last + (room > 0)  # even where no row stays of the cell after those that stay as a whole
    stays, at, whose = np.empty(len(keys), dtype=bool), [], []
    for start, part, some in blocks:
        cell, limit = 2 * (part >> BITS - digits).astype(np.uint8) + np.uint8(1), last[some]
        np.less(cell, limit, out=stays[start : start + len(some)])
        at.append(start + (equal := np.flatnonzero(cell == limit)))
        whose.append(some[equal])
    rows = np.concatenate(at)
    if len(rows) == 0:
        return stays
    bits = min(BITS, 63 - many.bit_length())
    ordered = (fixed_width(np.concatenate(whose)) << bits) | (keys[rows] >> BITS - bits)
    rows, ordered = rows[order := np.argsort(ordered)], ordered[order]
    first = np.flatnonzero(np.diff(ordered >> bits, prepend=-1))  # where each person begins
    which = np.repeat(np.arange(len(first)), np.diff(first, append=len(rows)))
    out = first + room[ordered[first] >> bits]  # the first that does not stay
    stays[rows[np.arange(len(rows)) < out[which]]] = True
    tied = ordered == np.where(ordered[out] == ordered[out - 1], ordered[out], -1)[which]
    same = np.diff(ordered[tied], prepend=-1) == 0
    return None if same.any() and np.any(same & ~alike(rows[tied])) else stays


def numbers_of(column: pa.Array) -> Whole:
    """What cells count as in a hash, of a column that stores whole numbers, doubles or truths."""
    if pa.types.is_floating(column.type):
        cells = _numpy(column.cast(pa.float64()), math.nan) + 0.0  # no −0
        missing = np.isnan(cells)
        return np.where(missing, MISSING, cells.view(np.int64)) if missing.any() else cells.view(np.int64)
    if pa.types.is_boolean(column.type):
        truths = _numpy(column.cast(pa.int64()), 2)
        cells = FALSE + (TRUE - FALSE) * truths
        return np.where(truths == 2, MISSING, cells) if column.null_count else cells
    return _numpy(column.cast(pa.int64()) if column.null_count else column, MISSING)


def _numpy(column: pa.Array, none: float = 0) -> Array:
    """The numbers of a column, and `none` where one is missing. PyArrow's own way loads pandas first."""
    if not column.null_count:
        return np.from_dlpack(column)
    there = np.from_dlpack(column.is_valid().cast(pa.uint8()))
    bare = pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], offset=column.offset)
    return np.where(there, np.from_dlpack(bare), none)


def _arrow(values: Array) -> pa.Array:
    """Numbers or truths as a column."""
    kind = pa.from_numpy_dtype(values.dtype)
    packed = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(packed)])


def hashes_of(cells: Iterable[Whole], rows: int) -> Whole:
    """The hashes of `engine.sql.persons`, of rows whose cells are what `counted_as` gives, each of shape (rows,)."""
    low, high = (np.full(rows, start, dtype=np.int64) for start in START)
    for i, cell in enumerate([*map(same_bits, cells), *[None] * ROUNDS]):
        if cell is not None:
            low ^= cell & HALF
            high ^= (cell >> 31) & HALF
        low *= factor(i)
        high ^= low >> 31
        low &= HALF
        low, high = high, low
    return (low << 31) ^ high


def _codes(persons: pa.ChunkedArray) -> tuple[int, list[Whole]]:
    """How many codes there are, from 0, and those of the rows of each chunk: equal exactly where the persons are."""
    chunks = persons.chunks
    if pa.types.is_integer(persons.type):
        numbers = [same_bits(_numpy(chunk)) for chunk in chunks if len(chunk)]
        low, high = min(int(some.min()) for some in numbers), max(int(some.max()) for some in numbers)
        if high - low < 2 * len(persons) + 1024:
            return high - low + 1, [some - low for some in numbers] if low else numbers
    encoded = persons.combine_chunks().dictionary_encode()
    return len(encoded.dictionary), np.split(_numpy(encoded.indices), np.cumsum([*map(len, chunks)])[:-1])


def _alike(cells: pa.Table, rows: Whole) -> Whole:
    """Whether each of the rows has the cells of the one before; the first has none before it."""
    alike, order = np.ones(len(rows), dtype=bool), np.argsort(rows)
    places = np.empty_like(order)
    places[order] = np.arange(len(rows))
    for column in _rows_at(cells, rows[order]).columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
        alike &= np.diff(_numpy(codes)[places], prepend=-1) == 0
    return alike


def _rows_at(table: pa.Table, rows: Whole) -> pa.Table:
    """Rows of a table, in order, of each chunk by itself: a copy of it in one piece takes longer, as does `take`."""
    batches = table.to_batches()
    starts = np.cumsum([0, *map(len, batches)])
    some = np.split(rows, np.searchsorted(rows, starts[1:-1]))
    return pa.Table.from_batches(
        [batch.take(_arrow(at - start)) for batch, start, at in zip(batches, starts, some, strict=False)]
    )


class _Texts(dict[bytes | int | None, int]):
    """The few different texts of a column, or dates as days, by their places, and what each counts as in a hash, which
    is worked out once."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._bytes = most, 0  # different ones in a block, and bytes of those of all blocks
        self.counted: list[int] = []

    def __missing__(self, cell: bytes | int | None) -> int:
        text = cell if isinstance(cell, bytes) else b""
        if isinstance(cell, int) and FIRST_DAY <= cell <= LAST_DAY:
            text = str(moment_of("date", cell)).encode()
        if not text or len(text.decode(errors="replace")) > LONGEST:
            self.counted.append(MISSING)
        elif re.fullmatch(b"0|-?[1-9][0-9]{0,18}", text) and -(2**63) <= int(text) < 2**63:
            self.counted.append(int(text))
        else:
            self.counted.append(int(hashlib.sha256(text).hexdigest()[:12], 16))
        self[cell] = len(self)
        return self[cell]

    def places(self, column: pa.Array) -> Whole | None:
        """The places of a block of cells; None where these are too many to hash each once."""
        dated = pa.types.is_date(column.type)
        encoded = column.view(pa.int32() if dated else pa.binary()).dictionary_encode()
        cells = encoded.dictionary
        self._bytes += cells.nbytes
        if len(cells) > self._most or len(self) > MOST_TEXTS or self._bytes > MOST_BYTES:
            return None
        here = _numpy(cells).tolist() if dated else cells.to_pylist()
        places = np.empty(len(here) + 1, dtype=np.int32)
        places[:] = [self[cell] for cell in (*here, None)]
        return places[_numpy(encoded.indices, len(here))]

    def texts(self, places: pa.ChunkedArray) -> pa.Array:  # in one piece, which a database copies in half the time
        cells = [cell if isinstance(cell, bytes) else b"" for cell in self]
        there, ends = _arrow(np.array([cell is not None for cell in self])), np.cumsum([0, *map(len, cells)])
        parts = [there.buffers()[1], pa.py_buffer(ends), pa.py_buffer(b"".join(cells))]
        words = pa.Array.from_buffers(pa.large_string(), len(cells), parts)
        return pa.DictionaryArray.from_arrays(places.combine_chunks(), words)


class Tables(Protocol):
    """What is asked of a database (`DuckDb`)."""

    dialect: Dialect

    def fetch(self, query: str) -> list[tuple[Any, ...]]: ...

    def record_batches(self, query: str, size: int, label: str = ...) -> Iterator[Any]: ...

    def keep(self, query: str, raw: Raw, table: str | None = None) -> str: ...

    def registered(self, rows: object) -> AbstractContextManager[str]: ...

    def hold(self, rows: pa.Table) -> str | None: ...


FEW_OF, MOST_TEXTS = 16, 2**16  # rows that each different text has, and how many there are, where it is hashed once
HALVINGS = 4  # of a part whose rows do not fit, before SQL chooses


class Bounding:
    """What chooses the rows of a plan, at most `most` of each person; `items` of them are kept, and weights `w`."""

    def __init__(self, engine: Tables, plan: Bound, most: int, raw: Raw, items: list[str]) -> None:
        self._engine, self._plan, self._most, self._raw, self._items = engine, plan, most, raw, items
        self._dialect = dialect = engine.dialect
        # by the order of names, in which the hash has them
        self._cells = [whole_or_text(dialect, *raw.cell(name)) for name in sorted(dict(plan.scan.columns))]
        kinds = dict(raw.cell(name) for name in sorted(dict(plan.scan.columns)))
        self._raw_names, self._kinds = [*kinds], [*kinds.values()]
        self._plain = [kind in WHOLE | FLOATS | {"BOOLEAN"} for kind in self._kinds]  # which count as they are read
        owner = raw.cell(str(plan.by[0]))[0] if plan.owners is None and len(plan.by) == 1 else ""
        self._owner = owner if kinds.get(owner) in WHOLE else "q"  # the column that has `q`, which is not read twice
        self._few = {i for i, kind in enumerate(self._kinds) if kind in ("VARCHAR", "DATE")}  # as far as is known
        self._table: str | None = None

    def table(self, source: str, size: int) -> str:
        """The name of the table for a source of `size` rows, with the raw cells and `q`, whose a row is."""
        parts = max(1, -(-size // MOST_ROWS))
        np.empty(2**21)  # the C library, which has let go of so much at once, keeps blocks of rows for the next ones
        try:
            for part in range(parts):
                self._choose(source, size, part, parts, HALVINGS)
        except (Refusal, KeyboardInterrupt):
            if self._table is not None:
                self._engine.fetch(f"DROP TABLE IF EXISTS {self._table}")
            raise
        return str(self._table)

    def _choose(self, source: str, size: int, part: int, parts: int, halvings: int) -> None:
        rows = source if parts == 1 else f"SELECT * FROM ({source}) WHERE hash(q) % {parts} = {part}"
        read: Read | Literal[False] | None = None if self._plan.weighted else False
        while read is False:
            try:
                read = self._read(rows, size)
            except Refusal:  # Arrow's batches have no texts of more than 2 GB together; SQL refuses what is no data
                read = ()
        if read is None and halvings and not self._plan.weighted:
            self._choose(source, size, part, 2 * parts, halvings - 1)
            self._choose(source, size, part + parts, 2 * parts, halvings - 1)
        elif not read or not self._chosen_in_arrays(*read, alone=parts == 1):
            weighted = self._plan.weighted
            query = persons.rows_per_key(
                "*", rows, ["q"], self._cells, self._most, weighted=weighted, dialect=self._dialect
            )
            self._keep(f"SELECT {', '.join([*self._items, *['w'] * weighted])} FROM ({query})")

    def _keep(self, query: str) -> None:
        self._table = self._engine.keep(query, self._raw, self._table)

    def _read(self, rows: str, size: int) -> Read | Literal[False] | None:
        """The rows with raw cells and whose they are, their hashes, and the texts of which columns have places; nothing
        where there are no rows, None where they do not fit, and False where columns had too many texts: to be read
        again, and not from within, since how often is up to rows."""
        few = {i: _Texts(min(size, BLOCK) // FEW_OF) for i in self._few}
        by_place = {self._raw_names[i]: some for i, some in few.items() if self._kinds[i] == "VARCHAR"}
        counts = [name if self._plain[i] or i in few else f"x{i}" for i, name in enumerate(self._raw_names)]
        others = [f"{counted_as(self._cells[i], self._dialect)} AS {x}" for i, x in enumerate(counts) if x == f"x{i}"]
        items = sorted({*self._raw_names, self._owner})
        query = f"SELECT {', '.join([*items, *others])} FROM ({rows})"
        read, hashes, many = _Rows(), np.empty(size, dtype=np.int64), 0
        for batch in self._engine.record_batches(query, BLOCK, self._raw.label):
            if batch[self._owner].null_count:
                batch = batch.filter(batch[self._owner].is_valid())
            places = {i: some.places(batch[counts[i]]) for i, some in few.items()}
            if many_texts := {i for i, here in places.items() if here is None}:
                self._few -= many_texts
                return False
            numbers = [
                np.array(few[i].counted)[places[i]] if i in few else numbers_of(batch[x]) for i, x in enumerate(counts)
            ]
            for i, here in places.items():
                if here is not None and counts[i] in by_place:
                    batch = batch.set_column(batch.schema.get_field_index(counts[i]), counts[i], _arrow(here))
            hashes[many : many + len(batch)] = hashes_of(numbers, len(batch))
            many += len(batch)
            if not read.add(batch.select(items)):
                return None
        return (read.table(), hashes[:many], by_place) if many else ()

    def _chosen_in_arrays(self, table: pa.Table, hashes: Whole, texts: dict[str, _Texts], alone: bool) -> bool:
        """Whether the hashes could decide; what stays is kept then."""
        from pyarrow import compute

        cells = table.select(self._raw_names)
        stays = staying(table[self._owner], hashes, self._most, lambda rows: _alike(cells, rows))
        if stays is None:
            return False
        table = compute.filter(table, _arrow(stays), memory_pool=pa.system_memory_pool())  # which is sooner there
        if self._owner != "q":
            table = table.append_column("q", table[self._owner])
        for x, some in texts.items():
            table = table.set_column(table.schema.get_field_index(x), x, some.texts(table[x]))
        self._table = self._engine.hold(table) if alone else self._table
        if alone and self._table:
            return True
        with self._engine.registered(table) as name:
            self._keep(f"SELECT {', '.join(self._items)} FROM {name}")
        return True


def on_disk(size: int, kind: DTypeLike) -> Array | None:
    """An array of shape (size,) in the temporary folder, unset; None where there is no room.

    Its file never stands in a folder where anybody could open it, and goes with the array, or with a killed process.
    """
    try:
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, max(1, size) * np.dtype(kind).itemsize)  # or a write could kill us
            return np.memmap(file, kind, "r+", shape=(size,))
    except OSError:
        return None


def let_go(array: Array | None) -> None:
    """Frees the memory that an array on the disk, or a slice of one, takes meanwhile. It is read again if asked."""
    pages = getattr(array, "_mmap", None)
    if pages is not None:
        pages.madvise(mmap.MADV_DONTNEED)
