"""Files that ship with Jostle (grammar, standard library, first programs), this user's cache, and whole writes.

The shipped files stand in the package when it is installed (`jostle/_grammar`, `jostle/_stdlib`, `jostle/_programs`)
and at the top of a checkout otherwise. JSON is read here where it may have been edited or cut short (a stored model, a
trace): brackets are counted first, since Python's parser recurses in C.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import IO, Any

_PACKAGE = Path(__file__).resolve().parent
KEEPS = ContextVar("what is calculated is kept", default=True)  # not in a run that is to leave no trace


def folder(name: str) -> Path:
    """The folder of `grammar`, `stdlib` or `programs`."""
    packaged = _PACKAGE / f"_{name}"
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


@cache
def library() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder("stdlib").glob("*.jst")))


def cache_folder() -> Path:
    """`$JOSTLE_CACHE`, else `jostle` in `$XDG_CACHE_HOME` or `~/.cache`; it need not exist. `RuntimeError`: no home."""
    own = os.environ.get("JOSTLE_CACHE")
    return Path(own) if own else user_folder("XDG_CACHE_HOME", ".cache")


def user_folder(variable: str, default: str) -> Path:
    """`jostle` in the folder that a variable names, or else in the `default` one of this user's home."""
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / default) / "jostle"


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


Json = Any
"""What JSON says: none, a truth, a number, a text, a list of such values, or such values by name. Who reads one tests
what it takes from it, or what its author stated."""

DEEPEST = 100
LONGEST = 300  # digits of a whole number: a double holds it
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[\[\]{}]")


def loads(text: str) -> Json:
    """The value that `text` says.

    `ValueError` where it is no JSON, is nested more than `DEEPEST` deep or has a whole number beyond `LONGEST` digits.
    """
    depth = 0
    for bracket in _BRACKET.findall(_TEXT.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
    return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int:
    if len(digits) > LONGEST:
        raise ValueError(f"a whole number of more than {LONGEST} digits")
    return int(digits)
