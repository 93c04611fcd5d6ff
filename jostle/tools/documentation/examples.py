"""The examples: programs in the folder `examples`, a comment of names above the lines that show them.

The files `language`, `queries` and `words` show the built-in functions, the aggregates and the words; the others what
the module of their name brings. Each stands below the file `given`, and runs as a whole.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("examples")
_BLOCK = re.compile(r"# ([\w ]+)\n((?:.+\n)+)")


def given() -> str:
    """The declarations that every example stands below."""
    return (_FOLDER / "given.jst").read_text(encoding="utf-8")


def programs() -> dict[str, str]:
    """The programs of all examples, whole, by the names of their files."""
    files = sorted(path for path in _FOLDER.glob("*.jst") if path.stem != "given")
    return {path.stem: given() + path.read_text(encoding="utf-8") for path in files}


@cache
def examples(file: str) -> dict[str, str]:
    """The examples of one file by name; none where there is no such file."""
    path = _FOLDER / f"{file}.jst"
    blocks = _BLOCK.findall(path.read_text(encoding="utf-8")) if path.is_file() else []
    return {name: lines.rstrip("\n") for names, lines in blocks for name in names.split()}
