"""Arrays of private rows on the disk, in files that have no name."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


def on_disk(size: int, kind: DTypeLike) -> NDArray[Any] | None:
    """An array of shape (size,) in the temporary folder, unset; None where there is no room.

    Its file never stands in a folder where anybody could open it, and goes with the array, or with a killed process.
    """
    import numpy as np

    try:
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, max(1, size) * np.dtype(kind).itemsize)  # or a write could kill us
            return np.memmap(file, kind, "r+", shape=(size,))
    except OSError:
        return None


def let_go(array: NDArray[Any] | None) -> None:
    """Frees the memory that an array on the disk, or a slice of one, takes meanwhile. It is read again if asked."""
    pages = getattr(array, "_mmap", None)
    if pages is not None:
        pages.madvise(mmap.MADV_DONTNEED)
