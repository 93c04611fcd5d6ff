"""Files of counts: cubes that somebody has already counted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.diagnostics import Refusal, refuse
from jostle.engine.files import OpenFile, open_file
from jostle.integers import fixed_width, truncated

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CELLS = 2**26
_LARGEST = 2**53


def load_counts(file: OpenFile | str | Path, *, private: bool = False) -> NDArray[Any]:
    """The cube in a `.npy` file: int64, of one to three dimensions, every count whole and not negative.

    Anything else is a `DataError` that says what the file is, and no more of what it holds.
    """
    import numpy as np

    if not isinstance(file, OpenFile):
        file = open_file(file)
    label = f"`{file.path}`"
    try:
        with file.reader() as source:
            header = np.lib.format.read_array_header_2_0
            if np.lib.format.read_magic(source) == (1, 0):
                header = np.lib.format.read_array_header_1_0
            size = math.prod(header(source)[0])
            if size <= _CELLS:
                source.seek(0)
                array = np.lib.format.read_array(source, allow_pickle=False)
    except OSError as error:
        raise refuse("DataError", f"{label} cannot be read: {error.strerror}") from None
    except (ValueError, EOFError, MemoryError, SyntaxError, TypeError, OverflowError):
        help = "rows are counted by `histogram(table(…), x = age)`"
        raise refuse("DataError", f"{label} is not a NumPy array file (`.npy`) that can be read", help=help) from None
    if size > _CELLS:
        raise _wrong_size(label, size)
    file.check()
    return as_counts(array, label, private=private)


def as_counts(values: object, label: str, *, private: bool = False) -> NDArray[Any]:
    """The same for an array in memory. Of a private one only shape and kind may be refused: its cells are mended."""
    import numpy as np

    array = np.asarray(values)
    if not 1 <= array.ndim <= 3:
        raise refuse("DataError", f"{label} has {array.ndim} dimensions; counts have one, two or three")
    if array.size == 0 or array.size > _CELLS:
        raise _wrong_size(label, array.size)
    if array.dtype.kind not in "uif":
        raise _not_counts(label)
    if private:
        with np.errstate(all="ignore"):
            cells = np.nan_to_num(array.astype(float), nan=0.0, posinf=2.0**31, neginf=0.0)
        return truncated(np.clip(cells, 0, 2.0**31))
    if not np.all((array >= 0) & (array < _LARGEST)) or (
        array.dtype.kind == "f" and not np.all(array == np.floor(array))
    ):
        raise _not_counts(label)
    return fixed_width(array)


def _wrong_size(label: str, size: int) -> Refusal:
    return refuse("DataError", f"{label} has {size:,} cells; counts have between 1 and {_CELLS:,}")


def _not_counts(label: str) -> Refusal:
    return refuse(
        "DataError", f"{label} holds something else than whole numbers from 0 up", help="counts are 0, 1, 2, …"
    )
