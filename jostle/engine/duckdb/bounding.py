"""At most so many rows of each person, chosen in arrays: the rows that the SQL of `sql.persons` keeps, sooner.

A person's code and the first bits of a row's hash make one whole number; of these, sorted, the one at a person's bound
is the last that stays. Codes tell persons apart exactly, so that a person's rows alone decide. Where several rows share
that number it does not matter which of them stays if all their cells are equal; where they are not, nothing is chosen
here, and the SQL decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Whole = NDArray[Any]

MOST_ROWS = 2**25
MOST_CELLS = 2**27  # numbers, hashes and codes included
MOST_BYTES = 2**30  # of texts
_KEY_BITS = 63


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

    codes = _codes(table["q"])
    hashes, cells = table["h"].to_numpy(), table.drop_columns(["h"])
    sizes = np.bincount(codes)
    if sizes.max(initial=0) <= most:
        return cells
    shift = min(hash_bits, _KEY_BITS - len(sizes).bit_length())
    keys = (codes << shift) | (hashes >> (hash_bits - shift))
    large = sizes > most
    ordered = np.sort(keys if large.all() else keys[large[codes]])
    places = np.cumsum(sizes[large]) - sizes[large] + most  # of the first row of a person that goes
    last = np.full(len(sizes), np.iinfo(np.int64).max)
    last[large] = ordered[places - 1]
    tie = np.zeros(len(sizes), dtype=bool)
    tie[large] = ordered[places] == ordered[places - 1]
    stay = keys <= last[codes]
    if tie.any():
        tied = np.flatnonzero(stay & tie[codes])
        tied = tied[np.argsort(keys[tied], kind="stable")]
        first = np.flatnonzero(np.diff(codes[tied], prepend=-1))
        surplus = np.arange(len(tied)) - np.repeat(first, np.diff(first, append=len(tied))) >= most
        if not _alike(cells, tied[keys[tied] == last[codes[tied]]], codes):
            return None
        stay[tied[surplus]] = False
    return cells.filter(pa.array(stay))


def _codes(persons: pa.ChunkedArray) -> Whole:
    """Whole numbers from 0, equal exactly where the persons are."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_int64(persons.type) and len(persons):
        values = persons.to_numpy()
        low, high = int(values.min()), int(values.max())
        if high - low < 2 * len(values) + 1024:
            return np.asarray(values - low)
    encoded = persons.combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(), dtype=np.int64)


def _alike(cells: pa.Table, rows: Whole, codes: Whole) -> bool:
    """Whether rows that follow one another have equal cells where they are one person's."""
    import numpy as np
    import pyarrow as pa

    same = np.diff(codes[rows]) == 0
    for name in cells.column_names:
        values = cells[name].take(pa.array(rows)).combine_chunks().dictionary_encode(null_encoding="encode")
        if np.any(np.diff(values.indices.to_numpy())[same]):
            return False
    return True
