"""Files that ship with Jostle (grammar, standard library, first programs), this user's cache, and whole writes.

The shipped files stand in the package when it is installed (`jostle/_grammar`, `jostle/_stdlib`,
`jostle/_programs`) and at the top of a checkout otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder of `grammar`, `stdlib` or `programs`."""
    packaged = _PACKAGE / f"_{name}"
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def cache_folder() -> Path:
    """`$JOSTLE_CACHE`, else `jostle` in `$XDG_CACHE_HOME` or `~/.cache`; it need not exist. `RuntimeError`: no home."""
    own = os.environ.get("JOSTLE_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "jostle"


@contextmanager
def replacing(path: Path, mode: str = "w", **options: Any) -> Iterator[IO[Any]]:
    """Opens a file beside `path` that takes its place when the block ends well, and is removed otherwise.

    Other processes see the old file or the whole new one. Raises `OSError`.
    """
    import tempfile

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".part")
    try:
        with os.fdopen(handle, mode, **options) as file:
            yield file
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)  # there only if it was not put in place
