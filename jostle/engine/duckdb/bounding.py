"""At most so many rows of each person, chosen in arrays: the rows that the SQL of `sql.persons` keeps, sooner.

The first digit of a row's hash decides of most rows: counts of each person's rows by digit tell at which digit that
person's bound is. Of the rows with that digit a person's code and more of the hash make one whole number; of these,
sorted, the one at the bound is the last that stays. Codes tell persons apart exactly, so that a person's rows alone
decide. Where several rows share that number it does not matter which of them stays if all their cells are equal; where
they are not, nothing is chosen here, and the SQL decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Whole = NDArray[Any]
    Blocks = list[tuple[Whole, Whole]]

MOST_ROWS = 2**25
MOST_CELLS = 2**27  # numbers, hashes and codes included
MOST_BYTES = 2**30  # of texts
_KEY_BITS = 63
_DIGIT_BITS = 7  # at most
_BLOCK = 2**17  # rows, few enough for a processor's cache


def fits(rows: int, cells: Collection[tuple[str, str]], fetch: Callable[[str], list[tuple[Any, ...]]]) -> bool:
    """Whether that many rows of these columns fit into memory; `fetch` runs a query over `{}`, the rows."""
    texts = [cell for cell, kind in cells if kind == "VARCHAR"]
    if rows > MOST_ROWS or rows * (2 + len(cells) + 3 * len(texts)) > MOST_CELLS:
        return False
    if not texts:
        return True
    total = " + ".join(f"coalesce(sum(strlen({text})), 0)" for text in texts)
    return int(fetch(f"SELECT {total} FROM {{}}")[0][0]) <= MOST_BYTES


def bounded_rows(table: pa.Table, most: int, hash_bits: int) -> pa.Table | None:
    """The rows that stay of a table of the columns `q`, whose a row is, `h`, its hash, and its cells; without `h`.

    `q` is of whole numbers or texts, none of them missing. None where hashes cannot decide.
    """
    import numpy as np
    import pyarrow as pa

    cells = table.drop_columns(["h"])
    persons, blocks = _blocks(table)
    digit_bits = max(0, min((len(table) // max(persons, 1)).bit_length() - 1, _DIGIT_BITS))
    to_digit, to_key = hash_bits - digit_bits, max(0, hash_bits - _KEY_BITS + persons.bit_length())
    bound, places = _bounds(blocks, persons, most, to_digit, 1 << digit_bits)
    stays, rests, parts, start = [np.zeros(0, dtype=bool)], [], [], 0
    for codes, hashes in blocks:
        digits, bounds = hashes >> to_digit, bound[codes]
        stays.append(digits < bounds)
        rest = np.flatnonzero(digits == bounds)
        rest = rest[places[codes[rest]] > 0]
        rests.append(rest + start)
        parts.append((codes[rest] << (hash_bits - to_key)) | (hashes[rest] >> to_key))
        start += len(codes)
    stay = np.concatenate(stays)
    if any(map(len, rests)):
        rest, keys = np.concatenate(rests), np.concatenate(parts)
        chosen = _least(keys, keys >> (hash_bits - to_key), places, lambda tied: _alike(cells, rest[tied]))
        if chosen is None:
            return None
        stay[rest] = chosen
    return cells.filter(pa.array(stay))


def _bounds(blocks: Blocks, persons: int, most: int, to_digit: int, digits: int) -> tuple[Whole, Whole]:
    """For each person the first digit of which not all rows stay, beyond the digits where all do, and how many stay of
    the rows with that digit."""
    import numpy as np

    counts = np.zeros(persons * digits, dtype=np.int32)
    for codes, hashes in blocks:
        np.add.at(counts, (hashes >> to_digit) * persons + codes, np.int32(1))
    bound, before, through = np.zeros(persons, np.uint8), np.zeros(persons, np.int32), np.zeros(persons, np.int32)
    for many in counts.reshape(digits, persons):
        through += many
        all_stay = through <= most
        bound += all_stay
        np.copyto(before, through, where=all_stay)
    return bound, most - before


def _least(keys: Whole, codes: Whole, places: Whole, alike: Callable[[Whole], Whole]) -> Whole | None:
    """Whether a row is among the `places` of its person with the least keys, of which each person has more; None where
    rows that differ tie. `alike` says of rows whether each is like the one before."""
    import numpy as np

    ordered, sizes = np.sort(keys), np.bincount(codes, minlength=len(places))
    some = np.flatnonzero(sizes)
    beyond = np.cumsum(sizes)[some] - sizes[some] + places[some]  # where the first row of a person stands that goes
    last, tie = np.zeros(len(places), dtype=np.int64), np.zeros(len(places), dtype=bool)
    last[some], tie[some] = ordered[beyond - 1], ordered[beyond] == ordered[beyond - 1]
    chosen = keys <= last[codes]
    if tie.any():
        tied = np.flatnonzero(chosen & tie[codes])
        tied = tied[np.argsort(keys[tied], kind="stable")]
        at_last = tied[keys[tied] == last[codes[tied]]]
        if np.any((np.diff(codes[at_last], prepend=-1) == 0) & ~alike(at_last)):
            return None
        first = np.flatnonzero(np.diff(codes[tied], prepend=-1))
        place = np.arange(len(tied)) - np.repeat(first, np.diff(first, append=len(tied)))
        chosen[tied[place >= places[codes[tied]]]] = False
    return np.asarray(chosen)


def _blocks(table: pa.Table) -> tuple[int, Blocks]:
    """How many codes there are, from 0; and of each block of rows the codes of persons, equal exactly where the persons
    are, and the hashes."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    table, low = table.select(["q", "h"]), 0
    persons = table["q"]
    ends = pc.min_max(persons).as_py() if pa.types.is_integer(persons.type) and len(table) else None
    if ends is not None and ends["max"] - ends["min"] < 2 * len(table) + 1024:
        low, many = ends["min"], ends["max"] - ends["min"] + 1
    else:
        encoded = persons.combine_chunks().dictionary_encode()
        table, many = table.set_column(0, "q", encoded.indices), len(encoded.dictionary)
    parts = table.to_batches(max_chunksize=_BLOCK)
    return many, [(part["q"].to_numpy().astype(np.int64) - low, part["h"].to_numpy()) for part in parts]


def _alike(cells: pa.Table, rows: Whole) -> Whole:
    """Whether each of the rows has the cells of the one before; the first has none before it."""
    import numpy as np
    import pyarrow as pa

    alike = np.ones(len(rows), dtype=bool)
    for name in cells.column_names:
        values = cells[name].take(pa.array(rows)).combine_chunks().dictionary_encode(null_encoding="encode")
        alike &= np.diff(values.indices.to_numpy(), prepend=-1) == 0
    return alike
