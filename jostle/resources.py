"""Files that ship with Jostle (the grammar and the standard library), and where this user's cache is.

They stand in the package when it is installed (`jostle/_grammar`, `jostle/_stdlib`) and at the top of a checkout
otherwise.
"""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder of `grammar` or `stdlib`."""
    packaged = _PACKAGE / f"_{name}"
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def cache_folder() -> Path:
    """`$JOSTLE_CACHE`, else `jostle` in `$XDG_CACHE_HOME` or `~/.cache`; it need not exist. `RuntimeError`: no home."""
    own = os.environ.get("JOSTLE_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "jostle"
