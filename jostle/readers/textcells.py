"""The cells of lines as lists of Arrow, and those of CSV found by arithmetic on bytes: all lines of a block at once.

In UTF-8 the bytes of a separator, a quote and a line's end are no part of another character. A line is regular when
every quote in it opens a cell, closes one, or is one of two within a quoted cell: then the number of quotes before a
separator tells whether it separates. Other lines are taken apart one by one, and written as regular ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jostle.integers import narrowed

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Whole = NDArray[Any]

_END, _QUOTE = ord("\n"), ord('"')
_RETURNS = re.compile(rb"(?<!\r)\r+\n")
_EMPTY = re.compile(rb"\n\n+")
_LONG = 1 << 20  # bytes of a line that is taken apart by itself, since it may have as many cells


def full_lines(data: bytes) -> bytes:
    """Whole lines without carriage returns at their ends, and without those that have no character then."""
    import numpy as np

    if b"\r" in data:
        data = _RETURNS.sub(b"\n", data)
    stops = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _END)
    if np.any(np.diff(stops, prepend=-1) == 1):
        data = _EMPTY.sub(b"\n", data).removeprefix(b"\n")
    return data


def lists(rows: Sequence[Sequence[str]]) -> pa.ListArray:
    """Rows of texts, none in place of one that is empty."""
    import numpy as np

    found = [text.encode() for row in rows for text in row]
    ends = np.cumsum([0, *map(len, found)])[1:]
    return _lists(b"".join(found), ends, np.cumsum([0, *map(len, rows)])[1:])


def cells(data: bytes, separator: str, split: Callable[[str], list[str]]) -> pa.ListArray:
    """For each of the full lines, in UTF-8, its cells; none in place of one that is empty. `split` gives those of a
    line that is not regular, or long."""
    import numpy as np
    import pyarrow as pa

    if len(data) <= _LONG:
        return _cells_of_short(data, separator, split)
    stops = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _END)
    parts, at = [], 0
    for number in np.flatnonzero(np.diff(stops, prepend=-1) > _LONG).tolist():
        start, stop = int(stops[number - 1]) + 1 if number else 0, int(stops[number])
        parts += [_cells_of_short(data[at:start], separator, split), lists([split(data[start:stop].decode())])]
        at = stop + 1
    return pa.concat_arrays([*parts, _cells_of_short(data[at:], separator, split)])


def _cells_of_short(data: bytes, separator: str, split: Callable[[str], list[str]]) -> pa.ListArray:
    import numpy as np

    quoted = b'"' in data
    if quoted:
        data = _regular(data, separator, split)
    text = np.frombuffer(data, dtype=np.uint8)
    marks = (text == ord(separator)) | (text == _END)
    if quoted:
        dropped, ends = _unquoted(text, marks)
        kept = np.ones(len(text), dtype=bool)
        kept[dropped] = False
        shown: bytes | Whole = text[kept]
    else:
        dropped = np.flatnonzero(marks)
        ends = np.arange(len(dropped))
        shown = data.translate(None, f"{separator}\n".encode())
    last = dropped[ends]
    before = last - ends  # the bytes before a cell's end that were not dropped
    return _lists(shown, before, np.flatnonzero(text[last] == _END) + 1)


def _lists(shown: bytes | Whole, ends: Whole, rows: Whole) -> pa.ListArray:
    """Lists of texts: `ends` are those of the texts in their bytes, `rows` those of the lists among the texts."""
    import numpy as np
    import pyarrow as pa

    ends, rows = (narrowed(np.concatenate([[0], places]), np.int32) for places in (ends, rows))
    full = np.packbits(ends[1:] > ends[:-1], bitorder="little")
    buffers = [pa.py_buffer(part) for part in (ends, shown, full)]
    texts = pa.StringArray.from_buffers(len(ends) - 1, *buffers)
    return pa.Array.from_buffers(pa.list_(pa.string()), len(rows) - 1, [None, pa.py_buffer(rows)], children=[texts])


def _unquoted(text: Whole, marks: Whole) -> tuple[Whole, Whole]:
    """Of regular lines the places of what is no text, and which of these places end a cell."""
    import numpy as np

    places = np.flatnonzero(marks | (text == _QUOTE))
    quote = text[places] == _QUOTE
    inside = np.logical_xor.accumulate(quote)  # of a quoted cell, after the place
    second = np.zeros(len(places), dtype=bool)  # of two quotes beside each other
    second[1:] = quote[1:] & quote[:-1] & (np.diff(places) == 1)
    plain = inside & (second | ~quote)
    places, quote = places[~plain], quote[~plain]
    return places, np.flatnonzero(~quote)


def _regular(data: bytes, separator: str, split: Callable[[str], list[str]]) -> bytes:
    """Lines with the same cells that are all regular."""
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8)
    quotes, stops = np.flatnonzero(text == _QUOTE), np.flatnonzero(text == _END)
    line = np.searchsorted(stops, quotes)
    opens = (np.arange(len(quotes)) - np.searchsorted(line, line)) % 2 == 0
    before = np.where(quotes > 0, text[quotes - 1], _END)
    beside = np.where(opens, before, text[quotes + 1])
    odd = (beside != ord(separator)) & (beside != _END) & (beside != _QUOTE)
    odd |= np.bincount(line, minlength=len(stops))[line] % 2 == 1
    parts, at = [], 0
    for number in np.unique(line[odd]).tolist():
        start, stop = int(stops[number - 1]) + 1 if number else 0, int(stops[number])
        written = [cell.replace('"', '""') for cell in split(data[start:stop].decode())]
        parts += [data[at:start], separator.join(f'"{cell}"' for cell in written).encode()]
        at = stop
    return b"".join([*parts, data[at:]]) if parts else data
