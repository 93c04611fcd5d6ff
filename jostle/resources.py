"""Files that ship with Jostle: the grammar and the standard library.

They stand in the package when it is installed (`jostle/_grammar`, `jostle/_stdlib`) and at the top of a checkout
otherwise.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder of `grammar` or `stdlib`."""
    packaged = _PACKAGE / f"_{name}"
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
