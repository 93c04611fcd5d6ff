"""What stands in a compressed file: gzip and Zstandard, known by their first bytes.

A stream that ends early or breaks is no file of rows, whatever it begins with. No single row can make it so, since
their owner compresses all of them together; so such a file is refused as a whole, when it is opened and before anything
is charged.
"""

from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING, BinaryIO, cast

from jostle.diagnostics import Refusal, refuse

if TYPE_CHECKING:
    from jostle.engine.files import OpenFile

FAULTS = (OSError, EOFError, zlib.error)
"""What reading a damaged stream may raise."""
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def is_compressed(file: OpenFile) -> bool:
    """Whether the file begins as a compressed stream does."""
    with file.reader(buffer=4) as source:
        return source.read(4).startswith((_GZIP, _ZSTANDARD))


def content(file: OpenFile, buffer: int = 1 << 20) -> BinaryIO:
    """What stands in a file, from the start, decompressed where it is compressed. Reading may raise one of `FAULTS`."""
    source = file.reader(buffer=buffer)
    first = source.read(4)
    source.seek(0)
    if first.startswith(_GZIP):
        import gzip

        return cast(BinaryIO, gzip.GzipFile(fileobj=source))
    return io.BufferedReader(_Zstandard(source), 1 << 20) if first == _ZSTANDARD else source


def damaged(label: str) -> Refusal:
    """The refusal of a stream that breaks."""
    message = f"{label} is damaged: what is compressed in it cannot be read to its end"
    return refuse("DataError", message, help="compress it again, or give it as it is")


class _Zstandard(io.RawIOBase):
    """Arrow's stream, as Python reads files."""

    def __init__(self, source: BinaryIO) -> None:
        import pyarrow as pa

        self._stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
