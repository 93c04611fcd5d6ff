"""At most so many rows of each person, chosen in arrays: the rows that the SQL of `sql.persons` keeps, sooner.

The first digit of a row's hash decides of most rows: counts of each person's rows by digit tell at which digit that
person's bound is. Of the rows with that digit a person's code and more of the hash make one whole number; of these,
sorted, the one at the bound is the last that stays. Codes tell persons apart exactly, so that a person's rows alone
decide. Where several rows share that number it does not matter which of them stays if all their cells are equal; where
they are not, nothing is chosen here, and the SQL decides.

Rows are taken in blocks, by several threads. Their hashes are calculated twice rather than kept, since fresh memory
takes longer than arithmetic.

The table of the rows of persons that stay, made part by part, so that memory does not grow with the rows.

Persons are dealt into parts by DuckDB's hash of whose a row is: all rows of a person are in one part, so that what the
parts are decides nothing about which of them stay. A part is read, its rows are chosen in arrays (`bounding`), and
those that stay are added to a table of the database, which DuckDB spills where it does not fit in memory. A part of
which too much was read is halved. Where arrays cannot decide, or rows have weights, the SQL of `sql.persons` chooses.

Arrays of private rows on the disk, in files that have no name.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from jostle.diagnostics import Refusal
from jostle.engine.sql import persons
from jostle.engine.sql.cells import whole_or_text
from jostle.engine.sql.dialect import Dialect
from jostle.engine.sql.hashes import BITS, HALF, MISSING, ROUNDS, START, counted_as, factor
from jostle.engine.sql.rows import Physical
from jostle.integers import fixed_width, narrowed, same_bits
from jostle.lazy import Array, np, pa
from jostle.plan.plan import Bound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from numpy.typing import DTypeLike

    from jostle.engine.duckdb.raw import Raw

    Whole = Array
    Blocks = list[Whole]
    Hashes = Callable[[pa.RecordBatch], Whole]

MOST_ROWS = 2**24  # of persons that are bounded together
MOST_BYTES = 2**29  # of the cells that are read of them
BLOCK = 2**16  # rows, few enough for a processor's cache
_KEY_BITS = 63
_DIGIT_BITS = 7  # at most


def gathered(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch] | None:
    """The batches; None where they are more than fit."""
    gathered, size = [], 0
    for part in batches:
        gathered.append(part)
        size += part.nbytes
        if size > MOST_BYTES:
            return None
    return gathered


def staying(table: pa.Table, most: int, needed: list[str], hashes: Hashes, hash_bits: int) -> Whole | None:
    """Whether each row stays of a table of the column `q`, whose a row is, and its cells.

    `hashes` gives those of a batch of rows with the `needed` columns, `q` among them. `q` is of whole numbers or texts,
    none of them missing. None where hashes cannot decide.
    """
    parts = table.select(needed).to_batches(max_chunksize=BLOCK)
    persons, codes = _codes(table["q"], parts)
    digit_bits = min((len(table) // max(persons, 1)).bit_length(), _DIGIT_BITS)
    to_digit, to_key = hash_bits - digit_bits, max(0, hash_bits - _KEY_BITS + persons.bit_length())
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:  # NumPy leaves the interpreter to others while it calculates
        digits = [*pool.map(lambda part: (hashes(part) >> to_digit).astype(np.uint8), parts)]
        bound, places = _bounds(codes, digits, persons, most, 1 << digit_bits)

        def decided(part: pa.RecordBatch, some: Whole, digit: Whole) -> tuple[Whole, Whole, Whole]:
            """Which rows stay by their digit alone, the places of the others that may, and their keys."""
            bounds = bound[some]
            rest = np.flatnonzero(digit == bounds)
            rest = rest[places[some[rest]] > 0]
            code = fixed_width(some[rest]) << (hash_bits - to_key)
            return digit < bounds, rest, code | (hashes(part.take(rest)) >> to_key)

        split = [*pool.map(decided, parts, codes, digits)]
    stays, rests, keys = ([*column] for column in zip(*split, strict=True)) if split else ([], [], [])
    if any(map(len, keys)):
        picks = _least(keys, hash_bits - to_key, places, lambda tied: _alike(table, _places(parts, rests)[tied]))
        if picks is None:
            return None
        for stay, rest, some in zip(stays, rests, picks, strict=True):
            stay[rest] = some
    return np.concatenate([np.zeros(0, dtype=bool), *stays])


def numbers_of(column: pa.Array) -> Whole:
    """The whole numbers that cells count as in a hash, of a column that stores some, or what they count as."""

    return np.asarray(column.cast(pa.int64()).fill_null(MISSING) if column.null_count else column)


def hashes_of(cells: Iterable[Whole], rows: int) -> Whole:
    """The hashes of `engine.sql.hashes`, of rows whose cells are what `counted_as` gives, each of shape (rows,)."""
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


def _bounds(codes: Blocks, digits: Blocks, persons: int, most: int, size: int) -> tuple[Whole, Whole]:
    """For each person the first digit of which not all rows stay, beyond the digits where all do, and how many stay of
    the rows with that digit. Most counts fit into bytes; one that does not is short by a multiple of 256."""
    rows = sum(map(len, codes))
    for kind in (np.uint8, np.int32):
        counts: Whole = np.zeros(persons * size, dtype=kind)
        for some, digit in zip(codes, digits, strict=True):
            np.add.at(counts, fixed_width(digit) * persons + some, kind(1))
        if counts.sum(dtype=np.int64) == rows:
            break
    bound, before, through = np.zeros(persons, np.uint8), np.zeros(persons, np.int32), np.zeros(persons, np.int32)
    for many in counts.reshape(size, persons):
        through += many
        all_stay = through <= most
        bound += all_stay
        np.copyto(before, through, where=all_stay)
    return bound, np.subtract(most, before, out=before)


def _least(keys: Blocks, bits: int, places: Whole, alike: Callable[[Whole], Whole]) -> Blocks | None:
    """Whether a row is among the `places` of its person with the least keys, of which each person has more.

    A key is a code and `bits` of a hash. None where rows that differ tie: `alike` says of rows whether each has the
    cells of the one before.
    """
    ordered = np.concatenate(keys)
    ordered.sort()
    codes = ordered >> bits
    first = np.append(0, np.flatnonzero(codes[1:] != codes[:-1]) + 1)  # where the rows of each person begin
    some = codes[first]
    del codes  # as large as all keys
    beyond = first + places[some]  # where the first row of a person stands that goes
    last = np.zeros(len(places), dtype=np.int64)
    last[some] = ordered[beyond - 1]
    picks = [key <= last[key >> bits] for key in keys]
    tie = ordered[beyond] == ordered[beyond - 1]
    if tie.any():
        every, stay = np.concatenate(keys), np.concatenate(picks)
        tied = np.flatnonzero(stay & np.isin(every >> bits, some[tie]))
        tied = tied[np.argsort(every[tied], kind="stable")]
        codes = every[tied] >> bits
        at_last = every[tied] == last[codes]
        if np.any((np.diff(codes[at_last], prepend=-1) == 0) & ~alike(tied[at_last])):
            return None
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        place = np.arange(len(tied)) - np.repeat(first, np.diff(first, append=len(tied)))
        stay[tied[place >= places[codes]]] = False
        return np.split(stay, np.cumsum([*map(len, keys)])[:-1])
    return picks


def _places(parts: list[pa.RecordBatch], rests: Blocks) -> Whole:
    """Of places in each part those in the table."""
    starts = np.cumsum([0, *map(len, parts)])
    return np.concatenate([start + rest for start, rest in zip(starts, rests, strict=False)])


def _codes(persons: pa.ChunkedArray, parts: list[pa.RecordBatch]) -> tuple[int, Blocks]:
    """How many codes there are, from 0, and those of the rows of each part: equal exactly where the persons are."""
    import pyarrow.compute as pc

    ends = pc.min_max(persons).as_py() if pa.types.is_integer(persons.type) and parts else None
    if ends is None or ends["max"] - ends["min"] >= 2 * len(persons) + 1024:
        encoded = persons.combine_chunks().dictionary_encode()
        return len(encoded.dictionary), np.split(encoded.indices.to_numpy(), np.cumsum([*map(len, parts)])[:-1])
    low, codes = ends["min"], [part["q"].to_numpy() for part in parts]
    many = ends["max"] - low + 1  # fewer than 2^31, as rows are
    return many, [narrowed(fixed_width(some) - low, np.int32) for some in codes] if low else codes


def _alike(cells: pa.Table, rows: Whole) -> Whole:
    """Whether each of the rows has the cells of the one before; the first has none before it."""

    alike = np.ones(len(rows), dtype=bool)
    for name in cells.column_names:
        values = cells[name].take(pa.array(rows)).combine_chunks().dictionary_encode(null_encoding="encode")
        alike &= np.diff(values.indices.to_numpy(), prepend=-1) == 0
    return alike


class Tables(Protocol):
    """What is asked of a database (`DuckDb`)."""

    dialect: Dialect

    def fetch(self, query: str) -> list[tuple[Any, ...]]: ...

    def batches(self, query: str, size: int, label: str = ...) -> Iterator[Any]: ...

    def keep(self, query: str, raw: Raw, table: str | None = None) -> str: ...

    def registered(self, rows: Any) -> AbstractContextManager[str]: ...


FEW_OF = 16  # rows that each different text has at least, where it is hashed once
HALVINGS = 4  # of a part whose rows do not fit, before SQL chooses


class Bounding:
    """What chooses the rows of a plan, at most `most` of each person; `items` of them are kept, and weights `w`."""

    def __init__(self, engine: Tables, plan: Bound, most: int, raw: Raw, items: list[str]) -> None:
        self._engine, self._plan, self._most, self._raw, self._items = engine, plan, most, raw, items
        self._dialect = dialect = engine.dialect
        # by the order of names, in which the hash has them
        self._cells = [whole_or_text(dialect, *raw.cell(name)) for name in sorted(dict(plan.scan.columns))]
        self._raw_names = {raw.cell(name)[0] for name, _ in plan.scan.columns}
        owner = raw.cell(plan.by[0])[0] if plan.owners is None and len(plan.by) == 1 else ""
        whole = any(cell.whole and cell.alias == owner for cell in self._cells)
        self._owner = owner if whole else "q"  # the column that has `q`, which is not read twice
        self._table: str | None = None

    def table(self, source: str, size: int) -> str:
        """The name of the table for a source of `size` rows, with the raw cells and `q`, whose a row is."""
        parts = max(1, -(-size // MOST_ROWS))
        try:
            for part in range(parts):
                self._choose(source, part, parts, HALVINGS)
        except (Refusal, KeyboardInterrupt):
            if self._table is not None:
                self._engine.fetch(f"DROP TABLE IF EXISTS {self._table}")
            raise
        return str(self._table)

    def _choose(self, source: str, part: int, parts: int, halvings: int) -> None:
        rows = source if parts == 1 else f"SELECT * FROM ({source}) WHERE hash(q) % {parts} = {part}"
        read = None if self._plan.weighted else self._read(rows)
        if read is None and halvings and not self._plan.weighted:
            self._choose(source, part, 2 * parts, halvings - 1)
            self._choose(source, part + parts, 2 * parts, halvings - 1)
        elif not read or not self._chosen_in_arrays(read):
            weighted = self._plan.weighted
            query = persons.rows_per_key(
                "*", rows, ["q"], self._cells, self._most, weighted=weighted, dialect=self._dialect
            )
            self._keep(f"SELECT {', '.join([*self._items, *['w'] * weighted])} FROM ({query})")

    def _keep(self, query: str) -> None:
        self._table = self._engine.keep(query, self._raw, self._table)

    def _read(self, rows: str) -> list[Any] | None:
        """Batches of raw cells, of `q`, and of the numbers `x` that the others count as; None where they do not fit."""
        items = self._raw_names | {self._owner}
        others = [(i, cell) for i, cell in enumerate(self._cells) if not self._as_it_is(cell)]
        numbers = {i: f"{counted_as(cell, self._dialect)} AS x{i}" for i, cell in others}
        joins = ""
        for i, name in self._of_few(rows, [i for i, cell in others if not cell.whole]):
            different = f"SELECT DISTINCT {name} FROM ({rows})"
            joins += f" LEFT JOIN (SELECT {name} AS d{i}, {numbers[i]} FROM ({different})) AS t{i}"
            joins += f" ON r.{name} IS NOT DISTINCT FROM d{i}"
            numbers[i] = f"x{i}"
        items |= {*numbers.values()}
        query = f"SELECT {', '.join(sorted(items))} FROM ({rows}) AS r{joins}{persons.not_null(['q'])}"
        return gathered(self._engine.batches(query, BLOCK, self._raw.label))

    def _of_few(self, rows: str, texts: list[int]) -> list[tuple[int, str]]:
        """Of cells that count by their texts those of few different ones, each of which is hashed once; with the raw
        columns."""
        names = [self._raw.cell(name)[0] for name in sorted(dict(self._plan.scan.columns))]
        counts = ", ".join(["count(*)", *(f"approx_count_distinct({names[i]})" for i in texts)])
        ((size, *many),) = self._engine.fetch(f"SELECT {counts} FROM ({rows})") if texts else [(0,)]
        return [(i, names[i]) for i, different in zip(texts, many, strict=True) if different * FEW_OF <= size]

    def _as_it_is(self, cell: Physical) -> bool:
        """Whether a raw cell is the whole number that it counts as."""
        return cell.whole and cell.alias in self._raw_names

    def _chosen_in_arrays(self, read: list[Any]) -> bool:
        """Whether the hashes could decide; what stays is kept then."""
        numbers = [cell.alias if self._as_it_is(cell) else f"x{i}" for i, cell in enumerate(self._cells)]

        def hashes(part: Any) -> Any:
            return hashes_of([numbers_of(part[name]) for name in numbers], len(part))

        table = pa.Table.from_batches(read)
        if self._owner != "q":
            table = table.append_column("q", table[self._owner])
        stays = staying(table, self._most, [*numbers, "q"], hashes, BITS)
        if stays is None:
            return False
        with self._engine.registered(table.append_column("stays", [stays])) as name:
            self._keep(f"SELECT {', '.join(self._items)} FROM {name} WHERE stays")
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
