"""At most so many rows of each person, chosen in arrays: the rows that the SQL of `sql.persons` keeps, sooner.

The first digit of a row's hash decides of most rows: counts of each person's rows by digit tell at which digit that
person's bound is. Of the rows with that digit a person's code and more of the hash make one whole number; of these,
sorted, the one at the bound is the last that stays. Codes tell persons apart exactly, so that a person's rows alone
decide. Where several rows share that number it does not matter which of them stays if all their cells are equal; where
they are not, nothing is chosen here, and the SQL decides.

Rows are taken in blocks, by several threads. Their hashes are calculated twice rather than kept, since fresh memory
takes longer than arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from jostle.engine.sql.hashes import MISSING
from jostle.integers import fixed_width, narrowed

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Whole = NDArray[Any]
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
    import numpy as np

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
        chosen = _least(keys, hash_bits - to_key, places, lambda tied: _alike(table, _places(parts, rests)[tied]))
        if chosen is None:
            return None
        for stay, rest, some in zip(stays, rests, chosen, strict=True):
            stay[rest] = some
    return np.concatenate([np.zeros(0, dtype=bool), *stays])


def numbers_of(column: pa.Array) -> Whole:
    """The whole numbers that cells count as in a hash, of a column that stores some, or what they count as."""
    import numpy as np
    import pyarrow as pa

    return np.asarray(column.cast(pa.int64()).fill_null(MISSING) if column.null_count else column)


def _bounds(codes: Blocks, digits: Blocks, persons: int, most: int, size: int) -> tuple[Whole, Whole]:
    """For each person the first digit of which not all rows stay, beyond the digits where all do, and how many stay of
    the rows with that digit. Most counts fit into bytes; one that does not is short by a multiple of 256."""
    import numpy as np

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
    import numpy as np

    ordered = np.concatenate(keys)
    ordered.sort()
    codes = ordered >> bits
    first = np.append(0, np.flatnonzero(codes[1:] != codes[:-1]) + 1)  # where the rows of each person begin
    some = codes[first]
    del codes  # as large as all keys
    beyond = first + places[some]  # where the first row of a person stands that goes
    last = np.zeros(len(places), dtype=np.int64)
    last[some] = ordered[beyond - 1]
    chosen = [key <= last[key >> bits] for key in keys]
    tie = ordered[beyond] == ordered[beyond - 1]
    if tie.any():
        every, stay = np.concatenate(keys), np.concatenate(chosen)
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
    return chosen


def _places(parts: list[pa.RecordBatch], rests: Blocks) -> Whole:
    """Of places in each part those in the table."""
    import numpy as np

    starts = np.cumsum([0, *map(len, parts)])
    return np.concatenate([start + rest for start, rest in zip(starts, rests, strict=False)])


def _codes(persons: pa.ChunkedArray, parts: list[pa.RecordBatch]) -> tuple[int, Blocks]:
    """How many codes there are, from 0, and those of the rows of each part: equal exactly where the persons are."""
    import numpy as np
    import pyarrow as pa
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
    import numpy as np
    import pyarrow as pa

    alike = np.ones(len(rows), dtype=bool)
    for name in cells.column_names:
        values = cells[name].take(pa.array(rows)).combine_chunks().dictionary_encode(null_encoding="encode")
        alike &= np.diff(values.indices.to_numpy(), prepend=-1) == 0
    return alike
